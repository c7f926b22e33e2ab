//! Random calls on the memory of a domain's processes give what they give on `plain`, and leave nothing.

use std::rc::Rc;

use call_language::{MemoryAnswer, MemoryCall, MemoryOperation, MemoryOutcome, PROCESSES, Random, perform_memory};
use domains::{Limits, OfOneThread, OneThread, Process};
use plain::Plain;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::memory::{self, Address, MappedObject};
use posix_calls::{
    Credentials, Errno, MemoryOperations, OpenFlags, Protection, Sharing, Start, attributes, directories, names,
};

use crate::random::number_from_environment;
use crate::systems::left;

const CALLS_PER_SEQUENCE: usize = 150;
const BOTH: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);

/// Opens what `call_language::DESCRIPTORS` stands for.
fn open_all<V: MemoryOperations>(call: &V) -> Vec<u32> {
    let open = |name: &[u8], flags| {
        data::open(call, Start::WorkingDirectory, name, flags, 0o600, DescriptorOptions::PLAIN).unwrap()
    };
    let [a, b] = [b"a", b"b"];
    let mut all = vec![open(a, BOTH | OpenFlags::CREATE), open(a, OpenFlags::READ), open(a, OpenFlags::WRITE)];
    all.extend([open(b, BOTH | OpenFlags::CREATE), open(b, OpenFlags::READ)]);
    let (read, write) = data::pipe(call, DescriptorOptions::PLAIN).unwrap();
    all.extend([read, write]);
    [a, b].iter().for_each(|name| names::unlink(call.objects(), Start::WorkingDirectory, *name).unwrap());
    all
}

/// Makes a sequence of calls on both; what differs.
fn differs(seed: u64) -> Result<(), String> {
    let limits = Limits { pages: 1 << 40, inodes: 1 << 40, ..Limits::default() };
    let file_system = OneThread::new(2, limits, || 0);
    let domain = file_system.domain(1);
    let superuser = Process::new(Credentials::SUPERUSER);
    file_system.domain(0).call(&superuser, |call| attributes::change_mode(call, at(), b"/", 0o777)).unwrap();
    let maps = Plain::default();
    let first = (Process::new(Credentials::SUPERUSER), plain::Process::new(&maps, Credentials::SUPERUSER));
    let descriptors = open_all(&domain.begin(&first.0));
    assert_eq!(descriptors, open_all(&maps.begin(&first.1)));
    let mut processes = [const { None }; PROCESSES];
    processes[0] = Some(first);
    let random = &mut Random::new(seed);
    for number in 0..CALLS_PER_SEQUENCE {
        let MemoryCall { process, operation } = MemoryCall::any(random);
        let Some((ours, theirs)) = &processes[process] else { continue };
        match operation {
            MemoryOperation::Fork(child) if processes[child].is_none() => {
                processes[child] = Some((ours.fork(&domain).unwrap(), theirs.fork(&maps)));
            }
            MemoryOperation::Exit if process > 0 => {
                let (ours, theirs) = processes[process].take().unwrap();
                ours.exit(&domain);
                theirs.exit(&maps);
            }
            MemoryOperation::Fork(_) | MemoryOperation::Exit => {}
            // Where it goes is the implementation's choice.
            MemoryOperation::Map(Address::Any, ..) => {}
            ref operation => {
                let ours = told(perform_memory(&domain.begin(ours), &descriptors, operation));
                let theirs = told(perform_memory(&maps.begin(theirs), &descriptors, operation));
                if ours != theirs {
                    return Err(format!("seed {seed}, call {number}, {operation:?}: {ours:?}, expected {theirs:?}"));
                }
            }
        }
    }
    for (ours, _) in processes.into_iter().flatten() {
        ours.exit(&domain);
    }
    file_system.settle();
    let rest = left(domain.call(&superuser, attributes::space).unwrap());
    rest.map_or(Ok(()), |rest| Err(format!("seed {seed}: {rest}")))
}

fn told(outcome: Result<MemoryAnswer, Errno>) -> MemoryOutcome {
    outcome.map_err(Errno::number)
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn compare() {
    let sequences = number_from_environment("DOMAINS_CALLS").unwrap_or(15_000) / CALLS_PER_SEQUENCE as u64;
    (0..sequences).for_each(|seed| differs(seed).unwrap_or_else(|why| panic!("{why}")));
}

#[test]
fn random_calls_on_memory_give_the_same_as_on_plain() {
    compare();
}

#[test]
fn a_file_is_mapped_in_its_own_domain_alone() {
    let file_system = OneThread::new(2, Limits::default(), || 0);
    let [own, other]: [(Rc<OfOneThread>, Process); 2] =
        [0, 1].map(|number| (file_system.domain(number), Process::new(Credentials::SUPERUSER)));
    let open = |(domain, process): &(Rc<OfOneThread>, Process)| {
        let flags = BOTH | OpenFlags::CREATE;
        domain.call(process, |call| data::open(call, at(), b"file", flags, 0o600, DescriptorOptions::PLAIN)).unwrap()
    };
    let map = |(domain, process): &(Rc<OfOneThread>, Process), fd, sharing| {
        let object = MappedObject::File { fd, offset: 0, sharing };
        memory::map(&domain.begin(process), Address::Any, 4096, Protection::ReadWrite, object)
    };
    let fd = open(&own);
    own.0.call(&own.1, |call| data::write(call, fd, b"shared")).unwrap();
    let address = map(&own, fd, Sharing::Shared).unwrap();
    own.0.begin(&own.1).store(address, b"S").unwrap();
    let fd = open(&other);
    let mut bytes = [0; 6];
    assert_eq!(other.0.call(&other.1, |call| data::read(call, fd, &mut bytes)), Ok(6));
    assert_eq!(&bytes, b"Shared", "a store is seen by all who read");
    assert_eq!(map(&other, fd, Sharing::Shared), Err(Errno::ENODEV));
    assert_eq!(map(&other, fd, Sharing::Private), Err(Errno::ENODEV));
    assert_eq!(other.0.refused_mappings(), 2);
    // What another domain cuts is gone from memory.
    other.0.call(&other.1, |call| data::truncate(call, fd, 0)).unwrap();
    assert!(own.0.begin(&own.1).load(address, &mut bytes).is_err());
    directories::make_directory(&other.0.begin(&other.1), at(), b"place", 0o700).unwrap();
}

#[cfg(fuzzing)]
#[test]
fn planted_faults_are_found() {
    sync::mutant::must_be_caught("domains: copies of what is cut stay", compare);
}
