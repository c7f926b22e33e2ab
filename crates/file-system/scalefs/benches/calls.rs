//! The calls on names against the host's tmpfs in the same run: `cargo bench -p scalefs --bench calls [-- ROUNDS]
//! [PART OF A TITLE]`.
//!
//! Both systems hold a directory of 1,000 files. Tmpfs is asked by one system call with one component of a name, relative to a
//! directory that is held open, and `open` and `close` go by a descriptor on both sides; a row tells what an empty system call
//! takes. A figure is the median of the rounds, with the spread from the first to
//! the third quartile. Maintenance runs every 64 calls and is counted. A second table has FxMark's changes of a shared
//! directory by one and two threads (time on the clock, since threads wait for each other, divided by the calls of all),
//! a third memory and the cost of creation in a directory that grows.

mod compare;

use std::ffi::{CStr, CString};
use std::fs;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::time::Instant;

use compare::{Options, huge_pages, print_head, print_row, processor_ns, quartiles};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Context, Credentials, DataOperations as _, Fields, Follow, InProcess, OpenFlags, Process, ScaleFs, ScaleFsConfig,
    Start, attributes,
};
use sync::Spin;

const FILES: usize = 1000;
/// Calls per phase in the shared directory, of all threads together, so that it grows as large with two as with one.
const SHARED_CALLS: usize = 60_000;
const THREAD_COUNTS: [usize; 2] = [1, 2];

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
/// `O_CREAT | O_EXCL`.
const CREATE_NEW: OpenFlags = OpenFlags::CREATE.union(OpenFlags::EXCLUSIVE);

struct Ours<'a> {
    fs: &'a ScaleFs,
    core: Core<'a>,
    process: Process,
}

impl Ours<'_> {
    fn maintained(&self, call: usize) {
        if call.is_multiple_of(64) {
            self.fs.maintain(&self.core, &Spin);
        }
    }

    fn enter(&self) -> InProcess<'_, Spin> {
        self.fs.enter(&self.core, &self.process, &Spin)
    }

    fn stat(&self, name: &str, fields: Fields) {
        black_box(attributes::stat(self.enter().objects(), AT, name.as_bytes(), Follow::Symlinks, fields).unwrap());
    }

    fn open(&self, name: &str, flags: OpenFlags) {
        let fd = data::open(&self.enter(), AT, name.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN).unwrap();
        data::close(&self.enter(), fd).unwrap();
    }

    fn unlink(&self, name: &str) {
        names::unlink(self.enter().objects(), AT, name.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        let (from, to) = ((AT, from.as_bytes()), (AT, to.as_bytes()));
        names::rename(self.enter().objects(), from, to, RenameMode::Replace).unwrap();
    }
}

fn against_tmpfs(options: &Options) {
    let host = PathBuf::from(format!("/dev/shm/scalefs-bench-{}", std::process::id()));
    fs::create_dir(&host).unwrap();
    let mut region = HeapRegion::new(256 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs_ours = ScaleFs::create(&core, ScaleFsConfig::default()).unwrap();
    // Data is not asked for: a file without pages is open like any other.
    let process = Process::new(fs_ours, &core, Credentials::SUPERUSER).unwrap();
    let ours = Ours { fs: fs_ours, core, process };
    let tmpfs = Tmpfs::of(&host);
    let names: Vec<String> = (0..FILES).map(|number| format!("file-{number}")).collect();
    let host_names: Vec<CString> = names.iter().map(|name| CString::new(name.as_str()).unwrap()).collect();
    for (name, host_name) in names.iter().zip(&host_names) {
        ours.open(name, CREATE_NEW);
        tmpfs.open(host_name, libc::O_CREAT | libc::O_EXCL);
    }
    let (new, new_host) = ("new-name", c"new-name");
    print_head("ns per call");
    let stat_host = |call: usize| tmpfs.stat(&host_names[call % FILES]);
    options.compare("stat", |call| ours.stat(&names[call % FILES], Fields::ALL), stat_host);
    let without = Fields::PERMISSIONS | Fields::SIZE;
    options.compare("stat without nlink", |call| ours.stat(&names[call % FILES], without), stat_host);
    options.compare(
        "open+close",
        |call| {
            ours.open(&names[call % FILES], OpenFlags::READ);
            ours.maintained(call);
        },
        |call| tmpfs.open(&host_names[call % FILES], libc::O_RDONLY),
    );
    options.compare(
        "create+unlink",
        |call| {
            ours.open(new, CREATE_NEW);
            ours.unlink(new);
            ours.maintained(call);
        },
        |_| {
            tmpfs.open(new_host, libc::O_CREAT | libc::O_EXCL);
            tmpfs.unlink(new_host);
        },
    );
    // An even number of calls: every round ends where it began.
    options.compare(
        "rename",
        |call| {
            let (from, to) = if call % 2 == 0 { (names[0].as_str(), new) } else { (new, names[0].as_str()) };
            ours.rename(from, to);
            ours.maintained(call);
        },
        |call| {
            let first = host_names[0].as_c_str();
            let (from, to) = if call % 2 == 0 { (first, new_host) } else { (new_host, first) };
            tmpfs.rename(from, to);
        },
    );
    // What a system call takes that does nothing: a library need not pay it, and no file system can save it.
    options.compare("an empty system call", |call| _ = black_box(call), |_| tmpfs.nothing());
    fs::remove_dir_all(&host).unwrap();
}

/// A directory of the host's tmpfs that is held open: each call is one system call with a name of one component.
struct Tmpfs(fs::File);

impl Tmpfs {
    fn of(path: &PathBuf) -> Tmpfs {
        Tmpfs(fs::File::open(path).unwrap())
    }

    fn stat(&self, name: &CStr) {
        // SAFETY: the name ends with a zero byte; plain bytes are a status, and it is ours to write.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            assert_eq!(libc::fstatat(self.0.as_raw_fd(), name.as_ptr(), &raw mut status, 0), 0);
            black_box(status.st_nlink);
        }
    }

    fn open(&self, name: &CStr, flags: i32) {
        // SAFETY: the name ends with a zero byte; the descriptor is ours.
        unsafe {
            let fd = libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags, 0o644);
            assert_eq!((fd < 0, libc::close(fd)), (false, 0));
        }
    }

    fn unlink(&self, name: &CStr) {
        // SAFETY: the name ends with a zero byte.
        assert_eq!(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), 0) }, 0);
    }

    fn rename(&self, from: &CStr, to: &CStr) {
        let fd = self.0.as_raw_fd();
        // SAFETY: both names end with a zero byte.
        assert_eq!(unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) }, 0);
    }

    fn nothing(&self) {
        // SAFETY: it has no arguments and changes nothing.
        black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    }
}

