//! Claims: who has lost again and again keeps others, for a bounded time, from changing what it loses by.
//!
//! **Idea.** Plain calls win against transactions: those run without locks, and are stale when somebody has come in between.
//! A transaction that is stale again and again claims the objects by which it was. Whoever is about to change something
//! looks at one word, which is zero nearly always and read by all alike. If it is not, there are claims: whoever is
//! concerned waits until the claim has ended, at most once in a call.
//!
//! ```text
//! claim    take a place whose time is over; write objects; set its bit; fence; wait until each core was between two calls
//! change   no bit: go on.  Else for each bit: time over → take the bit away;  concerned → wait, and look again
//! end      time = 0; take the bit away
//! ```
//!
//! Nothing but fairness rests on it, so words of a place are read without order among each other, and a claim of a process
//! that has died ends by its time. A call reads a clock only beside a claim.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use percpu::{Arena, CacheLine, ObjectKind, OutOfMemory, Part, table_kind};
use posix_calls::{Claim, Claimed, InodeNumber, Precedence};
use sync::WaitReason;
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::mutant::planted;

use crate::host::Host;

/// Claims at a time: as many as the word has bits.
const PLACES: usize = 64;
/// Objects of one claim; who wants more claims everything.
const OBJECTS: usize = 6;
/// Instead of an object's number.
const EVERYTHING: u64 = u64::MAX;
/// So often who waits looks again at a clock that stands still.
const PATIENCE: u32 = 1 << 14;
/// Nobody waits longer for a claim, whatever the clock does meanwhile.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;
/// So often a new claim looks whether a core is between two calls.
pub(crate) const LOOKS: u32 = 1 << 10;

/// One claim. All words are atomic and relaxed but the first, which says since when the rest may be read.
struct Place {
    /// When it ends; zero if there is none.
    until_ns: AtomicU64,
    precedence: AtomicU64,
    /// Numbers of objects, and zeros.
    objects: [AtomicU64; OBJECTS],
}

struct Places([CacheLine<Place>; PLACES]);

const CLAIM: ObjectKind =
    table_kind!(Place as "claim" { "end" = until_ns, "precedence" = precedence, "objects" = objects });

/// The claims of an instance.
pub(crate) struct Claims {
    /// A bit for each claim.
    are_made: AtomicU64,
    /// Placed in the arena for good.
    places: NonNull<Places>,
}

impl Claims {
    pub(crate) fn create(arena: &Arena) -> Result<Claims, OutOfMemory> {
        let place = |_| {
            let zero = || AtomicU64::new(0);
            CacheLine(Place { until_ns: zero(), precedence: zero(), objects: core::array::from_fn(|_| zero()) })
        };
        let places = arena.place(Places(core::array::from_fn(place)))?;
        Ok(Claims { are_made: AtomicU64::new(0), places: NonNull::from(places) })
    }

    pub(crate) fn table(&self) -> Part {
        let places = self.places().0.as_ptr_range();
        Part { memory: places.start as usize..places.end as usize, kind: &CLAIM }
    }

    fn places(&self) -> &Places {
        // SAFETY: placed in the arena for good, as `self` is.
        unsafe { self.places.as_ref() }
    }

    /// Whether there may be claims.
    #[inline]
    pub(crate) fn are_made(&self) -> bool {
        // Relaxed: whoever claims waits for the calls that may have read this before; see `ScaleFs::claim`.
        self.are_made.load(Ordering::Relaxed) != 0
    }

    /// Notes a claim; nothing if all places are taken.
    pub(crate) fn make(&self, claim: &Claim<'_>, now_ns: u64) -> Option<Claimed> {
        let until_ns = claim.until_ns.max(1);
        let taken = self.places().0.iter().position(|place| {
            let old = place.until_ns.load(Ordering::Relaxed);
            let is_over = old == 0 || old <= now_ns;
            // AcqRel: the words of the claim before are not written any more.
            is_over && place.until_ns.compare_exchange(old, until_ns, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        let place = &self.places().0[taken];
        place.precedence.store(claim.precedence.0, Ordering::Relaxed);
        let is_everything = claim.objects.is_empty() || claim.objects.len() > OBJECTS;
        for (index, word) in place.objects.iter().enumerate() {
            let number = claim.objects.get(index).map_or(0, |number| number.0);
            word.store(if is_everything { EVERYTHING } else { number }, Ordering::Relaxed);
        }
        // Release: who sees the bit sees the place.
        self.are_made.fetch_or(1 << taken, Ordering::Release);
        // Before the looks at other cores that follow; pairs with the fence with which they begin calls.
        fence(Ordering::SeqCst);
        Some(Claimed { place: taken, until_ns })
    }

    pub(crate) fn end(&self, Claimed { place, until_ns }: Claimed) {
        let word = &self.places().0[place].until_ns;
        // If it is another's by now, its time was over.
        if word.compare_exchange(until_ns, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.take_bit_away(place);
        }
    }

    /// Takes away the bit of a place without a claim.
    fn take_bit_away(&self, place: usize) {
        self.are_made.fetch_and(!(1 << place), Ordering::SeqCst);
        // Somebody else may have come to the place meanwhile.
        if self.places().0[place].until_ns.load(Ordering::SeqCst) != 0 {
            self.are_made.fetch_or(1 << place, Ordering::SeqCst);
        }
    }

    /// When the first claim ends that concerns somebody; nothing if none does.
    fn concerning(
        &self,
        now_ns: u64,
        is_before: impl Fn(u64) -> bool,
        concerns: &dyn Fn(InodeNumber) -> bool,
    ) -> Option<u64> {
        let mut bits = self.are_made.load(Ordering::Acquire);
        while bits != 0 {
            let index = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let place = &self.places().0[index];
            let until_ns = place.until_ns.load(Ordering::Acquire);
            if until_ns <= now_ns {
                // Of somebody who has died, or was slow.
                if place.until_ns.compare_exchange(until_ns, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    self.take_bit_away(index);
                }
                continue;
            }
            let is_claimed = |word: &AtomicU64| match word.load(Ordering::Relaxed) {
                0 => false,
                EVERYTHING => true,
                number => concerns(InodeNumber(number)),
            };
            if is_before(place.precedence.load(Ordering::Relaxed)) && place.objects.iter().any(is_claimed) {
                return Some(until_ns);
            }
        }
        None
    }

    /// Waits while there is a claim on an object that somebody is about to change, but not longer than the first one lasts.
    #[cold]
    pub(crate) fn heed(&self, own: Option<Precedence>, host: &impl Host, concerns: &dyn Fn(InodeNumber) -> bool) {
        if planted("scalefs: a claim is ignored") {
            return;
        }
        let is_before = |precedence| own.is_none_or(|own| precedence < own.0);
        let (begun_ns, mut patient_until_ns) = (host.now_ns(), None);
        for round in 0.. {
            let now_ns = host.now_ns();
            let Some(until_ns) = self.concerning(now_ns, is_before, concerns) else { return };
            let stands_still = now_ns == begun_ns && round >= PATIENCE;
            let patient_until_ns =
                *patient_until_ns.get_or_insert(until_ns.min(begun_ns.saturating_add(LONGEST_WAIT_NS)));
            // A clock of the system may be set back.
            if stands_still || now_ns >= patient_until_ns || now_ns < begun_ns {
                return;
            }
            host.wait(WaitReason::Claim, round);
        }
    }
}
