//! Descriptors that processes of several domains share: random calls give what they give on `plain`, also while processes
//! go from one domain to another.

use std::cell::RefCell;
use std::rc::Rc;

use call_language::{Answer, Bijection, DataOperation, Operation, Outcome, Random, perform, told};
use domains::simulated::{Setup, SimulatedDomain, simulate};
use domains::{Limits, OfOneThread, OneThread, Process};
use messages::Transport;
use messages::simulated::{Disorder, Latencies, RingSizes};
use plain::Plain;
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::{Credentials, Ended, Errno, Fields, OpenFlags, ProcessNumber, Start, Which, attributes, processes};

use crate::random::number_from_environment;
use crate::systems::left;

const DOMAINS: usize = 3;
const CALLS_PER_SEQUENCE: usize = 200;
const MOST_PROCESSES: usize = 5;
const BOTH: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// A process of both systems, and the domain that it is in.
struct Pair {
    domain: usize,
    ours: Process,
    theirs: plain::Process,
}

impl Pair {
    fn numbers(&self) -> (Option<ProcessNumber>, ProcessNumber) {
        (self.ours.number(), self.theirs.number())
    }
}

/// Both systems with their processes.
struct Both {
    file_system: OneThread,
    maps: Plain,
    pairs: Vec<Pair>,
    /// Numbers of processes here and there.
    children: Vec<(ProcessNumber, ProcessNumber)>,
}

impl Both {
    fn new(rings: RingSizes) -> Both {
        let limits = Limits { pages: 1 << 40, inodes: 1 << 40, split_above: 3, ..Limits::default() };
        let file_system = OneThread::with_rings(DOMAINS, rings, limits, || 0);
        let maps = Plain::new(plain::Limits { pages: 1 << 40, inodes: 1 << 40 }, || 0);
        let pair = Pair {
            domain: 1,
            ours: Process::new(Credentials::SUPERUSER),
            theirs: plain::Process::new(&maps, Credentials::SUPERUSER),
        };
        Both { file_system, maps, pairs: vec![pair], children: Vec::new() }
    }

    fn domain(&self, number: usize) -> Rc<OfOneThread> {
        self.file_system.domain(number)
    }

    fn fork(&mut self, parent: usize, to: usize) {
        let Pair { domain, ours, theirs } = &self.pairs[parent];
        let place = self.domain(*domain);
        let mut child = ours.fork(&place).unwrap();
        if to != *domain {
            let bytes = child.leave(&place).unwrap();
            child = Process::arrive(&self.domain(to), &bytes).unwrap();
        }
        let pair = Pair { domain: to, ours: child, theirs: theirs.fork(&self.maps) };
        let (ours, theirs) = pair.numbers();
        self.children.push((ours.unwrap(), theirs));
        self.pairs.push(pair);
    }

    /// What a wait for any child of the process tells: how it has ended.
    fn wait(&self, parent: usize) -> (Result<Option<Ended>, Errno>, Result<Option<Ended>, Errno>) {
        let Pair { domain, ours, theirs } = &self.pairs[parent];
        let place = self.domain(*domain);
        let number = self.children.iter().find(|(child, _)| {
            let call = place.begin(ours);
            matches!(posix_calls::ProcessOperations::ended_child(&call), Ok(Some(ended)) if ended == *child)
        });
        match number {
            Some((here, there)) => (
                processes::wait(&place.begin(ours), Which::Child(*here)).map(|ended| ended.map(|(_, ended)| ended)),
                processes::wait(&self.maps.begin(theirs), Which::Child(*there)).map(|ended| ended.map(|it| it.1)),
            ),
            None => (
                processes::wait(&place.begin(ours), Which::Any).map(|ended| ended.map(|(_, ended)| ended)),
                processes::wait(&self.maps.begin(theirs), Which::Any).map(|ended| ended.map(|it| it.1)),
            ),
        }
    }

    fn end(self) -> Option<String> {
        let superuser = Process::new(Credentials::SUPERUSER);
        for Pair { domain, ours, .. } in self.pairs {
            ours.exit(&self.file_system.domain(domain));
        }
        let domain = self.file_system.domain(0);
        for name in ["a", "b", "c"] {
            let _ = domain.call(&superuser, |call| perform(call, &Operation::Unlink(name.into())));
        }
        self.file_system.settle();
        left(domain.call(&superuser, attributes::space).unwrap())
    }
}

