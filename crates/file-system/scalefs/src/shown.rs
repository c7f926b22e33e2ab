//! What those ask for who let programs reach pages of files by their own instructions.
#![allow(unsafe_code)]

use address_space::{Access, FileId, Presence};
use pages::{PAGE_BYTES, PageNumber};
use percpu::OwnerId;
use posix_calls::{DataOperations, Errno, Kind, Sought};
use sync::atomic::Ordering;

use crate::direct_data::InProcess;
use crate::host::Host;
use crate::inode_ref::InodeRef;
use crate::node::Node;

impl<H: Host> InProcess<'_, H> {
    /// A regular file, as calls on memory name it; none for anything else.
    pub fn mapped_file(&self, node: Node<'_>) -> Option<FileId> {
        (node.kind() == Kind::Regular).then(|| FileId(node.at.to_bits()))
    }

    /// A word that the caller keeps with an open file description: zero at first.
    ///
    /// # Errors
    /// EBADF if the descriptor is not open.
    pub fn kept_word(&self, fd: u32) -> Result<u64, Errno> {
        Ok(self.description(fd)?.ok_or(Errno::EBADF)?.get().word().load(Ordering::Relaxed))
    }

    /// Sets that word, for all descriptors that lead there. It stays when a process dies.
    ///
    /// # Errors
    /// EBADF if the descriptor is not open.
    pub fn keep_word(&self, fd: u32, word: u64) -> Result<(), Errno> {
        self.description(fd)?.ok_or(Errno::EBADF)?.get().word().store(word, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a process of the instance has an object open for writing (Linux: `deny_write_access`). One that opens it at the same time
    /// may be missed. `counts` says of who runs such a process whether it does: who has died has it open until it is buried.
    pub fn is_open_for_writing(&self, node: Node<'_>, counts: impl Fn(OwnerId) -> bool) -> bool {
        self.fs.is_open_for_writing(&self.guard, node.at, counts, self.host)
    }

    /// The number of the pool's page that is a page of a file; a hole gets one. None behind the end. It stays the file's until
    /// who hears of cuts has returned ([`hear_of_cuts`](crate::hear_of_cuts)), which may be before this has.
    ///
    /// # Errors
    /// ENOSPC without a page for a hole.
    ///
    /// # Safety
    /// The file came from [`InProcess::mapped_file`] of this instance, and the process has a descriptor or a mapping of it.
    pub unsafe fn page_of(&self, file: FileId, index: u64) -> Result<Option<u32>, Errno> {
        let mut found = None;
        let mut note = |page: PageNumber| {
            found = Some(page.get());
            Ok(())
        };
        let file = InodeRef::from_bits(file.0);
        match file.file().with_mapped_page(self.access(), index, Access::Load, &mut note) {
            Ok(Presence::Shown) => Ok(found),
            Ok(Presence::EndsWithin | Presence::Behind) => Ok(None),
            Err(_) => Err(Errno::ENOSPC),
        }
    }

    /// As [`InProcess::page_of`], of the first page from one on that is no hole, with its number in the file; none if only holes
    /// come before `end`.
    ///
    /// # Errors
    /// ENOSPC, where a hole came in its place just now.
    ///
    /// # Safety
    /// As of [`InProcess::page_of`].
    pub unsafe fn next_page_of(&self, file: FileId, from: u64, end: u64) -> Result<Option<(u64, u32)>, Errno> {
        let extent = InodeRef::from_bits(file.0).file().extent(self.access(), from * PAGE_BYTES as u64);
        let index = if extent.kind == Sought::Hole { extent.end / PAGE_BYTES as u64 } else { from };
        if index >= end {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { self.page_of(file, index) }?.map(|page| (index, page)))
    }
}
