//! Some dozens of pages taken, copied, given back and robbed by two threads: few enough for an interpreter that knows
//! undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::ptr::NonNull;

use epoch::Epochs;
use pages::{PAGE_BYTES, PagePool, shared_bytes};
use percpu::HeapRegion;
use percpu::testing::{World, owner};

#[test]
fn two_cores_share_few_pages() {
    const PAGES: u32 = 20;
    let world = World::new(2);
    let epochs = Epochs::create(world.arena()).unwrap();
    let mut region = HeapRegion::new(PAGES as usize * PAGE_BYTES).unwrap();
    let base = NonNull::new(region.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the world's use.
    let pool = unsafe { PagePool::create(world.arena(), base, PAGES) }.unwrap();
    let work = |number: u8| {
        let core = world.core(number.into());
        let mut mine = Vec::new();
        for round in 0..20_u32 {
            if let Ok(page) = pool.allocate(&core) {
                let (bytes, mut found) = ([number; 40], [0; 40]);
                // SAFETY: the page is ours alone.
                unsafe {
                    shared_bytes::store(pool.address(page).as_ptr(), &bytes);
                    shared_bytes::load(&mut found, pool.address(page).as_ptr());
                    assert!(shared_bytes::equals(pool.address(page).as_ptr(), &bytes) && found == bytes);
                    shared_bytes::clear(pool.address(page).as_ptr(), 9);
                }
                mine.push(page);
            }
            if round % 7 == 6 {
                for page in mine.drain(..) {
                    // SAFETY: ours alone, given back once.
                    unsafe { pool.retire(&epochs.pin(&core), page) };
                }
                epochs.maintain(&core, |core, kind, object| {
                    // SAFETY: called by maintenance.
                    assert!(unsafe { pool.free_retired(core, kind, object) });
                });
                pool.maintain(&core);
            }
        }
        for page in mine {
            // SAFETY: as above.
            unsafe { pool.free(&core, page) };
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(0));
        scope.spawn(|| work(1));
    });
    let core = world.core(0);
    for _ in 0..4 {
        let mut free = |core: &percpu::Core, kind, object| {
            // SAFETY: called by maintenance.
            assert!(unsafe { pool.free_retired(core, kind, object) });
        };
        epochs.maintain(&core, &mut free);
        world.for_each_idle_core(owner(1), |idle| {
            epochs.maintain(idle, &mut free);
        });
    }
    assert_eq!(pool.free_pages(), u64::from(PAGES));
    assert_eq!((0..PAGES).filter_map(|_| pool.allocate(&core).ok()).count(), PAGES as usize);
}

/// Who reads a page while it is written gets bytes of either time, and no data race.
#[test]
fn a_page_is_read_while_it_is_written() {
    let mut region = HeapRegion::new(PAGE_BYTES).unwrap();
    let page = std::sync::atomic::AtomicPtr::new(region.as_mut_ptr());
    let page = || page.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=5 {
                // SAFETY: the region is this test's own; all accesses are by `shared_bytes`.
                unsafe { shared_bytes::store(page(), &[number; 33]) };
            }
        });
        scope.spawn(|| {
            let mut bytes = [0; 33];
            for _ in 0..5 {
                // SAFETY: as above.
                unsafe { shared_bytes::load(&mut bytes, page()) };
                assert!(bytes.iter().all(|byte| *byte <= 5));
            }
        });
    });
}
