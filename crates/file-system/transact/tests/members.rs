//! Threads that are in one transaction: it commits when the last has ended, and not if one dies.
#![cfg(not(any(loom, shuttle)))]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use posix_calls::Errno;
use scalefs::{FileSystem, OwnedConfig};
use transact::{Member, Transactions};

fn files() -> FileSystem {
    FileSystem::create(OwnedConfig { core_count: 4, ..OwnedConfig::default() }).unwrap()
}

fn exists(files: &FileSystem, path: &str) -> bool {
    files.root().unwrap().metadata(path).is_ok()
}

fn number(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}

const CANCELED: Option<i32> = Some(Errno::ECANCELED as i32);

#[test]
fn it_commits_when_the_last_member_has_ended() {
    let files = files();
    let first = files.begin_together().unwrap();
    let others: Vec<Member> = (0..3).map(|_| first.join()).collect();
    let ended = AtomicU32::new(0);
    thread::scope(|scope| {
        for (thread, member) in others.into_iter().enumerate() {
            let (ended, files) = (&ended, &files);
            scope.spawn(move || {
                member.create_dir(format!("d{thread}")).unwrap();
                member.write(format!("d{thread}/f"), [thread as u8; 5000]).unwrap();
                assert!(!exists(files, &format!("d{thread}")));
                ended.fetch_add(1, Ordering::SeqCst);
                member.end().unwrap();
                // Whoever has ended sees that all has happened.
                assert!((0..3).all(|other| exists(files, &format!("d{other}/f"))));
            });
        }
        while ended.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        // Members see what the others have done; nobody else does.
        assert_eq!(first.read("d2/f").unwrap(), [2; 5000]);
        assert!((0..3).all(|other| !exists(&files, &format!("d{other}"))));
        first.end().unwrap();
    });
}

#[test]
fn one_member_s_death_is_the_end_for_all() {
    let files = files();
    let free = files.space().unwrap().free_inodes;
    let first = files.begin_together().unwrap();
    let other = first.join();
    let waits = first.join();
    first.create("ours").unwrap();
    let died = thread::spawn(move || {
        other.create("theirs").unwrap();
        panic!("a mistake of the program's");
    });
    let waiting = thread::spawn(move || waits.end());
    assert!(died.join().is_err());
    assert_eq!(waiting.join().unwrap().map_err(|error| number(&error)), Err(CANCELED));
    assert_eq!(first.create("more").map_err(|error| number(&error)), Err(CANCELED));
    assert_eq!(first.end().map_err(|error| number(&error)), Err(CANCELED));
    assert!(!exists(&files, "theirs") && !exists(&files, "ours"));
    // What it has made is free again, once the cores have looked.
    (0..1000).for_each(|_| assert!(!exists(&files, "ours")));
    assert_eq!(files.space().unwrap().free_inodes, free);
}

#[test]
fn all_members_but_one_die() {
    let files = files();
    let last = files.begin_together().unwrap();
    let dead: Vec<_> = (0..5)
        .map(|number| {
            let member = last.join();
            thread::spawn(move || {
                // After the first death, calls say so.
                let _ = member.create(format!("f{number}"));
                panic!("a mistake of the program's");
            })
        })
        .collect();
    dead.into_iter().for_each(|thread| assert!(thread.join().is_err()));
    assert_eq!(last.create("last").map_err(|error| number(&error)), Err(CANCELED));
    assert_eq!(last.end().map_err(|error| number(&error)), Err(CANCELED));
    assert!((0..5).all(|number| !exists(&files, &format!("f{number}"))));
    // The next ones are as ever.
    let member = files.begin_together().unwrap();
    member.create("f0").unwrap();
    member.end().unwrap();
    assert!(exists(&files, "f0"));
}

#[test]
fn what_others_change_ends_it_for_all() {
    let files = files();
    let first = files.begin_together().unwrap();
    let other = first.join();
    assert!(!other.exists("lock").unwrap());
    first.create("work").unwrap();
    files.root().unwrap().create("lock").unwrap();
    let ended = thread::spawn(move || other.end());
    assert_eq!(first.end().map_err(|error| number(&error)), Err(CANCELED));
    assert_eq!(ended.join().unwrap().map_err(|error| number(&error)), Err(CANCELED));
    assert!(!exists(&files, "work"));
}

/// A closure's threads make calls of its transaction, too: they end within it.
#[test]
fn threads_of_a_closure_take_part() {
    let files = files();
    let made = files.transaction(|t| {
        let calls = t.calls();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || calls.create(format!("f{n}")))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap())
        })
    });
    made.unwrap();
    assert!((0..4).all(|number| exists(&files, &format!("f{number}"))));
}
