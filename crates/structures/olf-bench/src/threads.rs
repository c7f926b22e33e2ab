//! Moves of two threads at once, and of one for comparison.

use olf::Sorted;
use percpu::CacheLine;

use crate::harness::{Comparison, Effort, Span, ThreadedWay, compare_threads, fairness, run_threads};
use crate::maps::{Buckets, KEYS};
use crate::ours::Two;
use crate::random::Random;
use crate::reclaim::Deferred;
use crate::sets::{BySteps, Pair, Set};
use crate::{harris_michael, ours, spin};

const MOST_THREADS: usize = 2;

pub fn measure(effort: Effort) {
    compare_threads(effort, "moves between maps, own keys", &[1, MOST_THREADS], &maps());
    compare_threads(effort, "moves between lists of 50", &[1, MOST_THREADS], &lists(50));
    compare_threads(effort, "moves between lists of 2", &[1, MOST_THREADS], &lists(2));
    fairness(effort, "moves between lists of 2", &lists(2)[..2]);
}

/// What more threads than there are processors can be counted in.
pub fn comparisons() -> impl Iterator<Item = Comparison> {
    let of_lists = |count| (format!("moves between lists of {count}"), lists(count));
    [50, 2].into_iter().map(of_lists).chain([("moves between lists of the thread's own".to_owned(), own_lists())])
}

/// Each thread moves two numbers between two lists that no other has.
fn own_lists() -> Vec<ThreadedWay<'static>> {
    vec![
        moving_own("olf", olf_lists, None),
        moving_own("one spin lock", || spin::Lists([spin::List::new(), spin::List::new()]), Some(&ONE)),
        moving_own(
            "Harris-Michael, deferred, not atomic",
            || BySteps([harris_michael::List::<Deferred>::new(), harris_michael::List::new()]),
            None,
        ),
    ]
}

/// Of all lists, where one is to do.
static ONE: CacheLine<spin::Lock> = CacheLine(spin::Lock::new());

fn olf_lists() -> Two<Sorted<'static, ours::ByKey>> {
    let here = ours::enter();
    Two([0, 1].map(|_| ours::sorted(&here, [])))
}

fn moving_own<P: Pair>(
    name: &'static str,
    make: impl Fn() -> P + 'static,
    lock: Option<&'static CacheLine<spin::Lock>>,
) -> ThreadedWay<'static> {
    const KEYS: u64 = 2;
    let run = move |threads: usize, span: Span| {
        let pairs: Vec<P> = (0..threads).map(|_| make()).collect();
        for pair in &pairs {
            let mut local = pair.local();
            (0..KEYS).for_each(|number| pair.fill(&mut local, number));
        }
        let pairs = &pairs;
        run_threads(threads, span, |thread| {
            let pair = &pairs[thread];
            let (mut local, mut random) = (pair.local(), Random::new(thread));
            move || {
                let key = random.below(KEYS);
                lock.inspect(|lock| lock.0.lock());
                let _ = pair.hand_over(&mut local, 0, key) || pair.hand_over(&mut local, 1, key);
                lock.inspect(|lock| lock.0.unlock());
            }
        })
    };
    (name, Box::new(run))
}

/// A way by which threads move numbers of two sets to and fro, each those of its own kind: `key` gives one for a thread and a
/// random number.
fn moving<P: Pair>(
    name: &'static str,
    make: impl Fn() -> P + 'static,
    count: u64,
    key: fn(usize, &mut Random, u64) -> u64,
) -> ThreadedWay<'static> {
    let run = move |threads: usize, span: Span| {
        let pair = make();
        let mut local = pair.local();
        (0..count).for_each(|number| pair.fill(&mut local, number));
        let pair = &pair;
        run_threads(threads, span, |thread| {
            let (mut local, mut random) = (pair.local(), Random::new(thread));
            move || {
                let key = key(thread, &mut random, count);
                // Where it is, only the others know: the second try meets it, unless they moved it just then.
                let _ = pair.hand_over(&mut local, 0, key) || pair.hand_over(&mut local, 1, key);
            }
        })
    };
    (name, Box::new(run))
}

fn any(_: usize, random: &mut Random, count: u64) -> u64 {
    random.below(count)
}

/// Of each pair of keys the first or the second: no thread meets another's.
fn own(thread: usize, random: &mut Random, count: u64) -> u64 {
    random.below(count / MOST_THREADS as u64) * MOST_THREADS as u64 + thread as u64
}

/// Two lists in order.
fn lists(count: u64) -> Vec<ThreadedWay<'static>> {
    vec![
        moving("olf", olf_lists, count, any),
        moving("spin locks", || spin::Lists([spin::List::new(), spin::List::new()]), count, any),
        moving(
            "Harris-Michael, deferred, not atomic",
            || BySteps([harris_michael::List::<Deferred>::new(), harris_michael::List::new()]),
            count,
            any,
        ),
    ]
}

/// Two maps.
fn maps() -> Vec<ThreadedWay<'static>> {
    let make = move || {
        let here = ours::enter();
        Two([0, 1].map(|_| ours::map(&here, KEYS as usize, [])))
    };
    vec![
        moving("olf", make, KEYS, own),
        moving("spin locks", || LockedMaps([Buckets::new(KEYS), Buckets::new(KEYS)]), KEYS, own),
        moving(
            "scc, not atomic",
            || BySteps([0, 1].map(|_| Scc(scc::HashMap::with_capacity(KEYS as usize)))),
            KEYS,
            own,
        ),
    ]
}

struct LockedMaps([Buckets; 2]);

impl Pair for LockedMaps {
    type Local = spin::Taken;

    fn local(&self) -> spin::Taken {
        spin::Taken::new()
    }

    fn fill(&self, local: &mut spin::Taken, key: u64) {
        assert!(self.0[0].of(key).insert(local, key), "a new number");
    }

    #[inline]
    fn hand_over(&self, _: &mut spin::Taken, from: usize, key: u64) -> bool {
        self.0[from].of(key).hand_over(self.0[1 - from].of(key), key)
    }
}

struct Scc(scc::HashMap<u64, u64>);

impl Set for Scc {
    type Local = ();

    fn local(&self) {}

    #[inline]
    fn contains(&self, _: &mut (), key: u64) -> bool {
        self.0.contains_sync(&key)
    }

    #[inline]
    fn insert(&self, _: &mut (), key: u64) -> bool {
        self.0.insert_sync(key, key).is_ok()
    }

    #[inline]
    fn remove(&self, _: &mut (), key: u64) -> bool {
        self.0.remove_sync(&key).is_some()
    }
}
