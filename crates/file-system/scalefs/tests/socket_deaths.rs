//! A process dies before each of its accesses in calls on sockets by descriptor: messages are there or not, once, and others go
//! on. And threads that close the last two descriptors of a socket, or name a socket while it is closed, in chosen schedules.
#![cfg(all(shuttle, target_os = "linux"))]

use std::mem::forget;
use std::ptr::NonNull;

use history::threads;
use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, die, die_everywhere};
use percpu::{ArenaConfig, Core, HeapRegion};
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Credentials, Errno, Host, OnExec, Process, ScaleFs, ScaleFsConfig, SocketName, SocketOrder, SpawnOptions,
    StatusFlags, processes, sockets,
};
use sync::mutant::must_be_caught;
use sync::{Spin, Wait, WaitReason};

const PAGES: usize = 96;
const OPTIONS: DescriptorOptions = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
/// Of the pair that both cores use, and of the socket that has a name.
const SENDS: u32 = 0;
const RECEIVES: u32 = 1;
const NAMED: u32 = 2;

fn name(text: &[u8]) -> SocketName {
    SocketName::new(text).unwrap()
}

/// Waits for a while, and then takes it that nobody will come.
struct Patience;

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits for ever: {reason:?}");
    }
}

impl Host for Patience {
    fn now_ns(&self) -> u64 {
        0
    }
}

/// An instance with pages, and a process with a pair and a socket that is called `n`.
struct Scene<'w> {
    fs: &'w ScaleFs,
    process: Process,
    _pages: HeapRegion,
}

fn begin<'w>(core: &Core<'w>, order: SocketOrder) -> Scene<'w> {
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 2,
        count_slots_per_core: 64,
        ..ScaleFsConfig::default()
    };
    let mut pages = HeapRegion::new(PAGES * PAGE_BYTES).unwrap();
    let base = NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the scene's alone, as long as it lives.
    let pool = unsafe { PagePool::create(core.arena(), base, PAGES as u32) }.unwrap();
    let fs = ScaleFs::create_with_pages(core, pool, config).unwrap();
    let process = Process::new(fs, core, Credentials::SUPERUSER).unwrap();
    let call = || fs.enter(core, &process, &Patience);
    assert_eq!(sockets::pair(&call(), order, OPTIONS), Ok((SENDS, RECEIVES)));
    assert_eq!(sockets::socket(&call(), order, OPTIONS), Ok(NAMED));
    sockets::bind(&call(), NAMED, &name(b"n")).unwrap();
    Scene { fs, process, _pages: pages }
}

/// The first bytes of all messages that wait.
fn messages(fs: &ScaleFs, core: &Core<'_>, process: &Process, fd: u32) -> Vec<u8> {
    let mut byte = [0];
    let next = || sockets::receive(&fs.enter(core, process, &Patience), fd, &mut byte).ok().map(|_| byte[0]);
    std::iter::from_fn(next).collect()
}

/// What a process does when it dies.
type Act = (&'static str, fn(&ScaleFs, &Core<'_>, &Process));

