//! Paths that calls on names take, and what comes back of such a call.

use posix_calls::Attributes;

/// As Linux has it (PATH_MAX), without the zero.
const LONGEST_PATH_BYTES: usize = 4095;

/// A path.
pub struct Path {
    bytes: [u8; LONGEST_PATH_BYTES],
    length: u16,
}

impl Default for Path {
    fn default() -> Self {
        Self { bytes: [0; LONGEST_PATH_BYTES], length: 0 }
    }
}

impl Path {
    /// Sets the path.
    ///
    /// # Errors
    /// It is longer than any that a test needs.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let place = self
            .bytes
            .get_mut(..text.len())
            .ok_or_else(|| format!("a path of {} bytes: expected at most {LONGEST_PATH_BYTES}", text.len()))?;
        place.copy_from_slice(text.as_bytes());
        self.length = text.len() as u16;
        Ok(())
    }

    /// The path.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What came back.
pub enum Named<H> {
    Done,
    Opened(H),
    Status(Attributes),
    /// Where a symbolic link leads: so many bytes of the page.
    Leads(usize),
}
