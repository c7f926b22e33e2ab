//! Virtual cores: a coroutine each, all of one thread.
//!
//! A core hands over after each of its operations, and before some of its accesses to atomics (`sync::turns`), so that
//! operations interleave inside. Who goes on then is drawn: the same seed gives the same run. The counter is told of each turn.
//!
//! The coroutines are crate `corosensei`'s, on which the tests' schedules stand, too (through shuttle): a core can hand over from
//! any depth of calls, which coroutines of the language cannot, and a switch is a few instructions.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, Yielder};
use transfer_marks as mark;

/// Enough for a build without optimisation.
const STACK_BYTES: usize = 256 << 10;
/// A core that hands over so often before its operation ends is taken to wait for ever.
const MOST_TURNS: u64 = 1_000_000;

/// How turns are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// What is drawn is drawn from this.
    pub seed: u64,
    /// Of 1,024 accesses to atomics so many hand over, on average.
    pub rate: u64,
}

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn { core: 0, work: mark::OPERATION, yielder: ptr::null() }) };
}

/// Whose turn it is, in which work, and how it hands over.
#[derive(Clone, Copy)]
struct Turn {
    core: usize,
    work: u64,
    yielder: *const Yielder<(), ()>,
}

/// The core whose turn it is begins another kind of work.
pub fn begin_work(work: u64) {
    let turn = TURN.get();
    TURN.set(Turn { work, ..turn });
    mark::turn(turn.core, work);
}

/// Lets another core go on; returns when it is this one's turn again.
#[inline(never)]
pub fn hand_over() {
    mark::nobody();
    let turn = TURN.get();
    // SAFETY: set where the core's coroutine began, which runs, and has not ended; no other has set it since this one goes on.
    if let Some(yielder) = unsafe { turn.yielder.as_ref() } {
        yielder.suspend(());
    }
    TURN.set(turn);
    mark::turn(turn.core, turn.work);
}

/// A seed of its own for each part of what one seed decides: without, the second part would draw what the first one drew.
/// One step of splitmix64.
pub fn stream(seed: u64, part: u64) -> u64 {
    let mut mixed = seed.wrapping_add((part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Runs `life` of each of so many cores. Whoever has ended stays so; all have when this returns.
///
/// # Errors
/// A core does not get on.
pub fn run(cores: usize, turns: Turns, life: impl Fn(usize) + Copy + 'static) -> Result<(), String> {
    let begin = |core: usize| -> Result<Coroutine<(), (), ()>, String> {
        let stack = DefaultStack::new(STACK_BYTES).map_err(|error| format!("a stack for core {core}: {error}"))?;
        let memory = stack.limit().get()..stack.base().get();
        Ok(Coroutine::with_stack(stack, move |yielder, ()| {
            mark::stack(memory.clone());
            TURN.set(Turn { core, work: mark::OPERATION, yielder });
            mark::turn(core, mark::OPERATION);
            life(core);
            mark::nobody();
        }))
    };
    let begin_all = (0..cores).map(|core| Ok((core, begin(core)?, 0)));
    let mut coroutines = begin_all.collect::<Result<Vec<_>, String>>()?;
    let mut draw = Draw(stream(turns.seed, 0) | 1);
    #[cfg(virtual_cores)]
    sync::turns::begin(stream(turns.seed, 1), turns.rate, hand_over);
    while !coroutines.is_empty() {
        let next = draw.below(coroutines.len());
        let (core, coroutine, turns_taken) = &mut coroutines[next];
        coroutine.resume(());
        *turns_taken += 1;
        if OPERATIONS_ENDED.take() {
            *turns_taken = 0;
        }
        if *turns_taken > MOST_TURNS {
            let why = format!("core {core} does not get on: it has handed over {MOST_TURNS} times in one operation");
            // To drop one that has not ended would be to unwind it.
            std::mem::forget(coroutines);
            return Err(why);
        }
        if coroutine.done() {
            drop(coroutines.swap_remove(next));
        }
    }
    #[cfg(virtual_cores)]
    sync::turns::end();
    Ok(())
}

thread_local! {
    /// An operation has ended since the last turn.
    static OPERATIONS_ENDED: Cell<bool> = const { Cell::new(false) };
}

/// The core whose turn it is has ended an operation, and hands over.
pub fn end_operation() {
    OPERATIONS_ENDED.set(true);
    hand_over();
}

/// xorshift64*
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    /// Regression: the counted phase drew what the warm-up had drawn, since its seed differed in a bit that got lost.
    #[test]
    fn parts_of_a_seed_and_seeds_that_differ_in_one_bit_draw_differently() {
        let first = |seed, part| super::Draw(super::stream(seed, part) | 1).below(1 << 30);
        for bit in 0..64 {
            assert_ne!(first(7, 0), first(7 ^ 1 << bit, 0), "bit {bit}");
        }
        assert_ne!(first(7, 0), first(7, 1));
    }

    use super::*;
    use std::cell::RefCell;

    fn order(cores: usize, seed: u64) -> Vec<usize> {
        let order: &RefCell<Vec<usize>> = Box::leak(Box::default());
        let life = move |core| {
            for _ in 0..3 {
                order.borrow_mut().push(core);
                end_operation();
            }
        };
        run(cores, Turns { seed, rate: 0 }, life).unwrap();
        order.take()
    }

    #[test]
    fn all_cores_run_and_a_seed_says_in_which_order() {
        let first = order(5, 1);
        assert_eq!(first, order(5, 1));
        assert_ne!(first, order(5, 2));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
        assert_ne!(first, sorted, "they take turns");
    }

    #[test]
    fn who_never_gets_on_is_named() {
        let life = |core: usize| {
            if core == 1 {
                loop {
                    hand_over();
                }
            }
        };
        let error = run(2, Turns { seed: 1, rate: 0 }, life).unwrap_err();
        assert!(error.starts_with("core 1 does not get on"), "{error}");
    }
}
