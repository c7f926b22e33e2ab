//! A domain: what lists, and the items that move between them, have in common.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use commit::Decisions;
use epoch::{Epochs, Guard as Pinned};
use percpu::{Arena, ClaimError, Core, CoreIndex, OutOfMemory, OwnerId, Part};
#[cfg(feature = "alloc")]
use percpu::{ArenaConfig, HeapRegion};

#[cfg(feature = "alloc")]
use crate::another::Another;
use crate::claims::Claims;
use crate::cursor::Cursors;
use crate::header::{Header, Orphans};
use crate::numbers::Numbers;
use crate::record::{Record, Records};
use crate::sleepers::Sleepers;
use crate::word::MOST_LISTS;
use sync::Wait;

/// Most threads of a domain at once.
pub const MOST_THREADS: usize = 255;

/// How threads of a domain sleep, unless [`Domain::hosted`] says otherwise.
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
const HOST: &(dyn Wait + Sync) = &crate::parked::Parked;
#[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
const HOST: &(dyn Wait + Sync) = &sync::Spin;

/// How much a domain can hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads that are in it at once: from 1 to [`MOST_THREADS`].
    pub threads: usize,
    /// Lists that are there at once: from 1 to 524,287. Each costs 8 bytes, whether it is there or not.
    pub lists: usize,
}

/// Why there is no domain.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainError {
    /// This many threads cannot be in it.
    Threads(usize),
    /// This many lists cannot be in it.
    Lists(usize),
    /// The memory does not suffice.
    OutOfMemory,
}

impl fmt::Display for DomainError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomainError::Threads(count) => write!(formatter, "expected 1 to {MOST_THREADS} threads, got {count}"),
            DomainError::Lists(count) => write!(formatter, "expected 1 to {MOST_LISTS} lists, got {count}"),
            DomainError::OutOfMemory => formatter.write_str("the domain's memory does not suffice; give it more"),
        }
    }
}

impl core::error::Error for DomainError {}

impl From<OutOfMemory> for DomainError {
    fn from(_: OutOfMemory) -> DomainError {
        DomainError::OutOfMemory
    }
}

/// All threads of the domain are in it: let one leave, or make a domain for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyThreads {
    /// This many can be in it.
    pub most: usize,
}

impl fmt::Display for TooManyThreads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected at most {} threads in the domain at once; let one leave first", self.most)
    }
}

impl core::error::Error for TooManyThreads {}

/// Where lists and items live together: an item can move from any list of a domain to any other.
pub struct Domain {
    // Immutable; what they lead to lies in the arena.
    arena: NonNull<Arena>,
    epochs: NonNull<Epochs>,
    decisions: NonNull<Decisions>,
    pub(crate) records: Records,
    pub(crate) cursors: Cursors,
    pub(crate) numbers: Numbers,
    pub(crate) orphans: Orphans,
    /// Of a thread that makes a snapshot again and again.
    pub(crate) claims: Claims,
    pub(crate) sleepers: Sleepers,
    /// How its threads sleep.
    pub(crate) host: &'static (dyn Wait + Sync),
    /// The store whose operations may have parts in it.
    #[cfg(feature = "alloc")]
    pub(crate) another: Option<Another>,
    // The arena lies in it. Dropped last.
    #[cfg(feature = "alloc")]
    _region: Option<HeapRegion>,
}

