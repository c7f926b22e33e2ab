//! Random sequences of calls on memory by a family of processes, on ScaleFS or on crate `plain`, and on real processes of the
//! host: mmap, munmap, mprotect, mremap, madvise, msync, loads, stores, fork, exit, with cuts, growth and writes of the files. Every
//! address, error number, signal and byte must be the same, and in the end nothing may be left. A difference is shrunk to the calls
//! that it takes.
//!
//! `SCALEFS_FUZZ_CALLS=N` makes N calls (20,000 if it is not set), `SCALEFS_FUZZ_SEED=N` starts with another sequence.
#![cfg(all(not(loom), not(miri), target_os = "linux", target_arch = "x86_64"))]

mod host;
mod systems;
mod worker;

use call_language::{
    MemoryAnswer, MemoryCall, MemoryOperation, MemoryOutcome, PROCESSES, Random, Remapped, WINDOW, WINDOW_PAGES, shrunk,
};
use host::Host;
use systems::{Maps, Memory, Ours};

const CALLS_PER_SEQUENCE: usize = 150;
const PAGE: u64 = 4096;

/// A family of processes that makes calls.
trait System {
    const NAME: &'static str;

    /// Makes the call with this number; `None` if there is no such process, or already.
    fn call(&mut self, number: usize, call: &MemoryCall) -> Option<MemoryOutcome>;

    /// All ends; what is left, if something is.
    fn remains(self) -> Option<String>
    where
        Self: Sized,
    {
        None
    }
}

/// What was reached: calls, and those that did something, by kind.
#[derive(Default)]
struct Reached {
    calls: usize,
    done: [usize; 6],
}

const KINDS: [&str; 6] = ["mapped a file", "moved", "forked", "raised SIGSEGV", "raised SIGBUS", "stored"];
/// So many of a thousand calls at least, of each of [`KINDS`].
const LEAST: [usize; 6] = [20, 2, 2, 50, 5, 10];

impl Reached {
    fn note(&mut self, call: &MemoryCall, outcome: &MemoryOutcome) {
        self.calls += 1;
        let kind = match (&call.operation, outcome) {
            (MemoryOperation::Map(.., Some(_)), Ok(MemoryAnswer::Number(_))) => 0,
            (MemoryOperation::Remap(from, ..), Ok(MemoryAnswer::Number(to))) if from != to => 1,
            (MemoryOperation::Fork(_), Ok(_)) => 2,
            (_, Ok(MemoryAnswer::Signal(11))) => 3,
            (_, Ok(MemoryAnswer::Signal(7))) => 4,
            (MemoryOperation::Store(..), Ok(_)) => 5,
            _ => return,
        };
        self.done[kind] += 1;
    }

    /// A generator that makes mostly calls that fail proves little.
    fn must_suffice(&self) {
        for ((kind, done), least) in KINDS.iter().zip(self.done).zip(LEAST) {
            println!("{kind}: {done} of {} calls", self.calls);
            assert!(done * 1000 >= least * self.calls, "only {done} of {} calls {kind}", self.calls);
        }
    }
}

/// Makes the calls on both systems, then loads everything; the first difference, if there is one.
fn difference<S: System>(mut ours: S, calls: &[MemoryCall], reached: &mut Reached) -> Option<String> {
    let mut host = Host::new();
    let mut known = Remapped::new();
    let page =
        |process, page| MemoryCall { process, operation: MemoryOperation::Load(WINDOW + page * PAGE, PAGE as usize) };
    let last = (0..PROCESSES).flat_map(|process| (0..WINDOW_PAGES + 8).map(move |number| page(process, number)));
    for (number, call) in calls.iter().cloned().chain(last).enumerate() {
        if known.leaves_out(&call) {
            continue;
        }
        let (Some(here), Some(there)) = (ours.call(number, &call), host.call(number, &call)) else { continue };
        if here != there {
            return Some(format!(
                "call {number}, {call:?}: {} {} and {} {}",
                S::NAME,
                told(&here),
                Host::NAME,
                told(&there)
            ));
        }
        known.note(&call, &here);
        reached.note(&call, &here);
    }
    ours.remains()
}

fn told(outcome: &MemoryOutcome) -> String {
    match outcome {
        Ok(MemoryAnswer::Bytes(bytes)) => {
            let first = bytes.iter().position(|byte| *byte != 0);
            format!("{} bytes, {:?} at {first:?}", bytes.len(), first.map(|place| bytes[place]))
        }
        outcome => format!("{outcome:?}"),
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}")))
}

