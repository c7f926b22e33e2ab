//! Concurrent histories: two to four threads make a few calls at the same time, and there must be an order of all their
//! steps, in keeping with which ended before which began, in which the plain reference returns the same.
//!
//! **The relaxed specification.** A call is one step, but (docs/reference/scalefs.md, "Names, paths, directories"):
//!
//! - A walk along a path goes through each component, and follows each symbolic link, at a moment of its own; what is
//!   looked up and changed at the end of a call's paths is one step.
//! - A listing finds its directory, and then looks at each name at a moment of its own, of one of the calls that it is
//!   made by. A name that is told twice was away in between.
#![cfg(not(loom))]

mod reference;
mod rights;
mod space;
mod times;
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use history::threads::{self, Barrier, Clock};
use history::{
    Event, State, and_look, expect_order, explore, in_order, is_linearisable, is_sample, mattering, no_call_commutes,
    of_few_calls, overtake, overtake_and_repeat, overtake_first, pairs, play, rounds,
};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use reference::{
    Answer, Bijection, Call, Caller, Outcome, Reference, Route, any_call, call, create_new, open_directory, start, tell,
};
use scalefs::names::RenameMode;
use scalefs::{
    Context, Credentials, Errno, Follow, Kind, ObjectOperations, OpenFlags, ScaleFs, ScaleFsConfig, Start, attributes,
    directories, names,
};
use sync::Spin;
use walks::{look_up, walk_on};

/// The plain reference, which numbers of files correspond, how far the threads' walks have come, and which directories
/// the listings have found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Names {
    reference: Reference,
    numbers: Bijection,
    walks: BTreeMap<usize, Vec<Route>>,
    listed: BTreeMap<usize, u64>,
}

/// The most names that a test draws: `n0`, `n1`, and so on.
const NAME_COUNT: u8 = 12;

/// What a thread did, with what it saw.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Call(Call, Outcome),
    /// Finds the directory of a listing, which has a number.
    OpenDirectory(usize, Call, Result<(), Errno>),
    /// A listing has told a name with its kind, or has not told it.
    Tell(usize, String, Option<u8>),
}

impl Names {
    fn routes(&self, thread: usize, call: &Call) -> Vec<Route> {
        self.walks.get(&thread).cloned().unwrap_or_else(|| self.reference.routes(thread, call))
    }
}

impl State for Names {
    type Step = Step;

    fn take(&mut self, thread: usize, step: &Step) -> bool {
        match step {
            Step::Call(call, outcome) => {
                let routes = self.routes(thread, call);
                self.walks.remove(&thread);
                let expected = self.reference.call_from(thread, call, &routes);
                self.numbers.same(outcome, &expected)
            }
            Step::OpenDirectory(listing, call, outcome) => {
                let found = self.reference.directory(&self.routes(thread, call)[0]);
                self.walks.remove(&thread);
                if let Ok(directory) = found {
                    self.listed.insert(*listing, directory);
                }
                found.map(|_| ()) == *outcome
            }
            Step::Tell(listing, name, kind) => {
                look_up(&self.reference, self.listed[listing], name).map(|seen| seen.kind as u8) == *kind
            }
        }
    }

    fn only_looks(step: &Step) -> bool {
        matches!(step, Step::Tell(..))
    }

    fn come_nearer(&self, thread: usize, step: &Step) -> Option<Names> {
        let (Step::Call(call, _) | Step::OpenDirectory(_, call, _)) = step else { return None };
        let routes = walk_on(&self.reference, call, &self.routes(thread, call))?;
        let mut nearer = self.clone();
        nearer.walks.insert(thread, routes);
        Some(nearer)
    }
}

/// A name that a listing has told, its kind, and when the call that told it began and ended.
type Told = (String, u8, (u64, u64));

