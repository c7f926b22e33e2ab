//! A thread that stops, wherever it is, while one goes on: how long the moves of the other take.
//!
//! A signal stops it, in the middle of a move more often than not. The control is the same with signals that stop no one.
#![allow(unsafe_code, reason = "signals are the system's")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::harness::Effort;
use crate::ours::{self, Two};
use crate::sets::Pair;
use crate::spin;

/// How long a signal stops its thread.
static STOP_MS: AtomicU64 = AtomicU64::new(0);

extern "C" fn stop(_: libc::c_int) {
    // No call that a signal's handler must not make.
    let ms = STOP_MS.load(Ordering::Relaxed) as libc::c_long;
    let time = libc::timespec { tv_sec: (ms / 1_000) as libc::time_t, tv_nsec: ms % 1_000 * 1_000_000 };
    // SAFETY: the time is a local one; what is left of it does not matter.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

pub fn measure(effort: Effort) {
    // SAFETY: the handler makes one call, which is allowed in one.
    unsafe { libc::signal(libc::SIGUSR1, stop as *const () as libc::sighandler_t) };
    let ours = || {
        let here = ours::enter();
        Two([0, 1].map(|_| ours::sorted(&here, [])))
    };
    for (way, stops_ms) in [("olf", effort.of(1_000, 2)), ("olf, control", 0)] {
        print(way, &delays(effort, ours(), stops_ms));
    }
    for (way, stops_ms) in [("spin locks", effort.of(1_000, 2)), ("spin locks, control", 0)] {
        print(way, &delays(effort, spin::Lists([spin::List::new(), spin::List::new()]), stops_ms));
    }
}

fn print(way: &str, delays: &[u64]) {
    for (what, share) in [("999 of 1,000", 0.999), ("all", 1.0)] {
        let place = (delays.len() as f64 * share) as usize;
        let nanoseconds = delays[place.min(delays.len() - 1)].max(1);
        println!(r#"{{"what": "moves while a thread stops, {what}", "way": "{way}", "ns": {nanoseconds}}}"#);
    }
}

/// How long each move of the thread took that goes on, in order of length.
fn delays<P: Pair>(effort: Effort, pair: P, stops_ms: u64) -> Vec<u64> {
    let (stops, pause) = effort.of((4, Duration::from_millis(200)), (2, Duration::from_millis(2)));
    STOP_MS.store(stops_ms, Ordering::Relaxed);
    let mut local = pair.local();
    (0..2).for_each(|key| pair.fill(&mut local, key));
    drop(local);
    let (pair, is_over) = (&pair, AtomicBool::new(false));
    let move_on = |local: &mut P::Local, key| _ = pair.hand_over(local, 0, key) || pair.hand_over(local, 1, key);
    std::thread::scope(|scope| {
        let (says, name) = mpsc::channel();
        let is_over = &is_over;
        scope.spawn(move || {
            let mut local = pair.local();
            // SAFETY: asks, and changes nothing.
            says.send(unsafe { libc::pthread_self() }).expect("somebody listens");
            while !is_over.load(Ordering::Relaxed) {
                move_on(&mut local, 0);
                move_on(&mut local, 1);
            }
        });
        let goes_on = scope.spawn(move || {
            let (mut local, mut delays) = (pair.local(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                move_on(&mut local, 1);
                delays.push(began.elapsed().as_nanos() as u64);
            }
            delays
        });
        let stopped = name.recv().expect("a thread");
        for _ in 0..stops {
            std::thread::sleep(pause);
            // SAFETY: the thread has not ended: it does once all is over.
            unsafe { libc::pthread_kill(stopped, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(stops_ms));
        }
        is_over.store(true, Ordering::Relaxed);
        let mut delays = goes_on.join().expect("a thread");
        delays.sort_unstable();
        delays
    })
}
