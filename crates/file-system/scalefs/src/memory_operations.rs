//! The operations through which the calls on memory reach a process's address space.
//!
//! As in [`posix_calls::ObjectOperations`], each is on one object; pages are counted from address 0.

use core::ops::Range;

use address_space::{Fault, MapError, Place, ProtectError, Protection, Sharing};

use posix_calls::{DataOperations, NodeOf, Outcome};

/// What is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<N> {
    /// Memory that is zero at first, and the process's own.
    Anonymous,
    /// A file from a page on.
    File {
        /// The file, which the descriptor keeps during the call.
        node: N,
        /// Its page that comes first.
        page: u64,
        /// Who sees what is stored.
        sharing: Sharing,
        /// Whether the descriptor was open for writing.
        may_write: bool,
    },
}

/// What one call of a process does to its memory.
pub trait MemoryOperations: DataOperations {
    /// Maps pages; returns the first one.
    /// Steps: take a reference to the file; look for room; change content and marks; revoke what was there.
    fn map(
        &self,
        place: Place,
        pages: u64,
        protection: Protection,
        source: Source<NodeOf<'_, Self>>,
    ) -> Result<u64, MapError>;

    /// Lets pages lead nowhere.
    /// Steps: change content and marks; revoke what was there.
    fn unmap(&self, pages: Range<u64>) -> Outcome<(), Self::Objects>;

    /// Changes what may be done with pages, up to the first for which it cannot be.
    fn protect(&self, pages: Range<u64>, protection: Protection) -> Result<(), ProtectError>;

    /// Loads bytes from addresses of the process.
    fn load(&self, address: u64, bytes: &mut [u8]) -> Result<(), Fault>;

    /// Stores bytes at addresses of the process.
    fn store(&self, address: u64, bytes: &[u8]) -> Result<(), Fault>;
}