// SAFETY: arena, epochs and decisions can be shared, and belong to no thread.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    /// A domain for this many threads at once, with room for all lists that there can be, in memory of the global
    /// allocator.
    ///
    /// # Errors
    /// [`DomainError`] says what cannot be.
    #[cfg(feature = "alloc")]
    pub fn new(threads: usize) -> Result<Domain, DomainError> {
        Domain::with(Limits { threads, lists: MOST_LISTS })
    }

    /// A domain within limits, in memory of the global allocator.
    ///
    /// # Errors
    /// [`DomainError`] says what cannot be.
    #[cfg(feature = "alloc")]
    pub fn with(limits: Limits) -> Result<Domain, DomainError> {
        limits.check()?;
        let mut region = HeapRegion::new(limits.bytes())?;
        let config = ArenaConfig { core_count: limits.threads, chunk_bytes: 4096 };
        let arena = Arena::create(&mut region, config).map_err(|_| DomainError::OutOfMemory)?;
        let mut domain = Domain::of(arena, limits.lists)?;
        domain._region = Some(region);
        Ok(domain)
    }

    /// Lets its lists change by the operations of another store, too: see [`Here::part`]. The domain keeps the store.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn together_with(mut self, keeper: alloc::boxed::Box<dyn commit::Keeper>) -> Domain {
        self.another = Some(Another::new(keeper));
        self
    }

    /// Lets its threads sleep, and wakes them, by a host of the caller's: where closures [wait](crate::Atomic::retry).
    #[must_use]
    pub fn hosted(mut self, host: &'static (dyn Wait + Sync)) -> Domain {
        self.host = host;
        self
    }

    /// A domain in an arena, for as many threads as that has cores.
    ///
    /// # Errors
    /// [`DomainError`] says what cannot be.
    pub fn over(arena: &'static Arena, lists: usize) -> Result<Domain, DomainError> {
        Limits { threads: arena.core_count(), lists }.check()?;
        Domain::of(arena, lists)
    }

    fn of(arena: &Arena, lists: usize) -> Result<Domain, DomainError> {
        Ok(Domain {
            epochs: NonNull::from(Epochs::create(arena)?),
            decisions: NonNull::from(Decisions::create(arena)?),
            // SAFETY: the arena lives forever, or as long as the region in the domain.
            records: unsafe { Records::create(arena) }?,
            // SAFETY: as above.
            cursors: unsafe { Cursors::create(arena) }?,
            numbers: Numbers::create(arena, lists)?,
            orphans: Orphans::new(),
            claims: Claims::new(),
            // SAFETY: as above.
            sleepers: unsafe { Sleepers::create(arena) }?,
            host: HOST,
            #[cfg(feature = "alloc")]
            another: None,
            arena: NonNull::from(arena),
            #[cfg(feature = "alloc")]
            _region: None,
        })
    }

    /// Becomes one of its threads, until what is returned is dropped.
    ///
    /// # Errors
    /// [`TooManyThreads`].
    pub fn enter(&self) -> Result<Here<'_>, TooManyThreads> {
        const { assert!(MOST_THREADS < percpu::MAX_CORES) };
        let owner = OwnerId::new(1).expect("not zero");
        match self.arena().claim_any(owner) {
            Ok(core) => Ok(Here {
                domain: self,
                record: self.records.of(core.index()),
                core,
                in_closure: Cell::new(false),
                uses_cursor: Cell::new(false),
            }),
            Err(ClaimError::Busy | ClaimError::OutOfRange { .. } | _) => {
                Err(TooManyThreads { most: self.arena().core_count() })
            }
        }
    }

    /// What lies where, and what tools call it.
    pub fn tables(&self) -> [Part; 8] {
        let [records, notes, rounds, epochs] = self.epochs().tables();
        let (decisions, words) = (self.decisions().table(), self.records.table());
        [records, notes, rounds, epochs, decisions, words, self.cursors.table(), self.sleepers.table()]
    }

    /// Of all threads that it has room for.
    pub(crate) fn cores(&self) -> impl Iterator<Item = CoreIndex> {
        self.arena().cores()
    }

    /// Of the cores of the other store.
    pub(crate) fn moments_of_another(&self) -> impl Iterator<Item = u64> {
        #[cfg(feature = "alloc")]
        return self.another.iter().flat_map(Another::moments);
        #[cfg(not(feature = "alloc"))]
        core::iter::empty()
    }

    fn arena(&self) -> &Arena {
        // SAFETY: it lives forever, or lies in the domain's region.
        unsafe { self.arena.as_ref() }
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        // SAFETY: they lie in the arena.
        unsafe { self.epochs.as_ref() }
    }

    pub(crate) fn decisions(&self) -> &Decisions {
        // SAFETY: they lie in the arena.
        unsafe { self.decisions.as_ref() }
    }

    /// Whether it is this domain, and no other.
    pub(crate) fn is(&self, orphans: *const Orphans) -> bool {
        core::ptr::eq(&raw const self.orphans, orphans)
    }

    /// What a thread does between its operations; whether something is left to do.
    fn maintain(&self, core: &Core<'_>) -> bool {
        let guard = self.epochs().pin(core);
        // SAFETY: the last count of an orphan has ended: no list leads to it, and no one else retires it.
        self.orphans.take(|header| unsafe { guard.retire(Header::retired(header), KIND) });
        drop(guard);
        // SAFETY: all that is retired in the domain's epochs are items.
        self.epochs().maintain(core, |_, _, retired| unsafe { Header::free(retired) }).pending
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // No one is in it: three rounds free what was retired; destructors may end further items.
        for _ in 0..MOST_ROUNDS_AT_THE_END {
            let mut pending = false;
            let owner = OwnerId::new(1).expect("not zero");
            self.arena().for_each_idle_core(owner, |core| pending |= self.maintain(core));
            if !pending {
                break;
            }
        }
    }
}

