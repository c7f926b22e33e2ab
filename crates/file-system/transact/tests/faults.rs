//! Faults of transactions that were, each with what showed it: writes that run again for space, panics and waits that leave
//! something kept, wake-ups that count as failures.
//!
//! `RUSTFLAGS="--cfg fuzzing" cargo test --release -p transact --test faults` plants each of them, and it must be found.
#![cfg(not(any(loom, shuttle)))]

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use commit::Operation;
use olf::{Domain, Limits, Stop};
use percpu::OwnerId;
use plain::{Plain, Process};
use posix_calls::attributes::{self, Access};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{
    Credentials, DESCRIPTOR_LIMIT, DataOperations, Errno, Fields, Follow, ObjectOperations, OnExec, OpenFlags, Space,
    Start, names,
};
use scalefs::{FileSystem, InProcess, OwnedConfig, OwnedScaleFs};
use sync::Spin;
use transact::{
    Call, NoSuchSavepoint, Participant, Refused, Sharing, Transaction, Transactional, Transactions, WithData,
};

const PAGE: usize = 4096;
const AT: usize = 3 * PAGE;

/// One core, so that what a removal gives up comes back by maintenance alone.
fn files(page_count: u32, metadata_bytes: usize) -> FileSystem {
    let config = OwnedConfig { page_count, metadata_bytes, core_count: 1, ..OwnedConfig::default() };
    FileSystem::create(config).unwrap()
}

/// Lets the core look after itself.
fn maintain(files: &FileSystem) {
    (0..2000).for_each(|_| assert!(files.space().is_ok()));
}

fn by_page() -> Vec<u8> {
    (0..12 * PAGE).map(|at| (at / PAGE) as u8).collect()
}

/// A file of one page, 6 pages that are free at once, and 20 that become so with maintenance.
fn nearly_full() -> FileSystem {
    let files = files(60, 8 << 20);
    let root = files.root().unwrap();
    root.create("f").unwrap().write_all(&[9; PAGE]).unwrap();
    root.create("big").unwrap().write_all(&[1; 20 * PAGE]).unwrap();
    let mut fill = root.create("fill").unwrap();
    while files.space().unwrap().free_blocks > 6 {
        fill.write_all(&[2; PAGE]).unwrap();
    }
    root.remove_file("big").unwrap();
    files
}

