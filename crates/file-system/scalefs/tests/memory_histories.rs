//! Concurrent histories of a file that is read, written, cut, and mapped, shared and private, by threads of one process: there
//! must be an order in which a plain reference returns the same, each call, load and store being one step.
//!
//! **The relaxed specification.** A cut is one step of the file's; of what is mapped, page after page goes before it returns. Until
//! then a load or store of such a page may be as if it had not been cut off, and what is stored there goes with it. A private page
//! becomes the process's own, and then is stored to. What is to be forgotten is, and then whether it is mapped is looked at.
//!
//! Every two calls, and drawn threes, run wherever one of them can be overtaken. Loads and stores are calls, or a program's own, which
//! touches what the host does not let it reach.
#![cfg(all(feature = "std", target_os = "linux", not(any(loom, miri))))]

#[allow(dead_code)]
mod instance;
mod mapped_model;
mod probe;

use address_space::Fault;
use history::{
    Event, Made, expect_order, in_order, is_sample, mattering, no_call_commutes, of_few_calls, overtake, overtake_each,
    pairs, play, told,
};
use instance::with_instance_for;
use mapped_model::Step;
use percpu::{Core, OwnerId};
use plain::{Plain, Process};
use probe::Probe;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{
    AccessError, Credentials, DataOperations, Errno, Fields, InProcess, MemoryAccess, MemoryOperations, OpenFlags,
    OwnedConfig, OwnedScaleFs, Protection, ScaleFs, Sharing, Start, TouchError, names,
};
use sync::Spin;

const PAGE: u64 = 4096;
/// Where in a page bytes are, which a cut within the page takes.
const IN_A_PAGE: u64 = 3000;
/// Pages that are looked at, of which the file has two in the beginning.
const PAGES: u64 = 3;
const FD: u32 = 0;

/// Three pages of the file, mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mapping {
    Shared,
    Private,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Load(Mapping, u64),
    Store(Mapping, u64, u8),
    Map(Mapping, u64),
    Unmap(Mapping, u64),
    Protect(Mapping, u64, Protection),
    Discard(Mapping, u64),
    ReadAt(u64),
    WriteAt(u64, u8),
    /// In bytes.
    Resize(u64),
    Size,
}

/// A byte, a size, nothing; or an error.
type Outcome = Result<Option<u64>, String>;

/// Where the mappings are, one behind the other.
const BASE: u64 = 1 << 30;

/// Memory of a process that maps at an address.
struct Mapped<'m, M> {
    memory: &'m M,
    base: u64,
}

impl<M> Mapped<'_, M> {
    fn address(&self, mapping: Mapping, page: u64) -> u64 {
        self.base + (page + if mapping == Mapping::Private { PAGES } else { 0 }) * PAGE
    }
}

/// Every call on two pages. Cuts are between pages: what is stored behind the end in its page is the file's.
fn calls() -> Vec<Call> {
    let of_mapped = |mapping| {
        (0..2).flat_map(move |page| {
            [
                Call::Load(mapping, page),
                Call::Store(mapping, page, 5),
                Call::Map(mapping, page),
                Call::Unmap(mapping, page),
                Call::Protect(mapping, page, Protection::None),
                Call::Protect(mapping, page, Protection::Read),
                Call::Discard(mapping, page),
            ]
        })
    };
    let of_file = (0..PAGES).flat_map(|page| [Call::ReadAt(page), Call::WriteAt(page, 7)]);
    let sizes = [0, PAGE, 3 * PAGE].map(Call::Resize);
    let mapped = [Mapping::Shared, Mapping::Private].into_iter().flat_map(of_mapped);
    mapped.chain(of_file).chain(sizes).chain([Call::Size]).collect()
}

