//! Transactions with data of several cores over ScaleFS, and calls outside any: an order of all of them must give in
//! ordinary maps what they gave, each transaction as one step.
#![cfg(not(loom))]

mod data_calls;
#[path = "../../scalefs/tests/instance/mod.rs"]
mod instance;

use std::hash::{Hash, Hasher};

use data_calls::{Call, perform, prepare};
use history::{State, explore, is_linearisable, of_few_calls, overtake, play, repeat, rounds};
use instance::with_instance;
use plain::Plain;
use posix_calls::{Credentials, Errno};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::InProcess;
use sync::Spin;
use transact::{Sharing, Transactional, WithData};

/// What a thread does at a time.
#[derive(Clone, Debug)]
enum Action {
    Alone(Call),
    Together(Vec<Call>),
}

/// What each call gave; nothing if nothing has happened.
type Outcome = Option<Vec<Result<String, Errno>>>;

type Plan = Vec<Vec<Action>>;

/// Offsets in the first page of `f`, in its second one, in which it ends, and behind.
const OFFSETS: [i64; 4] = [0, 4_100, 5_990, 9_000];

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
    prop_oneof![1 => any_call().prop_map(Action::Alone), 2 => vec(together, 1..4).prop_map(Action::Together)]
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
        prepare(|call| perform(&file_system.begin(&process), call));
        Maps { file_system, process }
    }
}

impl State for Maps {
    type Step = (Action, Outcome);

    fn take(&mut self, _: usize, (action, outcome): &(Action, Outcome)) -> bool {
        let Some(outcome) = outcome else { return true };
        let calls = match action {
            Action::Alone(call) => std::slice::from_ref(call),
            Action::Together(calls) => calls,
        };
        calls.iter().zip(outcome).all(|(made, told)| perform(&self.file_system.begin(&self.process), made) == *told)
    }
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
    let mut made = Vec::new();
    with_instance(64, |world| {
        let fs = world.fs;
        let setup = world.core(3);
        let process = world.process(&setup);
        prepare(|call| perform(&fs.enter(&setup, &process, &Spin), call));
        made = play(plan, |thread| {
            let core = world.core(thread);
            let process = &process;
            move |action: &Action| {
                let enter = || fs.enter(&core, process, &Spin);
                let outcome = match action {
                    Action::Alone(call) => Some(vec![perform(&enter(), call)]),
                    Action::Together(calls) => together(enter, calls),
                };
                if maintains {
                    fs.maintain(&core, &Spin);
                }
                outcome
            }
        });
        for call in data_calls::PATHS.map(Call::Unlink) {
            let _ = perform(&fs.enter(&setup, &process, &Spin), &call);
        }
        process.exit(fs, &setup, &Spin);
    });
    let events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(history::Made::event).collect()).collect();
    assert!(is_linearisable(&events, &Maps::new()), "no order explains round {number}:\n{}", history::told(&made));
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
    overtake(history::plans(10).longer(2), |_| of_few_calls(any_action()), explain_calls_alone);
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