fn content(files: &FileSystem, path: &str) -> Vec<u8> {
    let root = files.root().unwrap();
    let mut bytes = vec![0; root.metadata(path).unwrap().size_bytes as usize];
    assert_eq!(root.open(path).unwrap().read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

/// The first pages had gone into the file when space was looked for, and were appended once more.
fn an_append_that_waits_for_space_is_made_once() {
    let files = nearly_full();
    files.transaction(|t| t.append("f", by_page())).unwrap();
    assert!(content(&files, "f") == [vec![9; PAGE], by_page()].concat());
}

/// So it is with what is written elsewhere, and with a file that is new.
fn other_writes_that_wait_for_space_are_whole() {
    let files = nearly_full();
    files.transaction(|t| t.write_at("f", by_page(), AT as u64)).unwrap();
    assert!(content(&files, "f") == [vec![9; PAGE], vec![0; AT - PAGE], by_page()].concat());
    let files = nearly_full();
    files.transaction(|t| t.write("new", by_page())).unwrap();
    assert!(content(&files, "new") == by_page());
    let files = nearly_full();
    files.transaction(|t| t.write("f", by_page()).and_then(|()| t.append("f", "end"))).unwrap();
    assert!(content(&files, "f") == [&by_page()[..], b"end"].concat());
}

/// The commit needs memory for names that becomes free with maintenance, and finds it as a plain call does.
fn a_commit_waits_for_space() {
    /// Fewer than calls between two maintenances, and it takes some of these until memory is free.
    const NAMES: u32 = 16;
    let files = files(16, 2 << 20);
    let root = files.root().unwrap();
    root.create("f").unwrap();
    let full = (0..).find(|n| root.hard_link("f", format!("l{n}")).is_err()).unwrap();
    assert!(full > 1000, "{full}");
    let prepared = Rc::new(Cell::new(0));
    for round in 0..8 {
        let names = round * NAMES..(round + 1) * NAMES;
        names.clone().for_each(|n| root.remove_file(format!("l{n}")).unwrap());
        let made = files.transaction(|t| {
            t.take_part(Counts { prepared: prepared.clone(), ..Counts::default() });
            names.clone().try_for_each(|n| t.hard_link("f", format!("m{n}")))
        });
        assert!(made.is_ok(), "{made:?} in round {round}");
        assert_eq!(prepared.get(), round + 1, "each participant is prepared once");
    }
    // So it is with a plain call.
    (0..NAMES).for_each(|n| root.remove_file(format!("m{n}")).unwrap());
    (0..NAMES).for_each(|n| root.hard_link("f", format!("l{n}")).unwrap());
}

/// What is not found after all leaves nothing.
fn a_commit_without_space_leaves_nothing() {
    let files = files(16, 2 << 20);
    let root = files.root().unwrap();
    root.create("f").unwrap();
    let mut full = 0;
    while root.hard_link("f", format!("l{full}")).is_ok() {
        full += 1;
    }
    maintain(&files);
    let free = files.space().unwrap();
    for _ in 0..3 {
        let refused = files.transaction(|t| (0..200).try_for_each(|n| t.hard_link("f", format!("m{n}"))));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(Errno::ENOSPC.number()));
    }
    maintain(&files);
    let links = root.metadata("f").unwrap().link_count;
    assert_eq!((files.space().unwrap(), links), (free, full + 1));
}

/// Says what became of it, and panics where it is told to.
#[derive(Clone, Default)]
struct Counts {
    prepared: Rc<Cell<u32>>,
    committed: Rc<Cell<u32>>,
    aborted: Rc<Cell<u32>>,
    panics_in: Option<&'static str>,
}

impl Counts {
    fn note(&self, count: &Cell<u32>, place: &str) {
        count.set(count.get() + 1);
        assert!(self.panics_in != Some(place), "a fault of the participant's");
    }
}

impl Participant for Counts {
    fn prepare(&mut self) -> Result<(), Refused> {
        self.note(&self.prepared, "prepare");
        Ok(())
    }
    fn commit(&mut self) {
        self.note(&self.committed, "commit");
    }
    fn abort(&mut self) {
        self.note(&self.aborted, "abort");
    }
}

/// Nothing had told participants and closures that a transaction was over in whose commit one of them had panicked, and
/// all that it kept stayed: objects, pages, descriptors.
fn a_panic_in_a_commit_leaves_nothing() {
    let files = files(200, 8 << 20);
    let root = files.root().unwrap();
    root.create("old").unwrap().write_all(&[1; 10 * PAGE]).unwrap();
    maintain(&files);
    let free = files.space().unwrap();
    let (mut sound, undone) = (Counts::default(), Rc::new(Cell::new(0)));
    sound.panics_in = None;
    let rounds = 100;
    for round in 0..rounds {
        let broken = Counts { panics_in: Some("prepare"), ..Counts::default() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            files.transaction(|t| {
                t.write_at("old", [2; 10 * PAGE], 0)?;
                t.write(format!("new{round}"), [3; 5 * PAGE])?;
                let undone = undone.clone();
                t.on_abort(move || undone.set(undone.get() + 1));
                t.take_part(sound.clone());
                t.take_part(broken.clone());
                Ok(())
            })
        }));
        assert!(outcome.is_err() && broken.aborted.get() == 1 && broken.committed.get() == 0, "round {round}");
    }
    assert_eq!((sound.prepared.get(), sound.aborted.get(), undone.get()), (rounds, rounds, rounds));
    maintain(&files);
    assert_eq!(files.space().unwrap(), free);
    assert!(content(&files, "old") == [1; 10 * PAGE]);
    files.transaction(|t| t.write("old", "anew")).unwrap();
}

/// So it was with a process's own transactions.
fn a_panic_in_a_commit_leaves_nothing_of_any_base() {
    let (file_system, process) = world();
    let before = space(&file_system, &process);
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let (broken, undone) = (Counts { panics_in: Some("prepare"), ..Counts::default() }, Cell::new(0));
    for _ in 0..3 {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            fs.transaction(|t| {
                t.on_abort(|| undone.set(undone.get() + 1));
                t.take_part(broken.clone());
                create(&t.begin(), b"f")
            })
        }));
        assert!(outcome.is_err());
    }
    assert_eq!((broken.aborted.get(), undone.get(), space(&file_system, &process)), (3, 3, before));
}

