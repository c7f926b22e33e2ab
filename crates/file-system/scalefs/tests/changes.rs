//! Many names that change at one moment, against crate `plain`, with more counts than a core's cache has slots, and with
//! other cores at the same names.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use percpu::ArenaConfig;
use percpu::testing::World;
use plain::Plain;
use proptest::prelude::*;
use scalefs::names::{self, RenameMode};
use scalefs::{
    Claim, Context, Credentials, Decision, Fields, Follow, Host, InodeNumber, Kind, Moment, NameChange, NameChanges,
    NewObject, ObjectOperations as _, OpenFlags, OperationError, Permissions, Precedence, ScaleFs, ScaleFsConfig,
    Start, attributes, directories,
};
use sync::{Spin, Wait, WaitReason};

const PERMISSIONS: Permissions = Permissions { mode: 0o755, user: 0, group: 0 };
const DIRECTORIES: [&str; 4] = ["", "a", "b", "a/c"];
const NAMES: [&str; 5] = ["a", "b", "c", "x", "y"];

/// What shall become of a name.
#[derive(Clone, Copy, Debug)]
enum After {
    Gone,
    Stays,
    NewFile,
    NewDirectory,
    /// What another name of the set leads to now.
    Of(usize),
}

#[derive(Clone, Debug)]
struct Planned {
    directory: &'static str,
    name: &'static str,
    after: After,
    /// It is expected to lead to what it leads to.
    is_right: bool,
}

fn planned() -> impl Strategy<Value = Planned> {
    let after = prop_oneof![
        2 => Just(After::Gone),
        1 => Just(After::Stays),
        2 => Just(After::NewFile),
        2 => Just(After::NewDirectory),
        4 => (0..8_usize).prop_map(After::Of),
    ];
    let names = (prop::sample::select(&DIRECTORIES[..]), prop::sample::select(&NAMES[..]));
    (names, after, prop::bool::weighted(0.98)).prop_map(|((directory, name), after, is_right)| Planned {
        directory,
        name,
        after,
        is_right,
    })
}

fn set() -> impl Strategy<Value = (Vec<Planned>, Decision)> {
    let decision = prop_oneof![5 => Just(Decision::Commit), 1 => Just(Decision::Abort)];
    let changes = prop::collection::vec(planned(), 1..8).prop_map(|mut changes| {
        changes.sort_by_key(|change| (change.directory, change.name));
        changes.dedup_by_key(|change| (change.directory, change.name));
        changes
    });
    (changes, decision)
}

fn at<'v, V: NameChanges>(call: &'v V, path: &str) -> Option<V::Node<'v>> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(call.root(), |node, name| {
        let key = call.key(name.as_bytes()).unwrap();
        let found = (call.kind(node) == Kind::Directory).then(|| call.look_up(node, &key).ok().unwrap())??;
        Some(call.node(&found))
    })
}

/// The names of a set whose directories exist, each with that.
fn known<'v, 's, V: NameChanges>(call: &'v V, set: &'s [Planned]) -> Vec<(V::Node<'v>, &'s Planned)> {
    let directory = |path| at(call, path).filter(|node| call.kind(*node) == Kind::Directory);
    set.iter().filter_map(|change| Some((directory(change.directory)?, change))).collect()
}

/// Attempts a set of changes: whether it happened, or why not.
fn attempt<V: NameChanges>(call: &V, set: &[Planned], decision: Decision) -> Result<(), String> {
    let make = |(directory, change): &(V::Node<'_>, &Planned)| {
        let object = match change.after {
            After::NewFile => NewObject::File,
            After::NewDirectory => NewObject::Directory,
            _ => return None,
        };
        Some(call.make(*directory, object, PERMISSIONS).ok().unwrap())
    };
    let made: Vec<_> = known(call, set).iter().map(make).collect();
    let outcome = attempt_with(call, set, &made, decision);
    for handle in made.into_iter().flatten() {
        call.release(handle);
    }
    outcome
}

