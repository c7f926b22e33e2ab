//! Reading and changing four words on one core.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::{Criterion, criterion_group, criterion_main};
use seqlock::Sequence;

fn bench(criterion: &mut Criterion) {
    let sequence = Sequence::new();
    let words: [AtomicU64; 4] = Default::default();
    criterion.bench_function("seqlock/read 4 words", |bencher| {
        let read = || [0, 1, 2, 3].map(|index: usize| words[index].load(Ordering::Relaxed));
        bencher.iter(|| black_box(sequence.try_read(read)));
    });
    criterion.bench_function("seqlock/change 1 word", |bencher| {
        bencher.iter(|| sequence.change(|| words[0].store(black_box(7), Ordering::Relaxed)));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
