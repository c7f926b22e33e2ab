//! Changes of data under the decision of [`NameChanges`](crate::NameChanges), prepared apart from being decided.

use crate::data_operations::{DataOperations, NodeOf};
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

/// What a prepared set of changes is.
pub type PreparedOf<'p, 'v, D> = <<D as DataOperations>::Objects as NameChanges>::Prepared<'p, 'v>;

/// Implementations in which data can change together with names.
pub trait DataChanges: DataOperations<Objects: NameChanges> {
    /// Whether files that others find change, too: not only those that the caller has made.
    const CHANGES_FILES: bool = true;
    /// Room for one write while it is prepared.
    type WriteRoom<'v>: Default
    where
        Self: 'v;

    /// A number that no other open file description has while this one is open.
    fn identity(&self, description: Self::Description<'_>) -> u64;

    /// Prepares changes of different files, after names and attributes and before they are opened, once, with room for each
    /// write. Nobody sees anything of them before the decision.
    ///
    /// # Errors
    /// `NoSpace`; then all that was prepared can only be aborted. Or the implementation's fault.
    ///
    /// # Panics
    /// If there is less room than writes.
    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedOf<'p, 'v, Self>,
        changes: &'p [FileChanges<'p, NodeOf<'v, Self>>],
        room: &'p mut [Self::WriteRoom<'v>],
    ) -> Outcome<(), Self::Objects>
    where
        'v: 'p;
}
