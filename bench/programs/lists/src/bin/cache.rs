//! Two threads look keys up, and insert those that are missing: two thirds of the keys find room.
use std::sync::Arc;

use quick_cache::sync::Cache;

fn main() {
    let rounds: u64 = std::env::args().nth(1).map_or(20_000, |text| text.parse().expect("a number"));
    // A cache of its own for each thread, of the same keys: the most that any change of the shards' locks could give.
    let is_shared = std::env::args().nth(2).is_none_or(|word| word != "own");
    let make = || Arc::new(Cache::<u64, u64>::new(10_000));
    let shared = make();
    let began = std::time::Instant::now();
    let threads: Vec<_> = (0..2_u64)
        .map(|thread| {
            let cache = if is_shared { Arc::clone(&shared) } else { make() };
            std::thread::spawn(move || {
                let mut random = thread + 1;
                let mut found = 0_u64;
                for _ in 0..rounds {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let key = random % 15_000;
                    match cache.get(&key) {
                        Some(value) => found += value & 1,
                        None => cache.insert(key, key),
                    }
                }
                found
            })
        })
        .collect();
    let found: u64 = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    assert!(found > 0);
    println!("{}", began.elapsed().as_nanos() as f64 / (2 * rounds) as f64);
}
