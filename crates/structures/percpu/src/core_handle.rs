//! A core as a value: who may touch per-core memory, and how a thread comes to be one.

use core::cell::Cell;
use core::fmt;

use sync::atomic::{Ordering, fence};

use crate::arena::{Arena, CoreRecord};
use crate::core_index::CoreIndex;
#[cfg(debug_assertions)]
use crate::held_locks::HeldLocks;

/// Names whoever claims a core, so that others can tell whose it is: a process id, for instance. Not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerId(u64);

impl OwnerId {
    /// An owner's number, from 1 to 2^62.
    pub fn new(number: u64) -> Option<OwnerId> {
        (1..=1 << 62).contains(&number).then_some(OwnerId(number))
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// States of a core record beside "claimed by owner n", which is n + CLAIMED_BASE - 1.
const FREE: u64 = 0;
const IDLE_MAINTENANCE: u64 = 1;
const CLAIMED_BASE: u64 = 2;

/// Why a core could not be claimed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// The arena was created for fewer cores.
    OutOfRange {
        /// How many cores the arena has.
        core_count: usize,
    },
    /// Somebody else is this core, or every core is taken.
    Busy,
    /// The arena is private memory of another process, of which this one has a copy since `fork`.
    OtherProcess,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimError::OutOfRange { core_count } => {
                write!(formatter, "expected a core below {core_count}, the number that the arena was created for")
            }
            ClaimError::Busy => formatter.write_str("the core is claimed already; release it or use another one"),
            ClaimError::OtherProcess => formatter.write_str(
                "this process came by fork from the one that made the file system; make one of its own here",
            ),
        }
    }
}

impl core::error::Error for ClaimError {}

/// The right to act as one core of an arena: per-core memory is reached through it and nothing else.
///
/// A handle can be moved to another thread but not shared, so at most one thread acts as the core at a time. Dropping
/// it takes the core off-line. The handle itself is memory of its process; nothing in the arena points to it.
pub struct Core<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) record: &'a CoreRecord,
    index: CoreIndex,
    #[cfg(feature = "fault")]
    allocations_left: Cell<u32>,
    #[cfg(debug_assertions)]
    pub(crate) held: HeldLocks,
    // `Cell` makes the handle `!Sync`: sharing it would make two threads one core.
    _not_sync: core::marker::PhantomData<Cell<()>>,
}

impl<'a> Core<'a> {
    /// Which core this is.
    #[inline]
    pub fn index(&self) -> CoreIndex {
        self.index
    }

    /// The arena that the core belongs to.
    #[inline]
    pub fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Who claims the core; `None` if it is served while nobody does ([`Arena::for_each_idle_core`]).
    #[inline]
    pub fn owner(&self) -> Option<OwnerId> {
        // No other thread changes it as long as this value is there.
        let state = self.record.state.load(Ordering::Relaxed);
        (state + 1).checked_sub(CLAIMED_BASE).and_then(OwnerId::new)
    }

    fn new(arena: &'a Arena, index: CoreIndex) -> Core<'a> {
        Core {
            arena,
            record: arena.record(index),
            index,
            #[cfg(feature = "fault")]
            allocations_left: Cell::new(u32::MAX),
            #[cfg(debug_assertions)]
            held: HeldLocks::default(),
            _not_sync: core::marker::PhantomData,
        }
    }

    /// Lets the next `count` allocations of this core succeed and all later ones fail; `None` ends that.
    #[cfg(feature = "fault")]
    pub fn fail_allocations_after(&self, count: Option<u32>) {
        self.allocations_left.set(count.unwrap_or(u32::MAX));
    }

    /// How many allocations will still succeed, if later ones are to fail.
    #[cfg(feature = "fault")]
    pub fn allocations_left(&self) -> Option<u32> {
        Some(self.allocations_left.get()).filter(|left| *left != u32::MAX)
    }

    #[inline]
    pub(crate) fn allocation_must_fail(&self) -> bool {
        #[cfg(feature = "fault")]
        match self.allocations_left.get() {
            u32::MAX => return false,
            0 => return true,
            left => self.allocations_left.set(left - 1),
        }
        false
    }
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquiring exchange in `claim`: the next owner sees the core's memory as we leave it.
        self.record.state.store(FREE, Ordering::Release);
    }
}

