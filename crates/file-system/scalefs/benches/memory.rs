//! Calls on memory, and faults, against the host in the same run: `cargo bench -p scalefs --bench memory [-- ROUNDS] [PART OF A
//! TITLE]`.
//!
//! Faults are on pages of a mapped file, tmpfs's for the host, each first used so by this mapping. They lie 16 apart, since Linux maps
//! as many at a load's fault (`do_fault_around`). Every 100 faults all are unmapped and mapped again, which is counted;
//! so is maintenance every 64 calls. Here a load is a call, with a walk of the core's table in software.

mod compare;

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;

use compare::{Options, huge_pages, print_head};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{
    Credentials, InProcess, MemoryOperations, OpenFlags, Process, Protection, ScaleFs, ScaleFsConfig, Sharing,
};
use sync::Spin;

const FAULTS: usize = 100;
const APART: usize = 16;
const PAGES: usize = FAULTS * APART;
const BYTES: usize = PAGES * PAGE_BYTES;

struct Ours<'a> {
    fs: &'a ScaleFs,
    core: Core<'a>,
    process: Process,
}

impl Ours<'_> {
    fn call<R>(&self, number: usize, call: impl FnOnce(&InProcess<'_, Spin>) -> R) -> R {
        let result = call(&self.fs.enter(&self.core, &self.process, &Spin));
        if number.is_multiple_of(64) {
            self.fs.maintain(&self.core, &Spin);
        }
        result
    }
}

/// Maps so many bytes of a file of the host, or anonymous ones.
fn map_of_host(file: Option<&fs::File>, bytes: usize) -> *mut u8 {
    let (flags, fd) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    assert_ne!(mapped, libc::MAP_FAILED);
    mapped.cast()
}

fn unmap_of_host(mapped: *mut u8, bytes: usize) {
    // SAFETY: a mapping of this benchmark, which is not used any more.
    assert_eq!(unsafe { libc::munmap(mapped.cast(), bytes) }, 0);
}

fn main() {
    let options = Options::from_arguments();
    let host = PathBuf::from(format!("/dev/shm/scalefs-memory-{}", std::process::id()));
    let theirs = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&host).unwrap();
    let mut region = HeapRegion::new(64 << 20).unwrap();
    let pool_pages = 2 * PAGES;
    let (base, _) = huge_pages((pool_pages + 1) * PAGE_BYTES);
    let arena = Arena::create(&mut region, ArenaConfig::new(2)).unwrap();
    let core = arena.claim(0, OwnerId::new(1).unwrap()).unwrap();
    // SAFETY: the memory is the pool's alone until the end.
    let pool = unsafe { PagePool::create(arena, base, pool_pages as u32) }.unwrap();
    let fs_ours = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default()).unwrap();
    let process = Process::new(fs_ours, &core, Credentials::SUPERUSER).unwrap();
    let ours = Ours { fs: fs_ours, core, process };
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = ours
        .call(0, |call| {
            data::open(call, scalefs::Start::WorkingDirectory, b"file", flags, 0o600, DescriptorOptions::PLAIN)
        })
        .unwrap();
    for page in 0..PAGES {
        let (bytes, offset) = ([page as u8; PAGE_BYTES], page * PAGE_BYTES);
        ours.call(page, |call| data::write_at(call, fd, &bytes, offset as i64)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&theirs, &bytes, offset as u64).unwrap();
    }
    print_head("ns per call, host");
    let anonymous = MappedObject::Anonymous;
    options.compare(
        "map+touch+unmap",
        |call| {
            let page = PAGE_BYTES as u64;
            let mapped =
                ours.call(call, |call| memory::map(call, Address::Any, page, Protection::ReadWrite, anonymous));
            let mapped = mapped.unwrap();
            ours.call(1, |call| call.store(mapped, &[1])).unwrap();
            ours.call(1, |call| memory::unmap(call, mapped, page)).unwrap();
        },
        |_| {
            let mapped = map_of_host(None, PAGE_BYTES);
            // SAFETY: mapped just now, for reading and writing.
            unsafe { mapped.write_volatile(1) };
            unmap_of_host(mapped, PAGE_BYTES);
        },
    );
    let file = MappedObject::File { fd, offset: 0, sharing: Sharing::Shared };
    for stores in [false, true] {
        let mapped = Cell::new(None);
        let their_mapped = Cell::new(None);
        options.compare(
            if stores { "fault, store to a file" } else { "fault, load of a file" },
            |call| {
                if call.is_multiple_of(FAULTS) {
                    if let Some(mapped) = mapped.take() {
                        ours.call(1, |call| memory::unmap(call, mapped, BYTES as u64)).unwrap();
                    }
                    let protection = Protection::ReadWrite;
                    let new = ours.call(1, |call| memory::map(call, Address::Any, BYTES as u64, protection, file));
                    mapped.set(Some(new.unwrap()));
                }
                let address = mapped.get().unwrap() + (call % FAULTS * APART * PAGE_BYTES) as u64;
                match stores {
                    true => ours.call(call, |call| call.store(address, &[2])).unwrap(),
                    false => {
                        let mut byte = [0];
                        ours.call(call, |call| call.load(address, &mut byte)).unwrap();
                        black_box(byte);
                    }
                }
            },
            |call| {
                if call.is_multiple_of(FAULTS) {
                    if let Some(mapped) = their_mapped.take() {
                        unmap_of_host(mapped, BYTES);
                    }
                    their_mapped.set(Some(map_of_host(Some(&theirs), BYTES)));
                }
                // SAFETY: within what was mapped.
                unsafe {
                    let address = their_mapped.get().unwrap().add(call % FAULTS * APART * PAGE_BYTES);
                    match stores {
                        true => address.write_volatile(2),
                        false => _ = black_box(address.read_volatile()),
                    }
                }
            },
        );
        if let Some(mapped) = mapped.take() {
            ours.call(1, |call| memory::unmap(call, mapped, BYTES as u64)).unwrap();
        }
        if let Some(mapped) = their_mapped.take() {
            unmap_of_host(mapped, BYTES);
        }
    }
    fs::remove_file(&host).unwrap();
}
