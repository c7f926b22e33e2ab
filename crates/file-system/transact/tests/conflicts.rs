//! What a transaction rests on and what it does not: looks in passing, and what it says of others' changes.
#![cfg(not(any(loom, shuttle)))]

use posix_calls::names;
use posix_calls::{Decision, Errno, Fields, Follow, OpenFlags, Start, attributes};
use scalefs::{FileSystem, InProcess, OpenNode, Outside, OwnedConfig};
use transact::{Call, Conflict, Fault, Subject, Transaction, WithData, begin};

type InTransaction<'t, 'c> = Call<'t, WithData<InProcess<'c, Outside>>>;

const HERE: Start<transact::Node<'static>> = Start::WorkingDirectory;

fn files() -> FileSystem {
    let files = FileSystem::create(OwnedConfig { core_count: 2, ..OwnedConfig::default() }).expect("there is memory");
    let root = files.root().expect("it is there");
    for name in ["letter", "lock"] {
        root.create(name).expect("there is room");
    }
    files
}

fn call<T>(
    files: &FileSystem,
    transaction: &Transaction<OpenNode>,
    body: impl Fn(&InTransaction<'_, '_>) -> Result<T, Errno>,
) -> T {
    files.act(|base| body(&Call::new(WithData(base), transaction))).expect("it can be done")
}

fn make(call: &InTransaction<'_, '_>) -> Result<(), Errno> {
    let opened = names::open(call, HERE, b"new", OpenFlags::CREATE | OpenFlags::WRITE, 0o600)?;
    names::close(call, opened.handle);
    Ok(())
}

fn look(call: &InTransaction<'_, '_>) -> Result<u64, Errno> {
    let seen = attributes::stat(call, HERE, b"letter", Follow::Nothing, Fields::ALL)?;
    Ok(seen.size_bytes)
}

/// Tries to commit; what conflicts if it cannot.
fn attempt(files: &FileSystem, mut transaction: Transaction<OpenNode>) -> Result<(), Vec<Conflict>> {
    let mut outcome = Ok(());
    files
        .act(|base| {
            let base = WithData(base);
            outcome = match transaction.attempt(&base) {
                Ok(()) => Ok(()),
                Err(Fault::Stale) => Err(transaction.conflicts(&base)),
                Err(fault) => panic!("{fault:?}"),
            };
            Ok(())
        })
        .expect("it is this process's");
    let decision = if outcome.is_ok() { Decision::Commit } else { Decision::Abort };
    let lease = files.begin().expect("it is this process's");
    transaction.close(&WithData(lease.calls()), decision);
    outcome
}

fn has_new(files: &FileSystem) -> bool {
    files.root().expect("it is there").metadata("new").is_ok()
}

fn others_write(files: &FileSystem) {
    let letter = files.root().and_then(|root| root.create("letter")).expect("it is there");
    assert_eq!(letter.write_at(b"Dear Bob", 0).expect("there is room"), 8);
}

#[test]
fn what_was_seen_in_passing_may_change() {
    let files = files();
    let transaction = begin(&files).expect("it is this process's");
    assert_eq!(call(&files, &transaction, |call| call.in_passing(look)), 0);
    call(&files, &transaction, make);
    others_write(&files);
    // And is what it is by then.
    assert_eq!(call(&files, &transaction, |call| call.in_passing(look)), 8);
    assert_eq!(attempt(&files, transaction), Ok(()));
    assert!(has_new(&files));
}

#[test]
fn what_was_asked_for_may_not_and_is_named_once() {
    let files = files();
    let transaction = begin(&files).expect("it is this process's");
    // What comes after a look in passing is kept.
    call(&files, &transaction, |call| call.in_passing(look));
    call(&files, &transaction, look);
    call(&files, &transaction, make);
    let letter = call(&files, &transaction, |call| {
        attributes::stat(call, HERE, b"letter", Follow::Nothing, Fields::IDENTITY).map(|seen| seen.number)
    });
    others_write(&files);
    let conflicts = attempt(&files, transaction).expect_err("others have changed it");
    assert_eq!(conflicts, [Conflict { object: letter, about: Subject::Status }]);
    assert!(!has_new(&files));
}

#[test]
fn a_name_is_named() {
    let files = files();
    let transaction = begin(&files).expect("it is this process's");
    call(&files, &transaction, |call| {
        let seen = attributes::access(call, HERE, b"absent", Follow::Nothing, attributes::Access::EXISTS);
        assert_eq!(seen, Err(Errno::ENOENT));
        Ok(())
    });
    call(&files, &transaction, make);
    files.root().expect("it is there").create("absent").expect("there is room");
    let conflicts = attempt(&files, transaction).expect_err("others have made it");
    assert!(matches!(&conflicts[..], [Conflict { about: Subject::Name(name), .. }] if &name[..] == b"absent"));
}
