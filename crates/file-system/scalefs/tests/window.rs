//! Pages at real addresses: the same random calls on a process with a window, which loads and stores through pointers, and on one
//! without, which loads and stores by calls. After each call, whatever the host lets the program reach must be what the other one has.
#![cfg(all(feature = "std", target_os = "linux", not(any(loom, miri))))]

mod probe;

use history::{explore, rounds};
use percpu::{Core, OwnerId};
use probe::Probe;
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{
    AccessError, Credentials, InProcess, MemoryAccess, MemoryOperations, OpenFlags, OwnedConfig, OwnedScaleFs, Process,
    Protection, Sharing, Start, TouchError,
};
use sync::Spin;

const PAGE: u64 = 4096;
const WINDOW_PAGES: u64 = 6;
const FILE_PAGES: u64 = 4;
/// Where in a page calls look: its first byte, and one that a cut within the page takes.
const OFFSETS: [u64; 2] = [0, 3000];
const CONFIG: OwnedConfig = OwnedConfig { metadata_bytes: 2 << 20, page_count: 100, core_count: 2, hash_seed: 1 };

#[derive(Clone, Debug)]
enum Call {
    Map {
        page: u64,
        pages: u64,
        protection: Protection,
        file: Option<(u64, Sharing)>,
    },
    Unmap {
        page: u64,
        pages: u64,
    },
    Protect {
        page: u64,
        pages: u64,
        protection: Protection,
    },
    Discard {
        page: u64,
        pages: u64,
    },
    Touch {
        page: u64,
        access: MemoryAccess,
    },
    Load {
        page: u64,
        offset: u64,
    },
    Store {
        page: u64,
        offset: u64,
        byte: u8,
    },
    /// A store by a call, although the program has pointers.
    Assign {
        page: u64,
        offset: u64,
        byte: u8,
    },
    Resize {
        bytes: u64,
    },
    Write {
        offset: u64,
        byte: u8,
    },
    /// A child, which stores to a page and exits.
    Fork {
        page: u64,
        byte: u8,
    },
    Maintain,
}

fn any_call() -> impl Strategy<Value = Call> {
    let page = || 0..WINDOW_PAGES;
    let pages = || 1..4_u64;
    let offset = || prop::sample::select(&OFFSETS[..]);
    let byte = || 1..=u8::MAX;
    let protection =
        || prop_oneof![1 => Just(Protection::None), 1 => Just(Protection::Read), 3 => Just(Protection::ReadWrite)];
    let sharing = prop_oneof![2 => Just(Sharing::Shared), 1 => Just(Sharing::Private)];
    let file = prop::option::weighted(0.8, (0..FILE_PAGES, sharing));
    let access = prop_oneof![Just(MemoryAccess::Load), Just(MemoryAccess::Store)];
    let bytes = prop_oneof![
        (0..=FILE_PAGES).prop_map(|pages| pages * PAGE),
        (0..FILE_PAGES).prop_map(|pages| pages * PAGE + 1000)
    ];
    prop_oneof![
        4 => (page(), pages(), protection(), file)
            .prop_map(|(page, pages, protection, file)| Call::Map { page, pages, protection, file }),
        1 => (page(), pages()).prop_map(|(page, pages)| Call::Unmap { page, pages }),
        2 => (page(), pages(), protection())
            .prop_map(|(page, pages, protection)| Call::Protect { page, pages, protection }),
        1 => (page(), pages()).prop_map(|(page, pages)| Call::Discard { page, pages }),
        4 => (page(), access).prop_map(|(page, access)| Call::Touch { page, access }),
        3 => (page(), offset()).prop_map(|(page, offset)| Call::Load { page, offset }),
        6 => (page(), offset(), byte()).prop_map(|(page, offset, byte)| Call::Store { page, offset, byte }),
        2 => (page(), offset(), byte()).prop_map(|(page, offset, byte)| Call::Assign { page, offset, byte }),
        3 => bytes.prop_map(|bytes| Call::Resize { bytes }),
        2 => (0..FILE_PAGES, offset(), byte())
            .prop_map(|(page, offset, byte)| Call::Write { offset: page * PAGE + offset, byte }),
        1 => (page(), byte()).prop_map(|(page, byte)| Call::Fork { page, byte }),
        1 => Just(Call::Maintain),
    ]
}

