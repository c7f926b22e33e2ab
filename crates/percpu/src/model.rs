//! An arena for one execution of a loom model. Only built under `cfg(loom)`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr::{self, NonNull};

use crate::{Arena, ArenaConfig, Core, OwnerId};

/// Regions begin at multiples of this. Structures hash addresses, and loom wants all executions to do the same until they
/// are told otherwise: so what a hash looks at, the bits below, must be the same for each execution, thread and run.
/// Where the system chose the addresses, some runs explored many times the executions of others: counts met in a slot.
const REGION_STRIDE_BYTES: usize = 1 << 42;
/// Addresses of processes end here.
const ADDRESSES_END: usize = 1 << 47;

std::thread_local! {
    /// Regions that no execution of this thread uses, by size.
    static REGIONS: RefCell<Vec<(usize, NonNull<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// Maps memory at the first multiple of the stride that is free; it stays for as long as the process lives.
fn new_region(size_bytes: usize) -> NonNull<u8> {
    (REGION_STRIDE_BYTES..ADDRESSES_END)
        .step_by(REGION_STRIDE_BYTES)
        .find_map(|wanted| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let wanted = ptr::without_provenance_mut(wanted);
            // SAFETY: a new mapping, which replaces none.
            let at = unsafe { libc::mmap(wanted, size_bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            NonNull::new(at.cast::<u8>()).filter(|_| at == wanted)
        })
        .expect("memory for a model")
}

/// An arena that lives until the last clone is dropped; loom's threads want `'static` references.
#[derive(Clone)]
pub struct ModelArena(Arc<Inner>);

struct Inner {
    arena: &'static Arena,
    region: NonNull<u8>,
}

// SAFETY: the pointer is used by `drop` alone.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl ModelArena {
    /// An arena of `size_bytes` with chunks of 4 KiB.
    pub fn new(core_count: usize, size_bytes: usize) -> ModelArena {
        let region = REGIONS.with(|regions| {
            let mut regions = regions.borrow_mut();
            match regions.iter().position(|(bytes, _)| *bytes == size_bytes) {
                Some(index) => regions.swap_remove(index).1,
                None => new_region(size_bytes),
            }
        });
        let config = ArenaConfig { core_count, chunk_bytes: 4096 };
        // SAFETY: used again after `drop` alone, when the model's threads have been joined and dropped their clones.
        let arena = unsafe { Arena::create_at(region, size_bytes, config) }.expect("a model's arena");
        ModelArena(Arc::new(Inner { arena, region }))
    }

    /// The arena.
    pub fn arena(&self) -> &'static Arena {
        self.0.arena
    }

    /// Becomes a core.
    pub fn core(&self, number: usize) -> Core<'static> {
        let owner = OwnerId::new(1).expect("not zero");
        self.0.arena.claim(number, owner).expect("a free core")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Memory that was an arena, and no core is left: it can be one again.
        REGIONS.with(|regions| regions.borrow_mut().push((self.arena.size_bytes(), self.region)));
    }
}
