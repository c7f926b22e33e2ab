//! Changes of data under the decision of [`NameChanges`](crate::NameChanges), prepared apart from being decided.

use core::cell::Cell;

use crate::data_operations::{AnswerOf, DataOperations, NodeOf};
use crate::name_changes::NameChanges;
use crate::object_operations::Outcome;

/// Bytes that are to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteChange<'k> {
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes; they cross no border of [`PAGE_BYTES`].
    pub bytes: &'k [u8],
}

/// No write of a change crosses a multiple of this.
pub const PAGE_BYTES: u64 = 4096;

/// What becomes of a file's data, in this order.
#[derive(Clone, Copy, Debug)]
pub struct FileChanges<'k, N> {
    /// The file, which no other of the same decision is.
    pub file: N,
    /// It is cut to this size, if it is longer.
    pub cut_to: Option<u64>,
    /// Bytes are written, by offset, none twice.
    pub writes: &'k [WriteChange<'k>],
    /// It is made this long.
    pub size_bytes: Option<u64>,
}

/// Space that was taken for pages by [`DataChanges::reserve_page`], for the changes that are prepared.
#[derive(Debug)]
pub struct ReservedPages<'k> {
    pages: &'k [Cell<Option<u64>>],
    next: Cell<usize>,
}

impl<'k> ReservedPages<'k> {
    /// These; what is used of them is taken out.
    pub fn new(pages: &'k [Cell<Option<u64>>]) -> ReservedPages<'k> {
        ReservedPages { pages, next: Cell::new(0) }
    }

    /// The next one, which is the caller's now.
    pub fn take(&self) -> Option<u64> {
        loop {
            let place = self.pages.get(self.next.get())?;
            self.next.set(self.next.get() + 1);
            if let Some(page) = place.take() {
                return Some(page);
            }
        }
    }
}

/// What a prepared set of changes is.
pub type PreparedOf<'p, 'v, D> = <<D as DataOperations>::Objects as NameChanges>::Prepared<'p, 'v>;

/// Implementations in which data can change together with names.
pub trait DataChanges: DataOperations<Objects: NameChanges> {
    /// Room for one file while it is prepared.
    type FileRoom<'v>: Default
    where
        Self: 'v;
    /// Room for one page that is written.
    type PageRoom<'v>: Default
    where
        Self: 'v;

    /// Takes space for a page that a change will write; nothing if there is none. So the change itself does not lack any.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn reserve_page(&self) -> AnswerOf<Option<u64>, Self>;

    /// Gives space back that was reserved and not used.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn give_page_back(&self, page: u64) -> AnswerOf<(), Self>;

    /// How many bytes a write into a pipe could put there, at most so many as are asked for.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn pipe_room(&self, pipe: NodeOf<'_, Self>, at_most: usize) -> AnswerOf<usize, Self>;

    /// Both ends of a pipe, which nobody else uses meanwhile. Dropped, it leaves the pipe as it is.
    type PipeLock<'v>
    where
        Self: 'v;

    /// The place of a pipe in the order in which several are locked.
    fn pipe_place(&self, pipe: NodeOf<'_, Self>) -> u64;

    /// Locks a pipe, and sees to it that so many bytes, if there is room for them, need no space any more. Before all that
    /// is prepared.
    ///
    /// # Errors
    /// `NoSpace`, or the implementation's fault.
    fn lock_pipe<'v>(&'v self, pipe: NodeOf<'v, Self>, put_bytes: usize) -> Outcome<Self::PipeLock<'v>, Self::Objects>;

    /// Takes so many bytes out of a pipe, which are there, and puts these in, for which there is room, and unlocks it. Marks no time.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn finish_pipe(&self, lock: Self::PipeLock<'_>, taken_bytes: usize, put: &[u8]) -> AnswerOf<(), Self>;

    /// A number that no other open file description has while this one is open.
    fn identity(&self, description: Self::Description<'_>) -> u64;

    /// Prepares changes of different files, after names and attributes and before they are opened, once, with room for each
    /// file and each page that is written. Takes what it uses of the space that was reserved. Nobody sees anything of them before
    /// the decision.
    ///
    /// # Errors
    /// `NoSpace`, without memory, or if less was reserved than is used; then all that was prepared can only be aborted. Or the
    /// implementation's fault.
    ///
    /// # Panics
    /// If there is less room than files or pages.
    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedOf<'p, 'v, Self>,
        changes: &'p [FileChanges<'p, NodeOf<'v, Self>>],
        reserved: &ReservedPages<'_>,
        room: (&'p mut [Self::FileRoom<'v>], &'p mut [Self::PageRoom<'v>]),
    ) -> Outcome<(), Self::Objects>
    where
        'v: 'p;
}
