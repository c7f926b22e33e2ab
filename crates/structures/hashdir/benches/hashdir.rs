//! Lookup, insertion with removal, and rename in a directory of 1,000 names, on one core of two.

use std::hint::black_box;

use commit::Decisions;
use criterion::{Criterion, criterion_group, criterion_main};
use epoch::Epochs;
use hashdir::{HashDir, Key, free_retired, lock_two};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use sync::Spin;

fn bench(criterion: &mut Criterion) {
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let (decisions, epochs) = (Decisions::create(arena).unwrap(), Epochs::create(arena).unwrap());
    // SAFETY: all lie in one arena, which has one `Epochs`.
    let dir = arena.place(unsafe { HashDir::new(&core, decisions, 4096) }.unwrap()).unwrap();
    let names: Vec<String> = (0..1000).map(|number| format!("file-{number}")).collect();
    let key = |name: &'static str| Key::new(name.as_bytes(), 1).unwrap();
    for (number, name) in names.iter().enumerate() {
        let key = Key::new(name.as_bytes(), 1).unwrap();
        dir.lock(&epochs.pin(&core), &key, &Spin).insert(&key, number as u64).unwrap();
    }
    let mut calls = 0_u32;
    let mut maintain = || {
        calls += 1;
        if calls.is_multiple_of(64) {
            epochs.maintain(&core, |core, kind, object| {
                // SAFETY: called by the maintenance of the one `Epochs`.
                assert!(unsafe { free_retired(core, kind, object) });
            });
        }
    };
    criterion.bench_function("hashdir/lookup", |bencher| {
        bencher.iter(|| {
            let guard = epochs.pin(&core);
            dir.lookup(&guard, &key(black_box("file-77"))).unwrap().value()
        });
    });
    criterion.bench_function("hashdir/insert+remove", |bencher| {
        bencher.iter(|| {
            let guard = epochs.pin(&core);
            let key = key(black_box("new"));
            dir.lock(&guard, &key, &Spin).insert(&key, 1).unwrap();
            let locked = dir.lock(&guard, &key, &Spin);
            locked.lookup(&key).unwrap().remove();
            drop(locked);
            drop(guard);
            maintain();
        });
    });
    let mut names = ["file-1", "renamed"];
    criterion.bench_function("hashdir/rename", |bencher| {
        bencher.iter(|| {
            let guard = epochs.pin(&core);
            let (from, to) = (key(names[0]), key(names[1]));
            let pair = lock_two(&guard, (dir, &from), (dir, &to), &Spin);
            let operation = decisions.begin_firm(&core);
            let found = pair.first().lookup(&from).unwrap();
            let there = pair.second().prepare_insert(&to, found.value(), operation.tag()).unwrap();
            let gone = found.prepare_remove(operation.tag());
            operation.commit().unwrap();
            there.finish(true);
            gone.finish(true);
            drop(pair);
            drop(guard);
            names.swap(0, 1);
            maintain();
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
