//! Children of one process: `forkexecbench`.

use scalefs::{OnExec, SpawnOptions, Which, processes};

use super::{make, name, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 2] = [
    Benchmark {
        name: "fork",
        operation: "fork, exit of the child, and wait for it; each core has a descriptor",
        maintains: true,
        prepare: |world| child(world, true),
    },
    Benchmark {
        name: "spawn",
        operation: "as fork, by posix_spawn, which does not pass on what exec closes",
        maintains: true,
        prepare: |world| child(world, false),
    },
];

fn child(world: &World, forks: bool) -> Operation<'_> {
    let opened = of_each(world, |core| make(world, &name(core, "file")));
    for fd in opened {
        scalefs::data::set_on_exec(&world.enter(0), fd, OnExec::Close).expect("fcntl");
    }
    Box::new(move |core, _| {
        let child = match forks {
            true => world.process.fork(world.file_system, world.core(core), world.host()).expect("fork"),
            false => processes::spawn(&world.enter(core), &[], SpawnOptions::default()).expect("posix_spawn"),
        };
        let number = child.number();
        child.exit(world.file_system, world.core(core), world.host());
        processes::wait(&world.enter(core), Which::Child(number)).expect("wait");
    })
}
