//! Concurrent histories of calls that mark a directory's times, of utimensat and of stat, with a clock.
//!
//! **The relaxed specification.** A call takes its time from the clock while it lasts, and marks it, at the latest, before it
//! ends. So the time of change is at least the begin of each call that has ended, and never goes back. The time of
//! modification is one that some call gave it, and not one of before what has happened since from begin to end.

use std::sync::atomic::{AtomicU64, Ordering};

use history::{Made, explore, of_few_calls, overtake, play, rounds, told};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::attributes::{self, NewTime};
use scalefs::{
    Clocked, Context, Credentials, Fields, Follow, OpenFlags, ScaleFs, ScaleFsConfig, Start, directories, names,
};
use sync::Spin;

/// When the clock starts: times below are set by calls.
const START: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Of two names.
    Make(bool),
    Remove(bool),
    ChangeMode,
    Set(i64),
    Stat,
}

/// Whether it succeeded, what the clock said before and after it, and times of modification and change, of `Stat`.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    is_done: bool,
    began: i64,
    ended: i64,
    seen: [i64; 2],
}

/// Makes a call in directory `d`, or on it.
fn call(fs: &ScaleFs, core: &Core, context: &Context, clock: &AtomicU64, call: Call) -> Outcome {
    let at = Start::WorkingDirectory;
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let host = Clocked { wait: Spin, clock: now };
    let path = |second: bool| if second { b"d/b" } else { b"d/a" };
    let mut seen = [0; 2];
    let began = now() as i64;
    let verbs = &fs.begin(core, context, &host);
    let outcome = match call {
        Call::Make(second) => {
            let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
            names::open(verbs, at, path(second), flags, 0o600).map(|opened| names::close(verbs, opened.handle))
        }
        Call::Remove(second) => names::unlink(verbs, at, path(second)),
        Call::ChangeMode => attributes::change_mode(verbs, at, b"d", 0o700),
        Call::Set(time) => attributes::set_times(verbs, at, b"d", Follow::Symlinks, (NewTime::Same, NewTime::At(time))),
        Call::Stat => attributes::stat(verbs, at, b"d", Follow::Symlinks, Fields::TIMES)
            .map(|status| seen = [status.modified_ns, status.changed_ns]),
    };
    Outcome { is_done: outcome.is_ok(), began, ended: now() as i64, seen }
}

/// Whether a `Stat` may see what it saw beside these calls, all of which succeeded.
fn may_see(calls: &[&Made<Call, Outcome>], stat: &Outcome) -> bool {
    let [modified, changed] = stat.seen;
    let is_stat = |one: &&&Made<Call, Outcome>| one.operation == Call::Stat;
    let before = |one: &&&Made<Call, Outcome>| one.outcome.ended < stat.began;
    let changes = || calls.iter().filter(|one| !is_stat(one));
    let stats_before = || calls.iter().filter(is_stat).filter(before).map(|one| one.outcome.seen[1]);
    let is_new =
        changes().filter(before).map(|one| one.outcome.began).chain(stats_before()).all(|time| time <= changed);
    // Who can have given the time of modification, unless another one came from begin to end between him and us.
    let gives = |one: &Made<Call, Outcome>| match one.operation {
        Call::Make(_) | Call::Remove(_) => (one.outcome.began..=one.outcome.ended).contains(&modified),
        Call::Set(time) => time == modified,
        Call::ChangeMode | Call::Stat => false,
    };
    let is_replaced = |giver: &Outcome| {
        let mut since = changes().filter(before).filter(|one| one.outcome.began > giver.ended);
        since.any(|one| one.operation != Call::ChangeMode)
    };
    let mut givers = changes().filter(|one| gives(one) && one.outcome.began < stat.ended).map(|one| one.outcome);
    let has_giver = givers.any(|giver| !is_replaced(&giver));
    let is_untouched = modified == START as i64 && !is_replaced(&Outcome { ended: 0, ..*stat });
    is_new && changed < stat.ended && (has_giver || is_untouched)
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => any::<bool>().prop_map(Call::Make),
        2 => any::<bool>().prop_map(Call::Remove),
        1 => Just(Call::ChangeMode),
        2 => (1..START as i64).prop_map(Call::Set),
        4 => Just(Call::Stat),
    ]
}

fn plans(number: u64) -> impl Strategy<Value = Plan> {
    vec(vec(any_call(), 5), 2 + number as usize % 2)
}

#[test]
fn times_are_those_of_calls() {
    explore(rounds(250), plans, check);
}

#[test]
fn times_of_calls_that_are_overtaken_are_theirs() {
    overtake(history::plans(20), |_| of_few_calls(any_call()), check);
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    sync::mutant::must_be_caught("maxima: reset keeps its generation", || explore(0..100_000, plans, check));
}

/// What each thread calls.
type Plan = Vec<Vec<Call>>;

fn check(number: u64, plan: &Plan) {
    let owner = OwnerId::new(1).unwrap();
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig { core_count: 4, chunk_bytes: 4096 }).unwrap();
    let core = arena.claim_waiting(3, owner, &sync::Spin).unwrap();
    // One slot for the times of all objects, which drive each other out of it.
    let config = ScaleFsConfig { root_bucket_count: 4, count_slots_per_core: 1, ..ScaleFsConfig::default() };
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = &Context::new(fs, &core, Credentials::SUPERUSER);
    let host = Clocked { wait: Spin, clock: || START };
    directories::make_directory(&fs.begin(&core, context, &host), Start::WorkingDirectory, b"d", 0o700).unwrap();
    let clock = &AtomicU64::new(START + 1);
    let player = |thread: usize| {
        let core = arena.claim_waiting(thread, owner, &sync::Spin).unwrap();
        move |next: &Call| {
            let outcome = call(fs, &core, context, clock, *next);
            fs.maintain(&core, &Spin);
            outcome
        }
    };
    let made = play(plan, player);
    let done: Vec<_> = made.iter().flatten().filter(|one| one.outcome.is_done).collect();
    for one in done.iter().filter(|one| one.operation == Call::Stat) {
        assert!(may_see(&done, &one.outcome), "{one:?} in round {number}:\n{}", told(&made));
    }
}