const ACTS: [Act; 9] = [
    ("send", |fs, core, process| {
        sockets::send(&fs.enter(core, process, &Patience), SENDS, None, &[2]).unwrap();
    }),
    ("write", |fs, core, process| {
        data::write(&fs.enter(core, process, &Patience), SENDS, &[2]).unwrap();
    }),
    ("send to a name", |fs, core, process| {
        sockets::send(&fs.enter(core, process, &Patience), NAMED, Some(&name(b"n")), &[2]).unwrap();
    }),
    ("receive", |fs, core, process| {
        sockets::receive(&fs.enter(core, process, &Patience), RECEIVES, &mut [0]).unwrap();
    }),
    ("read", |fs, core, process| {
        data::read(&fs.enter(core, process, &Patience), RECEIVES, &mut [0]).unwrap();
    }),
    ("socket, bind, close", |fs, core, process| {
        let call = || fs.enter(core, process, &Patience);
        let made = sockets::socket(&call(), SocketOrder::Unordered, OPTIONS).unwrap();
        sockets::bind(&call(), made, &name(b"m")).unwrap();
        data::close(&call(), made).unwrap();
    }),
    ("socketpair, dup, close", |fs, core, process| {
        let call = || fs.enter(core, process, &Patience);
        let (one, _) = sockets::pair(&call(), SocketOrder::Ordered, OPTIONS).unwrap();
        data::duplicate_to(&call(), one, 9, OnExec::Keep).unwrap();
        data::close(&call(), one).unwrap();
        data::close(&call(), 9).unwrap();
    }),
    ("fork, exec, exit", |fs, core, process| {
        let child = process.fork(fs, core, &Patience).unwrap();
        child.exec(fs, core, &Patience);
        child.exit(fs, core, &Patience);
    }),
    ("posix_spawn, exit", |fs, core, process| {
        let spawned = processes::spawn(&fs.enter(core, process, &Patience), &[], SpawnOptions::default());
        spawned.unwrap().exit(fs, core, &Patience);
    }),
];

