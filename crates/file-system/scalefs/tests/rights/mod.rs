//! Concurrent histories of calls by several users on rights and times: chmod, chown, utimensat, and the calls that these
//! let succeed or fail.
//!
//! **The relaxed specification.** A call is a program of lines, each of which is one step: the right to search a
//! directory; what a name leads to; a right of the directory in which a name is to change; of a sticky one, whether it
//! binds the caller, and then whom the file belongs to; the change itself, if the names still lead to what was found.
//! A line at which the call fails is the last. Where a name is to change, what it was found to lead to it still does then.
//!
//! Changes of rights and times check and change what was found as one step. `stat` sees rights and the time of access as
//! one, and then the time of modification.

use std::collections::BTreeMap;

use history::{
    Event, Made, State, expect_order, explore, of_few_calls, overtake, overtake_and_repeat, play, rounds, told,
};
use percpu::{Arena, ArenaConfig, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::attributes::{self, Access, NewTime};
use scalefs::names::{self, RenameMode};
use scalefs::{Context, Credentials, Errno, Fields, Follow, OpenFlags, ScaleFs, ScaleFsConfig, Start, directories};
use sync::Spin;

/// `d` is a directory in the root, which everybody may change.
const PATHS: [&str; 5] = ["a", "d/a", "b", "d/b", "d"];
const DIRECTORY: usize = 4;
const STICKY: u32 = 0o1000;

/// With what it was called, paths by their place in [`PATHS`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    ChangeMode(usize, u32),
    ChangeOwner(usize, u32),
    SetTimes(usize, NewTime, NewTime),
    Stat(usize),
    Access(usize, Access),
    Open(usize, OpenFlags),
    Unlink(usize),
    Rename(usize, usize, RenameMode),
    Link(usize, usize),
}

/// Owner, mode, and times of access and modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attributes {
    mode: u32,
    user: u32,
    group: u32,
    accessed: i64,
    modified: i64,
}

type Outcome = Result<Option<Attributes>, Errno>;

impl Attributes {
    fn new(mode: u32, user: u32) -> Attributes {
        Attributes { mode, user, group: user, accessed: 0, modified: 0 }
    }

    /// Whether a user, who is in the group of the same number, has these of the rights `rwx`.
    fn allows(&self, user: u32, need: u32, is_directory: bool) -> bool {
        let class = match user {
            0 => return need & 1 == 0 || is_directory || self.mode & 0o111 != 0,
            _ if user == self.user => self.mode >> 6,
            _ if user == self.group => self.mode >> 3,
            _ => self.mode,
        };
        class & need == need
    }
}

/// A line of a call's program. Names are found in two places: the first is what is acted upon.
#[derive(Clone, Copy, Debug)]
enum Line {
    Search,
    Find(usize, usize),
    /// That there is a name, whatever it leads to; or that there is none.
    Present(usize),
    Absent(usize),
    /// To change names of the directory of this path.
    May(usize),
    /// Whether a sticky directory binds the caller, to what was found by this path in this place.
    Bound(usize, usize),
    Owner(usize),
    SeeRights,
    Act,
}

/// How far a thread's call has come, and what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Progress {
    line: usize,
    found: [Option<usize>; 2],
    is_bound: bool,
}

/// Objects, of which those without names stay, and the first is the directory; and where they are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reference {
    objects: Vec<Attributes>,
    names: [Option<usize>; PATHS.len()],
    calls: BTreeMap<usize, Progress>,
}

/// What a user called, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    user: u32,
    call: Call,
    outcome: Outcome,
}

/// What becomes of a call by its next line.
enum Then {
    Next,
    Ends(Outcome),
    /// It cannot be at this moment.
    Never,
}

fn is_below(path: usize) -> bool {
    PATHS[path].contains('/')
}

