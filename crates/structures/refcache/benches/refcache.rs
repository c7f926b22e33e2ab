//! Changing a count, reading it exactly at 2 and at 256 cores, and maintaining, on one core.

use std::hint::black_box;

use commit::Decisions;
use criterion::{Criterion, criterion_group, criterion_main};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use refcache::{Counted, CountedKind, RefCache, RefCacheConfig};
use sync::Spin;

fn bench(criterion: &mut Criterion) {
    for core_count in [2, 256] {
        let mut region = HeapRegion::new(64 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig::new(core_count)).unwrap();
        let decisions = Decisions::create(arena).unwrap();
        let cache = RefCache::create(arena, decisions, RefCacheConfig::default()).unwrap();
        let owner = OwnerId::new(1).unwrap();
        let cores: Vec<Core> = (0..core_count).map(|number| arena.claim(number, owner).unwrap()).collect();
        let object = arena.place(Counted::new(1, CountedKind(0))).unwrap();
        let change = |delta| {
            // SAFETY: placed in the arena for good.
            unsafe { cache.change(&cores[0], black_box(object), delta) }
        };
        criterion.bench_function(&format!("refcache/up+down, {core_count} cores"), |bencher| {
            bencher.iter(|| {
                change(1);
                change(-1);
            });
        });
        criterion.bench_function(&format!("refcache/exact, {core_count} cores"), |bencher| {
            // SAFETY: placed in the arena for good.
            bencher.iter(|| unsafe { cache.exact(black_box(object), &Spin) });
        });
        criterion.bench_function(&format!("refcache/maintain with one delta, {core_count} cores"), |bencher| {
            bencher.iter(|| {
                change(1);
                // SAFETY: placed in the arena for good.
                unsafe { cache.maintain(&cores[0], |_, _| {}) }.advanced
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