/// Lets a process die in what it does; false if it came to its end.
fn survive((what, act): Act, order: SocketOrder, access: u64) -> bool {
    let world = World::with(2 << 20, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    let core = world.core(0);
    let Scene { fs, process, _pages } = begin(&core, order);
    let call = || fs.enter(&core, &process, &Patience);
    sockets::send(&call(), SENDS, None, &[1]).unwrap();
    let heir = die(world.arena(), 1, access, |other| act(fs, other, &process));
    let Some(heir) = heir else {
        forget(process);
        return false;
    };
    // SAFETY: the process has gone.
    unsafe {
        fs.repair_taken_over(&heir, &Patience);
        process.repair_taken_over(fs, &heir, &Patience);
    }
    let mut found = messages(fs, &core, &process, RECEIVES);
    // The rings of an unordered socket are looked at in turn.
    found.sort_unstable();
    let possible: &[&[u8]] = match what {
        "send" | "write" => &[&[1], &[1, 2]],
        "receive" | "read" => &[&[1], &[]],
        _ => &[&[1]],
    };
    assert!(possible.contains(&found.as_slice()), "{what}: {found:?}");
    let found = messages(fs, &core, &process, NAMED);
    assert!(found.is_empty() || what == "send to a name" && found == [2], "{what}: {found:?}");
    for core in [&core, &heir] {
        let call = || fs.enter(core, &process, &Patience);
        for round in 3..6 {
            assert_eq!(sockets::send(&call(), SENDS, None, &[round]), Ok(1), "{what}");
            assert_eq!(sockets::send(&call(), NAMED, Some(&name(b"n")), &[round]), Ok(1), "{what}");
            assert_eq!(messages(fs, core, &process, RECEIVES), [round], "{what}");
            assert_eq!(messages(fs, core, &process, NAMED), [round], "{what}");
        }
        // The name that the dead one used is free, or that of a socket whose descriptor nobody has closed yet.
        let made = sockets::socket(&call(), order, OPTIONS).unwrap();
        let bound = sockets::bind(&call(), made, &name(b"m"));
        assert!(matches!(bound, Ok(()) | Err(Errno::EADDRINUSE)), "{what}: {bound:?}");
        data::close(&call(), made).unwrap();
        fs.maintain(core, &Patience);
    }
    data::close(&call(), RECEIVES).unwrap();
    let sent = sockets::send(&call(), SENDS, None, &[7]);
    // A child whose maker died has a descriptor that nobody closes.
    let has_children = what.starts_with("fork") || what.starts_with("posix_spawn");
    assert!(sent == Err(Errno::ECONNREFUSED) || has_children, "{what}: {sent:?}");
    process.exit(fs, &core, &Patience);
    (0..4).for_each(|_| [&core, &heir].into_iter().for_each(|core| fs.maintain(core, &Patience)));
    true
}

fn survive_all(act: Act) -> u64 {
    // Only what is done with messages depends on their order.
    let orders: &[SocketOrder] = match act.0 {
        "send" | "send to a name" | "receive" => &[SocketOrder::Ordered, SocketOrder::Unordered],
        _ => &[SocketOrder::Ordered],
    };
    orders.iter().map(|order| die_everywhere(|access| survive(act, *order, access))).sum()
}

#[test]
fn others_go_on_wherever_a_process_dies() {
    for act in ACTS {
        println!("{}: {} deaths", act.0, survive_all(act));
    }
}

#[test]
fn what_an_heir_does_not_repair_is_found() {
    must_be_caught("sockets: an heir does not count what was announced", || survive_all(ACTS[1]));
    must_be_caught("scalefs: an heir forgets the sockets", || survive_all(ACTS[0]));
}

/// What a thread does, with a child that has the same descriptors.
type Second = fn(&ScaleFs, &Core<'_>, &Process, Process);

/// A thread closes the end that receives, and another one does something else; how it is then.
fn race(seed: u64, (ends, second): (bool, Second), check: fn(&ScaleFs, &Core<'_>, &Process)) {
    threads::run(std::iter::once(seed), move || {
        let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
        let core = world.core(2);
        let Scene { fs, process, _pages } = begin(&core, SocketOrder::Ordered);
        let child = process.fork(fs, &core, &Spin).unwrap();
        if ends {
            (SENDS..=NAMED).for_each(|fd| data::close(&fs.enter(&core, &child, &Spin), fd).unwrap());
        }
        threads::scope(|scope| {
            let (world, process) = (&world, &process);
            scope.spawn(move || {
                let core = world.core(0);
                data::close(&fs.enter(&core, process, &Spin), RECEIVES).unwrap();
            });
            scope.spawn(move || second(fs, &world.core(1), process, child));
        });
        (0..6).for_each(|_| fs.maintain_with_idle_cores(&core, &Spin));
        check(fs, &core, &process);
        process.exit(fs, &core, &Spin);
    });
}

/// The last two descriptors of a socket are closed at a time: it is closed once.
fn close_both(seed: u64) {
    race(seed, (false, |fs, core, _, child| child.exit(fs, core, &Spin)), |fs, core, process| {
        let call = || fs.enter(core, process, &Spin);
        assert_eq!(sockets::send(&call(), SENDS, None, &[1]), Err(Errno::ECONNREFUSED));
        // Its peer is not lost: what is made now does not lie in its place.
        assert_eq!(sockets::pair(&call(), SocketOrder::Ordered, OPTIONS), Ok((1, 3)));
        assert_eq!(sockets::send(&call(), 1, None, &[2]), Ok(1));
        assert_eq!(sockets::send(&call(), 3, None, &[3]), Ok(1));
        assert_eq!(sockets::receive(&call(), SENDS, &mut [0]).map(|_| ()), Err(Errno::EAGAIN));
    });
}

#[test]
fn a_socket_is_closed_once() {
    (0..100).for_each(close_both);
    must_be_caught("scalefs: a socket is closed by each of its last descriptors", || (0..3_000).for_each(close_both));
}

/// A socket is named while its last descriptor is closed: the name is free afterwards.
fn bind_and_close(seed: u64) {
    race(
        seed,
        (true, |fs, core, process, child| {
            let bound = sockets::bind(&fs.enter(core, process, &Spin), RECEIVES, &name(b"r"));
            assert!(matches!(bound, Ok(()) | Err(Errno::EBADF)), "{bound:?}");
            child.exit(fs, core, &Spin);
        }),
        |fs, core, process| {
            let call = || fs.enter(core, process, &Spin);
            assert_eq!(sockets::socket(&call(), SocketOrder::Ordered, OPTIONS), Ok(RECEIVES));
            assert_eq!(sockets::bind(&call(), RECEIVES, &name(b"r")), Ok(()));
        },
    );
}

#[test]
fn a_socket_that_is_closed_keeps_no_name() {
    (0..200).for_each(bind_and_close);
    must_be_caught("sockets: a socket that was closed in between gets a name", || {
        (0..3_000).for_each(bind_and_close);
    });
}
