//! Two clients of a directory service on flat files: one adds people to a group and deletes them, the other deletes the group
//! when it is empty, and adds it again. In transactions, nobody is ever in a group that is not there.
//!
//! `cargo run -p transact --example directory_service -- 1000` lets each make so many requests.

use std::cell::Cell;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use scalefs::FileSystem;
use transact::Transactions as _;

#[path = "../door/mod.rs"]
mod door;
mod service;
use door::Door;

const GROUP: [&str; 1] = ["ou=people"];
const ORPHAN: &str = "a person without a group";
const PERSON: [&str; 2] = ["ou=people", "uid=ann"];

/// Whether there is a person without a group.
fn is_orphaned(calls: &dyn Door) -> io::Result<bool> {
    Ok(calls.exists(&service::file_of(&PERSON))? && !calls.exists(&service::file_of(&GROUP))?)
}

/// How many requests were granted, and how often a person was without a group, at the end of one client's request. Without
/// transactions both go in step, so that the group is deleted between a person's look for it and her entry.
fn run(requests: u64, are_together: bool) -> io::Result<(u64, u64)> {
    let files = door::files()?;
    let ask = |files: &FileSystem, request: &dyn Fn(&dyn Door) -> io::Result<()>| match are_together {
        true => files.transaction(|t| request(&**t)),
        false => request(&files.root()?),
    };
    let (is_done, deleted, step) = (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(2));
    let in_step = || {
        if !are_together {
            step.wait();
        }
    };
    // Once, but not for long: until the other has deleted the group.
    let wait = |before| (0..50).take_while(|_| deleted.load(Relaxed) == before).for_each(|_| thread::yield_now());
    let (mut granted, mut orphans) = (0, 0);
    thread::scope(|scope| {
        let people = scope.spawn(|| {
            let mut orphans = 0;
            let mut rounds = 0..requests / 2;
            while if are_together { !is_done.load(Relaxed) } else { rounds.next().is_some() } {
                let is_first = Cell::new(true);
                let meanwhile = || {
                    in_step();
                    if is_first.replace(false) && are_together {
                        wait(deleted.load(Relaxed))
                    }
                    in_step();
                };
                in_step();
                // Refused while there is no group.
                let added = ask(&files, &|calls| service::add(calls, &PERSON, "cn: Ann\n", &meanwhile));
                let look = |calls: &dyn Door| if is_orphaned(calls)? { Err(io::Error::other(ORPHAN)) } else { Ok(()) };
                let looked = if added.is_ok() { ask(&files, &look) } else { Ok(()) };
                orphans += u64::from(looked.is_err_and(|error| error.to_string() == ORPHAN));
                let _ = ask(&files, &|calls| service::delete(calls, &PERSON));
                in_step();
            }
            orphans
        });
        for _ in 0..requests / 2 {
            granted += u64::from(ask(&files, &|calls| service::add(calls, &GROUP, "ou: people\n", &|| ())).is_ok());
            in_step();
            (0..10).for_each(|_| thread::yield_now());
            in_step();
            granted += u64::from(ask(&files, &|calls| service::delete(calls, &GROUP)).is_ok());
            deleted.fetch_add(1, Relaxed);
            in_step();
            (0..10).for_each(|_| thread::yield_now());
            in_step();
        }
        is_done.store(true, Relaxed);
        orphans = people.join().expect("it does not panic");
    });
    Ok((granted, orphans))
}

fn main() -> io::Result<()> {
    let requests = door::rounds(1_000);
    for (words, are_together) in [("in transactions", true), ("without", false)] {
        let (granted, orphans) = run(requests, are_together)?;
        println!("{words}: {granted} of {requests} requests granted, {orphans} people without a group");
    }
    Ok(())
}
