//! The calls on data and descriptors against the host's tmpfs in the same run: `cargo bench -p scalefs --bench data
//! [-- ROUNDS] [PART OF A TITLE]`.
//!
//! Both systems hold a file of 1,000 pages, of which the calls take one after the other. That is more than a second-level
//! cache holds, so that what whole pages cost there is mostly their way out of the cache behind it; "in cache" the calls take
//! the first 100 only. What is written differs from what is there. Maintenance runs every 64 calls and is counted.

mod compare;

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use compare::{Options, huge_pages, print_head};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::{
    Clocked, Credentials, InProcess, NumberChoice, OpenFlags, Process, ScaleFs, ScaleFsConfig, Start, StatusFlags,
};
use sync::Spin;

const PAGES: usize = 1000;
const CACHED_PAGES: usize = 100;
const READ_WRITE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

type Clock = Clocked<Spin, fn() -> u64>;

/// As coarse as the clock that Linux marks files with.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

struct Ours<'a> {
    fs: &'a ScaleFs,
    core: Core<'a>,
    process: Process,
    clock: Clock,
}

impl Ours<'_> {
    fn call<R>(&self, number: usize, call: impl FnOnce(&InProcess<'_, Clock>) -> R) -> R {
        let result = call(&self.fs.enter(&self.core, &self.process, &self.clock));
        if number.is_multiple_of(64) {
            self.fs.maintain(&self.core, &Spin);
        }
        result
    }
}

fn offset(call: usize) -> u64 {
    offset_among(PAGES, call)
}

fn offset_among(pages: usize, call: usize) -> u64 {
    (call % pages * PAGE_BYTES) as u64
}

fn main() {
    let options = Options::from_arguments();
    let host = PathBuf::from(format!("/dev/shm/scalefs-data-{}", std::process::id()));
    let theirs = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&host).unwrap();
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let (base, _) = huge_pages(4 * PAGES * PAGE_BYTES);
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    // SAFETY: the memory is the pool's alone until the end.
    let pool = unsafe { PagePool::create(arena, base, 4 * PAGES as u32) }.unwrap();
    let fs_ours = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default()).unwrap();
    let process = Process::new(fs_ours, &core, Credentials::SUPERUSER).unwrap();
    let clock = Clocked { wait: Spin, clock: now_ns as fn() -> u64 };
    let ours = Ours { fs: fs_ours, core, process, clock };
    let open = |verbs: &InProcess<'_, Clock>, number| {
        let options = DescriptorOptions { number, status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
        data::open(verbs, Start::WorkingDirectory, b"file", READ_WRITE | OpenFlags::CREATE, 0o600, options).unwrap()
    };
    let fd = ours.call(0, |verbs| open(verbs, NumberChoice::LowestFrom(0)));
    let (read_end, write_end) = ours.call(0, |verbs| data::pipe(verbs, DescriptorOptions::PLAIN)).unwrap();
    for page in 0..PAGES {
        let bytes = [page as u8; PAGE_BYTES];
        ours.call(page, |verbs| data::write_at(verbs, fd, &bytes, offset(page) as i64)).unwrap();
        theirs.write_all_at(&bytes, offset(page)).unwrap();
    }
    let (mut buffer, mut their_buffer) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
    print_head("ns per call");
    let fill = RefCell::new(0_u64);
    let change = |buffer: &mut [u8; PAGE_BYTES]| {
        *fill.borrow_mut() += 1;
        buffer[..8].copy_from_slice(&fill.borrow().to_le_bytes());
    };
    for (place, pages) in [("", PAGES), (" in cache", CACHED_PAGES)] {
        options.compare(
            &format!("pread 4 KiB{place}"),
            |call| {
                let offset = offset_among(pages, call) as i64;
                ours.call(call, |verbs| data::read_at(verbs, fd, &mut buffer, offset)).unwrap();
                black_box(&buffer);
            },
            |call| {
                theirs.read_exact_at(&mut their_buffer, offset_among(pages, call)).unwrap();
                black_box(&their_buffer);
            },
        );
        options.compare(
            &format!("pwrite 4 KiB{place}"),
            |call| {
                change(&mut buffer);
                let offset = offset_among(pages, call) as i64;
                ours.call(call, |verbs| data::write_at(verbs, fd, &buffer, offset)).unwrap();
            },
            |call| {
                change(&mut their_buffer);
                theirs.write_all_at(&their_buffer, offset_among(pages, call)).unwrap();
            },
        );
    }
    options.compare(
        "pread 64 bytes",
        |call| {
            ours.call(call, |verbs| data::read_at(verbs, fd, &mut buffer[..64], offset(call) as i64)).unwrap();
        },
        |call| theirs.read_exact_at(&mut their_buffer[..64], offset(call)).unwrap(),
    );
    options.compare(
        "lseek",
        |call| {
            ours.call(call, |verbs| data::seek(verbs, fd, offset(call) as i64, Whence::Start)).unwrap();
        },
        |call| {
            use std::io::{Seek, SeekFrom};
            (&theirs).seek(SeekFrom::Start(offset(call))).unwrap();
        },
    );
    for (title, choice) in [("open+close, lowest", NumberChoice::LowestFrom(0)), ("open+close, any", NumberChoice::Any)]
    {
        options.compare(
            title,
            |call| {
                let opened = ours.call(call, |verbs| open(verbs, choice));
                ours.call(1, |verbs| data::close(verbs, opened)).unwrap();
            },
            |_| drop(fs::File::open(&host).unwrap()),
        );
    }
    let (mut their_read_end, mut their_write_end) = std::io::pipe().unwrap();
    options.compare(
        "pipe, write+read 64",
        |call| {
            ours.call(call, |verbs| data::write(verbs, write_end, &buffer[..64])).unwrap();
            ours.call(1, |verbs| data::read(verbs, read_end, &mut buffer[..64])).unwrap();
        },
        |_| {
            their_write_end.write_all(&their_buffer[..64]).unwrap();
            their_read_end.read_exact(&mut their_buffer[..64]).unwrap();
        },
    );
    fs::remove_file(&host).unwrap();
}