/// What a listing has told, as threads of their own: nothing is said of the order of names.
fn tellings(listing: usize, told: &[Told], (began, ended): (u64, u64)) -> Vec<Vec<Event<Step>>> {
    let known = (0..NAME_COUNT).map(|number| format!("n{number}")).chain(["x".repeat(255)]);
    let names: BTreeSet<String> = told.iter().map(|(name, ..)| name.clone()).chain(known).collect();
    let seen = |name: &String| {
        let tell = |kind, (began, ended)| event(Step::Tell(listing, name.clone(), kind), began, ended);
        let mut events = Vec::new();
        for (_, kind, (told_began, told_ended)) in told.iter().filter(|(other, ..)| other == name) {
            if !events.is_empty() {
                events.push(tell(None, (began, *told_ended)));
            }
            events.push(tell(Some(*kind), (*told_began, *told_ended)));
        }
        if events.is_empty() {
            events.push(tell(None, (began, ended)));
        }
        events
    };
    names.iter().map(seen).collect()
}

fn event(step: Step, began: u64, ended: u64) -> Event<Step> {
    Event { steps: vec![step], began, ended }
}

fn done(call: Call, began: u64, ended: u64) -> Event<Step> {
    event(Step::Call(call, Ok(Answer::Done)), began, ended)
}

#[test]
fn the_checker_refuses_an_impossible_history() {
    let name = || "n0".to_string();
    let open = Call::Open(name(), create_new());
    let made = done(open.clone(), 1, 2);
    let missed = event(Step::Call(Call::Access(name()), Err(Errno::ENOENT)), 3, 4);
    let empty = &Names::default();
    assert!(!is_linearisable(&[vec![made.clone()], vec![missed.clone()]], empty));
    let status = |file| Ok(Answer::Status { file, kind: 0, links: 1 });
    let stat = |file, began| event(Step::Call(Call::Stat(name(), Follow::Nothing), status(file)), began, began + 1);
    assert!(is_linearisable(&[vec![made.clone(), stat(9, 5), stat(9, 7)]], empty));
    assert!(!is_linearisable(&[vec![made, stat(9, 5), stat(8, 7)]], empty), "another file");
    let overlapping = done(open, 1, 5);
    assert!(is_linearisable(&[vec![overlapping], vec![missed]], empty));
}

/// A listing beside an exchange of a file and a directory told both names to be directories, which no single moment
/// explains: a listing is not one moment's picture, and its names were checked as if it were.
#[test]
fn a_listing_looks_at_each_name_at_its_own_moment() {
    let (file, directory) = ("n0".to_string(), "n1".to_string());
    let mut start = Names::default();
    start.reference.call(&Call::Open(file.clone(), create_new())).unwrap();
    start.reference.call(&Call::MakeDirectory(directory.clone())).unwrap();
    let exchange = || done(Call::Rename(file.clone(), directory.clone(), RenameMode::Exchange), 3, 5);
    let may_tell = |kinds: &[(&str, Kind)], ended| {
        let told: Vec<Told> = kinds.iter().map(|(name, kind)| ((*name).to_string(), *kind as u8, (2, ended))).collect();
        let found = event(Step::OpenDirectory(0, Call::List("/".to_string(), 9), Ok(())), 1, 2);
        let mut threads = vec![vec![found], vec![exchange()]];
        threads.extend(tellings(0, &told, (2, ended)));
        is_linearisable(&threads, &start)
    };
    assert!(may_tell(&[("n0", Kind::Directory), ("n1", Kind::Directory)], 4));
    assert!(may_tell(&[("n0", Kind::Regular), ("n1", Kind::Regular)], 4));
    assert!(!may_tell(&[("n0", Kind::Directory), ("n1", Kind::Directory)], 3), "the exchange began afterwards");
    assert!(!may_tell(&[("n0", Kind::Regular)], 4), "n1 is there all the time");
    assert!(!may_tell(&[("n0", Kind::Regular), ("n0", Kind::Regular), ("n1", Kind::Directory)], 4), "told twice");
    assert!(!may_tell(&[("n0", Kind::Regular), ("n1", Kind::Directory), ("n2", Kind::Regular)], 4), "never there");
}

