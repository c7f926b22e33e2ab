//! The operations on memory in shared memory: the process's address space, over the files of the instance.
#![allow(unsafe_code)]

use core::ops::Range;

use core::convert::Infallible;

use address_space::{Backing, Fault, FileId, Files, MapError, Memory, PagedFiles, Presence, ProtectError, RemapError};
use epoch::Guard;
use pages::PageNumber;
use percpu::{Core, OutOfMemory};
use posix_calls::{AccessError, AnswerOf, Errno, Growth, MemoryOperations, Place, Protection, Source};
use sync::Wait;

use crate::direct::OperationError;
use crate::direct_data::InProcess;
use crate::file::Access;
use crate::host::Host;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::node::Node;
use crate::process::ProcessObject;

/// The files of an instance, as an address space knows them: a file's number is the bits of its node.
pub(crate) struct MappedFiles<'a, W>(Access<'a, W>);

impl<W: Wait> Files for MappedFiles<'_, W> {
    fn hold(&self, file: FileId) {
        let Access { fs, guard, .. } = self.0;
        // SAFETY: a mapping that was found in this call has a reference to the file.
        unsafe { fs.counts().change(guard.core(), &InodeRef::from_bits(file.0).inode().references.counted, 1) };
    }

    fn load(&self, file: FileId, page: u64, start: usize, bytes: &mut [u8]) -> bool {
        InodeRef::from_bits(file.0).file().load_mapped(self.0, page, start, bytes)
    }

    fn store(&self, file: FileId, page: u64, start: usize, bytes: &[u8]) -> Result<bool, OutOfMemory> {
        InodeRef::from_bits(file.0).file().store_mapped(self.0, page, start, bytes)
    }

    fn cuts(&self, file: FileId) -> u64 {
        InodeRef::from_bits(file.0).file().cut_count()
    }

    fn is_cut_since(&self, file: FileId, page: u64, cuts: u64) -> bool {
        InodeRef::from_bits(file.0).file().is_cut_since(page, cuts, self.0.wait)
    }
}

impl<W: Wait> PagedFiles for MappedFiles<'_, W> {
    fn with_page(
        &self,
        file: FileId,
        page: u64,
        access: address_space::Access,
        show: &mut dyn FnMut(PageNumber) -> Result<(), OutOfMemory>,
    ) -> Result<Presence, OutOfMemory> {
        InodeRef::from_bits(file.0).file().with_mapped_page(self.0, page, access, show)
    }
}

/// Lets `act` have what calls on memory need.
pub(crate) fn with_memory<W: Wait, R>(
    access: Access<'_, W>,
    act: impl FnOnce(&Memory<'_, MappedFiles<'_, W>, W>) -> R,
) -> R {
    let Access { fs, guard, wait } = access;
    act(&Memory { guard, pages: fs.pages(), counts: fs.counts(), files: &MappedFiles(access), wait })
}

fn access_error(fault: Fault) -> AccessError<Infallible> {
    match fault {
        Fault::Segment => AccessError::Segment,
        Fault::Bus => AccessError::Bus,
        Fault::OutOfMemory => AccessError::OutOfMemory,
    }
}

fn remap_errno(error: RemapError) -> Errno {
    match error {
        RemapError::NotOneMapping => Errno::EFAULT,
        RemapError::TooLarge => Errno::EINVAL,
        RemapError::Exists => Errno::EEXIST,
        RemapError::OutOfMemory => Errno::ENOMEM,
    }
}

