//! An archive of tar as the beginning of a file system.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use nix::sys::stat::makedev;
use scalefs::Kind;
use tar::{Archive, EntryType, Header};

use super::Status;
use super::load::Loader;

/// How compressed files begin, and what unpacks them.
const COMPRESSED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];
/// Of directories that an archive does not name.
const UNNAMED: Status = Status { mode: 0o755, user: 0, group: 0, modified_ns: 0 };

/// Whether a file looks like an archive.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let mut start = [0; 262];
    let length = File::open(path).and_then(|mut file| read_start(&mut file, &mut start));
    let length = length.map_err(|error| format!("--from {shown}: {error}"))?;
    if let Some((_, program)) = COMPRESSED.iter().find(|(mark, _)| start.starts_with(mark)) {
        return Err(format!("--from {shown}: it is compressed: unpack it first, {program} -d"));
    }
    if length < start.len() || &start[257..] != b"ustar" {
        return Err(format!("--from {shown}: expected a directory or an archive of tar"));
    }
    Ok(())
}

fn read_start(file: &mut File, start: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

pub(super) fn load(loader: &mut Loader<'_>, path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut archive = Archive::new(BufReader::new(file));
    let mut known = HashSet::from([b"/".to_vec()]);
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let path = absolute(&entry.path_bytes())?;
        let status =
            status_of(entry.header()).map_err(|error| format!("{}: {error}", String::from_utf8_lossy(&path)))?;
        make_above(loader, &mut known, &path)?;
        let target = entry.link_name_bytes().map(|target| target.into_owned());
        match (entry.header().entry_type(), target) {
            (EntryType::Directory, _) => {
                loader.directory(&path, status)?;
                known.insert(path);
            }
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => {
                loader.file(&path, status, &mut entry)?;
            }
            (EntryType::Symlink, Some(target)) => loader.symlink(&path, &target, status)?,
            (EntryType::Link, Some(target)) => loader.link(&path, &absolute(&target)?)?,
            (EntryType::Fifo, _) => loader.node(&path, (Kind::NamedPipe, 0), status)?,
            (EntryType::Char, _) => loader.node(&path, (Kind::CharacterDevice, device_of(entry.header())?), status)?,
            (EntryType::Block, _) => loader.node(&path, (Kind::BlockDevice, device_of(entry.header())?), status)?,
            (EntryType::XGlobalHeader, _) => {}
            _ => loader.leave_out(),
        }
    }
    Ok(())
}

fn status_of(header: &Header) -> std::io::Result<Status> {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Status {
        mode: header.mode()? & 0o7777,
        user: number(header.uid()?),
        group: number(header.gid()?),
        modified_ns: i64::try_from(header.mtime()?).unwrap_or(i64::MAX).saturating_mul(1_000_000_000),
    })
}

fn device_of(header: &Header) -> Result<u64, String> {
    let number = |number: std::io::Result<Option<u32>>| number.map_err(|error| error.to_string());
    let (major, minor) = (number(header.device_major())?, number(header.device_minor())?);
    Ok(makedev(major.unwrap_or(0).into(), minor.unwrap_or(0).into()))
}

/// A path in an archive as one from the root.
fn absolute(path: &[u8]) -> Result<Vec<u8>, String> {
    let mut absolute = Vec::new();
    for component in path.split(|byte| *byte == b'/').filter(|component| !matches!(*component, b"" | b".")) {
        if component == b".." {
            return Err(format!("{}: expected a path without .. in it", String::from_utf8_lossy(path)));
        }
        absolute.push(b'/');
        absolute.extend_from_slice(component);
    }
    if absolute.is_empty() {
        absolute.push(b'/');
    }
    Ok(absolute)
}

/// Directories above a path that the archive has not named.
fn make_above(loader: &mut Loader<'_>, known: &mut HashSet<Vec<u8>>, path: &[u8]) -> Result<(), String> {
    for end in path.iter().enumerate().filter(|(index, byte)| *index > 0 && **byte == b'/').map(|(index, _)| index) {
        if known.insert(path[..end].to_vec()) {
            loader.directory(&path[..end], UNNAMED)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn paths_start_at_the_root() {
        for (given, expected) in [("./a/b/", "/a/b"), ("/a//b", "/a/b"), ("./", "/"), ("...", "/...")] {
            assert_eq!(absolute(given.as_bytes()).as_deref(), Ok(expected.as_bytes()));
        }
        assert!(absolute(b"a/../b").is_err());
    }
}