/// Makes a call; loads and stores as these two do.
fn make<M: MemoryOperations>(
    at: &Mapped<'_, M>,
    call: Call,
    load: impl Fn(u64) -> Result<u8, String>,
    store: impl Fn(u64, u8) -> Result<(), String>,
) -> Outcome {
    let memory = at.memory;
    let nothing = |done: Result<(), Errno>| done.map(|()| None).map_err(|errno| format!("{errno:?}"));
    let mut byte = [0];
    match call {
        Call::Load(mapping, page) => load(at.address(mapping, page) + IN_A_PAGE).map(|byte| Some(byte.into())),
        Call::Store(mapping, page, byte) => store(at.address(mapping, page) + IN_A_PAGE, byte).map(|()| None),
        Call::Map(mapping, page) => {
            let sharing = if mapping == Mapping::Shared { Sharing::Shared } else { Sharing::Private };
            let file = MappedObject::File { fd: FD, offset: page * PAGE, sharing };
            let place = Address::Fixed(at.address(mapping, page));
            nothing(memory::map(memory, place, PAGE, Protection::ReadWrite, file).map(|_| ()))
        }
        Call::Unmap(mapping, page) => nothing(memory::unmap(memory, at.address(mapping, page), PAGE)),
        Call::Protect(mapping, page, rights) => {
            nothing(memory::protect(memory, at.address(mapping, page), PAGE, rights))
        }
        Call::Discard(mapping, page) => nothing(memory::discard(memory, at.address(mapping, page), PAGE)),
        Call::ReadAt(page) => data::read_at(memory, FD, &mut byte, (page * PAGE + IN_A_PAGE) as i64)
            .map(|count| (count > 0).then(|| byte[0].into()))
            .map_err(|errno| format!("{errno:?}")),
        Call::WriteAt(page, byte) => {
            nothing(data::write_at(memory, FD, &[byte], (page * PAGE + IN_A_PAGE) as i64).map(|_| ()))
        }
        Call::Resize(size) => nothing(data::truncate(memory, FD, size as i64)),
        Call::Size => Ok(Some(data::stat(memory, FD, Fields::SIZE).unwrap().size_bytes)),
    }
}

fn signal<F>(error: &AccessError<F>) -> String {
    match error {
        AccessError::Segment => "SIGSEGV",
        AccessError::Bus => "SIGBUS",
        AccessError::OutOfMemory => "out of memory",
        AccessError::Fault(_) => unreachable!("nothing is far"),
    }
    .to_string()
}

/// Makes a call, with loads and stores by calls.
fn make_by_calls<M: MemoryOperations>(at: &Mapped<'_, M>, call: Call) -> Outcome {
    let load = |address| {
        let mut byte = [0];
        at.memory.load(address, &mut byte).map(|()| byte[0]).map_err(|error| signal(&error))
    };
    make(at, call, load, |address, byte| at.memory.store(address, &[byte]).map_err(|error| signal(&error)))
}

/// Makes a call, with loads and stores of the program's own, which touches a page until the host lets it.
fn make_by_pointers(at: &Mapped<'_, InProcess<'_, Spin>>, probe: &Probe, call: Call) -> Outcome {
    let touch = |address, access| match at.memory.touch(address, access) {
        Err(TouchError::Fault(Fault::Segment)) => Err("SIGSEGV".to_string()),
        Err(TouchError::Fault(Fault::Bus)) => Err("SIGBUS".to_string()),
        touched => Ok(touched),
    };
    let load = |address| loop {
        if let Some(byte) = probe.load(address) {
            return Ok(byte);
        }
        touch(address, MemoryAccess::Load)?.unwrap();
    };
    let store = |address, byte| loop {
        if probe.store(address, byte) {
            return Ok(());
        }
        if let Err(TouchError::EndsWithin) = touch(address, MemoryAccess::Store)? {
            return at.memory.store(address, &[byte]).map_err(|error| signal(&error));
        }
    };
    make(at, call, load, store)
}

