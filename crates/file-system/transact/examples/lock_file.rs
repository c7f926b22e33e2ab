//! A lock file that nobody needs to make (thesis on TxOS, figure 4.1): who finds none, and changes the data in the same
//! transaction, is alone. Old programs, which do make the lock file, get on with new ones.
//!
//! `cargo run -p transact --example lock_file -- 2000` lets both kinds count so far together.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use scalefs::FileSystem;
use transact::Transactions as _;

mod door;
use door::Door;

/// One more, after a pause; the new number takes the old one's place.
fn count(calls: &dyn Door, who: &str, pause: &dyn Fn()) -> io::Result<()> {
    let number: u64 = String::from_utf8_lossy(&calls.read("data")?).parse().map_err(io::Error::other)?;
    pause();
    let new = format!("data.{who}");
    calls.write(&new, (number + 1).to_string().as_bytes())?;
    calls.rename(&new, "data")
}

/// What the two have done, and the other waits for, to come at the worst moment.
#[derive(Default)]
struct Done {
    looks: AtomicU64,
    locks: AtomicU64,
    counts: AtomicU64,
    /// How often to look for the other: in a transaction, it may be this one that it waits for.
    patience: u64,
}

impl Done {
    /// Waits until the other has done so more often than this one has.
    fn wait_for(&self, done: &AtomicU64, own: u64) {
        for _ in (0..self.patience).take_while(|_| done.load(Relaxed) <= own) {
            thread::yield_now();
        }
    }
}

/// The old program, for the `turn`-th time: makes the lock file, or tries again.
fn with_lock_file(files: &FileSystem, done: &Done, turn: u64) -> io::Result<()> {
    let root = files.root()?;
    done.wait_for(&done.looks, turn);
    let new = scalefs::OpenOptions::new().write(true).create_new(true);
    while root.open_with("lock", new).is_err() {
        thread::yield_now();
    }
    let pause = || {
        // Not before it has read the number: the new program could be through with its own by then, and nothing would be lost.
        done.locks.store(turn + 1, Relaxed);
        done.wait_for(&done.counts, turn);
    };
    count(&root, "old", &pause)?;
    root.remove_file("lock")
}

/// The new program looks for the lock file, and counts if there is none: whether it has.
fn without_lock_file(calls: &dyn Door, pause: &dyn Fn()) -> io::Result<bool> {
    if calls.exists("lock")? {
        return Ok(false);
    }
    pause();
    count(calls, "new", &|| {}).map(|()| true)
}

/// What both have counted.
fn run(each: u64, are_together: bool) -> io::Result<String> {
    let files = door::files()?;
    Door::write(&files.root()?, "data", b"0")?;
    let done = Done { patience: if are_together { 50 } else { u64::MAX }, ..Done::default() };
    let new = |pause: &dyn Fn()| match are_together {
        true => files.transaction(|t| without_lock_file(&**t, pause)),
        false => without_lock_file(&files.root()?, pause),
    };
    thread::scope(|scope| {
        let old = scope.spawn(|| (0..each).try_for_each(|turn| with_lock_file(&files, &done, turn)));
        for turn in 0..each {
            // The old program takes the lock just after the look. Once, then all goes on as it may.
            let is_first = Cell::new(true);
            let pause = || {
                done.looks.store(turn + 1, Relaxed);
                if is_first.replace(false) {
                    done.wait_for(&done.locks, turn);
                }
            };
            // Not alone, or a hundred times in vain: again.
            while !new(&pause).unwrap_or(false) {
                thread::yield_now();
            }
            done.counts.store(turn + 1, Relaxed);
        }
        old.join().expect("it does not panic")
    })?;
    Ok(String::from_utf8_lossy(&Door::read(&files.root()?, "data")?).into_owned())
}

fn main() -> io::Result<()> {
    let each = door::rounds(2_000);
    println!("in transactions: {} of {} counted", run(each, true)?, 2 * each);
    println!("without: {} of {} counted", run(each, false)?, 2 * each);
    Ok(())
}
