//! Two maps with a lock per bucket. A move takes all locks that it needs, in one order, so that no one sees half of it.
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use gallery::{Lists, Moved};

/// On a line of its own, as a map that is meant to scale has it.
#[repr(align(128))]
struct Bucket(Mutex<BTreeMap<i64, i64>>);

const BUCKETS: usize = 1024;

struct Buckets([Vec<Bucket>; 2]);

/// A list, and a bucket of it.
type Place = (usize, usize);

/// At most this many keys of one call, each in both lists.
const MOST_PLACES: usize = 4;

/// The buckets of one call.
struct Locked<'l>([Option<(Place, MutexGuard<'l, BTreeMap<i64, i64>>)>; MOST_PLACES]);

impl Buckets {
    fn place(list: usize, key: i64) -> Place {
        (list, (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 54)
    }

    /// Takes the locks of these buckets, each once, in the order of their places.
    fn lock<const N: usize>(&self, mut places: [Place; N]) -> Locked<'_> {
        places.sort_unstable();
        let mut locked = Locked([const { None }; MOST_PLACES]);
        for (number, place) in places.into_iter().enumerate() {
            if number == 0 || places[number - 1] != place {
                locked.0[number] = Some((place, self.0[place.0][place.1].0.lock().unwrap()));
            }
        }
        locked
    }
}

impl Locked<'_> {
    fn of(&mut self, list: usize, key: i64) -> &mut BTreeMap<i64, i64> {
        let wanted = Buckets::place(list, key);
        let mut buckets = self.0.iter_mut().flatten();
        buckets.find_map(|(place, bucket)| (*place == wanted).then_some(&mut **bucket)).expect("locked")
    }
}

impl Lists for Buckets {
    fn make() -> Buckets {
        Buckets([0, 1].map(|_| (0..BUCKETS).map(|_| Bucket(Mutex::default())).collect()))
    }

    fn find(&self, list: usize, key: i64) -> Option<i64> {
        self.lock([Buckets::place(list, key)]).of(list, key).get(&key).copied()
    }

    fn insert(&self, list: usize, key: i64, value: i64) -> bool {
        let mut locked = self.lock([Buckets::place(list, key)]);
        let bucket = locked.of(list, key);
        !bucket.contains_key(&key) && bucket.insert(key, value).is_none()
    }

    fn remove(&self, list: usize, key: i64) -> bool {
        self.lock([Buckets::place(list, key)]).of(list, key).remove(&key).is_some()
    }

    fn hand_over(&self, from: usize, key: i64) -> Moved {
        let mut locked = self.lock([0, 1].map(|list| Buckets::place(list, key)));
        let value = *locked.of(from, key).get(&key).ok_or(gallery::ABSENT)?;
        let to = locked.of(1 - from, key);
        if to.contains_key(&key) {
            return Err(gallery::EXISTS);
        }
        to.insert(key, value);
        locked.of(from, key).remove(&key);
        Ok(0)
    }

    fn swap(&self, key: i64, other: i64) -> Moved {
        let mut locked =
            self.lock([(0, key), (1, other), (1, key), (0, other)].map(|(list, key)| Buckets::place(list, key)));
        let mine = *locked.of(0, key).get(&key).ok_or(gallery::ABSENT)?;
        let its = *locked.of(1, other).get(&other).ok_or(gallery::ABSENT)?;
        if key != other && (locked.of(1, key).contains_key(&key) || locked.of(0, other).contains_key(&other)) {
            return Err(gallery::EXISTS);
        }
        locked.of(0, key).remove(&key);
        locked.of(1, other).remove(&other);
        locked.of(1, key).insert(key, mine);
        locked.of(0, other).insert(other, its);
        Ok(0)
    }
}

gallery::lists_adapter! { Buckets }