/// The lines of a call.
fn program(call: &Call) -> Vec<Line> {
    let search = |path| is_below(path).then_some(Line::Search);
    let removal = |path, place| [Line::May(path), Line::Bound(path, place), Line::Owner(place)];
    match *call {
        Call::Rename(old, new, _) => {
            let lines = search(old).into_iter().chain(search(new)).chain([Line::Find(0, old), Line::Find(1, new)]);
            lines.chain(removal(old, 0)).chain(removal(new, 1)).chain([Line::Act]).collect()
        }
        Call::Link(old, new) => {
            let lines = search(old).into_iter().chain([Line::Present(old)]).chain(search(new));
            lines.chain([Line::Absent(new), Line::May(new), Line::Find(0, old), Line::Act]).collect()
        }
        Call::Unlink(path) => {
            search(path).into_iter().chain([Line::Find(0, path)]).chain(removal(path, 0)).chain([Line::Act]).collect()
        }
        Call::Open(path, flags) if flags.contains(OpenFlags::CREATE) => {
            search(path).into_iter().chain([Line::Find(0, path), Line::May(path), Line::Act]).collect()
        }
        Call::Stat(path) => search(path).into_iter().chain([Line::Find(0, path), Line::SeeRights, Line::Act]).collect(),
        Call::ChangeMode(path, _)
        | Call::ChangeOwner(path, _)
        | Call::SetTimes(path, ..)
        | Call::Access(path, _)
        | Call::Open(path, _) => search(path).into_iter().chain([Line::Find(0, path), Line::Act]).collect(),
    }
}

fn need(access: Access) -> u32 {
    u32::from(access.read) << 2 | u32::from(access.write) << 1 | u32::from(access.execute)
}

fn rights_to_open(flags: OpenFlags) -> u32 {
    u32::from(flags.contains(OpenFlags::READ)) << 2 | u32::from(flags.contains(OpenFlags::WRITE)) << 1
}

impl Reference {
    /// Whether a user may change names of the directory of a path; the root lets everybody.
    fn may_change_names(&self, user: u32, path: usize) -> bool {
        !is_below(path) || self.objects[0].allows(user, 3, true)
    }

    /// Does the next line of a thread's call.
    fn go_on(&mut self, thread: usize, Step { user, call, outcome }: &Step) -> Then {
        let mut progress = self.calls.remove(&thread).unwrap_or_default();
        let line = program(call)[progress.line];
        progress.line += 1;
        let is_as_found = match *call {
            Call::Link(old, _) => self.names[old].is_some(),
            Call::Unlink(path) | Call::Rename(path, ..) | Call::Stat(path) | Call::Access(path, _) => {
                progress.found[0].is_none_or(|_| self.names[path] == progress.found[0])
            }
            _ => true,
        };
        let refused = |errno| if is_as_found { Then::Ends(Err(errno)) } else { Then::Never };
        match line {
            Line::Search if !self.objects[0].allows(*user, 1, true) => return Then::Ends(Err(Errno::EACCES)),
            Line::Search => {}
            Line::Find(place, path) => {
                progress.found[place] = self.names[path];
                match call {
                    Call::Rename(_, _, mode) if place == 1 => match (mode, progress.found[1]) {
                        (RenameMode::NoReplace, Some(_)) => return refused(Errno::EEXIST),
                        (RenameMode::Exchange, None) => return refused(Errno::ENOENT),
                        (_, found) if found == progress.found[0] => {
                            return if is_as_found { Then::Ends(Ok(None)) } else { Then::Never };
                        }
                        _ => {}
                    },
                    Call::Open(_, flags) if flags.contains(OpenFlags::CREATE) => match progress.found[0] {
                        Some(_) if flags.contains(OpenFlags::EXCLUSIVE) => return Then::Ends(Err(Errno::EEXIST)),
                        // Nothing is to be made.
                        Some(_) => progress.line += 1,
                        None => {}
                    },
                    _ if progress.found[place].is_none() => return Then::Ends(Err(Errno::ENOENT)),
                    _ => {}
                }
            }
            Line::Present(path) if self.names[path].is_none() => return Then::Ends(Err(Errno::ENOENT)),
            Line::Absent(path) if self.names[path].is_some() => return refused(Errno::EEXIST),
            Line::Present(_) | Line::Absent(_) => {}
            Line::May(path) if !self.may_change_names(*user, path) => return refused(Errno::EACCES),
            Line::May(_) => {}
            Line::Bound(path, place) => {
                let binds = is_below(path) && self.objects[0].mode & STICKY != 0 && self.objects[0].user != *user;
                progress.is_bound = *user != 0 && progress.found[place].is_some() && binds;
            }
            Line::Owner(place) => {
                let is_anothers = progress.found[place].is_some_and(|object| self.objects[object].user != *user);
                if progress.is_bound && is_anothers {
                    return refused(Errno::EPERM);
                }
            }
            // Who looks at a file does so while the name leads there.
            Line::SeeRights | Line::Act if matches!(call, Call::Stat(_) | Call::Access(..)) && !is_as_found => {
                return Then::Never;
            }
            Line::SeeRights => {
                let seen = self.objects[progress.found[0].expect("found")];
                if *outcome != Ok(outcome.ok().flatten().map(|told| Attributes { modified: told.modified, ..seen })) {
                    return Then::Never;
                }
            }
            Line::Act => return self.act(*user, call, progress, *outcome),
        }
        self.calls.insert(thread, progress);
        Then::Next
    }

