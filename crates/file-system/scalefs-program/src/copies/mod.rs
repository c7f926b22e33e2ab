//! Copies of whole trees: into a ScaleFS before it is mounted, and out of it when it was unmounted.
//!
//! ```text
//! a directory ─ from_directory.rs ┐                                ┌ to_directory.rs ─ a directory
//! an archive ─── from_archive.rs ─┴─► load.rs ─► ScaleFS ─► save.rs ┴ to_archive.rs ─── an archive
//! ```
//! Owners, modes, times of modification, symbolic links and names of one file stay; of holes, the bytes that are read there.
//! What ScaleFS has no objects for (devices, FIFOs, sockets) is left out, and counted.

mod from_archive;
mod from_directory;
mod load;
mod save;
mod to_archive;
mod to_directory;

use std::fmt;
use std::path::{Path, PathBuf};

use scalefs::FileSystem;

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Owner, mode and time of what is copied.
#[derive(Clone, Copy, Debug)]
struct Status {
    mode: u32,
    user: u32,
    group: u32,
    modified_ns: i64,
}

/// How much was copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copied {
    names: u64,
    bytes: u64,
    left_out: u64,
}

impl fmt::Display for Copied {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} names, {} MiB", self.names, self.bytes >> 20)?;
        match self.left_out {
            0 => Ok(()),
            left_out => write!(formatter, "; {left_out} devices, FIFOs or sockets were left out"),
        }
    }
}

/// Whether a copy can be made from there.
pub(crate) fn check_source(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| format!("--from {shown}: {error}"))?;
    match metadata.is_dir() {
        true => std::fs::read_dir(path).map(drop).map_err(|error| format!("--from {shown}: {error}")),
        false if metadata.is_file() => from_archive::check(path),
        false => Err(format!("--from {shown}: expected a directory or an archive of tar")),
    }
}

/// Whether a copy can be made there.
pub(crate) fn check_target(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match std::fs::read_dir(path) {
        Ok(mut names) => match names.next() {
            None => Ok(()),
            Some(_) => {
                Err(format!("--to {shown}: it is not empty: take a new or empty directory, or a new archive NAME.tar"))
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match path.parent() {
            Some(parent) if parent.is_dir() => Ok(()),
            _ => Err(format!("--to {shown}: the directory in which it is to be does not exist: make it first")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(format!("--to {shown}: it exists: take a new or empty directory, or a new archive NAME.tar"))
        }
        Err(error) => Err(format!("--to {shown}: {error}")),
    }
}

/// Where it is said why a copy could not be made, beside the place where it was to be.
pub(crate) fn failure_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".failed");
    name.into()
}

/// Fills an empty file system.
pub(crate) fn load(files: &FileSystem, path: &Path) -> Result<Copied, String> {
    let mut loader = load::Loader::new(files);
    let loaded = match path.is_dir() {
        true => from_directory::load(&mut loader, path),
        false => from_archive::load(&mut loader, path),
    };
    loaded.and_then(|()| loader.finish()).map_err(|why| format!("--from {}: {why}", path.display()))
}

/// Copies all out: into a directory, or into an archive if the path ends in `.tar`.
pub(crate) fn save(files: &FileSystem, path: &Path) -> Result<Copied, String> {
    let is_archive = path.extension().is_some_and(|extension| extension == "tar");
    let saved = match is_archive && !path.is_dir() {
        true => to_archive::save(files, path),
        false => to_directory::save(files, path),
    };
    saved.map_err(|why| format!("--to {}: {why}", path.display()))
}
