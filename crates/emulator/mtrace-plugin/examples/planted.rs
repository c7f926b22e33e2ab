//! A program with sharing planted on purpose, marked like a test's runner: what the tracer's tests trace.
//!
//! `planted SCENARIO WORKERS WINDOWS` runs as many windows; in each, every worker makes one call, one after the other.
//! Prints `NAME ADDRESS` (hexadecimal) of its data and functions, so that a test knows what to find.

mod markers;

use std::arch::asm;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use markers::{CALL_BEGIN, CALL_END, FLUSH, THREAD, WINDOW_CLOSE, WINDOW_OPEN, mark};

/// One cache line of data.
#[repr(align(64))]
struct Line([AtomicU64; 8]);

impl Line {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 8])
    }
}

/// The lines that workers have each to itself, and after them the one that they share.
#[repr(C)]
struct Data {
    private: [Line; 8],
    shared: Line,
}

static DATA: Data = Data { private: [const { Line::new() }; 8], shared: Line::new() };
static TURN: AtomicUsize = AtomicUsize::new(IDLE);
const IDLE: usize = usize::MAX;
const STOP: usize = usize::MAX - 1;

/// In assembly, so that the access lies in this function however the compiler optimises.
#[inline(never)]
fn add_to(counter: &AtomicU64) {
    // SAFETY: one atomic addition to a live counter, which allows for changes through shared references.
    unsafe { asm!("lock inc qword ptr [{}]", in(reg) counter.as_ptr()) };
}

/// Loads eight bytes, at any alignment.
#[inline(never)]
fn load_from(bytes: *const u8) -> u64 {
    let value;
    // SAFETY: the callers pass addresses within the statics of this program; what is read there does not matter.
    unsafe { asm!("mov {}, qword ptr [{}]", out(reg) value, in(reg) bytes) };
    value
}

#[inline(never)]
fn middle(counter: &AtomicU64) -> u64 {
    add_to(black_box(counter));
    black_box(1)
}

#[inline(never)]
fn outer(counter: &AtomicU64) -> u64 {
    let got = middle(black_box(counter));
    black_box(got) + 1
}

/// The call that a worker makes in a scenario.
fn call(scenario: &str, worker: usize) {
    match scenario {
        "true" => drop(black_box(outer(&DATA.shared.0[2]))),
        "false" => add_to(&DATA.shared.0[worker]),
        "none" => add_to(&DATA.private[worker].0[0]),
        "read" => drop(black_box(load_from(DATA.shared.0[1].as_ptr().cast()))),
        "read-write" if worker == 0 => add_to(&DATA.shared.0[1]),
        "read-write" => drop(black_box(load_from(DATA.shared.0[1].as_ptr().cast()))),
        // The four bytes before the shared line belong to the last private one.
        "straddle" if worker == 0 => drop(black_box(load_from(DATA.shared.0.as_ptr().cast::<u8>().wrapping_sub(4)))),
        "straddle" => add_to(&DATA.shared.0[0]),
        other => panic!("expected true, false, none, read, read-write or straddle, got {other}"),
    }
}

fn work(scenario: &str, worker: usize, done: &AtomicU32) {
    mark!(THREAD);
    loop {
        match TURN.load(Ordering::Acquire) {
            turn if turn == worker => {
                mark!(CALL_BEGIN);
                call(scenario, worker);
                mark!(CALL_END);
                TURN.store(IDLE, Ordering::Release);
                done.fetch_add(1, Ordering::Release);
            }
            STOP => return,
            _ => spin_loop(),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, scenario, workers, windows] = &arguments[..] else { panic!("expected SCENARIO WORKERS WINDOWS") };
    let (workers, windows): (usize, u32) = (workers.parse().expect("a number"), windows.parse().expect("a number"));
    for (name, address) in [
        ("shared", DATA.shared.0.as_ptr() as usize),
        ("add_to", add_to as *const () as usize),
        ("load_from", load_from as *const () as usize),
        ("middle", middle as *const () as usize),
        ("outer", outer as *const () as usize),
    ] {
        println!("{name} {address:x}");
    }
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let done = &done;
            scope.spawn(move || work(scenario, worker, done));
        }
        for window in 0..windows {
            mark!(WINDOW_OPEN);
            for worker in 0..workers {
                TURN.store(worker, Ordering::Release);
                while done.load(Ordering::Acquire) != window * workers as u32 + worker as u32 + 1 {
                    spin_loop();
                }
            }
            mark!(WINDOW_CLOSE);
        }
        mark!(FLUSH);
        TURN.store(STOP, Ordering::Release);
    });
}
