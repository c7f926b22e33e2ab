//! The calls on names against the host's tmpfs in the same run: `cargo bench -p scalefs --bench calls [-- ROUNDS]`.
//!
//! Both systems hold a directory of 1,000 files. Rounds of both alternate, so that a slow phase of the machine strikes
//! both; a figure is the median of the rounds, with the spread from the first to the third quartile. Maintenance runs
//! every 64 calls and is counted. A second table has FxMark's changes of a shared directory by one and two threads (time
//! divided by the calls of all threads), a third memory and the cost of creation in a directory that grows.

mod compare;

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Instant;

use compare::{compare, quartiles};
use percpu::{Arena, ArenaConfig, CacheLine, Core, HeapRegion, OwnerId};
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Direct, Fields, Follow, OpenFlags, ScaleFs, ScaleFsConfig, Start, attributes};
use sync::Spin;

const FILES: usize = 1000;
/// Calls per thread and phase in the shared directory: long enough that starting threads does not count.
const SHARED_CALLS: usize = 40_000;

const AT: Start<scalefs::Node> = Start::WorkingDirectory;
/// `O_CREAT | O_EXCL`.
const CREATE_NEW: OpenFlags = OpenFlags::CREATE.with(OpenFlags::EXCLUSIVE);

struct Ours<'a> {
    fs: &'a ScaleFs,
    core: Core<'a>,
    context: Context,
}

impl Ours<'_> {
    fn maintained(&self, call: usize) {
        if call.is_multiple_of(64) {
            self.fs.maintain(&self.core, &Spin);
        }
    }

    fn begin(&self) -> Direct<'_, Spin> {
        self.fs.begin(&self.core, &self.context, &Spin)
    }

    fn stat(&self, name: &str, fields: Fields) {
        black_box(attributes::stat(&self.begin(), AT, name.as_bytes(), Follow::Symlinks, fields).unwrap());
    }

    fn open(&self, name: &str, flags: OpenFlags) {
        let verbs = self.begin();
        let opened = names::open(&verbs, AT, name.as_bytes(), flags, 0o644).unwrap();
        names::close(&verbs, opened.node);
    }

    fn unlink(&self, name: &str) {
        names::unlink(&self.begin(), AT, name.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        let (from, to) = ((AT, from.as_bytes()), (AT, to.as_bytes()));
        names::rename(&self.begin(), from, to, RenameMode::Replace).unwrap();
    }
}

fn against_tmpfs(rounds: usize) {
    let host = PathBuf::from(format!("/dev/shm/scalefs-bench-{}", std::process::id()));
    fs::create_dir(&host).unwrap();
    let mut region = HeapRegion::new(256 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs_ours = ScaleFs::create(&core, ScaleFsConfig::default()).unwrap();
    let context = Context::new(fs_ours, &core, Credentials::SUPERUSER);
    let ours = Ours { fs: fs_ours, core, context };
    let names: Vec<String> = (0..FILES).map(|number| format!("file-{number}")).collect();
    let paths: Vec<PathBuf> = names.iter().map(|name| host.join(name)).collect();
    for (name, path) in names.iter().zip(&paths) {
        ours.open(name, CREATE_NEW);
        fs::File::create(path).unwrap();
    }
    let (new, new_path) = ("new-name", host.join("new-name"));
    println!("{:<22} {:>18} {:>18} {:>8}", "ns per call", "ScaleFS", "tmpfs", "ratio");
    let stat_host = |call: usize| {
        black_box(fs::metadata(&paths[call % FILES]).unwrap().nlink());
    };
    compare("stat", rounds, |call| ours.stat(&names[call % FILES], Fields::ALL), stat_host);
    let without = Fields::PERMISSIONS | Fields::SIZE;
    compare("stat without nlink", rounds, |call| ours.stat(&names[call % FILES], without), stat_host);
    compare(
        "open+close",
        rounds,
        |call| {
            ours.open(&names[call % FILES], OpenFlags::READ);
            ours.maintained(call);
        },
        |call| drop(fs::File::open(&paths[call % FILES]).unwrap()),
    );
    compare(
        "create+unlink",
        rounds,
        |call| {
            ours.open(new, CREATE_NEW);
            ours.unlink(new);
            ours.maintained(call);
        },
        |_| {
            drop(fs::OpenOptions::new().write(true).create_new(true).open(&new_path).unwrap());
            fs::remove_file(&new_path).unwrap();
        },
    );
    // An even number of calls: every round ends where it began.
    compare(
        "rename",
        rounds,
        |call| {
            let (from, to) = if call % 2 == 0 { (names[0].as_str(), new) } else { (new, names[0].as_str()) };
            ours.rename(from, to);
            ours.maintained(call);
        },
        |call| {
            let (from, to) = if call % 2 == 0 { (&paths[0], &new_path) } else { (&new_path, &paths[0]) };
            fs::rename(from, to).unwrap();
        },
    );
    fs::remove_dir_all(&host).unwrap();
}

/// Nanoseconds per call of all threads together, for creation, renaming and removal of private names in one directory
/// (FxMark's MWCM, MWRM, MWUM).
fn shared_directory(thread_count: usize, call: &(impl Fn(usize, usize, usize) + Sync)) -> [f64; 3] {
    [0, 1, 2].map(|phase| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..thread_count {
                scope.spawn(move || (0..SHARED_CALLS).for_each(|number| call(phase, thread, number)));
            }
        });
        start.elapsed().as_nanos() as f64 / (SHARED_CALLS * thread_count) as f64
    })
}

