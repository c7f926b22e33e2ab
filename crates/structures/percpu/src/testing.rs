//! One world for tests: an arena in memory of its own, its cores, and other processes that die in it.

use core::ops::Deref;
use core::ptr::NonNull;

use crate::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};

/// Bytes of a world's arena, unless a test says otherwise.
const BYTES: usize = 4 << 20;

/// An arena with its memory. It is used as the arena that it is.
pub struct World {
    arena: NonNull<Arena>,
    // The arena lies in it.
    _region: HeapRegion,
}

// SAFETY: the region is memory of the world's own, and an arena can be shared.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

impl World {
    /// A world with this many cores, 4 MiB of memory, and chunks of 4 KiB.
    ///
    /// # Panics
    /// If the system has not so much memory.
    pub fn new(core_count: usize) -> World {
        World::with(BYTES, ArenaConfig { core_count, chunk_bytes: 4096 })
    }

    /// A world of this many bytes, laid out like this.
    ///
    /// # Panics
    /// If the system has not so much memory, or no arena can be laid out so.
    pub fn with(size_bytes: usize, config: ArenaConfig) -> World {
        let mut region = HeapRegion::new(size_bytes).expect("memory for a test");
        let arena = NonNull::from(Arena::create(&mut region, config).expect("an arena for a test"));
        World { arena, _region: region }
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        // SAFETY: it lies in the region, which the world keeps.
        unsafe { self.arena.as_ref() }
    }

    /// Becomes a core.
    ///
    /// # Panics
    /// If somebody is that core.
    pub fn core(&self, number: usize) -> Core<'_> {
        self.arena().claim_waiting(number, owner(1), &sync::Spin).expect("a core that no one claims")
    }
}

impl Deref for World {
    type Target = Arena;

    fn deref(&self) -> &Arena {
        self.arena()
    }
}

/// An owner of cores. One that acts for another process is owner 2.
///
/// # Panics
/// If the number is zero.
pub fn owner(number: u64) -> OwnerId {
    OwnerId::new(number).expect("a number from 1 on")
}

#[cfg(all(shuttle, unix))]
pub use deaths::{die, die_everywhere};

#[cfg(all(shuttle, unix))]
mod deaths {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::testing::owner;
    use crate::{Arena, Core};

    /// How a process ends that acts as a core.
    const CAME_TO_ITS_END: i32 = 0;
    const DIED: i32 = 1;
    const FAILED: i32 = 2;

    /// Lets another process act as a core, in memory that it shares with this one, and ends it before its access of this
    /// number (see `sync::scheduled::end_after`). Returns the core as taken over, or `None` if the process came to its end.
    ///
    /// # Panics
    /// If the process fails, or somebody is that core.
    pub fn die<'a>(arena: &'a Arena, number: usize, access: u64, act: impl FnOnce(&Core<'a>)) -> Option<Core<'a>> {
        let core = arena.claim_waiting(number, owner(2), &sync::Spin).expect("a core that no one claims");
        // SAFETY: the child acts as the core alone, and ends without running anything of its parent's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child at once, and runs nothing of its parent's; so below.
            let end = |status| unsafe { libc::_exit(status) };
            sync::scheduled::end_after(access, || unsafe { libc::_exit(DIED) });
            let outcome = catch_unwind(AssertUnwindSafe(|| act(&core)));
            sync::scheduled::end_never();
            end(if outcome.is_ok() { CAME_TO_ITS_END } else { FAILED });
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "a process ended by signal {}", libc::WTERMSIG(status));
        // The handle was the child's.
        core::mem::forget(core);
        // SAFETY: the child has gone.
        let heir = unsafe { arena.take_over(number, owner(2), owner(1)) }.expect("the core of the process");
        match libc::WEXITSTATUS(status) {
            CAME_TO_ITS_END => None,
            DIED => Some(heir),
            other => panic!("a process failed before its access {access}: status {other}"),
        }
    }

    /// Runs `round` with each number of accesses from 0 on, until it says that its process came to its end; prints and
    /// returns how many died.
    pub fn die_everywhere(mut round: impl FnMut(u64) -> bool) -> u64 {
        let deaths = (0..).find(|access| !round(*access)).expect("an end");
        assert!(deaths > 0, "a process that no one ended proves nothing");
        println!("{deaths} deaths");
        deaths
    }
}
