//! Calls that know files by their names alone: made on objects in the same way, whatever these are.

use posix_calls::{Attributes, Errno, Fields, ObjectOperations, OpenFlags};

use crate::calls;
use crate::tree_calls::TreeCall;
use crate::values::PAGE_BYTES;

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

/// A call on names.
#[derive(Debug, Clone, Copy)]
pub enum NameCall {
    /// An `open` that gives no descriptor.
    Open(OpenFlags),
    Link,
    Unlink,
    Rename,
    Stat(Fields),
    Access,
    Tree(TreeCall),
}

/// What came back.
pub enum Named<H> {
    Done,
    Opened(H),
    Status(Attributes),
    /// Where a symbolic link leads: so many bytes of the page.
    Leads(usize),
}

impl NameCall {
    /// Makes the call on paths, of which most have one; a text that it tells comes into the page.
    ///
    /// # Errors
    /// Those of the call.
    pub fn perform<V: ObjectOperations>(
        self,
        objects: &V,
        paths: &[Path; 2],
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<Named<V::Handle>, Errno> {
        let [first, second] = [paths[0].bytes(), paths[1].bytes()];
        let done = |()| Named::Done;
        match self {
            NameCall::Open(flags) => calls::open_node(objects, first, flags).map(Named::Opened),
            NameCall::Link => calls::link(objects, first, second).map(done),
            NameCall::Unlink => calls::unlink(objects, first).map(done),
            NameCall::Rename => calls::rename(objects, first, second).map(done),
            NameCall::Stat(fields) => calls::stat(objects, first, fields).map(Named::Status),
            NameCall::Access => calls::access(objects, first).map(done),
            NameCall::Tree(call) => call.perform(objects, paths, page),
        }
    }
}