fn same_fault(outcome: Result<(), AccessError<core::convert::Infallible>>, error: TouchError) -> bool {
    use address_space::Fault;
    match outcome {
        Err(AccessError::Segment) => error == TouchError::Fault(Fault::Segment),
        Err(AccessError::Bus) => error == TouchError::Fault(Fault::Bus),
        _ => false,
    }
}

/// A file system with a process that has a file, and may have a window.
struct System<'a> {
    owned: &'a OwnedScaleFs,
    core: Core<'a>,
    process: Process,
    fd: u32,
}

impl System<'_> {
    fn new(owned: &OwnedScaleFs) -> System<'_> {
        let core = owned.claim(0, OwnerId::new(1).unwrap()).unwrap();
        let process = Process::new(owned.file_system(), &core, Credentials::SUPERUSER).unwrap();
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let fd = data::open(
            &owned.file_system().enter(&core, &process, &Spin),
            Start::WorkingDirectory,
            b"f",
            flags,
            0o600,
            DescriptorOptions::PLAIN,
        )
        .unwrap();
        System { owned, core, process, fd }
    }

    fn call<R>(&self, act: impl FnOnce(&InProcess<'_, Spin>) -> R) -> R {
        act(&self.owned.file_system().enter(&self.core, &self.process, &Spin))
    }

    fn object(&self, file: Option<(u64, Sharing)>) -> MappedObject {
        match file {
            None => MappedObject::Anonymous,
            Some((page, sharing)) => MappedObject::File { fd: self.fd, offset: page * PAGE, sharing },
        }
    }

    /// What a child that stores has at each page; its own stores are its own, or the file's.
    fn fork(&self, base: u64, page: u64, byte: u8) -> Vec<Option<u8>> {
        let fs = self.owned.file_system();
        let child = self.process.fork(fs, &self.core, &Spin).unwrap();
        let seen = {
            let call = fs.enter(&self.core, &child, &Spin);
            _ = call.store(base + page * PAGE, &[byte]);
            let load = |page: u64| {
                let mut byte = [0];
                call.load(base + page * PAGE, &mut byte).is_ok().then_some(byte[0])
            };
            (0..WINDOW_PAGES).map(load).collect()
        };
        child.exit(fs, &self.core, &Spin);
        seen
    }
}

fn pointer(address: u64) -> *mut u8 {
    address as usize as *mut u8
}

/// Makes a call on both.
fn step(real: &System<'_>, other: &System<'_>, base: u64, call: &Call) {
    let at = |page: u64| base + page * PAGE;
    let both = |act: &dyn Fn(&System<'_>) -> Result<u64, scalefs::Errno>| {
        assert_eq!(act(real), act(other), "{call:?}");
    };
    let within = |page: u64, pages: u64| pages.min(WINDOW_PAGES - page) * PAGE;
    match *call {
        Call::Map { page, pages, protection, file } => both(&|system| {
            let (place, object) = (Address::Fixed(at(page)), system.object(file));
            system.call(|call| memory::map(call, place, within(page, pages), protection, object))
        }),
        Call::Unmap { page, pages } => {
            both(&|system| system.call(|call| memory::unmap(call, at(page), within(page, pages))).map(|()| 0));
        }
        Call::Protect { page, pages, protection } => both(&|system| {
            system.call(|call| memory::protect(call, at(page), within(page, pages), protection)).map(|()| 0)
        }),
        Call::Discard { page, pages } => {
            both(&|system| system.call(|call| memory::discard(call, at(page), within(page, pages))).map(|()| 0));
        }
        Call::Touch { page, access: MemoryAccess::Load } => load(real, other, at(page)),
        Call::Touch { page, access: MemoryAccess::Store } => {
            let mut byte = [0];
            _ = other.call(|call| call.load(at(page), &mut byte));
            store(real, other, at(page), byte[0]);
        }
        Call::Load { page, offset } => load(real, other, at(page) + offset),
        Call::Store { page, offset, byte } => store(real, other, at(page) + offset, byte),
        Call::Assign { page, offset, byte } => {
            let outcome = |system: &System<'_>| {
                let stored = system.call(|call| call.store(at(page) + offset, &[byte]));
                format!("{stored:?}")
            };
            assert_eq!(outcome(real), outcome(other), "{call:?}");
        }
        Call::Resize { bytes } => {
            both(&|system| system.call(|call| data::truncate(call, system.fd, bytes as i64)).map(|()| 0))
        }
        Call::Write { offset, byte } => both(&|system| {
            system.call(|call| data::write_at(call, system.fd, &[byte], offset as i64)).map(|count| count as u64)
        }),
        Call::Fork { page, byte } => assert_eq!(real.fork(base, page, byte), other.fork(base, page, byte), "{call:?}"),
        Call::Maintain => {
            for system in [real, other] {
                for _ in 0..3 {
                    system.owned.file_system().maintain_with_idle_cores(&system.core, &Spin);
                }
            }
        }
    }
}

