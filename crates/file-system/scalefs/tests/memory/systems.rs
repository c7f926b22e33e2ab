//! ScaleFS, and the ordinary maps of crate `plain`, with two files and a pipe.

use std::cell::RefCell;
use std::ptr::NonNull;

use call_language::{DESCRIPTORS, MemoryAnswer, MemoryCall, MemoryOperation, MemoryOutcome, PROCESSES, perform_memory};
use pages::{PAGE_BYTES, PagePool};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use plain::Plain;
use posix_calls::{MemoryOperations, names};
use scalefs::data::{self, DescriptorOptions};
use scalefs::{Credentials, OpenFlags, Process, ScaleFs, ScaleFsConfig, Start};
use sync::Spin;

use crate::System;

const PAGES: usize = 1024;

/// Opens what [`DESCRIPTORS`] stands for.
fn open_all<V: MemoryOperations>(call: &V) -> Vec<u32> {
    let open = |name: &[u8], flags| {
        data::open(call, Start::WorkingDirectory, name, flags, 0o600, DescriptorOptions::PLAIN).unwrap()
    };
    let both = OpenFlags::READ | OpenFlags::WRITE;
    let files = [
        open(b"a", both | OpenFlags::CREATE),
        open(b"a", OpenFlags::READ),
        open(b"a", OpenFlags::WRITE),
        open(b"b", both | OpenFlags::CREATE),
        open(b"b", OpenFlags::READ),
    ];
    let (read, write) = data::pipe(call, DescriptorOptions::PLAIN).unwrap();
    let all = [files.as_slice(), &[read, write]].concat();
    assert_eq!(all.len(), DESCRIPTORS);
    for name in [b"a", b"b"] {
        names::unlink(call.objects(), Start::WorkingDirectory, name).unwrap();
    }
    all
}

/// Memory for one instance after the other.
pub struct Memory(RefCell<(HeapRegion, HeapRegion)>);

impl Memory {
    pub fn new() -> Memory {
        let [arena, pages] = [16 << 20, (PAGES + 1) * PAGE_BYTES].map(|bytes| HeapRegion::new(bytes).unwrap());
        Memory(RefCell::new((arena, pages)))
    }
}

/// A family of processes of an instance, whose calls two cores make in turn.
pub struct Ours<'m> {
    fs: &'m ScaleFs,
    cores: [Core<'m>; 2],
    processes: [Option<Process>; PROCESSES],
    descriptors: Vec<u32>,
    pool: &'m PagePool,
    live_bytes: i64,
}

impl<'m> Ours<'m> {
    /// An instance in the memory, in which there is no other any more.
    pub fn new(memory: &'m Memory) -> Ours<'m> {
        let mut regions = memory.0.borrow_mut();
        let (region, pages) = &mut *regions;
        // SAFETY: instances are made one after the other, each when the last one is dropped; the memory outlives them.
        let region: &'m mut HeapRegion = unsafe { &mut *std::ptr::from_mut(region) };
        let arena = Arena::create(region, ArenaConfig { core_count: 2, chunk_bytes: 4096 }).unwrap();
        let cores = [0, 1].map(|number| arena.claim(number, OwnerId::new(1).unwrap()).unwrap());
        let base = pages.as_mut_ptr();
        let base = NonNull::new(base.wrapping_add(base.align_offset(PAGE_BYTES))).unwrap();
        // SAFETY: the pages are this instance's as long as it is used.
        let pool = unsafe { PagePool::create(arena, base, PAGES as u32) }.unwrap();
        let config = ScaleFsConfig { root_bucket_count: 4, count_slots_per_core: 8, ..ScaleFsConfig::default() };
        let fs = ScaleFs::create_with_pages(&cores[0], pool, config).unwrap();
        // The table of processes keeps its memory: it has room from now on for as many as there can be at once.
        for core in &cores {
            let process = |_| Process::new(fs, core, Credentials::SUPERUSER).unwrap();
            let processes: Vec<Process> = (0..2 * PROCESSES).map(process).collect();
            processes.into_iter().for_each(|process| process.exit(fs, core, &Spin));
        }
        let live_bytes = arena.live_bytes();
        let process = Process::new(fs, &cores[0], Credentials::SUPERUSER).unwrap();
        let descriptors = open_all(&fs.enter(&cores[0], &process, &Spin));
        let mut processes = [const { None }; PROCESSES];
        processes[0] = Some(process);
        Ours { fs, cores, processes, descriptors, pool, live_bytes }
    }
}

impl System for Ours<'_> {
    const NAME: &'static str = "ScaleFS";

    fn call(&mut self, number: usize, call: &MemoryCall) -> Option<MemoryOutcome> {
        let core = &self.cores[number / 2 % 2];
        let process = self.processes[call.process].as_ref()?;
        let outcome = match call.operation {
            MemoryOperation::Fork(child) if self.processes[child].is_some() => return None,
            MemoryOperation::Fork(child) => {
                self.processes[child] = Some(process.fork(self.fs, core, &Spin).unwrap());
                Ok(MemoryAnswer::Done)
            }
            MemoryOperation::Exit if call.process == 0 => return None,
            MemoryOperation::Exit => {
                self.processes[call.process].take()?.exit(self.fs, core, &Spin);
                Ok(MemoryAnswer::Done)
            }
            ref operation => perform_memory(&self.fs.enter(core, process, &Spin), &self.descriptors, operation)
                .map_err(|errno| errno.number()),
        };
        if number.is_multiple_of(8) {
            self.fs.maintain(core, &Spin);
        }
        Some(outcome)
    }

    fn remains(self) -> Option<String> {
        for process in self.processes.into_iter().flatten() {
            process.exit(self.fs, &self.cores[0], &Spin);
        }
        for _ in 0..20 {
            self.cores.iter().for_each(|core| self.fs.maintain(core, &Spin));
        }
        let left = (self.pool.total() - self.pool.free_pages(), self.cores[0].arena().live_bytes() - self.live_bytes);
        (left != (0, 0)).then(|| format!("{} pages and {} bytes are left", left.0, left.1))
    }
}

/// The same with ordinary maps.
pub struct Maps {
    fs: Plain,
    processes: [Option<plain::Process>; PROCESSES],
    descriptors: Vec<u32>,
}

impl Maps {
    pub fn new() -> Maps {
        let fs = Plain::default();
        let process = plain::Process::new(&fs, Credentials::SUPERUSER);
        let descriptors = open_all(&fs.begin(&process));
        let mut processes = [const { None }; PROCESSES];
        processes[0] = Some(process);
        Maps { fs, processes, descriptors }
    }
}

impl System for Maps {
    const NAME: &'static str = "plain";

    fn call(&mut self, _: usize, call: &MemoryCall) -> Option<MemoryOutcome> {
        let process = self.processes[call.process].as_ref()?;
        Some(match call.operation {
            MemoryOperation::Fork(child) if self.processes[child].is_some() => return None,
            MemoryOperation::Fork(child) => {
                self.processes[child] = Some(process.fork(&self.fs));
                Ok(MemoryAnswer::Done)
            }
            MemoryOperation::Exit if call.process == 0 => return None,
            MemoryOperation::Exit => {
                self.processes[call.process].take()?.exit(&self.fs);
                Ok(MemoryAnswer::Done)
            }
            ref operation => {
                perform_memory(&self.fs.begin(process), &self.descriptors, operation).map_err(|errno| errno.number())
            }
        })
    }
}
