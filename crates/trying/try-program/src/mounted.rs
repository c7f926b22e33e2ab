//! What is mounted where: a directory that goes must not take a mount along, and a recovery takes one away.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, StatxFlags};

use crate::failure::Failure;
use crate::place::Place;

const TABLE: &str = "/proc/self/mountinfo";

/// All places at which something is mounted.
pub(crate) fn places() -> Result<Vec<Place>, Failure> {
    let table = fs::read(TABLE).map_err(Failure::doing(TABLE))?;
    let place = |line: &[u8]| Place::of_path(std::ffi::OsStr::from_bytes(&path_of(line)?).as_ref());
    Ok(table.split(|byte| *byte == b'\n').filter_map(place).collect())
}

/// A mount of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The kernel's number of it.
    pub(crate) number: u64,
    pub(crate) place: Place,
}

/// An overlay that is mounted from this source. A file system of users, who choose its source, is none.
pub(crate) fn overlay_of(source: &[u8]) -> Result<Option<Mount>, Failure> {
    let table = fs::read(TABLE).map_err(Failure::doing(TABLE))?;
    let of_source = |line: &&[u8]| kind_and_source_of(line) == Some((b"overlay", source));
    Ok(table.split(|byte| *byte == b'\n').filter(of_source).find_map(mount_of))
}

/// The number of the mount in which an open object lies.
pub(crate) fn number_of(opened: &OwnedFd) -> rustix::io::Result<u64> {
    rustix::fs::statx(opened, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).map(|found| found.stx_mnt_id)
}

fn mount_of(line: &[u8]) -> Option<Mount> {
    let number = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
    Some(Mount { number, place: Place::of_bytes(&path_of(line)?)? })
}

/// The first and the second word after the lone dash.
fn kind_and_source_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = line.split(|byte| *byte == b' ').skip_while(|word| *word != b"-").skip(1);
    Some((words.next()?, words.next()?))
}

/// The fifth word of a line, in which the kernel writes spaces and the like as a backslash and three octal digits.
fn path_of(line: &[u8]) -> Option<Vec<u8>> {
    let word = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_backslashes_come_back() {
        let line = br"36 35 98:0 /mnt1 /a\040b/c\134d\012 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(path_of(line).as_deref(), Some(&b"/a b/c\\d\n"[..]));
        assert_eq!(path_of(b"36 35"), None);
        assert_eq!(kind_and_source_of(line), Some((&b"ext3"[..], &b"/dev/root"[..])));
        assert_eq!(mount_of(line).map(|mount| mount.number), Some(36));
    }
}
