//! Two domains of one file system, each a thread, marked like a test's runner: what they touch in common is traced.
//!
//! `two_domains` makes each pair of calls on names, one from each domain, in a window of its own; the other domain serves
//! in the meantime, and all that either does is between the marks of a call. `two_domains leak` also writes a line
//! outside of the pool. Prints `NAME ADDRESS` (hexadecimal) of what both touch besides the pool: the stage, which says
//! whose turn it is, and what leaks; then how many windows there will be, and, once the pool has no name any more, how
//! many domains have joined.
//!
//! Each thread makes its own domain and maps the pool for itself, as a process would: its lines have other addresses there, so
//! that lines with one address are lines outside of the pool.

mod markers;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use domains::{Call, Domain, Limits, PoolLines, Process};
use messages::DomainNumber;
use pool::file::{Pool, create, path_of};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, OpenFlags, Start, attributes, directories};
use transports::{Plan, Rings};

use markers::{CALL_BEGIN, CALL_END, FLUSH, THREAD, WINDOW_CLOSE, WINDOW_OPEN, mark};

/// A line by itself.
#[repr(align(64))]
struct Line(AtomicUsize);

/// How many turns are over, of all windows.
static STAGE: Line = Line(AtomicUsize::new(0));
/// What `leak` writes.
static LEAKED: Line = Line(AtomicUsize::new(0));

const DOMAINS: usize = 2;
/// Turns of a window: each domain makes what must be there, the window opens, each makes its call, each leaves it, the window
/// closes.
const TURNS: usize = 8;
/// Between two looks of who waits: all of them are recorded, and one that waits long must not fill the log.
const PAUSE: Duration = Duration::from_micros(100);
/// Each call with each, from either domain.
const WINDOWS: usize = CALLS.len() * CALLS.len();

type Host = Domain<Rings<Arc<Pool>>>;
type NameCall<'c> = Call<'c, Rings<Arc<Pool>>>;

/// A call on one or two names.
type Named = fn(&NameCall<'_>, &str, &str) -> Result<(), Errno>;

/// The calls of `names`, each on `mine`, which is there, and some on `new`, which is not.
const CALLS: [Named; 6] = [
    |call, mine, _| {
        let fd = data::open(call, at(), mine.as_bytes(), OpenFlags::READ, 0, DescriptorOptions::PLAIN)?;
        data::close(call, fd)
    },
    |call, _, new| make(call, new),
    |call, mine, _| attributes::stat(call, at(), mine.as_bytes(), Follow::Symlinks, Fields::ALL).map(drop),
    |call, mine, new| names::link(call, (at(), mine.as_bytes()), (at(), new.as_bytes()), Follow::Nothing),
    |call, mine, new| names::rename(call, (at(), mine.as_bytes()), (at(), new.as_bytes()), RenameMode::Replace),
    |call, mine, _| names::unlink(call, at(), mine.as_bytes()),
];

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn make(call: &NameCall<'_>, path: &str) -> Result<(), Errno> {
    let flags = OpenFlags::CREATE.union(OpenFlags::WRITE);
    let fd = data::open(call, at(), path.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN)?;
    data::close(call, fd)
}

fn join(path: &Path, number: u16) -> Host {
    let pool = Arc::new(Pool::join(path, number.into()).unwrap());
    let plan =
        Plan { at: pool.first_free(), domain_count: DOMAINS, ring_lines: [16, 64, 64, 64], salt: 1, patience: 1 << 30 };
    let rings = Rings::new(&pool, plan, DomainNumber(number)).unwrap();
    let lines = PoolLines::new(pool, plan.at + plan.bytes(), DOMAINS).unwrap();
    Domain::new(rings, Rc::new(lines), || 0, Limits::default())
}

/// Serves until this many turns are over.
fn serve_until(host: &Host, turns: usize) {
    while STAGE.0.load(Ordering::Acquire) < turns {
        if !host.serve() {
            std::thread::sleep(PAUSE);
        }
    }
}

fn wait_until(turns: usize) {
    while STAGE.0.load(Ordering::Acquire) < turns {
        std::thread::sleep(PAUSE);
    }
}

fn end_turn() {
    STAGE.0.fetch_add(1, Ordering::Release);
}

/// The call that a domain makes in a window.
fn call_of(window: usize, domain: usize) -> usize {
    if domain == 0 { window / CALLS.len() } else { window % CALLS.len() }
}

fn live(path: &Path, own: usize, leaks: bool, joined: Sender<()>) {
    let (host, process) = (join(path, own as u16), Process::new(Credentials::SUPERUSER));
    joined.send(()).unwrap();
    drop(joined);
    let call = |act: &dyn Fn(&NameCall<'_>) -> Result<(), Errno>| host.call(&process, act).unwrap();
    mark!(THREAD);
    for window in 0..WINDOWS {
        let begin = window * TURNS;
        let place = |domain: usize| format!("d{window}-{domain}");
        // One directory is at domain 0, the other at domain 1; each domain's file is its own. In half of the windows both lie in one
        // directory.
        let is_common = (window / CALLS.len() + window % CALLS.len()).is_multiple_of(2);
        let directory = if is_common { place(0) } else { place(own) };
        let (mine, new) = (format!("{directory}/mine{own}"), format!("{directory}/new{own}"));
        serve_until(&host, begin + own);
        call(&|call| directories::make_directory(call, at(), place(own).as_bytes(), 0o755));
        call(&|call| make(call, &mine));
        end_turn();
        serve_until(&host, begin + 3);
        mark!(CALL_BEGIN);
        serve_until(&host, begin + 3 + own);
        call(&|call| CALLS[call_of(window, own)](call, &mine, &new));
        if leaks {
            LEAKED.0.fetch_add(1, Ordering::Relaxed);
        }
        end_turn();
        serve_until(&host, begin + 5);
        mark!(CALL_END);
        end_turn();
        serve_until(&host, begin + TURNS);
    }
}

/// A domain that panics ends all: the others would wait for it. The pool has no name then.
fn end_with_a_panic(path: PathBuf) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |why| {
        usual(why);
        let _ = std::fs::remove_file(&path);
        std::process::exit(101);
    }));
}

fn main() {
    let leaks = match &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => false,
        [word] if word == "leak" => true,
        other => panic!("expected nothing or leak, got {other:?}"),
    };
    println!("stage {:x}", &raw const STAGE as usize);
    println!("leaked {:x}", &raw const LEAKED as usize);
    println!("windows {WINDOWS:x}");
    let path = path_of(&format!("two-domains-{}", std::process::id()));
    end_with_a_panic(path.clone());
    create(&path, 1 << 20, DOMAINS).unwrap();
    std::thread::scope(|scope| {
        let (joined, all) = channel();
        for own in 0..DOMAINS {
            let (path, joined) = (&path, joined.clone());
            scope.spawn(move || live(path, own, leaks, joined));
        }
        drop(joined);
        let joined = all.iter().count();
        // Both have mapped it: without a name it goes with this process, however that ends.
        std::fs::remove_file(&path).unwrap();
        println!("joined {joined:x}");
        for window in 0..WINDOWS {
            let begin = window * TURNS;
            wait_until(begin + 2);
            mark!(WINDOW_OPEN);
            end_turn();
            wait_until(begin + 7);
            mark!(WINDOW_CLOSE);
            end_turn();
        }
        mark!(FLUSH);
    });
}
