//! Locks that no annotation tells of: words that atomic instructions take from free to taken and back.
//!
//! After each atomic instruction the word's value is looked at. A word that a thread leaves as a known mark of "taken" was
//! acquired; what the holder does to it next releases it. This finds the locks of glibc's and Rust's kind (0 free, 1 taken,
//! 2 taken with waiters), spin locks that are swapped to 1 if what was there is looked at, and Rust's write locks; not readers beyond the first, which
//! change a count.
//!
//! Another thread may have changed the word between the instruction and the look, so a look alone says neither who took the
//! word nor who freed it. What a thread does next says so: one that tries to acquire does not hold, and one that has tried
//! and then frees the word did hold it. Which of the two an atomic instruction does is shown by what it mostly leaves,
//! unless its operands tell: to leave zero frees, and to expect zero, or to leave something else, tries. So a section
//! may become known only when it is over, and what it touched is not known then; but none is lost or invented.
//!
//! A lock of one byte is no futex, so its waiters park elsewhere: bit 0 says that it is taken, and bit 1 that somebody is parked
//! (parking_lot). Its holder tries to give it back by `cmpxchg`, and if that fails, by a plain store once it has found whom to
//! wake. It may also pass the lock on without a trace in the word. Whether the `cmpxchg` failed cannot be seen, nor who was
//! handed a lock, so both are concluded from a return: the first to where the thread was when it tried. Then the holder's
//! section is over, and so is the waiting of the thread that the lock was passed on to.
//!
//! A counting semaphore leaves the same marks: two that may be inside, then one, then none. But it is entered downwards,
//! and a lock upwards. Which way an instruction moves words is shown by what they held at the look before, mostly.

use std::collections::HashMap;

/// How a thread's instruction changed a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// By an instruction that acquires in some locks: `cmpxchg`, `bts`, `xchg` whose result is looked at.
    Exchange,
    /// By one of these that cannot release: it leaves what is not zero, or expects zero.
    Take,
    /// By one of these that leaves zero, and so cannot acquire.
    Clear,
    /// By `cmpxchg` that leaves zero, or fails: it cannot acquire, either.
    TryClear,
    /// By another atomic instruction.
    Modify,
    /// By a plain store.
    Store,
}

/// A word, and the instruction that changed it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The word's address.
    pub address: u64,
    /// The instruction's address.
    pub site: u64,
    /// How much the instruction changes.
    pub size_bytes: u8,
}

/// What an instruction turned out to mean, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The instruction's thread holds the word from now on.
    Acquire,
    /// The instruction's thread waits.
    Wait,
    /// A section of the instruction's thread ends.
    Release,
    /// The instruction's thread has held the word until now.
    Miss,
    /// A thread that was taken for the holder was none: it waits.
    Retract(u32),
    /// A thread's section is of no use: somebody else made the word into something new.
    Abandon(u32),
    /// The word was made into something else.
    Renew,
    /// The instruction's thread has given the word back, or failed to. If nothing else is heard of it until the thread returns to
    /// where it is, its section is over then ([`Words::returned`]).
    Doubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Nobody,
    Known(u32),
    /// The word is taken, by a thread that has tried or will be seen to have.
    Unknown,
}

#[derive(Debug)]
struct Word {
    holder: Holder,
    /// Threads that have tried since they were seen to hold the word.
    tried: Vec<u32>,
    /// Threads whose sections were over when others looked, and who have yet to be seen ending them.
    leaving: Vec<u32>,
    /// Threads whose sections were over when others were seen to hold the word: the holders had given it back, which was in
    /// doubt.
    ended: Vec<u32>,
    /// Whether it is in doubt that the known holder still holds it.
    is_in_doubt: bool,
    /// Whether the known holder's section has been reported already, as missed.
    is_told: bool,
    /// Whether it was seen to have threads parked: a lock of one byte.
    parks: bool,
    /// What it held at the last look.
    seen: u64,
    /// The instruction that took it last.
    taken_at: u64,
}

