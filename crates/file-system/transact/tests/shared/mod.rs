//! Transactions of several cores over ScaleFS, and calls outside any: an order of all of them must give in ordinary maps
//! what they gave, each transaction as one step.

use std::hash::{Hash, Hasher};

use history::{
    Event, State, expect_order, explore, in_order, is_sample, mattering, no_call_commutes, of_few_calls, overtake,
    overtake_and_repeat, overtake_each, pairs, play, rounds, told,
};
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
#[derive(Clone, Debug, PartialEq)]
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

/// What rests on more than names, or changes it.
fn any_other_call() -> impl Strategy<Value = Call> {
    let name = || prop::sample::select(&NAMES[..]);
    prop_oneof![
        2 => name().prop_map(|name| Call::Stat(name, Follow::Nothing, Fields::IDENTITY | Fields::LINK_COUNT)),
        2 => name().prop_map(|name| Call::Stat(name, Follow::Nothing, Fields::IDENTITY | Fields::PERMISSIONS)),
        2 => (name(), prop::sample::select(&[0o600, 0o644][..])).prop_map(|(name, mode)| Call::ChangeMode(name, mode)),
        1 => (name(), 1..3_i64).prop_map(|(name, time)| Call::SetTimes(name, -time)),
        1 => name().prop_map(Call::TimeSet),
        1 => prop::sample::select(&["d/../n", "m/..", "d/n/.."][..]).prop_map(Call::Exists),
    ]
}

/// What is atomic in transactions alone.
fn any_listing() -> impl Strategy<Value = Call> {
    prop::sample::select(&[".", "d"][..]).prop_map(Call::List)
}

fn any_action() -> impl Strategy<Value = Action> {
    let alone = prop_oneof![2 => any_call(), 1 => any_other_call()];
    let together = prop_oneof![4 => any_call(), 2 => any_other_call(), 1 => any_listing()];
    prop_oneof![1 => alone.prop_map(Action::Alone), 2 => vec(together, 1..4).prop_map(Action::Together)]
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

impl Action {
    fn calls(&self) -> &[Call] {
        match self {
            Action::Alone(call) => std::slice::from_ref(call),
            Action::Together(calls) => calls,
        }
    }
}

impl State for Maps {
    type Step = (Action, Outcome);

    fn take(&mut self, _: usize, (action, outcome): &(Action, Outcome)) -> bool {
        let Some(outcome) = outcome else { return true };
        let make = |call: &Call| perform(&self.file_system.begin(&self.process), *call, 0);
        action.calls().iter().zip(outcome).all(|(call, told)| make(call) == *told)
    }
}

/// What shows what is left: of a file its links and rights.
fn looks() -> [Action; NAMES.len()] {
    let fields = Fields::LINK_COUNT | Fields::PERMISSIONS;
    NAMES.map(|name| Action::Alone(Call::Stat(name, Follow::Nothing, fields)))
}

/// Whether ordinary maps say so, in which each action is one step.
fn no_action_of_it_commutes(plan: &Plan) -> bool {
    no_call_commutes(plan, |order| {
        let maps = Maps::new();
        let make = |action: &Action| -> Vec<_> {
            action.calls().iter().map(|call| perform(&maps.file_system.begin(&maps.process), *call, 0)).collect()
        };
        let outcomes = in_order(plan, order, |_, action| make(action));
        (outcomes, looks().map(|look| make(&look)))
    })
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
                        Ok(told)
                    });
                    match all {
                        Ok(told) => Some(told),
                        Err(Errno::ECANCELED) => None,
                        Err(other) => panic!("a transaction ends with {other}"),
                    }
                }
            };
            if maintains {
                fs.maintain(&core, &Spin);
            }
            outcome
        }
    });
    let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(history::Made::event).collect()).collect();
    // So few others are in the way of no transaction eight times.
    let has_happened = |made: &history::Made<_, Outcome>| made.outcome.is_some();
    assert!(maintains || made.iter().flatten().all(has_happened), "{}", history::told(&made));
    // What is left is looked at in the end: no plan has to do so.
    let look = |look: Action| {
        let told = look.calls().iter().map(|call| perform(&fs.begin(&core, &context, &Spin), *call, 0)).collect();
        Event { steps: vec![(look, Some(told))], began: u64::MAX - 1, ended: u64::MAX }
    };
    let looks: Vec<_> = looks().into_iter().map(look).collect();
    events.push(looks);
    expect_order(number, &events, &Maps::new(), || told(&made));
}

#[test]
fn transactions_and_calls_of_several_cores_have_an_order() {
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
        of_few_calls(any_action()).prop_filter("no action commutes", matters)
    };
    overtake(history::plans(10).longer(20), plans, explain_calls_alone);
}

