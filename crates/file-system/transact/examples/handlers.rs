//! Handlers of two signals clean up the same things (thesis on TxOS, section 5.6; Zalewski, "Delivering signals for fun and
//! profit": what one frees, the other frees again). Where each handler is one transaction, one of them finds all, the other nothing.
//!
//! Calls of a file system are not for handlers that interrupt another call: threads of the program take the signals, by
//! `sigwait`. `cargo run -p transact --example handlers -- 1000` sends so many pairs of signals.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

use scalefs::FileSystem;
use transact::Transactions as _;

mod door;
use door::Door;

const SIGNALS: [i32; 2] = [libc::SIGHUP, libc::SIGTERM];
const SESSION: [&str; 3] = ["session/socket", "session/lock", "session/log"];

/// Removes all of a session that is there, after a pause: how many things it was to remove that another had removed since it
/// looked.
fn clean_up(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<u64> {
    if !calls.exists(SESSION[0])? {
        return Ok(0);
    }
    pause();
    let mut gone = 0;
    for name in SESSION {
        match calls.remove_file(name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}

/// Signals that wait for threads which take them.
fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: an all-zero set is made empty by the first call; the signals exist.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Waits for a signal, and handles it. Where a handler is no single step, both have looked before either goes on.
fn handle(files: &FileSystem, signal: i32, both: &Barrier, is_one_step: bool) -> io::Result<u64> {
    let mut taken = 0;
    // SAFETY: both point to places of this function; the signal is blocked in all threads.
    assert_eq!(unsafe { libc::sigwait(&raw const *Box::new(set_of(&[signal])), &raw mut taken) }, 0);
    match is_one_step {
        true => files.transaction(|t| clean_up(&**t, &thread::yield_now)),
        false => clean_up(&files.root()?, &|| {
            both.wait();
        }),
    }
}

/// How many things were to be removed twice.
fn run(rounds: u64, is_one_step: bool) -> io::Result<u64> {
    let files = door::files()?;
    files.root()?.create_dir("session")?;
    let twice = Arc::new(AtomicU64::new(0));
    let turn = Arc::new(Barrier::new(SIGNALS.len() + 1));
    let both = Arc::new(Barrier::new(SIGNALS.len()));
    let handlers: Vec<_> = SIGNALS
        .into_iter()
        .map(|signal| {
            let (files, twice, turn, both) = (files.clone(), twice.clone(), turn.clone(), both.clone());
            thread::spawn(move || {
                (0..rounds).try_for_each(|_| {
                    let outcome = handle(&files, signal, &both, is_one_step);
                    turn.wait();
                    twice.fetch_add(outcome?, Relaxed);
                    Ok::<(), io::Error>(())
                })
            })
        })
        .collect();
    for _ in 0..rounds {
        SESSION.iter().try_for_each(|name| Door::write(&files.root()?, name, b"here"))?;
        // SAFETY: the process sends signals to itself, which all its threads have blocked.
        SIGNALS.iter().for_each(|signal| assert_eq!(unsafe { libc::kill(libc::getpid(), *signal) }, 0));
        turn.wait();
    }
    handlers.into_iter().try_for_each(|handler| handler.join().expect("it does not panic"))?;
    Ok(twice.load(Relaxed))
}

fn main() -> io::Result<()> {
    // SAFETY: no other thread runs yet; those to come inherit the mask.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const *Box::new(set_of(&SIGNALS)), std::ptr::null_mut()) };
    let rounds = door::rounds(1_000);
    println!("in transactions: {} things removed twice in {rounds} rounds", run(rounds, true)?);
    println!("without: {} things removed twice in {rounds} rounds", run(rounds, false)?);
    Ok(())
}