/// A directory may move while a path goes through it.
#[test]
fn a_walk_goes_through_each_component_at_its_own_moment() {
    let names = ["n0", "n1", "n2"].map(str::to_string);
    let mut start = Names::default();
    start.reference.call(&Call::MakeDirectory(names[0].clone())).unwrap();
    // n1 gets its file when n0 is no more: never is there an n0/n2.
    let moved = done(Call::Rename(names[0].clone(), names[1].clone(), RenameMode::Replace), 2, 3);
    let made = done(Call::Open("n1/n2".to_string(), create_new()), 4, 5);
    let found = |began, ended| done(Call::Access("n0//n2".to_string()), began, ended);
    assert!(is_linearisable(&[vec![moved.clone(), made.clone()], vec![found(1, 6)]], &start));
    assert!(!is_linearisable(&[vec![moved.clone(), made.clone()], vec![found(4, 6)]], &start), "n0 was gone");
    assert!(!is_linearisable(&[vec![moved, made], vec![found(1, 4)]], &start), "n2 was not there yet");
    // A file made in a directory that was removed meanwhile.
    let removed = done(Call::RemoveDirectory(names[0].clone()), 2, 3);
    let make = |outcome| event(Step::Call(Call::Open("n0/n2".to_string(), create_new()), outcome), 1, 4);
    assert!(is_linearisable(&[vec![removed.clone()], vec![make(Err(Errno::ENOENT))]], &start));
    assert!(!is_linearisable(&[vec![removed], vec![make(Ok(Answer::Done))]], &start));
}

/// Threads of a round, and what each of them did; listings have numbers of which each thread has some.
struct Round<'a> {
    fs: &'a ScaleFs,
    arena: &'a Arena,
    clock: Clock,
    barrier: Barrier,
    maintains: bool,
}

impl Round<'_> {
    /// Makes the calls of one thread; returns its events and those of its listings.
    fn run(&self, number: usize, calls: &[Call]) -> (Vec<Event<Step>>, Vec<Vec<Event<Step>>>) {
        let core = self.arena.claim_waiting(number, owner(), &sync::Spin).unwrap();
        let owned = Context::new(self.fs, &core, Credentials::SUPERUSER);
        let context = &owned;
        let caller = &Caller::new(context);
        let now = || self.clock.now();
        let (mut events, mut told_names) = (Vec::new(), Vec::new());
        self.barrier.wait();
        let last = changes_directory(calls).then(where_it_works);
        for (index, next) in calls.iter().chain(&last).enumerate() {
            if let Call::List(path, most) = next.inner() {
                let began = now();
                let verbs = self.fs.begin(&core, context, &Spin);
                let directory = open_directory(&verbs, start(&verbs, caller.held().as_deref(), next), path);
                drop(verbs);
                let found = now();
                let listing = number * 100 + index;
                events.push(event(
                    Step::OpenDirectory(listing, next.clone(), directory.as_ref().map(|_| ()).map_err(|errno| *errno)),
                    began,
                    found,
                ));
                let mut told = Vec::new();
                let mut from = directory.is_ok().then_some(0);
                while let (Some(cookie), Ok(directory)) = (from, &directory) {
                    self.fs.maintain(&core, &Spin);
                    let (mut names, began) = (Vec::new(), now());
                    let each = |name, kind| names.push((name, kind));
                    let verbs = self.fs.begin(&core, context, &Spin);
                    from = tell(&verbs, verbs.held(directory), cookie, *most, each);
                    drop(verbs);
                    let when = (began, now());
                    told.extend(names.into_iter().map(|(name, kind)| (name, kind, when)));
                }
                if let Ok(directory) = directory {
                    names::close(&self.fs.begin(&core, context, &Spin), directory);
                    told_names.extend(tellings(listing, &told, (found, now())));
                }
            } else {
                let began = now();
                let outcome = call(self.fs, &core, caller, next);
                events.push(event(Step::Call(next.clone(), outcome), began, now()));
            }
            if self.maintains {
                self.fs.maintain(&core, &Spin);
            }
        }
        caller.let_go(self.fs, &core);
        owned.leave(self.fs, &core);
        (events, told_names)
    }
}

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

