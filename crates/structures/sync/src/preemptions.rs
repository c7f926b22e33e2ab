//! Executions of a few calls in which one thread is overtaken by the others at one of its accesses, wherever that matters,
//! and some in which it gets past them again. Only built under `cfg(shuttle)`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

use crate::overtaking::{Access, Overtaking};
use crate::scheduled::{Chooser, begin, end, execute, overtaking};

/// Who has looked at the same word so often waits: to be overtaken before its next look shows nothing new.
const LOOKS_OF_A_WAIT: usize = 8;

/// For each of these seeds, runs `body` again and again; its threads meet ([`meet`]). From there on one thread goes alone up to one of its accesses,
/// before which the others overtake it, one after the other, as far as they get; where all of them wait they try again
/// before each access that it makes. So for each thread, and for each of its accesses to what the others access, too, if
/// one of them changes it: to be overtaken elsewhere shows nothing else of atomics. (Of what is not atomic, and of the
/// [`OwnWord`](crate::OwnWord)s of a core, it may.) After each of these executions there is one in
/// which the others stop before one of such accesses of theirs, drawn by the seed, or after one to what the first is about to
/// access, and the first goes on to its end.
///
/// The first kind shows what goes wrong because a call takes for granted what it saw one access ago (one preemption),
/// the second what two calls must not do at the same time (Musuvathi and Qadeer, PLDI 2007).
/// Returns how many executions there were. Atomics that lie elsewhere in the next execution are not recognised there.
///
/// # Panics
/// If a thread does, or if threads go on or wait for each other forever.
pub fn overtake(
    who: Overtaken,
    seeds: impl Iterator<Item = u64> + 'static,
    body: impl Fn() + Send + Sync + 'static,
) -> u64 {
    let executions = Arc::new(AtomicU64::new(0));
    execute(Scheduled { who, seeds, search: None, executions: Arc::clone(&executions) }, body);
    executions.load(Ordering::Relaxed)
}

/// Which threads are overtaken by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaken {
    /// One after the other.
    Each,
    /// The first of those that meet, alone.
    First,
}

/// The turns of an execution in which the overtaken thread goes to its end first.
const ALONE: [usize; 2] = [usize::MAX; 2];

/// What the last execution was.
enum Last {
    /// There was none.
    Nothing,
    Alone,
    /// Overtaken before this access.
    Overtaken(usize),
    /// And then let past the others.
    LetPast,
}

/// Which execution comes next.
struct Search {
    who: Overtaken,
    random: u64,
    last: Last,
    /// The overtaken thread's place, of those threads that meet.
    place: usize,
    threads: usize,
    /// What it accesses if it is not overtaken.
    slow: Vec<Access>,
    /// Where it was overtaken.
    tried: HashSet<usize>,
    /// Depends on where they overtake.
    others_touch: Touched,
}

impl Search {
    fn new(who: Overtaken, seed: u64) -> Search {
        Search {
            who,
            random: seed.wrapping_mul(2).wrapping_add(1),
            last: Last::Nothing,
            place: 0,
            threads: 0,
            slow: Vec::new(),
            tried: HashSet::new(),
            others_touch: Touched::of(&[]),
        }
    }

    /// The next execution, after one that had these threads and accesses.
    fn next(&mut self, (threads, [slow, others]): (usize, [Vec<Access>; 2])) -> Option<Overtaking> {
        match self.last {
            Last::Nothing => return Some(self.alone(0)),
            Last::Alone => {
                self.threads = if self.who == Overtaken::First { 1 } else { threads };
                self.slow = slow;
                self.tried.clear();
                self.others_touch = Touched::of(&others);
            }
            Last::Overtaken(at) => {
                self.others_touch.add(&others);
                // What it still accesses, overtaken here or not.
                let mut still = Touched::of(&self.slow[at..]);
                still.add(slow.get(at..).unwrap_or_default());
                let stops: Vec<usize> = (1..others.len()).filter(|stop| still.matters(others[*stop])).collect();
                if !stops.is_empty() {
                    // Every second time after the others have accessed what the first is about to access.
                    let next = self.slow[at].0;
                    let after: Vec<usize> = (1..others.len()).filter(|stop| others[stop - 1].0 == next).collect();
                    self.random = xorshift(self.random);
                    let stops = if self.random & 1 == 0 && !after.is_empty() { after } else { stops };
                    self.last = Last::LetPast;
                    return Some(Overtaking::new(self.place, [at, stops[(self.random >> 1) as usize % stops.len()]]));
                }
            }
            Last::LetPast => {}
        }
        let point = (0..self.slow.len()).find(|at| !self.tried.contains(at) && self.is_point(*at));
        match point {
            Some(at) => {
                self.tried.insert(at);
                self.last = Last::Overtaken(at);
                Some(Overtaking::new(self.place, [at, usize::MAX]))
            }
            None if self.place + 1 < self.threads => Some(self.alone(self.place + 1)),
            None => None,
        }
    }

    fn alone(&mut self, place: usize) -> Overtaking {
        self.place = place;
        self.last = Last::Alone;
        Overtaking::new(place, ALONE)
    }

    /// Whether it makes a difference to be overtaken before this access.
    fn is_point(&self, at: usize) -> bool {
        at == 0 || (self.others_touch.matters(self.slow[at]) && !is_waiting(&self.slow[..=at]))
    }
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

/// This thread is one of this many that may overtake each other from now on: all say so before the first goes on.
pub fn meet(count: usize) {
    let me = shuttle::current::me();
    if overtaking(|overtaking| overtaking.meet(me, count)).is_some() {
        shuttle::thread::yield_now();
    }
}

/// Lets the threads of each execution run as its [`Overtaking`] says. All executions are of one run of shuttle's, which keeps
/// the stacks of coroutines.
struct Scheduled<I> {
    who: Overtaken,
    seeds: I,
    search: Option<Search>,
    executions: Arc<AtomicU64>,
}

impl<I: Iterator<Item = u64>> Scheduled<I> {
    fn next(&mut self) -> Option<Overtaking> {
        let had = match end() {
            Some(Chooser::Overtaking(mut overtaking)) => overtaking.had(),
            _ => Default::default(),
        };
        let next = self.search.as_mut().and_then(|search| search.next(had));
        next.or_else(|| self.search.insert(Search::new(self.who, self.seeds.next()?)).next(Default::default()))
    }
}

impl<I: Iterator<Item = u64>> Scheduler for Scheduled<I> {
    fn new_execution(&mut self) -> Option<Schedule> {
        begin(Chooser::Overtaking(self.next()?));
        self.executions.fetch_add(1, Ordering::Relaxed);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let able: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        overtaking(|overtaking| overtaking.next(&able, current, is_yielding))
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}
