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
