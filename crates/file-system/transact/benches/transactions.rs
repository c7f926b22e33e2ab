//! What a call costs in a transaction, alone in one and as one of ten, as a part of what it costs outside, and of what it
//! costs on tmpfs: `cargo bench -p transact --bench transactions`. A line is a name, a unit, and all samples.
//!
//! `transactions --count CALL MODE ROUNDS` makes so many rounds of ten calls and prints nothing, to be counted by callgrind.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use percpu::{Core, OwnerId};
use posix_calls::attributes::{self, Access};
use posix_calls::directories;
use posix_calls::names::{self, RenameMode};
use posix_calls::{Errno, Follow, ObjectOperations, OpenFlags, Start};
use scalefs::{Context, Credentials, Direct, OwnedConfig, OwnedScaleFs, ScaleFs};
use sync::Spin;
use transact::{Sharing, Transactional};

const CALLS: [&str; 6] = ["access", "open", "create+unlink", "link+unlink", "rename+rename", "mkdir+rmdir"];
const MODES: [&str; 3] = ["plain", "one", "ten"];
const TEN: usize = 10;
/// Rounds of ten calls in a sample, and samples.
const ROUNDS: usize = 100;
const SAMPLES: usize = 15;
const MANY: usize = 10_000;
/// Renames of a thread in a sample.
const RENAMES: usize = 2_000;

const NEW: OpenFlags = OpenFlags::CREATE.union(OpenFlags::EXCLUSIVE).union(OpenFlags::WRITE);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// How many calls one name gets in a round: the second takes the first back.
fn phases(call: &str) -> usize {
    if call.contains('+') { 2 } else { 1 }
}

fn make<V: ObjectOperations>(objects: &V, path: &[u8]) -> Result<(), Errno> {
    let opened = names::open(objects, at(), path, NEW, 0o644)?;
    names::close(objects, opened.handle);
    Ok(())
}

/// A file that is there, and a name that is free.
type Paths = [Vec<u8>; 2];

fn ten_paths() -> Vec<Paths> {
    let path = |what: &str, number| format!("d/{what}-{number}").into_bytes();
    (0..TEN).map(|number| [path("file", number), path("new", number)]).collect()
}

/// Makes the call of a phase.
fn perform<V: ObjectOperations>(objects: &V, call: &str, phase: usize, [old, new]: &Paths) -> Result<(), Errno> {
    let (old, new) = (old.as_slice(), new.as_slice());
    match (call, phase) {
        ("access", _) => attributes::access(objects, at(), old, Follow::Symlinks, Access::EXISTS),
        ("open", _) => {
            let opened = names::open(objects, at(), old, OpenFlags::READ, 0)?;
            names::close(objects, black_box(opened).handle);
            Ok(())
        }
        ("create+unlink", 0) => make(objects, new),
        ("link+unlink", 0) => names::link(objects, (at(), old), (at(), new), Follow::Nothing),
        ("create+unlink" | "link+unlink", _) => names::unlink(objects, at(), new),
        ("rename+rename", 0) => names::rename(objects, (at(), old), (at(), new), RenameMode::Replace),
        ("rename+rename", _) => names::rename(objects, (at(), new), (at(), old), RenameMode::Replace),
        ("mkdir+rmdir", 0) => directories::make_directory(objects, at(), new, 0o755),
        ("mkdir+rmdir", _) => directories::remove_directory(objects, at(), new),
        (other, _) => panic!("{other}: no such call"),
    }
}

struct Ours<'a> {
    fs: &'a ScaleFs,
    core: Core<'a>,
    context: Context,
}

impl<'a> Ours<'a> {
    fn new(owned: &'a OwnedScaleFs, core: usize) -> Ours<'a> {
        let core = owned.claim(core, OwnerId::new(1).unwrap()).unwrap();
        let fs = owned.file_system();
        let context = Context::new(fs, &core, Credentials::SUPERUSER);
        Ours { fs, core, context }
    }

    fn begin(&self) -> Direct<'_, Spin> {
        self.fs.begin(&self.core, &self.context, &Spin)
    }

