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
use std::sync::atomic::{AtomicU64, Ordering};

use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::attributes::{self, Access as Wanted};
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Fields, Follow, OpenFlags, ScaleFs, ScaleFsConfig, Start, directories};
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
}

use Call::{
    Access, ChangeMode, Link, MakeDirectory, Open, RemoveDirectory, Rename, Stat, StatWithoutLinkCount, Unlink,
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
    // Does not commute: the tracer must find it in every window.
    pair("CONTROL link a b / stat a", &[A], Link("a", "b"), Stat("a")),
];

/// Names are made before the call.
fn prepare(call: Call, window: usize) -> (Call, String, String) {
    let (first, second) = match call {
        Link(first, second) | Rename(first, second) => (first, second),
        Open(name, _) | Unlink(name) | Stat(name) | StatWithoutLinkCount(name) | Access(name) => (name, ""),
        MakeDirectory(name) | RemoveDirectory(name) | ChangeMode(name) => (name, ""),
    };
    // All end alike: of names that differ in their last byte alone, each collides if one does.
    let unique = |path: &str| path.split('/').map(|name| format!("{name}-{window}.")).collect::<Vec<_>>().join("/");
    (call, unique(first), unique(second))
}

fn make(fs: &ScaleFs, core: &Core, context: &Context, (call, first, second): &(Call, String, String)) -> bool {
    let verbs = fs.begin(core, context, &Spin);
    let (at, first, second) = (Start::WorkingDirectory, first.as_bytes(), second.as_bytes());
    let stat = |fields| attributes::stat(&verbs, at, first, Follow::Symlinks, fields).is_ok();
    match call {
        Open(_, flags) => {
            names::open(&verbs, at, first, *flags, 0o644).map(|opened| names::close(&verbs, opened.handle)).is_ok()
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

fn work(fs: &ScaleFs, core: &Core, context: &Context, number: usize, windows: usize, mailbox: &Mailbox) {
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
            let outcome = make(fs, core, context, &call);
            marker!(0x12);
            std::hint::black_box(outcome);
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
    let context = &Context::new(fs, &cores[2], Credentials::SUPERUSER);
    let mailboxes = [const { Mailbox(AtomicU64::new(IDLE)) }; 2];
    let [zero, one, coordinator] = cores;
    std::thread::scope(|scope| {
        for (number, core) in [zero, one].into_iter().enumerate() {
            let mailbox = &mailboxes[number];
            scope.spawn(move || work(fs, &core, context, number, windows, mailbox));
        }
        for (index, pair) in PAIRS.iter().enumerate() {
            println!("{} {} {}", index * windows, (index + 1) * windows - 1, pair.title);
            for window in 0..windows {
                let order = order_of(index, window, windows);
                for call in pair.setup {
                    let number = index * windows + window;
                    assert!(make(fs, &coordinator, context, &prepare(*call, number)), "set-up of {}", pair.title);
                }
                mailboxes.iter().for_each(|mailbox| tell(mailbox, order));
                fs.maintain(&coordinator, &Spin);
                marker!(0x10);
                mailboxes.iter().for_each(|mailbox| tell(mailbox, order + 1));
                marker!(0x13);
            }
        }
        marker!(0x14);
        mailboxes.iter().for_each(|mailbox| mailbox.0.store(STOP, Ordering::Release));
    });
}
