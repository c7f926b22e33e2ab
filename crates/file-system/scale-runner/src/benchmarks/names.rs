//! Names and what they lead to: stat beside link and unlink, opening, and making, renaming and removing files in one directory.

use std::hint::black_box;

use scalefs::data::{self as calls, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{DataOperations, Fields, Follow, OpenFlags, attributes};

use super::{ANY, AT, READ_WRITE, make, name, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 9] = [
    Benchmark {
        name: "stat",
        operation: "fstat of one file by every other core, link and unlink of another name of it by those between",
        maintains: true,
        prepare: |world| stat(world, Fields::ALL),
    },
    Benchmark {
        name: "statx",
        operation: "as stat, but the status is asked for without what link and unlink change: number of links and times",
        maintains: true,
        prepare: |world| stat(world, Fields::PERMISSIONS.union(Fields::SIZE)),
    },
    Benchmark {
        name: "stat-two",
        operation: "fstat of one file, of which two cores link and unlink another name at every 16th",
        maintains: true,
        prepare: stat_two,
    },
    Benchmark {
        name: "open",
        operation: "open of a file of the core's own, by the lowest free number, and close",
        maintains: true,
        prepare: |world| open(world, DescriptorOptions::PLAIN),
    },
    Benchmark {
        name: "open-any",
        operation: "as open, by any free number",
        maintains: true,
        prepare: |world| open(world, ANY),
    },
    Benchmark {
        name: "create",
        operation: "creation, close and removal of a name of the core's own in the common directory",
        maintains: true,
        prepare: create,
    },
    Benchmark {
        name: "rename",
        operation: "renaming of a file of the core's own in the common directory",
        maintains: true,
        prepare: rename,
    },
    Benchmark {
        name: "create-same",
        operation: "creation (without O_EXCL) and close of one name that is there already, and which no one removes",
        maintains: true,
        prepare: create_same,
    },
    Benchmark {
        name: "look-up",
        operation: "stat of another core's name in the common directory, without what link and unlink change",
        maintains: true,
        prepare: look_up,
    },
];

fn stat(world: &World, fields: Fields) -> Operation<'_> {
    let fd = make(world, b"file");
    let names = of_each(world, |core| name(core, "link"));
    let is_alone = world.core_count() == 1;
    Box::new(move |core, round| {
        // One core does both in turn, so that an operation is on average what it is with more.
        let asks = if is_alone { round % 2 == 0 } else { core % 2 == 0 };
        if asks {
            black_box(calls::stat(&world.enter(core), fd, fields).expect("fstat"));
        } else {
            names::link(world.enter(core).objects(), (AT, b"file"), (AT, &names[core]), Follow::Nothing).expect("link");
            names::unlink(world.enter(core).objects(), AT, &names[core]).expect("unlink");
        }
    })
}

/// However many cores there are, two change what all ask for.
fn stat_two(world: &World) -> Operation<'_> {
    let fd = make(world, b"file");
    let names = of_each(world, |core| name(core, "link"));
    Box::new(move |core, round| {
        if core < 2 && round % 16 == 0 {
            names::link(world.enter(core).objects(), (AT, b"file"), (AT, &names[core]), Follow::Nothing).expect("link");
            names::unlink(world.enter(core).objects(), AT, &names[core]).expect("unlink");
        }
        black_box(calls::stat(&world.enter(core), fd, Fields::ALL).expect("fstat"));
    })
}

fn open(world: &World, options: DescriptorOptions) -> Operation<'_> {
    let names = of_each(world, |core| name(core, "file"));
    names.iter().for_each(|name| calls::close(&world.enter(0), make(world, name)).expect("close"));
    Box::new(move |core, _| {
        let opened = calls::open(&world.enter(core), AT, &names[core], OpenFlags::READ, 0, options).expect("open");
        calls::close(&world.enter(core), opened).expect("close");
    })
}

fn create(world: &World) -> Operation<'_> {
    let names = of_each(world, |core| name(core, "file"));
    let flags = READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    Box::new(move |core, _| {
        let opened = calls::open(&world.enter(core), AT, &names[core], flags, 0o600, ANY).expect("creation");
        calls::close(&world.enter(core), opened).expect("close");
        names::unlink(world.enter(core).objects(), AT, &names[core]).expect("unlink");
    })
}

fn rename(world: &World) -> Operation<'_> {
    let names = of_each(world, |core| [name(core, "one"), name(core, "other")]);
    names.iter().for_each(|[one, _]| calls::close(&world.enter(0), make(world, one)).expect("close"));
    Box::new(move |core, round| {
        let [from, to] = if round % 2 == 0 { [0, 1] } else { [1, 0] }.map(|number| &names[core][number]);
        names::rename(world.enter(core).objects(), (AT, from), (AT, to), RenameMode::Replace).expect("rename");
    })
}

fn create_same(world: &World) -> Operation<'_> {
    calls::close(&world.enter(0), make(world, b"file")).expect("close");
    Box::new(move |core, _| {
        let flags = READ_WRITE | OpenFlags::CREATE;
        let opened = calls::open(&world.enter(core), AT, b"file", flags, 0o600, ANY).expect("open");
        calls::close(&world.enter(core), opened).expect("close");
    })
}

fn look_up(world: &World) -> Operation<'_> {
    let names = of_each(world, |core| name(core, "file"));
    names.iter().for_each(|name| calls::close(&world.enter(0), make(world, name)).expect("close"));
    let fields = Fields::PERMISSIONS.union(Fields::SIZE);
    Box::new(move |core, round| {
        let name = &names[(core + 7 * round as usize) % names.len()];
        black_box(attributes::stat(world.enter(core).objects(), AT, name, Follow::Symlinks, fields).expect("stat"));
    })
}
