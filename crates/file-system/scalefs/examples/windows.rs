//! Pairs of calls that commute, each in its own marked windows, for the tracer of this project: which pairs share lines?
//!
//! ```text
//! cargo build --release -p scalefs --example windows && cargo build --release -p mtrace-plugin --examples
//! qemu-x86_64 -plugin libmtrace_plugin.so,out=windows.trace,mode=user target/release/examples/windows 300 1 > pairs.txt
//! target/release/examples/show windows.trace
//! ```
//! The arguments are the number of windows per pair and the hash seed. Prints `FIRST LAST PAIR`: the windows of each
//! pair, counted from 0. In a window thread 0 makes the first call, then thread 1 the second; set-up by a third core,
//! maintenance and formatting of names happen outside the marks.

use std::arch::asm;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::attributes::{self, Access as Wanted};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Credentials, Fields, Follow, OnExec, OpenFlags, Process, ProcessNumber, ScaleFs, ScaleFsConfig, SpawnOptions,
    Start, Which, directories, processes,
};
use sync::Spin;

/// A marker: an eight-byte no-operation with a code in its displacement.
macro_rules! marker {
    ($code:expr) => {
        // SAFETY: the instruction does nothing; that the compiler may not move memory accesses over it is wanted.
        unsafe { asm!(".byte 0x0f, 0x1f, 0x84, 0x00, {code}, 0x52, 0x54, 0x4d", code = const $code) }
    };
}