/// Every two actions of one call each, of which one is a transaction at least.
fn every_two() -> impl Iterator<Item = Plan> {
    let of = |name| {
        let fields = Fields::IDENTITY | Fields::LINK_COUNT | Fields::PERMISSIONS;
        [
            Call::Create(name),
            Call::CreateNew(name),
            Call::Unlink(name),
            Call::MakeDirectory(name),
            Call::RemoveDirectory(name),
            Call::Exists(name),
            Call::Stat(name, Follow::Nothing, fields),
            Call::ChangeMode(name, 0o600),
        ]
    };
    let of_two = [("n", "m"), ("m", "n"), ("n", "d/n"), ("d/n", "n"), ("d/n", "m")];
    let of_two = of_two.into_iter().flat_map(|(old, new)| {
        [Call::Link(old, new), Call::Rename(old, new), Call::RenameNew(old, new), Call::Exchange(old, new)]
    });
    let calls: Vec<Call> = NAMES.into_iter().flat_map(of).chain(of_two).collect();
    let together: Vec<Action> = calls.iter().map(|call| Action::Together(vec![*call])).collect();
    let with_one_alone = together.clone().into_iter().flat_map(move |first| {
        calls.clone().into_iter().map(move |second| vec![vec![first.clone()], vec![Action::Alone(second)]])
    });
    pairs(&together).collect::<Vec<_>>().into_iter().chain(with_one_alone)
}

#[test]
fn every_two_actions_that_do_not_commute_have_an_order() {
    overtake_each(mattering(every_two(), no_action_of_it_commutes), explain_calls_alone);
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

/// One does something and then looks for a name, which a transaction makes that has seen what was before.
fn look_after(done: Call, seen: Call) -> Plan {
    vec![
        vec![Action::Alone(done), Action::Alone(Call::Exists("m"))],
        vec![Action::Together(vec![seen, Call::CreateNew("m")])],
    ]
}

fn listing_beside_creation() -> Plan {
    look_after(Call::CreateNew("d/m"), Call::List("d"))
}

fn count_beside_link() -> Plan {
    look_after(Call::Link("n", "d/n"), Call::Stat("n", Follow::Nothing, Fields::IDENTITY | Fields::LINK_COUNT))
}

fn permissions_beside_change() -> Plan {
    look_after(Call::ChangeMode("n", 0o600), Call::Stat("n", Follow::Nothing, Fields::IDENTITY | Fields::PERMISSIONS))
}

/// One changes permissions and then looks for a name that comes with other permissions.
fn permissions_with_names() -> Plan {
    let look = |name, fields| Action::Alone(Call::Stat(name, Follow::Nothing, Fields::IDENTITY | fields));
    vec![
        vec![look("n", Fields::PERMISSIONS), look("m", Fields::IDENTITY), look("d", Fields::PERMISSIONS)],
        vec![Action::Together(vec![
            Call::ChangeMode("n", 0o600),
            Call::CreateNew("m"),
            Call::ChangeMode("d", 0o700),
            Call::SetTimes("n", -7),
        ])],
    ]
}

/// Two looks at times, between which a name is seen that comes with other times.
fn times_with_names() -> Plan {
    let looks = [Call::TimeSet("n"), Call::Exists("m"), Call::TimeSet("n")];
    vec![looks.map(Action::Alone).to_vec(), vec![Action::Together(vec![Call::SetTimes("n", -7), Call::CreateNew("m")])]]
}

/// A name that is gone when its file has other times.
fn times_of_a_name_that_goes() -> Plan {
    vec![
        vec![Action::Alone(Call::Stat("n", Follow::Nothing, Fields::IDENTITY | Fields::PERMISSIONS))],
        vec![Action::Together(vec![Call::SetTimes("n", -1), Call::Rename("n", "d/m")])],
    ]
}

#[test]
fn who_looks_and_makes_is_one_step() {
    let rounds = if cfg!(shuttle) { 300 } else { 50 };
    let beside = [listing_beside_creation(), count_beside_link(), permissions_beside_change()];
    let others =
        [skew(), look_after_making(), permissions_with_names(), times_with_names(), times_of_a_name_that_goes()];
    for plan in beside.into_iter().chain(others) {
        overtake_and_repeat(rounds, plan, explain);
    }
}

#[cfg(shuttle)]
#[test]
fn commits_are_open_while_all_is_asked_for() {
    for plan in [listing_beside_creation(), count_beside_link(), permissions_beside_change()] {
        let mutant = "transact: changes are not open while all is asked for";
        sync::mutant::must_be_caught(mutant, || overtake_and_repeat(20_000, plan, explain));
    }
}

#[cfg(shuttle)]
#[test]
fn times_that_are_set_are_closed_before_the_decision() {
    let mutant = "scalefs: times that are set are closed after the decision";
    sync::mutant::must_be_caught(mutant, || overtake_and_repeat(20_000, times_with_names(), explain));
}

#[cfg(shuttle)]
#[test]
fn what_a_call_sees_of_a_file_it_sees_while_that_has_the_name() {
    let mutant = "scalefs: who looks at a file forgets the name";
    sync::mutant::must_be_caught(mutant, || overtake_and_repeat(20_000, times_of_a_name_that_goes(), explain));
}

#[cfg(shuttle)]
#[test]
fn observers_revoke() {
    for plan in [listing_beside_creation(), count_beside_link(), permissions_beside_change()] {
        sync::mutant::must_be_caught("commit: observers do not revoke", || overtake_and_repeat(20_000, plan, explain));
    }
}
