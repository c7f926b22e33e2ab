//! What is counted: whose turn it is, where each core's calls are, and each transfer under those who took part.

use std::collections::HashMap;
use std::ops::Range;

use qemu_plugin::call_tree::CallTree;
use qemu_plugin::shadow_stack::ShadowStack;
use transfers::coherence::{Access, Caches, LINE_BYTES, Touch, Way};

use crate::mark::{Mark, RATE_OF, WORKS};

/// Stacks that are known at a time.
const CALL_TREE_CAPACITY: usize = 1 << 18;
/// No core's stack is longer.
const STACK_BYTES: u64 = 1 << 20;
const RECENT: usize = 1 << 11;

/// A place of a program: an instruction, and the stack that led there (a node of the call tree).
pub type Place = (u64, u32);

/// Transfers that have all this in common are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Whether it was an upgrade.
    pub is_upgrade: bool,
    /// In which work the core was that got the line.
    pub work: u8,
    /// In which work the other core was when it touched the line.
    pub work_of_cause: u8,
    /// Where the core was.
    pub place: u32,
    /// Where the other one was.
    pub cause: u32,
}

/// What is counted of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Where the first of them was.
    pub address: u64,
    /// How many there were.
    pub transfers: u64,
    /// How many copies others lost.
    pub invalidated: u64,
}

/// What is counted of a kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Instructions.
    pub instructions: u64,
    /// Accesses to memory.
    pub accesses: u64,
}

/// A number for each place.
struct Places {
    numbers: HashMap<Place, u32>,
    places: Vec<Place>,
    recent: Box<[(Place, u32)]>,
}

impl Places {
    fn new() -> Places {
        Places { numbers: HashMap::new(), places: Vec::new(), recent: vec![((0, 0), 0); RECENT].into_boxed_slice() }
    }

    #[inline]
    fn number(&mut self, place: Place) -> u32 {
        let slot = (place.0 ^ u64::from(place.1).wrapping_mul(0x9e37_79b1)) as usize % RECENT;
        if self.recent[slot].0 == place {
            return self.recent[slot].1;
        }
        let next = self.places.len() as u32;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        self.recent[slot] = (place, number);
        number
    }
}

/// A core's stack: the calls that it is in, and where they lie.
struct Stack {
    calls: ShadowStack,
    memory: Range<u64>,
}

/// Everything that is known of a run.
pub struct Counter {
    caches: Caches,
    stacks: Vec<Stack>,
    /// Memory of the stack of the core whose turn comes next.
    next_stack: Range<u64>,
    /// All stacks.
    pub tree: CallTree,
    places: Places,
    /// Core and work.
    turn: Option<(u8, u8)>,
    is_counting: bool,
    /// The program said that nothing follows.
    pub has_ended: bool,
    /// Transfers, by those who took part.
    pub transfers: HashMap<Key, Counted>,
    /// By kind of work.
    pub works: [Work; WORKS],
    own_memory: Vec<Range<u64>>,
    /// Of [`RATE_OF`] accesses this many are followed by a signal.
    interruption_rate: u64,
    /// Which they are is drawn from this (xorshift64*).
    interruption_draw: u64,
}

impl Counter {
    /// Before the program has said anything.
    pub fn new() -> Counter {
        Counter {
            caches: Caches::new(1),
            stacks: Vec::new(),
            next_stack: 0..0,
            tree: CallTree::new(CALL_TREE_CAPACITY),
            places: Places::new(),
            turn: None,
            is_counting: false,
            has_ended: false,
            transfers: HashMap::new(),
            works: [Work::default(); WORKS],
            own_memory: Vec::new(),
            interruption_rate: 0,
            interruption_draw: 1,
        }
    }

    /// The cores' caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The place of that number.
    pub fn place(&self, number: u32) -> Option<Place> {
        self.places.places.get(number as usize).copied()
    }

    /// How many cores there are.
    pub fn core_count(&self) -> usize {
        self.stacks.len()
    }

