//! An attacker changes what a name leads to between a victim's check and its use of it, in four ways (thesis on TxOS,
//! section 5.6; Wei and Pu, FAST 2005, have the pairs of calls). Where both are in one transaction, the attacker never wins.
//!
//! `cargo run --release -p transact --example attacker -- 1000000` makes so many rounds, a quarter of them each way, and a
//! hundredth as many without transactions.

use std::cell::Cell;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use posix_calls::Kind;
use scalefs::{Dir, FileSystem};
use transact::Transactions as _;

mod door;
use door::Door;

/// A victim's check and use, with a pause between them: whether it has used what it would have refused.
type Victim = fn(&dyn Door, &dyn Fn()) -> io::Result<bool>;
/// Puts the name `file` to what is the victim's, or to what is not.
type Exchange = fn(&Dir, bool) -> io::Result<()>;

/// What a victim does, and what the attacker does by turns.
const WAYS: [(&str, Victim, Exchange); 4] = [
    ("readlink, open", asks_where_it_leads, |root, is_good| swap(root, if is_good { "mine/f" } else { "secret/f" })),
    ("lstat, open", asks_what_it_is, |root, is_good| match is_good {
        true => root.hard_link("mine/f", "other").and_then(|()| root.rename("other", "file")),
        false => swap(root, "secret/f"),
    }),
    ("lstat, open below", asks_what_is_above, |root, is_good| swap(root, if is_good { "mine" } else { "secret" })),
    ("access, creat", asks_for_absence, |root, is_good| match is_good {
        true => root.remove_file("file"),
        false => swap(root, "secret/new"),
    }),
];

/// A symbolic link in the place of what was there.
fn swap(root: &Dir, target: &str) -> io::Result<()> {
    root.symlink(target, "other")?;
    root.rename("other", "file")
}

fn asks_where_it_leads(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let is_good = calls.read_link("file")? == "mine/f";
    pause();
    Ok(is_good && calls.read("file")? == b"secret")
}

fn asks_what_it_is(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let is_good = calls.kind("file")? == Kind::Regular;
    pause();
    Ok(is_good && calls.read("file")? == b"secret")
}

fn asks_what_is_above(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let is_good = calls.read_link("file")? == "mine";
    pause();
    Ok(is_good && calls.read("file/f")? == b"secret")
}

/// Makes a file where there is none. If it was led to write among the secrets, that is undone for the next round.
fn asks_for_absence(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    let is_there = calls.exists("file")?;
    pause();
    if is_there {
        return Ok(false);
    }
    calls.write("file", b"dear diary")?;
    let lost = calls.exists("secret/new")?;
    calls.remove_file(if lost { "secret/new" } else { "file" })?;
    Ok(lost)
}

/// Rounds that the attacker wins, and those in which the victim gave up. In step, the attacker changes the name once before
/// the check, and once between check and use; else as often as it comes to it.
fn attacked(
    (victim, exchange): (Victim, Exchange),
    rounds: u64,
    is_in_step: bool,
    act: impl Fn(&FileSystem, Victim, &dyn Fn()) -> io::Result<bool>,
) -> io::Result<(u64, u64)> {
    let files = door::files()?;
    let root = files.root()?;
    for directory in ["mine", "secret"] {
        root.create_dir(directory)?;
        Door::write(&root, &format!("{directory}/f"), directory.as_bytes())?;
    }
    exchange(&root, false)?;
    let (stop, exchanges, step) = (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(2));
    let in_step = || {
        if is_in_step {
            step.wait();
        }
    };
    let most = if is_in_step { 2 * rounds } else { u64::MAX };
    let (mut won, mut gave_up) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let root = files.root().expect("there are few descriptors");
            for (is_good, _) in [true, false].into_iter().cycle().zip(0..most) {
                if stop.load(Relaxed) {
                    break;
                }
                in_step();
                // The victim may have taken the name away.
                let _ = exchange(&root, is_good);
                exchanges.fetch_add(1, Relaxed);
                in_step();
                thread::yield_now();
            }
        });
        for _ in 0..rounds {
            let is_first = Cell::new(true);
            // Once a round, the victim waits until the attacker has come in between.
            let pause = || {
                let before = exchanges.load(Relaxed);
                while !is_in_step && is_first.get() && exchanges.load(Relaxed) == before {
                    thread::yield_now();
                }
                is_first.set(false);
                in_step();
                in_step();
            };
            in_step();
            in_step();
            match act(&files, victim, &pause) {
                Ok(lost) => won += u64::from(lost),
                Err(_) => gave_up += 1,
            }
        }
        stop.store(true, Relaxed);
    });
    Ok((won, gave_up))
}

fn main() -> io::Result<()> {
    let rounds = door::rounds(2_000) / WAYS.len() as u64;
    let controls = rounds.div_ceil(100).max(50);
    for (words, victim, exchange) in WAYS {
        let way = (victim, exchange);
        let safe = |files: &FileSystem, victim: Victim, pause: &dyn Fn()| files.transaction(|t| victim(&**t, pause));
        let unsafe_ = |files: &FileSystem, victim: Victim, pause: &dyn Fn()| victim(&files.root()?, pause);
        let (won, gave_up) = attacked(way, rounds, false, safe)?;
        println!("{words}, in transactions: the attacker wins {won} of {rounds}; the victim gave up {gave_up}");
        let (won, gave_up) = attacked(way, controls, true, unsafe_)?;
        println!("{words}, without: the attacker wins {won} of {controls}; the victim's calls failed {gave_up}");
    }
    Ok(())
}
