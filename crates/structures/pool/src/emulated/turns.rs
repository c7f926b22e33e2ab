//! Domains take turns inside of their accesses, on one thread: every order of steps is possible, and a seed repeats it.

use std::boxed::Box;
use std::cell::Cell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::adversary::Numbers;

std::thread_local! {
    // Of the program that runs on this thread now.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(core::ptr::null()) };
    // Stacks of programs that have ended, for those that begin: a search begins many.
    static STACKS: Cell<Vec<DefaultStack>> = const { Cell::new(Vec::new()) };
}

/// Lets another domain run, if domains take turns here: accesses do so by themselves.
pub fn hand_over() {
    let yielder = YIELDER.get();
    if !yielder.is_null() {
        // SAFETY: it is that of the program that runs: `step` sets it before and takes it back after, also after a panic, and
        // a yielder lives as long as its program.
        unsafe { &*yielder }.suspend(());
    }
}

/// Bytes of a program's stack.
const STACK_BYTES: usize = 1024 * 1024;

/// What one domain does.
pub type Program = Box<dyn FnOnce()>;

type Own = Rc<Cell<*const Yielder<(), ()>>>;

struct Turn {
    program: Coroutine<(), (), ()>,
    /// Its yielder, once it has begun.
    yielder: Own,
}

/// The programs of domains, each somewhere in it.
pub struct Turns(Vec<Option<Turn>>);

fn take_stack() -> DefaultStack {
    let mut stacks = STACKS.take();
    let stack = stacks.pop();
    STACKS.set(stacks);
    stack.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("memory for the stack of a program"))
}

impl Turn {
    /// Ends the program wherever it is, and keeps its stack.
    fn end(mut self) {
        self.program.force_unwind();
        let mut stacks = STACKS.take();
        stacks.push(self.program.into_stack());
        STACKS.set(stacks);
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.0.iter_mut().filter_map(Option::take).for_each(Turn::end);
    }
}

/// Puts the yielder back that was there, also if a program panics.
struct Restore(*const Yielder<(), ()>);

impl Drop for Restore {
    fn drop(&mut self) {
        YIELDER.set(self.0);
    }
}

impl Turns {
    /// All programs, at their beginning.
    ///
    /// # Panics
    /// If there is no memory for stacks.
    pub fn new(programs: Vec<Program>) -> Turns {
        let begin = |program: Program| {
            let stack = take_stack();
            let yielder: Own = Rc::new(Cell::new(core::ptr::null()));
            let own = Rc::clone(&yielder);
            let program = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
                own.set(yielder);
                YIELDER.set(yielder);
                program();
            });
            Some(Turn { program, yielder })
        };
        Turns(programs.into_iter().map(begin).collect())
    }

    /// The programs that have not ended.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, program)| program.is_some()).map(|(number, _)| number)
    }

    /// Lets a program go on to its next step.
    ///
    /// # Panics
    /// If the program panics, or has ended.
    pub fn step(&mut self, number: usize) {
        let slot = &mut self.0[number];
        let turn = slot.as_mut().expect("a program that has not ended");
        let restore = Restore(YIELDER.replace(turn.yielder.get()));
        let resumed = turn.program.resume(());
        drop(restore);
        if let CoroutineResult::Return(()) = resumed
            && let Some(turn) = slot.take()
        {
            turn.end();
        }
    }

    /// Lets programs run until all have ended or `limit` steps were made. The seed chooses who runs, and now and then who
    /// does not for a while, as a processor may be away in the middle of anything. Whether all have ended.
    pub fn run(&mut self, seed: u64, limit: u64) -> bool {
        let mut numbers = Numbers::new(seed);
        let mut away_until = vec![0; self.0.len()];
        let mut current = 0;
        for step in 0..limit {
            let drawn = numbers.draw();
            if drawn & 3 == 0 || self.0[current].is_none() || away_until[current] > step {
                let here = |number: &usize| away_until[*number] <= step;
                let count = self.running().filter(here).count();
                // If all are away, one comes back.
                let next = match count {
                    0 => self.running().next(),
                    _ => self.running().filter(here).nth((drawn >> 8) as usize % count),
                };
                let Some(next) = next else { return true };
                current = next;
            }
            if drawn >> 57 == 0 {
                away_until[current] = step + (drawn >> 32) % 128;
            }
            self.step(current);
        }
        self.running().next().is_none()
    }
}
