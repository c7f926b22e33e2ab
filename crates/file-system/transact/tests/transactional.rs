//! `transaction`: a closure that runs again, parts of it, and what goes wrong.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use plain::{Plain, Process};
use posix_calls::attributes::{self, Access, NewTime};
use posix_calls::directories;
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, InodeNumber, ObjectOperations, OpenFlags, Space, Start};
use transact::{Sharing, Transactional};

const NEW: OpenFlags = OpenFlags::CREATE.union(OpenFlags::EXCLUSIVE).union(OpenFlags::WRITE);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn create<V: ObjectOperations>(call: &V, path: &[u8]) -> Result<(), Errno> {
    let opened = names::open(call, at(), path, NEW, 0o644)?;
    names::close(call, opened.handle);
    Ok(())
}

fn exists<V: ObjectOperations>(call: &V, path: &[u8]) -> bool {
    attributes::access(call, at(), path, Follow::Nothing, Access::EXISTS).is_ok()
}

fn world() -> (Plain, Process) {
    let file_system = Plain::default();
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    (file_system, process)
}

fn space(file_system: &Plain, process: &Process) -> Space {
    attributes::space(&file_system.begin(process)).unwrap()
}

#[test]
fn all_of_it_happens_or_nothing() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    fs.transaction(|t| {
        directories::make_directory(&t.begin(), at(), b"mail", 0o755)?;
        create(&t.begin(), b"mail/1")?;
        // The transaction sees its own changes, others do not.
        assert!(exists(&t.begin(), b"mail/1") && !exists(&file_system.begin(&process), b"mail"));
        names::link(&t.begin(), (at(), b"mail/1"), (at(), b"mail/2"), Follow::Nothing)
    })
    .unwrap();
    assert!(exists(&file_system.begin(&process), b"mail/2"));
    let before = file_system.clone();
    let failed = fs.transaction(|t| {
        names::unlink(&t.begin(), at(), b"mail/1")?;
        create(&t.begin(), b"mail/3")?;
        names::unlink(&t.begin(), at(), b"mail/4")
    });
    assert_eq!(failed, Err(Errno::ENOENT));
    assert_eq!(space(&file_system, &process), space(&before, &process));
    assert!(exists(&file_system.begin(&process), b"mail/1") && !exists(&file_system.begin(&process), b"mail/3"));
}

#[test]
fn a_stale_closure_runs_again() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let runs = Cell::new(0);
    let created = fs.transaction(|t| {
        runs.set(runs.get() + 1);
        let is_locked = exists(&t.begin(), b"lock");
        if runs.get() == 1 {
            // Somebody else comes in between.
            create(&file_system.begin(&process), b"lock").unwrap();
        }
        if !is_locked { create(&t.begin(), b"lock").map(|()| true) } else { Ok(false) }
    });
    assert_eq!((created, runs.get()), (Ok(false), 2));
}

#[test]
fn an_error_is_not_told_from_what_is_not_so_any_more() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let runs = Cell::new(0);
    let failed = fs.transaction(|t| {
        runs.set(runs.get() + 1);
        let (f, g) = (exists(&t.begin(), b"f"), exists(&t.begin(), b"g"));
        if runs.get() == 1 {
            create(&file_system.begin(&process), b"f").unwrap();
        }
        if f == g { Err::<(), _>(Errno::ENOENT) } else { Err(Errno::EEXIST) }
    });
    assert_eq!((failed, runs.get()), (Err(Errno::EEXIST), 2));
}

#[test]
fn a_doomed_closure_sees_nothing_new() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).attempts(1);
    let failed = fs.transaction(|t| {
        assert!(!exists(&t.begin(), b"f"));
        create(&file_system.begin(&process), b"f").unwrap();
        // Whatever is new to it, it would be told together with what is not so any more.
        let told = attributes::stat(&t.begin(), at(), b"g", Follow::Nothing, Fields::ALL);
        assert_eq!(told, Err(Errno::ECANCELED));
        assert_eq!(create(&t.begin(), b"h"), Err(Errno::ECANCELED));
        Ok(())
    });
    assert_eq!(failed, Err(Errno::ECANCELED));
    assert!(!exists(&file_system.begin(&process), b"h"));
}

