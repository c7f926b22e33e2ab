//! A few words that belong together: readers write nothing, writers exclude each other.
//!
//! **Idea** (sequence locks, as in section 6.3 of the paper for file sizes and times). A writer makes the sequence odd,
//! writes the words, and makes it even again. A reader takes the words only if the sequence was the same even number
//! before and after. The words are atomics, so a torn read is discarded rather than undefined.
//!
//! ```text
//! writer  lock ─ seq 4→5 ─ fence ─ words ─ seq 5→6 ─ unlock
//! reader           seq=5: wait ............. seq=6 ─ words ─ fence ─ seq=6: done
//! ```
//!
//! **Lines.** The sequence and up to seven words share one line: a reader touches one line and writes none. The lock is
//! on a line of its own, so that waiting writers do not disturb readers.
//!
//! **Lock order.** A writer holds one lock, of the rank given at creation.
//!
//! **Death of a process** in a write leaves an odd sequence and a lock that names its core; whoever took the core over
//! writes all words anew with [`SeqLock::repair_taken_over`]. Readers wait until then.
//!
//! **Cost**: a read is two loads of the sequence and the words (2 ns); a write one exchange and the stores (10 ns).
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p seqlock --release --test loom`.
#![cfg_attr(not(loom), no_std)]

use percpu::{CacheLine, Core, CoreLock, CoreLockGuard, LockRank};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{Wait, WaitReason};

/// `WORDS` words that are read and written together; at most seven fit in the line of the sequence.
pub struct SeqLock<const WORDS: usize> {
    data: CacheLine<Data<WORDS>>,
    lock: CacheLine<CoreLock>,
    rank: LockRank,
}

struct Data<const WORDS: usize> {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The right to write; ends when dropped.
pub struct Writer<'l, const WORDS: usize> {
    data: &'l Data<WORDS>,
    // Dropped after the words are published.
    _lock: CoreLockGuard<'l>,
}

impl<const WORDS: usize> SeqLock<WORDS> {
    /// Words with these values, whose lock has this rank.
    pub fn new(words: [u64; WORDS], rank: LockRank) -> SeqLock<WORDS> {
        const { assert!(WORDS >= 1 && WORDS <= 7, "the words share a line with the sequence") };
        SeqLock {
            data: CacheLine(Data { sequence: AtomicU64::new(0), words: words.map(AtomicU64::new) }),
            lock: CacheLine(CoreLock::new()),
            rank,
        }
    }

    /// All words as they were at one moment.
    #[inline]
    pub fn read(&self, wait: &impl Wait) -> [u64; WORDS] {
        let mut round = 0;
        loop {
            if let Some(words) = self.try_read() {
                return words;
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    /// All words as they were at one moment, unless a writer is at work.
    #[inline]
    pub fn try_read(&self) -> Option<[u64; WORDS]> {
        // Acquire pairs with the release in `Drop for Writer`: the words are at least as new as this sequence.
        let before = self.data.sequence.load(Ordering::Acquire);
        let mut words = [0; WORDS];
        for (word, source) in words.iter_mut().zip(&self.data.words) {
            *word = source.load(Ordering::Relaxed);
        }
        if !sync::mutant::planted("seqlock: reader without fence") {
            // Pairs with the release fence in `write`: having seen a word of a writer, we see its odd sequence.
            fence(Ordering::Acquire);
        }
        let after = self.data.sequence.load(Ordering::Relaxed);
        (before == after && before.is_multiple_of(2)).then_some(words)
    }

    /// One word by itself: for checks that need no more.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.data.words[index].load(Ordering::Acquire)
    }

    /// Excludes other writers, and lets readers wait until the returned value is dropped.
    #[inline]
    pub fn write<'l>(&'l self, core: &'l Core<'_>, wait: &impl Wait) -> Writer<'l, WORDS> {
        let lock = self.lock.lock(core, self.rank, wait);
        self.begin();
        Writer { data: &self.data.0, _lock: lock }
    }

    fn begin(&self) {
        let sequence = self.data.sequence.load(Ordering::Relaxed);
        self.data.sequence.store(sequence | 1, Ordering::Relaxed);
        if !sync::mutant::planted("seqlock: writer without fence") {
            // Orders the odd sequence before the words; pairs with the acquire fence in `try_read`.
            fence(Ordering::Release);
        }
    }

    /// Completes a write in whose middle a process died.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner, and no writer of it exists in a living process.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>, words: [u64; WORDS]) {
        if self.lock.holder() == Some(core.index()) {
            self.begin();
            publish(&self.data, words);
            // SAFETY: the words are whole; the rest is the caller's promise.
            unsafe { self.lock.release_taken_over(core) };
        }
    }
}

fn publish<const WORDS: usize>(data: &Data<WORDS>, words: [u64; WORDS]) {
    for (word, value) in data.words.iter().zip(words) {
        word.store(value, Ordering::Relaxed);
    }
    end(data);
}

#[inline]
fn end<const WORDS: usize>(data: &Data<WORDS>) {
    let sequence = data.sequence.load(Ordering::Relaxed);
    // Release pairs with the acquire load in `try_read`.
    data.sequence.store((sequence | 1) + 1, Ordering::Release);
}

impl<const WORDS: usize> Writer<'_, WORDS> {
    /// A word as it is now.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.data.words[index].load(Ordering::Relaxed)
    }

    /// Changes a word; readers see all changes at once when the writer is dropped.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        self.data.words[index].store(value, Ordering::Relaxed);
    }
}

impl<const WORDS: usize> Drop for Writer<'_, WORDS> {
    #[inline]
    fn drop(&mut self) {
        end(self.data);
    }
}
