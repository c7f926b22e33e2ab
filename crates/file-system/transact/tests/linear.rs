//! What a transaction allocates grows with what it does, and no faster: a look at a file that it has written copies none of
//! the bytes, and a part of it no more than the part changes. Bytes are counted, so that no time plays a part.
#![cfg(not(any(loom, shuttle)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;

use percpu::OwnerId;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{Credentials, Fields, OpenFlags, Start};
use scalefs::{FileSystem, OwnedConfig, OwnedScaleFs, Process};
use sync::Spin;
use transact::{Scope, Sharing, Transactional, Transactions, WithData};

/// The system's allocator, which counts what each thread asks for.
struct Counting;

std::thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; it came from there.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const PAGE: usize = 4096;

/// What so many rounds of a transaction allocate.
fn bytes_of(rounds: usize, round: impl Fn(&Scope<'_>, usize) -> io::Result<()>) -> usize {
    let config = OwnedConfig { metadata_bytes: 32 << 20, page_count: 4096, core_count: 1, ..OwnedConfig::default() };
    let files = FileSystem::create(config).unwrap();
    files.root().unwrap().create("f").unwrap();
    let before = BYTES.get();
    files.transaction(|t| (0..rounds).try_for_each(|number| round(t, number))).unwrap();
    BYTES.get() - before
}

/// Eight times the rounds cost eight times the bytes, and what tables that double round up.
fn is_linear(what: &str, round: impl Fn(&Scope<'_>, usize) -> io::Result<()>) {
    let (few, many) = (bytes_of(64, &round), bytes_of(512, &round));
    assert!(many < 16 * few, "{what}: {few} bytes for 64 rounds, {many} for 512");
}

fn rounds_cost_what_they_do() {
    is_linear("looks at what was written", |t, number| {
        t.write_at("f", [1; PAGE], (number * PAGE) as u64)?;
        assert_eq!(t.metadata("f", Fields::SIZE)?.size_bytes, ((number + 1) * PAGE) as u64);
        Ok(())
    });
    is_linear("parts that make files", |t, number| t.part(|| t.create(format!("{number}"))));
    is_linear("parts that write", |t, number| t.part(|| t.write_at("f", [1; PAGE], (number * PAGE) as u64)));
    is_linear("parts that write what was written", |t, number| {
        t.write_at("f", [1; PAGE], (number * PAGE) as u64)?;
        t.part(|| t.write_at("f", [2; 8], (number / 2 * PAGE) as u64))
    });
    is_linear("parts that are undone", |t, number| {
        let undone: io::Result<()> = t.part(|| {
            t.write_at("f", [1; PAGE], (number * PAGE) as u64)?;
            t.create(format!("{number}"))?;
            Err(io::ErrorKind::Other.into())
        });
        assert!(undone.is_err());
        t.write_at("f", [1; PAGE], (number * PAGE) as u64)
    });
    is_linear("parts within a part", |t, number| {
        t.part(|| t.create(format!("{number}")).and_then(|()| t.part(|| t.remove_file(format!("{number}")))))
    });
}

/// A read of what a caller has room for took as much memory before it looked how much there is.
fn a_look_takes_what_there_is() {
    let config = OwnedConfig { metadata_bytes: 8 << 20, page_count: 64, core_count: 1, ..OwnedConfig::default() };
    let instance = OwnedScaleFs::create(config).unwrap();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let process = Process::new(instance.file_system(), &core, Credentials::SUPERUSER).unwrap();
    let call = || WithData(instance.file_system().enter(&core, &process, &Spin));
    let flags = OpenFlags::CREATE | OpenFlags::READ | OpenFlags::WRITE;
    let at = Start::WorkingDirectory;
    let fd = data::open(&call().0, at, b"f", flags, 0o600, DescriptorOptions::PLAIN).unwrap();
    let written: Vec<u8> = (0..50 * PAGE).map(|place| place as u8).collect();
    assert_eq!(data::write(&call().0, fd, &written), Ok(written.len()));
    let mut room = vec![0; 64 << 20];
    let before = BYTES.get();
    let fs = Transactional::new(Sharing::Shared, call);
    let read = fs.transaction(|t| data::read_at(&t.begin(), fd, &mut room, 0));
    assert!(read == Ok(written.len()) && room[..written.len()] == written[..]);
    assert!(BYTES.get() - before < 16 * written.len(), "{} bytes", BYTES.get() - before);
    process.exit(instance.file_system(), &core, &Spin);
}

#[test]
fn what_is_done_is_what_it_costs() {
    rounds_cost_what_they_do();
    a_look_takes_what_there_is();
}

#[cfg(fuzzing)]
#[test]
fn each_is_found_where_it_is_planted() {
    use sync::mutant::must_be_caught;
    must_be_caught("transact: a look copies what was written", rounds_cost_what_they_do);
    must_be_caught("transact: a savepoint copies what was written", rounds_cost_what_they_do);
    must_be_caught("transact: a look takes what memory its caller has", a_look_takes_what_there_is);
}