/// A call on paths of lower-case letters; the window's number makes their names unique.
#[derive(Clone, Copy)]
enum Call {
    Open(&'static str, OpenFlags),
    MakeDirectory(&'static str),
    RemoveDirectory(&'static str),
    ChangeMode(&'static str),
    Link(&'static str, &'static str),
    Unlink(&'static str),
    Rename(&'static str, &'static str),
    Stat(&'static str),
    StatWithoutLinkCount(&'static str),
    Access(&'static str),
    // Of one process, which has the children that stand in two places.
    Spawn,
    Fork,
    OpenCloseOnExec(&'static str),
    /// Makes a child in a place.
    Child(usize),
    Exit(usize),
    Wait(usize),
    WaitForAny,
}

use Call::{
    Access, ChangeMode, Child, Exit, Fork, Link, MakeDirectory, Open, OpenCloseOnExec, RemoveDirectory, Rename, Spawn,
    Stat, StatWithoutLinkCount, Unlink, Wait, WaitForAny,
};

/// `O_CREAT | O_EXCL`.
const CREATE_NEW: OpenFlags = OpenFlags::CREATE.union(OpenFlags::EXCLUSIVE);

struct Pair {
    title: &'static str,
    setup: &'static [Call],
    calls: [Call; 2],
}

const fn pair(title: &'static str, setup: &'static [Call], first: Call, second: Call) -> Pair {
    Pair { title, setup, calls: [first, second] }
}

const A: Call = Open("a", CREATE_NEW);
const B: Call = Open("b", CREATE_NEW);
const D: Call = MakeDirectory("d");
const E: Call = MakeDirectory("e");
const C: Call = Open("c", CREATE_NEW);

const PAIRS: &[Pair] = &[
    pair("create a / create b", &[], A, B),
    pair("create a, exists / create a, exists", &[A], A, A),
    pair("create a / unlink b", &[B], A, Unlink("b")),
    pair("create a / stat b", &[B], A, Stat("b")),
    pair("open a / open a", &[A], Open("a", OpenFlags::READ), Open("a", OpenFlags::READ)),
    pair("open a / stat a", &[A], Open("a", OpenFlags::READ), Stat("a")),
    pair("link a b / link a c", &[A], Link("a", "b"), Link("a", "c")),
    pair("link a c / link b d", &[A, B], Link("a", "c"), Link("b", "d")),
    pair("link a c / unlink b, same file", &[A, Link("a", "b")], Link("a", "c"), Unlink("b")),
    pair("link a c / stat a without link count", &[A], Link("a", "c"), StatWithoutLinkCount("a")),
    pair("link a b, exists / rename c a", &[A, B, C], Link("a", "b"), Rename("c", "a")),
    pair("link a b, a missing / rename c d", &[C], Link("a", "b"), Rename("c", "d")),
    pair("unlink a / unlink b, same file", &[A, Link("a", "b")], Unlink("a"), Unlink("b")),
    pair("unlink a / stat b", &[A, B], Unlink("a"), Stat("b")),
    pair("unlink a, missing / create b", &[], Unlink("a"), B),
    pair("rename a b / rename c d", &[A, C], Rename("a", "b"), Rename("c", "d")),
    pair("rename a b, exists / access b", &[A, B], Rename("a", "b"), Access("b")),
    pair("rename a b, same file / stat a", &[A, Link("a", "b")], Rename("a", "b"), Stat("a")),
    pair("rename a b, same file / rename a b", &[A, Link("a", "b")], Rename("a", "b"), Rename("a", "b")),
    pair("stat a / stat a", &[A], Stat("a"), Stat("a")),
    pair("access a / access a", &[A], Access("a"), Access("a")),
    pair("mkdir d / mkdir e", &[], D, E),
    pair("mkdir d, exists / mkdir d, exists", &[D], D, D),
    pair("mkdir d / rmdir e", &[E], D, RemoveDirectory("e")),
    pair("create d/a / create d/b", &[D], Open("d/a", CREATE_NEW), Open("d/b", CREATE_NEW)),
    pair("create d/a / create e/a", &[D, E], Open("d/a", CREATE_NEW), Open("e/a", CREATE_NEW)),
    pair("stat d/a / create d/b", &[D, Open("d/a", CREATE_NEW)], Stat("d/a"), Open("d/b", CREATE_NEW)),
    pair("rename d/a e/a / stat d", &[D, E, Open("d/a", CREATE_NEW)], Rename("d/a", "e/a"), StatWithoutLinkCount("d")),
    pair("rename d e/d / rename a b", &[A, D, E], Rename("d", "e/d"), Rename("a", "b")),
    pair("rename d e/d / create a", &[D, E], Rename("d", "e/d"), A),
    pair(
        "rename d/e d/f / stat d/a",
        &[D, MakeDirectory("d/e"), Open("d/a", CREATE_NEW)],
        Rename("d/e", "d/f"),
        Stat("d/a"),
    ),
    pair("chmod a / stat b", &[A, B], ChangeMode("a"), Stat("b")),
    pair("chmod a / link a b", &[A], ChangeMode("a"), Link("a", "b")),
    pair("rmdir d, not empty / stat d/a", &[D, Open("d/a", CREATE_NEW)], RemoveDirectory("d"), Stat("d/a")),
    pair("spawn / spawn", &[], Spawn, Spawn),
    pair("fork / fork", &[], Fork, Fork),
    pair("spawn / open a, close on exec", &[A], Spawn, OpenCloseOnExec("a")),
    pair("spawn / wait for one", &[Child(1), Exit(1)], Spawn, Wait(1)),
    pair("spawn / wait for one that runs", &[Child(1)], Spawn, Wait(1)),
    pair("spawn / wait for any, which has ended", &[Child(1), Exit(1)], Spawn, WaitForAny),
    pair("spawn / wait for any, which run", &[Child(1)], Spawn, WaitForAny),
    pair("spawn / exit", &[Child(1)], Spawn, Exit(1)),
    pair("exit / exit", &[Child(0), Child(1)], Exit(0), Exit(1)),
    pair("exit / wait for another", &[Child(0), Child(1), Exit(1)], Exit(0), Wait(1)),
    pair("wait for one / wait for another", &[Child(0), Exit(0), Child(1), Exit(1)], Wait(0), Wait(1)),
    // Do not commute: the tracer must find them in every window.
    pair("CONTROL exit / wait for it", &[Child(0)], Exit(0), Wait(0)),
    pair("CONTROL link a b / stat a", &[A], Link("a", "b"), Stat("a")),
];

/// Names are made before the call.
fn prepare(call: Call, window: usize) -> (Call, String, String) {
    let (first, second) = match call {
        Link(first, second) | Rename(first, second) => (first, second),
        Open(name, _) | Unlink(name) | Stat(name) | StatWithoutLinkCount(name) | Access(name) => (name, ""),
        MakeDirectory(name) | RemoveDirectory(name) | ChangeMode(name) | OpenCloseOnExec(name) => (name, ""),
        Spawn | Fork | Child(_) | Exit(_) | Wait(_) | WaitForAny => ("", ""),
    };
    // All end alike: of names that differ in their last byte alone, each collides if one does.
    let unique = |path: &str| path.split('/').map(|name| format!("{name}-{window}.")).collect::<Vec<_>>().join("/");
    (call, unique(first), unique(second))
}

/// The process that calls, and places for children on lines of their own.
struct Family {
    process: Process,
    children: [Place; 2],
}

#[repr(align(128))]
#[derive(Default)]
struct Place {
    child: Mutex<Option<Process>>,
    number: AtomicU64,
}

impl Family {
    fn put(&self, place: usize, child: Process) -> bool {
        self.children[place].number.store(child.number().0, Ordering::Relaxed);
        *self.children[place].child.lock().expect("no one panics") = Some(child);
        true
    }

    /// Ends all children, and waits for them; closes what was opened.
    fn clean(&self, fs: &ScaleFs, core: &Core) {
        let placed = self.children.iter().filter_map(|place| place.child.lock().expect("no one panics").take());
        placed.for_each(|child| child.exit(fs, core, &Spin));
        let call = || fs.enter(core, &self.process, &Spin);
        while processes::wait(&call(), Which::Any).is_ok() {}
        for fd in KEPT..8 {
            let _ = data::close(&call(), fd);
        }
    }

    /// Makes a call on processes, if it is one.
    fn call(&self, fs: &ScaleFs, core: &Core, call: Call) -> Option<Made> {
        let enter = || fs.enter(core, &self.process, &Spin);
        let spawn = || processes::spawn(&enter(), &[], SpawnOptions::default()).ok();
        let wait = |which| processes::wait(&enter(), which).is_ok();
        Some(match call {
            Spawn => Made::Child(spawn()?),
            Fork => Made::Child(self.process.fork(fs, core, &Spin).ok()?),
            Child(place) => Made::Outcome(self.put(place, spawn()?)),
            Exit(place) => {
                self.children[place].child.lock().expect("no one panics").take()?.exit(fs, core, &Spin);
                Made::Outcome(true)
            }
            Wait(place) => {
                Made::Outcome(wait(Which::Child(ProcessNumber(self.children[place].number.load(Ordering::Relaxed)))))
            }
            WaitForAny => Made::Outcome(wait(Which::Any)),
            _ => return None,
        })
    }
}

/// What a call has made.
#[allow(clippy::large_enum_variant)] // A box would be an allocation in the window.
enum Made {
    Outcome(bool),
    Child(Process),
}

/// Descriptors that the process has all the time.
const KEPT: u32 = 3;

fn make(fs: &ScaleFs, core: &Core, family: &Family, (call, first, second): &(Call, String, String)) -> Made {
    if let Some(made) = family.call(fs, core, *call) {
        return made;
    }
    Made::Outcome(make_name(fs, core, &family.process, (*call, first, second)))
}

fn make_name(fs: &ScaleFs, core: &Core, process: &Process, (call, first, second): (Call, &str, &str)) -> bool {
    if let OpenCloseOnExec(_) = call {
        let options = DescriptorOptions { on_exec: OnExec::Close, ..DescriptorOptions::PLAIN };
        let call = fs.enter(core, process, &Spin);
        return data::open(&call, Start::WorkingDirectory, first.as_bytes(), OpenFlags::READ, 0, options).is_ok();
    }
    let verbs = fs.begin(core, process.context(), &Spin);
    let (at, first, second) = (Start::WorkingDirectory, first.as_bytes(), second.as_bytes());
    let stat = |fields| attributes::stat(&verbs, at, first, Follow::Symlinks, fields).is_ok();
    match call {
        Open(_, flags) => {
            names::open(&verbs, at, first, flags, 0o644).map(|opened| names::close(&verbs, opened.handle)).is_ok()
        }
        Link(..) => names::link(&verbs, (at, first), (at, second), Follow::Nothing).is_ok(),
        Unlink(_) => names::unlink(&verbs, at, first).is_ok(),
        Rename(..) => names::rename(&verbs, (at, first), (at, second), RenameMode::Replace).is_ok(),
        MakeDirectory(_) => directories::make_directory(&verbs, at, first, 0o755).is_ok(),
        RemoveDirectory(_) => directories::remove_directory(&verbs, at, first).is_ok(),
        ChangeMode(_) => attributes::change_mode(&verbs, at, first, 0o600).is_ok(),
        Stat(_) => stat(Fields::ALL),
        StatWithoutLinkCount(_) => stat(Fields::PERMISSIONS | Fields::SIZE),
        Access(_) => attributes::access(&verbs, at, first, Follow::Symlinks, Wanted::EXISTS).is_ok(),
        OpenCloseOnExec(_) | Spawn | Fork | Child(_) | Exit(_) | Wait(_) | WaitForAny => false,
    }
}

/// A word on lines of its own, through which coordinator and worker speak outside the marks.
#[repr(align(128))]
struct Mailbox(AtomicU64);

const IDLE: u64 = 0;
const STOP: u64 = u64::MAX;
/// Orders are 1 + 2 * (number of the call among all) for "prepare", and one more for "call".
fn order_of(pair: usize, window: usize, windows: usize) -> u64 {
    1 + 2 * (pair * windows + window) as u64
}

fn work(fs: &ScaleFs, core: &Core, family: &Family, number: usize, windows: usize, mailbox: &Mailbox) {
    marker!(0x15);
    let mut prepared = None;
    loop {
        let order = mailbox.0.load(Ordering::Acquire);
        if order == STOP {
            return;
        }
        if order == IDLE {
            std::thread::yield_now();
            continue;
        }
        let index = (order - 1) as usize / 2;
        if order % 2 == 1 {
            fs.maintain(core, &Spin);
            prepared = Some(prepare(PAIRS[index / windows].calls[number], index));
        } else if let Some(call) = prepared.take() {
            marker!(0x11);
            let outcome = make(fs, core, family, &call);
            marker!(0x12);
            match std::hint::black_box(outcome) {
                Made::Outcome(_) => {}
                // Ended when the window is over.
                Made::Child(child) => _ = family.put(number, child),
            }
        }
        mailbox.0.store(IDLE, Ordering::Release);
    }
}

fn tell(mailbox: &Mailbox, order: u64) {
    mailbox.0.store(order, Ordering::Release);
    while mailbox.0.load(Ordering::Acquire) != IDLE {
        std::thread::yield_now();
    }
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let [windows, hash_seed] = arguments[..] else { panic!("expected WINDOWS SEED") };
    let windows = windows as usize;
    let mut region = HeapRegion::new(1 << 30).expect("memory");
    let arena = Arena::create(&mut region, ArenaConfig::new(3)).expect("an arena");
    let cores = [0, 1, 2].map(|number| arena.claim(number, OwnerId::new(1).expect("not zero")).expect("a core"));
    let config = ScaleFsConfig { hash_seed, directory_bucket_count: 128, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create(&cores[2], config).expect("a file system");
    let family = &Family {
        process: Process::new(fs, &cores[2], Credentials::SUPERUSER).expect("a process"),
        children: Default::default(),
    };
    let enter = |core| fs.enter(core, &family.process, &Spin);
    let open = |core, path| {
        let flags = OpenFlags::READ | OpenFlags::CREATE;
        data::open(&enter(core), Start::WorkingDirectory, path, flags, 0o600, DescriptorOptions::PLAIN)
    };
    (0..KEPT).for_each(|fd| assert_eq!(open(&cores[2], b"kept"), Ok(fd)));
    // A core's first child makes nodes of the family's arrays.
    for core in &cores {
        assert!(matches!(make(fs, core, family, &prepare(Child(0), 0)), Made::Outcome(true)));
        family.clean(fs, core);
    }
    let mailboxes = [const { Mailbox(AtomicU64::new(IDLE)) }; 2];
    let [zero, one, coordinator] = cores;
    std::thread::scope(|scope| {
        for (number, core) in [zero, one].into_iter().enumerate() {
            let mailbox = &mailboxes[number];
            scope.spawn(move || work(fs, &core, family, number, windows, mailbox));
        }
        for (index, pair) in PAIRS.iter().enumerate() {
            println!("{} {} {}", index * windows, (index + 1) * windows - 1, pair.title);
            for window in 0..windows {
                let order = order_of(index, window, windows);
                for call in pair.setup {
                    let number = index * windows + window;
                    let made = make(fs, &coordinator, family, &prepare(*call, number));
                    assert!(matches!(made, Made::Outcome(true)), "set-up of {}", pair.title);
                }
                mailboxes.iter().for_each(|mailbox| tell(mailbox, order));
                fs.maintain(&coordinator, &Spin);
                marker!(0x10);
                mailboxes.iter().for_each(|mailbox| tell(mailbox, order + 1));
                marker!(0x13);
                family.clean(fs, &coordinator);
            }
        }
        marker!(0x14);
        mailboxes.iter().for_each(|mailbox| mailbox.0.store(STOP, Ordering::Release));
    });
}
