//! What goes wrong is told in the call, and leaves nothing: too much data, too many answers, directories that would be below
//! each other, a closure that others always come before, more transactions than cores, a participant that waits.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::io;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use posix_calls::Errno;
use scalefs::{FileSystem, OwnedConfig};
use transact::{Participant, Refused, Transactions};

fn files() -> FileSystem {
    FileSystem::create(OwnedConfig { core_count: 4, ..OwnedConfig::default() }).unwrap()
}

fn exists(files: &FileSystem, path: &str) -> bool {
    files.root().unwrap().metadata(path).is_ok()
}

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn more_data_than_space_is_refused_in_the_call() {
    let files = FileSystem::create(OwnedConfig { page_count: 64, ..OwnedConfig::default() }).unwrap();
    let free = files.space().unwrap().free_blocks;
    let refused = Cell::new(None);
    let outcome = files.transaction(|t| {
        t.write("small", "fits")?;
        refused.set(errno(t.write("large", vec![1; 65 * 4096])));
        t.remove_file("large")
    });
    assert_eq!((outcome.map_err(|error| error.to_string()), refused.get()), (Ok(()), Some(Errno::ENOSPC.number())));
    assert!(exists(&files, "small") && !exists(&files, "large"));
    (0..1000).for_each(|_| assert!(exists(&files, "small")));
    assert_eq!(files.space().unwrap().free_blocks, free - 1);
}

/// The commit had written all new files once more after any part that was undone, and found their pages not free yet.
#[test]
fn an_undone_part_leaves_the_data_of_other_files_alone() {
    let files = FileSystem::create(OwnedConfig { page_count: 64, ..OwnedConfig::default() }).unwrap();
    let outcome = files.transaction(|t| {
        t.write("large", vec![1; 50 * 4096])?;
        let undone = t.part(|| t.write("small", "not yet").and_then(|()| Err::<(), _>(io::Error::other("no"))));
        undone.or_else(|_| t.write("small", "at last"))
    });
    assert_eq!(outcome.map_err(|error| error.to_string()), Ok(()));
    let root = files.root().unwrap();
    assert_eq!(root.metadata("large").unwrap().size_bytes, 50 * 4096);
    assert_eq!(root.metadata("small").unwrap().size_bytes, 7);
}

/// So many, unless `ANSWERS` says how many: a million take seconds in a release build.
#[test]
fn many_answers_are_one_transaction() {
    let answers = std::env::var("ANSWERS").map_or(20_000, |text| text.parse().expect("ANSWERS is a number"));
    let files = files();
    files.root().unwrap().create("seen-7").unwrap();
    let outcome = files.transaction(|t| {
        let seen = (0..answers)
            .try_fold(0, |seen, n: u32| Ok::<_, io::Error>(seen + u32::from(t.exists(format!("seen-{n}"))?)));
        t.create("done").and(seen)
    });
    assert_eq!(outcome.unwrap(), 1);
    assert!(exists(&files, "done"));
}

#[test]
fn two_directories_are_not_moved_into_each_other() {
    let files = files();
    for round in 0..200 {
        let root = files.root().unwrap();
        root.create_dir("a").unwrap();
        root.create_dir("b").unwrap();
        // One is in the middle when the other happens, then both at the same time.
        let outcomes = if round == 0 {
            let other = Cell::new(None);
            let one = files.transaction(|t| {
                t.rename("a", "b/a")?;
                if other.get().is_none() {
                    other.set(Some(errno(files.transaction(|t| t.rename("b", "a/b")))));
                }
                Ok(())
            });
            [errno(one), other.get().unwrap()]
        } else {
            thread::scope(|scope| {
                let moved = |from, to| {
                    let files = &files;
                    scope.spawn(move || errno(files.transaction(|t| t.rename(from, to))))
                };
                [moved("a", "b/a"), moved("b", "a/b")].map(|thread| thread.join().unwrap())
            })
        };
        let [a_in_b, b_in_a] = [exists(&files, "b/a"), exists(&files, "a/b")];
        assert!(a_in_b != b_in_a && exists(&files, "a") != exists(&files, "b"), "round {round}: {outcomes:?}");
        let lost = Some(Errno::ENOENT.number());
        assert_eq!(outcomes, if a_in_b { [None, lost] } else { [lost, None] }, "round {round}");
        let (outer, inner) = if a_in_b { ("b", "b/a") } else { ("a", "a/b") };
        root.remove_dir(inner).unwrap();
        root.remove_dir(outer).unwrap();
    }
}

