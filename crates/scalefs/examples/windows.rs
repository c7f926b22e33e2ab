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
use scalefs::{FieldChoice, OpenFlags, ScaleFs, ScaleFsConfig, names};
use sync::Spin;

/// A marker: an eight-byte no-operation with a code in its displacement.
macro_rules! marker {
    ($code:expr) => {
        // SAFETY: the instruction does nothing; that the compiler may not move memory accesses over it is wanted.
        unsafe { asm!(".byte 0x0f, 0x1f, 0x84, 0x00, {code}, 0x52, 0x54, 0x4d", code = const $code) }
    };
}

/// A call on names that are lower-case letters; the window's number makes them unique.
#[derive(Clone, Copy)]
enum Call {
    Open(&'static str, OpenFlags),
    Link(&'static str, &'static str),
    Unlink(&'static str),
    Rename(&'static str, &'static str),
    Stat(&'static str),
    StatWithoutLinkCount(&'static str),
    Access(&'static str),
}

use Call::{Access, Link, Open, Rename, Stat, StatWithoutLinkCount, Unlink};
use OpenFlags::{CreateNew, Existing};

struct Pair {
    title: &'static str,
    setup: &'static [Call],
    calls: [Call; 2],
}

const fn pair(title: &'static str, setup: &'static [Call], first: Call, second: Call) -> Pair {
    Pair { title, setup, calls: [first, second] }
}

const A: Call = Open("a", CreateNew);
const B: Call = Open("b", CreateNew);
const C: Call = Open("c", CreateNew);

const PAIRS: &[Pair] = &[
    pair("create a / create b", &[], A, B),
    pair("create a, exists / create a, exists", &[A], A, A),
    pair("create a / unlink b", &[B], A, Unlink("b")),
    pair("create a / stat b", &[B], A, Stat("b")),
    pair("open a / open a", &[A], Open("a", Existing), Open("a", Existing)),
    pair("open a / stat a", &[A], Open("a", Existing), Stat("a")),
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
    // Does not commute: the tracer must find it in every window.
    pair("CONTROL link a b / stat a", &[A], Link("a", "b"), Stat("a")),
];

/// Names are made before the call.
fn prepare(call: Call, window: usize) -> (Call, String, String) {
    let (first, second) = match call {
        Link(first, second) | Rename(first, second) => (first, second),
        Open(name, _) | Unlink(name) | Stat(name) | StatWithoutLinkCount(name) | Access(name) => (name, ""),
    };
    (call, format!("{first}-{window}"), format!("{second}-{window}"))
}

fn make(fs: &ScaleFs, core: &Core, (call, first, second): &(Call, String, String)) -> bool {
    let verbs = fs.begin(core, &Spin);
    let (first, second) = (first.as_bytes(), second.as_bytes());
    match call {
        Open(_, flags) => names::open(&verbs, first, *flags, 0o644).map(|node| names::close(&verbs, node)).is_ok(),
        Link(..) => names::link(&verbs, first, second).is_ok(),
        Unlink(_) => names::unlink(&verbs, first).is_ok(),
        Rename(..) => names::rename(&verbs, first, second).is_ok(),
        Stat(_) => names::stat(&verbs, first, FieldChoice::All).is_ok(),
        StatWithoutLinkCount(_) => names::stat(&verbs, first, FieldChoice::WithoutLinkCount).is_ok(),
        Access(_) => names::access(&verbs, first).is_ok(),
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

fn work(fs: &ScaleFs, core: &Core, number: usize, windows: usize, mailbox: &Mailbox) {
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
            let outcome = make(fs, core, &call);
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
    let mut region = HeapRegion::new(256 << 20).expect("memory");
    let arena = Arena::create(&mut region, ArenaConfig::new(3)).expect("an arena");
    let cores = [0, 1, 2].map(|number| arena.claim(number, OwnerId::new(1).expect("not zero")).expect("a core"));
    let config = ScaleFsConfig { hash_seed, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create(&cores[2], config).expect("a file system");
    let mailboxes = [const { Mailbox(AtomicU64::new(IDLE)) }; 2];
    let [zero, one, coordinator] = cores;
    std::thread::scope(|scope| {
        for (number, core) in [zero, one].into_iter().enumerate() {
            let mailbox = &mailboxes[number];
            scope.spawn(move || work(fs, &core, number, windows, mailbox));
        }
        for (index, pair) in PAIRS.iter().enumerate() {
            println!("{} {} {}", index * windows, (index + 1) * windows - 1, pair.title);
            for window in 0..windows {
                let order = order_of(index, window, windows);
                for call in pair.setup {
                    let number = index * windows + window;
                    assert!(make(fs, &coordinator, &prepare(*call, number)), "set-up of {}", pair.title);
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