/// One of few calls on descriptors.
fn any_operation(random: &mut Random) -> Operation {
    let mut operation = DataOperation::any(random, false, false);
    if let DataOperation::Open(path, ..) | DataOperation::ResizePath(path, _) = &mut operation {
        *path = random.pick(&["a", "b", "c"]).to_string();
    }
    Operation::Data(operation)
}

fn outcome(result: Result<Answer, Errno>) -> Outcome {
    result.map_err(Errno::number)
}

fn differs(seed: u64, rings: RingSizes) -> Result<(), String> {
    let random = &mut Random::new(seed);
    let (mut both, mut numbers) = (Both::new(rings), Bijection::default());
    for call in 0..CALLS_PER_SEQUENCE {
        let place = random.below(both.pairs.len());
        match random.below(20) {
            0 | 1 if both.pairs.len() < MOST_PROCESSES => both.fork(place, random.below(DOMAINS)),
            2 if place > 0 => {
                let Pair { domain, ours, theirs } = both.pairs.remove(place);
                let ended = Ended::Exited(call as u8);
                ours.exit_with(&both.domain(domain), ended);
                theirs.exit_with(&both.maps, ended);
                both.file_system.settle();
            }
            3 => {
                let (ours, theirs) = both.wait(place);
                if ours != theirs {
                    return Err(format!("seed {seed}, call {call}, wait: {ours:?}, expected {theirs:?}"));
                }
            }
            _ => {
                let operation = any_operation(random);
                let Pair { domain, ours, theirs } = &both.pairs[place];
                let ours = outcome(both.domain(*domain).call(ours, |call| perform(call, &operation)));
                let theirs = outcome(perform(&both.maps.begin(theirs), &operation));
                if !numbers.same(&ours, &theirs) {
                    let (ours, theirs) = (told(&ours), told(&theirs));
                    return Err(format!("seed {seed}, call {call}, {operation:?}: {ours}, expected {theirs}"));
                }
            }
        }
    }
    both.end().map_or(Ok(()), |left| Err(format!("seed {seed}: {left}")))
}

