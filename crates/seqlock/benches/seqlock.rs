//! Reading and writing four words on one core.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use percpu::{Arena, ArenaConfig, HeapRegion, LockRank, OwnerId};
use seqlock::SeqLock;
use sync::Spin;

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(1)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let lock = SeqLock::new([1; 4], LockRank(1));
    criterion.bench_function("seqlock/read 4 words", |bencher| bencher.iter(|| black_box(lock.read(&Spin))));
    criterion.bench_function("seqlock/write 1 word", |bencher| {
        bencher.iter(|| lock.write(&core, &Spin).set(0, black_box(7)));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
