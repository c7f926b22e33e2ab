//! Data in transactions on ScaleFS: the calls give what they give outside, whatever parts a program is cut into, also beside
//! others.
#![cfg(not(any(loom, shuttle)))]

mod data_calls;

use percpu::{Core, OwnerId};
use posix_calls::data::{self, Whence};
use posix_calls::{Credentials, Errno, Fields, NumberChoice, OpenFlags, StatusFlags};
use proptest::prelude::*;
use scalefs::{InProcess, OwnedConfig, OwnedScaleFs, Process};
use sync::Spin;
use transact::{Sharing, Transactional, WithData};

use data_calls::{Call, groups, make_both, perform, prepare, seen};

const BOTH: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE).union(OpenFlags::CREATE);

fn open(path: &'static str) -> Call {
    Call::Open(path, BOTH, StatusFlags::NONE, NumberChoice::LowestFrom(0))
}

/// A process on a core of an instance.
struct User<'i> {
    instance: &'i OwnedScaleFs,
    core: Core<'i>,
    process: Process,
}

impl<'i> User<'i> {
    fn new(instance: &'i OwnedScaleFs, core: usize) -> User<'i> {
        let core = instance.claim(core, OwnerId::new(1).unwrap()).unwrap();
        let process = Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
        User { instance, core, process }
    }

    fn enter(&self) -> InProcess<'_, Spin> {
        self.instance.file_system().enter(&self.core, &self.process, &Spin)
    }

    fn make(&self, call: &Call) -> Result<String, Errno> {
        perform(&self.enter(), call)
    }
}

fn instance() -> OwnedScaleFs {
    let small = OwnedConfig { metadata_bytes: 8 << 20, page_count: 256, core_count: 2, ..OwnedConfig::default() };
    OwnedScaleFs::create(small).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_transactions_give_what_they_give_outside(groups in groups()) {
        let (together, one_by_one) = (instance(), instance());
        let (together, one_by_one) = (User::new(&together, 0), User::new(&one_by_one, 0));
        prepare(|call| together.make(call));
        prepare(|call| one_by_one.make(call));
        let fs = Transactional::new(Sharing::Shared, || WithData(together.enter()));
        for group in groups {
            let [told, expected] = make_both(&fs, &group, |call| one_by_one.make(call));
            prop_assert_eq!(told, expected);
            prop_assert_eq!(seen(|call| together.make(call)), seen(|call| one_by_one.make(call)));
        }
    }
}

/// The base had given a number away that it did not know to be used in the transaction.
#[test]
fn a_number_that_the_transaction_uses_is_free_to_nobody() {
    let calls = [Call::DuplicateTo(0, 5), Call::Duplicate(0, 5), Call::DuplicateTo(0, 4), open("n")];
    let (together, one_by_one) = (instance(), instance());
    let (together, one_by_one) = (User::new(&together, 0), User::new(&one_by_one, 0));
    prepare(|call| together.make(call));
    prepare(|call| one_by_one.make(call));
    let fs = Transactional::new(Sharing::Shared, || WithData(together.enter()));
    let told = fs.transaction(|t| Ok(calls.iter().map(|call| perform(&t.begin(), call)).collect::<Vec<_>>()));
    assert_eq!(told, Ok(calls.iter().map(|call| one_by_one.make(call)).collect()));
    assert_eq!(seen(|call| together.make(call)), seen(|call| one_by_one.make(call)));
}

/// It had none until its first name, as files have, and a pipe gets no name.
#[test]
fn a_pipe_has_one_link_in_the_transaction_that_made_it() {
    let instance = instance();
    let user = User::new(&instance, 0);
    let fs = Transactional::new(Sharing::Shared, || WithData(user.enter()));
    let link_counts = fs.transaction(|t| {
        let (read, _) = data::pipe(&t.begin(), data::DescriptorOptions::PLAIN)?;
        Ok([Fields::LINK_COUNT, Fields::ALL]
            .map(|fields| data::stat(&t.begin(), read, fields).map(|seen| seen.link_count)))
    });
    assert_eq!(link_counts, Ok([Ok(1), Ok(1)]));
}

