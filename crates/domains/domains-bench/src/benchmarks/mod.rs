//! Hare's 13 benchmarks (section 5.2 of the paper) as sequences of calls. Those that are programs there are the calls of their file
//! system's part: nothing is compressed, compiled or sent here.
//!
//! Each has what one program makes beforehand, and what all do then. Sizes are for each program, so that more programs do more.

mod builds;
mod mail;
mod single;
mod stress;
mod trees;

use posix_calls::Errno;

use crate::client::Client;
use crate::system::System;

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    Creates,
    Writes,
    Renames,
    Directories,
    RemoveDense,
    RemoveSparse,
    FindDense,
    FindSparse,
    Extract,
    Unzip,
    Stress,
    Mail,
    Build,
}

/// All, in the order in which the paper names them.
pub const ALL: [Benchmark; 13] = [
    Benchmark::Creates,
    Benchmark::Writes,
    Benchmark::Renames,
    Benchmark::Directories,
    Benchmark::RemoveDense,
    Benchmark::RemoveSparse,
    Benchmark::FindDense,
    Benchmark::FindSparse,
    Benchmark::Extract,
    Benchmark::Unzip,
    Benchmark::Stress,
    Benchmark::Mail,
    Benchmark::Build,
];

impl Benchmark {
    /// As the paper calls it.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::Creates => "creates",
            Benchmark::Writes => "writes",
            Benchmark::Renames => "renames",
            Benchmark::Directories => "directories",
            Benchmark::RemoveDense => "rm dense",
            Benchmark::RemoveSparse => "rm sparse",
            Benchmark::FindDense => "pfind dense",
            Benchmark::FindSparse => "pfind sparse",
            Benchmark::Extract => "extract",
            Benchmark::Unzip => "punzip",
            Benchmark::Stress => "fsstress",
            Benchmark::Mail => "mailbench",
            Benchmark::Build => "build linux",
        }
    }

    /// What one program makes for all.
    pub fn prepare<S: System>(self, client: &Client<'_, S>) -> Result<(), Errno> {
        client.make_base()?;
        match self {
            Benchmark::Creates | Benchmark::Writes | Benchmark::Directories => client.make_directory(&client.path("d")),
            Benchmark::Renames => single::prepare_renames(client),
            Benchmark::RemoveDense | Benchmark::FindDense => trees::make(client, trees::DENSE),
            Benchmark::RemoveSparse | Benchmark::FindSparse => trees::make(client, trees::SPARSE),
            Benchmark::Mail => mail::prepare(client),
            Benchmark::Build => builds::prepare_build(client),
            Benchmark::Extract | Benchmark::Stress | Benchmark::Unzip => Ok(()),
        }
    }

    /// What each program makes for itself: Hare's copies of the manual are made by one process after the other, each
    /// placed again.
    pub fn prepare_own<S: System>(self, client: &Client<'_, S>) -> Result<(), Errno> {
        if self == Benchmark::Unzip { builds::prepare_unzip(client) } else { Ok(()) }
    }

    /// What each program does, and is measured.
    pub fn run<S: System>(self, client: &Client<'_, S>) -> Result<(), Errno> {
        match self {
            Benchmark::Creates => single::create(client),
            Benchmark::Writes => single::write(client),
            Benchmark::Renames => single::rename(client),
            Benchmark::Directories => single::make_directories(client),
            Benchmark::RemoveDense => trees::remove(client, trees::DENSE),
            Benchmark::RemoveSparse => trees::remove(client, trees::SPARSE),
            Benchmark::FindDense | Benchmark::FindSparse => trees::find(client, &client.path("tree")),
            Benchmark::Extract => builds::extract(client),
            Benchmark::Unzip => builds::unzip(client),
            Benchmark::Stress => stress::stress(client),
            Benchmark::Mail => mail::deliver(client),
            Benchmark::Build => builds::build(client),
        }
    }
}
