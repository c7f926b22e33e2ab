//! Moves of one thread between two maps.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;

use crossbeam_skiplist::SkipMap;
use dashmap::DashMap;

use crate::harness::{Effort, compare, way};
use crate::sets::Set as _;
use crate::{ours, spin};

/// Keys of the maps.
pub const KEYS: u64 = 2_048;

/// A list under a lock for each bucket.
pub struct Buckets(Vec<spin::List>);

impl Buckets {
    /// This many.
    pub fn new(count: u64) -> Buckets {
        Buckets((0..count).map(|_| spin::List::new()).collect())
    }

    /// The bucket of a key.
    #[inline]
    pub fn of(&self, key: u64) -> &spin::List {
        let hash = u128::from(key ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        let place = ((hash >> 64) as u64 ^ hash as u64) as usize & (self.0.len() - 1);
        &self.0[place]
    }
}

pub fn measure(effort: Effort) {
    let here = ours::enter();
    // Each key goes to the other map, and comes back.
    let keys: Vec<u64> = (0..KEYS).map(|number| number * 7_919 % KEYS).collect();
    let key = |n: usize| black_box(keys[n / 2 % KEYS as usize]);

    let pair = || [ours::map(&here, KEYS as usize, 0..KEYS), ours::map(&here, KEYS as usize, [])];
    let (maps, by_two, by_closure) = (pair(), pair(), pair());
    let locked = [Buckets::new(KEYS), Buckets::new(KEYS)];
    (0..KEYS).for_each(|key| assert!(locked[0].of(key).insert(&mut Vec::new(), key)));
    let hashed = [0, 1].map(|_| Mutex::new(HashMap::<u64, u64>::with_capacity(KEYS as usize)));
    let scc = [0, 1].map(|_| scc::HashMap::<u64, u64>::with_capacity(KEYS as usize));
    let dash = [0, 1].map(|_| DashMap::<u64, u64>::with_capacity(KEYS as usize));
    let skip = [0, 1].map(|_| SkipMap::<u64, u64>::new());
    for key in 0..KEYS {
        assert!(scc[0].insert_sync(key, key).is_ok() && dash[0].insert(key, key).is_none());
        hashed[0].lock().expect("a lock").insert(key, key);
        skip[0].insert(key, key);
    }

    let mut ways = vec![
        way("move_to", |n| maps[n % 2].move_to(&maps[1 - n % 2], &here, &key(n)).expect("a move")),
        way("own removal, then insertion", |n| {
            let item = by_two[n % 2].remove(&here, &key(n)).expect("an item");
            by_two[1 - n % 2].insert(&here, item).expect("a free key");
        }),
        way("closure", |n| {
            let moved = here.atomically(|a| {
                let item = a.remove(&by_closure[n % 2], &key(n))?;
                a.insert(&by_closure[1 - n % 2], item)
            });
            moved.expect("a move");
        }),
        way("two spin locks", |n| {
            let (from, to) = (locked[n % 2].of(key(n)), locked[1 - n % 2].of(key(n)));
            assert!(from.hand_over(to, key(n)));
        }),
        way("two Mutex<HashMap>", |n| {
            let (mut one, mut two) = (hashed[0].lock().expect("a lock"), hashed[1].lock().expect("a lock"));
            let (from, to) = if n % 2 == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
            let value = from.remove(&key(n)).expect("an item");
            to.insert(key(n), value);
        }),
        way("scc, not atomic", |n| {
            let (key, value) = scc[n % 2].remove_sync(&key(n)).expect("an item");
            scc[1 - n % 2].insert_sync(key, value).expect("a free key");
        }),
        way("dashmap, not atomic", |n| {
            let (key, value) = dash[n % 2].remove(&key(n)).expect("an item");
            assert!(dash[1 - n % 2].insert(key, value).is_none());
        }),
        way("crossbeam-skiplist, not atomic", |n| {
            let entry = skip[n % 2].remove(&key(n)).expect("an item");
            skip[1 - n % 2].insert(*entry.key(), *entry.value());
        }),
    ];
    compare(effort, &format!("move, maps of {KEYS}"), &mut ways);
}