fn sequence(seed: u64) -> Vec<MemoryCall> {
    let random = &mut Random::new(seed);
    let first = [0, 3].map(|file| MemoryOperation::Resize(file, (1 + random.below(4)) as u64 * PAGE));
    let first = first.map(|operation| MemoryCall { process: 0, operation });
    first.into_iter().chain((0..CALLS_PER_SEQUENCE).map(|_| MemoryCall::any(random))).collect()
}

/// The first difference of so many calls, with the fewest calls that show it.
fn first_difference<S: System>(make: impl Fn() -> S, wanted: u64, first: u64) -> Result<Reached, String> {
    let mut reached = Reached::default();
    for seed in first..first + wanted.div_ceil(CALLS_PER_SEQUENCE as u64) {
        let calls = sequence(seed);
        if difference(make(), &calls, &mut reached).is_some() {
            let few = shrunk(calls, |calls| difference(make(), calls, &mut Reached::default()).is_some());
            let lines: Vec<String> = few.iter().map(|call| format!("  {call:x?}")).collect();
            let told = difference(make(), &few, &mut Reached::default()).unwrap_or_default();
            return Err(format!("{told}\n{}\nrepeat with SCALEFS_FUZZ_SEED={seed}", lines.join("\n")));
        }
    }
    Ok(reached)
}

fn compare<S: System>(make: impl Fn() -> S) {
    let wanted = number_from_environment("SCALEFS_FUZZ_CALLS").unwrap_or(20_000);
    let first = number_from_environment("SCALEFS_FUZZ_SEED").unwrap_or(1);
    match first_difference(make, wanted, first) {
        Ok(reached) => reached.must_suffice(),
        Err(difference) => panic!("{difference}"),
    }
}

#[test]
fn scalefs_does_with_memory_what_the_host_does() {
    let memory = Memory::new();
    compare(|| Ours::new(&memory));
}

#[test]
fn plain_does_with_memory_what_the_host_does() {
    compare(Maps::new);
}

/// A system that gives another answer than the right one to calls of a kind.
struct Wrong<S> {
    right: S,
    changes: fn(&MemoryCall) -> Option<MemoryOperation>,
}

impl<S: System> System for Wrong<S> {
    const NAME: &'static str = "a wrong system";

    fn call(&mut self, number: usize, call: &MemoryCall) -> Option<MemoryOutcome> {
        let operation = (self.changes)(call).unwrap_or_else(|| call.operation.clone());
        self.right.call(number, &MemoryCall { operation, ..call.clone() })
    }
}

/// Calls that do what others do: each must be noticed, and few calls show it.
#[test]
fn planted_faults_are_found() {
    use posix_calls::{Protection, Sharing};
    type Fault = (&'static str, fn(&MemoryCall) -> Option<MemoryOperation>);
    let faults: [Fault; 6] = [
        ("private mappings are shared", |call| match call.operation {
            MemoryOperation::Map(address, length, rights, Some((fd @ (0 | 3), offset, Sharing::Private))) => {
                Some(MemoryOperation::Map(address, length, rights, Some((fd, offset, Sharing::Shared))))
            }
            _ => None,
        }),
        ("nothing is forgotten", |call| match call.operation {
            MemoryOperation::Discard(address, length) => Some(MemoryOperation::Synchronize(address, length)),
            _ => None,
        }),
        ("rights to store stay", |call| match call.operation {
            MemoryOperation::Protect(address, length, Protection::Read) => {
                Some(MemoryOperation::Protect(address, length, Protection::ReadWrite))
            }
            _ => None,
        }),
        ("one page is unmapped", |call| match call.operation {
            MemoryOperation::Unmap(address, length @ 1..1_000_000) => {
                Some(MemoryOperation::Unmap(address, length.min(PAGE)))
            }
            _ => None,
        }),
        ("files lose no page", |call| match call.operation {
            MemoryOperation::Resize(file, size) => Some(MemoryOperation::Resize(file, size.max(PAGE))),
            _ => None,
        }),
        ("children store another byte", |call| match call.operation {
            MemoryOperation::Store(address, length, byte) if call.process == 1 => {
                Some(MemoryOperation::Store(address, length, byte ^ 1))
            }
            _ => None,
        }),
    ];
    for (fault, changes) in faults {
        let found = first_difference(|| Wrong { right: Maps::new(), changes }, 60_000, 1).err();
        let found = found.unwrap_or_else(|| panic!("not found: {fault}"));
        let calls = found.lines().filter(|line| line.starts_with("  ")).count();
        assert!(calls <= 8, "{fault} takes {calls} calls:\n{found}");
    }
}
