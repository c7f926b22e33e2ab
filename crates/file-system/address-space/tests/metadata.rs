//! What a mapping takes of memory beside its pages, counted: a mapping of 1 GiB, and then each page and core that touches it.
#![cfg(not(any(loom, shuttle, miri)))]

mod support;

use address_space::{AddressSpace, Backing, Place, Protection};
use pages::PAGE_BYTES;
use percpu::Core;
use support::{Instance, owner, with_instance};

const GIB_PAGES: u64 = (1 << 30) / PAGE_BYTES as u64;
/// Of a space's first mapping: three nodes on the way to it in content, "writable" and "mapped" each. The goal is 8 KiB.
const FIRST_MAPPING_BYTES: i64 = 9 << 10;
const MAPPING_BYTES: i64 = 8 << 10;
const BYTES_PER_PAGE_AND_CORE: f64 = 192.0;

/// Each core loads from so many pages, one after the other, or stores to them.
fn touch(instance: &Instance<'_>, space: &AddressSpace, cores: &[Core<'_>], pages: std::ops::Range<u64>, stores: bool) {
    for core in cores {
        instance.call(core, |memory| {
            for address in pages.clone().map(|page| page * PAGE_BYTES as u64) {
                match stores {
                    true => space.store(memory, address, &[1]).unwrap(),
                    false => space.load(memory, address, &mut [0]).unwrap(),
                }
            }
        });
    }
}

#[test]
fn a_mapping_of_a_gib_takes_a_few_slots_and_each_page_that_a_core_touches_a_few_lines() {
    for core_count in [1, 4] {
        for stores in [false, true] {
            with_instance(core_count, 4096, |instance, space| {
                let cores: Vec<_> = (0..core_count)
                    .map(|number| instance.arena.claim_waiting(number, owner(), &sync::Spin).unwrap())
                    .collect();
                let live = || instance.arena.live_bytes();
                let map = || {
                    let before = live();
                    let (place, rights) = (Place::Anywhere, Protection::ReadWrite);
                    let mapped = instance.call(&cores[0], |memory| {
                        space.map(memory, place, GIB_PAGES, rights, Backing::Anonymous).unwrap()
                    });
                    (mapped.page, live() - before)
                };
                let (page, first) = map();
                let (_, second) = map();
                assert!(first <= FIRST_MAPPING_BYTES, "the first GiB takes {first} bytes");
                assert!(second <= MAPPING_BYTES, "a second one takes {second} bytes");
                let pages = 2048;
                let before = live();
                touch(instance, space, &cores, page..page + pages, stores);
                let each = (live() - before) as f64 / (pages * core_count as u64) as f64;
                let access = if stores { "stores" } else { "loads" };
                println!(
                    "1 GiB: {first} bytes, another {second}; {each:.1} for each page and core of {core_count} that {access}"
                );
                assert!(each <= BYTES_PER_PAGE_AND_CORE, "{each} bytes for each page and core that touches it");
            });
        }
    }
}