#[test]
fn concurrent_histories_have_an_order() {
    let plans = |number: u64| {
        // Many calls on many names, or few that are all about the same.
        let (name_count, call_count) = if (number / 3).is_multiple_of(2) { (4, 6) } else { (2, 3) };
        vec(vec(any_call(name_count), call_count), 2 + number as usize % 3)
    };
    explore(rounds(250).longer(3), plans, explain_drawn);
}

/// Paths that have to do with each other when there are more names to begin with: files and a link, a directory with names
/// and one without, or two directories that may get into each other.
const GROUPS: [&[&str]; 6] = [
    &["n0", "n2", "n5"],
    &["n0", "n2", "n1/n0"],
    &["n0", "n3", "n5", "n3/n0"],
    &["n1", "n5", "n1/n0", "n1/n1", "n2"],
    &["n4", "n5", "n4/n1", "n4/..", "n0"],
    &["n1", "n4", "n1/n4", "n4/n1"],
];
/// Directories that may get into each other, one of them from far below.
const DEEP: [&str; 6] = ["n4", "n5", "n6", "n6/n7", "n4/n6", "n6/n7/n4"];

/// Every call on these paths, from the working directory on; of those with two paths, every one on two that differ.
fn calls_on(paths: &[&str]) -> Vec<Call> {
    let on = |path: &&str| {
        let path = || (*path).to_string();
        let flags = [
            OpenFlags::READ,
            OpenFlags::CREATE | OpenFlags::WRITE,
            create_new(),
            OpenFlags::CREATE | OpenFlags::NO_FOLLOW,
            OpenFlags::READ | OpenFlags::DIRECTORY,
        ];
        let others = [
            Call::MakeDirectory(path()),
            Call::RemoveDirectory(path()),
            Call::Symlink("n0".to_string(), path()),
            Call::ReadLink(path()),
            Call::Unlink(path()),
            Call::Stat(path(), Follow::Symlinks),
            Call::Stat(path(), Follow::Nothing),
            Call::Access(path()),
            Call::List(path(), 5),
            Call::ChangeDirectory(path()),
        ];
        flags.map(|flags| Call::Open(path(), flags)).into_iter().chain(others).collect::<Vec<_>>()
    };
    let on_two = |old: &&str, new: &&str| {
        let (old, new) = (|| (*old).to_string(), || (*new).to_string());
        let renames = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
        let links = [Follow::Symlinks, Follow::Nothing];
        let renames = renames.map(|mode| Call::Rename(old(), new(), mode));
        renames.into_iter().chain(links.map(|follow| Call::Link(old(), new(), follow))).collect::<Vec<_>>()
    };
    let with_two = |old| paths.iter().filter(move |new| old != *new).flat_map(move |new| on_two(old, new));
    paths.iter().flat_map(on).chain(paths.iter().flat_map(with_two)).collect()
}

/// The calls of each group, with its paths; on what is deep those that move directories.
fn groups() -> Vec<(&'static [&'static str], Vec<Call>)> {
    let moves = |call: &Call| {
        matches!(call, Call::MakeDirectory(_) | Call::RemoveDirectory(_) | Call::Rename(..) | Call::Stat(..))
    };
    let up = ["n4/..", "n6/n7/.."].map(|path| Call::Stat(path.to_string(), Follow::Nothing));
    let deep = calls_on(&DEEP).into_iter().filter(moves).chain(up).collect();
    GROUPS.into_iter().map(|paths| (paths, calls_on(paths))).chain([(&DEEP[..], deep)]).collect()
}

/// What shows where a group's paths lead.
fn looks_at(paths: &[&str]) -> Vec<Call> {
    paths.iter().map(|path| Call::Stat((*path).to_string(), Follow::Nothing)).collect()
}