fn compare() {
    let sequences = number_from_environment("DOMAINS_CALLS").unwrap_or(20_000) / CALLS_PER_SEQUENCE as u64;
    for seed in 0..sequences {
        let rings = if seed.is_multiple_of(4) { RingSizes([2, 84, 12, 90]) } else { RingSizes::default() };
        differs(seed, rings).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn random_calls_of_processes_that_share_descriptors_give_the_same_as_on_plain() {
    compare();
}

#[test]
fn an_offset_goes_to_the_owner_and_comes_back() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let [home, away] = [0, 1].map(|number| file_system.domain(number));
    let parent = Process::new(Credentials::SUPERUSER);
    let fd = home
        .call(&parent, |call| {
            let flags = BOTH | OpenFlags::CREATE;
            data::open(call, Start::WorkingDirectory, b"file", flags, 0o600, DescriptorOptions::PLAIN)
        })
        .unwrap();
    home.call(&parent, |call| data::write(call, fd, b"abcdef")).unwrap();
    home.call(&parent, |call| data::seek(call, fd, 0, Whence::Start)).unwrap();
    let child = parent.fork(&home).unwrap().leave(&home).unwrap();
    assert_eq!(Process::arrive(&away, &child[1..]).err(), Some(Errno::EINVAL), "bytes that are none");
    let child = Process::arrive(&away, &child).unwrap();
    let read = |domain: &OfOneThread, process: &Process| {
        let before = domain.counts();
        let mut bytes = [0; 2];
        domain.call(process, |call| data::read(call, fd, &mut bytes)).unwrap();
        (bytes, domain.counts().since(&before).round_trips)
    };
    assert_eq!(read(&away, &child), (*b"ab", 1));
    assert_eq!(read(&home, &parent), (*b"cd", 0));
    let before = away.counts();
    away.call(&child, |call| data::write(call, fd, b"ef")).unwrap();
    away.call(&child, |call| data::seek(call, fd, -2, Whence::Current)).unwrap();
    assert_eq!(away.counts().since(&before).round_trips, 2);
    parent.exit(&home);
    file_system.settle();
    // It hears that it is alone, takes the offset back, and reads.
    assert_eq!(read(&away, &child), (*b"ef", 3));
    away.call(&child, |call| data::seek(call, fd, 0, Whence::Start)).unwrap();
    let before = away.counts();
    away.call(&child, |call| data::seek(call, fd, 1, Whence::Current)).unwrap();
    assert_eq!(away.counts().since(&before).round_trips, 0, "it is its own again");
    child.exit(&away);
}

/// One of its descriptors is of a description that there is not.
#[test]
fn a_process_that_cannot_leave_keeps_nothing_and_has_ended() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let [home, away] = [0, 1].map(|number| file_system.domain(number));
    let parent = Process::new(Credentials::SUPERUSER);
    let open = |domain: &OfOneThread, process: &Process, name: &str| {
        let flags = BOTH | OpenFlags::CREATE;
        let options = DescriptorOptions::PLAIN;
        domain
            .call(process, |call| data::open(call, Start::WorkingDirectory, name.as_bytes(), flags, 0o600, options))
            .unwrap()
    };
    // Of the other domain, so that each move of a shared offset is a message.
    open(&away, &Process::new(Credentials::SUPERUSER), "first");
    let first = open(&home, &parent, "first");
    open(&home, &parent, "second");
    let mut bytes = parent.fork(&home).unwrap().leave(&home).unwrap();
    let last = bytes.len() - 24;
    bytes[last + 4] ^= 0x40;
    let child = Process::arrive(&away, &bytes).unwrap();
    let number = child.number();
    assert_eq!(child.leave(&away), Err(Errno::EIO));
    file_system.settle();
    assert_eq!(
        home.call(&parent, |call| Ok(posix_calls::ProcessOperations::ended_child(call).ok().flatten())),
        Ok::<_, Errno>(number)
    );
    let seek = || home.call(&parent, |call| data::seek(call, first, 1, Whence::Current)).unwrap();
    seek();
    let before = home.counts();
    seek();
    assert_eq!(home.counts().since(&before).round_trips, 0, "it is its own again");
    parent.exit(&home);
}

#[test]
fn a_pipe_leads_from_one_domain_to_another() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let [home, away] = [0, 1].map(|number| file_system.domain(number));
    let parent = Process::new(Credentials::SUPERUSER);
    let (from, to) = home.call(&parent, |call| data::pipe(call, DescriptorOptions::PLAIN)).unwrap();
    let child = parent.fork(&home).unwrap().leave(&home).unwrap();
    let child = Process::arrive(&away, &child).unwrap();
    home.call(&parent, |call| data::close(call, to)).unwrap();
    away.call(&child, |call| data::close(call, from)).unwrap();
    let mut bytes = vec![0; 70_000];
    assert_eq!(home.call(&parent, |call| data::read(call, from, &mut bytes)), Err(Errno::EAGAIN));
    let before = away.counts();
    assert_eq!(away.call(&child, |call| data::write(call, to, &[7; 5000])), Ok(5000));
    assert_eq!(away.counts().since(&before).round_trips, 1);
    assert_eq!(home.call(&parent, |call| data::read(call, from, &mut bytes)), Ok(5000));
    assert_eq!(away.call(&child, |call| data::write(call, to, &[7; 70_000])), Ok(65_536));
    child.exit(&away);
    file_system.settle();
    assert_eq!(home.call(&parent, |call| data::read(call, from, &mut bytes)), Ok(65_536));
    assert_eq!(home.call(&parent, |call| data::read(call, from, &mut bytes)), Ok(0), "all writers have gone");
    parent.exit(&home);
}

