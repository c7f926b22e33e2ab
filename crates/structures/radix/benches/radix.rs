//! Reading an index, and setting one under its lock, in a small and in a large array, on one core.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use epoch::Epochs;
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use radix::RadixArray;
use sync::Spin;

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(1)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let epochs = Epochs::create(arena).unwrap();
    for (name, length) in [("16 indices", 16), ("65,536 indices", 65_536_u64)] {
        // SAFETY: used with this arena and its one `Epochs`.
        let array = arena.place(unsafe { RadixArray::new() }).unwrap();
        for index in 0..length {
            array.lock(&epochs.pin(&core), index..index + 1, &Spin).unwrap().set(index, Some(index)).unwrap();
        }
        criterion.bench_function(&format!("radix/get, {name}"), |bencher| {
            bencher.iter(|| array.get(&epochs.pin(&core), black_box(length / 2)));
        });
        criterion.bench_function(&format!("radix/lock+set, {name}"), |bencher| {
            let index = black_box(length / 2);
            bencher.iter(|| array.lock(&epochs.pin(&core), index..index + 1, &Spin).unwrap().set(index, Some(1)));
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