fn load(real: &System<'_>, other: &System<'_>, address: u64) {
    let mut byte = [0];
    let loaded = other.call(|call| call.load(address, &mut byte));
    match real.call(|call| call.touch(address, MemoryAccess::Load)) {
        // SAFETY: shown just now, and nobody else calls.
        Ok(()) => assert_eq!((unsafe { pointer(address).read_volatile() }, loaded.is_ok()), (byte[0], true)),
        Err(error) => assert!(same_fault(loaded, error), "{error:?}"),
    }
}

fn store(real: &System<'_>, other: &System<'_>, address: u64, byte: u8) {
    let stored = other.call(|call| call.store(address, &[byte]));
    match real.call(|call| call.touch(address, MemoryAccess::Store)) {
        Ok(()) => {
            assert!(stored.is_ok());
            // SAFETY: as above.
            unsafe { pointer(address).write_volatile(byte) };
        }
        Err(TouchError::EndsWithin) => {
            assert!(stored.is_ok());
            real.call(|call| call.store(address, &[byte])).unwrap();
        }
        Err(error) => assert!(same_fault(stored, error), "{error:?}"),
    }
}

/// Whatever can be reached is what the other one has; what the files hold is the same.
fn compare(real: &System<'_>, other: &System<'_>, base: u64, probe: &Probe) {
    for address in (0..WINDOW_PAGES).flat_map(|page| OFFSETS.map(|offset| base + page * PAGE + offset)) {
        let mut byte = [0];
        if let Some(found) = probe.load(address) {
            other.call(|call| call.load(address, &mut byte)).expect("the host lets a program load what it must not");
            assert_eq!(found, byte[0], "another byte");
        }
        if probe.load(address).is_some_and(|byte| probe.store(address, byte)) {
            other.call(|call| call.store(address, &byte)).expect("the host lets a program store what it must not");
        }
    }
    let bytes = |system: &System<'_>| {
        let mut bytes = vec![0; (FILE_PAGES * PAGE) as usize];
        let count = system.call(|call| data::read_at(call, system.fd, &mut bytes, 0)).unwrap();
        bytes.truncate(count);
        bytes
    };
    assert_eq!(bytes(real), bytes(other), "the file");
}

fn with_systems(test: impl FnOnce(&System<'_>, &System<'_>, u64)) {
    let real = OwnedScaleFs::create_mappable(CONFIG).unwrap();
    let other = OwnedScaleFs::create(CONFIG).unwrap();
    let (real, other) = (System::new(&real), System::new(&other));
    let base = real.owned.open_window(&real.process, WINDOW_PAGES).unwrap();
    test(&real, &other, base);
    for System { owned, core, process, .. } in [real, other] {
        process.exit(owned.file_system(), &core, &Spin);
    }
}

fn check(_: u64, calls: &Vec<Call>) {
    let probe = Probe::new();
    with_systems(|real, other, base| {
        for call in calls {
            step(real, other, base, call);
            compare(real, other, base, &probe);
        }
    });
}

fn plans(_: u64) -> impl Strategy<Value = Vec<Call>> {
    vec(any_call(), 1..60)
}