/// Who stood behind it had not heard of the commit, and kept what it had prepared.
fn a_panic_at_the_end_is_one_participant_s_alone() {
    for (place, commits) in [("commit", true), ("abort", false)] {
        let files = files(16, 8 << 20);
        let (sound, told) = (Counts::default(), RefCell::new(Vec::new()));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            files.transaction(|t| {
                let told = &told;
                t.take_part(Counts { panics_in: Some(place), ..Counts::default() });
                t.take_part(sound.clone());
                t.on_commit(|| told.borrow_mut().push("commit"));
                t.on_abort(|| told.borrow_mut().push("abort"));
                t.create("f")?;
                if commits { Ok(()) } else { Err(Errno::EIO.into()) }
            })
        }));
        assert!(outcome.is_err());
        let heard = (sound.committed.get(), sound.aborted.get());
        assert_eq!((heard, told.into_inner()), (if commits { (1, 0) } else { (0, 1) }, vec![place]));
        assert_eq!(files.root().unwrap().metadata("f").is_ok(), commits);
    }
}

fn world() -> (Plain, Process) {
    let file_system = Plain::default();
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    (file_system, process)
}

fn space(file_system: &Plain, process: &Process) -> Space {
    attributes::space(&file_system.begin(process)).unwrap()
}

fn create<V: ObjectOperations>(call: &V, path: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    names::close(call, names::open(call, Start::WorkingDirectory, path, flags, 0o644)?.handle);
    Ok(())
}

fn exists<V: ObjectOperations>(call: &V, path: &[u8]) -> bool {
    attributes::access(call, Start::WorkingDirectory, path, Follow::Nothing, Access::EXISTS).is_ok()
}

/// After a hundred wake-ups it was told ECANCELED, though nothing had failed.
fn who_is_woken_has_not_failed() {
    let (file_system, process) = world();
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).attempts(1);
    let mut runs = 0;
    let outcome = fs.transaction(|t| {
        runs += 1;
        let name = format!("{runs}");
        assert!(!exists(&t.begin(), name.as_bytes()));
        // Others wake it at once, but what it waits for is not there yet.
        create(&file_system.begin(&process), name.as_bytes())?;
        if runs == 250 { Ok(()) } else { Err(t.retry()) }
    });
    // The last run has seen that its name is not there, and so it fails, once.
    assert_eq!((outcome, runs), (Err(Errno::ECANCELED), 250));
}

/// Who waits in vain, or whose wait panics, keeps nothing.
fn a_wait_that_ends_leaves_nothing() {
    let (file_system, process) = world();
    let before = space(&file_system, &process);
    let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process));
    let made_and_waits = |waits: fn(u32) -> bool| {
        let fs = Transactional::new(Sharing::Alone, || file_system.begin(&process)).waits(waits);
        let wait = || fs.transaction(|t| create(&t.begin(), b"f").and_then(|()| Err::<(), _>(t.retry())));
        catch_unwind(AssertUnwindSafe(wait))
    };
    for _ in 0..3 {
        assert_eq!(made_and_waits(|_| false).unwrap(), Err(Errno::EAGAIN));
        assert!(made_and_waits(|_| panic!("a fault of the program's")).is_err());
    }
    assert_eq!(space(&file_system, &process), before);
    fs.transaction(|t| create(&t.begin(), b"f")).unwrap();
}

/// A process on a core of an instance.
fn with_process(metadata_bytes: usize, check: impl for<'c> FnOnce(&'c dyn Fn() -> InProcess<'c, Spin>)) {
    let config = OwnedConfig { metadata_bytes, page_count: 64, core_count: 1, ..OwnedConfig::default() };
    let instance = OwnedScaleFs::create(config).unwrap();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let process = scalefs::Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
    check(&|| instance.file_system().enter(&core, &process, &Spin));
    process.exit(instance.file_system(), &core, &Spin);
}

fn open(call: &impl DataOperations, path: &[u8]) -> u32 {
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    data::open(call, Start::WorkingDirectory, path, flags, 0o600, DescriptorOptions::PLAIN).unwrap()
}

fn number(call: &impl DataOperations, fd: u32) -> Result<u64, Errno> {
    data::stat(call, fd, Fields::ALL).map(|status| status.number.0)
}