/// A file of two pages, of which both mappings have a third; the private one has a copy of its own of the first.
fn prepare<M: MemoryOperations>(at: &Mapped<'_, M>) {
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = data::open(at.memory, Start::WorkingDirectory, b"f", flags, 0o600, DescriptorOptions::PLAIN).unwrap();
    assert_eq!(fd, FD);
    let pages = (0..2).flat_map(|page| [Call::WriteAt(page, 1 + page as u8)]);
    let mapped = [Mapping::Shared, Mapping::Private];
    let mapped = mapped.into_iter().flat_map(|mapping| (0..PAGES).map(move |page| Call::Map(mapping, page)));
    for call in pages.chain([Call::Resize(2 * PAGE)]).chain(mapped).chain([Call::Store(Mapping::Private, 0, 3)]) {
        make_by_calls(at, call).unwrap();
    }
}

/// What shows what is left.
fn looks() -> impl Iterator<Item = Call> {
    let of_page = |page| [Call::ReadAt(page), Call::Load(Mapping::Shared, page), Call::Load(Mapping::Private, page)];
    [Call::Size].into_iter().chain((0..PAGES).flat_map(of_page))
}

/// Ordinary maps and the process that calls.
#[derive(Clone)]
struct Maps {
    file_system: Plain,
    process: Process,
}

impl Maps {
    fn new() -> Maps {
        let file_system = Plain::default();
        let process = Process::new(&file_system, Credentials::SUPERUSER);
        prepare(&Mapped { memory: &file_system.begin(&process), base: BASE });
        Maps { file_system, process }
    }

    fn make(&self, call: Call) -> Outcome {
        make_by_calls(&Mapped { memory: &self.file_system.begin(&self.process), base: BASE }, call)
    }
}

type Plan = Vec<Vec<Call>>;

/// Whether the ordinary maps say so.
fn no_call_of_it_commutes(start: &Maps, plan: &Plan) -> bool {
    no_call_commutes(plan, |order| {
        let maps = start.clone();
        let outcomes = in_order(plan, order, |_, call| maps.make(*call));
        (outcomes, looks().map(|look| maps.make(look)).collect::<Vec<_>>())
    })
}

/// Lets a thread make each list of calls, with loads and stores by calls, and looks for their order.
#[allow(clippy::redundant_closure, reason = "the function itself is not general enough")]
fn explain(round: u64, plan: &Plan) {
    with_instance_for(1, 24, |instance| {
        let core = instance.core(3);
        let process = instance.process(&core);
        drop(core);
        explain_of(
            round,
            plan,
            instance.fs,
            &process,
            BASE,
            |number| instance.core(number),
            |at, call| make_by_calls(at, call),
        );
        process.exit(instance.fs, &instance.core(3), &Spin);
    });
}

/// As [`explain`], with a program's own loads and stores.
fn explain_pointers(round: u64, plan: &Plan) {
    let config = OwnedConfig { metadata_bytes: 2 << 20, page_count: 24, core_count: 4, hash_seed: 1 };
    let owned = OwnedScaleFs::create_mappable(config).unwrap();
    let core = |number| owned.claim_waiting(number, OwnerId::new(1).unwrap(), &sync::Spin).unwrap();
    let process = scalefs::Process::new(owned.file_system(), &core(3), Credentials::SUPERUSER).unwrap();
    let base = owned.open_window(&process, 2 * PAGES).unwrap();
    // Each with a pipe of its own: threads must not find each other's bytes.
    let make = |at: &Mapped<'_, InProcess<'_, Spin>>, call| make_by_pointers(at, &Probe::new(), call);
    explain_of(round, plan, owned.file_system(), &process, base, core, make);
    process.exit(owned.file_system(), &core(3), &Spin);
}