    /// The program says something. Tells whether it is some core's turn now.
    pub fn mark(&mut self, mark: Mark) -> bool {
        match mark {
            // Of interest where code is translated.
            Mark::OwnCode(_) | Mark::NeverInterrupted(_) => {}
            Mark::Interrupt { seed, rate } => (self.interruption_draw, self.interruption_rate) = (seed | 1, rate),
            Mark::OwnMemory(range) => self.own_memory.push(range),
            Mark::Cores(count) => {
                self.caches = Caches::new(count);
                self.stacks =
                    (0..count).map(|_| Stack { calls: ShadowStack::new(STACK_BYTES), memory: 0..0 }).collect();
            }
            Mark::Turn { core, work } => {
                self.turn = (usize::from(core) < self.stacks.len()).then_some((core, work));
                if let (Some(stack), false) = (self.stacks.get_mut(usize::from(core)), self.next_stack.is_empty()) {
                    stack.memory = std::mem::take(&mut self.next_stack);
                    stack.calls.clear();
                }
            }
            Mark::Stack(range) => self.next_stack = range,
            Mark::Nobody => self.turn = None,
            Mark::Count => {
                self.is_counting = true;
                self.caches.count_by_line();
            }
            Mark::End => {
                (self.turn, self.is_counting) = (None, false);
                self.has_ended = true;
            }
        }
        self.turn.is_some()
    }

    /// This many instructions are about to be carried out.
    pub fn instructions(&mut self, count: u64) {
        if let (Some((_, work)), true) = (self.turn, self.is_counting) {
            self.works[usize::from(work)].instructions += count;
        }
    }

    /// An access of the instruction at `code` to this many bytes.
    pub fn access(&mut self, code: u64, address: u64, size_bytes: u64, access: Access) {
        let Some((core, work)) = self.turn else { return };
        if self.is_counting {
            self.works[usize::from(work)].accesses += 1;
        }
        let stack = &self.stacks[usize::from(core)];
        // No other core touches it, and most accesses go there.
        if stack.memory.contains(&address) || self.own_memory.iter().any(|range| range.contains(&address)) {
            return;
        }
        let who = Touch { place: self.places.number((code, stack.calls.node())), core, work };
        let (first, last) = (address / LINE_BYTES, (address + size_bytes.max(1) - 1) / LINE_BYTES);
        for line in first..=last {
            let Some(transfer) = self.caches.access(line, access, who) else { continue };
            if !self.is_counting {
                continue;
            }
            let key = Key {
                is_upgrade: transfer.way == Way::Upgrade,
                work,
                work_of_cause: transfer.cause.work,
                place: who.place,
                cause: transfer.cause.place,
            };
            let none = Counted { address: address.max(line * LINE_BYTES), transfers: 0, invalidated: 0 };
            let counted = self.transfers.entry(key).or_insert(none);
            counted.transfers += 1;
            counted.invalidated += u64::from(transfer.invalidated);
        }
    }

    /// Whether a signal follows the present access.
    #[inline]
    pub fn is_interrupted(&mut self) -> bool {
        if self.interruption_rate == 0 {
            return false;
        }
        self.interruption_draw ^= self.interruption_draw >> 12;
        self.interruption_draw ^= self.interruption_draw << 25;
        self.interruption_draw ^= self.interruption_draw >> 27;
        let drawn = self.interruption_draw.wrapping_mul(0x2545_F491_4F6C_DD1D);
        drawn >> (u64::BITS - RATE_OF.trailing_zeros()) < self.interruption_rate
    }

    /// The call at `code` stored its return address at `stack_pointer`.
    pub fn call(&mut self, code: u64, stack_pointer: u64) {
        if let Some((core, _)) = self.turn {
            self.stacks[usize::from(core)].calls.call(&mut self.tree, stack_pointer, code, false);
        }
    }

