//! What is mounted where, as `/proc/self/mountinfo` has it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What a mount of ours is from: this, and the number of its server's process.
const SOURCE: &str = "scalefs:";

/// What a mount of ours is from that shows what a transaction sees.
const IN_TRANSACTION: &str = "scalefs-transaction:";

/// A mounted ScaleFS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) mount_point: PathBuf,
    pub(crate) server: i32,
}

/// The source of a mount whose server is this process.
pub(crate) fn source_of(process: u32) -> String {
    format!("{SOURCE}{process}")
}

/// The source of a mount that shows what a transaction sees.
pub(crate) fn source_in_transaction(server: i32) -> String {
    format!("{IN_TRANSACTION}{server}")
}

/// All ScaleFS that are mounted, in the order in which they were.
pub(crate) fn ours() -> Result<Vec<Mounted>, String> {
    Ok(read()?.into_iter().filter_map(|line| line.ours()).collect())
}

/// The ScaleFS in which a path lies, if it lies in one.
pub(crate) fn around(path: &Path) -> Result<Option<Mounted>, String> {
    Ok(innermost(path)?.and_then(|line| line.ours()))
}

/// Whether a path is seen as a transaction sees it.
pub(crate) fn is_in_transaction(path: &Path) -> Result<bool, String> {
    Ok(innermost(path)?.is_some_and(|line| line.source.starts_with(IN_TRANSACTION)))
}

/// What is seen around a path, if that is a part of a mount that is seen at another place, too (a bind mount).
pub(crate) fn part_around(path: &Path) -> Result<Option<PathBuf>, String> {
    Ok(innermost(path)?.map(|line| line.root).filter(|root| root != Path::new("/")))
}

/// The mount in which a path lies.
fn innermost(path: &Path) -> Result<Option<Line>, String> {
    // Of two at one place the later one is seen.
    let around = read()?.into_iter().enumerate().filter(|(_, line)| path.starts_with(&line.mount_point));
    let innermost = around.max_by_key(|(index, line)| (line.mount_point.components().count(), *index));
    Ok(innermost.map(|(_, line)| line))
}

/// The ScaleFS that is seen at a mount point.
pub(crate) fn at(mount_point: &Path) -> Result<Option<Mounted>, String> {
    let last = read()?.into_iter().rev().find(|line| line.mount_point == mount_point);
    Ok(last.and_then(|line| line.ours()))
}

struct Line {
    /// What of the file system is seen there.
    root: PathBuf,
    mount_point: PathBuf,
    file_system: String,
    source: String,
}

impl Line {
    /// `proc(5)`: `36 35 98:0 /root /mount-point options ... - type source options`.
    fn of(line: &str) -> Option<Line> {
        let mut before = line.split(' ').skip(3);
        let (root, mount_point) = (before.next()?, before.next()?);
        let mut after = line.split(" - ").nth(1)?.split(' ');
        let (file_system, source) = (after.next()?.to_owned(), after.next()?.to_owned());
        Some(Line { root: unescaped(root), mount_point: unescaped(mount_point), file_system, source })
    }

    fn ours(&self) -> Option<Mounted> {
        let server = self.source.strip_prefix(SOURCE)?.parse().ok()?;
        let is_fuse = self.file_system == "fuse" || self.file_system.starts_with("fuse.");
        is_fuse.then(|| Mounted { mount_point: self.mount_point.clone(), server })
    }
}

fn read() -> Result<Vec<Line>, String> {
    let path = "/proc/self/mountinfo";
    let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(Line::of).collect())
}

/// A path in which spaces, tabs, line ends and backslashes are octal numbers.
fn unescaped(path: &str) -> PathBuf {
    let (bytes, mut plain) = (path.as_bytes(), Vec::new());
    let mut index = 0;
    while index < bytes.len() {
        let octal = bytes.get(index + 1..index + 4).filter(|_| bytes[index] == b'\\');
        let number = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                index += 4;
            }
            None => {
                plain.push(bytes[index]);
                index += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_and_whose() {
        let line = r"61 29 0:54 / /mnt/my\040place rw,nosuid shared:4 - fuse.scalefs scalefs:4711 rw,user_id=0";
        let mounted = Line::of(line).and_then(|line| line.ours());
        assert_eq!(mounted, Some(Mounted { mount_point: PathBuf::from("/mnt/my place"), server: 4711 }));
        let part = Line::of(r"62 29 0:54 /a\040part /mnt/part rw - fuse scalefs:4711 rw").map(|line| line.root);
        assert_eq!(part, Some(PathBuf::from("/a part")));
    }

    #[test]
    fn others_are_not_ours() {
        for line in [
            "61 29 0:54 / /mnt rw - tmpfs scalefs:1 rw",
            "61 29 0:54 / /mnt rw - fuse sshfs rw",
            "61 29 0:54 / /mnt rw - fuse scalefs:x rw",
            "61 29 0:54 /",
        ] {
            assert_eq!(Line::of(line).and_then(|line| line.ours()), None, "{line}");
        }
    }
}
