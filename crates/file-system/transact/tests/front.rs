//! `files.transaction(...)`, and what of the thesis on TxOS its examples want of names: a lock file's absence, several files
//! together, a maildir that stays as it was read.
#![cfg(not(any(loom, shuttle)))]

mod lists;

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use posix_calls::{Errno, Fields};
use scalefs::{FileSystem, OwnedConfig};
use transact::Transactions;

fn files() -> FileSystem {
    FileSystem::create(OwnedConfig { core_count: 4, ..OwnedConfig::default() }).unwrap()
}

fn exists(files: &FileSystem, path: &str) -> bool {
    files.root().unwrap().metadata(path).is_ok()
}

fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}

#[test]
fn three_files_are_there_together_or_none() {
    let files = files();
    files.root().unwrap().create_dir("etc").unwrap();
    let all = ["etc/passwd", "etc/shadow", "etc/group"];
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                files.transaction(|t| all.iter().try_for_each(|name| t.create(name))).unwrap();
                files.transaction(|t| all.iter().try_for_each(|name| t.remove_file(name))).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            let seen = files.transaction(|t| all.iter().map(|name| t.exists(name)).collect::<io::Result<Vec<_>>>());
            match seen {
                Ok(seen) => assert!(seen.iter().all(|is_there| *is_there == seen[0]), "{seen:?}"),
                Err(error) => assert_eq!(errno(&error), Some(Errno::ECANCELED.number())),
            }
        }
    });
}

/// Thesis, figure 4.1: who finds no lock file is alone until its transaction ends, though it makes none.
#[test]
fn a_lock_file_s_absence_is_kept() {
    let files = files();
    let runs = Cell::new(0);
    let alone = files.transaction(|t| {
        runs.set(runs.get() + 1);
        if t.exists("lock")? {
            return Ok(false);
        }
        if runs.get() == 1 {
            // Somebody else takes the lock.
            files.root()?.create("lock")?;
        }
        t.create("work").map(|()| true)
    });
    assert_eq!((alone.unwrap(), runs.get(), exists(&files, "work")), (false, 2, false));
}

/// A reader moves what is new, and sees each message once, whatever others deliver meanwhile.
#[test]
fn messages_are_moved_once() {
    const MESSAGES: u32 = 60;
    let files = files();
    for directory in ["tmp", "new", "cur"] {
        files.root().unwrap().create_dir(directory).unwrap();
    }
    let moved = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for message in 0..MESSAGES {
                let (tmp, new) = (format!("tmp/{message}"), format!("new/{message}"));
                files
                    .transaction(|t| {
                        t.create(&tmp)?;
                        t.rename(&tmp, &new)
                    })
                    .unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while moved.load(Ordering::Relaxed) < MESSAGES {
                    for message in 0..MESSAGES {
                        let (new, cur) = (format!("new/{message}"), format!("cur/{message}"));
                        let took = files.transaction(|t| {
                            let is_new = t.exists(&new)?;
                            // By an error, which is told only if it is so: both answers may be of two moments.
                            if is_new && t.exists(&cur)? {
                                return Err(ErrorKind::AlreadyExists.into());
                            }
                            if is_new {
                                t.rename(&new, &cur)?;
                            }
                            Ok(is_new)
                        });
                        let is_in_two = took.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
                        assert!(!is_in_two, "a message is in one directory");
                        moved.fetch_add(u32::from(took.unwrap_or(false)), Ordering::Relaxed);
                    }
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(moved.load(Ordering::Relaxed), MESSAGES);
    assert!((0..MESSAGES).all(|message| exists(&files, &format!("cur/{message}"))));
}

#[test]
fn hooks_run_at_the_end_that_comes() {
    let files = files();
    let told = RefCell::new(Vec::new());
    let runs = Cell::new(0);
    files
        .transaction(|t| {
            runs.set(runs.get() + 1);
            let run = runs.get();
            let told = &told;
            t.on_commit(move || told.borrow_mut().push((run, "first")));
            t.on_commit(move || told.borrow_mut().push((run, "second")));
            t.on_abort(move || told.borrow_mut().push((run, "inner")));
            t.on_abort(move || told.borrow_mut().push((run, "outer")));
            t.exists("f")?;
            if run == 1 {
                files.root()?.create("f")?;
            }
            assert!(told.borrow().iter().all(|(of, _)| *of < run), "before its end");
            t.create("g")
        })
        .unwrap();
    assert_eq!(*told.borrow(), [(1, "outer"), (1, "inner"), (2, "first"), (2, "second")]);
    told.borrow_mut().clear();
    let failed: io::Result<()> = files.transaction(|t| {
        let told = &told;
        t.on_commit(move || told.borrow_mut().push((0, "committed")));
        t.on_abort(move || told.borrow_mut().push((0, "aborted")));
        Err(io::Error::other("no"))
    });
    assert_eq!((failed.unwrap_err().kind(), told.borrow().as_slice()), (ErrorKind::Other, &[(0, "aborted")][..]));
}

#[test]
fn a_panic_leaves_nothing_and_runs_what_undoes() {
    let files = files();
    let undone = Cell::new(false);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        files.transaction(|t| {
            t.on_abort(|| undone.set(true));
            t.create("f")?;
            panic!("a mistake of the program's");
            #[allow(unreachable_code)]
            Ok(())
        })
    }));
    assert!(panicked.is_err() && undone.get() && !exists(&files, "f"));
}

#[test]
fn a_transaction_within_another_is_one_of_its_own() {
    let files = files();
    let failed: io::Result<()> = files.transaction(|outer| {
        outer.create("outer")?;
        files.transaction(|inner| {
            assert!(!inner.exists("outer")?);
            inner.create("inner")
        })?;
        Err(io::Error::other("no"))
    });
    assert!(failed.is_err() && exists(&files, "inner") && !exists(&files, "outer"));
}

#[test]
fn a_part_may_fail_alone_and_fields_that_are_not_offered_are_refused() {
    let files = files();
    files
        .transaction(|t| {
            t.create("f")?;
            t.hard_link("f", "g")?;
            assert!(t.part(|| t.remove_file("f").and_then(|()| t.remove_dir("g"))).is_err());
            assert!(t.exists("f")?);
            t.symlink("f", "s")?;
            assert_eq!(t.read_link("s")?.to_str(), Some("f"));
            assert_eq!(t.metadata("g", Fields::IDENTITY)?.number, t.metadata("f", Fields::IDENTITY)?.number);
            t.create_dir("d")?;
            t.remove_dir("d")
        })
        .unwrap();
    assert!(exists(&files, "f") && exists(&files, "g") && !exists(&files, "d"));
    // A mistake is told as it is outside.
    let told = files.transaction(|t| t.remove_file("none")).unwrap_err();
    assert_eq!(errno(&told), Some(Errno::ENOENT.number()));
}

/// The first name of what a commit has made and the removal of that name once met in a core's cache of link counts: they left no
/// trace there, so that nobody asked whether the object still had a name.
#[test]
fn what_a_transaction_has_made_goes_with_its_only_name() {
    let files = files();
    let root = files.root().unwrap();
    let settled = || {
        for _ in 0..200 {
            files.begin().unwrap().maintain();
        }
        files.space().unwrap()
    };
    let before = settled();
    for round in 0..20 {
        files.transaction(|t| t.write("file", [1; 10_000]).and_then(|()| t.create_dir("directory"))).unwrap();
        if round % 2 == 0 {
            root.rename("file", "other").unwrap();
            root.rename("other", "file").unwrap();
        }
        root.remove_file("file").unwrap();
        root.remove_dir("directory").unwrap();
    }
    assert_eq!(settled(), before);
}