impl<H: Host> MemoryOperations for InProcess<'_, H> {
    fn map(
        &self,
        place: Place,
        pages: u64,
        protection: Protection,
        source: Source<Node<'_>>,
    ) -> Result<u64, OperationError> {
        let backing = match source {
            Source::Anonymous => Backing::Anonymous,
            Source::File { node, page, sharing, may_write } => {
                self.take_reference(node.at);
                Backing::File { file: FileId(node.at.to_bits()), page, sharing, may_write }
            }
        };
        let mapped =
            with_memory(self.access(), |memory| self.process().memory.map(memory, place, pages, protection, backing));
        if let Source::File { node, .. } = source
            && !mapped.is_ok_and(|mapped| mapped.is_new)
        {
            self.drop_reference(node.at);
        }
        mapped.map(|mapped| mapped.page).map_err(|error| match error {
            MapError::OutOfMemory => OperationError::NoSpace,
            MapError::Exists => OperationError::Exists,
        })
    }

    fn unmap(&self, pages: Range<u64>) -> Result<(), OperationError> {
        let unmapped = with_memory(self.access(), |memory| self.process().memory.unmap(memory, pages));
        unmapped.map_err(|OutOfMemory| OperationError::NoSpace)
    }

    fn protect(&self, pages: Range<u64>, protection: Protection) -> Result<(), Errno> {
        let protected = with_memory(self.access(), |memory| self.process().memory.protect(memory, pages, protection));
        protected.map_err(|error| match error {
            ProtectError::NotMapped | ProtectError::OutOfMemory => Errno::ENOMEM,
            ProtectError::Denied => Errno::EACCES,
        })
    }

    fn is_mapped(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        Ok(with_memory(self.access(), |memory| self.process().memory.is_mapped_throughout(memory, pages)))
    }

    fn is_free(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        Ok(with_memory(self.access(), |memory| self.process().memory.is_free(memory, pages)))
    }

    fn discard(&self, pages: Range<u64>) -> Result<(), OperationError> {
        let discarded = with_memory(self.access(), |memory| self.process().memory.discard(memory, pages));
        discarded.map_err(|OutOfMemory| OperationError::NoSpace)
    }

    fn grow(&self, pages: Range<u64>, more: u64) -> Result<Growth, Errno> {
        with_memory(self.access(), |memory| self.process().memory.grow(memory, pages, more)).map_err(remap_errno)
    }

    fn relocate(&self, pages: Range<u64>, first: Option<u64>, new_pages: u64) -> Result<u64, Errno> {
        let space = &self.process().memory;
        with_memory(self.access(), |memory| space.relocate(memory, pages, first, new_pages)).map_err(remap_errno)
    }

    fn load(&self, address: u64, bytes: &mut [u8]) -> Result<(), AccessError<Infallible>> {
        with_memory(self.access(), |memory| self.process().memory.load(memory, address, bytes)).map_err(access_error)
    }

    fn store(&self, address: u64, bytes: &[u8]) -> Result<(), AccessError<Infallible>> {
        with_memory(self.access(), |memory| self.process().memory.store(memory, address, bytes)).map_err(access_error)
    }
}

impl ProcessObject {
    /// Gives a child that nobody else knows yet what is in the memory (POSIX `fork`).
    pub(crate) fn copy_memory_to(
        &self,
        child: &ProcessObject,
        fs: &ScaleFs,
        guard: &Guard<'_>,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        with_memory(Access { fs, guard, wait }, |memory| self.memory.fork_to(memory, &child.memory))
    }

    /// Unmaps all that is mapped (POSIX `exec`).
    pub(crate) fn unmap_all(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let guard = fs.epochs().pin(core);
        with_memory(Access { fs, guard: &guard, wait }, |memory| {
            self.memory.for_each_mapped(&guard, |pages| {
                let unmapped = self.memory.unmap(memory, pages);
                // No node is made for pages that have one.
                debug_assert_eq!(unmapped, Ok(()));
            });
        });
    }

    /// Makes the memory whole again in a call on which a thread died.
    ///
    /// # Safety
    /// As for [`ProcessObject::repair_taken_over`].
    pub(crate) unsafe fn repair_memory_taken_over(&self, fs: &ScaleFs, guard: &Guard<'_>, wait: &impl Wait) {
        let access = Access { fs, guard, wait };
        // SAFETY: the caller's promise.
        with_memory(access, |memory| unsafe { self.memory.repair_taken_over(memory) });
    }

    /// Gives up all memory.
    ///
    /// # Safety
    /// No call of the process is under way or follows.
    pub(crate) unsafe fn release_memory(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let guard = fs.epochs().pin(core);
        // SAFETY: the caller's promise.
        with_memory(Access { fs, guard: &guard, wait }, |memory| unsafe { self.memory.destroy(memory) });
    }
}