#[test]
fn every_two_calls_that_do_not_commute_have_an_order() {
    let of = |(paths, calls): (&'static [&'static str], Vec<Call>)| {
        pairs(&calls).map(move |plan| (plan, looks_at(paths))).collect::<Vec<_>>()
    };
    let plans =
        mattering(groups().into_iter().flat_map(of), |(plan, _): &(Plan, Vec<Call>)| no_call_of_it_commutes(plan));
    let with_looks = plans.flat_map(|(number, of_group)| {
        let (pair, looks) = &*of_group;
        // Two of the paths: there are many pairs of a kind.
        let some = [number as usize, number as usize / looks.len()].map(|place| looks[place % looks.len()].clone());
        and_look(pair, &some).map(|plan| (number, Arc::new(plan)))
    });
    overtake_first(with_looks, explain_calls_alone);
}

/// What somebody sees in the middle of a call stays so, and fits together.
#[test]
fn looks_beside_every_call_have_an_order() {
    let of = |(paths, calls): (&[&str], Vec<Call>)| {
        let list = vec![Call::List("/".to_string(), 20)];
        let looks = [list.clone(), looks_at(paths), list, looks_at(paths)].concat();
        calls.into_iter().map(|call| vec![vec![call], looks.clone()]).collect::<Vec<_>>()
    };
    overtake_first(mattering(groups().into_iter().flat_map(of), |_| true), explain_calls_alone);
}

#[test]
fn calls_that_are_overtaken_have_an_order() {
    overtake(history::plans(30).longer(30), of_few_paths, explain_calls_alone);
}

/// A few calls on paths of one group, none of which commutes with all others, or, as a sample, any.
fn of_few_paths(number: u64) -> impl Strategy<Value = Plan> {
    let of_group = |calls| of_few_calls(proptest::sample::select(calls));
    let plans = proptest::sample::select(groups()).prop_flat_map(move |(_, calls)| of_group(calls));
    plans.prop_filter("no call commutes", move |plan| is_sample(number) || no_call_of_it_commutes(plan))
}

/// Whether the plain reference says so, beginning with more names.
fn no_call_of_it_commutes(plan: &Plan) -> bool {
    let mut start = Reference::default();
    beginning(true).for_each(|make| _ = start.call(&make));
    // Numbers of files mean nothing but which are the same.
    let number = |numbers: &mut Vec<u64>, outcome: &mut Outcome| {
        if let Ok(Answer::Status { file, .. }) = outcome {
            numbers.push(*file);
            *file = numbers.iter().position(|number| number == file).unwrap_or_default() as u64;
        }
    };
    let mut first = Vec::new();
    looks().for_each(|look| number(&mut first, &mut start.clone().call(&look)));
    no_call_commutes(plan, |order| {
        let mut reference = start.clone();
        let mut make = |thread: usize, call: &Call| reference.call_from(thread, call, &reference.routes(thread, call));
        let mut outcomes = in_order(plan, order, &mut make);
        let mut left: Vec<Outcome> = looks().map(|look| make(0, &look)).collect();
        let directories = (0..plan.len()).filter(|thread| changes_directory(&plan[*thread]));
        left.extend(directories.map(|thread| make(thread, &where_it_works())));
        let mut numbers = first.clone();
        outcomes.iter_mut().flatten().chain(&mut left).for_each(|outcome| number(&mut numbers, outcome));
        (outcomes, left)
    })
}

/// Two threads list a directory in parts while another one makes it grow, and the last changes its names.
fn listings_of_a_growing_directory() -> impl Strategy<Value = Plan> {
    let path = |number: u8| format!("n1/n{number}");
    let name = move || (0..NAME_COUNT).prop_map(path);
    let change = prop_oneof![
        2 => name().prop_map(Call::Unlink),
        2 => (name(), name()).prop_map(|(old, new)| Call::Rename(old, new, RenameMode::Replace)),
        1 => (name(), name()).prop_map(|(old, new)| Call::Rename(old, new, RenameMode::Exchange)),
        1 => name().prop_map(|path| Call::Open(path, OpenFlags::CREATE)),
    ];
    let list = (1..6_usize).prop_map(|most| vec![Call::List("n1".to_string(), most)]);
    let grow = Just((0..NAME_COUNT).map(|number| Call::Open(path(number), create_new())).collect()).prop_shuffle();
    (list.clone(), list, grow, vec(change, 3))
        .prop_map(|(first, second, grow, changes)| vec![first, second, grow, changes])
}