#[test]
fn who_is_never_let_through_is_told() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).attempts(5);
    let runs = Cell::new(0_u8);
    let failed = fs.transaction(|t| {
        runs.set(runs.get() + 1);
        let name = [b'a' + runs.get()];
        assert!(!exists(&t.begin(), &name));
        create(&file_system.begin(&process), &name)
    });
    assert_eq!((failed, runs.get()), (Err(Errno::ECANCELED), 5));
}

#[test]
fn nothing_is_left_of_a_closure_that_panics() {
    let (file_system, process) = world();
    let before = space(&file_system, &process);
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        fs.transaction(|t| {
            create(&t.begin(), b"f")?;
            panic!("a mistake of the program's")
        }) as Result<(), Errno>
    }));
    assert!(panicked.is_err());
    assert_eq!(space(&file_system, &process), before);
}

#[test]
fn a_part_is_undone_alone() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    fs.transaction(|t| {
        create(&t.begin(), b"f")?;
        let failed = t.part(|| {
            create(&t.begin(), b"g")?;
            attributes::change_mode(&t.begin(), at(), b"f", 0)?;
            directories::remove_directory(&t.begin(), at(), b"f")
        });
        assert_eq!(failed, Err(Errno::ENOTDIR));
        assert!(!exists(&t.begin(), b"g"));
        t.part(|| create(&t.begin(), b"h"))
    })
    .unwrap();
    let call = file_system.begin(&process);
    assert!(exists(&call, b"f") && !exists(&call, b"g") && exists(&call, b"h"));
    assert_eq!(attributes::stat(&call, at(), b"f", Follow::Nothing, Fields::ALL).unwrap().mode, 0o644);
}

#[test]
fn attributes_and_names_change_at_one_moment() {
    let (file_system, process) = world();
    create(&file_system.begin(&process), b"f").unwrap();
    let fs = Transactional::new(Sharing::Shared, || file_system.begin(&process));
    fs.transaction(|t| {
        directories::make_directory(&t.begin(), at(), b"d", 0o755)?;
        attributes::change_mode(&t.begin(), at(), b"f", 0o600)?;
        let times = (NewTime::At(1), NewTime::Same);
        attributes::set_times(&t.begin(), at(), b"f", Follow::Nothing, times)?;
        attributes::change_mode(&t.begin(), at(), b"d", 0o700)?;
        directories::change_directory(&t.begin(), at(), b"d")?;
        create(&t.begin(), b"g")?;
        assert!(exists(&t.begin(), b"../d/g"));
        let before = attributes::stat(&file_system.begin(&process), at(), b"f", Follow::Nothing, Fields::ALL)?;
        assert_eq!(before.mode, 0o644);
        Ok(())
    })
    .unwrap();
    let call = file_system.begin(&process);
    let status = |path| attributes::stat(&call, at(), path, Follow::Nothing, Fields::ALL).unwrap();
    assert_eq!((status(b"../d").mode, status(b"../f").mode, status(b"../f").accessed_ns), (0o700, 0o600, 1));
    assert!(exists(&call, b"g"));
}

#[test]
fn a_directory_that_moves_stands_in_its_new_parent_at_once_and_afterwards() {
    fn number<V: ObjectOperations>(call: &V, path: &[u8]) -> InodeNumber {
        attributes::stat(call, at(), path, Follow::Nothing, Fields::ALL).unwrap().number
    }
    for (mode, target) in [(RenameMode::Replace, &b"b/d"[..]), (RenameMode::Exchange, b"b/e")] {
        let (file_system, process) = world();
        for path in [&b"a"[..], b"a/d", b"b", b"b/e"] {
            directories::make_directory(&file_system.begin(&process), at(), path, 0o755).unwrap();
        }
        let up = [target, b"/.."].concat();
        let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
        fs.transaction(|t| {
            names::rename(&t.begin(), (at(), b"a/d"), (at(), target), mode)?;
            assert_eq!(number(&t.begin(), &up), number(&t.begin(), b"b"));
            let below_itself = [target, b"/x"].concat();
            let looped = names::rename(&t.begin(), (at(), b"b"), (at(), &below_itself), RenameMode::Replace);
            assert_eq!(looped, Err(Errno::EINVAL), "{mode:?}");
            Ok(())
        })
        .unwrap();
        let call = file_system.begin(&process);
        assert_eq!(number(&call, &up), number(&call, b"b"), "{mode:?}");
    }
}