    /// Rounds of ten calls.
    fn rounds(&self, call: &str, mode: &str, rounds: usize) {
        let transactional = Transactional::new(Sharing::Shared, || self.begin());
        let ten = ten_paths();
        for round in 0..rounds {
            for phase in 0..phases(call) {
                match mode {
                    "plain" => ten.iter().for_each(|paths| perform(&self.begin(), call, phase, paths).unwrap()),
                    "one" => ten.iter().for_each(|paths| {
                        transactional.transaction(|t| perform(&t.begin(), call, phase, paths)).unwrap();
                    }),
                    "ten" => transactional
                        .transaction(|t| ten.iter().try_for_each(|paths| perform(&t.begin(), call, phase, paths)))
                        .unwrap(),
                    other => panic!("{other}: expected one of {MODES:?}"),
                }
            }
            if round % 6 == 5 {
                self.fs.maintain(&self.core, &Spin);
            }
        }
    }
}

fn tmpfs(call: &str, directory: &Path, rounds: usize) {
    let name = |what: &str, number| directory.join(format!("{what}-{number}"));
    let ten: Vec<_> = (0..TEN).map(|number| (name("file", number), name("new", number))).collect();
    for _ in 0..rounds {
        for phase in 0..phases(call) {
            for (old, new) in &ten {
                let done = match (call, phase) {
                    ("access", _) => fs::metadata(old).map(drop),
                    ("open", _) => fs::File::open(old).map(drop),
                    ("create+unlink", 0) => fs::File::create_new(new).map(drop),
                    ("link+unlink", 0) => fs::hard_link(old, new),
                    ("create+unlink" | "link+unlink", _) => fs::remove_file(new),
                    ("rename+rename", 0) => fs::rename(old, new),
                    ("rename+rename", _) => fs::rename(new, old),
                    ("mkdir+rmdir", 0) => fs::create_dir(new),
                    _ => fs::remove_dir(new),
                };
                done.unwrap();
            }
        }
    }
}

/// Nanoseconds that this thread spends on its processor.
fn processor_ns_of(work: impl FnOnce()) -> f64 {
    let now = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is ours to write.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) }, 0);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    let start = now();
    work();
    now() - start
}

