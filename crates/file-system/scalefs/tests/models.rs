//! What the file system adds to its structures, by two cores, in both spawn orders: directories that move under each other,
//! the ring of a pipe, the last descriptors of its end, marks of descriptors, and the budget of inodes.
//! `RUSTFLAGS="--cfg loom" cargo test -p scalefs --release --test models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use std::ptr::NonNull;

use pages::{PAGE_BYTES, PagePool};
use percpu::model::ModelArena;
use percpu::{Core, HeapRegion};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, OpenFlags, RenameMode};
use scalefs::{Context, Credentials, Errno, OnExec, Process, ScaleFs, ScaleFsConfig, Start, directories};
use sync::Spin;

/// In one execution. All models of this file take about half a minute of computing so.
const PREEMPTIONS: usize = 3;

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;

/// `rename(d, e/d)` against `rename(e, d/e)`: one of them at most, or both directories would hang from nothing.
fn no_directory_gets_under_itself(a_first: bool) {
    let model = ModelArena::new(2, 1 << 20);
    let core = model.core(0);
    let config = ScaleFsConfig {
        hash_seed: 1,
        root_bucket_count: 1,
        directory_bucket_count: 1,
        count_slots_per_core: 16,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&core, config).unwrap();
    // SAFETY: the instance lies in the model's arena, which outlives all threads of this execution.
    let fs: &'static ScaleFs = unsafe { &*std::ptr::from_ref(fs) };
    let contexts = [0, 1].map(|_| Context::new(fs, &core, Credentials::SUPERUSER));
    for name in [b"d", b"e"] {
        directories::make_directory(&fs.begin(&core, &contexts[0], &Spin), AT, name, 0o755).unwrap();
    }
    drop(core);
    let moved = Arc::new(AtomicU64::new(0));
    let role = |number: usize, from: &'static [u8], to: &'static [u8], context: Context| {
        let (core, moved) = (model.core(number), Arc::clone(&moved));
        move || {
            let call = fs.begin(&core, &context, &Spin);
            match names::rename(&call, (AT, from), (AT, to), RenameMode::Replace) {
                Ok(()) => moved.fetch_add(1, Ordering::Relaxed),
                // The other one has moved: its target is below us, or its old name is gone.
                Err(Errno::EINVAL | Errno::ENOENT) => 0,
                Err(errno) => panic!("{errno}"),
            };
        }
    };
    let [first, second] = contexts;
    let (a, b) = (role(0, b"d", b"e/d", first), role(1, b"e", b"d/e", second));
    sync::model::both(a_first, a, b);
    assert_eq!(moved.load(Ordering::Relaxed), 1, "both moved, or neither");
}

#[test]
fn moves() {
    for first in [false, true] {
        sync::model::explore(PREEMPTIONS, 20, move || no_directory_gets_under_itself(first));
        let moves = move || no_directory_gets_under_itself(first);
        sync::model::must_catch("scalefs: moves do not see each other", 1, moves);
        sync::model::must_catch_reordering("scalefs: a mark that is gone does not bring the parent", 1, moves);
    }
}

const PAGES: usize = 4;
const PLAIN: DescriptorOptions = DescriptorOptions::PLAIN;

thread_local! {
    /// Memory for the pages of one instance. Tests run at the same time, each on a thread that explores its executions.
    static PAGE_MEMORY: NonNull<u8> = {
        let region = Box::leak(Box::new(HeapRegion::new((PAGES + 1) * PAGE_BYTES).unwrap()));
        NonNull::new(region.as_mut_ptr()).unwrap()
    };
}

/// An instance with a few pages, which hold what they held in the execution before.
fn small_instance(model: &ModelArena, inode_limit: u64) -> &'static ScaleFs {
    let core = model.core(0);
    // SAFETY: one execution of a thread runs at a time, and an instance's pages are its own.
    let pool = unsafe { PagePool::create(model.arena(), PAGE_MEMORY.with(|memory| *memory), PAGES as u32) };
    let config = ScaleFsConfig {
        // By this seed no two counts of these models meet in a slot; where they do, executions are many times as many.
        hash_seed: 2,
        root_bucket_count: 4,
        inode_limit,
        count_slots_per_core: 16,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create_with_pages(&core, pool.unwrap(), config).unwrap();
    // SAFETY: the instance lies in the model's arena, which outlives all threads of this execution.
    unsafe { &*std::ptr::from_ref(fs) }
}

