//! A mail server in one process (SOSP 2013, section 6.2): a message is queued, told of, taken by whoever comes first, and
//! delivered by a process of its own.

use std::hint::black_box;

use scalefs::data::{self as calls, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{DataOperations, OnExec, OpenFlags, SocketOrder, SpawnOptions, Which, directories, processes, sockets};
use sync::atomic::{AtomicU64, Ordering};

use super::path::Path;
use super::{ANY, AT, again, of_each};
use crate::benchmark::{Benchmark, Operation};
use crate::world::World;

pub const BENCHMARKS: [Benchmark; 3] = [
    Benchmark {
        name: "mail",
        operation: "a message queued and announced, and one taken and delivered: lowest numbers, ordered socket, fork",
        maintains: true,
        prepare: |world| {
            mail(
                world,
                &Variant { options: DescriptorOptions::PLAIN, order: SocketOrder::Ordered, forks: true, count: None },
            )
        },
    },
    Benchmark {
        name: "mail-any",
        operation: "as mail: any numbers, which exec closes, unordered socket, posix_spawn",
        maintains: true,
        prepare: |world| mail(world, &COMMUTATIVE),
    },
    Benchmark {
        name: "mail-any-counted",
        operation: "as mail-any; deliveries are counted in one place",
        maintains: true,
        prepare: |world| mail(world, &Variant { count: Some(&DELIVERY_COUNT), ..COMMUTATIVE }),
    },
];

/// Descriptors that a new program does not get: posix_spawn passes on all others, of whichever core.
const OWN: DescriptorOptions = DescriptorOptions { on_exec: OnExec::Close, ..ANY };
const COMMUTATIVE: Variant = Variant { options: OWN, order: SocketOrder::Unordered, forks: false, count: None };

struct Variant {
    options: DescriptorOptions,
    order: SocketOrder,
    forks: bool,
    count: Option<&'static Count>,
}

/// A planted fault. Relaxed: nothing hangs on it.
static DELIVERY_COUNT: Count = Count(AtomicU64::new(0));

#[repr(align(64))]
struct Count(AtomicU64);

/// Messages of a core that can be on their way at a time.
const UNDER_WAY: usize = 16;
const MESSAGE: [u8; 512] = [b'm'; 512];
const LONGEST_NAME: usize = 32;

fn mail<'w>(world: &'w World, &Variant { options, order, forks, count }: &Variant) -> Operation<'w> {
    for folder in ["spool", "tmp", "new"] {
        directories::make_directory(world.enter(0).objects(), AT, folder.as_bytes(), 0o700).expect("mkdir");
    }
    let of_message = |folder: &'static str| {
        let names =
            |core: usize| (0..UNDER_WAY).map(|number| Path::from(format!("{folder}/{core}-{number}"))).collect();
        of_each(world, names)
    };
    let [spooled, drafts, delivered]: [Vec<Vec<Path>>; 3] = ["spool", "tmp", "new"].map(of_message);
    let (tell, told) = sockets::pair(&world.enter(0), order, options).expect("a pair of sockets");
    let make = move |core: usize, path: &[u8], content: &[u8]| {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let fd = calls::open(&world.enter(core), AT, path, flags, 0o600, options).expect("creation");
        calls::write(&world.enter(core), fd, content).expect("write");
        calls::close(&world.enter(core), fd).expect("close");
    };
    Box::new(move |core, round| {
        let number = round as usize % UNDER_WAY;
        // mail-enqueue
        make(core, &spooled[core][number], &MESSAGE);
        again(|| sockets::send(&world.enter(core), tell, None, &spooled[core][number]).map(|_| ()));
        // mail-qman
        let mut name = [0; LONGEST_NAME];
        let mut length = 0;
        again(|| {
            length = sockets::receive(&world.enter(core), told, &mut name)?.length_bytes;
            Ok(())
        });
        let name = &name[..length];
        let fd = calls::open(&world.enter(core), AT, name, OpenFlags::READ, 0, options).expect("open");
        let mut message = [0; MESSAGE.len()];
        assert_eq!(calls::read(&world.enter(core), fd, &mut message), Ok(MESSAGE.len()));
        calls::close(&world.enter(core), fd).expect("close");
        let child = match forks {
            true => world.process.fork(world.file_system, world.core(core), world.host()).expect("fork"),
            false => processes::spawn(&world.enter(core), &[], SpawnOptions::default()).expect("posix_spawn"),
        };
        // mail-deliver
        make(core, &drafts[core][number], &message);
        let (from, to) = (&drafts[core][number], &delivered[core][number]);
        names::rename(world.enter(core).objects(), (AT, from), (AT, to), RenameMode::Replace).expect("rename");
        if let Some(Count(count)) = count {
            black_box(count.fetch_add(1, Ordering::Relaxed));
        }
        let number = child.number();
        child.exit(world.file_system, world.core(core), world.host());
        processes::wait(&world.enter(core), Which::Child(number)).expect("wait");
        names::unlink(world.enter(core).objects(), AT, name).expect("unlink");
    })
}