impl Word {
    /// A word that a thread has just been seen to take.
    fn taken_by(thread: u32, site: u64, value: u64) -> Self {
        let holder = Holder::Known(thread);
        let (tried, leaving, ended) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            holder,
            tried,
            leaving,
            ended,
            is_in_doubt: false,
            is_told: false,
            parks: false,
            seen: value,
            taken_at: site,
        }
    }
}

/// What an atomic instruction has done to words so far.
#[derive(Debug, Default)]
struct Habit {
    /// How much more often it left a word taken than free.
    balance: i64,
    /// How much more often a word was larger than at the look before than smaller.
    rises: i64,
}

/// What is known of words.
#[derive(Debug, Default)]
pub struct Words {
    /// All that were ever acquired, by address.
    found: HashMap<u64, Word>,
    /// Of the atomic instructions on them, by address.
    habits: HashMap<u64, Habit>,
    /// Of other words that they change.
    looks: Looks,
}

/// The bit of a lock of one byte that says that threads are parked.
const PARKED: u64 = 2;

/// Values that mean "taken by one": those of glibc, Rust's mutexes and most spin locks, and of Rust's write lock.
pub fn is_taken(value: u64) -> bool {
    matches!(value, 1 | 2 | 0x3fff_ffff)
}

/// Words that atomic instructions left, and that are not known to be locks, whose values are remembered.
const REMEMBERED: usize = 1 << 12;

/// What a few words held when they were looked at last.
#[derive(Debug)]
struct Looks(Box<[(u64, u64)]>);

impl Default for Looks {
    fn default() -> Self {
        Self(vec![(0, 0); REMEMBERED].into_boxed_slice())
    }
}

impl Looks {
    /// Notes a word's value, and gives that of the look before, if it is remembered.
    fn look(&mut self, address: u64, value: u64) -> Option<u64> {
        let place = ((address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REMEMBERED.ilog2())) as usize;
        let (before, seen) = std::mem::replace(&mut self.0[place], (address, value));
        (before == address).then_some(seen)
    }
}

impl Words {
    /// A thread's instruction at `site` left `value` at `address`.
    pub fn change(&mut self, thread: u32, change: Change, place: Place, value: u64) -> Vec<Step> {
        let Place { address, site, size_bytes } = place;
        let (is_byte, seen) = (size_bytes == 1 && value <= 1 | PARKED, value);
        let value = if is_byte { value & 1 } else { value };
        let Some(word) = self.found.get_mut(&address) else {
            let before = if change == Change::Store { None } else { self.looks.look(address, seen) };
            if !matches!(change, Change::Exchange | Change::Take) || !is_taken(value) {
                return Vec::new();
            }
            self.found.insert(address, Word::taken_by(thread, site, seen));
            if change == Change::Exchange {
                let habit = self.habits.entry(site).or_default();
                habit.tries(value);
                habit.rises += before.map_or(0, |before| i64::from(seen > before) - i64::from(seen < before));
            }
            return vec![Step::Acquire];
        };
        let before = std::mem::replace(&mut word.seen, seen);
        let (had_parked, has_parked) = (before & PARKED != 0, is_byte && seen & PARKED != 0);
        word.parks |= has_parked;
        let tries = match change {
            Change::Take => true,
            Change::Clear | Change::TryClear | Change::Store => false,
            Change::Exchange | Change::Modify => {
                let habit = self.habits.entry(site).or_default();
                habit.rises += i64::from(seen > before) - i64::from(seen < before);
                habit.tries(value)
            }
        };
        let takes = tries && change != Change::Modify;
        let change = if change == Change::Exchange && !tries { Change::TryClear } else { change };
        if change == Change::Modify && (tries && value != 0 || word.parks) {
            return Vec::new();
        }
        let mut steps = Vec::new();
        if remove(&mut word.ended, thread) {
            steps.push(Step::Release);
            if !takes {
                return steps;
            }
        }
        if remove(&mut word.leaving, thread) {
            if change == Change::TryClear && has_parked {
                word.ended.push(thread);
                return vec![Step::Doubt];
            }
            if !takes {
                return vec![Step::Release];
            }
            steps.push(Step::Retract(thread));
        } else if takes && word.is_in_doubt && word.holder == Holder::Known(thread) {
            word.holder = if value == 0 { Holder::Nobody } else { Holder::Unknown };
            steps.extend(word.end());
        }
        steps.extend(match change {
            Change::Store if word.parks && is_byte && word.holder == Holder::Unknown => {
                word.tried.push(thread); // it was handed the lock, and no one saw it ask
                word.free(thread, value)
            }
            Change::Store if !word.may_be_held_by(thread) => {
                let holder = if let Holder::Known(holder) = word.holder { Some(Step::Abandon(holder)) } else { None };
                self.found.remove(&address);
                holder.into_iter().chain([Step::Renew]).collect()
            }
            Change::TryClear if has_parked && word.holder == Holder::Known(thread) => {
                word.is_in_doubt = true;
                vec![Step::Doubt]
            }
            Change::TryClear if has_parked => word.own_up(thread),
            Change::TryClear if word.parks && word.holder == Holder::Unknown && !word.may_be_held_by(thread) => {
                word.tried.push(thread);
                word.free(thread, value)
            }
            // It has set that bit: who takes a word leaves the bit as it was.
            _ if takes && has_parked && !had_parked && word.holder != Holder::Known(thread) => word.wait(thread),
            _ if value != 0 && !is_taken(value) => word.set_to_more(thread, change),
            _ if takes => {
                word.taken_at = site;
                word.try_to_take(thread, value)
            }
            _ => word.free(thread, value),
        });
        steps
    }

