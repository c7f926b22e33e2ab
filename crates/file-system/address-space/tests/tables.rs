//! Whose tables a call writes to that takes a page away, counted in the memory of the instance: those of cores that have touched the
//! page, and no other, on 2, 16 and 64 cores.
#![cfg(not(any(loom, shuttle, miri)))]

mod support;

use std::collections::BTreeSet;

use address_space::{Backing, Place, Protection};
use pages::PAGE_BYTES;
use percpu::Core;
use support::{Instance, owner, with_instance};

const LINE_BYTES: usize = 64;
/// As `with_instance` makes it.
const REGION_BYTES: usize = 16 << 20;
const FIRST: u64 = 1000;
const PAGES: u64 = 2;

/// All of the instance's memory but the pool, as it is.
fn snapshot(instance: &Instance<'_>) -> Vec<[u8; LINE_BYTES]> {
    let base = std::ptr::from_ref(instance.arena).cast::<[u8; LINE_BYTES]>();
    // SAFETY: the arena begins its region, and this thread alone uses it, which calls nothing meanwhile.
    unsafe { std::slice::from_raw_parts(base, REGION_BYTES / LINE_BYTES - 64) }.to_vec()
}

/// The lines that `act` changes.
fn written(instance: &Instance<'_>, act: impl FnOnce()) -> BTreeSet<usize> {
    let before = snapshot(instance);
    act();
    let after = snapshot(instance);
    // Most of the memory is as it was: by pages first.
    const CHUNK_LINES: usize = 1024;
    let chunks = before.chunks(CHUNK_LINES).zip(after.chunks(CHUNK_LINES)).enumerate();
    let changed = chunks.filter(|(_, (before, after))| before.as_flattened() != after.as_flattened());
    changed
        .flat_map(|(chunk, (before, after))| {
            (0..before.len()).filter(|line| before[*line] != after[*line]).map(move |line| chunk * CHUNK_LINES + line)
        })
        .collect()
}

fn check(core_count: usize) {
    with_instance(core_count, 256, |instance, space| {
        let cores: Vec<Core<'_>> =
            (0..core_count).map(|number| instance.arena.claim_waiting(number, owner(), &sync::Spin).unwrap()).collect();
        let map = |core: &Core<'_>| {
            let (place, rights) = (Place::Fixed(FIRST), Protection::ReadWrite);
            instance.call(core, |memory| space.map(memory, place, PAGES, rights, Backing::Anonymous)).unwrap();
        };
        let touch = |core: &Core<'_>, page: u64| {
            let address = (FIRST + page) * PAGE_BYTES as u64;
            instance.call(core, |memory| space.load(memory, address, &mut [0])).unwrap();
        };
        map(&cores[0]);
        // The second page by all but the first core: so each has a table, and in it a place for the first page.
        let own: Vec<BTreeSet<usize>> = cores.iter().skip(1).map(|core| written(instance, || touch(core, 1))).collect();
        let touched: Vec<usize> = (1..core_count).filter(|core| core % 3 == 1).collect();
        touched.iter().for_each(|core| touch(&cores[*core], 0));
        let unmapped = written(instance, || {
            instance.call(&cores[0], |memory| space.unmap(memory, FIRST..FIRST + 1)).unwrap();
        });
        let asked: Vec<usize> =
            (1..core_count).filter(|core| own[core - 1].intersection(&unmapped).next().is_some()).collect();
        println!(
            "{core_count} cores, {} of which have touched the page: {} lines written",
            touched.len(),
            unmapped.len()
        );
        assert_eq!(asked, touched, "cores whose tables were written to");
        // One line in each of these tables.
        for core in touched {
            assert_eq!(own[core - 1].intersection(&unmapped).count(), 1, "lines of core {core}'s table");
        }
    });
}

#[test]
fn unmapping_writes_to_tables_of_cores_that_touched_the_page() {
    [2, 16, 64].into_iter().for_each(check);
}