fn shared_directories(rounds: usize) {
    let host = PathBuf::from(format!("/dev/shm/scalefs-shared-{}", std::process::id()));
    fs::create_dir(&host).unwrap();
    let mut region = HeapRegion::new(256 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let owner = OwnerId::new(1).unwrap();
    let cores = [0, 1].map(|number| CacheLine(Mutex::new(arena.claim(number, owner).unwrap())));
    let config = ScaleFsConfig { root_bucket_count: 1 << 17, ..ScaleFsConfig::default() };
    let scalefs = ScaleFs::create(&cores[0].lock().unwrap(), config).unwrap();
    let context = Context::new(scalefs, &cores[0].lock().unwrap(), Credentials::SUPERUSER);
    let ours = |phase: usize, thread: usize, number: usize| {
        // Held by its one thread: the lock is never contended and on a line of its own core.
        let core = cores[thread].lock().unwrap();
        let (old, new) = (format!("old-{thread}-{number}"), format!("new-{thread}-{number}"));
        let verbs = scalefs.begin(&core, &context, &Spin);
        match phase {
            0 => {
                let opened = names::open(&verbs, AT, old.as_bytes(), CREATE_NEW, 0o644).unwrap();
                names::close(&verbs, opened.node);
            }
            1 => {
                let (from, to) = ((AT, old.as_bytes()), (AT, new.as_bytes()));
                names::rename(&verbs, from, to, RenameMode::Replace).unwrap();
            }
            _ => names::unlink(&verbs, AT, new.as_bytes()).unwrap(),
        }
        drop(verbs);
        if number.is_multiple_of(64) {
            scalefs.maintain(&core, &Spin);
        }
    };
    let theirs = |phase: usize, thread: usize, number: usize| {
        let (old, new) = (host.join(format!("old-{thread}-{number}")), host.join(format!("new-{thread}-{number}")));
        match phase {
            0 => drop(fs::OpenOptions::new().write(true).create_new(true).open(old).unwrap()),
            1 => fs::rename(old, new).unwrap(),
            _ => fs::remove_file(new).unwrap(),
        }
    };
    println!("{:<22} {:>10} {:>10} {:>8}", "shared directory, ns", "ScaleFS", "tmpfs", "ratio");
    for thread_count in [1, 2] {
        let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            our_times.push(shared_directory(thread_count, &ours));
            their_times.push(shared_directory(thread_count, &theirs));
        }
        for (phase, title) in ["MWCM", "MWRM", "MWUM"].into_iter().enumerate() {
            let median = |times: &[[f64; 3]]| quartiles(times.iter().map(|time| time[phase]).collect())[1];
            let (ours, theirs) = (median(&our_times), median(&their_times));
            let title = format!("{title}, {thread_count} threads");
            println!("{title:<22} {ours:10.0} {theirs:10.0} {:8.3}", ours / theirs);
        }
    }
    fs::remove_dir_all(&host).unwrap();
}

/// Memory of at least so many bytes in huge pages, as a large arena should lie in, all touched.
fn huge_pages(size_bytes: usize) -> (NonNull<u8>, usize) {
    const HUGE_BYTES: usize = 2 << 20;
    let size_bytes = size_bytes.next_multiple_of(HUGE_BYTES);
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, one huge page larger than what is used of it, so that its start can be aligned.
    unsafe {
        let mapped = libc::mmap(std::ptr::null_mut(), size_bytes + HUGE_BYTES, protection, flags, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        let start = mapped.cast::<u8>().add(mapped.align_offset(HUGE_BYTES));
        // A kernel without huge pages gives small ones.
        libc::madvise(start.cast(), size_bytes, libc::MADV_HUGEPAGE);
        for offset in (0..size_bytes).step_by(4096) {
            start.add(offset).write_volatile(0);
        }
        (NonNull::new(start).unwrap(), size_bytes)
    }
}

fn large_directory(file_count: usize) {
    let (base, size_bytes) = huge_pages(file_count * 1000 + (64 << 20));
    // SAFETY: a mapping of this process alone, which stays to its end.
    let arena = unsafe { Arena::create_at(base, size_bytes, ArenaConfig::new(2)) }.unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = ScaleFs::create(&core, ScaleFsConfig::default()).unwrap();
    let before = arena.untouched_bytes();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let ours = Ours { fs, core, context };
    let mut thousands = Vec::new();
    for thousand in 0..file_count / 1000 {
        let start = Instant::now();
        for number in 0..1000 {
            ours.open(&format!("file-{}", thousand * 1000 + number), CREATE_NEW);
            ours.maintained(number);
        }
        thousands.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    let bytes = (before - arena.untouched_bytes()) as f64 / file_count as f64;
    let (first, last) = (thousands[0], thousands[thousands.len() - 1]);
    let [_, median, _] = quartiles(thousands);
    println!("{file_count} files in one directory: {bytes:.0} bytes each; ns per creation: first thousand {first:.0},");
    println!("median {median:.0}, last thousand {last:.0}, last over first {:.2}", last / first);
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(21);
    against_tmpfs(rounds);
    shared_directories(rounds.div_ceil(4));
    large_directory(1_000_000);
}
