//! An instance in memory of a test's own.
#![allow(dead_code)]

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, owner};
use percpu::{ArenaConfig, Core, HeapRegion};
use sockets::{Sockets, SocketsConfig};

/// An arena with its pool and its sockets.
pub struct Instance {
    sockets: NonNull<Sockets>,
    pool: NonNull<PagePool>,
    _pages: HeapRegion,
    world: World,
}

// SAFETY: all can be shared, and lies in memory of the instance's own.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// With so many cores and pages.
    pub fn new(core_count: usize, page_count: usize) -> Instance {
        let world = World::with(768 << 10, ArenaConfig { core_count, chunk_bytes: 4096 });
        let mut pages = HeapRegion::new(page_count * PAGE_BYTES).expect("memory for a test");
        let base = NonNull::new(pages.as_mut_ptr()).expect("memory");
        let (sockets, pool) = {
            let core = world.core(0);
            // SAFETY: the memory is the instance's alone as long as it lives.
            unsafe {
                let pool = PagePool::create(world.arena(), base, page_count as u32).expect("a pool");
                let sockets = Sockets::create(&core, pool, SocketsConfig::default()).expect("sockets");
                (NonNull::from(sockets), NonNull::from(pool))
            }
        };
        Instance { sockets, pool, _pages: pages, world }
    }

    /// The sockets.
    pub fn sockets(&self) -> &Sockets {
        // SAFETY: lies in the arena, which the instance keeps.
        unsafe { self.sockets.as_ref() }
    }

    /// The pages.
    pub fn pool(&self) -> &PagePool {
        // SAFETY: as above.
        unsafe { self.pool.as_ref() }
    }

    /// The arena.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Becomes a core.
    pub fn core(&self, number: usize) -> Core<'_> {
        self.world.core(number)
    }

    /// Maintains often enough that what nobody refers to is freed.
    pub fn settle(&self, core: &Core<'_>) {
        for _ in 0..6 {
            self.sockets().maintain(core);
            self.world.for_each_idle_core(owner(1), |idle| self.sockets().maintain(idle));
        }
    }
}