/// A child of the host's `fork` has a copy of the transaction, which is not its own: calls and the end are refused there.
#[test]
fn a_child_of_fork_is_no_member() {
    let files = files();
    let member = files.begin_together().unwrap();
    let in_child = member.join();
    member.create("mine").unwrap();
    // SAFETY: the child makes calls that allocate nothing but an error, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_refused = |result: io::Result<()>| {
            result.err().is_some_and(|error| error.get_ref().is_some_and(|inside| inside.is::<percpu::ClaimError>()))
        };
        let is_right = is_refused(in_child.create("theirs")) && is_refused(in_child.exists("mine").map(drop));
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child was not refused");
    drop(thread::spawn(move || in_child.end()));
    member.end().unwrap();
    assert!(exists(&files, "mine") && !exists(&files, "theirs"));
}

/// A closure whose every run is too late runs a hundred times; one that makes the same call for ever is told each time.
#[test]
fn who_never_gets_through_is_told() {
    let files = files();
    let (runs, told) = (Cell::new(0), Cell::new(0));
    let outcome: io::Result<()> = files.transaction(|t| {
        runs.set(runs.get() + 1);
        let is_there = t.exists("f")?;
        let root = files.root()?;
        if is_there {
            root.remove_file("f")?
        } else {
            drop(root.create("f")?)
        }
        // It goes on all the same, and makes nothing.
        told.set(told.get() + (0..10).filter(|n| t.create(format!("g{n}")).is_err()).count());
        Ok(())
    });
    assert_eq!((errno(outcome), runs.get(), told.get()), (Some(Errno::ECANCELED.number()), 100, 1000));
    assert!((0..10).all(|n| !exists(&files, &format!("g{n}"))));
}

/// A transaction has a core only during its calls: far more of them than cores are open at once, and all happen.
#[test]
fn more_transactions_than_cores_are_open_at_once() {
    const TRANSACTIONS: usize = 16;
    let files = FileSystem::create(OwnedConfig { core_count: 1, ..OwnedConfig::default() }).unwrap();
    let all_have_begun = Barrier::new(TRANSACTIONS);
    thread::scope(|scope| {
        for number in 0..TRANSACTIONS {
            let (files, all_have_begun) = (&files, &all_have_begun);
            scope.spawn(move || {
                let is_first = Cell::new(true);
                let made = files.transaction(|t| {
                    t.create(format!("{number}"))?;
                    if is_first.replace(false) {
                        all_have_begun.wait();
                    }
                    t.write(format!("{number}"), number.to_string())
                });
                made.unwrap();
            });
        }
    });
    for number in 0..TRANSACTIONS {
        assert_eq!(
            files.root().unwrap().metadata(format!("{number}")).unwrap().size_bytes,
            number.to_string().len() as u64
        );
    }
}

/// Waits, in its preparation, for somebody else's look.
struct Waits {
    asks: Sender<()>,
    answered: Receiver<Option<i32>>,
}

impl Participant for Waits {
    fn prepare(&mut self) -> Result<(), Refused> {
        self.asks.send(()).unwrap();
        assert_eq!(self.answered.recv().unwrap(), Some(Errno::ENOENT.number()), "nothing has happened yet");
        Ok(())
    }
    fn commit(&mut self) {}
    fn abort(&mut self) {}
}

/// Who looks at what a transaction is about to change waits for none of its participants.
#[test]
fn looks_go_on_while_a_participant_waits() {
    let files = files();
    let ((asks, asked), (answers, answered)) = (channel(), channel());
    let mut waits = Some(Waits { asks, answered });
    thread::scope(|scope| {
        let files = &files;
        scope.spawn(move || {
            while asked.recv().is_ok() {
                answers.send(errno(files.root().and_then(|root| root.metadata("f")))).unwrap();
            }
        });
        let made = files.transaction(|t| {
            // Nobody comes in between: it runs once.
            t.take_part(waits.take().unwrap());
            t.create("f")
        });
        made.unwrap();
    });
    assert!(exists(&files, "f"));
}