    /// A thread has returned to where it was when it tried to take or to give back the word, as [`Step::Wait`] or
    /// [`Step::Doubt`] said.
    pub fn returned(&mut self, thread: u32, address: u64) -> Vec<Step> {
        let Some(word) = self.found.get_mut(&address).filter(|word| word.parks) else { return Vec::new() };
        if remove(&mut word.ended, thread) {
            return vec![Step::Release];
        }
        if word.is_in_doubt && word.holder == Holder::Known(thread) {
            word.holder = Holder::Unknown;
            return word.end().into_iter().collect();
        }
        if !word.tried.contains(&thread) {
            return Vec::new();
        }
        match word.holder {
            Holder::Known(other) if word.is_in_doubt => word.end_later(other),
            Holder::Unknown => {}
            Holder::Known(_) | Holder::Nobody => return Vec::new(),
        }
        remove(&mut word.tried, thread);
        word.holder = Holder::Known(thread);
        vec![Step::Acquire]
    }

    /// The instruction that took the word last.
    pub fn taken_at(&self, address: u64) -> Option<u64> {
        self.found.get(&address).map(|word| word.taken_at)
    }

    /// Whether what takes a word at `site` mostly makes it smaller, as who enters a counting semaphore does, or gives a
    /// reference back.
    pub fn counts_down(&self, site: u64) -> bool {
        self.habits.get(&site).is_some_and(|habit| habit.rises < 0)
    }

    /// Forgets the words of a lock that is annotated after all; gives those that are held, with their holders.
    pub fn forget(&mut self, range: std::ops::Range<u64>) -> Vec<(u64, u32)> {
        let mut held = Vec::new();
        self.found.retain(|address, word| {
            let forgotten = range.contains(address);
            if let (true, Holder::Known(holder)) = (forgotten, word.holder) {
                held.push((*address, holder));
            }
            !forgotten
        });
        held
    }
}

impl Word {
    /// Whether the thread holds the word, as far as is known, or may do so.
    fn may_be_held_by(&self, thread: u32) -> bool {
        self.holder == Holder::Known(thread) || self.tried.contains(&thread)
    }

