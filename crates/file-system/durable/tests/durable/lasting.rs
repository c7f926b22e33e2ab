//! What is there again when an instance is opened again.

use std::fs;
use std::io::ErrorKind;
use std::sync::Barrier;
use std::thread;

use durable::{Durable, OpenError, Options};
use posix_calls::attributes::NewTime;
use posix_calls::{Fields, Kind};
use scalefs::OwnedConfig;

use crate::tree::{scratch, tree};

#[test]
fn all_that_transactions_have_done_is_there_again() {
    all_again("all");
}

pub fn all_again(name: &str) {
    let path = scratch(name);
    let instance = Durable::open(&path).unwrap();
    instance
        .transaction(|t| {
            t.create_dir("a")?;
            t.create_dir("a/b")?;
            t.write("a/f", "first")?;
            t.hard_link("a/f", "a/b/again")?;
            t.symlink("../nowhere", "a/link")?;
            t.make_node("a/device", Kind::CharacterDevice, 0x105)?;
            t.write("a/large", vec![7; 100_000])?;
            t.set_mode("a", 0o1751)?;
            t.set_owner("a/f", (Some(4), Some(5)))?;
            t.set_mode("a/f", 0o6750)
        })
        .unwrap();
    instance
        .transaction(|t| {
            t.write_at("a/large", [9; 5000], 50_000)?;
            t.set_len("a/large", 61_234)?;
            t.append("a/f", " and more")?;
            t.create("gone")?;
            t.create("moved")
        })
        .unwrap();
    instance
        .transaction(|t| {
            t.remove_file("gone")?;
            t.rename("a/b", "c")?;
            t.rename("moved", "c/here")?;
            t.set_times("c", (NewTime::At(-3), NewTime::At(1 << 60)))
        })
        .unwrap();
    // Longer by a hole, over what had been cut away.
    instance.transaction(|t| t.set_len("a/large", 70_000)).unwrap();
    let seen = tree(&instance);
    assert_eq!(seen.len(), 9);
    drop(instance);
    for _ in 0..2 {
        let again = Durable::open(&path).unwrap();
        assert_eq!(tree(&again), seen);
        again.close().unwrap();
    }
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_has_not_happened_is_not_there() {
    let path = scratch("nothing");
    let instance = Durable::open(&path).unwrap();
    let failed = instance.transaction(|t| {
        t.create("f")?;
        t.create("f")
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::AlreadyExists);
    instance
        .transaction(|t| {
            t.create("g")?;
            t.remove_file("g")?;
            let part: std::io::Result<()> = t.part(|| {
                t.create("h")?;
                t.create("h")
            });
            assert!(part.is_err());
            Ok(())
        })
        .unwrap();
    drop(instance);
    assert_eq!(tree(&Durable::open(&path).unwrap()).len(), 1, "the root alone");
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn later_transactions_last_with_the_next_one() {
    with_later_ones("later");
}

pub fn with_later_ones(name: &str) {
    let path = scratch(name);
    let instance = Durable::open(&path).unwrap();
    for round in 0..100 {
        instance.transaction_later(|t| t.create(format!("later{round}"))).unwrap();
    }
    instance.sync_object("later50").unwrap();
    instance.transaction(|t| t.create("last")).unwrap();
    drop(instance);
    assert_eq!(tree(&Durable::open(&path).unwrap()).len(), 102);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn many_threads_commit_together() {
    const THREADS: usize = 8;
    let path = scratch("threads");
    let instance = Durable::open(&path).unwrap();
    let (barrier, instance_ref) = (Barrier::new(THREADS), &instance);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for round in 0..20 {
                    let name = format!("{thread}-{round}");
                    // All move one counter, too.
                    instance_ref
                        .transaction(|t| {
                            let count = if t.exists("count")? { t.read("count")?.len() } else { 0 };
                            t.write("count", vec![1; count + 1])?;
                            t.create(&name)
                        })
                        .unwrap();
                }
            });
        }
    });
    drop(instance);
    let again = Durable::open(&path).unwrap();
    assert_eq!(again.transaction(|t| t.read("count")).unwrap().len(), THREADS * 20);
    assert_eq!(tree(&again).len(), THREADS * 20 + 2);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn one_opens_it_at_a_time() {
    let path = scratch("one");
    let instance = Durable::open(&path).unwrap();
    let refused = Durable::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::InUse(_)), "{refused}");
    assert!(refused.to_string().contains("is in use"));
    drop(instance);
    Durable::open(&path).unwrap();
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_memory_that_is_too_small_is_said() {
    let path = scratch("small");
    let instance = Durable::open(&path).unwrap();
    instance.transaction(|t| t.write("large", vec![1; 4 << 20])).unwrap();
    drop(instance);
    let memory = OwnedConfig { page_count: 100, ..OwnedConfig::default() };
    let refused = Durable::open_with(&path, Options { memory }).unwrap_err();
    assert!(matches!(refused, OpenError::TooSmall(_)), "{refused}");
    let again = Durable::open(&path).unwrap();
    assert_eq!(again.transaction(|t| t.metadata("large", Fields::ALL)).unwrap().size_bytes, 4 << 20);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_is_no_instance_is_refused() {
    let path = scratch("other");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    assert!(matches!(Durable::open(&path), Err(OpenError::NotAnInstance(_))));
    fs::remove_file(path.join("notes.txt")).unwrap();
    drop(Durable::open(&path).unwrap());
    fs::remove_file(path.join("pages")).unwrap();
    assert!(matches!(Durable::open(&path), Err(OpenError::Damaged(_))));
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    assert!(matches!(Durable::open(&path), Err(OpenError::NotAnInstance(_))));
    fs::remove_file(path).unwrap();
}

/// A child has a copy of what its parent may have half done: it is refused, and closes nothing.
#[test]
fn a_child_of_fork_leaves_it_to_its_parent() {
    let path = scratch("fork");
    let instance = Durable::open(&path).unwrap();
    instance.transaction_later(|t| t.create("before")).unwrap();
    let disk = || ["pages", "records"].map(|name| fs::read(path.join(name)).unwrap());
    let before = disk();
    // SAFETY: the child uses the instance alone, which takes no lock there, and leaves without anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_refused = instance.transaction(|t| t.create("child")).is_err() && instance.sync().is_err();
        let is_refused = is_refused && instance.close().is_err();
        // SAFETY: it ends the process.
        unsafe { libc::_exit(i32::from(!is_refused)) };
    }
    let mut status = -1;
    // SAFETY: it is a child of this process, and the place for its status is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(disk() == before, "the child has written");
    assert!(matches!(Durable::open(&path), Err(OpenError::InUse(_))), "its lock is the parent's");
    instance.transaction(|t| t.create("after")).unwrap();
    drop(instance);
    assert_eq!(tree(&Durable::open(&path).unwrap()).len(), 3);
    fs::remove_dir_all(path).unwrap();
}

/// Pages without records are what is left of an instance: nothing is made in their place.
#[test]
fn an_instance_that_has_lost_its_records_is_damaged() {
    for bytes in [10, 1 << 20] {
        let path = scratch("lost");
        let instance = Durable::open(&path).unwrap();
        instance.transaction(|t| t.write("f", vec![1; bytes])).unwrap();
        drop(instance);
        fs::remove_file(path.join("records")).unwrap();
        let pages = fs::read(path.join("pages")).unwrap();
        let refused = Durable::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
        assert!(refused.to_string().contains("no records"), "{refused}");
        assert!(fs::read(path.join("pages")).unwrap() == pages);
        fs::remove_dir_all(path).unwrap();
    }
}

/// The death of who makes one leaves what the next one begins again.
#[test]
fn an_instance_that_was_half_made_is_made_again() {
    let path = scratch("half");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("pages"), "CMTP").unwrap();
    fs::write(path.join("records.new"), [0; 5000]).unwrap();
    Durable::open(&path).unwrap().transaction(|t| t.create("f")).unwrap();
    assert_eq!(tree(&Durable::open(&path).unwrap()).len(), 2);
    fs::remove_dir_all(path).unwrap();
}
