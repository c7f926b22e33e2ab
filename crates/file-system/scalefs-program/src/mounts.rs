//! What is mounted where, as `/proc/self/mountinfo` has it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What a mount of ours is from: this, and the number of its server's process.
const SOURCE: &str = "scalefs:";

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

/// All ScaleFS that are mounted, in the order in which they were.
pub(crate) fn ours() -> Result<Vec<Mounted>, String> {
    Ok(read()?.into_iter().filter_map(|line| line.ours()).collect())
}

/// The ScaleFS in which a path lies, if it lies in one.
pub(crate) fn around(path: &Path) -> Result<Option<Mounted>, String> {
    let lines = read()?;
    // Of two at one place the later one is seen.
    let innermost = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| path.starts_with(&line.mount_point))
        .max_by_key(|(index, line)| (line.mount_point.components().count(), *index));
    Ok(innermost.and_then(|(_, line)| line.ours()))
}

/// The ScaleFS that is seen at a mount point.
pub(crate) fn at(mount_point: &Path) -> Result<Option<Mounted>, String> {
    let last = read()?.into_iter().rev().find(|line| line.mount_point == mount_point);
    Ok(last.and_then(|line| line.ours()))
}

struct Line {
    mount_point: PathBuf,
    file_system: String,
    source: String,
}

impl Line {
    /// `proc(5)`: `36 35 98:0 /root /mount-point options ... - type source options`.
    fn of(line: &str) -> Option<Line> {
        let mount_point = line.split(' ').nth(4)?;
        let mut after = line.split(" - ").nth(1)?.split(' ');
        let (file_system, source) = (after.next()?.to_owned(), after.next()?.to_owned());
        Some(Line { mount_point: unescaped(mount_point), file_system, source })
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
