//! Transactions with data of several cores over ScaleFS, and calls outside any: an order of all of them must give in
//! ordinary maps what they gave, each transaction as one step.
#![cfg(not(loom))]

mod data_calls;
#[allow(dead_code)]
#[path = "../../scalefs/tests/instance/mod.rs"]
mod instance;

use std::hash::{Hash, Hasher};

use data_calls::{Call, perform, prepare};
use history::{
    Event, State, expect_order, explore, in_order, is_sample, mattering, no_call_commutes, of_few_calls, overtake,
    overtake_each, pairs, play, repeat, rounds, told,
};
use instance::with_instance_for;
use plain::Plain;
use posix_calls::data::Whence;
use posix_calls::memory::{self as memory_calls, Address, MappedObject};
use posix_calls::{Credentials, Errno, MemoryOperations, Protection};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::InProcess;
use sync::Spin;
use transact::{Sharing, Transactional, WithData};

/// What a thread does at a time.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Alone(Call),
    Together(Vec<Call>),
    /// Of a byte of `f`, which is mapped.
    Load(u64),
    Store(u64, u8),
}

/// What each call gave; nothing if nothing has happened.
type Outcome = Option<Vec<Result<String, Errno>>>;

type Plan = Vec<Vec<Action>>;

/// Offsets in the first page of `f`, in its second one, in which it ends, and behind.
const OFFSETS: [i64; 4] = [0, 4_100, 5_990, 9_000];
/// In each page, behind what calls write; and where `f` is mapped.
const MAPPED: [u64; 2] = [30, 4_130];
const BASE: u64 = 1 << 30;

/// What is one step outside transactions, too: of one page.
fn any_call() -> impl Strategy<Value = Call> {
    let fd = || prop::sample::select(&[0_u32, 0, 2][..]);
    let offset = || prop::sample::select(&OFFSETS[..]);
    let byte = || 1..4_u8;
    prop_oneof![
        4 => (fd(), offset()).prop_map(|(fd, offset)| Call::ReadAt(fd, 20, offset)),
        4 => (fd(), offset(), byte()).prop_map(|(fd, offset, byte)| Call::WriteAt(fd, 20, byte, offset)),
        1 => byte().prop_map(|byte| Call::Write(1, 10, byte)),
        2 => Just(Call::Read(0, 20)),
        1 => Just(Call::Seek(0, 0, Whence::Current)),
        1 => byte().prop_map(|byte| Call::Write(2, 20, byte)),
        2 => (fd(), prop::sample::select(&[0, 10, 4_096, 5_995, 9_000][..])).prop_map(|(fd, size)| Call::Truncate(fd, size)),
        2 => prop::sample::select(&["f", "g", "n"][..]).prop_map(Call::Size),
        1 => prop::sample::select(&[("g", "n"), ("n", "g")][..]).prop_map(|(old, new)| Call::Rename(old, new)),
    ]
}

/// What is one step in transactions alone.
fn any_long_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => Just(Call::ReadAt(0, 10_000, 0)),
        1 => (1..4_u8).prop_map(|byte| Call::WriteAt(0, 8_000, byte, 1_000)),
    ]
}

fn any_action() -> impl Strategy<Value = Action> {
    let together = prop_oneof![4 => any_call(), 1 => any_long_call()];
    let at = || prop::sample::select(&MAPPED[..]);
    prop_oneof![
        4 => any_call().prop_map(Action::Alone),
        8 => vec(together, 1..4).prop_map(Action::Together),
        1 => at().prop_map(Action::Load),
        1 => (at(), 1..4_u8).prop_map(|(at, byte)| Action::Store(at, byte)),
    ]
}

/// Ordinary maps and the process that calls.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Maps {
    file_system: Plain,
    process: plain::Process,
}

impl Hash for Maps {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.file_system, &self.process).hash(hasher);
    }
}

impl Maps {
    fn new() -> Maps {
        let file_system = Plain::default();
        let process = plain::Process::new(&file_system, Credentials::SUPERUSER);
        furnish(&file_system.begin(&process));
        Maps { file_system, process }
    }

    fn act(&self, action: &Action) -> Vec<Result<String, Errno>> {
        act(&self.file_system.begin(&self.process), action)
    }
}

/// What [`prepare`] makes, and `f` mapped.
fn furnish<M: MemoryOperations>(memory: &M) {
    prepare(|call| perform(memory, call));
    let file = MappedObject::File { fd: 0, offset: 0, sharing: posix_calls::Sharing::Shared };
    memory_calls::map(memory, Address::Fixed(BASE), 8_192, Protection::ReadWrite, file).unwrap();
}

/// Does an action outside of transactions.
fn act<M: MemoryOperations>(memory: &M, action: &Action) -> Vec<Result<String, Errno>> {
    let mut byte = [0];
    match action {
        Action::Alone(call) => vec![perform(memory, call)],
        Action::Together(calls) => calls.iter().map(|call| perform(memory, call)).collect(),
        Action::Load(at) => {
            let loaded = memory.load(BASE + at, &mut byte);
            vec![loaded.map(|()| format!("{}", byte[0])).map_err(|_| Errno::EFAULT)]
        }
        Action::Store(at, byte) => {
            let stored = memory.store(BASE + at, &[*byte]);
            vec![stored.map(|()| String::new()).map_err(|_| Errno::EFAULT)]
        }
    }
}