#[test]
fn listings_of_a_growing_directory_have_an_order() {
    explore(rounds(100), |_| listings_of_a_growing_directory(), explain);
}

/// What each thread calls.
type Plan = Vec<Vec<Call>>;

/// Histories that had no order once, each with the fault that made them.
fn found_once() -> Vec<(&'static str, Plan)> {
    let path = str::to_string;
    let make = |name| Call::Open(path(name), create_new());
    let rename = |old, new, mode| Call::Rename(path(old), path(new), mode);
    let stat = |name| Call::Stat(path(name), Follow::Nothing);
    let link = |old, new| Call::Link(path(old), path(new), Follow::Nothing);
    vec![
        // EEXIST, when the old name had gone before the new one came.
        (
            "scalefs: rename forgets its old name",
            vec![vec![rename("n0", "n2", RenameMode::NoReplace)], vec![Call::Unlink(path("n0")), make("n2")]],
        ),
        // Both calls succeeded: the new name was looked up again after it was found to be absent.
        (
            "scalefs: what must not be there is replaced",
            vec![vec![rename("n0", "n2", RenameMode::NoReplace)], vec![make("n2")]],
        ),
        // ENOTEMPTY, when the directory got its first name after it had lost its own.
        (
            "scalefs: rmdir forgets its name",
            vec![vec![Call::RemoveDirectory(path("n1"))], vec![rename("n1", "n2", RenameMode::Replace), make("n2/n0")]],
        ),
        // `..` led to the old parent by the new name.
        (
            "scalefs: a move is seen before its parent",
            vec![
                vec![Call::MakeDirectory(path("n2")), rename("n1", "n2/n1", RenameMode::Replace)],
                vec![stat("n2"), stat("n2/n1/..")],
            ],
        ),
        // EPERM, when the old name led to a directory only after the new one had come.
        (
            "scalefs: link refuses a directory by what it saw before",
            vec![vec![link("n0", "n2")], vec![make("n2"), rename("n0", "n1", RenameMode::Exchange)]],
        ),
        // A file that lost its name kept its count of links: another had been found there.
        (
            "scalefs: rename replaces whatever is there",
            vec![
                vec![make("n2"), rename("n0", "n2", RenameMode::Replace), stat("n2"), stat("n3")],
                vec![make("n1/n0"), link("n1/n0", "n3"), rename("n1/n0", "n2", RenameMode::Replace)],
            ],
        ),
        // Another name of a symbolic link, which had come after the path was followed.
        (
            "scalefs: link follows what it saw before",
            vec![
                vec![Call::Link(path("n0"), path("n2"), Follow::Symlinks), stat("n2")],
                vec![Call::Symlink(path("n1"), path("n3")), rename("n3", "n0", RenameMode::Replace)],
            ],
        ),
        // ENOENT for the new path, when the old name had become a link to itself: ENOTDIR before, ELOOP afterwards.
        (
            "scalefs: link forgets what its old name led to",
            vec![
                vec![Call::Link(path("n0"), path("n3/n0"), Follow::Symlinks)],
                vec![Call::Symlink(path("n0"), path("n3")), rename("n3", "n0", RenameMode::Replace)],
            ],
        ),
        // The parent was listed when its directory had gone to another name, and to another directory.
        (
            "scalefs: the names of a path are found one by one",
            vec![
                vec![Call::ChangeDirectory(path("n1")), Call::WorkingDirectory],
                vec![
                    rename("n1", "n2", RenameMode::Replace),
                    Call::MakeDirectory(path("n1")),
                    rename("n2", "n1/n2", RenameMode::Replace),
                ],
            ],
        ),
        // ENOTDIR for the new path, when the old name had gone before that became so.
        (
            "scalefs: link forgets its old name",
            vec![
                vec![link("n0", "n2/n0")],
                vec![Call::Unlink(path("n0")), make("n2")],
                vec![Call::MakeDirectory(path("n2")), Call::RemoveDirectory(path("n2"))],
            ],
        ),
    ]
}