    /// A thread tried to take the word; the value is that of the look.
    fn try_to_take(&mut self, thread: u32, value: u64) -> Vec<Step> {
        let is_free = value == 0; // it failed, and the holder has left in the meantime
        match self.holder {
            Holder::Nobody if is_free && self.parks => self.wait(thread),
            Holder::Nobody if is_free => Vec::new(),
            Holder::Nobody => {
                remove(&mut self.tried, thread);
                self.holder = Holder::Known(thread);
                vec![Step::Acquire]
            }
            // No one else is in sight: a mark that the holder itself set.
            Holder::Known(holder) if holder == thread && self.tried.is_empty() && !is_free => Vec::new(),
            Holder::Known(holder) if holder == thread => {
                self.tried.push(thread);
                self.holder = if is_free { Holder::Nobody } else { Holder::Unknown };
                vec![Step::Retract(thread)]
            }
            Holder::Known(holder) => {
                if is_free {
                    self.holder = Holder::Nobody;
                    if self.is_in_doubt {
                        self.end_later(holder);
                    } else {
                        self.leaving.push(holder);
                    }
                }
                self.wait(thread)
            }
            Holder::Unknown => {
                if is_free {
                    self.holder = Holder::Nobody;
                }
                self.wait(thread)
            }
        }
    }

    /// A thread tries to give the word back, of which it was not known to hold it.
    fn own_up(&mut self, thread: u32) -> Vec<Step> {
        if !self.may_be_held_by(thread) && self.holder != Holder::Unknown {
            return Vec::new();
        }
        remove(&mut self.tried, thread);
        let before = std::mem::replace(&mut self.holder, Holder::Known(thread));
        let steps = self.not_held_by(before);
        (self.is_in_doubt, self.is_told) = (true, true);
        steps.into_iter().chain([Step::Miss, Step::Doubt]).collect()
    }

    /// The known holder's section is over, which its own thread shows.
    fn end(&mut self) -> Option<Step> {
        self.is_in_doubt = false;
        (!std::mem::take(&mut self.is_told)).then_some(Step::Release)
    }

    /// The section of the known holder, which was in doubt, turns out to be over: its thread has yet to end it.
    fn end_later(&mut self, holder: u32) {
        self.is_in_doubt = false;
        if !std::mem::take(&mut self.is_told) {
            self.ended.push(holder);
        }
    }

    /// Another thread turns out to hold the word, or to have held it.
    fn not_held_by(&mut self, before: Holder) -> Option<Step> {
        let Holder::Known(other) = before else { return None };
        if self.is_in_doubt {
            self.end_later(other);
            return None;
        }
        self.tried.push(other);
        Some(Step::Retract(other))
    }

    fn wait(&mut self, thread: u32) -> Vec<Step> {
        if self.tried.contains(&thread) {
            return Vec::new();
        }
        self.tried.push(thread);
        vec![Step::Wait]
    }

    /// A thread's instruction left neither of the marks: what it holds, if it does, is no longer one thread's.
    fn set_to_more(&mut self, thread: u32, change: Change) -> Vec<Step> {
        if matches!(change, Change::Modify | Change::Store) || self.holder != Holder::Known(thread) {
            return Vec::new();
        }
        self.holder = Holder::Nobody;
        vec![Step::Release]
    }

    /// A thread freed the word; another may have taken it when it was looked at.
    fn free(&mut self, thread: u32, value: u64) -> Vec<Step> {
        if !self.may_be_held_by(thread) {
            return Vec::new();
        }
        let before = self.holder;
        self.holder = if is_taken(value) { Holder::Unknown } else { Holder::Nobody };
        if before == Holder::Known(thread) {
            return self.end().into_iter().collect();
        }
        remove(&mut self.tried, thread);
        self.not_held_by(before).into_iter().chain([Step::Miss]).collect()
    }
}

impl Habit {
    /// Whether the instruction tries to take words, rather than frees them, after one more look, of which the value is given.
    fn tries(&mut self, value: u64) -> bool {
        if value == 0 || is_taken(value) {
            self.balance += if value == 0 { -1 } else { 1 };
        }
        if self.balance == 0 { value == 0 } else { self.balance > 0 } // 0: as before this look
    }
}

/// Removes a thread; whether it was there.
fn remove(threads: &mut Vec<u32>, thread: u32) -> bool {
    let index = threads.iter().position(|&other| other == thread);
    index.map(|index| threads.remove(index)).is_some()
}

#[cfg(test)]
mod tests;