    fn act(&mut self, user: u32, call: &Call, progress: Progress, outcome: Outcome) -> Then {
        let [found, replaced] = progress.found;
        let mut object = found.map(|number| &mut self.objects[number]);
        let check = |may: bool, errno| if may { Ok(None) } else { Err(errno) };
        let is_owner = object.as_ref().is_some_and(|object| user == 0 || user == object.user);
        Then::Ends(match (*call, &mut object) {
            (Call::ChangeMode(_, mode), Some(object)) => {
                object.mode = if is_owner { mode } else { object.mode };
                check(is_owner, Errno::EPERM)
            }
            (Call::ChangeOwner(_, owner), Some(object)) => {
                let may = user == 0 || is_owner && owner == user;
                object.user = if may { owner } else { object.user };
                check(may, Errno::EPERM)
            }
            (Call::SetTimes(_, accessed, modified), Some(object)) => {
                let is_now = (accessed, modified) == (NewTime::Now, NewTime::Now);
                let may = is_owner || is_now && object.allows(user, 2, false);
                for (time, new) in [(&mut object.accessed, accessed), (&mut object.modified, modified)] {
                    match new {
                        NewTime::At(new) if may => *time = new,
                        // Clocks stand still.
                        NewTime::Now if may => *time = 0,
                        _ => {}
                    }
                }
                check(may, if is_now { Errno::EACCES } else { Errno::EPERM })
            }
            (Call::Stat(_), Some(object)) => {
                outcome.map(|told| told.map(|told| Attributes { modified: object.modified, ..told }))
            }
            (Call::Access(path, access), Some(object)) => {
                check(object.allows(user, need(access), path == DIRECTORY), Errno::EACCES)
            }
            (Call::Open(_, flags), Some(object)) => {
                check(object.allows(user, rights_to_open(flags), false), Errno::EACCES)
            }
            (Call::Open(path, _), None) => {
                if self.names[path].is_some() {
                    return Then::Never;
                }
                self.names[path] = Some(self.objects.len());
                self.objects.push(Attributes::new(0o644, user));
                Ok(None)
            }
            (Call::Unlink(path), _) if self.names[path] == found => {
                self.names[path] = None;
                Ok(None)
            }
            (Call::Link(old, new), _) if self.names[old] == found && self.names[new].is_none() => {
                self.names[new] = found;
                Ok(None)
            }
            (Call::Rename(old, new, mode), _) if self.names[old] == found && self.names[new] == replaced => {
                self.names[old] = replaced.filter(|_| mode == RenameMode::Exchange);
                self.names[new] = found;
                Ok(None)
            }
            _ => return Then::Never,
        })
    }
}

impl State for Reference {
    type Step = Step;

    fn take(&mut self, thread: usize, step: &Step) -> bool {
        matches!(self.go_on(thread, step), Then::Ends(outcome) if outcome == step.outcome)
    }

    fn come_nearer(&self, thread: usize, step: &Step) -> Option<Reference> {
        let mut nearer = self.clone();
        matches!(nearer.go_on(thread, step), Then::Next).then_some(nearer)
    }
}

/// The same call on ScaleFS.
fn call(fs: &ScaleFs, core: &percpu::Core, context: &Context, call: &Call) -> Outcome {
    const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
    let verbs = &fs.begin(core, context, &Spin);
    let path = |path: usize| PATHS[path].as_bytes();
    let follow = Follow::Symlinks;
    match *call {
        Call::ChangeMode(of, mode) => attributes::change_mode(verbs, AT, path(of), mode).map(|()| None),
        Call::ChangeOwner(of, user) => {
            attributes::change_owner(verbs, AT, path(of), follow, (Some(user), None)).map(|()| None)
        }
        Call::SetTimes(of, accessed, modified) => {
            attributes::set_times(verbs, AT, path(of), follow, (accessed, modified)).map(|()| None)
        }
        Call::Stat(of) => {
            let fields = Fields::PERMISSIONS | Fields::TIMES;
            attributes::stat(verbs, AT, path(of), follow, fields).map(|seen| {
                let scalefs::Attributes { mode, user, group, .. } = seen;
                Some(Attributes { mode, user, group, accessed: seen.accessed_ns, modified: seen.modified_ns })
            })
        }
        Call::Access(of, access) => attributes::access(verbs, AT, path(of), follow, access).map(|()| None),
        Call::Open(of, flags) => {
            let opened = names::open(verbs, AT, path(of), flags, 0o666)?;
            names::close(verbs, opened.handle);
            Ok(None)
        }
        Call::Unlink(of) => names::unlink(verbs, AT, path(of)).map(|()| None),
        Call::Rename(old, new, mode) => names::rename(verbs, (AT, path(old)), (AT, path(new)), mode).map(|()| None),
        Call::Link(old, new) => names::link(verbs, (AT, path(old)), (AT, path(new)), Follow::Nothing).map(|()| None),
    }
}

