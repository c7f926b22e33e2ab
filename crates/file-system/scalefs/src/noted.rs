//! What a call changes that changes many objects, for whoever takes its core over: blocks in the arena, the newest first.
//! A call that changes four objects at most notes them on the core's own line (`ScaleFs::working_on`).
#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use percpu::{Core, OutOfMemory, SizeClass};
use sync::atomic::{AtomicU64, Ordering};

const NODES: usize = 62;
const CLASS: SizeClass = SizeClass::of_type::<Block>();

/// Once it is in the list only `next` changes.
struct Block {
    /// Address of the next one, or zero.
    next: u64,
    count: usize,
    nodes: [u64; NODES],
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

    /// What is noted: bits of nodes.
    ///
    /// # Safety
    /// The core is the caller's, or its heir's.
    pub(crate) unsafe fn nodes(&self) -> impl Iterator<Item = u64> {
        let mut block = self.first();
        core::iter::from_fn(move || {
            // SAFETY: blocks are made by `add`, and freed by `forget` alone. Both are the core's, which the caller is or has
            // taken over, and which does neither while it walks.
            let current = unsafe { block.as_ref() }?;
            block = ptr::with_exposed_provenance_mut(current.next as usize);
            Some(&current.nodes[..current.count])
        })
        .flatten()
        .copied()
    }

    /// Notes objects, by the bits of their nodes, that a call of the core is about to change, before it takes a lock or sets a
    /// mark. Follows `ScaleFs::working_on`. Without memory nothing is noted any more.
    pub(crate) fn add(&self, core: &Core<'_>, nodes: impl Iterator<Item = u64>) -> Result<(), OutOfMemory> {
        self.add_more(core, nodes).inspect_err(|_| self.forget(core))
    }

    /// [`Noted::add`] for objects that the call changes beside others; without memory those stay noted.
    pub(crate) fn add_more(&self, core: &Core<'_>, mut nodes: impl Iterator<Item = u64>) -> Result<(), OutOfMemory> {
        while let Some(first) = nodes.next() {
            let mut block = Block { next: self.0.load(Ordering::Relaxed), count: 1, nodes: [first; NODES] };
            for (place, node) in block.nodes[1..].iter_mut().zip(nodes.by_ref().take(NODES - 1)) {
                *place = node;
                block.count += 1;
            }
            let place: NonNull<Block> = core.allocate(CLASS)?.cast();
            // SAFETY: fresh memory of the class.
            unsafe { place.write(block) };
            // Release: an heir that finds the block finds what is in it.
            self.0.store(place.as_ptr().expose_provenance() as u64, Ordering::Release);
        }
        Ok(())
    }

    /// Forgets an object that was noted alone.
    pub(crate) fn forget_one(&self, core: &Core<'_>, node: u64) {
        let (mut before, mut current): (Option<NonNull<Block>>, _) = (None, NonNull::new(self.first()));
        while let Some(block) = current {
            // SAFETY: the blocks are the core's, allocated with this class; the one that goes is out of the list before.
            unsafe {
                let next = block.as_ref().next;
                if block.as_ref().nodes[..block.as_ref().count] == [node] {
                    match before {
                        None => self.0.store(next, Ordering::Release),
                        Some(mut before) => before.as_mut().next = next,
                    }
                    return core.free(block.cast(), CLASS);
                }
                (before, current) = (current, NonNull::new(ptr::with_exposed_provenance_mut(next as usize)));
            }
        }
    }

    /// Forgets the objects, of which no lock or mark is left.
    pub(crate) fn forget(&self, core: &Core<'_>) {
        while let Some(block) = NonNull::new(self.first()) {
            // SAFETY: the blocks are the core's, allocated with this class; each is out of the list before it is freed.
            unsafe {
                self.0.store(block.as_ref().next, Ordering::Release);
                core.free(block.cast(), CLASS);
            }
        }
    }
}
