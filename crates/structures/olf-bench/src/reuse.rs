//! An item that goes into a list and out again, with others: the same one each time, and a new one each time.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::harness::{Effort, Way, compare, way};
use crate::moves::LENGTHS;
use crate::reclaim::{Deferred, Hazards, Reclaim};
use crate::sets::Set;
use crate::{by_hand, harris_michael, ours, spin};

pub fn measure(effort: Effort) {
    LENGTHS.into_iter().for_each(|length| again(effort, length));
    [2, 10].into_iter().for_each(|length| first(effort, length));
}

/// The item goes after this many others.
fn again(effort: Effort, length: u64) {
    let last = 2 * length;
    let others = || (0..length).map(|key| 2 * key);
    let here = ours::enter();
    let list = ours::sorted(&here, others());
    let mut kept = Some(ours::item(here.domain(), last));

    let nodes: Vec<by_hand::Node> = others().map(by_hand::Node::new).collect();
    let (plain, one) = (by_hand::List::of(&nodes), by_hand::Node::new(last));

    let locked = spin::List::new();
    let mut taken = locked.local();
    others().for_each(|key| assert!(locked.insert(&mut taken, key)));

    let tree = Mutex::new(others().map(|key| (key, key)).collect::<BTreeMap<_, _>>());
    let mut ways = vec![
        way("Sorted, the same item", |_| {
            list.insert(&here, kept.take().expect("an item")).expect("a free key");
            kept = list.remove(&here, &black_box(last));
        }),
        way("by hand", |_| {
            let _guard = here.pin();
            plain.insert(&one);
            plain.remove(black_box(last));
        }),
        way("a spin lock", |_| {
            assert!(locked.insert(&mut taken, black_box(last)) && locked.remove(&mut taken, black_box(last)));
        }),
        way("Mutex<BTreeMap>", |_| {
            tree.lock().expect("a lock").insert(black_box(last), last);
            tree.lock().expect("a lock").remove(&black_box(last));
        }),
        harris_michael::<Deferred>("Harris-Michael, deferred", others(), last),
        harris_michael::<Hazards>("Harris-Michael, hazard pointers", others(), last),
    ];
    compare(effort, &format!("insert and remove beside {length}"), &mut ways);
}

fn harris_michael<R: Reclaim + 'static>(
    name: &'static str,
    others: impl Iterator<Item = u64>,
    last: u64,
) -> Way<'static> {
    let list = harris_michael::List::<R>::new();
    let mut local = list.local();
    others.for_each(|key| assert!(list.insert(&mut local, key)));
    way(name, move |_| {
        assert!(list.insert(&mut local, black_box(last)) && list.remove(&mut local, black_box(last)));
    })
}

/// Lists into which a new item is inserted each in turn.
const LISTS: usize = 32;

/// Only the insertion is timed, with the item's memory; the removal is not.
fn first(effort: Effort, length: u64) {
    let last = 2 * length;
    let others = || (0..length).map(|key| 2 * key);
    let here = ours::enter();
    let lists: Vec<_> = (0..LISTS).map(|_| ours::sorted(&here, others())).collect();
    let ours = |operations: usize| {
        let mut took = Duration::ZERO;
        for _ in 0..operations.div_ceil(LISTS) {
            let began = Instant::now();
            for list in &lists {
                list.insert(&here, ours::item(here.domain(), black_box(last))).expect("a free key");
            }
            took += began.elapsed();
            lists.iter().for_each(|list| list.remove(&here, &last).expect("an item").end(&here));
            here.maintain();
        }
        took
    };
    let mut ways: Vec<Way<'_>> = vec![
        ("Sorted, a new item", Box::new(ours)),
        first_of_harris_michael::<Deferred>("Harris-Michael, deferred", length),
        first_of_harris_michael::<Hazards>("Harris-Michael, hazard pointers", length),
    ];
    compare(effort, &format!("first insertion beside {length}"), &mut ways);
}

fn first_of_harris_michael<R: Reclaim + 'static>(name: &'static str, length: u64) -> Way<'static> {
    let last = 2 * length;
    let lists: Vec<_> = (0..LISTS).map(|_| harris_michael::List::<R>::new()).collect();
    let mut local = lists[0].local();
    for list in &lists {
        (0..length).for_each(|key| assert!(list.insert(&mut local, 2 * key)));
    }
    let timed = move |operations: usize| {
        let mut took = Duration::ZERO;
        for _ in 0..operations.div_ceil(LISTS) {
            let began = Instant::now();
            lists.iter().for_each(|list| assert!(list.insert(&mut local, black_box(last))));
            took += began.elapsed();
            lists.iter().for_each(|list| assert!(list.remove(&mut local, last)));
        }
        took
    };
    (name, Box::new(timed))
}
