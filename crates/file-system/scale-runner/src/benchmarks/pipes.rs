//! Pipes: one for each core, and one for all.

use scalefs::data as calls;

use scalefs::data::DescriptorOptions;

use super::{ANY, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 4] = [
    Benchmark {
        name: "pipe",
        operation: "a byte written to a pipe of the core's own, and read from it",
        maintains: true,
        prepare: |world| pipe(world, world.core_count()),
    },
    Benchmark {
        name: "pipe-shared",
        operation: "a byte written to the one pipe of all cores, and one read from it",
        maintains: true,
        prepare: |world| pipe(world, 1),
    },
    Benchmark {
        name: "pipe-new",
        operation: "creation of a pipe by the lowest free numbers, a byte through it, and close of both ends",
        maintains: true,
        prepare: |world| new_pipe(world, DescriptorOptions::PLAIN),
    },
    Benchmark {
        name: "pipe-new-any",
        operation: "as pipe-new, by any free numbers",
        maintains: true,
        prepare: |world| new_pipe(world, ANY),
    },
];

fn new_pipe(world: &World, options: DescriptorOptions) -> Operation<'_> {
    Box::new(move |core, _| {
        let (from, to) = calls::pipe(&world.enter(core), options).expect("a pipe");
        assert_eq!(calls::write(&world.enter(core), to, &[7]), Ok(1));
        assert_eq!(calls::read(&world.enter(core), from, &mut [0]), Ok(1));
        for fd in [from, to] {
            calls::close(&world.enter(core), fd).expect("close");
        }
    })
}

fn pipe(world: &World, count: usize) -> Operation<'_> {
    let pipes: Vec<(u32, u32)> = (0..count).map(|_| calls::pipe(&world.enter(0), ANY).expect("a pipe")).collect();
    let ends = of_each(world, |core| pipes[core % count]);
    Box::new(move |core, _| {
        let (from, to) = ends[core];
        assert_eq!(calls::write(&world.enter(core), to, &[7]), Ok(1));
        // What was written first may be another core's; each finds one, since each has put one there.
        assert_eq!(calls::read(&world.enter(core), from, &mut [0]), Ok(1));
    })
}
