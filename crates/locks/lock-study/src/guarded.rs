//! Data that sections touched last, to find accesses that no lock guards: a thread without any lock that meets what a section
//! of another thread did ("asymmetric" conflicts). Optimistic execution of the section would have to notice those too.
//!
//! A table of fixed size: a word makes room for another of the same hash. Memory that is used again for something else is
//! taken for the old data, so the counts are an upper limit.

use crate::address_set::{AddressSet, Word};

/// Words that are remembered.
const PLACES: usize = 1 << 18;

#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    lock: u32,
    thread: u32,
    touched: u8,
    written: u8,
}

/// The words of the last sections.
#[derive(Debug)]
pub struct Guarded(Box<[Place]>);

impl Default for Guarded {
    fn default() -> Self {
        let free = Place { number: u64::MAX, lock: 0, thread: 0, touched: 0, written: 0 };
        Self(vec![free; PLACES].into_boxed_slice())
    }
}

impl Guarded {
    /// A section of a lock has ended, which touched these words.
    pub fn add(&mut self, lock: u32, thread: u32, set: &AddressSet) {
        for word in set.words() {
            let touched = word.read | word.written;
            self.0[place(word.number)] = Place { number: word.number, lock, thread, touched, written: word.written };
        }
    }

    /// The lock whose section an access without a lock conflicts with, if there is one. It is reported once per
    /// section.
    #[inline]
    pub fn meets(&mut self, access: &Word, thread: u32) -> Option<u32> {
        let known = &mut self.0[place(access.number)];
        let conflicts = access.written & known.touched != 0 || access.read & known.written != 0;
        if known.number != access.number || known.thread == thread || !conflicts {
            return None;
        }
        known.number = u64::MAX;
        Some(known.lock)
    }
}

#[inline]
fn place(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, write: bool) -> Word {
        let mut words = Word::of_access(address, 4, write, false, 0);
        words.next().expect("an access touches a word")
    }

    #[test]
    fn only_conflicts_with_another_threads_section_count_and_once_each() {
        let mut guarded = Guarded::default();
        let set = AddressSet::collect(&[access(0x1000, true), access(0x2000, false)], |_| true);
        guarded.add(7, 1, &set);
        assert_eq!(guarded.meets(&access(0x1000, false), 1), None, "the section's own thread");
        assert_eq!(guarded.meets(&access(0x1004, true), 2), None, "other bytes");
        assert_eq!(guarded.meets(&access(0x2000, false), 2), None, "two reads");
        assert_eq!(guarded.meets(&access(0x2000, true), 2), Some(7));
        assert_eq!(guarded.meets(&access(0x1000, false), 2), Some(7));
        assert_eq!(guarded.meets(&access(0x1000, false), 2), None, "counted before");
    }
}
