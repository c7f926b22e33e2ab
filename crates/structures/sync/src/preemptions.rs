//! Executions of a few calls in which one thread is overtaken by the others at one of its accesses, wherever that matters,
//! and some in which it gets past them again. Only built under `cfg(shuttle)`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::overtaking::{Access, Overtaking};
use crate::scheduled::{Chooser, Choosing, execute, overtaking};

/// Who has looked at the same word so often waits: to be overtaken before its next look shows nothing new.
const LOOKS_OF_A_WAIT: usize = 8;

/// Runs `body` again and again; its threads meet ([`meet`]). From there on one thread goes alone up to one of its accesses,
/// before which the others overtake it, one after the other, as far as they get; where all of them wait they try again
/// before each access that it makes. So for each thread, and for each of its accesses to what the others access, too, if
/// one of them changes it: to be overtaken elsewhere shows nothing else of atomics. (Of what is not atomic, and of the
/// [`OwnWord`](crate::OwnWord)s of a core, it may.) After each of these executions there is one in
/// which the others stop before one of such accesses of theirs, drawn by the seed, and the first goes on to its end.
///
/// The first kind shows what goes wrong because a call takes for granted what it saw one access ago (one preemption),
/// the second what two calls must not do at the same time (Musuvathi and Qadeer, PLDI 2007).
/// Returns how many executions there were. Atomics that lie elsewhere in the next execution are not recognised there.
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
        let mut others_touch = Touched::of(&others);
        let mut tried = HashSet::new();
        let is_next = |at: &usize, tried: &HashSet<usize>, others: &Touched| {
            !tried.contains(at) && (*at == 0 || (others.matters(slow[*at]) && !is_waiting(&slow[..=*at])))
        };
        // What the others access depends on where they overtake.
        while let Some(at) = (0..slow.len()).find(|at| is_next(at, &tried, &others_touch)) {
            tried.insert(at);
            let (_, [overtaken, others]) = run([at, usize::MAX]);
            others_touch.add(&others);
            // What it still accesses, overtaken here or not.
            let mut still = Touched::of(&slow[at..]);
            still.add(overtaken.get(at..).unwrap_or_default());
            let stops: Vec<usize> = (1..others.len()).filter(|stop| still.matters(others[*stop])).collect();
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

/// Whether a thread looks at one word again and again, and at nothing else.
fn is_waiting(accesses: &[Access]) -> bool {
    let looks = accesses.last_chunk::<LOOKS_OF_A_WAIT>();
    looks.is_some_and(|looks| looks.iter().all(|look| *look == looks[0] && !look.1))
}

/// Addresses that were accessed, and whether one of the accesses may have changed what is there.
struct Touched(HashMap<usize, bool>);

impl Touched {
    fn of(accesses: &[Access]) -> Touched {
        let mut touched = Touched(HashMap::new());
        touched.add(accesses);
        touched
    }

    fn add(&mut self, accesses: &[Access]) {
        for (address, is_change) in accesses {
            *self.0.entry(*address).or_default() |= is_change;
        }
    }

    /// Whether it makes a difference if an access comes before or after these.
    fn matters(&self, (address, is_change): Access) -> bool {
        self.0.get(&address).is_some_and(|changes| is_change || *changes)
    }
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