    /// A return loaded its address from `stack_pointer`.
    pub fn ret(&mut self, stack_pointer: u64) {
        if let Some((core, _)) = self.turn {
            self.stacks[usize::from(core)].calls.ret(stack_pointer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(counter: &mut Counter, core: u8, work: u8) {
        counter.mark(Mark::Turn { core, work });
    }

    #[test]
    fn a_transfer_is_counted_under_those_who_took_part() {
        let mut counter = Counter::new();
        counter.access(1, 0x1000, 8, Access::Write);
        assert_eq!(counter.caches().line_count(), 0, "no one's turn yet");
        counter.mark(Mark::Cores(2));
        turn(&mut counter, 0, 1);
        counter.access(0x40, 0x1000, 8, Access::Write);
        counter.mark(Mark::Count);
        turn(&mut counter, 1, 0);
        counter.call(0x80, 0x9000);
        counter.access(0x50, 0x1008, 8, Access::Read);
        counter.ret(0x9000);
        counter.access(0x60, 0x1008, 8, Access::Write);
        counter.mark(Mark::End);
        turn(&mut counter, 0, 0);
        let mut rows: Vec<_> = counter.transfers.iter().collect();
        rows.sort_by_key(|(key, _)| **key);
        let [(miss, _), (upgrade, counted)] = rows[..] else { panic!("{rows:?}") };
        assert_eq!((miss.is_upgrade, miss.work, miss.work_of_cause), (false, 0, 1));
        let (code, node) = counter.place(miss.place).unwrap();
        assert_eq!((code, counter.tree.node(node).site), (0x50, 0x80));
        assert_eq!(counter.place(miss.cause), Some((0x40, 0)));
        assert!(upgrade.is_upgrade);
        assert_eq!(*counted, Counted { address: 0x1008, transfers: 1, invalidated: 1 });
        assert_eq!(counter.works[0].accesses, 2);
    }

    #[test]
    fn an_access_beyond_a_line_is_one_of_two_lines_and_own_memory_is_none() {
        let mut counter = Counter::new();
        counter.mark(Mark::Cores(2));
        counter.mark(Mark::OwnMemory(0x2000..0x2040));
        counter.mark(Mark::Count);
        for core in [0, 1] {
            turn(&mut counter, core, 0);
            counter.access(0x10, 0x103c, 8, Access::Write);
            counter.access(0x10, 0x2000, 8, Access::Write);
        }
        assert_eq!(counter.transfers.values().map(|counted| counted.transfers).sum::<u64>(), 2);
        assert_eq!(counter.caches().transfers_by_line().count(), 2);
    }

    #[test]
    fn a_stack_is_its_cores_own() {
        let mut counter = Counter::new();
        counter.mark(Mark::Cores(2));
        counter.mark(Mark::Count);
        for core in [0, 1] {
            counter.mark(Mark::Stack(0x8000..0x9000));
            turn(&mut counter, core, 0);
            counter.access(1, 0x8ff8, 8, Access::Write);
            counter.access(1, 0x9000, 8, Access::Write);
        }
        assert_eq!((counter.caches().line_count(), counter.works[0].accesses), (1, 4));
        assert_eq!(counter.transfers.len(), 1);
    }

    #[test]
    fn as_many_accesses_are_interrupted_as_were_asked_for_and_the_seed_says_which() {
        let interrupted = |seed, rate| {
            let mut counter = Counter::new();
            counter.mark(Mark::Interrupt { seed, rate });
            (0..100_000).filter(|_| counter.is_interrupted()).collect::<Vec<_>>()
        };
        assert_eq!(interrupted(1, 0).len(), 0);
        assert_eq!(interrupted(1, RATE_OF).len(), 100_000);
        assert!((2_800..3_500).contains(&interrupted(1, 32).len()), "{}", interrupted(1, 32).len());
        assert_eq!(interrupted(1, 32), interrupted(1, 32));
        assert_ne!(interrupted(1, 32), interrupted(4, 32));
    }

    #[test]
    fn a_core_that_there_is_not_has_no_turn() {
        let mut counter = Counter::new();
        counter.mark(Mark::Cores(2));
        assert!(!counter.mark(Mark::Turn { core: 2, work: 0 }));
        counter.access(1, 0x1000, 8, Access::Write);
        assert_eq!(counter.caches().line_count(), 0);
    }
}
