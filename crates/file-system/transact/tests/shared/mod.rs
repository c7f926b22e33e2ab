//! Transactions of several cores over ScaleFS, and calls outside any: an order of all of them must give in ordinary maps
//! what they gave, each transaction as one step.

use std::hash::{Hash, Hasher};

use history::{Event, State, explore, is_linearisable, play, repeat, rounds};
use percpu::testing::World;
use plain::{Plain, Process};
use posix_calls::{Credentials, Errno, Fields, Follow, ObjectOperations, Start, directories};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::{Context, ScaleFs, ScaleFsConfig};
use sync::Spin;
use transact::{Sharing, Transactional};

use crate::interleaved::calls::{Call, perform};

/// So few that most calls are about the same names.
const NAMES: [&str; 4] = ["n", "m", "d/n", "d/m"];

/// What a thread does at a time.
#[derive(Clone, Debug)]
enum Action {
    Alone(Call),
    Together(Vec<Call>),
}

/// What each call gave; nothing if nothing has happened.
type Outcome = Option<Vec<Result<String, Errno>>>;

type Plan = Vec<Vec<Action>>;

fn any_call() -> impl Strategy<Value = Call> {
    let name = || prop::sample::select(&NAMES[..]);
    let two = || (name(), name());
    prop_oneof![
        1 => name().prop_map(Call::Open),
        1 => name().prop_map(Call::Create),
        3 => name().prop_map(Call::CreateNew),
        2 => two().prop_map(|(old, new)| Call::Link(old, new)),
        1 => name().prop_map(Call::Symlink),
        3 => name().prop_map(Call::Unlink),
        1 => name().prop_map(Call::MakeDirectory),
        1 => name().prop_map(Call::RemoveDirectory),
        2 => two().prop_map(|(old, new)| Call::Rename(old, new)),
        1 => two().prop_map(|(old, new)| Call::RenameNew(old, new)),
        1 => two().prop_map(|(old, new)| Call::Exchange(old, new)),
        3 => name().prop_map(Call::Exists),
        1 => name().prop_map(|name| Call::Stat(name, Follow::Nothing, Fields::IDENTITY)),
    ]
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![1 => any_call().prop_map(Action::Alone), 2 => vec(any_call(), 1..4).prop_map(Action::Together)]
}

/// Ordinary maps and the process that calls.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Maps {
    file_system: Plain,
    process: Process,
}

impl Hash for Maps {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.file_system, &self.process).hash(hasher);
    }
}

fn furnish<V: ObjectOperations>(call: &V) {
    directories::make_directory(call, Start::WorkingDirectory, b"d", 0o755).unwrap();
    perform(call, Call::CreateNew("n"), 0).unwrap();
}

impl Maps {
    fn new() -> Maps {
        let file_system = Plain::default();
        let process = Process::new(&file_system, Credentials::SUPERUSER);
        furnish(&file_system.begin(&process));
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
        calls.iter().zip(outcome).all(|(made, told)| perform(&self.file_system.begin(&self.process), *made, 0) == *told)
    }
}

/// Lets a thread do each list of actions, and looks for their order.
fn explain(number: u64, plan: &Plan) {
    let world = World::new(plan.len() + 1);
    let config = ScaleFsConfig {
        hash_seed: number,
        root_bucket_count: 4,
        directory_bucket_count: 2,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let core = world.core(plan.len());
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    furnish(&fs.begin(&core, &context, &Spin));
    let made = play(plan, |thread| {
        let core = world.core(thread);
        let context = Context::new(fs, &core, Credentials::SUPERUSER);
        move |action: &Action| {
            let begin = || fs.begin(&core, &context, &Spin);
            let outcome = match action {
                Action::Alone(call) => Some(vec![perform(&begin(), *call, 0)]),
                Action::Together(calls) => {
                    let all = Transactional::new(Sharing::Shared, begin).attempts(8).transaction(|t| {
                        let told: Vec<_> = calls.iter().map(|call| perform(&t.begin(), *call, 0)).collect();
                        // Some renamings of directories.
                        if told.contains(&Err(Errno::EOPNOTSUPP)) { Err(Errno::EOPNOTSUPP) } else { Ok(told) }
                    });
                    match all {
                        Ok(told) => Some(told),
                        Err(Errno::ECANCELED | Errno::EOPNOTSUPP) => None,
                        Err(other) => panic!("a transaction ends with {other}"),
                    }
                }
            };
            fs.maintain(&core, &Spin);
            outcome
        }
    });
    let of = |one: &history::Made<Action, Outcome>| Event {
        steps: vec![(one.operation.clone(), one.outcome.clone())],
        began: one.began,
        ended: one.ended,
    };
    let events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(of).collect()).collect();
    assert!(is_linearisable(&events, &Maps::new()), "no order explains round {number}:\n{}", history::told(&made));
}

#[test]
fn transactions_and_calls_of_several_cores_have_an_order() {
    explore(
        rounds(if cfg!(shuttle) { 400 } else { 100 }),
        |number| vec(vec(any_action(), 1..4), 2 + number as usize % 2),
        explain,
    );
}

/// Each makes a name if the other's is not there: never both.
fn skew() -> Plan {
    let one = |seen, made| vec![Action::Together(vec![Call::Exists(seen), Call::CreateNew(made)])];
    vec![one("m", "d/n"), one("d/n", "m")]
}

/// One makes a name and then looks for another, which a transaction makes if it does not see the first.
fn look_after_making() -> Plan {
    vec![
        vec![Action::Alone(Call::CreateNew("m")), Action::Alone(Call::Exists("d/n"))],
        vec![Action::Together(vec![Call::Exists("m"), Call::CreateNew("d/n")])],
    ]
}

#[test]
fn who_looks_and_makes_is_one_step() {
    let rounds = if cfg!(shuttle) { 300 } else { 50 };
    repeat(rounds, skew(), explain);
    repeat(rounds, look_after_making(), explain);
}

#[cfg(shuttle)]
#[test]
fn names_that_were_seen_are_locked() {
    for plan in [skew(), look_after_making()] {
        sync::mutant::must_be_caught("transact: seen names are not locked", || repeat(20_000, plan, explain));
    }
}