#[test]
fn pointers_and_calls_do_the_same() {
    explore(rounds(40), plans, check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for fault in ["scalefs: a window keeps the last page that is taken away", "scalefs: a cut leaves what windows show"]
    {
        sync::mutant::must_be_caught(fault, || explore(0..500, plans, check));
    }
}

/// The signal that ends a child which loads from an address.
fn signal_of_load(address: u64) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the child makes one access and ends; its parent waits for it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            pointer(address).read_volatile();
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

#[test]
fn what_is_unmapped_or_cut_off_raises_a_signal() {
    with_systems(|real, _, base| {
        let map = |page: u64| {
            let object = real.object(Some((0, Sharing::Shared)));
            let place = Address::Fixed(base + page * PAGE);
            real.call(|call| memory::map(call, place, 2 * PAGE, Protection::Read, object)).unwrap();
        };
        real.call(|call| data::truncate(call, real.fd, 2 * PAGE as i64)).unwrap();
        [0, 2].into_iter().for_each(map);
        for page in 0..4 {
            let address = base + page * PAGE;
            assert_eq!(signal_of_load(address), Some(libc::SIGSEGV), "not touched yet");
            real.call(|call| call.touch(address, MemoryAccess::Load)).unwrap();
            assert_eq!(signal_of_load(address), None);
        }
        real.call(|call| memory::unmap(call, base, 2 * PAGE)).unwrap();
        real.call(|call| data::truncate(call, real.fd, PAGE as i64)).unwrap();
        let signals: Vec<_> = (0..4).map(|page| signal_of_load(base + page * PAGE)).collect();
        assert_eq!(signals, [Some(libc::SIGSEGV), Some(libc::SIGSEGV), None, Some(libc::SIGBUS)]);
    });
}

/// By an address somebody could store behind the end, which nobody would clear when the file grows.
#[test]
fn the_page_in_which_a_file_ends_is_shown_for_loads_alone() {
    with_systems(|real, _, base| {
        real.call(|call| data::write_at(call, real.fd, &[7; PAGE as usize + 1], 0)).unwrap();
        let object = real.object(Some((0, Sharing::Shared)));
        real.call(|call| memory::map(call, Address::Fixed(base), 2 * PAGE, Protection::ReadWrite, object)).unwrap();
        let touch = |page: u64, access| real.call(|call| call.touch(base + page * PAGE, access));
        assert!(touch(0, MemoryAccess::Store).is_ok(), "a whole page");
        assert!(matches!(touch(1, MemoryAccess::Store), Err(TouchError::EndsWithin)));
        assert!(touch(1, MemoryAccess::Load).is_ok());
        real.call(|call| data::truncate(call, real.fd, 2 * PAGE as i64)).unwrap();
        assert!(touch(1, MemoryAccess::Store).is_ok(), "it ends with the page");
    });
}

/// A cut within a page takes away stores to the file's page, so that they do not show when it grows; a program's copy is its own.
#[test]
fn a_copy_is_stored_to_whatever_becomes_of_the_file_within_the_page() {
    with_systems(|real, _, base| {
        real.call(|call| data::truncate(call, real.fd, 2 * PAGE as i64)).unwrap();
        let object = real.object(Some((0, Sharing::Private)));
        real.call(|call| memory::map(call, Address::Fixed(base), 2 * PAGE, Protection::ReadWrite, object)).unwrap();
        let (kept, cut) = (base, base + PAGE);
        for address in [kept, cut] {
            real.call(|call| call.touch(address, MemoryAccess::Store)).unwrap();
            // SAFETY: shown just now, and nobody else calls.
            unsafe { pointer(address).write_volatile(7) };
        }
        let probe = Probe::new();
        real.call(|call| data::truncate(call, real.fd, 1000)).unwrap();
        assert!(probe.store(kept, 7), "the file ends within its page");
        assert_eq!((probe.load(kept), probe.load(cut)), (Some(7), None));
    });
}

#[test]
fn a_window_is_refused_twice_and_without_pages_that_can_be_mapped() {
    with_systems(|real, other, base| {
        assert!(real.owned.open_window(&real.process, 1).is_err(), "it has one");
        assert!(other.owned.open_window(&other.process, 1).is_err(), "pages of the heap");
        let outside = base + WINDOW_PAGES * PAGE;
        let place = Address::Fixed(outside);
        real.call(|call| memory::map(call, place, PAGE, Protection::Read, MappedObject::Anonymous)).unwrap();
        let touched = real.call(|call| call.touch(outside, MemoryAccess::Load));
        assert_eq!(touched, Err(TouchError::Fault(address_space::Fault::OutOfMemory)));
    });
    let owned = OwnedScaleFs::create_mappable(CONFIG).unwrap();
    let system = System::new(&owned);
    assert!(owned.open_window(&system.process, u64::MAX / PAGE).is_err(), "more than there is");
    let System { core, process, .. } = system;
    process.exit(owned.file_system(), &core, &Spin);
}
