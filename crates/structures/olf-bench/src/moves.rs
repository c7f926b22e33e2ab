//! Moves of one thread between two lists in order: the last item goes to and fro.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;

use olf::Sorted;

use crate::harness::{Effort, compare, way};
use crate::reclaim::{Deferred, Hazards, Reclaim};
use crate::sets::{BySteps, Pair, Set};
use crate::{by_hand, ends, harris_michael, ours, spin};

/// Lengths of the lists.
pub const LENGTHS: [u64; 3] = [2, 10, 100];

pub fn measure(effort: Effort) {
    LENGTHS.into_iter().for_each(|length| of_length(effort, length));
}

/// The keys of a list; the last moves.
fn keys(length: u64) -> impl Iterator<Item = u64> + Clone {
    (0..length).map(|key| 2 * key)
}

/// Two lists of which the second has all keys but the last.
fn fill<S: Set>(lists: &[S; 2], local: &mut S::Local, length: u64) {
    for (number, list) in lists.iter().enumerate() {
        keys(length - number as u64).for_each(|key| assert!(list.insert(local, key)));
    }
}

fn of_length(effort: Effort, length: u64) {
    let last = 2 * (length - 1);
    let here = ours::enter();
    let pair = || [0, 1].map(|number| ours::sorted(&here, keys(length - number)));
    let (by_move, by_two, by_closure) = (pair(), pair(), pair());

    let nodes: Vec<by_hand::Node> =
        [length, length - 1].iter().flat_map(|l| keys(*l).map(by_hand::Node::new)).collect();
    let (one, two) = nodes.split_at(length as usize);
    let by_hand = [by_hand::List::of(one), by_hand::List::of(two)];

    let locked = spin::Lists([spin::List::new(), spin::List::new()]);
    fill(&locked.0, &mut Pair::local(&locked), length);

    let plain = |length| Mutex::new(keys(length).map(|key| (key, key)).collect::<BTreeMap<_, _>>());
    let trees = [plain(length), plain(length - 1)];

    let mut ways = vec![
        way("move_to", |n| by_move[n % 2].move_to(&by_move[1 - n % 2], &here, &black_box(last)).expect("a move")),
        way("own removal, then insertion", |n| {
            let item = by_two[n % 2].remove(&here, &black_box(last)).expect("an item");
            by_two[1 - n % 2].insert(&here, item).expect("a free key");
        }),
        way("closure", |n| {
            let moved = here.atomically(|a| {
                let item = a.remove(&by_closure[n % 2], &black_box(last))?;
                a.insert(&by_closure[1 - n % 2], item)
            });
            moved.expect("a move");
        }),
        way("by hand, not atomic", |n| {
            let _guard = here.pin();
            by_hand[1 - n % 2].insert(by_hand[n % 2].remove(black_box(last)));
        }),
        way("two spin locks", |n| assert!(locked.0[n % 2].hand_over(&locked.0[1 - n % 2], black_box(last)))),
        way("two Mutex<BTreeMap>", |n| {
            let (mut one, mut two) = (trees[0].lock().expect("a lock"), trees[1].lock().expect("a lock"));
            let (from, to) = if n % 2 == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
            let value = from.remove(&black_box(last)).expect("an item");
            to.insert(last, value);
        }),
        harris_michael::<Deferred>("Harris-Michael, deferred, not atomic", length),
        harris_michael::<Hazards>("Harris-Michael, hazard pointers, not atomic", length),
    ];
    compare(effort, &format!("move, lists of {length}"), &mut ways);

    let read = ours::sorted(&here, keys(length));
    reads(effort, length, &read, &here);
}

fn harris_michael<R: Reclaim + 'static>(name: &'static str, length: u64) -> crate::harness::Way<'static> {
    let lists = BySteps([harris_michael::List::<R>::new(), harris_michael::List::new()]);
    let mut local = Pair::local(&lists);
    fill(&lists.0, &mut local, length);
    let last = 2 * (length - 1);
    way(name, move |n| assert!(lists.hand_over(&mut local, n % 2, black_box(last))))
}

/// Whether the last item is there.
fn reads(effort: Effort, length: u64, read: &Sorted<'static, ours::ByKey>, here: &olf::Here<'static>) {
    let last = 2 * (length - 1);
    let nodes: Vec<by_hand::Node> = keys(length).map(by_hand::Node::new).collect();
    let plain = by_hand::List::of(&nodes);
    let linked = ends::list(here, keys(length));
    let locked = spin::List::new();
    let mut taken = locked.local();
    let (deferred, announced) = (harris_michael::List::<Deferred>::new(), harris_michael::List::<Hazards>::new());
    let (mut by_epoch, mut by_hazard) = (deferred.local(), announced.local());
    for key in keys(length) {
        assert!(locked.insert(&mut taken, key) && deferred.insert(&mut by_epoch, key));
        assert!(announced.insert(&mut by_hazard, key));
    }
    let mut ways = vec![
        way("Sorted", |_| assert!(read.contains(here, &black_box(last)))),
        way("List", |_| {
            let guard = here.pin();
            assert!(linked.find(&guard, |entry| entry.key == black_box(last)).is_some());
        }),
        way("plain pointers, pinned", |_| {
            let _guard = here.pin();
            assert!(plain.contains(black_box(last)));
        }),
        way("a spin lock", |_| assert!(locked.contains(&mut taken, black_box(last)))),
        way("Harris-Michael, deferred", |_| assert!(deferred.contains(&mut by_epoch, black_box(last)))),
        way("Harris-Michael, hazard pointers", |_| assert!(announced.contains(&mut by_hazard, black_box(last)))),
    ];
    compare(effort, &format!("find the last of {length}"), &mut ways);
}
