//! Level `close-to-open`: what others read and when, over memory in which old copies are really read, and what it costs.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use call_language::Random;
use domains::{
    Decisions, Domain, Level, Limits, LineCounts, OwnLines, PoolPages, Process, SharedPage, SharedPages, Techniques,
};
use messages::simulated::{Disorder, Latencies, Network, RingSizes, Served, Simulated};
use messages::{Class, DomainNumber, SendError, Step, Transport};
use pool::Memory;
use pool::emulated::{self, Emulated};
use posix_calls::attributes::{NewTime, change_mode, set_times};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::{Credentials, Errno, Fields, Follow, OpenFlags, SET_USER, Start};

use crate::random::number_from_environment;

const DOMAINS: usize = 3;
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;
const READ: OpenFlags = OpenFlags::READ;
const BOTH: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const CREATE: OpenFlags = BOTH.union(OpenFlags::CREATE);

/// Messages of which the checker of the memory hears: they say who knows of what.
struct Watched {
    inner: Simulated<'static>,
    memory: emulated::Domain,
    sent: RefCell<HashMap<(DomainNumber, Class), u64>>,
    received: RefCell<HashMap<(DomainNumber, Class), u64>>,
}

fn channel(from: DomainNumber, to: DomainNumber, class: Class) -> u64 {
    u64::from(from.0) << 16 | u64::from(to.0) << 8 | class as u64
}

impl Watched {
    fn note_received(&self, from: DomainNumber, class: Class) {
        let mut received = self.received.borrow_mut();
        let number = received.entry((from, class)).or_default();
        self.memory.received(channel(from, self.own(), class), *number);
        *number += 1;
    }
}

impl Transport for Watched {
    fn own(&self) -> DomainNumber {
        self.inner.own()
    }

    fn domain_count(&self) -> usize {
        self.inner.domain_count()
    }

    fn ring_lines(&self, class: Class) -> usize {
        self.inner.ring_lines(class)
    }

    fn free_lines(&self, to: DomainNumber, class: Class) -> usize {
        self.inner.free_lines(to, class)
    }

    fn send(&self, to: DomainNumber, class: Class, message: &[u8]) -> Result<(), SendError> {
        self.inner.send(to, class, message)?;
        let mut sent = self.sent.borrow_mut();
        let number = sent.entry((to, class)).or_default();
        self.memory.sent(channel(self.own(), to, class), *number);
        *number += 1;
        Ok(())
    }

    fn receive_from(&self, from: DomainNumber, class: Class, message: &mut Vec<u8>) -> bool {
        let came = self.inner.receive_from(from, class, message);
        if came {
            self.note_received(from, class);
        }
        came
    }

    fn receive(&self, classes: &[Class], message: &mut Vec<u8>) -> Option<(Class, DomainNumber)> {
        let (class, from) = self.inner.receive(classes, message)?;
        self.note_received(from, class);
        Some((class, from))
    }

    fn wait(&self) {
        self.inner.wait();
    }

    fn pause(&self, nanoseconds: u64) {
        self.inner.pause(nanoseconds);
    }

    fn spend(&self, step: Step) {
        self.inner.spend(step);
    }

    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }
}

#[derive(Default)]
struct Others {
    domains: OnceCell<Vec<Weak<Domain<Watched>>>>,
}

impl Served for Others {
    fn serve_others(&self, waiting: DomainNumber) {
        let domains = self.domains.get().map_or(&[][..], Vec::as_slice);
        for domain in domains.iter().filter_map(Weak::upgrade).filter(|domain| domain.own() != waiting) {
            while domain.serve() {}
        }
    }
}

/// Domains that share emulated memory, with a process in each.
struct World {
    domains: Vec<Rc<Domain<Watched>>>,
    processes: Vec<Process>,
    memory: Emulated,
}

impl World {
    fn new(memory: Emulated, level: Level, pages_per_domain: u32) -> World {
        World::with_space(memory, level, pages_per_domain, 1 << 30)
    }

