//! Memory of one process: RadixVM's benchmarks.

use std::cell::Cell;

use scalefs::memory::{self, Address, MappedObject};
use scalefs::{MemoryOperations, Protection};

use super::of_each;
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

const PAGE: u64 = 4096;
/// In the pipeline each core's pages are at places of its choice, this far apart.
const APART: u64 = 1 << 30;
const BASE: u64 = 1 << 40;

pub const BENCHMARKS: [Benchmark; 2] = [
    Benchmark {
        name: "map",
        operation: "map of a page of the core's own, a store there, and unmap",
        maintains: true,
        prepare: local,
    },
    Benchmark {
        name: "map-pipeline",
        operation: "map of a page and a store there; a store to the page that the core before has mapped, and unmap of it",
        maintains: true,
        prepare: pipeline,
    },
];

fn map(world: &World, core: usize, address: Address) -> u64 {
    let object = MappedObject::Anonymous;
    let mapped = memory::map(&world.enter(core), address, PAGE, Protection::ReadWrite, object).expect("mmap");
    store(world, core, mapped);
    mapped
}

fn store(world: &World, core: usize, address: u64) {
    assert!(world.enter(core).store(address, &[1]).is_ok(), "a store to a page that is mapped");
}

fn local(world: &World) -> Operation<'_> {
    Box::new(move |core, _| {
        let address = map(world, core, Address::Any);
        memory::unmap(&world.enter(core), address, PAGE).expect("munmap");
    })
}

fn pipeline(world: &World) -> Operation<'_> {
    // How many pages a core has mapped, and how many of them the next one has unmapped. Not in shared memory of their own:
    // what is handed on is told by the pages, as a program would by a queue, which would be measured with them.
    let mapped = of_each(world, |_| Cell::new(0_u64));
    let taken = of_each(world, |_| Cell::new(0_u64));
    let count = world.core_count();
    Box::new(move |core, _| {
        let address = |core: usize, number: u64| BASE + core as u64 * APART + number % 1024 * PAGE;
        map(world, core, Address::Fixed(address(core, mapped[core].get())));
        mapped[core].set(mapped[core].get() + 1);
        let before = (core + count - 1) % count;
        if taken[before].get() < mapped[before].get() {
            let page = address(before, taken[before].get());
            taken[before].set(taken[before].get() + 1);
            store(world, core, page);
            memory::unmap(&world.enter(core), page, PAGE).expect("munmap");
        }
    })
}
