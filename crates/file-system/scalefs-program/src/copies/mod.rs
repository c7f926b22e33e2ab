//! Copies of whole trees: into a ScaleFS before it is mounted, and out of it when it was unmounted.
//!
//! ```text
//! a directory ─ from_directory.rs ┐                                ┌ to_directory.rs ─ a directory
//! an archive ─── from_archive.rs ─┴─► load.rs ─► ScaleFS ─► save.rs ┴ to_archive.rs ─── an archive
//! ```
//! Owners (if root copies), modes, times of modification, symbolic links and names of one file stay; pages of zeros become holes.
//! What cannot be made there is left out, and counted: devices by others than root, sockets in an archive.

mod from_archive;
mod from_directory;
mod load;
mod save;
mod to_archive;
mod to_directory;

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use scalefs::{FileSystem, Kind};

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes that are data or a hole together.
const PAGE_BYTES: usize = 4096;

/// Where of some bytes there are pages that hold more than zeros.
fn runs_of_data(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, page) in bytes.chunks(PAGE_BYTES).enumerate() {
        let start = index * PAGE_BYTES;
        match runs.last_mut() {
            _ if page.iter().all(|byte| *byte == 0) => {}
            Some(run) if run.end == start => run.end += page.len(),
            _ => runs.push(start..start + page.len()),
        }
    }
    runs
}

/// What a mode says of a kind, if it is a pipe's, a socket's or a device's.
fn kind_of(mode: u32) -> Option<Kind> {
    const KIND_BITS: u32 = 0o170_000;
    let kinds = [Kind::NamedPipe, Kind::NamedSocket, Kind::CharacterDevice, Kind::BlockDevice];
    kinds.into_iter().find(|kind| kind.mode_bits() == mode & KIND_BITS)
}

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
    let failure = failure_of(path);
    if failure.symlink_metadata().is_ok() {
        return Err(format!(
            "--to {shown}: {} says that an earlier copy failed: read it, and remove it",
            failure.display()
        ));
    }
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

/// Says there why.
pub(crate) fn say_failure(path: &Path, why: &str) {
    // Who cannot even write that has a full or closed place, and the exit code is all that is left.
    if let Ok(mut file) = std::fs::File::create_new(failure_of(path)) {
        let _ = writeln!(file, "{why}");
    }
}

/// Fills an empty directory of a file system: one with an absolute path without a slash at its end, or the root, which has none.
pub(crate) fn load(files: &FileSystem, top: &[u8], path: &Path) -> Result<Copied, String> {
    let mut loader = load::Loader::new(files, top);
    let loaded = match path.is_dir() {
        true => from_directory::load(&mut loader, path),
        false => from_archive::load(&mut loader, path),
    };
    loaded.and_then(|()| loader.finish()).map_err(|why| format!("--from {}: {why}", path.display()))
}

/// Copies all of such a directory out: into a directory, or into an archive if the path ends in `.tar`.
pub(crate) fn save(files: &FileSystem, top: &[u8], path: &Path) -> Result<Copied, String> {
    // It may have become another place meanwhile.
    check_target(path)?;
    let is_archive = path.extension().is_some_and(|extension| extension == "tar");
    let saved = match is_archive && !path.is_dir() {
        true => to_archive::save((files, top), path),
        false => to_directory::save((files, top), path),
    };
    saved.map_err(|why| format!("--to {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, runs_of_data};

    #[test]
    fn pages_of_zeros_are_left_out() {
        let mut bytes = vec![0; 5 * PAGE_BYTES + 3];
        assert_eq!(runs_of_data(&bytes), []);
        for index in [PAGE_BYTES, 3 * PAGE_BYTES - 1, 5 * PAGE_BYTES + 2] {
            bytes[index] = 1;
        }
        assert_eq!(runs_of_data(&bytes), [PAGE_BYTES..3 * PAGE_BYTES, 5 * PAGE_BYTES..5 * PAGE_BYTES + 3]);
        assert_eq!(runs_of_data(&[]), []);
    }
}
