//! What a call changes that changes many objects, for whoever takes its core over: blocks in the arena, the newest first.
//! A call that changes four objects at most notes them on the core's own line (`ScaleFs::working_on`).
//!
//! The first block is the core's own, so that what changes few objects needs no memory for that: names can be removed together
//! where memory is full.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use percpu::{Core, OutOfMemory, SizeClass};
use sync::atomic::{AtomicU64, Ordering};
use sync::mutant::planted;

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

/// What a core, or its heir, has noted.
pub(crate) struct Noted {
    /// The first block's address, or zero; written by the core alone.
    first: AtomicU64,
    /// The block that is in the list first of all, and may be if that is empty; the core's alone.
    own: UnsafeCell<Block>,
}

// SAFETY: the address is atomic. The block is touched by whoever acts as the core, one thread at a time.
unsafe impl Sync for Noted {}

impl Noted {
    pub(crate) fn new() -> Noted {
        Noted { first: AtomicU64::new(0), own: UnsafeCell::new(Block { next: 0, count: 0, nodes: [0; NODES] }) }
    }

    fn first(&self) -> *mut Block {
        ptr::with_exposed_provenance_mut(self.first.load(Ordering::Acquire) as usize)
    }

    /// Whether the core notes nothing: it is in no change of many objects.
    #[cfg(feature = "std")]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed) == 0
    }

    /// Memory for a block: the core's own if it is in no list, as it is if there is none.
    fn place(&self, core: &Core<'_>) -> Result<NonNull<Block>, OutOfMemory> {
        if self.first.load(Ordering::Relaxed) == 0 && !planted("scalefs: each block of notes is allocated") {
            return Ok(NonNull::from(&self.own).cast());
        }
        Ok(core.allocate(CLASS)?.cast())
    }

    /// Gives a block's memory back.
    ///
    /// # Safety
    /// It came from [`Noted::place`], and is in no list any more.
    unsafe fn give_back(&self, core: &Core<'_>, block: NonNull<Block>) {
        if !ptr::eq(block.as_ptr(), self.own.get()) {
            // SAFETY: the caller's promise; what is not the core's own was allocated with this class.
            unsafe { core.free(block.cast(), CLASS) };
        }
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
            let mut block = Block { next: self.first.load(Ordering::Relaxed), count: 1, nodes: [first; NODES] };
            for (place, node) in block.nodes[1..].iter_mut().zip(nodes.by_ref().take(NODES - 1)) {
                *place = node;
                block.count += 1;
            }
            let place = self.place(core)?;
            // SAFETY: fresh memory of the class, or the core's own block, which is in no list.
            unsafe { place.write(block) };
            // Release: an heir that finds the block finds what is in it.
            self.first.store(place.as_ptr().expose_provenance() as u64, Ordering::Release);
        }
        Ok(())
    }

    /// Forgets an object that was noted alone.
    pub(crate) fn forget_one(&self, core: &Core<'_>, node: u64) {
        let (mut before, mut current): (Option<NonNull<Block>>, _) = (None, NonNull::new(self.first()));
        while let Some(block) = current {
            // SAFETY: the blocks are the core's, of `place`; the one that goes is out of the list before.
            unsafe {
                let next = block.as_ref().next;
                if block.as_ref().nodes[..block.as_ref().count] == [node] {
                    match before {
                        None => self.first.store(next, Ordering::Release),
                        Some(mut before) => before.as_mut().next = next,
                    }
                    return self.give_back(core, block);
                }
                (before, current) = (current, NonNull::new(ptr::with_exposed_provenance_mut(next as usize)));
            }
        }
    }

    /// Forgets the objects, of which no lock or mark is left.
    pub(crate) fn forget(&self, core: &Core<'_>) {
        while let Some(block) = NonNull::new(self.first()) {
            // SAFETY: the blocks are the core's, of `place`; each is out of the list before it is given back.
            unsafe {
                self.first.store(block.as_ref().next, Ordering::Release);
                self.give_back(core, block);
            }
        }
    }
}