    /// Each domain has this many pages for data.
    fn with_space(memory: Emulated, level: Level, pages_per_domain: u32, pages: u64) -> World {
        let network = Network::new(DOMAINS, Latencies::NONE, RingSizes::default(), Disorder::default());
        let (network, others) = (Rc::new(network), Rc::new(Others::default()));
        let lines: Rc<dyn Decisions> = Rc::new(OwnLines::new(DOMAINS));
        let limits = Limits { pages, inodes: 1 << 30, ..Limits::default() };
        let domain = |number: usize| {
            let inner = Simulated::outside(Rc::clone(&network), DomainNumber(number as u16), others.clone());
            let (view, sent) = (memory.domain(number), RefCell::default());
            let transport = Watched { inner, memory: view.clone(), sent, received: RefCell::default() };
            let domain = Rc::new(Domain::new(transport, Rc::clone(&lines), || 0, limits));
            domain.use_level(level);
            domain.use_pages(Rc::new(PoolPages::new(view, 0, DOMAINS, pages_per_domain).unwrap()));
            domain
        };
        let domains: Vec<_> = (0..DOMAINS).map(domain).collect();
        let _ = others.domains.set(domains.iter().map(Rc::downgrade).collect());
        let processes = (0..DOMAINS).map(|_| Process::new(Credentials::SUPERUSER)).collect();
        World { domains, processes, memory }
    }

    fn calm(pages_per_domain: u32) -> World {
        World::new(Emulated::calm(bytes(pages_per_domain), DOMAINS).unwrap(), Level::CloseToOpen, pages_per_domain)
    }