impl State for Maps {
    type Step = (Action, Outcome);

    fn take(&mut self, _: usize, (action, outcome): &(Action, Outcome)) -> bool {
        outcome.as_ref().is_none_or(|outcome| self.act(action) == *outcome)
    }
}

/// What shows what is left: of both files their bytes, and the offset of one.
fn last_looks() -> [Action; 4] {
    [Call::Size("f"), Call::ReadAt(0, 10_000, 0), Call::ReadAt(2, 10_000, 0), Call::Read(0, 20)].map(Action::Alone)
}

/// Whether ordinary maps say so, in which each action is one step.
fn no_action_of_it_commutes(plan: &Plan) -> bool {
    no_call_commutes(plan, |order| {
        let maps = Maps::new();
        let outcomes = in_order(plan, order, |_, action| maps.act(action));
        (outcomes, last_looks().map(|look| maps.act(&look)))
    })
}

/// Makes calls in a transaction.
fn together<'c>(enter: impl Fn() -> InProcess<'c, Spin>, calls: &[Call]) -> Outcome {
    let all = Transactional::new(Sharing::Shared, || WithData(enter())).attempts(8).transaction(|t| {
        let told: Vec<_> = calls.iter().map(|call| perform(&t.begin(), call)).collect();
        Ok(told)
    });
    match all {
        Ok(told) => Some(told),
        Err(Errno::ECANCELED) => None,
        Err(other) => panic!("a transaction ends with {other}"),
    }
}

/// As `explain`, but that no core maintains meanwhile: words that all maintain are where threads would be overtaken most.
fn explain_calls_alone(number: u64, plan: &Plan) {
    explain_if(false, number, plan);
}

fn explain(number: u64, plan: &Plan) {
    explain_if(true, number, plan);
}

/// Lets a thread do each list of actions, and looks for their order.
fn explain_if(maintains: bool, number: u64, plan: &Plan) {
    let (mut made, mut left) = (Vec::new(), Vec::new());
    with_instance_for(1, 64, |world| {
        let fs = world.fs;
        let setup = world.core(3);
        let process = world.process(&setup);
        furnish(&fs.enter(&setup, &process, &Spin));
        made = play(plan, |thread| {
            let core = world.core(thread);
            let process = &process;
            move |action: &Action| {
                let enter = || fs.enter(&core, process, &Spin);
                let outcome = match action {
                    Action::Together(calls) => together(enter, calls),
                    alone => Some(act(&enter(), alone)),
                };
                if maintains {
                    fs.maintain(&core, &Spin);
                }
                outcome
            }
        });
        // What is left is looked at in the end: no plan has to do so.
        let look = |look: Action| {
            let told = act(&fs.enter(&setup, &process, &Spin), &look);
            Event { steps: vec![(look, Some(told))], began: u64::MAX - 1, ended: u64::MAX }
        };
        left.extend(last_looks().map(look));
        for call in data_calls::PATHS.map(Call::Unlink) {
            let _ = perform(&fs.enter(&setup, &process, &Spin), &call);
        }
        process.exit(fs, &setup, &Spin);
    });
    let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(history::Made::event).collect()).collect();
    // So few others are in the way of no transaction eight times.
    let has_happened = |made: &history::Made<_, Outcome>| made.outcome.is_some();
    assert!(maintains || made.iter().flatten().all(has_happened), "{}", history::told(&made));
    events.push(left);
    expect_order(number, &events, &Maps::new(), || told(&made));
}

#[test]
fn transactions_with_data_have_an_order() {
    explore(
        rounds(if cfg!(shuttle) { 400 } else { 100 }),
        |number| vec(vec(any_action(), 1..4), 2 + number as usize % 2),
        explain,
    );
}

#[test]
fn transactions_and_calls_that_are_overtaken_have_an_order() {
    let plans = |number| {
        let matters = move |plan: &Plan| is_sample(number) || no_action_of_it_commutes(plan);
        of_few_calls(any_action())
            .prop_filter("no action commutes", matters)
            .prop_filter("a store is cut away by who has read", |plan: &Plan| !may_lose_a_store(plan))
    };
    overtake(history::plans(10).longer(20), plans, explain_calls_alone);
}

/// Whether a store may be under way while a transaction that has read its page cuts that away: then it may be lost, see
/// "Differences from single calls" in `docs/reference/transactions.md`.
fn may_lose_a_store(plan: &Plan) -> bool {
    let stores = plan.iter().flatten().any(|action| matches!(action, Action::Store(..)));
    let cuts_what_it_read = |action: &Action| {
        let Action::Together(calls) = action else { return false };
        let reads = calls.iter().any(|call| matches!(call, Call::ReadAt(..) | Call::Read(..)));
        reads && calls.iter().any(|call| matches!(call, Call::Truncate(..)))
    };
    stores && plan.iter().flatten().any(cuts_what_it_read)
}

