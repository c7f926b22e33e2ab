//! Raising and reading on one core.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use sync::Spin;

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(1)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let maxima = Maxima::create(arena, MaximaConfig { slots_per_core: 64, seed: 1 }).unwrap();
    let object = arena.place(Maximum::new([0, 0])).unwrap();
    let mut now = 0;
    criterion.bench_function("maxima/raise", |bencher| {
        bencher.iter(|| {
            now += 1;
            // SAFETY: the object lives as long as the arena.
            unsafe { maxima.raise(&core, object, [now, now], &Spin) };
        });
    });
    criterion.bench_function("maxima/read", |bencher| bencher.iter(|| black_box(maxima.read(object, &Spin))));
}

criterion_group!(benches, bench);
criterion_main!(benches);