    fn call<R>(&self, domain: usize, act: impl Fn(&domains::Call<'_, Watched>) -> Result<R, Errno>) -> R {
        self.try_call(domain, act).unwrap()
    }

    fn try_call<R>(
        &self,
        domain: usize,
        act: impl Fn(&domains::Call<'_, Watched>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let outcome = self.domains[domain].call(&self.processes[domain], act);
        while self.domains.iter().any(|domain| domain.serve()) {}
        outcome
    }

    fn open(&self, domain: usize, name: &str, flags: OpenFlags) -> u32 {
        let options = DescriptorOptions::PLAIN;
        self.call(domain, |call| data::open(call, Start::WorkingDirectory, name.as_bytes(), flags, 0o666, options))
    }

    fn close(&self, domain: usize, fd: u32) {
        self.call(domain, |call| data::close(call, fd));
    }

    fn write(&self, domain: usize, fd: u32, bytes: &[u8], offset: usize) {
        let written = self.call(domain, |call| data::write_at(call, fd, bytes, offset as i64));
        assert_eq!(written, bytes.len());
    }

    fn read(&self, domain: usize, fd: u32, length: usize, offset: usize) -> Vec<u8> {
        self.call(domain, |call| {
            let mut bytes = vec![0; length];
            let read = data::read_at(call, fd, &mut bytes, offset as i64)?;
            bytes.truncate(read);
            Ok(bytes)
        })
    }

    fn size(&self, domain: usize, fd: u32) -> u64 {
        self.call(domain, |call| data::stat(call, fd, Fields::ALL)).size_bytes
    }
}

fn bytes(pages_per_domain: u32) -> usize {
    PoolPages::<emulated::Domain>::size_bytes(DOMAINS, pages_per_domain)
}

#[test]
fn what_is_written_is_read_by_who_opens_after_the_close() {
    let world = World::calm(16);
    let made = world.open(0, "a", CREATE);
    world.write(0, made, b"first", 0);
    let (writer, reader) = (world.open(1, "a", BOTH), world.open(2, "a", READ));
    world.write(1, writer, b"again", 0);
    world.write(1, writer, b"more", 8192);
    assert_eq!(world.read(1, writer, 5, 0), b"again", "its own process reads it");
    assert_eq!(world.size(0, made), 5, "others do not know");
    assert_eq!(world.read(2, reader, 9, 0), b"first");
    world.close(1, writer);
    assert_eq!(world.size(0, made), 8196);
    assert_eq!(world.read(0, made, 5, 0), b"again", "where the file lies, it is");
    assert_eq!(world.read(2, reader, 9, 0), b"first", "as it was at the open");
    let again = world.open(2, "a", READ);
    assert_eq!(world.read(2, again, 10_000, 0).len(), 8196);
    assert_eq!(world.read(2, reader, 5, 0), b"again", "a domain has one copy");
    assert_eq!(world.read(2, reader, 9, 8190), b"\0\0more");
}

#[test]
fn what_is_synchronized_or_asked_about_is_known() {
    let world = World::calm(16);
    let made = world.open(0, "a", CREATE);
    let writer = world.open(1, "a", BOTH);
    world.write(1, writer, &[1; 100], 0);
    assert_eq!(world.size(0, made), 0);
    world.call(1, |call| call.synchronize(writer));
    assert_eq!((world.size(0, made), world.read(0, made, 100, 0)), (100, vec![1; 100]));
    world.write(1, writer, &[2; 200], 0);
    assert_eq!(world.size(1, writer), 200, "a process knows its own");
    assert_eq!(world.size(0, made), 200);
    world.write(1, writer, &[3; 10], 300);
    assert_eq!(world.call(1, |call| data::seek(call, writer, 0, Whence::End)), 310);
    assert_eq!(world.size(0, made), 310);
    world.write(1, writer, &[4; 10], 0);
    world.call(1, |call| data::truncate(call, writer, 5));
    assert_eq!((world.read(0, made, 100, 0), world.read(1, writer, 100, 0)), (vec![4; 5], vec![4; 5]));
    world.write(1, writer, &[5; 2], 0);
    let duplicate = world.call(1, |call| {
        data::duplicate(call, writer, posix_calls::NumberChoice::LowestFrom(0), posix_calls::OnExec::Keep)
    });
    world.close(1, duplicate);
    assert_eq!(world.read(0, made, 100, 0), [5, 5, 4, 4, 4], "each close lets others know");
    let wrong = world.try_call(1, |call| call.synchronize(77));
    assert_eq!(wrong, Err(Errno::EBADF));
}

/// A line is what one write leaves: of two domains that write different lines of a page, each keeps its own.
#[test]
fn of_two_that_write_the_later_close_is_read_line_by_line() {
    let world = World::calm(16);
    let made = world.open(0, "a", CREATE);
    world.write(0, made, &[9; PAGE_BYTES], 0);
    let (first, second) = (world.open(1, "a", BOTH), world.open(2, "a", BOTH));
    world.write(1, first, &[1; 128], 0);
    world.write(2, second, &[2; 128], 64);
    world.close(2, second);
    world.close(1, first);
    let read = world.read(0, made, 256, 0);
    assert_eq!(read, [vec![1; 128], vec![2; 64], vec![9; 64]].concat());
}

#[test]
fn a_process_that_goes_elsewhere_reads_what_it_has_written_and_others_of_its_domain_read_on() {
    let world = World::calm(16);
    let made = world.open(0, "a", CREATE);
    let (writer, other) = (world.open(1, "a", BOTH), world.open(1, "a", BOTH));
    world.write(1, writer, b"taken along", 0);
    let child = world.processes[1].fork(&world.domains[1]).unwrap();
    let sent = child.leave(&world.domains[1]).unwrap();
    let arrived = Process::arrive(&world.domains[2], &sent).unwrap();
    let read = world.domains[2].call(&arrived, |call| {
        let mut bytes = [0; 20];
        data::read(call, writer, &mut bytes).map(|length| bytes[..length].to_vec())
    });
    assert_eq!(read.unwrap(), b"taken along");
    world.domains[2].call(&arrived, |call| data::write(call, writer, b"!")).unwrap();
    assert_eq!(world.read(0, made, 20, 0), b"taken along!");
    assert_eq!(world.call(1, |call| data::write(call, writer, b"?")), 1);
    assert_eq!(world.read(1, other, 20, 0), b"taken along!?", "by the owner, and seen by all of this domain");
    arrived.exit(&world.domains[2]);
    assert_eq!(world.call(1, |call| data::write(call, writer, b".")), 1);
    world.close(1, writer);
    assert_eq!(world.read(0, made, 20, 0), b"taken along!?.");
}

#[test]
fn what_finds_no_space_is_lost_and_the_close_says_so() {
    let world = World::with_space(Emulated::calm(bytes(16), DOMAINS).unwrap(), Level::CloseToOpen, 16, 2);
    let made = world.open(0, "a", CREATE);
    let (writer, other) = (world.open(1, "a", BOTH), world.open(1, "a", BOTH));
    world.write(1, writer, &[1; 3 * PAGE_BYTES], 0);
    assert_eq!(world.try_call(1, |call| call.synchronize(writer)), Err(Errno::ENOSPC));
    assert_eq!(world.size(0, made), 2 * PAGE_BYTES as u64, "what found space is there");
    assert_eq!(world.size(1, writer), 2 * PAGE_BYTES as u64);
    world.write(1, writer, &[2; 3 * PAGE_BYTES], 0);
    assert_eq!(world.try_call(1, |call| data::close(call, writer)), Err(Errno::ENOSPC));
    assert_eq!(world.try_call(1, |call| data::close(call, writer)), Err(Errno::EBADF), "it is closed");
    world.close(1, other);
    assert_eq!(world.read(0, made, 9000, 0), [2; 2 * PAGE_BYTES]);
}

/// Who passes a descriptor on learns it like who closes one.
#[test]
fn what_finds_no_space_is_said_to_a_process_that_goes_elsewhere() {
    let world = World::with_space(Emulated::calm(bytes(16), DOMAINS).unwrap(), Level::CloseToOpen, 16, 2);
    let _made = world.open(0, "a", CREATE);
    let writer = world.open(1, "a", BOTH);
    let child = world.processes[1].fork(&world.domains[1]).unwrap();
    world.write(1, writer, &[1; 3 * PAGE_BYTES], 0);
    assert_eq!(child.leave(&world.domains[1]).unwrap_err(), Errno::ENOSPC);
    assert_eq!(world.size(1, writer), 2 * PAGE_BYTES as u64, "the other process goes on");
}

/// An owner may have joined without shared pages, or what they lie in may have failed for it.
#[test]
fn data_that_an_owner_cannot_read_where_they_lie_come_in_messages() {
    struct Unreadable;
    impl SharedPages for Unreadable {
        fn pages_per_domain(&self) -> u32 {
            0
        }
        fn write(&self, _: SharedPage, _: usize, _: &[u8]) -> bool {
            false
        }
        fn write_back(&self, _: SharedPage, _: usize, _: usize) -> bool {
            false
        }
        fn drain(&self) -> bool {
            false
        }
        fn invalidate(&self, _: SharedPage, _: usize, _: usize) -> bool {
            false
        }
        fn read(&self, _: SharedPage, _: usize, _: &mut [u8]) -> bool {
            false
        }
    }
    let world = World::calm(16);
    world.domains[0].use_pages(Rc::new(Unreadable));
    let made = world.open(0, "a", CREATE);
    let writer = world.open(1, "a", BOTH);
    world.write(1, writer, &[1; 3 * PAGE_BYTES], 0);
    // The owner is asked for the length, after data that it cannot read and before it is asked to keep the file once more.
    assert_eq!(world.call(1, |call| data::seek(call, writer, 0, Whence::End)), 3 * PAGE_BYTES as u64);
    let again = world.open(1, "a", BOTH);
    world.write(1, again, &[2; 100], 0);
    let tries = world.domains[1].line_counts().written_back;
    assert_eq!(tries, 3 * 64, "it tries once");
    world.close(1, again);
    world.write(1, writer, &[3; 100], PAGE_BYTES);
    world.call(1, |call| data::truncate(call, writer, 2 * PAGE_BYTES as i64));
    world.close(1, writer);
    assert_eq!(world.domains[1].line_counts().written_back, tries);
    let expected = [vec![2; 100], vec![1; PAGE_BYTES - 100], vec![3; 100], vec![1; PAGE_BYTES - 100]].concat();
    assert!(world.read(0, made, 3 * PAGE_BYTES, 0) == expected);
    // It is kept as often as it was opened.
    let inodes = |world: &World| world.call(0, |call| posix_calls::attributes::space(call)).free_inodes;
    let before = inodes(&world);
    world.call(0, |call| posix_calls::names::unlink(call, Start::WorkingDirectory, b"a"));
    world.close(0, made);
    assert_eq!(inodes(&world), before + 1);
}

/// Pages that were kept for a domain that has ended are free again, once it is said that it has.
#[test]
fn pages_of_a_domain_that_has_ended_are_free() {
    const PAGES: usize = 4;
    let world = World::calm(PAGES as u32);
    let made = world.open(0, "a", CREATE);
    let lines = || world.domains[0].line_counts().written_back;
    world.write(0, made, &[1; PAGES * PAGE_BYTES], 0);
    world.open(1, "a", READ);
    assert_eq!(lines(), 64 * PAGES as u64, "all pages that there are");
    world.write(0, made, &[2; PAGES * PAGE_BYTES], 0);
    let reader = world.open(2, "a", READ);
    assert_eq!(lines(), 64 * PAGES as u64, "domain 1 may still read what it was told of");
    world.close(2, reader);
    world.domains[0].note_end_of(DomainNumber(1));
    let reader = world.open(2, "a", READ);
    assert_eq!(lines(), 2 * 64 * PAGES as u64);
    assert!(world.read(2, reader, PAGES * PAGE_BYTES, 0) == [2; PAGES * PAGE_BYTES]);
}

/// What is lost is nothing that was known before: the domain reads on what others do.
#[test]
fn what_was_known_before_an_error_is_still_read() {
    let world = World::with_space(Emulated::calm(bytes(16), DOMAINS).unwrap(), Level::CloseToOpen, 16, 2);
    let made = world.open(0, "a", CREATE);
    let writer = world.open(1, "a", BOTH);
    world.write(1, writer, &[1; PAGE_BYTES], 0);
    world.call(1, |call| call.synchronize(writer));
    world.write(1, writer, &[2; 2 * PAGE_BYTES], PAGE_BYTES);
    assert_eq!(world.try_call(1, |call| call.synchronize(writer)), Err(Errno::ENOSPC));
    let known = [[1; PAGE_BYTES], [2; PAGE_BYTES]].concat();
    assert!(world.read(1, writer, 3 * PAGE_BYTES, 0) == known);
    world.write(1, writer, &[3], 0);
    world.close(1, writer);
    assert_eq!(world.read(0, made, 3 * PAGE_BYTES, 0)[..100], [vec![3], vec![1; 99]].concat());
}

/// Pages that a domain was informed of before are used again once it has looked again, also if what it wrote found no
/// space.
#[test]
fn who_looks_anew_with_an_error_reads_no_page_that_is_used_again() {
    let world = World::with_space(Emulated::calm(bytes(16), DOMAINS).unwrap(), Level::CloseToOpen, 16, 2);
    let made = world.open(0, "a", CREATE);
    world.write(0, made, &[[1; PAGE_BYTES], [2; PAGE_BYTES]].concat(), 0);
    let writer = world.open(1, "a", BOTH);
    let pages = [[3; PAGE_BYTES], [4; PAGE_BYTES]].concat();
    for asks in [0, 1] {
        world.write(0, made, &pages, 0);
        world.write(1, writer, &[5], 2 * PAGE_BYTES);
        let refused = match asks {
            0 => world.try_call(1, |call| data::stat(call, writer, Fields::ALL)).map(drop),
            _ => {
                let (plain, name) = (DescriptorOptions::PLAIN, b"a");
                world.try_call(1, |call| data::open(call, Start::WorkingDirectory, name, READ, 0, plain)).map(drop)
            }
        };
        assert_eq!(refused, Err(Errno::ENOSPC));
        assert!(world.read(1, writer, 3 * PAGE_BYTES, 0) == pages, "{asks}");
    }
    assert_eq!(world.memory.report_count(), 0, "{}", world.memory.reports()[0]);
}

/// The data were written before: closing the file later changes neither.
#[test]
fn times_and_bits_that_are_set_between_a_write_and_the_close_stay() {
    let world = World::calm(16);
    let made = world.open(0, "a", CREATE);
    let mode = |mode| world.call(1, |call| change_mode(call, Start::WorkingDirectory, b"a", mode));
    mode(0o666);
    let user = Process::new(Credentials::new(7, 7, &[]).unwrap());
    let by_user = |act: &dyn Fn(&domains::Call<'_, Watched>) -> Result<usize, Errno>| {
        world.domains[1].call(&user, act).unwrap() as u32
    };
    let options = DescriptorOptions::PLAIN;
    let writer = by_user(&|call| {
        data::open(call, Start::WorkingDirectory, b"a", BOTH, 0, options).map(|number| number as usize)
    });
    by_user(&|call| data::write(call, writer, b"new"));
    mode(0o666 | SET_USER);
    by_user(&|call| data::write_at(call, writer, b"newer", 0));
    // The bit goes with this one.
    by_user(&|call| call.synchronize(writer).map(|()| 0));
    assert_eq!(world.call(0, |call| data::stat(call, made, Fields::ALL)).mode, 0o666);
    by_user(&|call| data::write_at(call, writer, b"new", 0));
    mode(0o666 | SET_USER);
    by_user(&|call| data::close(call, writer).map(|()| 0));
    assert_eq!(world.call(0, |call| data::stat(call, made, Fields::ALL)).mode, 0o666 | SET_USER);
    let writer = world.open(1, "a", BOTH);
    world.write(1, writer, b"last", 0);
    let times = (NewTime::At(-7), NewTime::At(-9));
    world.call(1, |call| set_times(call, Start::WorkingDirectory, b"a", Follow::Symlinks, times));
    world.close(1, writer);
    let attributes = world.call(0, |call| data::stat(call, made, Fields::ALL));
    assert_eq!((attributes.accessed_ns, attributes.modified_ns), (-7, -9));
    assert_eq!(world.read(0, made, 9, 0), b"lastr", "the data have come");
}

/// What a process of domain 1 does with a file that no other domain uses costs no message, and no line is written back.
#[test]
fn a_private_file_costs_no_message_and_no_flush() {
    for level in [Level::Posix, Level::CloseToOpen] {
        let world = World::new(Emulated::calm(bytes(64), DOMAINS).unwrap(), level, 64);
        let own = world.open(1, "own", CREATE);
        world.open(0, "of-0", CREATE);
        let far = world.open(1, "of-0", BOTH);
        let before = (world.domains[1].counts().round_trips, lines(&world));
        let use_all = |fd: u32| {
            for round in 0..10 {
                assert_eq!(world.call(1, |call| data::write(call, fd, &[round; 5000])), 5000);
            }
            assert_eq!(world.call(1, |call| data::seek(call, fd, 0, Whence::Start)), 0);
            for round in 0..10 {
                let read = world.call(1, |call| {
                    let mut bytes = [0; 5000];
                    data::read(call, fd, &mut bytes).map(|length| bytes[..length].to_vec())
                });
                assert_eq!(read, [round; 5000]);
            }
        };
        let cost = || {
            let (trips, counts) = (world.domains[1].counts().round_trips - before.0, lines(&world));
            (trips, counts.written_back - before.1.written_back, counts.invalidated - before.1.invalidated)
        };
        use_all(own);
        assert_eq!(cost(), (0, 0, 0), "{level:?}: an own file");
        if level == Level::CloseToOpen {
            use_all(far);
            assert_eq!(cost(), (0, 0, 0), "another's, while it is open");
            world.close(1, far);
            let written = 50_000_u64.div_ceil(LINE_BYTES as u64);
            assert_eq!(cost(), (1, written, written), "one round trip, and each line once each way");
            let again = world.open(1, "of-0", READ);
            assert_eq!(world.read(1, again, 50_000, 0).len(), 50_000);
            let pages = 13 * 64;
            assert_eq!(cost(), (2, written + pages, written + pages), "what is read has come by the open");
            world.read(1, again, 50_000, 0);
            world.close(1, again);
            let unchanged = world.open(1, "of-0", READ);
            world.read(1, unchanged, 50_000, 0);
            assert_eq!(cost(), (3, written + pages, written + pages), "what has not changed is not flushed again");
        }
        assert_eq!(world.memory.report_count(), 0, "{}", world.memory.reports()[0]);
    }
}

fn lines(world: &World) -> LineCounts {
    let all = world.domains.iter().map(|domain| domain.line_counts());
    all.fold(LineCounts::default(), |sum, counts| LineCounts {
        written_back: sum.written_back + counts.written_back,
        invalidated: sum.invalidated + counts.invalidated,
    })
}

/// What came of a run: a wrong value, and the memory with its reports.
struct Run {
    wrong: Option<String>,
    memory: Emulated,
    calls: u64,
}

const FILES: usize = 4;
const PAGES: usize = 3;
const LINES: usize = PAGES * PAGE_BYTES / LINE_BYTES;

/// What each line of a file must hold at least: a number that grows with each write, after the file's.
struct Written {
    /// What was let known.
    known: Vec<u64>,
    /// Who has it open: what was known then.
    open: HashMap<usize, (u32, Vec<u64>)>,
}

/// Writes and reads of files by one domain after the other: each line that is read holds what was known when its domain opened the
/// file, or what came later.
fn run(memory: Emulated, seed: u64, most_calls: u64, techniques: Techniques, pages_per_domain: u32) -> Run {
    let world = World::new(memory, Level::CloseToOpen, pages_per_domain);
    world.domains.iter().for_each(|domain| domain.use_techniques(techniques));
    let mut random = Random::new(seed);
    let mut files: Vec<Written> = Vec::new();
    for file in 0..FILES {
        let home = file % DOMAINS;
        let fd = world.open(home, &file.to_string(), CREATE);
        world.write(home, fd, &vec![0; LINES * LINE_BYTES], 0);
        world.close(home, fd);
        files.push(Written { known: vec![0; LINES], open: HashMap::new() });
    }
    let (mut last, mut wrong, mut calls) = (0_u64, None, 0);
    while world.memory.step() < most_calls && (wrong.is_none() || world.memory.report_count() == 0) {
        calls += 1;
        let (file, domain) = (random.below(FILES), random.below(DOMAINS));
        let name = file.to_string();
        let written = &mut files[file];
        match random.below(4) {
            // Some lines, by a descriptor of its own.
            0 | 1 => {
                let fd = world.open(domain, &name, BOTH);
                if let Some((_, seen)) = written.open.get_mut(&domain) {
                    seen.clone_from(&written.known);
                }
                for _ in 0..=random.below(3) {
                    let first = random.below(LINES);
                    let count = 1 + random.below((LINES - first).min(70));
                    last += 1;
                    let number = last << 8 | file as u64;
                    let line = number.to_le_bytes().repeat(LINE_BYTES / 8);
                    world.write(domain, fd, &line.repeat(count), first * LINE_BYTES);
                    written.known[first..first + count].fill(number);
                    if let Some((_, seen)) = written.open.get_mut(&domain) {
                        seen[first..first + count].fill(number);
                    }
                }
                if random.below(4) == 0 {
                    world.call(domain, |call| call.synchronize(fd));
                }
                world.close(domain, fd);
            }
            // By a descriptor that stays open.
            2 => {
                let known = &written.known;
                let open = || (world.open(domain, &name, READ), known.clone());
                let (fd, seen) = written.open.entry(domain).or_insert_with(open);
                let first = random.below(LINES);
                let count = 1 + random.below(LINES - first);
                let read = world.read(domain, *fd, count * LINE_BYTES, first * LINE_BYTES);
                for (place, line) in read.chunks(LINE_BYTES).enumerate() {
                    let (least, most) = (seen[first + place], written.known[first + place]);
                    let number = u64::from_le_bytes(line[..8].try_into().unwrap());
                    let is_of_file = number == 0 || number & 0xff == file as u64;
                    if !is_of_file || number < least || number > most || line != number.to_le_bytes().repeat(8) {
                        let line = first + place;
                        wrong = Some(format!("file {file}, line {line}: {number}, expected {least} to {most}"));
                    }
                }
            }
            _ => {
                if let Some((fd, _)) = written.open.remove(&domain) {
                    world.close(domain, fd);
                }
            }
        }
    }
    Run { wrong, memory: world.memory, calls }
}

const FEW_PAGES: u32 = 10;

fn adverse(seed: u64) -> Emulated {
    Emulated::new(bytes(FEW_PAGES), DOMAINS, seed).unwrap()
}

/// `DOMAINS_CALLS=N`: about that number of calls on memory.
#[test]
fn what_is_read_is_known_under_every_adversary_and_the_checker_is_content() {
    let wanted = number_from_environment("DOMAINS_CALLS").unwrap_or(3_000) * 4;
    let (mut calls, mut steps) = (0, 0);
    for seed in 0.. {
        if steps >= wanted {
            break;
        }
        let techniques = Techniques { affinity: seed % 2 == 0, ..Techniques::default() };
        let run = run(adverse(seed), seed, 10_000, techniques, FEW_PAGES);
        assert_eq!(run.wrong, None, "seed {seed}");
        assert_eq!(run.memory.report_count(), 0, "seed {seed}: {}", run.memory.reports()[0]);
        (calls, steps) = (calls + run.calls, steps + run.memory.step());
    }
    println!("{calls} calls, {steps} calls on memory");
}

/// Without direct access the same goes by messages, and no line is flushed.
#[test]
fn without_direct_access_data_travel_in_messages() {
    let techniques = Techniques { direct: false, ..Techniques::default() };
    let world = World::calm(16);
    world.domains.iter().for_each(|domain| domain.use_techniques(techniques));
    let made = world.open(0, "a", CREATE);
    let writer = world.open(1, "a", BOTH);
    let all = vec![7; 3 * PAGE_BYTES + 5];
    world.write(1, writer, &all, 0);
    assert_eq!(world.size(0, made), 0);
    world.close(1, writer);
    assert_eq!(world.read(0, made, 20_000, 0), all);
    let reader = world.open(2, "a", READ);
    world.call(0, |call| data::truncate(call, made, 1));
    assert_eq!(world.read(2, reader, 20_000, 0).len(), 1, "what was not asked for before is read as it is");
    assert_eq!(lines(&world), LineCounts::default());
}

#[cfg(fuzzing)]
mod planted {
    use super::*;
    use sync::mutant::plant;

    const SEEDS: u64 = 20;
    const STEPS: u64 = 10_000;

    /// Each is reported, and shows wrong values, from every seed.
    const OF_MEMORY: [&str; 4] = [
        "domains: data are not written back",
        "domains: data are not drained",
        "domains: data are read from an old copy",
        "domains: what another domain has written is read from an old copy",
    ];

    /// Each shows wrong values from every seed. Memory may be used as it must be.
    const OF_FILES: [&str; 3] = [
        "domains: a page that another domain reads is used again",
        "domains: what is closed is not written back",
        "domains: what is opened again is read as it was",
    ];

    #[test]
    fn planted_faults_of_data_are_reported_and_show() {
        let mut missed = Vec::new();
        for fault in OF_MEMORY.into_iter().chain(OF_FILES) {
            plant(fault);
            let (mut wrong, mut reported, mut kinds) = (0, 0, Vec::new());
            for seed in 0..SEEDS {
                let run = run(adverse(seed), seed, STEPS, Techniques::default(), FEW_PAGES);
                wrong += u64::from(run.wrong.is_some());
                let reports = run.memory.reports();
                let real = || reports.iter().filter(|report| !report.kind.is_waste());
                reported += u64::from(real().next().is_some());
                assert!(reports.iter().all(|report| report.to_string().contains(&format!("(seed {seed}, step "))));
                kinds.extend(real().map(|report| report.kind.name()));
            }
            kinds.sort_unstable();
            kinds.dedup();
            println!("{fault}: wrong {wrong}, reported {reported} of {SEEDS}: {kinds:?}");
            if wrong != SEEDS || OF_MEMORY.contains(&fault) && reported != SEEDS {
                missed.push(fault);
            }
        }
        plant("nothing");
        assert!(missed.is_empty(), "missed: {missed:#?}");
    }

    #[test]
    fn pages_that_a_dead_domain_keeps_are_missed() {
        sync::mutant::must_be_caught(
            "domains: pages lent to a domain are kept after its end",
            pages_of_a_domain_that_has_ended_are_free,
        );
    }
}