/// Every two actions of one call each, of which one is a transaction at least.
fn every_two() -> impl Iterator<Item = Plan> {
    let of = |fd: u32| {
        let at = move |offset| [Call::ReadAt(fd, 20, offset), Call::WriteAt(fd, 20, 1 + fd as u8, offset)];
        let sizes = [0, 10, 9_000].map(|size| Call::Truncate(fd, size));
        [0, 4_100, 9_000].into_iter().flat_map(at).chain(sizes)
    };
    let others = [
        Call::Write(1, 10, 3),
        Call::Read(0, 20),
        Call::Seek(0, 0, Whence::Current),
        Call::Size("f"),
        Call::Size("n"),
        Call::Rename("g", "n"),
    ];
    let calls: Vec<Call> = of(0).chain(of(2)).chain(others).collect();
    let alone = |call: &Call| Action::Alone(call.clone());
    let mapped = MAPPED.into_iter().flat_map(|at| [Action::Load(at), Action::Store(at, 7)]);
    let together: Vec<Action> = calls.iter().map(|call| Action::Together(vec![call.clone()])).collect();
    let all: Vec<Action> = calls.iter().map(alone).chain(mapped).collect();
    let with_one_alone = together
        .clone()
        .into_iter()
        .flat_map(move |first| all.clone().into_iter().map(move |second| vec![vec![first.clone()], vec![second]]));
    pairs(&together).collect::<Vec<_>>().into_iter().chain(with_one_alone)
}

#[test]
fn every_two_actions_that_do_not_commute_have_an_order() {
    // What is stored to a page that a transaction replaces commutes with it, if it changes other bytes, and is not free of conflicts.
    let is_of_memory = |plan: &Plan| plan.iter().flatten().any(|action| matches!(action, Action::Store(..)));
    let matters = move |plan: &Plan| is_of_memory(plan) || no_action_of_it_commutes(plan);
    overtake_each(mattering(every_two(), matters), explain_calls_alone);
}

/// Each writes where the other has read: `f` and `g`, since commits that change one file exclude each other.
fn skew() -> Plan {
    let one = |seen, written| vec![Action::Together(vec![Call::ReadAt(seen, 20, 0), Call::WriteAt(written, 20, 1, 0)])];
    vec![one(0, 2), one(2, 0)]
}

/// Each makes the file that the other has asked for longer.
fn skew_of_sizes() -> Plan {
    let one = |path, fd| vec![Action::Together(vec![Call::Size(path), Call::WriteAt(fd, 20, 1, 9_000)])];
    vec![one("f", 2), one("g", 0)]
}

/// One looks at both files, at each end, while another changes all of them.
fn looks() -> Plan {
    let alone = |call| Action::Alone(call);
    vec![
        vec![alone(Call::ReadAt(0, 20, 5_990)), alone(Call::Size("g")), alone(Call::ReadAt(0, 20, 0))],
        vec![Action::Together(vec![
            Call::WriteAt(0, 20, 1, 0),
            Call::Truncate(0, 5_000),
            Call::WriteAt(2, 20, 2, 4_100),
            Call::WriteAt(0, 20, 3, 9_000),
        ])],
    ]
}

/// A cut takes what a transaction has read.
fn cut_beside_read() -> Plan {
    vec![
        vec![Action::Alone(Call::WriteAt(2, 20, 1, 0)), Action::Alone(Call::ReadAt(0, 20, 4_100))],
        vec![Action::Together(vec![Call::Size("g"), Call::Truncate(0, 0)])],
    ]
}

/// Each reads what comes next at one offset.
fn reads_in_turn() -> Plan {
    let one = || {
        vec![Action::Together(vec![Call::Read(0, 20), Call::WriteAt(0, 20, 1, 0)]), Action::Alone(Call::Read(0, 20))]
    };
    vec![one(), one()]
}

#[test]
fn who_looks_and_writes_is_one_step() {
    let rounds = if cfg!(shuttle) { 300 } else { 50 };
    for plan in [skew(), skew_of_sizes(), looks(), cut_beside_read(), reads_in_turn()] {
        repeat(rounds, plan, explain);
    }
}

#[cfg(shuttle)]
mod faults {
    use sync::mutant::must_be_caught;

    use super::*;

    #[test]
    fn observers_revoke() {
        for plan in [skew(), skew_of_sizes()] {
            must_be_caught("commit: observers do not revoke", || repeat(20_000, plan, explain));
        }
    }

    #[test]
    fn offsets_are_asked_for_again() {
        must_be_caught("transact: offsets are not asked for again", || repeat(2_000, reads_in_turn(), explain));
    }

    #[test]
    fn what_stays_of_a_page_is_copied() {
        let write = Action::Together(vec![Call::WriteAt(0, 20, 1, 0)]);
        let plan = vec![vec![write, Action::Alone(Call::ReadAt(0, 20, 30))]];
        must_be_caught("scalefs: a page that changes loses what stays", || repeat(10, plan, explain));
    }
}