impl fmt::Debug for Core<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Core({})", self.index.0)
    }
}

impl Arena {
    /// Becomes the core with number `number`.
    ///
    /// # Errors
    /// [`ClaimError`]: there is no such core, or somebody is it.
    pub fn claim(&self, number: usize, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        if number >= self.core_count() {
            return Err(ClaimError::OutOfRange { core_count: self.core_count() });
        }
        self.claim_as(CoreIndex(number as u16), CLAIMED_BASE - 1 + owner.0)
    }

    /// Becomes the first core that nobody claims; [`ClaimError::Busy`] if there are more threads than cores.
    ///
    /// # Errors
    /// [`ClaimError::Busy`].
    pub fn claim_any(&self, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        (0..self.core_count()).find_map(|number| self.claim(number, owner).ok()).ok_or(ClaimError::Busy)
    }

    fn claim_as(&self, index: CoreIndex, state: u64) -> Result<Core<'_>, ClaimError> {
        let record = self.record(index);
        loop {
            // Acquire pairs with the release in `Drop for Core`.
            match record.state.compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                // Somebody serves the idle core for a moment and holds no lock meanwhile: it will be free soon.
                Err(IDLE_MAINTENANCE) if state != IDLE_MAINTENANCE => {
                    sync::Wait::wait(&sync::Spin, sync::WaitReason::Operation, 0);
                }
                Err(_) => return Err(ClaimError::Busy),
            }
        }
        // A scan of all cores up to the limit must not miss a core that has begun to work: limit, fence, work here;
        // change, fence, limit there (`Arena::core_limit`).
        if self.limit_word().load(Ordering::Relaxed) <= u32::from(index.0) {
            self.limit_word().fetch_max(u32::from(index.0) + 1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        Ok(Core::new(self, index))
    }

    /// Acts once as each core that was on-line before and is claimed by nobody, so that what it left behind (garbage,
    /// cached counts) is worked off.
    pub fn for_each_idle_core(&self, mut act: impl FnMut(&Core<'_>)) {
        for number in 0..self.core_limit() {
            let index = CoreIndex(number as u16);
            if self.record(index).state.load(Ordering::Relaxed) == FREE
                && let Ok(core) = self.claim_as(index, IDLE_MAINTENANCE)
            {
                act(&core);
            }
        }
    }

    /// Cores that were ever claimed have an index below this number. Includes a sequentially consistent fence.
    #[inline]
    pub fn core_limit(&self) -> usize {
        if !sync::mutant::planted("percpu: no fence before the limit") {
            // Pairs with the fence in `claim_as`. What the caller changed before is ordered before its scan.
            fence(Ordering::SeqCst);
        }
        self.limit_word().load(Ordering::Relaxed) as usize
    }

    /// The limit as it is seen without a fence: after a scan of all cores below a limit, for whoever must not have missed a
    /// core that came on-line meanwhile and whose work another core has built upon.
    #[inline]
    pub fn core_limit_seen(&self) -> usize {
        self.limit_word().load(Ordering::Relaxed) as usize
    }

    /// Whether somebody claims the core with this index at the moment.
    pub fn is_claimed(&self, index: CoreIndex) -> bool {
        self.record(index).state.load(Ordering::Relaxed) >= CLAIMED_BASE
    }

    /// Takes over a core from an owner that died, with everything it held: its locks name the core and are now ours to
    /// repair.
    ///
    /// # Errors
    /// [`ClaimError`]: there is no such core, or it is not the dead owner's.
    ///
    /// # Safety
    /// `dead` has stopped for good: no thread acts as it any more, and no handle or guard of its is used or dropped again.
    pub unsafe fn take_over(&self, number: usize, dead: OwnerId, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        if number >= self.core_count() {
            return Err(ClaimError::OutOfRange { core_count: self.core_count() });
        }
        let index = CoreIndex(number as u16);
        let (from, to) = (CLAIMED_BASE - 1 + dead.0, CLAIMED_BASE - 1 + owner.0);
        // SeqCst: orders everything that the dead owner's stores made visible before us; rare, so the strongest.
        match self.record(index).state.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => {
                let core = Core::new(self, index);
                core.record.slabs.repair_taken_over();
                Ok(core)
            }
            Err(_) => Err(ClaimError::Busy),
        }
    }
}