fn attempt_with<'v, V: NameChanges>(
    call: &'v V,
    set: &[Planned],
    made: &'v [Option<V::Handle>],
    decision: Decision,
) -> Result<(), String> {
    let known = known(call, set);
    let keys: Vec<_> = known.iter().map(|(_, change)| call.key(change.name.as_bytes()).unwrap()).collect();
    let look_up = |directory: V::Node<'v>, key: &V::Key<'_>| {
        call.look_up(directory, key).ok().unwrap().map(|found| call.node(&found))
    };
    let before: Vec<_> = known.iter().zip(&keys).map(|((directory, _), key)| look_up(*directory, key)).collect();
    let changes: Vec<_> = known
        .iter()
        .enumerate()
        .map(|(index, (directory, change))| {
            let after = match change.after {
                After::Gone => None,
                After::Stays => before[index],
                After::NewFile | After::NewDirectory => made[index].as_ref().map(|handle| call.held(handle)),
                After::Of(other) => before[other % before.len()],
            };
            let before = if change.is_right { before[index] } else { Some(call.root()) };
            NameChange { directory: *directory, key: &keys[index], before, after }
        })
        .collect();
    let mut room: Vec<_> = changes.iter().map(|_| V::Room::default()).collect();
    let prepared =
        call.prepare(&changes, Moment { now_ns: 0, touched: &[] }, &mut room).map_err(|refusal| match refusal {
            OperationError::Exists | OperationError::Changed => "changed".to_owned(),
            OperationError::Dead | OperationError::NotEmpty => "dead or not empty".into(),
            OperationError::NoSpace => "no space".into(),
            OperationError::Fault(_) => "fault".into(),
        })?;
    // Nobody sees anything of it yet, the caller included.
    for change in &changes {
        assert!(look_up(change.directory, change.key) == change.before, "seen before it was decided");
    }
    call.finish(prepared, decision).ok().unwrap();
    Ok(())
}

/// All paths, each with its kind, its object (numbered as they are met), link count, and whether `..` leads where it shall.
fn tree<V: NameChanges>(call: &V) -> Vec<(String, Kind, usize, u32, bool)> {
    let (mut told, mut numbers, mut todo) = (Vec::new(), BTreeMap::new(), vec![String::new()]);
    while let Some(path) = todo.pop() {
        let node = at(call, &path).unwrap();
        let status = call.attributes(node, Fields::ALL).ok().unwrap();
        let count = numbers.len();
        let number = *numbers.entry(status.number.0).or_insert(count);
        let mut is_right = true;
        if status.kind == Kind::Directory {
            let mut below = Vec::new();
            call.list(node, 0, &mut |item| {
                below.push(format!("{path}/{}", str::from_utf8(item.name).unwrap()));
                true
            })
            .ok()
            .unwrap();
            below.sort();
            todo.extend(below);
            let outer = path.rsplit_once('/').map_or("", |(outer, _)| outer);
            is_right = call.parent(node).ok().unwrap() == at(call, outer).unwrap();
        }
        told.push((path, status.kind, number, status.link_count, is_right));
    }
    told
}

