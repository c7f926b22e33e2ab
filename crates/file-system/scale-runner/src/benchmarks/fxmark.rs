//! The cases of FxMark (Min and others, USENIX ATC 2016): data and metadata, each of a core's own (low sharing), in something that
//! all cores share (medium), and where all use one thing (high). Its case of `fsync` (DWSL) is not here: nothing is durable.

use std::hint::black_box;

use scalefs::data as calls;
use scalefs::names::{self, RenameMode};
use scalefs::{DataOperations, Follow, OpenFlags, directories};

use super::path::Path;
use super::{ANY, AT, READ_WRITE, make, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

const PAGE: usize = 4096;
/// What grows is emptied after so many operations, and so many names come and go.
const TURN: u64 = 16;

const fn case(
    name: &'static str,
    operation: &'static str,
    prepare: for<'w> fn(&'w World) -> Operation<'w>,
) -> Benchmark {
    Benchmark { name, operation, maintains: true, prepare }
}

pub const BENCHMARKS: [Benchmark; 18] = [
    case("drbl", "FxMark: read of a page of a file of the core's own", |world| read(world, Share::Low)),
    case("drbm", "FxMark: read of a page of the core's own of one file", |world| read(world, Share::Medium)),
    case("drbh", "FxMark: read of one page of one file", |world| read(world, Share::High)),
    case("dwol", "FxMark: overwriting of a page of a file of the core's own", |world| overwrite(world, Share::Low)),
    case("dwom", "FxMark: overwriting of a page of the core's own of one file", |world| {
        overwrite(world, Share::Medium)
    }),
    case("dwal", "FxMark: a page appended to a file of the core's own", append),
    case("dwtl", "FxMark: truncation of a file of the core's own, and growth by a page", truncate),
    case("mrpl", "FxMark: open and close of a file five directories deep, of the core's own", |world| {
        open(world, Share::Low)
    }),
    case("mrpm", "FxMark: open and close of another core's file in one directory, five deep", |world| {
        open(world, Share::Medium)
    }),
    case("mrph", "FxMark: open and close of one file, five directories deep", |world| open(world, Share::High)),
    case("mrdl", "FxMark: listing of a directory of the core's own", |world| list(world, Share::Low)),
    case("mrdm", "FxMark: listing of one directory", |world| list(world, Share::Medium)),
    case(
        "mwcl",
        "FxMark: creation in a directory of the core's own; what was made 16 times before is removed",
        |world| create(world, Share::Low),
    ),
    case("mwcm", "FxMark: creation in one directory; what was made 16 times before is removed", |world| {
        create(world, Share::Medium)
    }),
    case("mwul", "FxMark: removal of a second name in a directory of the core's own, and link again", |world| {
        remove(world, Share::Low)
    }),
    case("mwum", "FxMark: removal of a second name in one directory, and link again", |world| {
        remove(world, Share::Medium)
    }),
    case("mwrl", "FxMark: renaming in a directory of the core's own", |world| rename(world, Share::Low)),
    case("mwrm", "FxMark: renaming from a directory of the core's own into one directory, and back", |world| {
        rename(world, Share::Medium)
    }),
];

/// What cores share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Nothing.
    Low,
    /// What they use parts of.
    Medium,
    /// What they use.
    High,
}

/// A directory for each core, and one for all. The core's part of a path in the one that it uses.
fn directories(world: &World, share: Share) -> impl Fn(usize, &str) -> Path {
    let make = |path: &str| {
        directories::make_directory(world.enter(0).objects(), AT, path.as_bytes(), 0o700).expect("mkdir");
    };
    make("common");
    (0..world.core_count()).for_each(|core| make(&format!("own-{core}")));
    move |core, name| match share {
        Share::Low => Path::from(format!("own-{core}/{name}")),
        Share::Medium => Path::from(format!("common/{name}-{core}")),
        Share::High => Path::from(format!("common/{name}")),
    }
}

/// A descriptor for each core, and the offset of its page.
fn pages(world: &World, share: Share) -> Vec<(u32, i64)> {
    let file = |path: Vec<u8>, pages: usize| {
        let fd = make(world, &path);
        for page in 0..pages {
            calls::write_at(&world.enter(0), fd, &[1; PAGE], (page * PAGE) as i64).expect("pwrite");
        }
        fd
    };
    let common = file(b"file".to_vec(), world.core_count());
    of_each(world, |core| match share {
        Share::Low => (file(format!("file-{core}").into_bytes(), 1), 0),
        Share::Medium => (common, (core * PAGE) as i64),
        Share::High => (common, 0),
    })
}

fn read(world: &World, share: Share) -> Operation<'_> {
    let pages = pages(world, share);
    Box::new(move |core, _| {
        let (fd, offset) = pages[core];
        calls::read_at(&world.enter(core), fd, &mut [0; PAGE], offset).expect("pread");
    })
}

