//! Which places of the tree something is mounted at: a directory that goes must not take a mount along.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::failure::Failure;
use crate::place::Place;

const TABLE: &str = "/proc/self/mountinfo";

/// All places at which something is mounted.
pub(crate) fn places() -> Result<Vec<Place>, Failure> {
    let table = fs::read(TABLE).map_err(Failure::doing(TABLE))?;
    let place = |line: &[u8]| Place::of_path(std::ffi::OsStr::from_bytes(&path_of(line)?).as_ref());
    Ok(table.split(|byte| *byte == b'\n').filter_map(place).collect())
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
    }
}
