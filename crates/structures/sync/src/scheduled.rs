//! A choice before each access to an atomic ([`crate::interposed`]): go on, or let another thread run. Only built under
//! `cfg(shuttle)`.
//!
//! loom explores every execution of a model of a few accesses, weak memory included; this runs one execution of a
//! program of many thousands, whatever its size, on memory that is as it is in ordinary builds, and the same again from
//! the same seed. Accesses are sequentially consistent.

use std::cell::{Cell, RefCell};

use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::overtaking::{Access, Overtaking};

/// Enough for a thread in an unoptimised build.
const STACK_BYTES: usize = 1 << 20;
/// After this many switches threads are taken to wait for each other forever.
const MOST_SWITCHES: usize = 1_000_000;

/// Chooses at each access whether the thread goes on.
pub(crate) enum Chooser {
    Drawn(Choice),
    Overtaking(Overtaking),
}

pub(crate) struct Choice {
    state: u64,
    switches_per_1024: u64,
}

impl Chooser {
    /// Nothing if this goes on forever.
    fn is_switch(&mut self, access: Access) -> Option<bool> {
        match self {
            Chooser::Drawn(choice) => Some(choice.is_switch()),
            Chooser::Overtaking(overtaking) => overtaking.is_switch(access),
        }
    }
}

impl Choice {
    /// xorshift64*
    fn is_switch(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 54 < self.switches_per_1024
    }
}

std::thread_local! {
    // All threads of an execution are coroutines on the thread that runs it.
    static CHOOSER: RefCell<Option<Chooser>> = const { RefCell::new(None) };
    /// How many accesses are left, and what comes then.
    static ENDING: Cell<Option<(u64, fn() -> !)>> = const { Cell::new(None) };
    static ACCESSES: Cell<u64> = const { Cell::new(0) };
}

/// Runs `body` once for each of these seeds; its threads ([`shuttle::thread`]) take turns: at each access to an atomic of
/// this crate, by the chance in 1,024 that stands with its seed, another runs. The same seed gives the same execution,
/// if memory whose addresses are hashed or compared lies at the same ones (`percpu::HeapRegion`). All are one run of shuttle's, which
/// keeps the stacks of coroutines: to make them takes as long as a short execution.
///
/// # Panics
/// If a thread does, or if threads wait for each other forever.
pub fn run(executions: impl Iterator<Item = (u64, u64)> + 'static, body: impl Fn() + Send + Sync + 'static) {
    execute(Drawn { executions, scheduler: RandomScheduler::new_from_seed(0, 0) }, body);
}

/// Lets the threads of each execution run as drawn by its seed.
struct Drawn<I> {
    executions: I,
    scheduler: RandomScheduler,
}

impl<I: Iterator<Item = (u64, u64)>> Scheduler for Drawn<I> {
    fn new_execution(&mut self) -> Option<Schedule> {
        // Says that the last one has passed.
        self.scheduler.new_execution();
        end();
        let (seed, switches_per_1024) = self.executions.next()?;
        begin(Chooser::Drawn(Choice { state: seed.wrapping_mul(2).wrapping_add(1), switches_per_1024 }));
        self.scheduler = RandomScheduler::new_from_seed(seed, 1);
        self.scheduler.new_execution()
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        self.scheduler.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.scheduler.next_u64()
    }
}

pub(crate) fn execute(scheduler: impl Scheduler + 'static, body: impl Fn() + Send + Sync + 'static) {
    let _ended = Ended;
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(MOST_SWITCHES);
    config.failure_persistence = FailurePersistence::None;
    Runner::new(scheduler, config).run(body);
}

/// From now on this one chooses.
pub(crate) fn begin(chooser: Chooser) {
    CHOOSER.with(|slot| *slot.borrow_mut() = Some(chooser));
}

/// Who chose in the execution that has ended. Between executions no one does.
pub(crate) fn end() -> Option<Chooser> {
    CHOOSER.with(|slot| slot.borrow_mut().take())
}

/// No one chooses once executions are over, by a panic, too.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        end();
    }
}

/// With what orders the threads of this execution, if one is overtaken in it.
pub(crate) fn overtaking<T>(with: impl FnOnce(&mut Overtaking) -> T) -> Option<T> {
    CHOOSER.with(|slot| match slot.borrow_mut().as_mut() {
        Some(Chooser::Overtaking(overtaking)) => Some(with(overtaking)),
        _ => None,
    })
}

/// Calls `end` after this many accesses of this thread to atomics and stores to [`OwnWord`](crate::OwnWord)s, before
/// the next: where a process may die.
pub fn end_after(accesses: u64, end: fn() -> !) {
    ENDING.with(|ending| ending.set(Some((accesses, end))));
}

/// Ends no process from now on.
pub fn end_never() {
    ENDING.with(|ending| ending.set(None));
}

/// How many accesses this thread has made: see [`end_after`].
pub fn accesses() -> u64 {
    ACCESSES.with(Cell::get)
}

/// One access more.
pub(crate) fn pass() {
    ACCESSES.with(|accesses| accesses.set(accesses.get() + 1));
    ENDING.with(|ending| match ending.get() {
        Some((0, end)) => end(),
        Some((left, end)) => ending.set(Some((left - 1, end))),
        None => {}
    });
}

/// Lets another thread run: of the execution, or, where there is none, of the system.
pub fn yield_now() {
    match CHOOSER.with(|chooser| chooser.borrow().is_some()) {
        true => shuttle::thread::yield_now(),
        false => std::thread::yield_now(),
    }
}

/// Before an access to what is no atomic, and several threads access all the same: another may run.
pub fn access(address: usize, is_change: bool) {
    pass();
    let access = (address, is_change);
    let is_switch =
        CHOOSER.with(|chooser| chooser.borrow_mut().as_mut().map_or(Some(false), |it| it.is_switch(access)));
    if is_switch.unwrap_or_else(|| std::thread::panicking() || panic!("threads go on forever")) {
        shuttle::thread::yield_now();
    }
}
