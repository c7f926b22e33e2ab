//! Arguments of any verb: options by name, paths, sizes.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub(crate) const DEFAULT_SIZE_BYTES: u64 = 1 << 30;
const SMALLEST_SIZE_BYTES: u64 = 1 << 20;
/// As many pages as a pool can number.
const LARGEST_SIZE_BYTES: u64 = (u32::MAX as u64 - 1) * 4096;

/// Arguments of a verb: options by name, and what is left.
pub(crate) struct Arguments<'a> {
    verb: &'static str,
    rest: std::slice::Iter<'a, OsString>,
    only_paths: bool,
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(verb: &'static str, arguments: &'a [OsString]) -> Arguments<'a> {
        Arguments { verb, rest: arguments.iter(), only_paths: false }
    }

    /// The next argument, and whether it is an option.
    pub(crate) fn next(&mut self) -> Option<(&'a OsStr, bool)> {
        let argument = self.rest.next()?;
        if argument == "--" && !self.only_paths {
            self.only_paths = true;
            return self.next();
        }
        Some((argument, !self.only_paths && argument.as_encoded_bytes().starts_with(b"-")))
    }

    pub(crate) fn value(&mut self, option: &str) -> Result<&'a OsStr, String> {
        self.rest
            .next()
            .map(OsString::as_os_str)
            .ok_or_else(|| format!("{option} needs a value: see scalefs {} --help", self.verb))
    }

    pub(crate) fn unknown(&self, option: &OsStr) -> String {
        format!("{} is no option of {verb}: see scalefs {verb} --help", option.display(), verb = self.verb)
    }

    /// The one path that is wanted.
    pub(crate) fn only(&self, paths: &[&OsStr]) -> Result<PathBuf, String> {
        match paths {
            [path] if !path.is_empty() => absolute(path),
            _ => Err(format!("expected one directory, got {}: see scalefs {} --help", paths.len(), self.verb)),
        }
    }
}

pub(crate) fn absolute(path: &OsStr) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", Path::new(path).display()))
}

/// A number of bytes, with K, M or G for powers of 1,024.
pub(crate) fn parse_size(text: &OsStr) -> Result<u64, String> {
    let wrong = || format!("--size: expected a number such as 512M, got {}", text.display());
    let digits = text.to_str().ok_or_else(wrong)?;
    let (digits, unit) = match digits.char_indices().next_back() {
        Some((end, 'K' | 'k')) => (&digits[..end], 1 << 10),
        Some((end, 'M' | 'm')) => (&digits[..end], 1 << 20),
        Some((end, 'G' | 'g')) => (&digits[..end], 1 << 30),
        _ => (digits, 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let size = if is_number { digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) } else { None };
    match size.ok_or_else(wrong)? {
        size if (SMALLEST_SIZE_BYTES..=LARGEST_SIZE_BYTES).contains(&size) => Ok(size),
        _ => Err(format!("--size: expected 1M to {}G, got {}", LARGEST_SIZE_BYTES >> 30, text.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [("1048576", 1 << 20), ("4096K", 4 << 20), ("3m", 3 << 20), ("2G", 2 << 30)];
        for (text, size) in sizes {
            assert_eq!(parse_size(text.as_ref()), Ok(size), "{text}");
        }
        for text in ["", "G", "-1", "1.5G", "12T", "1 G", "1023K", "99999999G", "99999999999999999999G", "+5G"] {
            assert!(parse_size(text.as_ref()).is_err(), "{text}");
        }
    }
}
