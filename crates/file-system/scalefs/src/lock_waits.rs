//! Who waits for locks of files: words that change when a lock goes, and which process waits for which.
//!
//! A file's waiters wait for one of a few words, which stay where they are as long as the instance is: anyone who gives up a lock
//! that is waited for changes the word and wakes. So a wait needs no object that could go in between.
//!
//! **Circles.** Before a process waits for another one's lock, an edge says so. It counts as long as its word is what the waiter has
//! seen: any change that could end the wait ends the edge, and a waiter that looks again and still has to wait puts a new one. An
//! edge that would close a circle is not put. Edges change under one lock of the instance, which no one takes who does not wait.
#![allow(unsafe_code)]

use percpu::{Arena, CacheLine, Core, CoreLock, LockRank, ObjectKind, OutOfMemory, Part, table_kind};
use posix_calls::{InodeNumber, LockWait};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::mutant::planted;

const WORDS: usize = 32;
/// Processes that can wait for locks of others at once.
const EDGES: usize = 256;
/// Alone.
const RANK_EDGES: LockRank = LockRank(252);

/// See the module's head.
#[repr(C)]
pub(crate) struct LockWaits {
    words: [CacheLine<AtomicU32>; WORDS],
    lock: CacheLine<CoreLock>,
    edges: [Edge; EDGES],
}

/// What tools call it.
const WAITS: ObjectKind = table_kind!(LockWaits as "waits for locks of files" {
    "words" = words,
    "lock of the edges" = lock,
    "edges" = edges,
});

/// Who waits for whom, as long as a word is as it was. Guarded by the lock; no waiter while it is being written.
struct Edge {
    waiter: AtomicU64,
    holder: AtomicU64,
    word: AtomicU32,
    seen: AtomicU32,
}

/// Why a process does not wait.
pub(crate) enum NoWait {
    /// It would wait for itself.
    Circle,
    /// As many wait as can.
    Full,
}

impl LockWaits {
    pub(crate) fn create(arena: &Arena) -> Result<&LockWaits, OutOfMemory> {
        arena.place(LockWaits {
            words: core::array::from_fn(|_| CacheLine(AtomicU32::new(0))),
            lock: CacheLine(CoreLock::new()),
            edges: core::array::from_fn(|_| Edge {
                waiter: AtomicU64::new(0),
                holder: AtomicU64::new(0),
                word: AtomicU32::new(0),
                seen: AtomicU32::new(0),
            }),
        })
    }

    pub(crate) fn table(&self) -> Part {
        Part::of(self, &WAITS)
    }

    /// The word that changes when a lock of a file goes.
    pub(crate) fn word_of(&self, file: InodeNumber) -> u32 {
        (file.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % WORDS as u32
    }

    /// The word with this number.
    pub(crate) fn word(&self, number: u32) -> &AtomicU32 {
        &self.words[number as usize % WORDS]
    }

    /// What a wait for a lock of this file waits for.
    pub(crate) fn wait_for(&self, file: InodeNumber) -> LockWait {
        let word = self.word_of(file);
        LockWait { word, seen: self.word(word).load(Ordering::Acquire) }
    }

    fn counts(&self, edge: &Edge) -> bool {
        edge.waiter.load(Ordering::Relaxed) != 0
            && self.word(edge.word.load(Ordering::Relaxed)).load(Ordering::Acquire) == edge.seen.load(Ordering::Relaxed)
    }

    /// Whether a process waits for another one, perhaps by way of others.
    fn leads_to(&self, from: u64, to: u64) -> bool {
        // Each edge is followed once.
        let mut followed = [false; EDGES];
        let mut ahead = [0; EDGES + 1];
        let mut count = 1;
        ahead[0] = from;
        while count > 0 {
            count -= 1;
            let process = ahead[count];
            if process == to {
                return true;
            }
            for (edge, followed) in self.edges.iter().zip(&mut followed) {
                if !*followed && edge.waiter.load(Ordering::Relaxed) == process && self.counts(edge) {
                    *followed = true;
                    ahead[count] = edge.holder.load(Ordering::Relaxed);
                    count += 1;
                }
            }
        }
        false
    }

    /// Notes that a process waits for another one.
    pub(crate) fn put(
        &self,
        core: &Core<'_>,
        (waiter, holder): (u64, u64),
        wait_for: LockWait,
        wait: &impl Wait,
    ) -> Result<(), NoWait> {
        let _lock = self.lock.lock(core, RANK_EDGES, wait);
        if self.leads_to(holder, waiter) && !planted("scalefs: a circle of waiting processes is not seen") {
            return Err(NoWait::Circle);
        }
        // Who looks again, and waits on for the same.
        let is_there = |edge: &Edge| {
            self.counts(edge)
                && edge.waiter.load(Ordering::Relaxed) == waiter
                && edge.holder.load(Ordering::Relaxed) == holder
                && edge.word.load(Ordering::Relaxed) == wait_for.word
        };
        if self.edges.iter().any(is_there) {
            return Ok(());
        }
        let edge = self.edges.iter().find(|edge| !self.counts(edge)).ok_or(NoWait::Full)?;
        edge.waiter.store(0, Ordering::Release);
        edge.holder.store(holder, Ordering::Relaxed);
        edge.word.store(wait_for.word, Ordering::Relaxed);
        edge.seen.store(wait_for.seen, Ordering::Relaxed);
        edge.waiter.store(waiter, Ordering::Release);
        Ok(())
    }

    /// A process does not wait for this any more.
    pub(crate) fn take(&self, core: &Core<'_>, waiter: u64, wait_for: LockWait, wait: &impl Wait) {
        let _lock = self.lock.lock(core, RANK_EDGES, wait);
        let is_meant = |edge: &&Edge| {
            edge.waiter.load(Ordering::Relaxed) == waiter && edge.word.load(Ordering::Relaxed) == wait_for.word
        };
        for edge in self.edges.iter().filter(is_meant) {
            edge.waiter.store(0, Ordering::Release);
        }
    }

    /// A process has ended.
    pub(crate) fn take_all(&self, core: &Core<'_>, waiter: u64, wait: &impl Wait) {
        let _lock = self.lock.lock(core, RANK_EDGES, wait);
        for edge in self.edges.iter().filter(|edge| edge.waiter.load(Ordering::Relaxed) == waiter) {
            edge.waiter.store(0, Ordering::Release);
        }
    }

    /// Unlocks what a dead owner was changing: an edge without a waiter at most.
    ///
    /// # Safety
    /// The core was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe { self.lock.release_taken_over(core) };
    }
}
