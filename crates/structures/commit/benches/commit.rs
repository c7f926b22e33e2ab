//! Beginning and committing, and observing, on one core.

use std::hint::black_box;

use commit::Decisions;
use criterion::{Criterion, criterion_group, criterion_main};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let decisions = Decisions::create(arena).unwrap();
    criterion.bench_function("commit/begin+commit", |bencher| {
        bencher.iter(|| black_box(decisions.begin_firm(&core)).commit());
    });
    let tag = decisions.begin_firm(&core).tag();
    criterion.bench_function("commit/observe", |bencher| bencher.iter(|| decisions.observe(black_box(tag))));
}

criterion_group!(benches, bench);
criterion_main!(benches);
