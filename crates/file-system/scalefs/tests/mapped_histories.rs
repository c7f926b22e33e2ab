//! Stores to a mapped file beside cuts of it: whatever their order, what was stored behind the new end does not show when the
//! file grows again. And a load behind the end beside a cut to nothing, which shares nothing with it, sees the signal.
#![cfg(not(loom))]

#[allow(dead_code)]
mod instance;

use history::repeat;
use history::threads::{self, Barrier};
use instance::with_instance;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, MappedObject};
use scalefs::{AccessError, DataOperations, MemoryOperations, OpenFlags, Protection, Sharing, Start};
use sync::Spin;

const PAGE: u64 = 4096;
const STORED_AT: u64 = 3_000;

/// How long a file of one page is cut, and which page the other thread uses.
type Plan = (u64, u64);

const PLANS: [Plan; 4] = [(1_000, 0), (0, 0), (0, 1), (0, 2)];

fn check(round: u64, &(cut, page): &Plan) {
    with_instance(16, |instance| {
        let fs = instance.fs;
        let core = instance.core(3);
        let owned = instance.process(&core);
        let process = &owned;
        let call = || fs.enter(&core, process, &Spin);
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = data::open(&call(), Start::WorkingDirectory, b"f", flags, 0o600, DescriptorOptions::PLAIN).unwrap();
        data::truncate(&call(), fd, PAGE as i64).unwrap();
        data::write_at(&call(), fd, &[1], 0).unwrap();
        let file = MappedObject::File { fd, offset: 0, sharing: Sharing::Shared };
        let mapped = memory::map(&call(), memory::Address::Any, 3 * PAGE, Protection::ReadWrite, file).unwrap();
        let at = mapped + page * PAGE + STORED_AT;
        fs.maintain(&core, &Spin);
        let barrier = Barrier::new(2);
        let stored = threads::scope(|scope| {
            let barrier = &barrier;
            let storing = scope.spawn(move || {
                let core = instance.core(0);
                barrier.wait();
                let stored = fs.enter(&core, process, &Spin).store(at, &[9]);
                fs.maintain(&core, &Spin);
                stored
            });
            scope.spawn(move || {
                let core = instance.core(1);
                barrier.wait();
                data::truncate(&fs.enter(&core, process, &Spin), fd, cut as i64).unwrap();
                fs.maintain(&core, &Spin);
            });
            storing.join().unwrap()
        });
        let mut byte = [7];
        if page > 0 {
            assert!(matches!(stored, Err(AccessError::Bus)), "behind the end before and after: {stored:?}");
        }
        assert_eq!(data::read_at(&call(), fd, &mut byte, STORED_AT as i64).unwrap(), 0, "behind the cut");
        data::truncate(&call(), fd, 3 * PAGE as i64).unwrap();
        call().load(at, &mut byte).unwrap();
        assert_eq!(byte, [0], "round {round}: what was stored behind the end shows when the file grows");
        data::truncate(&call(), fd, 0).unwrap();
        scalefs::names::unlink(call().objects(), Start::WorkingDirectory, b"f").unwrap();
        owned.exit(fs, &core, &Spin);
    });
}

#[test]
fn what_is_stored_behind_a_cut_does_not_show() {
    for plan in PLANS {
        repeat(if cfg!(shuttle) { 500 } else { 50 }, plan, check);
    }
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    sync::mutant::must_be_caught("scalefs: a store does not look for cuts", || repeat(50_000, PLANS[0], check));
}
