//! Paths of a core's own.

use std::ops::Deref;

/// A path that shares no line with anything else: who compares names reads whole vectors, past their ends, and what lies there
/// would seem to go from core to core with them.
#[repr(align(128))]
pub struct Path {
    bytes: [u8; 120],
    length: usize,
}

impl From<&[u8]> for Path {
    fn from(path: &[u8]) -> Path {
        let mut bytes = [0; 120];
        bytes[..path.len()].copy_from_slice(path);
        Path { bytes, length: path.len() }
    }
}

impl From<String> for Path {
    fn from(path: String) -> Path {
        Path::from(path.as_bytes())
    }
}

impl Deref for Path {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
