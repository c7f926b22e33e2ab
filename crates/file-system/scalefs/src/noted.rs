//! What a call changes that changes many objects, for whoever takes its core over: blocks in the arena, the newest first.
//! A call that changes four objects at most notes them on the core's own line ([`ScaleFs::working_on`]).
#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use percpu::{Core, OutOfMemory, SizeClass};
use sync::atomic::{AtomicU64, Ordering};

use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;

const NODES: usize = 62;
const CLASS: SizeClass = SizeClass::of_type::<Block>();

/// Immutable once it is in the list.
struct Block {
    /// Address of the next one, or zero.
    next: u64,
    count: usize,
    nodes: [InodeRef; NODES],
}

const _: () = assert!(size_of::<Block>() == 512);

/// The first block's address, or zero; written by the core alone.
pub(crate) struct Noted(AtomicU64);

impl Noted {
    pub(crate) fn new() -> Noted {
        Noted(AtomicU64::new(0))
    }

    fn first(&self) -> *mut Block {
        ptr::with_exposed_provenance_mut(self.0.load(Ordering::Acquire) as usize)
    }

    /// The objects that are noted.
    ///
    /// # Safety
    /// The core is the caller's, or its heir's.
    pub(crate) unsafe fn nodes(&self) -> impl Iterator<Item = InodeRef> {
        let mut block = self.first();
        core::iter::from_fn(move || {
            // SAFETY: blocks in the list are not freed while the core's owner does not say so.
            let current = unsafe { block.as_ref() }?;
            block = ptr::with_exposed_provenance_mut(current.next as usize);
            Some(&current.nodes[..current.count])
        })
        .flatten()
        .copied()
    }
}

impl ScaleFs {
    /// Notes objects that a call is about to change, before it takes a lock or sets a mark. Follows [`ScaleFs::working_on`].
    pub(crate) fn note_many(
        &self,
        core: &Core<'_>,
        mut nodes: impl Iterator<Item = InodeRef>,
    ) -> Result<(), OutOfMemory> {
        let noted = self.noted(core);
        while let Some(first) = nodes.next() {
            let mut block = Block { next: noted.0.load(Ordering::Relaxed), count: 1, nodes: [first; NODES] };
            for (place, node) in block.nodes[1..].iter_mut().zip(nodes.by_ref().take(NODES - 1)) {
                *place = node;
                block.count += 1;
            }
            let place: NonNull<Block> = core.allocate(CLASS).inspect_err(|_| self.forget_many(core))?.cast();
            // SAFETY: fresh memory of the class.
            unsafe { place.write(block) };
            // Release: an heir that finds the block finds what is in it.
            noted.0.store(place.as_ptr().expose_provenance() as u64, Ordering::Release);
        }
        Ok(())
    }

    /// Forgets the objects, of which no lock or mark is left.
    pub(crate) fn forget_many(&self, core: &Core<'_>) {
        let noted = self.noted(core);
        while let Some(block) = NonNull::new(noted.first()) {
            // SAFETY: the blocks are the core's; out of the list before it is freed.
            unsafe {
                noted.0.store(block.as_ref().next, Ordering::Release);
                core.free(block.cast(), CLASS);
            }
        }
    }
}
