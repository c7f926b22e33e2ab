//! What one thread touches while it holds locks. Belongs to the thread: recording an access shares nothing.
//!
//! Sections of one thread may be nested, or end in any order. All of them share one log, in which each notes where it
//! began; so an access is written once, however many locks are held.

use crate::address_set::Word;

/// A log of this many words is compacted: a section that runs long touches the same words again and again.
const COMPACT_AT_WORDS: usize = 1 << 14;
/// Slots of the filter of repetitions.
const RECENT: usize = 512;

/// One thread's accesses.
#[derive(Debug)]
pub struct ThreadLog {
    words: Vec<Word>,
    /// Open sections: the lock's number and the place in the log where the section began, in the order of acquiring.
    open: Vec<(u32, usize)>,
    /// Words logged since the last section began, by hash: an exact repetition is not logged again.
    recent: Box<[(u64, u8, u8); RECENT]>,
    /// Compact the log at this length.
    compact_at_words: usize,
}

impl Default for ThreadLog {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            open: Vec::new(),
            recent: Box::new([(u64::MAX, 0, 0); RECENT]),
            compact_at_words: COMPACT_AT_WORDS,
        }
    }
}

impl ThreadLog {
    /// Whether a section is open.
    #[inline]
    #[must_use]
    pub fn is_recording(&self) -> bool {
        !self.open.is_empty()
    }

