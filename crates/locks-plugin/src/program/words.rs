//! Locks that no annotation tells of: words that atomic instructions take from free to taken and back.
//!
//! After each atomic instruction the word's value is looked at. A word that a thread leaves as a known mark of "taken" was
//! acquired; what the holder does to it next releases it. This finds the locks of glibc's and Rust's kind (0 free, 1 taken,
//! 2 taken with waiters), spin locks that are swapped to 1, and Rust's write locks; not readers beyond the first, which
//! change a count.
//!
//! Another thread may have changed the word between the instruction and the look. What is then misunderstood comes right
//! with the next instruction: a holder that tries to acquire was none, and the last thread that was seen to wait is.

use std::collections::HashMap;

/// What an atomic instruction turned out to mean, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A thread holds the word from now on.
    Acquire(u32),
    /// A thread waits.
    Wait(u32),
    /// A thread's section ends.
    Release(u32),
    /// A thread's section is of no use: somebody else freed the word.
    Abandon(u32),
    /// The word was made into something else.
    Renew,
}

#[derive(Debug, Default)]
struct Word {
    owner: Option<u32>,
    waiters: Vec<u32>,
}

/// All words that were ever acquired, by address.
#[derive(Debug, Default)]
pub struct Words(HashMap<u64, Word>);

/// Values that mean "taken by one": those of glibc, Rust's mutexes and most spin locks, and of Rust's write lock.
fn is_taken(value: u64) -> bool {
    matches!(value, 1 | 2 | 0x3fff_ffff)
}

impl Words {
    /// A thread's `cmpxchg`, `xchg` or `bts` left `value` at `address`.
    pub fn exchange(&mut self, thread: u32, address: u64, value: u64) -> Vec<Step> {
        let Some(word) = self.0.get_mut(&address) else {
            if is_taken(value) {
                self.0.insert(address, Word { owner: Some(thread), waiters: Vec::new() });
                return vec![Step::Acquire(thread)];
            }
            return Vec::new();
        };
        match word.owner {
            None if is_taken(value) => vec![word.give_to(thread)],
            None => Vec::new(),
            Some(owner) if owner == thread => match word.waiters.last().copied() {
                Some(next) if is_taken(value) => vec![Step::Release(thread), word.give_to(next)],
                None if is_taken(value) => Vec::new(), // a mark that the holder itself set
                _ => {
                    word.owner = None;
                    vec![Step::Release(thread)]
                }
            },
            Some(owner) if value == 0 => {
                word.owner = None;
                vec![Step::Abandon(owner)]
            }
            Some(_) if word.waiters.contains(&thread) => Vec::new(),
            Some(_) => {
                word.waiters.push(thread);
                vec![Step::Wait(thread)]
            }
        }
    }

    /// A thread's other atomic instruction, or plain store, left `value` at `address`.
    pub fn modify(&mut self, thread: u32, address: u64, value: u64, plain_store: bool) -> Vec<Step> {
        let Some(word) = self.0.get_mut(&address) else { return Vec::new() };
        match word.owner {
            Some(owner) if owner == thread && value == 0 => {
                word.owner = None;
                vec![Step::Release(thread)]
            }
            Some(owner) if owner != thread && plain_store => {
                self.0.remove(&address);
                vec![Step::Abandon(owner), Step::Renew]
            }
            None if plain_store => {
                self.0.remove(&address);
                vec![Step::Renew]
            }
            _ => Vec::new(),
        }
    }

    /// Forgets the words of a lock that is annotated after all; gives those that are held, with their holders.
    pub fn forget(&mut self, range: std::ops::Range<u64>) -> Vec<(u64, u32)> {
        let mut held = Vec::new();
        self.0.retain(|address, word| {
            let forgotten = range.contains(address);
            if let (true, Some(owner)) = (forgotten, word.owner) {
                held.push((*address, owner));
            }
            !forgotten
        });
        held
    }
}

impl Word {
    fn give_to(&mut self, thread: u32) -> Step {
        self.owner = Some(thread);
        self.waiters.retain(|&waiter| waiter != thread);
        Step::Acquire(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{Abandon, Acquire, Release, Renew, Wait};

    const LOCK: u64 = 0x1000;

    #[test]
    fn a_lock_is_taken_and_released_by_exchanges() {
        let mut words = Words::default();
        assert_eq!(words.exchange(1, LOCK, 1), [Acquire(1)]);
        assert_eq!(words.exchange(2, LOCK, 2), [Wait(2)]);
        assert_eq!(words.exchange(2, LOCK, 2), []);
        assert_eq!(words.exchange(1, LOCK, 0), [Release(1)]);
        assert_eq!(words.exchange(2, LOCK, 2), [Acquire(2)]);
        assert_eq!(words.modify(2, LOCK, 0, false), [Release(2)]);
    }

    #[test]
    fn a_spin_lock_is_released_by_a_plain_store_and_renewed_by_one_while_it_is_free() {
        let mut words = Words::default();
        assert_eq!(words.modify(1, LOCK, 0, true), []);
        assert_eq!(words.exchange(1, LOCK, 1), [Acquire(1)]);
        assert_eq!(words.modify(1, LOCK, 0, true), [Release(1)]);
        assert_eq!(words.modify(1, LOCK, 0, true), [Renew]);
        assert_eq!(words.exchange(2, LOCK, 1), [Acquire(2)]);
        assert_eq!(words.modify(1, LOCK, 7, true), [Abandon(2), Renew]);
    }

    #[test]
    fn a_lock_that_was_stolen_before_its_release_was_seen_changes_hands() {
        let mut words = Words::default();
        assert_eq!(words.exchange(1, LOCK, 1), [Acquire(1)]);
        assert_eq!(words.exchange(2, LOCK, 1), [Wait(2)]); // took it, in truth: 1 had released it
        assert_eq!(words.exchange(1, LOCK, 1), [Release(1), Acquire(2)]);
        assert_eq!(words.exchange(2, LOCK, 0), [Release(2)]);
    }

    #[test]
    fn a_thread_that_was_taken_for_the_holder_and_still_tries_was_none() {
        let mut words = Words::default();
        assert_eq!(words.exchange(1, LOCK, 1), [Acquire(1)]); // failed, in truth: 2 was first
        assert_eq!(words.exchange(2, LOCK, 1), [Wait(2)]);
        assert_eq!(words.exchange(1, LOCK, 1), [Release(1), Acquire(2)]);
        assert_eq!(words.exchange(1, LOCK, 1), [Wait(1)]);
    }

    #[test]
    fn counts_and_other_values_are_no_locks() {
        let mut words = Words::default();
        assert_eq!(words.exchange(1, LOCK, 0), []);
        assert_eq!(words.exchange(1, LOCK, 17), []);
        assert_eq!(words.modify(1, LOCK, 1, false), []);
    }

    #[test]
    fn words_of_an_annotated_lock_are_forgotten() {
        let mut words = Words::default();
        words.exchange(1, LOCK, 1);
        words.exchange(2, LOCK + 4, 1);
        assert_eq!(words.forget(LOCK..LOCK + 4), [(LOCK, 1)]);
        assert_eq!(words.exchange(3, LOCK, 1), [Acquire(3)]);
        assert_eq!(words.exchange(3, LOCK + 4, 1), [Wait(3)]);
    }
}