/// In so many rounds each fault that was found once is found when it is planted again.
const ROUNDS_OF_A_FAULT: u64 = if cfg!(shuttle) { 500 } else { 50 };

#[test]
fn what_was_found_once_has_an_order() {
    for (_, plan) in found_once() {
        overtake_and_repeat(ROUNDS_OF_A_FAULT, plan, explain);
    }
}

/// Three directories that move into each other. A call waited for a mark of a core with a higher number, and went on waiting,
/// its own mark in hand, when one with a lower number had got it, which waited for that.
fn moves_in_a_circle() -> Plan {
    let rename = |old: &str, new: &str, mode| vec![Call::Rename(old.to_string(), new.to_string(), mode)];
    vec![
        rename("n4", "n6/n7/n4", RenameMode::Replace),
        rename("n6", "n4/n6", RenameMode::Replace),
        rename("n6/n7", "n4", RenameMode::Exchange),
    ]
}

#[test]
fn who_moves_directories_in_a_circle_ends() {
    overtake_and_repeat(if cfg!(shuttle) { 500 } else { 50 }, moves_in_a_circle(), explain_calls_alone);
}

/// Two threads of one process change its working directory: each directory that it leaves is given up once.
#[test]
fn threads_of_one_process_change_its_working_directory() {
    overtake_and_repeat(if cfg!(shuttle) { 500 } else { 50 }, vec![vec!["/n0"], vec!["/n1"]], |number, plan| {
        let mut region = HeapRegion::new(1 << 20).unwrap();
        let arena = Arena::create(&mut region, ArenaConfig { core_count: 3, chunk_bytes: 4096 }).unwrap();
        let core = arena.claim_waiting(2, owner(), &sync::Spin).unwrap();
        let small = ScaleFsConfig { root_bucket_count: 4, directory_bucket_count: 1, ..ScaleFsConfig::default() };
        let fs = ScaleFs::create(&core, ScaleFsConfig { hash_seed: number, count_slots_per_core: 2, ..small }).unwrap();
        let owned = Context::new(fs, &core, Credentials::SUPERUSER);
        let context = &owned;
        let begin = || fs.begin(&core, context, &Spin);
        let start = Start::WorkingDirectory;
        for name in ["/n0", "/n1"] {
            directories::make_directory(&begin(), start, name.as_bytes(), 0o755).unwrap();
        }
        let made = play(plan, |thread| {
            let core = arena.claim_waiting(thread, owner(), &sync::Spin).unwrap();
            move |name: &&str| directories::change_directory(&fs.begin(&core, context, &Spin), start, name.as_bytes())
        });
        assert!(made.iter().flatten().all(|made| made.outcome.is_ok()));
        directories::change_directory(&begin(), start, b"/").unwrap();
        for name in ["/n0", "/n1"] {
            directories::remove_directory(&begin(), start, name.as_bytes()).unwrap();
        }
        owned.leave(fs, &core);
        for _ in 0..8 {
            fs.maintain_with_idle_cores(&core, &Spin);
        }
        let fresh = Context::new(fs, &core, Credentials::SUPERUSER);
        let space = attributes::space(&fs.begin(&core, &fresh, &Spin)).unwrap();
        assert_eq!(space.free_inodes, space.inodes, "a directory is kept, or was given up twice");
    });
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    let fault = "scalefs: who waits for a move waits for the next one";
    sync::mutant::must_be_caught(fault, || overtake_and_repeat(1, moves_in_a_circle(), explain_calls_alone));
    for (fault, plan) in found_once() {
        sync::mutant::must_be_caught(fault, || overtake_and_repeat(ROUNDS_OF_A_FAULT, plan, explain));
    }
    let growing = || explore(0..100_000, |_| listings_of_a_growing_directory(), explain);
    sync::mutant::must_be_caught("hashdir: moved before it is linked", growing);
    // A directory is removed under who holds it.
    let create = Call::At(Box::new(Call::Open("n0".to_string(), create_new())));
    let holder = vec![Call::Hold("n1".to_string()), create];
    let removal = vec![holder, vec![Call::RemoveDirectory("n1".to_string())]];
    sync::mutant::must_be_caught("hashdir: insertion ignores a kill", || {
        overtake_and_repeat(100_000, removal, explain)
    });
}

