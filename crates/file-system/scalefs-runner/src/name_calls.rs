//! Calls that know files by their names alone: made on objects in the same way, whatever these are.

use posix_calls::{Errno, Fields, ObjectOperations, OpenFlags};

use crate::calls;
use crate::paths::{Named, Path};
use crate::tree_calls::TreeCall;
use crate::values::PAGE_BYTES;

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
