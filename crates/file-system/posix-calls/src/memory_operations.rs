//! The operations through which the calls on memory reach a process's address space.
//!
//! As in [`ObjectOperations`](crate::ObjectOperations), each is on one object; pages are counted from address 0.

use core::ops::Range;

use crate::data_operations::{AnswerOf, DataOperations, FaultOf, NodeOf};
use crate::errno::Errno;
use crate::object_operations::Outcome;

/// Pages of 4 KiB of an address space: 2^47 bytes, as on x86-64.
pub const SPACE_PAGES: u64 = 1 << 35;

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere: the implementation chooses.
    Anywhere,
    /// To the pages from this one on, whatever is there.
    Fixed(u64),
    /// There, if nothing is.
    FixedNoReplace(u64),
}

/// What may be done with pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Nothing.
    None,
    /// Loads.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// Who sees what is stored to a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Everybody: it goes to the file.
    Shared,
    /// The address space alone: the page becomes one of its own.
    Private,
}

/// What became of an attempt to let a mapping go on behind its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The pages are there.
    Done,
    /// Something is mapped there, or the address space ends; nothing has changed.
    NoRoom,
}

/// Why a load or a store ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError<F> {
    /// Nothing is mapped there, or it must not be accessed so (SIGSEGV).
    Segment,
    /// The page lies behind the end of its file, or there is no page for it (SIGBUS).
    Bus,
    /// No memory for a page or for what leads to it.
    OutOfMemory,
    /// The operation cannot be done.
    Fault(F),
}

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
    /// Maps pages; returns the first one. Refused (`Exists`) where something is that must not be, and without memory.
    /// Steps: take a reference to the file; look for room; change content and marks; revoke what was there.
    ///
    /// # Errors
    /// `Exists` or `NoSpace`, and nothing has changed; or the implementation's fault.
    fn map(
        &self,
        place: Place,
        pages: u64,
        protection: Protection,
        source: Source<NodeOf<'_, Self>>,
    ) -> Outcome<u64, Self::Objects>;

    /// Lets pages lead nowhere.
    /// Steps: change content and marks; revoke what was there.
    ///
    /// # Errors
    /// `NoSpace` without memory, and nothing has changed; or the implementation's fault.
    fn unmap(&self, pages: Range<u64>) -> Outcome<(), Self::Objects>;

    /// Changes what may be done with pages, up to the first for which it cannot be: ENOMEM if nothing is mapped there or there
    /// is no memory, EACCES if it must not be stored to.
    ///
    /// # Errors
    /// ENOMEM, EACCES: pages before have changed.
    fn protect(&self, pages: Range<u64>, protection: Protection) -> Result<(), Errno>;

    /// Whether something is mapped at each of some pages.
    ///
    /// # Errors
    /// The implementation's fault.
    fn is_mapped(&self, pages: Range<u64>) -> AnswerOf<bool, Self>;

    /// Whether nothing is mapped at any of some pages.
    ///
    /// # Errors
    /// The implementation's fault.
    fn is_free(&self, pages: Range<u64>) -> AnswerOf<bool, Self>;

    /// Forgets what the process itself has stored to pages: private memory is again what it was when it was mapped.
    ///
    /// # Errors
    /// `NoSpace` without memory: some pages have been forgotten.
    fn discard(&self, pages: Range<u64>) -> Outcome<(), Self::Objects>;

    /// Lets a mapping go on for so many pages behind its last one.
    ///
    /// # Errors
    /// EFAULT if the pages are not one mapping, EINVAL if the file's pages have no such numbers, ENOMEM; nothing has changed.
    fn grow(&self, pages: Range<u64>, more: u64) -> Result<Growth, Errno>;

    /// Moves a mapping to another place, where it has so many pages, no fewer than before; `None`: the implementation chooses.
    /// Returns the first page.
    ///
    /// # Errors
    /// As [`MemoryOperations::grow`]; EEXIST if something is mapped there.
    fn relocate(&self, pages: Range<u64>, first: Option<u64>, new_pages: u64) -> Result<u64, Errno>;

    /// Loads bytes from addresses of the process.
    ///
    /// # Errors
    /// [`AccessError`] at the first address that cannot be loaded from.
    fn load(&self, address: u64, bytes: &mut [u8]) -> Result<(), AccessError<FaultOf<Self>>>;

    /// Stores bytes at addresses of the process.
    ///
    /// # Errors
    /// [`AccessError`] at the first address that cannot be stored to.
    fn store(&self, address: u64, bytes: &[u8]) -> Result<(), AccessError<FaultOf<Self>>>;
}
