//! Pin and unpin, and a retired object's whole way, on one core of two.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use epoch::{Epochs, Retired, RetiredKind};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId, SizeClass};

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(16 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let epochs = Epochs::create(arena).unwrap();
    criterion.bench_function("epoch/pin+unpin", |bencher| {
        bencher.iter(|| drop(black_box(epochs.pin(&core))));
    });
    let class = SizeClass::of_type::<Retired>();
    criterion.bench_function("epoch/allocate+retire+free, maintain every 64", |bencher| {
        let mut calls = 0_u32;
        bencher.iter(|| {
            let object = core.allocate_value(Retired::new()).unwrap();
            // SAFETY: no one else has a pointer to the object.
            unsafe { epochs.pin(&core).retire(object, RetiredKind(0)) };
            calls += 1;
            if calls.is_multiple_of(64) {
                epochs.maintain(&core, |core, _, object| {
                    // SAFETY: allocated above with this class.
                    unsafe { core.free(object.cast(), class) };
                });
            }
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