/// A call on these paths and the directory.
fn any_call(files: Vec<usize>) -> impl Strategy<Value = Call> {
    let file = || prop::sample::select(files.clone());
    let path = || prop_oneof![3 => file(), 2 => Just(DIRECTORY)];
    let mode = prop::sample::select(vec![0o777, 0o1777, 0o755, 0o700, 0o666, 0o644, 0o600, 0o060, 0o444, 0]);
    let time = || prop_oneof![2 => (1..9_i64).prop_map(NewTime::At), 1 => Just(NewTime::Same), 1 => Just(NewTime::Now)];
    let times = (time(), time()).prop_filter("something changes", |times| *times != (NewTime::Same, NewTime::Same));
    let times = prop_oneof![3 => times, 1 => Just((NewTime::Now, NewTime::Now))];
    let access = prop::sample::select(vec![(true, false, false), (false, true, false), (false, false, true)]);
    let access = access.prop_map(|(read, write, execute)| Access { read, write, execute });
    let renaming = prop::sample::select(vec![RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange]);
    let (read, write) = (OpenFlags::READ, OpenFlags::WRITE);
    let create = OpenFlags::CREATE;
    let flags = prop::sample::select(vec![read, write, read | write, create | write, create | OpenFlags::EXCLUSIVE]);
    prop_oneof![
        4 => (path(), mode).prop_map(|(path, mode)| Call::ChangeMode(path, mode)),
        2 => (path(), 1..3_u32).prop_map(|(path, user)| Call::ChangeOwner(path, user)),
        3 => (path(), times).prop_map(|(path, (accessed, modified))| Call::SetTimes(path, accessed, modified)),
        3 => path().prop_map(Call::Stat),
        2 => (path(), access).prop_map(|(path, access)| Call::Access(path, access)),
        3 => (file(), flags).prop_map(|(path, flags)| Call::Open(path, flags)),
        2 => file().prop_map(Call::Unlink),
        3 => (file(), file(), renaming).prop_map(|(old, new, mode)| Call::Rename(old, new, mode)),
        1 => (file(), file()).prop_map(|(old, new)| Call::Link(old, new)),
    ]
}

/// What each thread calls, as which user.
type Plan = Vec<Vec<(u32, Call)>>;

fn any_users_call(files: Vec<usize>) -> impl Strategy<Value = (u32, Call)> {
    (prop_oneof![1 => Just(0), 3 => 1..3_u32], any_call(files))
}

#[test]
fn concurrent_calls_of_several_users_have_an_order() {
    let plans = |number: u64| {
        let (path_count, call_count) = if (number / 2).is_multiple_of(2) { (4, 5) } else { (2, 3) };
        vec(vec(any_users_call((0..path_count).collect()), call_count), 2 + number as usize % 2)
    };
    explore(rounds(250), plans, explain);
}

#[test]
fn calls_of_several_users_that_are_overtaken_have_an_order() {
    // Each time one that is there in the beginning.
    let files = || prop::sample::select(vec![vec![0], vec![1], vec![0, 2], vec![1, 0], vec![1, 3]]);
    overtake(
        history::plans(30).longer(30),
        move |_| files().prop_flat_map(|files| of_few_calls(any_users_call(files))),
        explain_calls_alone,
    );
}

