//! How far does a map that threads share scale? Each thread puts entries of its own into one `DashMap`, and takes them out.
//!
//! ```text
//! cargo build --release -p scale-annotation --example shared_map
//! commutant scale --cores 1,2,4,...,32 -- target/release/examples/shared_map {cores} 64
//! ```
//! The second argument is how many shards the map has: each has a lock, and the keys of all threads meet there.

use std::thread;

use dashmap::DashMap;

/// Entries that a thread has in the map at different times.
const KEYS: u64 = 64;
const ROUNDS: u64 = 4096;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let (threads, shards) = (arguments.next().unwrap_or(2), arguments.next().unwrap_or(64));
    let map: DashMap<(usize, u64), u64> = DashMap::with_capacity_and_shard_amount(16_384, shards);
    thread::scope(|scope| {
        for thread in 0..threads {
            let map = &map;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = (thread, round % KEYS);
                    scale_annotation::operation(|| {
                        map.insert(key, round);
                        map.remove(&key)
                    });
                }
            });
        }
    });
    assert!(map.is_empty());
}