/// It had succeeded and was not there: on its way to its place a descriptor first went to a number behind all others.
fn a_descriptor_comes_to_the_last_number() {
    const LAST: u32 = DESCRIPTOR_LIMIT - 1;
    with_process(8 << 20, |call| {
        let (f, g) = (open(&call(), b"f"), open(&call(), b"g"));
        let (of_f, of_g) = (number(&call(), f).unwrap(), number(&call(), g).unwrap());
        let fs = Transactional::new(Sharing::Shared, || WithData(call()));
        let duplicate = |from, to| fs.transaction(|t| data::duplicate_to(&t.begin(), from, to, OnExec::Keep));
        // Where nothing is, over what is open there, and where only that is free.
        for target in [5, LAST - 1, LAST] {
            assert_eq!((duplicate(f, target), number(&call(), target)), (Ok(target), Ok(of_f)), "{target}");
            assert_eq!((duplicate(g, target), number(&call(), target)), (Ok(target), Ok(of_g)), "{target}");
        }
        // Many at once, in whose middle another leaves.
        let outcome = fs.transaction(|t| {
            let both = |from, to| data::duplicate_to(&t.begin(), from, to, OnExec::Keep);
            both(f, LAST)?;
            both(g, LAST - 1)?;
            data::close(&t.begin(), 5)?;
            both(LAST, f)?;
            both(LAST - 1, LAST)?;
            both(f, g)
        });
        let seen = [f, g, 5, LAST - 1, LAST].map(|fd| number(&call(), fd));
        assert_eq!((outcome, seen), (Ok(g), [Ok(of_f), Ok(of_f), Err(Errno::EBADF), Ok(of_g), Ok(of_g)]));
        [f, g, LAST - 1, LAST].into_iter().for_each(|fd| data::close(&call(), fd).unwrap());
        // Nothing else is open.
        assert_eq!((open(&call(), b"f"), open(&call(), b"g"), open(&call(), b"h")), (0, 1, 2));
    });
}

/// Who had never committed before memory was full was refused every commit from then on, for want of a note.
fn names_are_removed_together_where_memory_is_full() {
    with_process(2 << 20, |call| {
        let (at, objects) = (|| Start::WorkingDirectory, || call());
        data::close(&call(), open(&call(), b"f")).unwrap();
        let link =
            |n: u32| names::link(objects().objects(), (at(), b"f"), (at(), format!("{n}").as_bytes()), Follow::Nothing);
        let full = (0..).find(|n| link(*n) == Err(Errno::ENOSPC)).unwrap();
        assert!(full > 1000, "{full}");
        let fs = Transactional::new(Sharing::Shared, || WithData(call()));
        for number in (0..full).step_by(10) {
            let remove = |n: u32| names::unlink(objects().objects(), at(), format!("{n}").as_bytes());
            let together = fs.transaction(|t| {
                (number..full.min(number + 10))
                    .try_for_each(|n| names::unlink(&t.begin(), Start::WorkingDirectory, format!("{n}").as_bytes()))
            });
            assert_eq!(together, Ok(()), "from {number} on");
            assert_eq!(remove(number), Err(Errno::ENOENT));
        }
    });
}

/// The commit panicked, in the middle of another transaction's names.
fn a_savepoint_of_another_transaction_is_refused() {
    let (file_system, process) = world();
    let call = || file_system.begin(&process);
    let [one, two] = [0; 2].map(|_| Transaction::begin(&call(), Sharing::Alone).unwrap());
    create(&Call::new(call(), &one), b"of-one").unwrap();
    create(&Call::new(call(), &two), b"of-two").unwrap();
    let (first, outer) = (one.savepoint(), two.savepoint());
    create(&Call::new(call(), &two), b"undone").unwrap();
    let undone = two.savepoint();
    assert_eq!(two.go_back(first), Err(NoSuchSavepoint));
    assert_eq!(two.go_back(outer), Ok(()));
    // It is of what there is no more.
    assert_eq!(two.go_back(undone), Err(NoSuchSavepoint));
    two.commit(&call()).unwrap();
    one.abort(&call()).unwrap();
    let there = [&b"of-one"[..], b"of-two", b"undone"].map(|path| exists(&call(), path));
    assert_eq!(there, [false, true, false]);
}

/// Makes a call of the file system at each thing that it is asked to do, and notes what came of it.
struct Calls<'f> {
    files: &'f FileSystem,
    told: &'f RefCell<Vec<(&'static str, Option<i32>)>>,
}

impl Calls<'_> {
    fn call(&self, when: &'static str) {
        let seen = self.files.root().and_then(|root| root.metadata("f"));
        self.told.borrow_mut().push((when, seen.err().and_then(|error| error.raw_os_error())));
    }
}

