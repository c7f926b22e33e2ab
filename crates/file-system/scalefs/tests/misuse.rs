//! What safe code cannot do to an instance: refused by the compiler, or by an assertion that stays in release builds.
#![cfg(not(any(loom, shuttle, tsan, asan)))]

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::World;
#[cfg(debug_assertions)]
use scalefs::ObjectOperations;
use scalefs::{
    Context, Credentials, Errno, Follow, OpenFlags, OwnedConfig, OwnedScaleFs, Process, ScaleFs, ScaleFsConfig, Start,
    names,
};
use sync::Spin;

#[test]
fn the_compiler_refuses_what_would_corrupt_memory() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/misuse/right_use.rs");
    cases.compile_fail("tests/misuse/refused/*.rs");
}

const SMALL: OwnedConfig = OwnedConfig { metadata_bytes: 16 << 20, page_count: 64, core_count: 2, hash_seed: 1 };

fn owned() -> OwnedScaleFs {
    OwnedScaleFs::create(SMALL).unwrap()
}

fn owner() -> percpu::OwnerId {
    percpu::OwnerId::new(1).unwrap()
}

fn context(instance: &OwnedScaleFs) -> Context {
    Context::new(instance.file_system(), &instance.claim(0, owner()).unwrap(), Credentials::SUPERUSER)
}

#[test]
#[should_panic = "a process of another file system"]
fn a_context_is_not_used_with_another_instance() {
    let (one, other) = (owned(), owned());
    let context = context(&one);
    let core = other.claim(0, owner()).unwrap();
    other.file_system().begin(&core, &context, &Spin);
}

#[test]
fn a_context_is_not_used_with_an_instance_at_the_same_address() {
    let mut stale = Vec::new();
    let mut at_the_same_address = 0;
    for _ in 0..16 {
        let instance = owned();
        let address = std::ptr::from_ref(instance.file_system()).addr();
        let core = instance.claim(0, owner()).unwrap();
        for (old, context) in &stale {
            at_the_same_address += usize::from(*old == address);
            let begun = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                drop(instance.file_system().begin(&core, context, &Spin));
            }));
            assert!(begun.is_err(), "a context of an instance that is gone was taken");
        }
        drop(core);
        stale.push((address, context(&instance)));
    }
    assert!(at_the_same_address > 0, "no memory was used again: the test has shown nothing");
}

#[test]
#[should_panic = "a process of another file system"]
fn a_process_does_not_exit_into_another_instance() {
    let (one, other) = (owned(), owned());
    let process = Process::new(one.file_system(), &one.claim(0, owner()).unwrap(), Credentials::SUPERUSER).unwrap();
    process.exit(other.file_system(), &other.claim(0, owner()).unwrap(), &Spin);
}

#[test]
#[should_panic = "the core belongs to another arena"]
fn a_core_of_another_arena_makes_no_calls() {
    let (one, other) = (owned(), owned());
    let context = context(&one);
    let core = other.claim(0, owner()).unwrap();
    one.file_system().begin(&core, &context, &Spin);
}

#[test]
#[should_panic = "an open object of another file system"]
fn an_open_object_is_not_closed_in_another_instance() {
    let (one, other) = (owned(), owned());
    let contexts = [context(&one), context(&other)];
    let cores = [one.claim(0, owner()).unwrap(), other.claim(0, owner()).unwrap()];
    let opened = names::open(
        &one.file_system().begin(&cores[0], &contexts[0], &Spin),
        Start::WorkingDirectory,
        b"a",
        OpenFlags::CREATE,
        0o600,
    );
    names::close(&other.file_system().begin(&cores[1], &contexts[1], &Spin), opened.unwrap().handle);
}

/// Debug builds alone look.
#[test]
#[cfg(debug_assertions)]
#[should_panic = "an object of another file system"]
fn what_a_call_lends_is_not_handed_to_another_instance() {
    let (one, other) = (owned(), owned());
    let contexts = [context(&one), context(&other)];
    let cores = [one.claim(0, owner()).unwrap(), other.claim(0, owner()).unwrap()];
    let there = other.file_system().begin(&cores[1], &contexts[1], &Spin);
    let _ = one.file_system().begin(&cores[0], &contexts[0], &Spin).set_working_directory(there.root());
}

#[test]
#[should_panic = "pages of another arena"]
fn an_instance_has_pages_of_its_own_arena() {
    let (here, there) = (World::new(1), World::new(1));
    // SAFETY: it has no page, so nothing is read or written there.
    let pool = unsafe { PagePool::create(&there, NonNull::new(PAGE_BYTES as *mut u8).unwrap(), 0) }.unwrap();
    let _ = ScaleFs::create_with_pages(&here.core(0), pool, ScaleFsConfig::default());
}

#[test]
fn what_may_be_of_another_instance_is_refused_with_a_reason() {
    let (one, other) = (owned(), owned());
    let (here, there) = (one.claim(0, owner()).unwrap(), other.claim(0, owner()).unwrap());
    let (fs, host) = (one.file_system(), Spin);
    let [mine, theirs] = [(fs, &here), (other.file_system(), &there)]
        .map(|(fs, core)| Process::new(fs, core, Credentials::SUPERUSER).unwrap());
    let why = |core, process: &Process| {
        let entered = fs.try_enter(core, process, &host).map(drop).map_err(|error| error.to_string());
        assert_eq!(entered, fs.try_begin(core, process.context(), &host).map(drop).map_err(|error| error.to_string()));
        entered.err().unwrap_or_default()
    };
    assert_eq!(why(&here, &mine), "");
    assert!(why(&here, &theirs).starts_with("the process is of another file system"));
    assert!(why(&there, &mine).starts_with("the core is of another file system"));
    assert!(mine.is_of(fs) && !theirs.is_of(fs) && !theirs.context().is_of(fs));
    // Nothing has happened: each goes on in its own.
    let opened = names::open(
        &fs.try_begin(&here, mine.context(), &host).unwrap(),
        Start::WorkingDirectory,
        b"a",
        OpenFlags::CREATE,
        0o600,
    );
    let handle = opened.unwrap().handle;
    assert!(handle.is_of(fs) && !handle.is_of(other.file_system()));
    names::close(&fs.begin(&here, mine.context(), &host), handle);
    mine.exit(fs, &here, &host);
    theirs.exit(other.file_system(), &there, &host);
}

#[test]
fn the_root_stays_whoever_leaves_it() {
    let world = World::new(1);
    let core = world.core(0);
    let fs = ScaleFs::create(&core, ScaleFsConfig { root_bucket_count: 4, ..ScaleFsConfig::default() }).unwrap();
    for _ in 0..100 {
        Context::new(fs, &core, Credentials::SUPERUSER).leave(fs, &core);
        fs.maintain(&core, &Spin);
    }
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let call = || fs.begin(&core, process.context(), &Spin);
    scalefs::directories::make_directory(&call(), Start::WorkingDirectory, b"d", 0o755).unwrap();
    let again = names::link(&call(), (Start::WorkingDirectory, b"d"), (Start::WorkingDirectory, b"e"), Follow::Nothing);
    assert_eq!(again, Err(Errno::EPERM));
    process.exit(fs, &core, &Spin);
}