/// The names to begin with, or more of them.
fn beginning(has_more: bool) -> impl Iterator<Item = Call> {
    let file = |path: &str| Call::Open(path.to_string(), create_new());
    let more = [
        file("n2"),
        file("n1/n0"),
        Call::Link("n2".to_string(), "n1/n1".to_string(), Follow::Nothing),
        Call::Symlink("n0".to_string(), "n3".to_string()),
        Call::MakeDirectory("n4".to_string()),
        Call::MakeDirectory("n6".to_string()),
        Call::MakeDirectory("n6/n7".to_string()),
    ];
    let more = more.into_iter().filter(move |_| has_more);
    [file("n0"), Call::MakeDirectory("n1".to_string())].into_iter().chain(more)
}

/// What shows which names are left.
fn looks() -> impl Iterator<Item = Call> {
    let of_root = ["/n0", "/n1", "/n2", "/n3", "/n4", "/n5", "/n6"];
    let below = ["/n1/n0", "/n1/n1", "/n1/n4", "/n4/n1", "/n4/n6", "/n6/n7", "/n6/n7/n4"];
    of_root.into_iter().chain(below).map(|path| Call::Stat(path.to_string(), Follow::Nothing))
}

/// What shows a thread's working directory.
fn where_it_works() -> Call {
    Call::Stat(".".to_string(), Follow::Nothing)
}

fn changes_directory(calls: &[Call]) -> bool {
    calls.iter().any(|call| matches!(call.inner(), Call::ChangeDirectory(_)))
}

/// As `explain`; every second time there are more names to begin with.
fn explain_drawn(number: u64, plan: &Plan) {
    explain_if(true, number % 2 == 1, number, plan);
}

/// As `explain`, but that no core maintains meanwhile: words that all maintain are where threads would be overtaken most.
fn explain_calls_alone(number: u64, plan: &Plan) {
    explain_if(false, true, number, plan);
}

fn explain(number: u64, plan: &Plan) {
    explain_if(true, false, number, plan);
}

/// Lets a thread make each list of calls, and looks for their order.
fn explain_if(maintains: bool, has_more: bool, number: u64, plan: &Plan) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 5, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim_waiting(4, owner(), &sync::Spin).unwrap();
    let config = ScaleFsConfig {
        hash_seed: number,
        root_bucket_count: 4,
        directory_bucket_count: 1,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let caller = &Caller::new(&context);
    let mut start = Names::default();
    for make in beginning(has_more) {
        assert_eq!(call(fs, &core, caller, &make).is_ok(), start.reference.call(&make).is_ok());
    }
    let round = &Round { fs, arena, clock: Clock::new(1), barrier: Barrier::new(plan.len()), maintains };
    let threads: Vec<_> = threads::scope(|scope| {
        let running: Vec<_> =
            plan.iter().enumerate().map(|(n, calls)| scope.spawn(move || round.run(n, calls))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (mut events, told_names): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
    events.extend(told_names.into_iter().flatten());
    // What is left is looked at in the end: no plan has to do so.
    let look = |look| {
        let outcome = call(fs, &core, caller, &look);
        event(Step::Call(look, outcome), u64::MAX - 1, u64::MAX)
    };
    events[0].extend(looks().map(look));
    expect_order(number, &events, &start, String::new);
}
