//! A pop against a robbery: `RUSTFLAGS="--cfg loom" cargo test -p pages --release --test models`.
#![cfg(any(loom, shuttle))]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pages::{PAGE_BYTES, PageNumber, PagePool};
use percpu::model::ModelArena;

/// One core frees, allocates and frees; the other allocates. No page has two owners, and none is lost.
fn pop_and_rob(owner_first: bool) {
    let model = ModelArena::new(2, 256 << 10);
    let base = NonNull::new(PAGE_BYTES as *mut u8).unwrap();
    // SAFETY: the model does not touch the pages.
    let pool: &'static PagePool = unsafe { PagePool::create(model.arena(), base, 2) }.unwrap();
    let (zero, one) = (model.core(0), model.core(1));
    let owned = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let take = |owned: &[AtomicU32; 2], page: PageNumber| {
        assert_eq!(owned[page.get() as usize].fetch_add(1, Ordering::Relaxed), 0, "two owners");
        page
    };
    let give = |owned: &[AtomicU32; 2], page: PageNumber| {
        owned[page.get() as usize].fetch_sub(1, Ordering::Relaxed);
        page
    };
    let pages = [0, 1].map(|_| pool.allocate(&zero).unwrap());
    for page in pages {
        // SAFETY: allocated above.
        unsafe { pool.free(&zero, page) };
    }
    let owner = {
        let owned = Arc::clone(&owned);
        move || {
            let page = pool.allocate(&zero).map(|page| take(&owned, page));
            if let Ok(page) = page {
                // SAFETY: allocated just now.
                unsafe { pool.free(&zero, give(&owned, page)) };
            }
            if let Ok(page) = pool.allocate(&zero) {
                take(&owned, page);
            }
        }
    };
    let robber = {
        let owned = Arc::clone(&owned);
        move || {
            if let Ok(page) = pool.allocate(&one) {
                take(&owned, page);
            }
        }
    };
    sync::model::both(owner_first, owner, robber);
}

#[test]
fn no_page_has_two_owners() {
    for owner_first in [true, false] {
        sync::model::explore(3, 20, move || pop_and_rob(owner_first));
        sync::model::must_catch("pages: pop in two steps", 3, move || pop_and_rob(owner_first));
    }
}
