//! How often a file was cut, and how far: so that private copies of its pages know without a list of them whether their
//! page was cut off (Linux: `unmap_mapping_range` with `even_cows`, called by `truncate_pagecache`).
//!
//! ```text
//! count of cuts │ cut, first page that it took │ ...          one line, written by cuts only
//! ```
//! A cut that took a page took all behind it: of an earlier cut that took no more than a later one nothing need be kept. What is
//! kept rises in both columns. When there is no room the oldest goes: copies of before then stay, as POSIX allows
//! (`ftruncate`: "the effect on mapped pages is unspecified").

use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{Wait, WaitReason};

const KEPT: usize = 7;
const PAGE_BITS: u32 = 40;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;
const NUMBER_MASK: u64 = u64::MAX >> PAGE_BITS;

/// The cuts of a file; one line.
pub(super) struct Cuts {
    /// Atomic, written by cuts, which exclude each other: twice the number of cuts, plus one while one is noted.
    sequence: AtomicU64,
    /// Atomic, likewise: the low bits of the cut's number, and its first page; zero for none.
    kept: [AtomicU64; KEPT],
}

impl Cuts {
    pub(super) fn new() -> Cuts {
        Cuts { sequence: AtomicU64::new(0), kept: core::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// How many there were; one that is being noted does not count yet.
    pub(super) fn count(&self) -> u64 {
        // Acquire pairs with the release in `note`: the pages that a cut took are gone.
        self.sequence.load(Ordering::Acquire) / 2
    }

    /// Notes a cut that has taken all pages from this one on, and has not ended: a copy that was made before counts it as later,
    /// one made since has found the pages gone. The caller holds the locks of a cut.
    pub(super) fn note(&self, first_page: u64) {
        let number = self.count() + 1;
        self.sequence.store(2 * number - 1, Ordering::Relaxed);
        // Pairs with the fence in `took_since`: having seen a word of ours, they see the sequence.
        fence(Ordering::Release);
        let kept = || self.kept.iter().map(|word| word.load(Ordering::Relaxed)).filter(|word| *word != 0);
        // Nobody has copies of pages so far out.
        let new = (first_page < PAGE_MASK).then_some((number & NUMBER_MASK) << PAGE_BITS | first_page);
        let stay = kept().filter(|word| new.is_none() || word & PAGE_MASK < first_page);
        let mut words = [0; KEPT + 1];
        let length = words.iter_mut().zip(stay.chain(new)).map(|(place, word)| *place = word).count();
        for (place, word) in self.kept.iter().zip(&words[length.saturating_sub(KEPT)..]) {
            place.store(*word, Ordering::Relaxed);
        }
        self.sequence.store(2 * number, Ordering::Release);
    }

    /// Whether a page was taken by a cut after the first `seen` ones.
    pub(super) fn took_since(&self, page: u64, seen: u64, wait: &impl Wait) -> bool {
        for round in 0_u32.. {
            let sequence = self.sequence.load(Ordering::Acquire);
            let count = sequence / 2;
            if sequence == 2 * seen {
                return false;
            }
            if sequence.is_multiple_of(2) {
                let mut kept = self.kept.iter().map(|word| word.load(Ordering::Relaxed)).filter(|word| *word != 0);
                let was_taken = kept.any(|word| {
                    let age = count.wrapping_sub(word >> PAGE_BITS) & NUMBER_MASK;
                    age < count - seen && word & PAGE_MASK <= page
                });
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == sequence {
                    return was_taken;
                }
            }
            wait.wait(WaitReason::Operation, round);
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use sync::Spin;

    use super::Cuts;

    const CUTS: [u64; 8] = [5, 3, 9, 4, 4, 1, 6, 2];

    #[test]
    fn a_copy_knows_the_cuts_that_came_after_it() {
        let cuts = Cuts::new();
        for (number, first_page) in CUTS.into_iter().enumerate() {
            cuts.note(first_page);
            let history = &CUTS[..=number];
            for seen in 0..=number as u64 + 1 {
                for page in 0..12 {
                    let was_taken = history[seen as usize..].iter().any(|first| *first <= page);
                    assert_eq!(
                        cuts.took_since(page, seen, &Spin),
                        was_taken,
                        "page {page} after {seen} of {history:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn of_many_cuts_the_latest_count() {
        let cuts = Cuts::new();
        (1..=20).for_each(|first_page| cuts.note(first_page));
        assert!(cuts.took_since(20, 0, &Spin) && cuts.took_since(14, 0, &Spin));
        assert!(!cuts.took_since(13, 0, &Spin), "forgotten");
        assert!(!cuts.took_since(19, 19, &Spin) && cuts.took_since(20, 19, &Spin));
    }
}