impl Participant for Calls<'_> {
    fn prepare(&mut self) -> Result<(), Refused> {
        self.call("prepare");
        Ok(())
    }
    fn mark(&mut self, _: Option<&Operation<'_>>) -> Result<(), Refused> {
        self.call("mark");
        Ok(())
    }
    fn unmark(&mut self, _: bool) {
        self.call("unmark");
    }
    fn opened(&mut self) {
        self.call("opened");
    }
    fn commit(&mut self) {
        self.call("commit");
    }
    fn abort(&mut self) {
        self.call("abort");
    }
}

/// Once the commit was decided a participant's call was made, while names were still locked: one that changed a name beside
/// them waited for its own thread. Now it is refused until all is done, and sees then what has happened.
fn a_participant_that_calls_the_file_system_is_refused_until_the_end() {
    let (files, told) = (files(200, 8 << 20), RefCell::new(Vec::new()));
    let run = |happens: bool| {
        told.borrow_mut().clear();
        let outcome = files.transaction(|t| {
            t.take_part(Calls { files: &files, told: &told });
            t.create("f")?;
            if happens { Ok(()) } else { Err(Errno::EIO.into()) }
        });
        assert_eq!(outcome.is_ok(), happens);
        told.borrow().clone()
    };
    assert_eq!(run(false), [("abort", Some(Errno::ENOENT.number()))]);
    let deadlock = Some(Errno::EDEADLK.number());
    let [within @ .., end] = &run(true)[..] else { panic!("it heard of nothing") };
    assert_eq!(within, ["prepare", "mark", "opened", "unmark"].map(|when| (when, deadlock)));
    assert_eq!(*end, ("commit", None));
}

/// A closure of lists runs again where its words have changed; what a call has done would be done twice.
fn a_call_inside_of_a_closure_is_refused() {
    let files = files(200, 8 << 20);
    let domain = Domain::with(Limits { threads: 1, lists: 1 }).unwrap();
    let here = domain.enter().unwrap();
    let refused = here.atomically(|_| Ok::<_, Stop>(files.root().err())).unwrap();
    let line = "expected no call of the file system inside `atomically`, which may run again; begin a transaction outside, in \
                which lists take part";
    assert_eq!(refused.expect("no call is made").to_string(), line);
    assert!(files.root().is_ok(), "outside");
    let torn = catch_unwind(AssertUnwindSafe(|| here.atomically(|_| -> Result<(), Stop> { panic!("in it") })));
    assert!(torn.is_err() && files.root().is_ok(), "after a panic");
}

/// By fault, in the words of docs/notes/planted-faults.md, its test.
type Shown = (&'static str, fn());
const SHOWN: [Shown; 14] = [
    ("transact: what finds space later is written from its start", an_append_that_waits_for_space_is_made_once),
    ("", other_writes_that_wait_for_space_are_whole),
    ("transact: a commit looks for space once", a_commit_waits_for_space),
    ("", a_commit_without_space_leaves_nothing),
    ("transact: what a panic or a wait has ended stays kept", a_panic_in_a_commit_leaves_nothing),
    ("transact: what a panic or a wait has ended stays kept", a_panic_in_a_commit_leaves_nothing_of_any_base),
    ("transact: after a panic at the end the others do not hear of it", a_panic_at_the_end_is_one_participant_s_alone),
    ("transact: who was woken has run in vain", who_is_woken_has_not_failed),
    ("transact: what a panic or a wait has ended stays kept", a_wait_that_ends_leaves_nothing),
    ("", a_descriptor_comes_to_the_last_number),
    ("scalefs: each block of notes is allocated", names_are_removed_together_where_memory_is_full),
    ("transact: any savepoint will do", a_savepoint_of_another_transaction_is_refused),
    ("scalefs: calls in closures that run again are made", a_call_inside_of_a_closure_is_refused),
    ("scalefs: what is decided is done", a_participant_that_calls_the_file_system_is_refused_until_the_end),
];

#[test]
fn none_shows() {
    for (fault, shown) in SHOWN {
        println!("{fault}");
        shown();
    }
}

#[cfg(fuzzing)]
#[test]
fn each_is_found_where_it_is_planted() {
    for (fault, shown) in SHOWN.into_iter().filter(|(fault, _)| !fault.is_empty()) {
        sync::mutant::must_be_caught(fault, shown);
    }
}