/// Histories that had no order once, each with the fault that made them.
fn found_once() -> Vec<(&'static str, Plan)> {
    let set = |time| Call::SetTimes(0, NewTime::At(time), NewTime::At(time));
    vec![
        // Of two calls each left one of its times.
        (
            "scalefs: times are set one after the other",
            vec![vec![(1, set(1)), (1, Call::Stat(0))], vec![(1, set(2)), (1, Call::Stat(0))]],
        ),
        // Times changed after the file had been seen to be another user's, and its times as before.
        (
            "scalefs: times are set by who was the owner",
            vec![vec![(1, set(1))], vec![(0, Call::ChangeOwner(0, 2)), (0, Call::Stat(0)), (0, Call::Stat(0))]],
        ),
        // The mode as it was, and the time of access of a later call.
        (
            "scalefs: permissions are read word by word",
            vec![vec![(1, Call::ChangeMode(0, 0o600)), (1, set(1))], vec![(1, Call::Stat(0)), (1, Call::Stat(0))]],
        ),
        // The right to write to a file that got it under another name.
        (
            "scalefs: who looks at a file forgets the name",
            vec![
                vec![(2, Call::Access(0, Access { read: false, write: true, execute: false }))],
                vec![(0, Call::Rename(0, 2, RenameMode::Replace)), (0, Call::ChangeMode(2, 0o666))],
            ],
        ),
        // EACCES for a name that had gone before the directory was closed to the caller.
        (
            "scalefs: a refusal forgets the name",
            vec![vec![(2, Call::Unlink(1))], vec![(1, Call::Unlink(1)), (1, Call::ChangeMode(DIRECTORY, 0o755))]],
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

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for (fault, plan) in found_once() {
        sync::mutant::must_be_caught(fault, || overtake_and_repeat(ROUNDS_OF_A_FAULT, plan, explain));
    }
}

fn owner() -> OwnerId {
    OwnerId::new(1).unwrap()
}

/// As `explain`, but that no core maintains meanwhile: words that all maintain are where threads would be overtaken most.
fn explain_calls_alone(number: u64, plan: &Plan) {
    explain_if(false, number, plan);
}

fn explain(number: u64, plan: &Plan) {
    explain_if(true, number, plan);
}

/// Lets a thread make each list of calls, and looks for their order.
fn explain_if(maintains: bool, number: u64, plan: &Plan) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim_waiting(3, owner(), &sync::Spin).unwrap();
    let config = ScaleFsConfig {
        hash_seed: number,
        root_bucket_count: 4,
        directory_bucket_count: 2,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    };
    let fs = ScaleFs::create(&core, config).unwrap();
    let superuser = &Context::new(fs, &core, Credentials::SUPERUSER);
    let verbs = fs.begin(&core, superuser, &Spin);
    directories::make_directory(&verbs, Start::WorkingDirectory, b"d", 0o777).unwrap();
    attributes::change_mode(&verbs, Start::WorkingDirectory, b"/", 0o777).unwrap();
    drop(verbs);
    let mut start = Reference {
        objects: vec![Attributes { group: 0, ..Attributes::new(0o777, 1) }],
        names: [None; 5],
        calls: BTreeMap::new(),
    };
    start.names[DIRECTORY] = Some(0);
    for path in [0, 1] {
        call(fs, &core, superuser, &Call::Open(path, OpenFlags::CREATE)).unwrap();
        start.names[path] = Some(start.objects.len());
        start.objects.push(Attributes { group: 0, ..Attributes::new(0o644, 1) });
    }
    for path in [0, 1, DIRECTORY] {
        call(fs, &core, superuser, &Call::ChangeOwner(path, 1)).unwrap();
    }
    call(fs, &core, superuser, &Call::ChangeMode(DIRECTORY, 0o777)).unwrap();
    let player = |thread: usize| {
        let core = arena.claim_waiting(thread, owner(), &sync::Spin).unwrap();
        move |(user, next): &(u32, Call)| {
            let context = Context::new(fs, &core, Credentials::new(*user, *user, &[]).unwrap());
            let outcome = call(fs, &core, &context, next);
            context.leave(fs, &core);
            if maintains {
                fs.maintain(&core, &Spin);
            }
            outcome
        }
    };
    let made = play(plan, player);
    let event = |Made { operation: (user, call), outcome, began, ended }: &Made<(u32, Call), Outcome>| {
        let step = Step { user: *user, call: *call, outcome: *outcome };
        Event { steps: vec![step], began: *began, ended: *ended }
    };
    let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(event).collect()).collect();
    // What is left is looked at in the end: no plan has to do so.
    let look = |path| Event {
        steps: vec![Step { user: 0, call: Call::Stat(path), outcome: call(fs, &core, superuser, &Call::Stat(path)) }],
        began: u64::MAX - 1,
        ended: u64::MAX,
    };
    let looks: Vec<_> = (0..PATHS.len()).map(look).collect();
    events.push(looks);
    expect_order(number, &events, &start, || told(&made));
}
