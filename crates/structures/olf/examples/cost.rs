//! What an operation costs: one thread, CPU time, the smallest of many alternating rounds. Prints a line of JSON each.
//!
//! `cargo run --release -p olf --example cost`

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use olf::{Arc, Domain, Limits, Link, Map, Sorted, links};

struct Item {
    key: u64,
    link: Link,
}

links! {
    ByKey: Item { link: link, key: key as u64 }
}

const ROUNDS: usize = 40;
const OPERATIONS: u64 = 2_000;

/// A way to move an item to and fro: its name, and what moves the item with a key from the list of this number to the other.
type Way<'w> = (&'static str, Box<dyn FnMut(usize, u64) + 'w>);

/// Nanoseconds of a move, the smallest of all rounds, by turns.
fn measured(ways: &mut [Way<'_>], keys: &[u64]) -> Vec<f64> {
    let mut least = vec![f64::MAX; ways.len()];
    for _ in 0..ROUNDS {
        for (way, (_, move_one)) in ways.iter_mut().enumerate() {
            let began = Instant::now();
            for number in 0..OPERATIONS {
                let key = keys[number as usize / 2 % keys.len()];
                move_one(number as usize % 2, black_box(key));
            }
            least[way] = least[way].min(began.elapsed().as_nanos() as f64 / OPERATIONS as f64);
        }
    }
    least
}

fn tell(what: &str, ways: &mut [Way<'_>], keys: &[u64]) {
    let least = measured(ways, keys);
    for ((way, _), nanoseconds) in ways.iter().zip(least) {
        println!(r#"{{"what": "{what}", "way": "{way}", "ns": {nanoseconds:.1}}}"#);
    }
}

fn item<'d>(domain: &'d Domain, key: u64) -> Arc<'d, Item> {
    Arc::new(domain, Item { key, link: Link::new() })
}

/// The last item of a list of this length moves to and fro.
fn sorted(length: u64) {
    let domain = Domain::with(Limits { threads: 1, lists: 6 }).expect("a domain");
    let here = domain.enter().expect("a thread");
    let list = |from: u64| {
        let list = Sorted::<ByKey>::new(&domain).expect("a list");
        (from..length).for_each(|key| list.insert(&here, item(&domain, 2 * key)).expect("a new key"));
        list
    };
    let last = 2 * (length - 1);
    let pair = || {
        let lists = [list(0), list(0)];
        drop(lists[1].remove(&here, &last));
        lists
    };
    let (by_move, by_two, by_closure) = (pair(), pair(), pair());
    let plain = || Mutex::new((0..length).map(|key| (2 * key, key)).collect::<BTreeMap<_, _>>());
    let trees = [plain(), plain()];
    trees[1].lock().expect("a lock").remove(&last);
    let mut ways: Vec<Way<'_>> = vec![
        ("move_to", Box::new(|from, key| by_move[from].move_to(&by_move[1 - from], &here, &key).expect("a move"))),
        (
            "remove, then insert",
            Box::new(|from, key| {
                let item = by_two[from].remove(&here, &key).expect("an item");
                by_two[1 - from].insert(&here, item).expect("a free key");
            }),
        ),
        (
            "closure",
            Box::new(|from, key| {
                let moved = here.atomically(|a| {
                    let item = a.remove(&by_closure[from], &key)?;
                    a.insert(&by_closure[1 - from], item)
                });
                moved.expect("a move");
            }),
        ),
        (
            "two Mutex<BTreeMap>",
            Box::new(|from, key| {
                let (mut one, mut two) = (trees[0].lock().expect("a lock"), trees[1].lock().expect("a lock"));
                let (from, to) = if from == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
                let value = from.remove(&key).expect("an item");
                to.insert(key, value);
            }),
        ),
    ];
    tell(&format!("move, lists of {length}"), &mut ways, &[last]);
}

/// Items move between two maps with so many keys.
fn maps(count: u64) {
    let domain = Domain::with(Limits { threads: 1, lists: 2 }).expect("a domain");
    let here = domain.enter().expect("a thread");
    let map = || Map::<ByKey>::new(&domain).expect("a map");
    let maps = [map(), map()];
    for map in &maps {
        for key in 0..count {
            map.insert(&here, item(&domain, key)).expect("a new key");
            map.maintain(&here).expect("memory");
        }
    }
    // Both have grown; now each key is in the first alone.
    (0..count).for_each(|key| drop(maps[1].remove(&here, &key)));
    let plain =
        |filled: bool| Mutex::new((0..count).filter(|_| filled).map(|key| (key, key)).collect::<HashMap<_, _>>());
    let hashed = [plain(true), plain(false)];
    let mut ways: Vec<Way<'_>> = vec![
        ("move_to", Box::new(|from, key| maps[from].move_to(&maps[1 - from], &here, &key).expect("a move"))),
        (
            "two Mutex<HashMap>",
            Box::new(|from, key| {
                let (mut one, mut two) = (hashed[0].lock().expect("a lock"), hashed[1].lock().expect("a lock"));
                let (from, to) = if from == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
                let value = from.remove(&key).expect("an item");
                to.insert(key, value);
            }),
        ),
    ];
    let keys: Vec<u64> = (0..count).map(|number| number * 7919 % count).collect();
    tell(&format!("move, maps of {count}"), &mut ways, &keys);
}

fn main() {
    [2, 10, 100].iter().for_each(|length| sorted(*length));
    maps(2_048);
}