/// Nanoseconds on the clock, for what several threads do.
fn ns_of(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

fn print(name: &str, unit: &str, samples: &[f64]) {
    let samples: Vec<String> = samples.iter().map(|sample| format!("{sample:.3}")).collect();
    println!("{name}\t{unit}\t{}", samples.join(" "));
}

/// The four ways in turn, so that a slow phase of the machine strikes all of them.
fn calls(ours: &Ours<'_>, host: &Path) {
    for call in CALLS {
        let per_call = |ns: f64| ns / (ROUNDS * TEN * phases(call)) as f64;
        let samples: Vec<[f64; 4]> = (0..SAMPLES)
            .map(|_| {
                let [plain, one, ten] = MODES.map(|mode| per_call(processor_ns_of(|| ours.rounds(call, mode, ROUNDS))));
                [plain, one, ten, per_call(processor_ns_of(|| tmpfs(call, host, ROUNDS)))]
            })
            .collect();
        let of = |part: fn(&[f64; 4]) -> f64| samples.iter().map(part).collect::<Vec<_>>();
        print(&format!("{call}, outside a transaction"), "ns", &of(|sample| sample[0]));
        print(&format!("{call}, alone in one, of outside"), "", &of(|sample| sample[1] / sample[0]));
        print(&format!("{call}, in one of ten, of outside"), "", &of(|sample| sample[2] / sample[0]));
        print(&format!("{call}, alone in one, of tmpfs"), "", &of(|sample| sample[1] / sample[3]));
        print(&format!("{call}, in one of ten, of tmpfs"), "", &of(|sample| sample[2] / sample[3]));
    }
}

/// Ten thousand names made, and removed, in one transaction.
fn many(ours: &Ours<'_>) {
    let path = |number: usize| format!("d/many-{number}").into_bytes();
    let transactional = Transactional::new(Sharing::Shared, || ours.begin());
    let ratios: Vec<f64> = (0..3)
        .map(|_| {
            let plain = processor_ns_of(|| {
                (0..MANY).for_each(|number| make(&ours.begin(), &path(number)).unwrap());
                (0..MANY).for_each(|number| names::unlink(&ours.begin(), at(), &path(number)).unwrap());
            });
            ours.fs.maintain(&ours.core, &Spin);
            let together = processor_ns_of(|| {
                let made = transactional.transaction(|t| (0..MANY).try_for_each(|it| make(&t.begin(), &path(it))));
                made.unwrap();
                transactional
                    .transaction(|t| (0..MANY).try_for_each(|it| names::unlink(&t.begin(), at(), &path(it))))
                    .unwrap();
            });
            ours.fs.maintain(&ours.core, &Spin);
            together / plain
        })
        .collect();
    print("10,000 names in one, per name, of outside", "", &ratios);
}

/// A rename as `link` and `unlink` in a transaction, by threads with files of their own, against tmpfs's `rename`.
fn renames(owned: &OwnedScaleFs, host: &Path, threads: usize) {
    let ours = || {
        let barrier = Barrier::new(threads + 1);
        thread::scope(|scope| {
            for thread in 0..threads {
                let barrier = &barrier;
                scope.spawn(move || {
                    let ours = Ours::new(owned, 1 + thread);
                    let paths = [format!("d/from-{thread}"), format!("d/to-{thread}")].map(String::into_bytes);
                    make(&ours.begin(), &paths[0]).unwrap();
                    let transactional = Transactional::new(Sharing::Shared, || ours.begin());
                    barrier.wait();
                    for round in 0..RENAMES {
                        let (old, new) = (&paths[round % 2], &paths[1 - round % 2]);
                        transactional
                            .transaction(|t| {
                                names::link(&t.begin(), (at(), old), (at(), new), Follow::Nothing)?;
                                names::unlink(&t.begin(), at(), old)
                            })
                            .unwrap();
                        if round % 64 == 63 {
                            ours.fs.maintain(&ours.core, &Spin);
                        }
                    }
                    barrier.wait();
                    names::unlink(&ours.begin(), at(), &paths[RENAMES % 2]).unwrap();
                });
            }
            barrier.wait();
            ns_of(|| {
                barrier.wait();
            })
        })
    };
    let theirs = || {
        let barrier = Barrier::new(threads + 1);
        thread::scope(|scope| {
            for thread in 0..threads {
                let barrier = &barrier;
                scope.spawn(move || {
                    let paths = [host.join(format!("from-{thread}")), host.join(format!("to-{thread}"))];
                    fs::File::create(&paths[0]).unwrap();
                    barrier.wait();
                    (0..RENAMES).for_each(|it| fs::rename(&paths[it % 2], &paths[1 - it % 2]).unwrap());
                    barrier.wait();
                });
            }
            barrier.wait();
            ns_of(|| {
                barrier.wait();
            })
        })
    };
    let ratios: Vec<f64> = (0..SAMPLES).map(|_| ours() / theirs()).collect();
    print(&format!("rename as link and unlink, {threads} threads, of tmpfs's rename"), "", &ratios);
}

/// A directory on tmpfs, which goes with the value.
struct Host(PathBuf);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments.windows(4).find(|part| part[0] == "--count");
    // What is laid out at the beginning is counted, too: little, where it would be most of it.
    let metadata_bytes = if count.is_some() { 16 << 20 } else { 256 << 20 };
    let config = OwnedConfig { metadata_bytes, page_count: 64, core_count: 3, hash_seed: 1 };
    let owned = OwnedScaleFs::create(config).unwrap();
    let ours = Ours::new(&owned, 0);
    directories::make_directory(&ours.begin(), at(), b"d", 0o755).unwrap();
    (0..TEN).for_each(|number| make(&ours.begin(), format!("d/file-{number}").as_bytes()).unwrap());
    if let Some([_, call, mode, rounds]) = count {
        return ours.rounds(call, mode, rounds.parse().expect("expected how many rounds"));
    }
    let host = Host(PathBuf::from(format!("/dev/shm/transact-bench-{}", std::process::id())));
    fs::create_dir(&host.0).unwrap();
    (0..TEN).for_each(|number| drop(fs::File::create(host.0.join(format!("file-{number}"))).unwrap()));
    calls(&ours, &host.0);
    many(&ours);
    [1, 2].into_iter().for_each(|threads| renames(&owned, &host.0, threads));
}