#[test]
fn the_base_may_fail_at_any_operation() {
    fn steps_of<'f, F: Fn() -> plain::Call<'f>>(t: &transact::Running<'_, plain::Call<'f>, F>) -> Result<(), Errno> {
        create(&t.begin(), b"d/f")?;
        names::rename(&t.begin(), (at(), b"d/f"), (at(), b"g"), RenameMode::Replace)?;
        directories::remove_directory(&t.begin(), at(), b"d")
    }
    for successes in 0..200 {
        let (file_system, process) = world();
        directories::make_directory(&file_system.begin(&process), at(), b"d", 0o755).unwrap();
        let before = space(&file_system, &process);
        let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
        file_system.fail_after(Some(successes));
        let outcome = fs.transaction(steps_of);
        file_system.fail_after(None);
        if outcome.is_ok() {
            assert!(successes > 20, "{successes} are enough");
            return;
        }
        assert_eq!(outcome, Err(Errno::EIO), "of {successes} operations");
        assert_eq!(space(&file_system, &process), before, "what is left after {successes} operations");
    }
    panic!("the transaction never comes to its end");
}

#[test]
#[should_panic(expected = "belongs to the transaction")]
fn a_handle_ends_with_its_transaction() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let handle = fs.transaction(|t| Ok(names::open(&t.begin(), at(), b"f", NEW, 0o644)?.handle)).unwrap();
    let _ = fs.transaction(|t| {
        t.begin().held(&handle);
        Ok(())
    });
}

#[test]
fn what_was_open_before_is_found() {
    let (file_system, process) = world();
    directories::make_directory(&file_system.begin(&process), at(), b"d", 0o755).unwrap();
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    let opened = names::open(&file_system.begin(&process), at(), b"d", flags, 0).unwrap();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    fs.transaction(|t| {
        let call = t.begin();
        let start = Start::Handle(call.kept(&opened.handle).map_err(Errno::from)?);
        directories::make_directory(&call, start, b"below", 0o755)
    })
    .unwrap();
    names::close(&file_system.begin(&process), opened.handle);
    assert!(exists(&file_system.begin(&process), b"d/below"));
}

/// By a handle nothing comes into a directory that has lost its name, whatever took that away.
#[test]
fn a_directory_that_is_gone_in_the_transaction_takes_no_names() {
    for is_replaced in [true, false] {
        let (file_system, process) = world();
        let begin = || file_system.begin(&process);
        for path in [b"d".as_slice(), b"other"] {
            directories::make_directory(&begin(), at(), path, 0o755).unwrap();
        }
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let opened = names::open(&begin(), at(), b"d", flags, 0).unwrap();
        let came = Transactional::new(Sharing::Alone, begin).transaction(|t| {
            if is_replaced {
                names::rename(&t.begin(), (at(), b"other"), (at(), b"d"), RenameMode::Replace)?;
            } else {
                directories::remove_directory(&t.begin(), at(), b"d")?;
            }
            let make = |name: &[u8]| {
                let call = t.begin();
                let start = Start::Handle(call.kept(&opened.handle).map_err(Errno::from)?);
                directories::make_directory(&call, start, name, 0o755)
            };
            Ok([make(b"below"), make(&[b'n'; 256])])
        });
        assert_eq!(came, Ok([Err(Errno::ENOENT); 2]));
        names::close(&begin(), opened.handle);
    }
}

#[test]
fn a_listing_has_own_names_too_and_no_phantoms() {
    let (file_system, process) = world();
    for name in [b"a", b"b", b"c"] {
        create(&file_system.begin(&process), name).unwrap();
    }
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let runs = Cell::new(0);
    let listed = fs.transaction(|t| {
        runs.set(runs.get() + 1);
        names::unlink(&t.begin(), at(), b"b")?;
        create(&t.begin(), b"new")?;
        create(&t.begin(), b"newer")?;
        names::unlink(&t.begin(), at(), b"new")?;
        let (mut names, mut cookie) = (Vec::new(), Some(2));
        // One name at a time, as by a small buffer.
        while let Some(from) = cookie {
            let call = t.begin();
            let mut each = |item: posix_calls::Item<'_, transact::Node<'_>>| {
                names.push(String::from_utf8_lossy(item.name).into_owned());
                false
            };
            cookie = call.list(call.root(), from, &mut each).map_err(Errno::from)?;
            if names.len() == 1 {
                create(&call, b"newest")?;
            }
        }
        if runs.get() == 1 {
            create(&file_system.begin(&process), b"phantom").unwrap();
        }
        Ok(names)
    });
    assert_eq!(runs.get(), 2);
    assert_eq!(listed.unwrap(), ["a", "c", "phantom", "newer", "newest"]);
}

