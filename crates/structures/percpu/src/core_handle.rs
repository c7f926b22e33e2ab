//! A core as a value: who may touch per-core memory, and how a thread comes to be one.

use core::cell::Cell;
use core::fmt;

use sync::atomic::{Ordering, fence};
use sync::{Wait, WaitReason};

use crate::arena::{Arena, CoreRecord};
use crate::core_index::CoreIndex;
#[cfg(debug_assertions)]
use crate::held_locks::HeldLocks;

/// Names the one that claims a core, so that others can tell whose it is: a process id, for instance. Not zero.
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

/// What a core's record says of it, and what an arena's says of the service of idle cores: no one acts.
const FREE: u64 = 0;
/// Set next to the owner of the one that serves a core that no one claims.
const SERVED: u64 = 1;

/// The state of a core that an owner claims.
#[inline]
fn claimed_by(owner: OwnerId) -> u64 {
    owner.0 << 1
}

/// The state of a core that an owner serves while no one claims it.
fn served_by(owner: OwnerId) -> u64 {
    claimed_by(owner) | SERVED
}

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
    /// No one claims the core, but somebody serves it for a moment; so of any core, if no other is free.
    Served {
        /// Who does.
        by: OwnerId,
    },
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
            ClaimError::Served { by } => {
                write!(formatter, "owner {} serves the idle core for a moment; claim it again, or wait for it", by.0)
            }
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

    /// Who claims the core; `None` if it is served while no one does ([`Arena::for_each_idle_core`]).
    #[inline]
    pub fn owner(&self) -> Option<OwnerId> {
        // No other thread changes it as long as this value is there.
        let state = self.record.state.load(Ordering::Relaxed);
        OwnerId::new(state >> 1).filter(|_| state & SERVED == 0)
    }

    /// Who acts as the core, whether it is claimed or served.
    pub fn actor(&self) -> OwnerId {
        OwnerId(self.record.state.load(Ordering::Relaxed) >> 1)
    }

    #[inline]
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
    #[inline]
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
    /// Becomes the core with number `number`. Does not wait.
    ///
    /// # Errors
    /// [`ClaimError`]: there is no such core, or somebody is it, or serves it for a moment.
    #[inline]
    pub fn claim(&self, number: usize, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        if number >= self.core_count() {
            return Err(ClaimError::OutOfRange { core_count: self.core_count() });
        }
        self.claim_as(CoreIndex(number as u16), claimed_by(owner))
    }

    /// As [`Arena::claim`]; waits as the caller likes to while somebody serves the core. If that has died, its heir ends the wait.
    ///
    /// # Errors
    /// [`ClaimError`]: there is no such core, or somebody is it.
    pub fn claim_waiting(&self, number: usize, owner: OwnerId, wait: &impl Wait) -> Result<Core<'_>, ClaimError> {
        let mut round = 0;
        loop {
            match self.claim(number, owner) {
                Err(ClaimError::Served { .. }) => wait.wait(WaitReason::Operation, round),
                outcome => return outcome,
            }
            round = round.saturating_add(1);
        }
    }

    /// Becomes the first core that no one claims. Does not wait.
    ///
    /// # Errors
    /// [`ClaimError::Busy`] if there are more threads than cores; [`ClaimError::Served`] if all that no one claims are
    /// served.
    pub fn claim_any(&self, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        self.claim_first(0..self.core_count(), owner)
    }

    /// Becomes the core of a processor's number for a call; another one that was claimed before if that is taken. So the number of
    /// cores that were ever claimed, at each of which exact answers look, stays near that of processors, however many threads
    /// there are. Does not wait: who has none for long may take one that was never claimed ([`Arena::claim_any`]).
    ///
    /// # Errors
    /// [`ClaimError::Busy`] if all of these are claimed; [`ClaimError::Served`] if those that are not are served.
    #[inline]
    pub fn lease(&self, processor: usize, owner: OwnerId) -> Result<Core<'_>, ClaimError> {
        if sync::mutant::planted("percpu: a lease is of any core") {
            return self.claim_any(owner);
        }
        let number = processor % self.core_count();
        self.claim(number, owner).or_else(|_| self.claim_first(0..self.core_limit_seen(), owner))
    }

    /// Becomes the first of these cores that no one claims or serves; says whether one of them is served.
    pub(crate) fn claim_first(
        &self,
        mut numbers: impl Iterator<Item = usize>,
        owner: OwnerId,
    ) -> Result<Core<'_>, ClaimError> {
        let mut refusal = ClaimError::Busy;
        let claimed = numbers.find_map(|number| match self.claim(number, owner) {
            Err(served @ ClaimError::Served { .. }) => {
                refusal = served;
                None
            }
            outcome => outcome.ok(),
        });
        claimed.ok_or(refusal)
    }

    #[inline]
    fn claim_as(&self, index: CoreIndex, state: u64) -> Result<Core<'_>, ClaimError> {
        let record = self.record(index);
        // Acquire pairs with the release in `Drop for Core`.
        if let Err(seen) = record.state.compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed) {
            return Err(match OwnerId::new(seen >> 1) {
                Some(by) if seen & SERVED != 0 => ClaimError::Served { by },
                _ => ClaimError::Busy,
            });
        }
        // A scan of all cores up to the limit must not miss a core that has begun to work: limit, fence, work here;
        // change, fence, limit there (`Arena::core_limit`).
        if self.limit_word().load(Ordering::Relaxed) <= u32::from(index.0) {
            self.limit_word().fetch_max(u32::from(index.0) + 1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        Ok(Core::new(self, index))
    }

    /// Acts once as each core that was on-line before and is claimed by no one, so that what it left behind (garbage,
    /// cached counts) is worked off. One owner at a time does so, by its name: one that takes over what it had, had it
    /// died, takes over the core that it served, too. Returns whether it was this one.
    pub fn for_each_idle_core(&self, server: OwnerId, mut act: impl FnMut(&Core<'_>)) -> bool {
        let Some(_service) = Service::begin(self, server) else {
            return false;
        };
        for number in 0..self.core_limit() {
            let index = CoreIndex(number as u16);
            let is_free = self.record(index).state.load(Ordering::Relaxed) == FREE;
            if is_free && let Ok(core) = self.claim_as(index, served_by(server)) {
                act(&core);
            }
        }
        true
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

    /// The limit as it is seen without a fence: after a scan of all cores below a limit, for callers that must not have
    /// missed a core that came on-line in the meantime and whose work another core has built upon.
    #[inline]
    pub fn core_limit_seen(&self) -> usize {
        self.limit_word().load(Ordering::Relaxed) as usize
    }

    /// Whether somebody claims the core with this index at the moment.
    pub fn is_claimed(&self, index: CoreIndex) -> bool {
        let state = self.record(index).state.load(Ordering::Relaxed);
        state != FREE && state & SERVED == 0
    }

    /// Who acts as the core with this index at the moment: claims it, or serves it.
    pub fn actor_of(&self, index: CoreIndex) -> Option<OwnerId> {
        OwnerId::new(self.record(index).state.load(Ordering::Relaxed) >> 1)
    }

    /// Takes over a core from an owner that died, with everything it held: its locks name the core and are now ours to
    /// repair. The core may be one that it claimed, or one that it served while no one did.
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
        // Others may serve idle cores again; they leave alone what is in the dead owner's name.
        let served = self.service_word();
        served.compare_exchange(claimed_by(dead), FREE, Ordering::SeqCst, Ordering::Relaxed).ok();
        let state = &self.record(index).state;
        let take = |from| state.compare_exchange(from, claimed_by(owner), Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let may_serve = !sync::mutant::planted("percpu: who is served has no heir");
        // SeqCst: orders everything that the dead owner's stores made visible before us; rare, so the strongest.
        if take(claimed_by(dead)) || may_serve && take(served_by(dead)) {
            let core = Core::new(self, index);
            core.record.slabs.repair_taken_over();
            Ok(core)
        } else {
            Err(ClaimError::Busy)
        }
    }
}

/// The right to serve idle cores, which one owner has at a time.
struct Service<'a>(&'a Arena);

impl Service<'_> {
    fn begin(arena: &Arena, server: OwnerId) -> Option<Service<'_>> {
        let word = arena.service_word();
        // One that finds another at it writes nothing.
        let is_free = word.load(Ordering::Relaxed) == FREE;
        let begins = || word.compare_exchange(FREE, claimed_by(server), Ordering::Acquire, Ordering::Relaxed).is_ok();
        (is_free && begins()).then(|| Service(arena))
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        self.0.service_word().store(FREE, Ordering::Release);
    }
}