#[test]
fn files_of_others_change_with_names() {
    let instance = instance();
    let (user, stranger) = (User::new(&instance, 0), User::new(&instance, 1));
    let outside = |call: &Call| stranger.make(call);
    outside(&open("f")).unwrap();
    outside(&Call::WriteAt(0, 5_000, 7, 0)).unwrap();
    let transactional = Transactional::new(Sharing::Shared, || WithData(user.enter()));
    let mut attempts = 0;
    let copied = transactional.transaction(|t| {
        attempts += 1;
        let make = |call: &Call| perform(&t.begin(), call);
        make(&open("f"))?;
        make(&Call::WriteAt(0, 10, 1, 0))?;
        let seen = make(&Call::Read(0, 9_000))?;
        make(&open("n"))?;
        make(&Call::Write(1, 5_000, attempts))?;
        make(&Call::Rename("n", "g"))?;
        make(&Call::WriteAt(0, 10, 2, 9_000))?;
        if attempts == 1 {
            outside(&Call::WriteAt(0, 1, 8, 4_999)).unwrap();
        }
        assert_eq!(outside(&Call::Size("g")), Err(Errno::ENOENT));
        assert_ne!(outside(&Call::ReadAt(0, 10, 0)).as_deref(), Ok("10x1 "));
        Ok(seen)
    });
    assert_eq!((copied.as_deref(), attempts), (Ok("10x1 4989x7 1x8 "), 2));
    assert_eq!(user.make(&Call::Seek(0, 0, Whence::Current)).as_deref(), Ok("5000"), "the offset has moved");
    assert_eq!(user.make(&Call::ReadAt(1, 9_000, 0)).as_deref(), Ok("5000x2 "), "the descriptor stays open");
    assert_eq!(outside(&Call::Size("g")).as_deref(), Ok("5000 1"));
    assert_eq!(outside(&Call::ReadAt(0, 20_000, 0)).as_deref(), Ok("10x1 4989x7 1x8 4000x0 10x2 "));
    let failed = transactional.transaction(|t| {
        perform(&t.begin(), &open("h"))?;
        perform(&t.begin(), &Call::Write(2, 5_000, 1))?;
        perform(&t.begin(), &Call::WriteAt(0, 9_000, 3, 0))?;
        perform(&t.begin(), &Call::Truncate(0, 10))?;
        perform(&t.begin(), &Call::Close(0))?;
        Err::<(), _>(Errno::EIO)
    });
    assert_eq!(failed, Err(Errno::EIO));
    assert_eq!(user.make(&Call::Read(2, 1)), Err(Errno::EBADF));
    assert_eq!(user.make(&Call::Seek(0, 0, Whence::Current)).as_deref(), Ok("5000"));
    assert_eq!(outside(&Call::ReadAt(0, 20_000, 0)).as_deref(), Ok("10x1 4989x7 1x8 4000x0 10x2 "));
}

#[test]
fn space_that_lacks_is_told_by_the_call() {
    let instance = instance();
    let user = User::new(&instance, 0);
    user.make(&open("f")).unwrap();
    let transactional = Transactional::new(Sharing::Shared, || WithData(user.enter()));
    let outcome = transactional.transaction(|t| {
        for page in 0.. {
            perform(&t.begin(), &Call::WriteAt(0, 4096, 1, 4096 * page))?;
        }
        Ok(())
    });
    assert_eq!(outcome, Err(Errno::ENOSPC));
    assert_eq!(user.make(&Call::Size("f")).as_deref(), Ok("0 1"));
    // All of it is free again.
    user.make(&Call::WriteAt(0, 5_000, 1, 0)).unwrap();
    transactional.transaction(|t| perform(&t.begin(), &Call::WriteAt(0, 10, 2, 4_090))).unwrap();
    assert_eq!(user.make(&Call::ReadAt(0, 9_000, 0)).as_deref(), Ok("4090x1 10x2 900x1 "));
}