/// Regression test: a mutant let a part that was undone call the transaction fresh again.
#[test]
fn what_is_stale_stays_so_when_a_part_is_undone() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).attempts(1);
    let outcome = fs.transaction(|t| {
        let look = |name| attributes::access(&t.begin(), at(), name, Follow::Nothing, Access::EXISTS);
        assert_eq!(look(b"n" as &[u8]), Err(Errno::ENOENT));
        create(&file_system.begin(&process), b"n").unwrap();
        // What is new is asked together with what was told before.
        let told = [b"m", b"k"].map(|name| look(name));
        assert!(told.contains(&Err(Errno::ECANCELED)), "{told:?}");
        let undone = t.part(|| Err::<(), _>(Errno::EIO));
        assert!(undone.is_err());
        assert_eq!(look(b"l"), Err(Errno::ECANCELED));
        Ok(())
    });
    assert_eq!(outcome, Err(Errno::ECANCELED));
}

/// Waits for what others do, which the process's calls do after some time.
fn after_a_while<'f>(
    file_system: &'f Plain,
    process: &'f Process,
    does: impl Fn() + 'f,
) -> impl Fn() -> plain::Call<'f> {
    let calls = Cell::new(0);
    move || {
        calls.set(calls.get() + 1);
        if calls.get() == 20 {
            does();
        }
        file_system.begin(process)
    }
}

fn unlink(file_system: &Plain, process: &Process, path: &[u8]) {
    names::unlink(&file_system.begin(process), at(), path).unwrap();
}

#[test]
fn who_retries_waits_until_something_changes() {
    let (file_system, process) = world();
    create(&file_system.begin(&process), b"lock").unwrap();
    let begin = after_a_while(&file_system, &process, || unlink(&file_system, &process, b"lock"));
    let mut attempts = 0;
    let outcome = Transactional::new(Sharing::Alone, begin).transaction(|t| {
        attempts += 1;
        create(&t.begin(), b"half")?;
        if exists(&t.begin(), b"lock") { Err(t.retry()) } else { create(&t.begin(), b"lock") }
    });
    assert_eq!((outcome, attempts), (Ok(()), 2));
    assert!(exists(&file_system.begin(&process), b"half") && exists(&file_system.begin(&process), b"lock"));
}

#[test]
fn or_else_takes_what_can_go_on_and_waits_for_either() {
    let (file_system, process) = world();
    for path in [b"one", b"two"] {
        create(&file_system.begin(&process), path).unwrap();
    }
    let begin = after_a_while(&file_system, &process, || unlink(&file_system, &process, b"two"));
    let fs = Transactional::new(Sharing::Alone, begin);
    let taken = fs.transaction(|t| {
        let take = |path: &'static [u8]| {
            create(&t.begin(), &[path, b".mine"].concat())?;
            if exists(&t.begin(), path) { Err(t.retry()) } else { Ok(path) }
        };
        t.or_else(|| take(b"one"), || take(b"two"))
    });
    assert_eq!(taken, Ok(&b"two"[..]));
    let call = file_system.begin(&process);
    assert!(exists(&call, b"two.mine") && !exists(&call, b"one.mine"));
}

#[test]
fn who_waits_for_nobody_is_told() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).waits(|round| round < 10);
    let only_oneself = fs.transaction(|t| {
        create(&t.begin(), b"f")?;
        let made = names::open(&t.begin(), at(), b"f", OpenFlags::READ, 0)?;
        names::close(&t.begin(), made.handle);
        Err::<(), _>(t.retry())
    });
    // It has seen that there is no `f`, so others could end it.
    assert_eq!(only_oneself, Err(Errno::EAGAIN));
    assert_eq!(fs.transaction(|t| Err::<(), _>(t.retry())), Err(Errno::EDEADLK));
    assert!(!exists(&file_system.begin(&process), b"f"));
}