/// Runs two roles, each on its core, the one or the other spawned first; returns what they return.
fn together<A: Send + 'static, B: Send + 'static>(
    model: &ModelArena,
    a_first: bool,
    a: impl FnOnce(Core<'static>) -> A + Send + 'static,
    b: impl FnOnce(Core<'static>) -> B + Send + 'static,
) -> (A, B) {
    let (zero, one) = (model.core(0), model.core(1));
    sync::model::both(a_first, move || a(zero), move || b(one))
}

/// A fault that shows only where a processor reorders accesses.
fn reordered(mutant: &'static str, model: fn(bool)) {
    for first in [false, true] {
        sync::model::must_catch_reordering(mutant, PREEMPTIONS, move || model(first));
    }
}

fn explored(least: usize, mutants: &[&'static str], model: fn(bool)) {
    for first in [false, true] {
        sync::model::explore(PREEMPTIONS, least, move || model(first));
        for mutant in mutants {
            sync::model::must_catch(mutant, PREEMPTIONS, move || model(first));
        }
    }
}

/// One byte waits; one more is written while one is read. What comes out is what went in, in its order.
fn a_ring_keeps_bytes(starts_empty: bool, a_first: bool) {
    let model = ModelArena::new(2, 1 << 20);
    let fs = small_instance(&model, 8);
    let core = model.core(0);
    let process = Arc::new(Process::new(fs, &core, Credentials::SUPERUSER).unwrap());
    let verbs = fs.enter(&core, &process, &Spin);
    let (reader, writer) = data::pipe(&verbs, PLAIN).unwrap();
    let before: &[u8] = if starts_empty { b"" } else { b"1" };
    assert_eq!(data::write(&verbs, writer, before), Ok(before.len()));
    drop(verbs);
    drop(core);
    let (for_writer, for_reader) = (Arc::clone(&process), Arc::clone(&process));
    let (_, mut seen) = together(
        &model,
        a_first,
        move |core| assert_eq!(data::write(&fs.enter(&core, &for_writer, &Spin), writer, b"2"), Ok(1)),
        move |core| {
            let mut byte = [0];
            match data::read(&fs.enter(&core, &for_reader, &Spin), reader, &mut byte) {
                Ok(1) => byte.to_vec(),
                Err(Errno::EAGAIN) => vec![],
                other => panic!("{other:?}"),
            }
        },
    );
    let core = model.core(0);
    let verbs = fs.enter(&core, &process, &Spin);
    let mut rest = [0; 4];
    if let Ok(length) = data::read(&verbs, reader, &mut rest) {
        seen.extend(&rest[..length]);
    }
    assert_eq!(seen, [before, b"2"].concat());
}

#[test]
fn pipes() {
    explored(10, &[], |first| a_ring_keeps_bytes(true, first));
    reordered("scalefs: a pipe tells of bytes before it tells where they are", |first| a_ring_keeps_bytes(true, first));
    explored(20, &["scalefs: a read of a pipe forgets what was added in between"], |first| {
        a_ring_keeps_bytes(false, first);
    });
}

/// Two descriptors of an end are closed; whoever is the last must notice.
fn the_last_close_is_noticed(a_first: bool) {
    let model = ModelArena::new(2, 1 << 20);
    let fs = small_instance(&model, 8);
    let core = model.core(0);
    let process = Arc::new(Process::new(fs, &core, Credentials::SUPERUSER).unwrap());
    let verbs = fs.enter(&core, &process, &Spin);
    let (reader, writer) = data::pipe(&verbs, PLAIN).unwrap();
    drop(verbs);
    let child = Arc::new(process.fork(fs, &core, &Spin).unwrap());
    drop(core);
    let close = |process: &Arc<Process>| {
        let process = Arc::clone(process);
        move |core: Core<'static>| assert_eq!(data::close(&fs.enter(&core, &process, &Spin), writer), Ok(()))
    };
    together(&model, a_first, close(&process), close(&child));
    let core = model.core(0);
    assert_eq!(data::read(&fs.enter(&core, &process, &Spin), reader, &mut [0]), Ok(0), "the end");
}

#[test]
fn ends_of_pipes() {
    explored(20, &[], the_last_close_is_noticed);
    reordered("percpu: no fence before the limit", the_last_close_is_noticed);
}

/// A number that leads to a pipe's end, then to a file, is at no moment not open for `pread`.
fn an_exchanged_number_is_open(a_first: bool) {
    let model = ModelArena::new(2, 1 << 20);
    let fs = small_instance(&model, 8);
    let core = model.core(0);
    let process = Arc::new(Process::new(fs, &core, Credentials::SUPERUSER).unwrap());
    let verbs = fs.enter(&core, &process, &Spin);
    let flags = OpenFlags::CREATE | OpenFlags::READ;
    // A model's radix array has eight indices: marks of two numbers.
    let (reader, number) = data::pipe(&verbs, PLAIN).unwrap();
    data::close(&verbs, reader).unwrap();
    let file = data::open(&verbs, AT, b"f", flags, 0o600, PLAIN).unwrap();
    drop(verbs);
    drop(core);
    let (for_a, for_b) = (Arc::clone(&process), Arc::clone(&process));
    together(
        &model,
        a_first,
        move |core| {
            let verbs = fs.enter(&core, &for_a, &Spin);
            assert_eq!(data::duplicate_to(&verbs, file, number, OnExec::Keep), Ok(number));
        },
        move |core| {
            let outcome = data::read_at(&fs.enter(&core, &for_b, &Spin), number, &mut [0], 0);
            assert!(matches!(outcome, Ok(0) | Err(Errno::ESPIPE)), "{outcome:?}");
        },
    );
}

#[test]
fn marks_of_descriptors() {
    let mutants = ["scalefs: marks are cleared first", "scalefs: two marks are looked at one after the other"];
    explored(20, &mutants, an_exchanged_number_is_open);
}

/// Two files are wanted where there may be one.
fn a_budget_is_not_exceeded(a_first: bool) {
    let model = ModelArena::new(2, 1 << 20);
    let fs = small_instance(&model, 1);
    let core = model.core(0);
    let contexts = [0, 1].map(|_| Context::new(fs, &core, Credentials::SUPERUSER));
    drop(core);
    let [one, two] = contexts;
    let create = |context: Context, name: &'static [u8]| {
        move |core: Core<'static>| {
            let call = fs.begin(&core, &context, &Spin);
            match names::open(&call, AT, name, OpenFlags::CREATE | OpenFlags::READ, 0o600) {
                Ok(_) => 1,
                Err(Errno::ENOSPC) => 0,
                Err(errno) => panic!("{errno}"),
            }
        }
    };
    let (first, second) = together(&model, a_first, create(one, b"a"), create(two, b"b"));
    assert_eq!(first + second, 1, "one file, and no less");
}

#[test]
fn budgets() {
    explored(20, &["scalefs: a budget is taken in two steps"], a_budget_is_not_exceeded);
}