fn config(count_slots_per_core: usize) -> ScaleFsConfig {
    ScaleFsConfig { root_bucket_count: 2, directory_bucket_count: 2, count_slots_per_core, ..ScaleFsConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn sets_of_changes_do_what_they_do_in_ordinary_maps(
        sets in prop::collection::vec(set(), 1..24),
        slots in prop::sample::select(vec![1_usize, 4, 1024]),
    ) {
        let world = World::new(2);
        let cores = [world.core(0), world.core(1)];
        let fs = ScaleFs::create(&cores[0], config(slots)).unwrap();
        let context = Context::new(fs, &cores[0], Credentials::SUPERUSER);
        // What the growth of directories leaves behind is there from the start.
        let settle = || (0..24).for_each(|_| cores.iter().for_each(|core| fs.maintain(core, &Spin)));
        let reference = Plain::default();
        let process = plain::Process::new(&reference, Credentials::SUPERUSER);
        for (turn, (set, decision)) in sets.iter().enumerate() {
            let core = &cores[turn % 2];
            let theirs = attempt(&reference.begin(&process), set, *decision);
            prop_assert_eq!(attempt(&fs.begin(core, &context, &Spin), set, *decision), theirs, "{:?}", set);
            let seen = tree(&fs.begin(core, &context, &Spin));
            prop_assert_eq!(&seen, &tree(&reference.begin(&process)), "after {:?}", set);
            prop_assert!(seen.iter().all(|(.., is_right)| *is_right), "a directory stands elsewhere: {:?}", seen);
            fs.maintain(core, &Spin);
        }
        settle();
        prop_assert_eq!(tree(&fs.begin(&cores[0], &context, &Spin)), tree(&reference.begin(&process)), "in the end");
        // What no name leads to is gone.
        let named = tree(&reference.begin(&process)).iter().map(|(_, _, number, ..)| *number).max().unwrap() as u64;
        let space = |left: scalefs::Space| left.inodes - left.free_inodes;
        prop_assert_eq!(space(attributes::space(&fs.begin(&cores[0], &context, &Spin)).unwrap()), named);
    }
}

#[test]
fn a_thousand_names_change_at_one_moment() {
    let world = World::with(16 << 20, ArenaConfig { core_count: 1, chunk_bytes: 4096 });
    let core = world.core(0);
    let fs = ScaleFs::create(&core, config(64)).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let names: Vec<String> = (0..1000).map(|number| format!("name {number}")).collect();
    let change_all = |insert: bool| {
        let call = fs.begin(&core, &context, &Spin);
        let keys: Vec<_> = names.iter().map(|name| call.key(name.as_bytes()).unwrap()).collect();
        let make = |_| call.make(call.root(), NewObject::File, PERMISSIONS).unwrap();
        let made: Vec<_> = if insert { keys.iter().map(make).collect() } else { Vec::new() };
        let changes: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(index, key)| NameChange {
                directory: call.root(),
                key,
                before: call.look_up(call.root(), key).unwrap().map(|found| call.node(&found)),
                after: made.get(index).map(|handle| call.held(handle)),
            })
            .collect();
        let is_there = |name: &String| {
            attributes::stat(&call, Start::WorkingDirectory, name.as_bytes(), Follow::Nothing, Fields::IDENTITY)
        };
        {
            let mut room: Vec<_> = changes.iter().map(|_| Default::default()).collect();
            let prepared = call.prepare(&changes, Moment { now_ns: 0, touched: &[] }, &mut room).unwrap();
            assert!(names.iter().all(|name| is_there(name).is_ok() != insert), "seen before it was decided");
            call.finish(prepared, Decision::Commit).unwrap();
        }
        assert!(names.iter().all(|name| is_there(name).is_ok() == insert), "not seen");
        drop(changes);
        made.into_iter().for_each(|handle| call.release(handle));
    };
    change_all(true);
    (0..8).for_each(|_| fs.maintain(&core, &Spin));
    let stat = |name: &String| {
        attributes::stat(
            &fs.begin(&core, &context, &Spin),
            Start::WorkingDirectory,
            name.as_bytes(),
            Follow::Nothing,
            Fields::ALL,
        )
    };
    assert!(names.iter().all(|name| stat(name).unwrap().link_count == 1));
    change_all(false);
    (0..8).for_each(|_| fs.maintain(&core, &Spin));
    let space = attributes::space(&fs.begin(&core, &context, &Spin)).unwrap();
    assert_eq!(space.free_inodes, space.inodes, "objects were lost");
}

