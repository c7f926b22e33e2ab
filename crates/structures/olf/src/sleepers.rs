//! Threads whose closures wait until an answer changes, and who wakes them.
//!
//! ```text
//! sleeper   say for which words it waits │ count itself │ look at them once more │ sleep │ run again
//! changer   change a word │ look at the count, which is zero nearly always │ wake those who wait for a word like this
//! ```
//! Either the sleeper sees the change, or the changer sees the sleeper. Words are known by one bit of 64 each, so that now and then a
//! sleeper is woken for another one's sake. A changer that stops before it has looked wakes no one: so hosts let no one sleep
//! for long.

use percpu::{Arena, CacheLine, Core, CoreIndex, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{Wait, WaitReason};

use crate::link::Link;

/// Of a core whose thread may sleep.
struct Sleeper {
    /// Atomic, written by the core alone: the bits of the words for which it waits; zero if it waits for none.
    awaited: AtomicU64,
    /// Atomic: moved on by who wakes the thread.
    woken: AtomicU32,
}

const SLEEPER: ObjectKind = table_kind!(Sleeper as "sleeper of a core" { "awaited" = awaited, "woken" = woken });

/// The sleepers of a domain.
pub(crate) struct Sleepers {
    of: PerCore<Sleeper>,
    /// Atomic: how many there are. On a line of its own, which all read who change something.
    count: CacheLine<AtomicU32>,
}

/// A thread that is about to sleep; it is no sleeper any more once this is dropped.
pub(crate) struct Asleep<'s> {
    sleepers: &'s Sleepers,
    sleeper: &'s Sleeper,
    woken: u32,
}

/// Which bit stands for a link: its line's half, since a link has no neighbour there that is another item's.
#[inline(always)]
pub(crate) fn bit(link: &Link) -> u64 {
    1 << ((core::ptr::from_ref(link).addr() >> 5) % u64::BITS as usize)
}

impl Sleepers {
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    ///
    /// # Safety
    /// They are not used once the arena's memory is gone.
    pub(crate) unsafe fn create(arena: &Arena) -> Result<Sleepers, OutOfMemory> {
        let sleeper = |_: CoreIndex| Sleeper { awaited: AtomicU64::new(0), woken: AtomicU32::new(0) };
        // SAFETY: the caller's promise.
        let of = unsafe { PerCore::create(arena, sleeper) }?;
        Ok(Sleepers { of, count: CacheLine(AtomicU32::new(0)) })
    }

    /// Where they lie, and what tools call them.
    pub(crate) fn table(&self) -> Part {
        Part { memory: self.of.memory(), kind: &SLEEPER }
    }

    /// The caller waits for words with these bits. It looks at them once more before it sleeps.
    pub(crate) fn enter<'s>(&'s self, core: &'s Core<'_>, bits: u64) -> Asleep<'s> {
        let sleeper = self.of.get(core);
        let woken = sleeper.woken.load(Ordering::Relaxed);
        sleeper.awaited.store(bits, Ordering::Relaxed);
        // SeqCst: comes before the looks that follow in the order of all such accesses. Pairs with the load in `wake`.
        self.count.0.fetch_add(1, Ordering::SeqCst);
        Asleep { sleepers: self, sleeper, woken }
    }

    /// Wakes those who wait for one of these words, which have just changed.
    #[inline(always)]
    pub(crate) fn wake<'l>(&self, host: &dyn Wait, links: impl Iterator<Item = &'l Link>) {
        // SeqCst: comes after the change. Pairs with the addition in `enter`.
        if self.count.0.load(Ordering::SeqCst) != 0 {
            self.wake_those(host, links.fold(0, |bits, link| bits | bit(link)));
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_those(&self, host: &dyn Wait, bits: u64) {
        if sync::mutant::planted("olf: who changes a word wakes no one") {
            return;
        }
        for (_, sleeper) in self.of.below(usize::MAX) {
            if sleeper.awaited.load(Ordering::Relaxed) & bits != 0 {
                sleeper.woken.fetch_add(1, Ordering::Release);
                host.wake(&sleeper.woken);
            }
        }
    }
}

impl Asleep<'_> {
    /// Sleeps until somebody has woken it since it entered, or for a while.
    pub(crate) fn sleep(self, wait: &(impl Wait + ?Sized), round: u32) {
        wait.wait_while(&self.sleeper.woken, self.woken, WaitReason::Answer, round);
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.sleeper.awaited.store(0, Ordering::Relaxed);
        self.sleepers.count.0.fetch_sub(1, Ordering::Relaxed);
    }
}