/// A call as steps of a thread, and what of a cut may happen beside them.
fn steps(cut: usize, made: &Made<Call, Outcome>) -> (Event<Step>, Vec<Event<Step>>) {
    let Made { operation, outcome, began, ended } = made;
    let event = |step| Event { steps: vec![step], began: *began, ended: *ended };
    if let Call::Resize(_) = operation {
        assert_eq!(*outcome, Ok(None), "nothing is in the way of {operation:?}");
    }
    let Call::Resize(size) = *operation else {
        let mut steps = event(Step::Call(*operation, outcome.clone()));
        let before = match *operation {
            Call::Store(Mapping::Private, page, _) => Some(Step::Copy(page as usize)),
            Call::Discard(mapping, page) => Some(Step::Forget(mapping, page as usize)),
            _ => None,
        };
        steps.steps.splice(0..0, before);
        return (steps, Vec::new());
    };
    let pages = (0..PAGES as usize).filter(|page| *page as u64 * PAGE >= size);
    let gone = |page| [Mapping::Shared, Mapping::Private].map(|mapping| event(Step::Gone(mapping, page, cut)));
    (event(Step::Resize(size, cut)), pages.flat_map(gone).collect())
}

fn explain_of<'a>(
    round: u64,
    plan: &Plan,
    fs: &ScaleFs,
    process: &scalefs::Process,
    base: u64,
    core: impl Fn(usize) -> Core<'a> + Sync,
    make: impl Fn(&Mapped<'_, InProcess<'_, Spin>>, Call) -> Outcome + Sync,
) {
    prepare(&Mapped { memory: &fs.enter(&core(3), process, &Spin), base });
    let (core_of, make_call) = (&core, &make);
    let made = play(plan, |thread| {
        let core = core_of(thread);
        move |call: &Call| make_call(&Mapped { memory: &fs.enter(&core, process, &Spin), base }, *call)
    });
    let (mut events, mut beside) = (Vec::new(), Vec::new());
    for (thread, made) in made.iter().enumerate() {
        let of = made.iter().enumerate().map(|(place, made)| steps(thread * 100 + place, made));
        let (of_thread, of_cuts): (Vec<_>, Vec<_>) = of.unzip();
        events.push(of_thread);
        beside.extend(of_cuts.into_iter().flatten().map(|gone| vec![gone]));
    }
    events.extend(beside);
    let core = core(3);
    let memory = &fs.enter(&core, process, &Spin);
    let looks: Vec<_> = looks().map(|call| (call, make(&Mapped { memory, base }, call))).collect();
    let at_the_end =
        |(call, outcome)| Event { steps: vec![Step::Call(call, outcome)], began: u64::MAX - 1, ended: u64::MAX };
    events.push(looks.into_iter().map(at_the_end).collect());
    expect_order(round, &events, &mapped_model::Mapped::default(), || told(&made));
    data::truncate(memory, FD, 0).unwrap();
    names::unlink(memory.objects(), Start::WorkingDirectory, b"f").unwrap();
}

#[test]
fn every_two_calls_have_an_order() {
    overtake_each(mattering(pairs(&calls()).collect::<Vec<_>>(), |_| true), explain);
}

#[test]
fn every_two_calls_that_do_not_commute_have_an_order_with_a_window() {
    let start = Maps::new();
    let matters = move |plan: &Plan| no_call_of_it_commutes(&start, plan);
    overtake_each(mattering(pairs(&calls()).collect::<Vec<_>>(), matters), explain_pointers);
}

fn of_few(check: fn(u64, &Plan)) {
    let start = Maps::new();
    let plans = move |number| {
        let start = start.clone();
        of_few_calls(proptest::sample::select(calls()))
            .prop_filter("no call commutes", move |plan| is_sample(number) || no_call_of_it_commutes(&start, plan))
    };
    overtake(history::plans(30).longer(20), plans, check);
}

#[test]
fn calls_that_are_overtaken_have_an_order() {
    of_few(explain);
}

#[test]
fn calls_that_are_overtaken_have_an_order_with_a_window() {
    of_few(explain_pointers);
}