/// A user writes to a file with set-id bits of each domain.
fn write_to_set_ids() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let user = Process::new(Credentials::new(1000, 1000, &[]).unwrap());
    let superuser = Process::new(Credentials::SUPERUSER);
    let domain = file_system.domain(0);
    for (home, name) in [(0, b"a"), (1, b"b")] {
        let home = file_system.domain(home);
        let fd = home
            .call(&superuser, |call| {
                let flags = BOTH | OpenFlags::CREATE;
                data::open(call, Start::WorkingDirectory, name, flags, 0o600, DescriptorOptions::PLAIN)
            })
            .unwrap();
        home.call(&superuser, |call| data::close(call, fd)).unwrap();
        home.call(&superuser, |call| attributes::change_mode(call, Start::WorkingDirectory, name, 0o6777)).unwrap();
        let fd = domain
            .call(&user, |call| {
                data::open(call, Start::WorkingDirectory, name, OpenFlags::WRITE, 0, DescriptorOptions::PLAIN)
            })
            .unwrap();
        domain.call(&user, |call| data::write(call, fd, b"new")).unwrap();
        let status = domain.call(&user, |call| data::stat(call, fd, Fields::ALL)).unwrap();
        assert_eq!(status.mode, 0o777);
    }
}

#[test]
fn who_writes_takes_set_id_bits_away() {
    write_to_set_ids();
}

/// A process on its way, and since when.
type Sent = (Vec<u8>, u64);

/// Two domains read a file through one description, in pieces longer than a message, so that the offset is locked.
fn read_together(seed: u64) {
    const PAGES: usize = 12;
    const PIECE: usize = 2 * 4096;
    let setup = Setup {
        disorder: Disorder { seed: seed + 1, longer_percent: 100, pause_one_in: 4, longest_pause_ns: 3_000 },
        ..Setup::new(3, Latencies::of_machine("cxl").unwrap())
    };
    // Children on their way to the other domains, and since when.
    let travelling: Rc<RefCell<Vec<Sent>>> = Rc::default();
    let pieces: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let program = |number: usize| {
        let (travelling, pieces) = (Rc::clone(&travelling), Rc::clone(&pieces));
        move |domain: &SimulatedDomain<'_>| {
            if number == 0 {
                let process = Process::new(Credentials::SUPERUSER);
                let opened = domain.call(&process, |call| {
                    let flags = BOTH | OpenFlags::CREATE;
                    data::open(call, Start::WorkingDirectory, b"file", flags, 0o600, DescriptorOptions::PLAIN)
                });
                assert_eq!(opened, Ok(0));
                for page in 0..PAGES {
                    domain.call(&process, |call| data::write(call, 0, &[page as u8; 4096])).unwrap();
                }
                domain.call(&process, |call| data::seek(call, 0, 0, Whence::Start)).unwrap();
                let children = [0, 1].map(|_| process.fork(domain).unwrap().leave(domain).unwrap());
                let now_ns = domain.transport().now_ns();
                travelling.borrow_mut().extend(children.map(|child| (child, now_ns)));
                process.exit(domain);
                return;
            }
            let child = loop {
                let place = number - 1;
                let sent_ns = travelling.borrow().get(place).map(|sent| sent.1);
                match sent_ns {
                    Some(sent_ns) if domain.transport().now_ns() > sent_ns => {
                        break travelling.borrow()[place].0.clone();
                    }
                    _ if domain.serve() => {}
                    _ => domain.transport().pause(500),
                }
            };
            let child = Process::arrive(domain, &child).unwrap();
            loop {
                let mut bytes = vec![0; PIECE];
                match domain.call(&child, |call| data::read(call, 0, &mut bytes)).unwrap() {
                    0 => break,
                    count => pieces.borrow_mut().push(bytes[..count].to_vec()),
                }
            }
            child.exit(domain);
        }
    };
    simulate(&setup, (0..3).map(program).collect()).unwrap();
    let mut pieces = pieces.take();
    pieces.sort();
    let expected: Vec<Vec<u8>> =
        (0..PAGES as u8).step_by(2).map(|page| [[page; 4096], [page + 1; 4096]].concat()).collect();
    assert!(pieces == expected, "seed {seed}: each piece is read once, and whole");
}

#[test]
fn who_reads_in_several_steps_keeps_others_from_the_offset() {
    (0..30).for_each(read_together);
}

#[cfg(fuzzing)]
#[test]
fn planted_faults_are_found() {
    use sync::mutant::must_be_caught;

    must_be_caught("domains: an end of a pipe stays open", compare);
    must_be_caught("domains: who writes leaves set-id bits", write_to_set_ids);
    must_be_caught("domains: an offset moves that another domain has locked", || (0..200).for_each(read_together));
}