fn overwrite(world: &World, share: Share) -> Operation<'_> {
    let pages = pages(world, share);
    Box::new(move |core, _| {
        let (fd, offset) = pages[core];
        calls::write_at(&world.enter(core), fd, &[core as u8; PAGE], offset).expect("pwrite");
    })
}

fn append(world: &World) -> Operation<'_> {
    let pages = pages(world, Share::Low);
    Box::new(move |core, round| {
        let (fd, _) = pages[core];
        if round % TURN == 0 {
            calls::truncate(&world.enter(core), fd, 0).expect("ftruncate");
        }
        calls::write_at(&world.enter(core), fd, &[core as u8; PAGE], (round % TURN) as i64 * PAGE as i64)
            .expect("pwrite");
    })
}

fn truncate(world: &World) -> Operation<'_> {
    let pages = pages(world, Share::Low);
    Box::new(move |core, _| {
        calls::truncate(&world.enter(core), pages[core].0, 0).expect("ftruncate");
        calls::truncate(&world.enter(core), pages[core].0, PAGE as i64).expect("ftruncate");
    })
}

fn open(world: &World, share: Share) -> Operation<'_> {
    let path = directories(world, share);
    let deep = |core: usize| {
        let mut directory = match share {
            Share::Low => format!("own-{core}"),
            _ => "common".to_owned(),
        };
        for level in 0..4 {
            directory = format!("{directory}/{level}");
            // Those of all cores are there after the first.
            let _ = directories::make_directory(world.enter(0).objects(), AT, directory.as_bytes(), 0o700);
        }
        let path = path(core, "file");
        let name = path.rsplit(|byte| *byte == b'/').next().expect("a path has a name");
        let path = Path::from(&*[directory.as_bytes(), b"/", name].concat());
        calls::close(&world.enter(0), make(world, &path)).expect("close");
        path
    };
    let paths = of_each(world, deep);
    let apart = if share == Share::Medium { 7 } else { 0 };
    Box::new(move |core, round| {
        let path = &paths[(core + apart * round as usize) % paths.len()];
        let fd = calls::open(&world.enter(core), AT, path, OpenFlags::READ, 0, ANY).expect("open");
        calls::close(&world.enter(core), fd).expect("close");
    })
}

fn list(world: &World, share: Share) -> Operation<'_> {
    let path = directories(world, share);
    let opened = of_each(world, |core| {
        calls::close(&world.enter(0), make(world, &path(core, "file"))).expect("close");
        let directory = if share == Share::Low { format!("own-{core}") } else { "common".to_owned() };
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        calls::open(&world.enter(0), AT, directory.as_bytes(), flags, 0, ANY).expect("open")
    });
    Box::new(move |core, _| {
        let calls = world.enter(core);
        let node = calls::node(&calls, opened[core]).expect("an open directory");
        let mut count = 0;
        directories::read_directory(calls.objects(), node, 0, |_| {
            count += 1;
            true
        })
        .expect("readdir");
        black_box(count);
    })
}

/// Names of each core that come and go.
fn turning(world: &World, share: Share) -> Vec<Vec<Path>> {
    let path = directories(world, share);
    of_each(world, |core| (0..TURN).map(|number| path(core, &format!("name-{number}"))).collect())
}

fn create(world: &World, share: Share) -> Operation<'_> {
    let names = turning(world, share);
    let flags = READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    Box::new(move |core, round| {
        let name = &names[core][(round % TURN) as usize];
        if round >= TURN {
            names::unlink(world.enter(core).objects(), AT, name).expect("unlink");
        }
        let fd = calls::open(&world.enter(core), AT, name, flags, 0o600, ANY).expect("creation");
        calls::close(&world.enter(core), fd).expect("close");
    })
}

fn remove(world: &World, share: Share) -> Operation<'_> {
    let path = directories(world, share);
    let link = |core: usize, [first, second]: &[Path; 2]| {
        names::link(world.enter(core).objects(), (AT, first), (AT, second), Follow::Nothing).expect("link");
    };
    let names = of_each(world, |core| {
        let names = ["first", "second"].map(|name| path(core, name));
        calls::close(&world.enter(0), make(world, &names[0])).expect("close");
        link(0, &names);
        names
    });
    Box::new(move |core, _| {
        names::unlink(world.enter(core).objects(), AT, &names[core][1]).expect("unlink");
        link(core, &names[core]);
    })
}

fn rename(world: &World, share: Share) -> Operation<'_> {
    let path = directories(world, share);
    let names = of_each(world, |core| {
        let from = Path::from(format!("own-{core}/one"));
        calls::close(&world.enter(0), make(world, &from)).expect("close");
        [from, path(core, "other")]
    });
    Box::new(move |core, round| {
        let [from, to] = if round % 2 == 0 { [0, 1] } else { [1, 0] }.map(|number| &names[core][number]);
        names::rename(world.enter(core).objects(), (AT, from), (AT, to), RenameMode::Replace).expect("rename");
    })
}
