//! Every page can be had, none twice, no matter who had it before; free pages are counted; threads rob each other.
#![cfg(not(loom))]

use std::collections::HashSet;
use std::ptr::NonNull;

use epoch::Epochs;
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, HeapRegion, OutOfMemory, OwnerId};

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

fn with_pool(page_count: u32, test: impl FnOnce(&Arena, &PagePool)) {
    let mut region = HeapRegion::new(4 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(4)).unwrap();
    let layout = std::alloc::Layout::from_size_align(page_count.max(1) as usize * PAGE_BYTES, PAGE_BYTES).unwrap();
    // SAFETY: the size is not zero; freed below, when the pool is not used any more.
    unsafe {
        let base = NonNull::new(std::alloc::alloc_zeroed(layout)).unwrap();
        test(arena, PagePool::create(arena, base, page_count).unwrap());
        std::alloc::dealloc(base.as_ptr(), layout);
    }
}

#[test]
fn the_last_page_can_be_had_by_anybody() {
    for page_count in [0, 1, 15, 16, 100] {
        with_pool(page_count, |arena, pool| {
            let cores: Vec<_> = (0..4).map(|number| arena.claim(number, owner()).unwrap()).collect();
            cores.iter().for_each(|core| pool.maintain(core));
            let pages: HashSet<_> = (0..page_count).map(|_| pool.allocate(&cores[2]).unwrap().get()).collect();
            assert_eq!(pages.len(), page_count as usize, "no page twice");
            assert_eq!(pool.allocate(&cores[1]), Err(OutOfMemory));
            assert_eq!(pool.free_pages(), 0);
            if let Some(&page) = pages.iter().next() {
                // SAFETY: allocated above, used by no one.
                unsafe { pool.free(&cores[0], pages::PageNumber::new(page)) };
                assert_eq!(pool.free_pages(), 1);
                assert_eq!(pool.allocate(&cores[3]).unwrap().get(), page);
            }
        });
    }
}

#[test]
fn every_page_lies_in_a_place_of_its_own() {
    with_pool(24, |arena, pool| {
        let core = arena.claim(0, owner()).unwrap();
        let pages: Vec<_> = (0..24).map(|_| pool.allocate(&core).unwrap()).collect();
        for page in &pages {
            // SAFETY: the page is ours alone.
            unsafe { pool.address(*page).write_bytes(page.get() as u8, PAGE_BYTES) };
        }
        for page in &pages {
            let address = pool.address(*page);
            // SAFETY: as above.
            let ends = unsafe { [address.read(), address.add(PAGE_BYTES - 1).read()] };
            assert_eq!(ends, [page.get() as u8; 2]);
            assert_eq!(address.as_ptr() as usize % PAGE_BYTES, 0);
        }
    });
}

#[test]
fn maintenance_fills_the_budget_of_its_core_once() {
    const BATCH: u32 = 16;
    with_pool(100, |arena, pool| {
        let (core, other) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        pool.maintain(&core);
        pool.maintain(&core);
        let seen = [&other, &core].map(|core| pool.allocate(core).unwrap().get() / BATCH);
        assert_eq!(seen, [1, 0], "the first pages are those of the core that maintained, and no more than these");
        pool.maintain(&core);
        pool.maintain(&core);
        let others = (0..BATCH).map(|_| pool.allocate(&other).unwrap().get() / BATCH).max();
        assert_eq!(others, Some(3), "a page that the core has used since made room for one batch");
    });
}

#[test]
fn a_pool_knows_its_arena() {
    with_pool(1, |arena, pool| {
        with_pool(1, |other, _| {
            assert!(pool.is_of(&arena.claim(0, owner()).unwrap()));
            assert!(!pool.is_of(&other.claim(0, owner()).unwrap()));
        });
    });
}

#[test]
fn a_retired_page_comes_back_when_no_reader_is_left() {
    with_pool(1, |arena, pool| {
        let epochs = Epochs::create(arena).unwrap();
        let (core, reader) = (arena.claim(0, owner()).unwrap(), arena.claim(1, owner()).unwrap());
        let page = pool.allocate(&core).unwrap();
        let pinned = epochs.pin(&reader);
        // SAFETY: allocated above; no one finds it.
        unsafe { pool.retire(&epochs.pin(&core), page) };
        let maintain = || {
            for _ in 0..4 {
                epochs.maintain(&core, |core, kind, object| {
                    // SAFETY: called by maintenance.
                    assert!(unsafe { pool.free_retired(core, kind, object) });
                });
            }
        };
        maintain();
        assert_eq!(pool.allocate(&core), Err(OutOfMemory));
        drop(pinned);
        maintain();
        assert_eq!(pool.allocate(&core), Ok(page));
    });
}

#[test]
fn threads_that_rob_each_other_lose_nothing() {
    const ROUNDS: usize = 3_000;
    with_pool(24, |arena, pool| {
        std::thread::scope(|scope| {
            for number in 0..3_u8 {
                scope.spawn(move || {
                    let core = arena.claim(number.into(), owner()).unwrap();
                    let mut mine = Vec::new();
                    for round in 0..ROUNDS {
                        if let Ok(page) = pool.allocate(&core) {
                            // SAFETY: the page is ours alone.
                            unsafe { pool.address(page).write(number) };
                            mine.push(page);
                        }
                        if mine.len() > 9 || round % 3 == 2 {
                            for page in mine.drain(..) {
                                // SAFETY: as above.
                                unsafe {
                                    assert_eq!(pool.address(page).read(), number, "a page has two owners");
                                    pool.free(&core, page);
                                }
                            }
                        }
                    }
                    for page in mine {
                        // SAFETY: as above.
                        unsafe { pool.free(&core, page) };
                    }
                });
            }
        });
        let core = arena.claim(3, owner()).unwrap();
        assert_eq!(pool.free_pages(), 24);
        assert_eq!((0..24).map(|_| pool.allocate(&core).unwrap().get()).collect::<HashSet<_>>().len(), 24);
    });
}

#[test]
fn tools_are_told_where_pages_and_descriptors_lie() {
    with_pool(24, |arena, pool| {
        let core = arena.claim(0, owner()).unwrap();
        pool.maintain(&core);
        let tables = pool.tables();
        assert_eq!(tables[0].memory.len(), 24 * PAGE_BYTES);
        let lines = tables[1].memory.len() / 24;
        assert_eq!((tables[1].memory.len(), lines % 64), (24 * lines, 0), "a descriptor is whole lines");
        let mut descriptors = HashSet::new();
        for _ in 0..24 {
            let page = pool.allocate(&core).unwrap();
            let (place, notes) = (pool.address(page).as_ptr() as usize, pool.notes(page).as_ptr() as usize);
            assert!(tables[0].memory.contains(&place) && tables[1].memory.contains(&notes));
            assert!(descriptors.insert((notes - tables[1].memory.start) / lines), "each has one of its own");
        }
    });
}