/// Puts a thread on a processor of its own, as FxMark does: a new thread may share its parent's for milliseconds, which is much
/// of a phase of ScaleFS and nothing of one of tmpfs. Where there are fewer processors, the system chooses.
fn stay_on_processor(number: usize) {
    // SAFETY: a set of processors is plain bits; it lives through the call.
    unsafe {
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(number, &mut processors);
        libc::sched_setaffinity(0, size_of_val(&processors), &raw const processors);
    }
}

/// Nanoseconds per call of all threads together, for creation, renaming and removal of private names in one directory
/// (FxMark's MWCM, MWRM, MWUM), from when the first begins, once all are ready, to when the last has ended. A thread's calls of a phase are what `begin`
/// returns, given the phase and the thread.
fn shared_directory<C: FnMut(usize)>(thread_count: usize, begin: &(impl Fn(usize, usize) -> C + Sync)) -> [f64; 3] {
    [0, 1, 2].map(|phase| {
        let ready = &Barrier::new(thread_count);
        let threads_spans = std::thread::scope(|scope| {
            let span = |thread| {
                scope.spawn(move || {
                    stay_on_processor(thread);
                    let calls = begin(phase, thread);
                    ready.wait();
                    let start = Instant::now();
                    (0..SHARED_CALLS / thread_count).for_each(calls);
                    (start, Instant::now())
                })
            };
            let threads: Vec<_> = (0..thread_count).map(span).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let start = threads_spans.iter().map(|span| span.0).min().unwrap();
        let end = threads_spans.iter().map(|span| span.1).max().unwrap();
        (end - start).as_nanos() as f64 / SHARED_CALLS as f64
    })
}

fn shared_directories(rounds: usize) {
    let (base, size_bytes) = huge_pages(256 << 20);
    let host = PathBuf::from(format!("/dev/shm/scalefs-shared-{}", std::process::id()));
    fs::create_dir(&host).unwrap();
    // SAFETY: a mapping of this process alone, which stays to its end.
    let arena = unsafe { Arena::create_at(base, size_bytes, ArenaConfig::new(2)) }.unwrap();
    let owner = OwnerId::new(1).unwrap();
    let config = ScaleFsConfig { root_bucket_count: 1 << 17, ..ScaleFsConfig::default() };
    let (scalefs, context) = {
        let core = arena.claim(0, owner).unwrap();
        let scalefs = ScaleFs::create(&core, config).unwrap();
        (scalefs, &Context::new(scalefs, &core, Credentials::SUPERUSER))
    };
    let names_of = |thread: usize| -> Vec<_> {
        (0..SHARED_CALLS).map(|number| [format!("old-{thread}-{number}"), format!("new-{thread}-{number}")]).collect()
    };
    // Made once: a thread that formats them in a phase does that for a third of ScaleFS's time, and asks the kernel for memory.
    let threads_names: &Vec<_> = &(0..2).map(names_of).collect();
    let host_path = |name: &String| host.join(name);
    let host_names_of = |names: &Vec<[String; 2]>| names.iter().map(|pair| pair.each_ref().map(host_path)).collect();
    let threads_host_names: &Vec<Vec<[PathBuf; 2]>> = &threads_names.iter().map(host_names_of).collect();
    let ours = |phase: usize, thread: usize| {
        let core = arena.claim(thread, owner).unwrap();
        move |number: usize| {
            let [old, new] = &threads_names[thread][number];
            let verbs = scalefs.begin(&core, context, &Spin);
            match phase {
                0 => {
                    let opened = names::open(&verbs, AT, old.as_bytes(), CREATE_NEW, 0o644).unwrap();
                    names::close(&verbs, opened.handle);
                }
                1 => {
                    let (from, to) = ((AT, old.as_bytes()), (AT, new.as_bytes()));
                    names::rename(&verbs, from, to, RenameMode::Replace).unwrap();
                }
                _ => names::unlink(&verbs, AT, new.as_bytes()).unwrap(),
            }
            drop(verbs);
            if number.is_multiple_of(64) {
                scalefs.maintain_with_idle_cores(&core, &Spin);
            }
        }
    };
    let theirs = |phase: usize, thread: usize| {
        move |number: usize| {
            let [old, new] = &threads_host_names[thread][number];
            match phase {
                0 => drop(fs::OpenOptions::new().write(true).create_new(true).open(old).unwrap()),
                1 => fs::rename(old, new).unwrap(),
                _ => fs::remove_file(new).unwrap(),
            }
        }
    };
    print_head("shared directory, ns");
    // Each round has both numbers of threads: what they take of tmpfs's time is compared.
    let both = |thread_count| (shared_directory(thread_count, &ours), shared_directory(thread_count, &theirs));
    let rounds: Vec<_> = (0..rounds).map(|_| THREAD_COUNTS.map(both)).collect();
    for (place, thread_count) in THREAD_COUNTS.into_iter().enumerate() {
        for (phase, title) in ["MWCM", "MWRM", "MWUM"].into_iter().enumerate() {
            let pairs = rounds.iter().map(|round| (round[place].0[phase], round[place].1[phase])).collect();
            print_row(&format!("{title}, {thread_count} threads"), pairs);
        }
    }
    fs::remove_dir_all(&host).unwrap();
}

/// In which order the names of a large directory come.
#[derive(Clone, Copy)]
enum Order {
    /// `file-0`, `file-1`, ...: neighbours are made one after the other.
    Sequence,
    /// Names like those of objects by their content: no two have anything in common.
    Random,
}

impl Order {
    fn name(self, number: usize) -> String {
        match self {
            Order::Sequence => format!("file-{number}"),
            // The finaliser of MurmurHash3, which is one to one.
            Order::Random => {
                let mixed = (number as u64 ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0xff51_afd7_ed55_8ccd);
                let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                format!("{:016x}", mixed ^ mixed >> 33)
            }
        }
    }

    fn title(self) -> &'static str {
        match self {
            Order::Sequence => "in sequence",
            Order::Random => "at random",
        }
    }
}

/// Nanoseconds per creation of each thousand, and bytes per file, of a new file system.
fn fill_directory((base, size_bytes): (NonNull<u8>, usize), file_count: usize, order: Order) -> (Vec<f64>, f64) {
    // SAFETY: a mapping of this process alone, which stays to its end; nothing is left of the one before.
    let arena = unsafe { Arena::create_at(base, size_bytes, ArenaConfig::new(2)) }.unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = ScaleFs::create(&core, ScaleFsConfig::default()).unwrap();
    let before = arena.untouched_bytes();
    let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    let ours = Ours { fs, core, process };
    let thousand = |thousand: usize| {
        let names: Vec<_> = (0..1000).map(|number| order.name(thousand * 1000 + number)).collect();
        let start = processor_ns();
        for (number, name) in names.iter().enumerate() {
            ours.open(name, CREATE_NEW);
            ours.maintained(number);
        }
        (processor_ns() - start) as f64 / 1000.0
    };
    let thousands = (0..file_count / 1000).map(thousand).collect();
    (thousands, (before - arena.untouched_bytes()) as f64 / file_count as f64)
}

fn large_directory(memory: (NonNull<u8>, usize), file_count: usize, rounds: usize, order: Order) {
    let rounds: Vec<_> = (0..rounds).map(|_| fill_directory(memory, file_count, order)).collect();
    let median = |of: &dyn Fn(&[f64]) -> f64| quartiles(rounds.iter().map(|(thousands, _)| of(thousands)));
    let first = median(&|thousands| thousands[0]);
    let middle = median(&|thousands| quartiles(thousands.iter().copied())[1]);
    let last = median(&|thousands| thousands[thousands.len() - 1]);
    let [low, ratio, high] = median(&|thousands| thousands[thousands.len() - 1] / thousands[0]);
    println!("{file_count} files in one directory, names {}: {:.0} bytes each;", order.title(), rounds[0].1);
    println!("ns per creation: first thousand {:.0}, median {:.0}, last {:.0};", first[1], middle[1], last[1]);
    println!("names {}: last over first {ratio:.2} [{low:.2}, {high:.2}]", order.title());
}

fn main() {
    let options = Options::from_arguments();
    against_tmpfs(&options);
    if options.wants("shared directory") {
        shared_directories(options.rounds);
    }
    if options.wants("large directory") {
        let file_count = 1_000_000;
        let memory = huge_pages(file_count * 1000 + (64 << 20));
        for order in [Order::Sequence, Order::Random] {
            large_directory(memory, file_count, options.rounds.div_ceil(6), order);
        }
    }
}
