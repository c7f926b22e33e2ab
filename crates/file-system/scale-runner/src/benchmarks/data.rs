//! Pages of one file, by one descriptor.

use scalefs::Whence;
use scalefs::data as calls;

use super::{make, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

const PAGE: usize = 4096;

pub const BENCHMARKS: [Benchmark; 4] = [
    Benchmark {
        name: "pread",
        operation: "pread of a page of the core's own of one file",
        maintains: true,
        prepare: pread,
    },
    Benchmark {
        name: "pwrite",
        operation: "pwrite of a page of the core's own of one file",
        maintains: true,
        prepare: |world| pwrite(world, 1),
    },
    Benchmark {
        name: "pwrite-same",
        operation: "pwrite of one page that all cores write",
        maintains: true,
        prepare: |world| pwrite(world, 0),
    },
    Benchmark {
        name: "read",
        operation: "read of a page by the one descriptor of all cores, whose offset they share, and back to the start",
        maintains: true,
        prepare: read,
    },
];

/// A file with a page for each core.
fn file(world: &World) -> u32 {
    let fd = make(world, b"file");
    for page in 0..world.core_count() {
        calls::write_at(&world.enter(0), fd, &[1; PAGE], (page * PAGE) as i64).expect("pwrite");
    }
    fd
}

fn pread(world: &World) -> Operation<'_> {
    let fd = file(world);
    Box::new(move |core, _| {
        let mut bytes = [0; PAGE];
        calls::read_at(&world.enter(core), fd, &mut bytes, (core * PAGE) as i64).expect("pread");
    })
}

fn read(world: &World) -> Operation<'_> {
    let fd = file(world);
    Box::new(move |core, _| {
        calls::read(&world.enter(core), fd, &mut [0; PAGE]).expect("read");
        calls::seek(&world.enter(core), fd, 0, Whence::Start).expect("lseek");
    })
}

fn pwrite(world: &World, apart: usize) -> Operation<'_> {
    let fd = file(world);
    let pages = of_each(world, |core| [core as u8; PAGE]);
    Box::new(move |core, _| {
        calls::write_at(&world.enter(core), fd, &pages[core], (apart * core * PAGE) as i64).expect("pwrite");
    })
}
