//! Directories that move under each other, by two cores, in both spawn orders:
//! `RUSTFLAGS="--cfg loom" cargo test -p scalefs --release --test loom`.
#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use percpu::model::ModelArena;
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Errno, ScaleFs, ScaleFsConfig, Start, directories};
use sync::Spin;

const AT: Start<scalefs::Node> = Start::WorkingDirectory;

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
    let threads = if a_first {
        [loom::thread::spawn(a), loom::thread::spawn(b)]
    } else {
        [loom::thread::spawn(b), loom::thread::spawn(a)]
    };
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(moved.load(Ordering::Relaxed), 1, "both moved, or neither");
}

#[test]
fn moves() {
    for first in [false, true] {
        let executions = sync::model::explore(2, move || no_directory_gets_under_itself(first));
        println!("moves, first {first}: {executions} executions");
        assert!(executions >= 20, "only {executions} executions");
        for mutant in ["scalefs: moves do not see each other", "scalefs: a mark that is gone does not bring the parent"]
        {
            sync::model::must_catch(mutant, 1, move || no_directory_gets_under_itself(first));
        }
    }
}
