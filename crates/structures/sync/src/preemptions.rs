//! All executions of a few calls in which one thread is overtaken by the others at one of its accesses, and some in which it
//! gets past them again. Only built under `cfg(shuttle)`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::overtaking::{Access, Overtaking};
use crate::scheduled::{Chooser, Choosing, execute, overtaking};

/// Runs `body` again and again; its threads meet ([`meet`]). From there on one thread goes alone up to one of its accesses,
/// before which the others overtake it, one after the other, as far as they get; where they wait for it they try again
/// before each access that it makes. So for each thread, and for each of its accesses to what the others access, too, if
/// one of them changes it: to be overtaken elsewhere makes no difference. After each of these executions there is one in
/// which the others stop before one of such accesses of theirs, drawn by the seed, and the first goes on to its end.
///
/// The first kind shows whatever goes wrong because a call takes for granted what it saw one access ago (one preemption),
/// the second what two calls must not do at the same time (Musuvathi and Qadeer, PLDI 2007).
/// Returns how many executions there were. Memory should lie at the same addresses in each.
///
/// # Panics
/// If a thread does, or if threads go on or wait for each other for ever.
pub fn overtake(seed: u64, body: impl Fn() + Send + Sync + 'static) -> u64 {
    let body = Arc::new(body);
    let mut executions = 0;
    let mut random = seed.wrapping_mul(2).wrapping_add(1);
    for place in 0.. {
        let mut run = |turns| {
            let body = Arc::clone(&body);
            let _chosen = Choosing::begin(Chooser::Overtaking(Overtaking::new(place, turns)));
            execute(Scheduled, move || body());
            executions += 1;
            overtaking(|overtaking| overtaking.had()).expect("as was begun")
        };
        let (threads, [slow, others]) = run([usize::MAX; 2]);
        let (slow_touches, mut others_touch) = (touched(&slow), touched(&others));
        let mut tried = HashSet::new();
        let is_next = |at: &usize, tried: &HashSet<usize>, others: &Touched| {
            !tried.contains(at) && (*at == 0 || matters(slow[*at], others))
        };
        // What the others access depends on where they overtake.
        while let Some(at) = (0..slow.len()).find(|at| is_next(at, &tried, &others_touch)) {
            tried.insert(at);
            let (_, [_, others]) = run([at, usize::MAX]);
            for (place, is_change) in touched(&others) {
                *others_touch.entry(place).or_default() |= is_change;
            }
            let stops: Vec<usize> = (1..others.len()).filter(|stop| matters(others[*stop], &slow_touches)).collect();
            if !stops.is_empty() {
                random = xorshift(random);
                run([at, stops[random as usize % stops.len()]]);
            }
        }
        if place + 1 >= threads {
            break;
        }
    }
    executions
}

/// Words that were accessed, and whether one of the accesses may have changed them.
type Touched = HashMap<usize, bool>;

fn touched(accesses: &[Access]) -> Touched {
    let mut touched = Touched::new();
    for (place, is_change) in accesses {
        *touched.entry(*place).or_default() |= is_change;
    }
    touched
}

fn matters((place, is_change): Access, others: &Touched) -> bool {
    others.get(&place).is_some_and(|other_changes| is_change || *other_changes)
}

fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// This thread is one of so many that may overtake each other from now on: all say so before the first goes on.
pub fn meet(count: usize) {
    let me = shuttle::current::me();
    if overtaking(|overtaking| overtaking.meet(me, count)).is_some() {
        shuttle::thread::yield_now();
    }
}

/// Asks the [`Overtaking`] of the execution.
struct Scheduled;

impl Scheduler for Scheduled {
    fn new_execution(&mut self) -> Option<Schedule> {
        overtaking(|overtaking| overtaking.is_new()).unwrap_or(false).then(|| Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let able: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        overtaking(|overtaking| overtaking.next(&able, current, is_yielding))
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}