/// An item may own the last count of another one, and so on: deeper rows are left to the system.
const MOST_ROUNDS_AT_THE_END: usize = 1_000;

/// Items are all that is retired.
const KIND: epoch::RetiredKind = epoch::RetiredKind(0);

impl Limits {
    fn check(self) -> Result<(), DomainError> {
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return Err(DomainError::Threads(self.threads));
        }
        if !(1..=MOST_LISTS).contains(&self.lists) {
            return Err(DomainError::Lists(self.lists));
        }
        Ok(())
    }

    #[cfg(feature = "alloc")]
    fn bytes(self) -> usize {
        BYTES_OF_A_DOMAIN + self.threads * BYTES_OF_A_THREAD + self.lists * size_of::<u64>()
    }
}

#[cfg(feature = "alloc")]
const BYTES_OF_A_DOMAIN: usize = 64 << 10;
#[cfg(feature = "alloc")]
const BYTES_OF_A_THREAD: usize = 16 << 10;

/// The right to act in a domain as one of its threads: at most one thread at a time has it.
pub struct Here<'d> {
    pub(crate) domain: &'d Domain,
    pub(crate) core: Core<'d>,
    /// That of its core.
    pub(crate) record: &'d Record,
    /// Whether a closure of [`Here::atomically`] runs.
    pub(crate) in_closure: Cell<bool>,
    /// Whether the thread's cursor stands in a list.
    pub(crate) uses_cursor: Cell<bool>,
}

impl<'d> Here<'d> {
    /// The domain.
    pub fn domain(&self) -> &'d Domain {
        self.domain
    }

    /// Which of the domain's threads it is, from 0.
    pub fn number(&self) -> usize {
        self.core.index().get()
    }

    /// By what number it claims the domain.
    #[inline]
    pub(crate) fn claimant(&self) -> u64 {
        self.number() as u64 + 1
    }

    /// Keeps what lists lead to from being freed while the guard lives. To be dropped soon: it holds up all freeing.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        Guard { pinned: self.domain.epochs().pin(&self.core), here: self }
    }

    /// Frees what was removed and is looked at by no one any more; returns whether something is left. To be called
    /// between operations, every now and then.
    ///
    /// # Panics
    /// If a guard of this thread lives, or the destructor of an item panics.
    pub fn maintain(&self) -> bool {
        self.domain.maintain(&self.core)
    }
}

impl fmt::Debug for Here<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Here({})", self.number())
    }
}

/// Keeps items from being freed: see [`Here::pin`].
pub struct Guard<'h> {
    pinned: Pinned<'h>,
    here: &'h Here<'h>,
}

impl<'h> Guard<'h> {
    /// Who holds it.
    #[inline]
    pub(crate) fn here(&self) -> &'h Here<'h> {
        self.here
    }

    /// Whether it guards items of this domain.
    #[inline]
    pub(crate) fn is_of(&self, domain: &Domain) -> bool {
        core::ptr::eq(self.here.domain, domain)
    }

    /// Ends a count of an item of the domain.
    ///
    /// # Safety
    /// The count is the caller's, and the guard is of the item's domain. The pointer has the right to all of the item.
    pub(crate) unsafe fn end_count(&self, header: NonNull<Header>) {
        // SAFETY: the item lives as long as the count.
        if unsafe { header.as_ref() }.decrement() {
            // SAFETY: the last count has just ended, here: no list leads to the item, and no one else retires it.
            unsafe { self.pinned.retire(Header::retired(header), KIND) };
        }
    }
}