/// What has lost all its names gets none: who holds it may be told so by `stat`, and maintenance forgets it.
#[test]
fn a_file_that_has_gone_gets_no_name() {
    let world = World::new(1);
    let core = world.core(0);
    let fs = ScaleFs::create(&core, config(4)).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let call = fs.begin(&core, &context, &Spin);
    let opened = names::open(&call, Start::WorkingDirectory, b"a", OpenFlags::CREATE, 0o644).unwrap();
    let key = call.key(b"b").unwrap();
    let attempt = || {
        let after = Some(call.held(&opened.handle));
        let change = NameChange { directory: call.root(), key: &key, before: None, after };
        let mut room = [Default::default()];
        match call.prepare(&[change], Moment { now_ns: 0, touched: &[] }, &mut room) {
            Ok(prepared) => call.finish(prepared, Decision::Abort).map_err(|error| format!("{error:?}")),
            Err(error) => Err(format!("{error:?}")),
        }
    };
    assert_eq!(attempt(), Ok(()));
    names::unlink(&call, Start::WorkingDirectory, b"a").unwrap();
    assert_eq!(attempt(), Err("Changed".into()));
    names::close(&call, opened.handle);
}

/// Two threads turn names round, each in sets of its own that overlap, and two rename; the objects stay the same.
#[test]
fn threads_that_turn_names_round_lose_none() {
    const FILES: [&str; 6] = ["a/x", "b/x", "a/y", "b/y", "x", "y"];
    const ROUNDS: usize = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
    let world = World::new(5);
    let core = world.core(0);
    let fs = ScaleFs::create(&core, config(1)).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    let begin = || fs.begin(&core, &context, &Spin);
    for path in ["a", "b"] {
        directories::make_directory(&begin(), Start::WorkingDirectory, path.as_bytes(), 0o755).unwrap();
    }
    for path in FILES {
        let opened = names::open(&begin(), Start::WorkingDirectory, path.as_bytes(), OpenFlags::CREATE, 0o644).unwrap();
        names::close(&begin(), opened.handle);
    }
    let numbers = || {
        let status = |path: &&str| {
            attributes::stat(&begin(), Start::WorkingDirectory, path.as_bytes(), Follow::Nothing, Fields::ALL).unwrap()
        };
        let mut all: Vec<_> = FILES.iter().map(status).map(|status| (status.number.0, status.link_count)).collect();
        all.sort();
        all
    };
    let before = numbers();
    let (is_over, done) = (AtomicBool::new(false), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let turners: Vec<_> = [[0, 1, 2, 4], [3, 2, 1, 5]]
            .into_iter()
            .enumerate()
            .map(|(index, ring)| {
                let (world, context, done) = (&world, &context, &done);
                scope.spawn(move || {
                    let core = world.core(index + 1);
                    for round in 0..ROUNDS {
                        let set: Vec<Planned> = ring
                            .into_iter()
                            .enumerate()
                            .map(|(place, file)| {
                                let (directory, name) = FILES[file].rsplit_once('/').unwrap_or(("", FILES[file]));
                                Planned { directory, name, after: After::Of((place + 1) % ring.len()), is_right: true }
                            })
                            .collect();
                        let outcome = attempt(&fs.begin(&core, context, &Spin), &set, Decision::Commit);
                        if outcome.is_ok() {
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        if round % 16 == 0 {
                            fs.maintain(&core, &Spin);
                        }
                    }
                })
            })
            .collect();
        for (core, [one, other]) in [(3, ["a/x", "b/y"]), (4, ["x", "a/y"])] {
            let (world, context, is_over) = (&world, &context, &is_over);
            scope.spawn(move || {
                let core = world.core(core);
                while !is_over.load(Ordering::Relaxed) {
                    let call = fs.begin(&core, context, &Spin);
                    let (one, other) =
                        ((Start::WorkingDirectory, one.as_bytes()), (Start::WorkingDirectory, other.as_bytes()));
                    names::rename(&call, one, other, RenameMode::Exchange).unwrap();
                    drop(call);
                    fs.maintain(&core, &Spin);
                }
            });
        }
        turners.into_iter().for_each(|turner| turner.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(done.load(Ordering::Relaxed) > ROUNDS / 10, "only {done:?} sets happened");
    (0..8).for_each(|_| fs.maintain_with_idle_cores(&core, &Spin));
    assert_eq!(numbers(), before, "names or counts were lost");
}

/// Counts how often somebody waits for a claim, each time for a millisecond.
#[derive(Default)]
struct Waiting(Cell<u64>);

impl Wait for Waiting {
    fn wait(&self, reason: WaitReason, _: u32) {
        assert_eq!(reason, WaitReason::Claim);
        self.0.set(self.0.get() + 1);
    }
}

impl Host for Waiting {
    fn now_ns(&self) -> u64 {
        (1 + self.0.get()) * 1_000_000
    }
}

/// With two cores, of which each can begin calls.
fn with_two_cores(test: impl FnOnce(&dyn Fn(usize, &dyn Fn(&scalefs::Direct<'_, Waiting>)) -> u64)) {
    let world = World::new(2);
    let cores = [world.core(0), world.core(1)];
    let fs = ScaleFs::create(&cores[0], ScaleFsConfig::default()).unwrap();
    let contexts = [0, 1].map(|core: usize| Context::new(fs, &cores[core], Credentials::SUPERUSER));
    test(&|core, act| {
        let host = Waiting::default();
        act(&fs.begin(&cores[core], &contexts[core], &host));
        host.0.get()
    });
}

/// A call that began before a claim has not seen it: who claims waits, but not for ever.
#[test]
fn who_claims_waits_a_bounded_time_for_calls_under_way() {
    with_two_cores(|call| {
        let claim = |objects| Claim { precedence: Precedence(1), objects, until_ns: u64::MAX };
        let alone = call(0, &|call| call.end_claim(call.claim(&claim(&[])).unwrap()));
        assert_eq!(alone, 0, "nobody is in a call");
        call(1, &|_| {
            let beside = call(0, &|call| call.end_claim(call.claim(&claim(&[])).unwrap()));
            assert!((100..100_000).contains(&beside), "waited {beside} times");
        });
    });
}

/// Regression test: a mutant claimed nothing where everything is to be claimed, and only examples could tell.
#[test]
fn a_claim_of_no_objects_or_too_many_is_one_of_everything() {
    let numbers: Vec<InodeNumber> = (100..107).map(InodeNumber).collect();
    let some = InodeNumber(5);
    for (objects, concerned) in [(&numbers[..0], true), (&numbers[..6], false), (&numbers[..7], true), (&[some], true)]
    {
        with_two_cores(|call| {
            let claim = Claim { precedence: Precedence(7), objects, until_ns: 9_000_000 };
            call(0, &|call| _ = call.claim(&claim).unwrap());
            let heed = |precedence| call(1, &|call| call.heed_claims(Precedence(precedence), &|number| number == some));
            assert_eq!(heed(7), 0, "{} objects: who is not behind", objects.len());
            assert_eq!(heed(8), if concerned { 8 } else { 0 }, "{} objects: until the claim is over", objects.len());
        });
    }
}

/// Places of claims whose time is over are free, whether somebody has ended them or has died.
#[test]
fn there_are_as_many_claims_as_places_and_those_that_are_over_make_room() {
    with_two_cores(|call| {
        let claim = |until_ns| {
            let claim = Claim { precedence: Precedence(1), objects: &[], until_ns };
            let is_made = Cell::new(false);
            call(0, &|call| is_made.set(call.claim(&claim).is_some()));
            is_made.get()
        };
        assert!((0..200).all(|_| claim(1)), "each is over when the next is made");
        assert_eq!((0..200).filter(|_| claim(u64::MAX)).count(), 64);
    });
}