    /// How many sections are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The locks of open sections, in the order of acquiring.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.open.iter().map(|&(lock, _)| lock)
    }

    /// A section begins.
    pub fn begin(&mut self, lock: u32) {
        self.open.push((lock, self.words.len()));
        self.recent.fill((u64::MAX, 0, 0));
    }

    /// Records an access, if a section is open; `site` is asked for only if the access is news.
    #[inline]
    pub fn access(&mut self, address: u64, size_bytes: u8, write: bool, per_cpu: bool, mut site: impl FnMut() -> u32) {
        if self.open.is_empty() {
            return;
        }
        let mut number = None;
        for mut word in Word::of_access(address, size_bytes, write, per_cpu, 0) {
            let slot = &mut self.recent[(word.number % RECENT as u64) as usize];
            if slot.0 != word.number {
                *slot = (word.number, word.read, word.written);
            } else if slot.1 | word.read == slot.1 && slot.2 | word.written == slot.2 {
                continue;
            } else {
                slot.1 |= word.read;
                slot.2 |= word.written;
            }
            let number = *number.get_or_insert_with(&mut site);
            (word.read_site, word.write_site) = (number, number);
            self.words.push(word);
        }
        if self.words.len() >= self.compact_at_words {
            self.compact();
        }
    }

    /// The innermost open section of a lock ends; `with` is given what the thread touched in it. None if the thread has
    /// no such section.
    pub fn end<R>(&mut self, lock: u32, with: impl FnOnce(&[Word]) -> R) -> Option<R> {
        let index = self.open.iter().rposition(|&(open, _)| open == lock)?;
        let (_, start) = self.open.remove(index);
        let result = with(&self.words[start..]);
        if self.open.is_empty() {
            self.words.clear();
            self.compact_at_words = COMPACT_AT_WORDS;
        }
        Some(result)
    }

    /// Forgets all open sections, and gives their locks: the thread is gone.
    pub fn abandon(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.words.clear();
        self.open.drain(..).map(|(lock, _)| lock)
    }

    /// Merges equal words between two beginnings of sections.
    fn compact(&mut self) {
        let bounds: Vec<usize> = self.open.iter().map(|&(_, start)| start).chain([self.words.len()]).collect();
        let mut compacted = Vec::new();
        for (index, range) in bounds.windows(2).enumerate() {
            self.open[index].1 = compacted.len();
            let part = crate::address_set::AddressSet::collect(&self.words[range[0]..range[1]], |_| true);
            compacted.extend_from_slice(part.words());
        }
        self.words = compacted;
        self.compact_at_words = (self.words.len() * 2).max(COMPACT_AT_WORDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_set::AddressSet;
    use proptest::prelude::*;

    fn bytes(words: &[Word]) -> Vec<(u64, u8, u8)> {
        let set = AddressSet::collect(words, |_| true);
        set.words().iter().map(|word| (word.number, word.read, word.written)).collect()
    }

    proptest! {
        /// Sections may end in any order, and a log that is compacted at any moment gives the same sets.
        #[test]
        fn each_section_gets_what_was_touched_while_it_was_open(
            steps in proptest::collection::vec((0_u8..8, 0_u64..400, any::<bool>()), 1..200),
            compact_at_words in 1_usize..40,
        ) {
            let mut log = ThreadLog { compact_at_words, ..ThreadLog::default() };
            let mut open: Vec<(u32, Vec<Word>)> = Vec::new();
            let mut next = 0;
            for (what, address, write) in steps {
                match what {
                    0 => {
                        log.begin(next);
                        open.push((next, Vec::new()));
                        next += 1;
                    }
                    1 if !open.is_empty() => {
                        let (lock, words) = open.remove(address as usize % open.len());
                        prop_assert_eq!(log.end(lock, bytes), Some(bytes(&words)));
                    }
                    _ => {
                        log.access(address, 8, write, false, || 0);
                        for (_, words) in &mut open {
                            words.extend(Word::of_access(address, 8, write, false, 0));
                        }
                    }
                }
                prop_assert_eq!(log.depth(), open.len());
            }
        }
    }

    #[test]
    fn memory_is_bounded_by_what_a_section_touches_not_by_how_often() {
        let mut log = ThreadLog::default();
        log.begin(1);
        for round in 0..100_u64 {
            for word in 0..1000_u64 {
                log.access(word * 8 * RECENT as u64 + round % 8, 1, false, false, || 0); // all in one slot of the filter
            }
        }
        assert!(log.words.len() <= COMPACT_AT_WORDS, "{}", log.words.len());
        assert_eq!(log.end(1, |words| bytes(words).len()), Some(1000));
        assert_eq!(log.end(1, |_| ()), None, "unlock without lock");
    }

    #[test]
    fn an_exact_repetition_is_not_logged_again_until_a_section_begins() {
        let mut log = ThreadLog::default();
        let mut asked = 0;
        let mut access = |log: &mut ThreadLog, address, size_bytes, write, news: usize| {
            let (before, words) = (asked, log.words.len());
            log.access(address, size_bytes, write, false, || {
                asked += 1;
                asked
            });
            assert_eq!((asked - before, log.words.len() - words), (u32::from(news > 0), news));
        };
        access(&mut log, 0, 8, true, 0); // no section is open
        log.begin(1);
        access(&mut log, 0, 4, false, 1);
        access(&mut log, 2, 2, false, 0);
        access(&mut log, 4, 2, false, 1);
        access(&mut log, 0, 6, false, 0);
        access(&mut log, 0, 4, true, 1);
        access(&mut log, 4, 4, true, 1);
        access(&mut log, 0, 8, true, 0);
        access(&mut log, 0, 6, false, 0);
        access(&mut log, 4, 24, false, 4); // of two bytes that are news in the first word
        access(&mut log, RECENT as u64 * 8, 8, true, 1); // takes the first word's place
        access(&mut log, 0, 4, false, 1);
        log.begin(2);
        access(&mut log, 0, 4, false, 1);
    }

    #[test]
    fn open_sections_are_told_in_order_and_forgotten_with_the_thread() {
        let mut log = ThreadLog::default();
        assert!(!log.is_recording());
        log.begin(7);
        log.begin(5);
        log.begin(6);
        assert!(log.is_recording());
        log.access(0, 8, true, false, || 0);
        assert_eq!(log.end(5, |words| words.len()), Some(1));
        assert_eq!(log.open().collect::<Vec<_>>(), [7, 6]);
        assert_eq!(log.abandon().collect::<Vec<_>>(), [7, 6]);
        assert!(!log.is_recording() && log.open().next().is_none());
        log.begin(8);
        assert_eq!(log.end(8, |words| words.len()), Some(0), "what it touched before is forgotten");
    }
}
