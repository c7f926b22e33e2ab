//! Allocation from a magazine, per-core values, and a lock, on one core.

use criterion::{Criterion, criterion_group, criterion_main};
use percpu::{Arena, ArenaConfig, CoreLock, HeapRegion, LockRank, OwnerId, SizeClass};
use std::hint::black_box;

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let class = SizeClass::of_type::<[u64; 16]>();
    criterion.bench_function("percpu/allocate+free 128 bytes", |bencher| {
        bencher.iter(|| {
            let object = core.allocate(class).unwrap();
            // SAFETY: allocated just now with this class.
            unsafe { core.free(black_box(object), class) };
        });
    });
    let lock = CoreLock::new();
    criterion.bench_function("percpu/lock+unlock", |bencher| {
        bencher.iter(|| drop(black_box(lock.lock(&core, LockRank(1), &sync::Spin))));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
