//! A page taken and given back on one core.

use std::hint::black_box;
use std::ptr::NonNull;

use criterion::{Criterion, criterion_group, criterion_main};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(1)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    // SAFETY: no one touches the pages.
    let pool = unsafe { PagePool::create(arena, NonNull::new(PAGE_BYTES as *mut u8).unwrap(), 64) }.unwrap();
    criterion.bench_function("pages/allocate and free", |bencher| {
        bencher.iter(|| {
            let page = black_box(pool.allocate(&core).unwrap());
            // SAFETY: allocated just now.
            unsafe { pool.free(&core, page) };
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
