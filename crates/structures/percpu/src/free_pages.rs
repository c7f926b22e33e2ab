//! Pages that were used and are free for any class: a map with a bit for each, so that neighbours can be had together. A death
//! in between loses at most the pages in question.

use sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::class::KIND_MAP_BYTES;

const WORD_PAGES: usize = u64::BITS as usize;
/// Requests that go unanswered at most.
const MOST_PAUSE: u32 = 15;

/// What cores tell each other of memory that is missing.
pub(crate) struct Shortage {
    /// Atomic: how often memory was asked for in vain.
    asked: AtomicU32,
    /// Atomic: what that was when somebody last began to collect.
    collected: AtomicU32,
    /// Atomic: this many requests go unanswered, unless much was given back since: more with each collection in vain.
    pause: AtomicU32,
    /// Atomic: how often a core has let others have what it had, and how often that was when somebody last began to collect.
    given_up: AtomicU32,
    given_up_before: AtomicU32,
    /// Atomic: bytes in use after the last collection.
    live_bytes: AtomicI64,
    /// Atomic: how many of the free pages no one is about to take: never more than stand in the map.
    free_pages: AtomicUsize,
}

impl Shortage {
    pub(crate) fn new() -> Shortage {
        Shortage {
            asked: AtomicU32::new(0),
            collected: AtomicU32::new(0),
            pause: AtomicU32::new(0),
            given_up: AtomicU32::new(0),
            given_up_before: AtomicU32::new(0),
            live_bytes: AtomicI64::new(0),
            free_pages: AtomicUsize::new(0),
        }
    }

    /// Says that there is no memory.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Says that others may have what the caller had.
    pub(crate) fn note_given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a request is left alone: a collection was in vain, few have asked since, no page's worth was given back, and no
    /// core has let others have what it had. A full instance would else sort all its free objects with each call.
    pub(crate) fn rests(&self, asked: u32, live_bytes: impl FnOnce() -> i64) -> bool {
        let since = asked.wrapping_sub(self.collected.load(Ordering::Relaxed));
        (1..=self.pause.load(Ordering::Relaxed)).contains(&since)
            && self.given_up.load(Ordering::Relaxed) == self.given_up_before.load(Ordering::Relaxed)
            && live_bytes() + KIND_MAP_BYTES as i64 > self.live_bytes.load(Ordering::Relaxed)
    }

    /// Notes what a collection has brought.
    pub(crate) fn note_collection(&self, page_count: usize, live_bytes: i64) {
        let pause = self.pause.load(Ordering::Relaxed);
        self.pause.store(if page_count == 0 { (2 * pause + 1).min(MOST_PAUSE) } else { 0 }, Ordering::Relaxed);
        self.live_bytes.store(live_bytes, Ordering::Relaxed);
    }

    /// Whether no one has begun to collect since so much was asked for; then the caller has.
    pub(crate) fn is_first_to_collect(&self, asked: u32) -> bool {
        let collected = self.collected.load(Ordering::Relaxed);
        let given_up = self.given_up.load(Ordering::Relaxed);
        let begin = || self.collected.compare_exchange(collected, asked, Ordering::Relaxed, Ordering::Relaxed);
        let is_first = collected != asked && begin().is_ok();
        if is_first {
            self.given_up_before.store(given_up, Ordering::Relaxed);
        }
        is_first
    }
}

/// The pages of an arena that are free.
pub(crate) struct FreePages<'a> {
    pub(crate) map: &'a [AtomicU64],
    pub(crate) shortage: &'a Shortage,
}

impl FreePages<'_> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.shortage.free_pages.load(Ordering::Relaxed)
    }

    /// Lets any class have pages that are the caller's.
    pub(crate) fn give_back(&self, first: usize, count: usize) {
        self.mark(first, count);
        self.shortage.free_pages.fetch_add(count, Ordering::Relaxed);
    }

    fn mark(&self, first: usize, count: usize) {
        for (word, bits) in parts(first, count) {
            // Release pairs with the acquiring exchange in `take_bits`: who gets the page finds it as it was left.
            self.map[word].fetch_or(bits, Ordering::Release);
        }
    }

    /// Takes this many neighbouring pages, and leaves others; the number of the first one.
    pub(crate) fn take(&self, count: usize, left: usize) -> Option<usize> {
        let free_pages = &self.shortage.free_pages;
        // First the right to them: what is counted is there, or on its way to somebody who has the right.
        let mut seen = free_pages.load(Ordering::Relaxed);
        loop {
            let fewer = seen.checked_sub(count).filter(|fewer| *fewer >= left)?;
            match free_pages.compare_exchange_weak(seen, fewer, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let taken = self.take_neighbours(count);
        if taken.is_none() {
            free_pages.fetch_add(count, Ordering::Relaxed);
        }
        taken
    }

    fn take_neighbours(&self, count: usize) -> Option<usize> {
        let (mut start, mut run) = (0, 0);
        for (word, map) in self.map.iter().enumerate() {
            let mut bits = map.load(Ordering::Relaxed);
            let mut place = 0;
            while place < WORD_PAGES {
                let skipped = (bits.trailing_zeros() as usize).min(WORD_PAGES - place);
                if skipped > 0 {
                    run = 0;
                    place += skipped;
                    bits = bits.checked_shr(skipped as u32).unwrap_or(0);
                    continue;
                }
                if run == 0 {
                    start = word * WORD_PAGES + place;
                }
                (run, place, bits) = (run + 1, place + 1, bits >> 1);
                if run == count {
                    if self.take_bits(start, count) {
                        return Some(start);
                    }
                    run = 0;
                }
            }
        }
        None
    }

    /// Takes these pages, if all are free.
    fn take_bits(&self, first: usize, count: usize) -> bool {
        let mut taken = 0;
        for (word, wanted) in parts(first, count) {
            let map = &self.map[word];
            let mut bits = map.load(Ordering::Relaxed);
            while bits & wanted == wanted {
                // Acquire pairs with the release in `mark`.
                match map.compare_exchange_weak(bits, bits & !wanted, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        taken += wanted.count_ones() as usize;
                        break;
                    }
                    Err(seen) => bits = seen,
                }
            }
            if bits & wanted != wanted {
                self.mark(first, taken);
                return false;
            }
        }
        true
    }
}

/// The words of the map in which these pages stand, with their bits.
fn parts(first: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let mut next = first;
    core::iter::from_fn(move || {
        let left = (first + count).checked_sub(next).filter(|left| *left > 0)?;
        let place = next % WORD_PAGES;
        let here = left.min(WORD_PAGES - place);
        let bits = (u64::MAX >> (WORD_PAGES - here)) << place;
        let word = next / WORD_PAGES;
        next += here;
        Some((word, bits))
    })
}

/// Words of a map for this many pages.
pub(crate) const fn words_for(pages: usize) -> usize {
    pages.div_ceil(WORD_PAGES)
}
