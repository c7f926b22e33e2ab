//! Concurrent histories of calls on descriptors and data by two to four threads of one process: there must be an order of
//! their steps in which a plain reference returns the same.
//!
//! **The relaxed specification.** These are one step: the reading and the writing of one page, or of a pipe; an append
//! within one page; a cut or extension; the size; moving an offset, with what is read or written there; the removal of a
//! name, and its look-up or creation. A call takes several of them, in this order:
//!
//! - A call on a descriptor finds what it leads to, and then acts on that, whatever becomes of the descriptor meanwhile
//!   (Linux: `fdget`).
//! - A read or write over several pages goes from page to page; it ends at the first that is not whole. (POSIX.1-2017,
//!   2.9.7 wants it to be one step; file systems of Linux differ.)
//! - A new descriptor: every lower number was in use at some moment, one after the other; then its own was free.
//! - `open` finds or creates the file, cuts it for O_TRUNC, and takes a number. `dup` finds, and takes a number; `dup2`
//!   finds, and replaces.
//! - The end of a pipe goes after the last descriptor to it.
//!
//! Offsets and sizes are counted in units of a quarter page, each of one value, so that the reference stays small.
#![cfg(not(loom))]

mod data_calls;
mod data_steps;
mod instance;
mod set_ids;

use data_calls::{
    Answer, Call, NAMES, Outcome, any_call, any_call_on_pipes, call_of, calls_near_the_end, calls_on_numbers,
    calls_on_pipes, make,
};
use data_steps::{Beginning, Object, Reference, prepare, steps};
use history::threads::{self, Barrier, Clock};
use history::{
    Event, Made, beside_two, expect_order, explore, in_order, is_linearisable, is_sample, mattering, no_call_commutes,
    of_few_calls, of_few_kinds, overtake, overtake_and_repeat, overtake_each, overtake_first, pairs, play, rounds,
    told,
};
use instance::with_instance_for;
use plain::{Plain, Process};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::data::{self, Whence};
use scalefs::{Credentials, DataOperations, Errno, OpenFlags};
use sync::Spin;

#[test]
fn the_reference_refuses_impossible_histories() {
    let mut start = Reference::default();
    start.files.push(vec![9; 6]);
    let opened = start.open(Object::File(0), false);
    start.table.insert(0, opened);
    let event = |call: &Call, outcome: Outcome, began, ended| Event { steps: steps(call, &outcome), began, ended };
    let write = |began, ended| event(&Call::WriteAt(0, 2, 4, 7), Ok(Answer::Number(4)), began, ended);
    let read = |seen: &[u8], began, ended| {
        event(&Call::ReadAt(0, 0, seen.len()), Ok(Answer::Units(seen.to_vec())), began, ended)
    };
    let during = |seen: &[u8]| is_linearisable(&[vec![write(1, 4)], vec![read(seen, 2, 3)]], &start);
    assert!(during(&[9; 6]) && during(&[9, 9, 7, 7, 7, 7]));
    assert!(during(&[9, 9, 7, 7, 9, 9]), "pages one after the other");
    assert!(during(&[9, 9, 9, 9, 7, 7]), "the reader may be overtaken");
    assert!(!during(&[9, 9, 7, 9, 9, 9]), "half a page");
    assert!(!is_linearisable(&[vec![write(1, 2)], vec![read(&[9; 6], 3, 4)]], &start), "an old page after the write");
    let duplicate = |number, began, ended| event(&Call::Duplicate(0), Ok(Answer::Number(number)), began, ended);
    assert!(!is_linearisable(&[vec![duplicate(2, 1, 2)]], &start), "1 was free all the time");
    let close = event(&Call::Close(1), Ok(Answer::Done), 4, 7);
    let crossing = [vec![duplicate(1, 1, 2), close], vec![duplicate(2, 3, 6), duplicate(1, 8, 9)]];
    assert!(is_linearisable(&crossing, &start));
}

#[test]
fn concurrent_calls_on_data_have_an_order() {
    let plans = |number: u64| {
        let (thread_count, append) = (2 + number as usize % 3, number % 2 == 1);
        let beginning = Beginning { append, ..Beginning::PLAIN };
        (vec(vec(any_call(append), 12 / thread_count), thread_count), Just(beginning))
    };
    explore(rounds(250).longer(3), plans, explain);
}

/// Calls of few kinds on the two descriptors of one file.
fn few_kinds(number: u64) -> impl Strategy<Value = Plan> {
    let append = number % 2 == 1;
    let call = call_of(append, || (0..2_u32).boxed());
    let beginning = Beginning { append, ..Beginning::PLAIN };
    (of_few_kinds(call, std::mem::discriminant, 2 + number as usize / 2 % 2, 3), Just(beginning))
}

#[test]
fn few_kinds_of_calls_on_one_file_have_an_order() {
    explore(rounds(250).longer(3), few_kinds, explain);
}

/// Calls that have to do with each other: on bytes, on numbers, and on a pipe; and what there is in the beginning.
fn groups() -> [(Vec<Call>, Beginning); 7] {
    [
        (calls_near_the_end(false), Beginning::PLAIN),
        (calls_near_the_end(false), Beginning::WITH_A_HOLE),
        (calls_near_the_end(true), Beginning::APPENDING),
        (calls_on_numbers(), Beginning::PLAIN),
        (calls_on_pipes(), Beginning::PLAIN),
        (calls_on_pipes(), Beginning::WITH_BYTES_IN_THE_PIPE),
        (calls_on_pipes(), Beginning::WITH_BYTES_IN_ONE_SLOT),
    ]
}

/// On a pipe those that commute, too: a read and a write do, and meet in its last slot.
#[test]
fn every_two_calls_that_do_not_commute_have_an_order() {
    let of = |(calls, beginning): (Vec<Call>, _)| pairs(&calls).map(|pair| (pair, beginning)).collect::<Vec<_>>();
    let matters = |plan: &Plan| plan.0.iter().flatten().all(is_plain) || no_call_of_it_commutes(plan);
    overtake_each(mattering(groups().into_iter().flat_map(of), matters), explain_calls_alone);
}

/// A reader that asks whether a pipe's writers have gone after it has found nothing is overtaken by two calls, a write and a
/// close, and drawn plans did not meet it.
#[test]
fn every_call_on_a_pipe_beside_two_others_has_an_order() {
    let calls: Vec<Call> = calls_on_pipes().into_iter().filter(is_plain).collect();
    let of = |beginning| beside_two(&calls).map(|plan| (plan, beginning)).collect::<Vec<_>>();
    let plans = [Beginning::PLAIN, Beginning::WITH_BYTES_IN_THE_PIPE].map(of);
    overtake_first(mattering(plans.into_iter().flatten(), no_call_of_it_commutes), explain_calls_alone);
}

/// Whether a call on pipes moves bytes, or opens or closes an end, and no other call does the same.
fn is_plain(call: &Call) -> bool {
    match call {
        Call::Read(fd, _) | Call::Write(fd, ..) | Call::Close(fd) => *fd < 4,
        Call::DuplicateTo(old, new) => *old == 0 || *new == 4,
        _ => false,
    }
}

#[test]
fn calls_that_are_overtaken_have_an_order() {
    let groups = groups().map(|(calls, beginning)| (proptest::sample::select(calls), Just(beginning)));
    let plans = move |number: u64| {
        let (calls, beginning) = groups[number as usize % groups.len()].clone();
        let matters = move |plan: &Plan| is_sample(number / 7) || no_call_of_it_commutes(plan);
        (of_few_calls(calls), beginning).prop_filter("no call commutes", matters)
    };
    overtake(history::plans(40).longer(50), plans, explain_calls_alone);
}

/// Whether the plain reference says so.
fn no_call_of_it_commutes((plan, beginning): &Plan) -> bool {
    let start = Plain::default();
    let process = Process::new(&start, Credentials::SUPERUSER);
    prepare(&start.begin(&process), *beginning);
    no_call_commutes(plan, |order| {
        let (state, process) = (start.clone(), process.clone());
        let outcomes = in_order(plan, order, |_, call| make(&state.begin(&process), call));
        let left: Vec<_> = looks(plan).map(|look| make(&state.begin(&process), &look)).collect();
        (outcomes, left)
    })
}

#[test]
fn concurrent_calls_on_pipes_have_an_order() {
    let plans = |number: u64| {
        let thread_count = 2 + number as usize % 3;
        (vec(vec(any_call_on_pipes(1), 12 / thread_count), thread_count), Just(Beginning::PLAIN))
    };
    explore(rounds(250).longer(3), plans, explain);
}

/// Makes a file, to which descriptors 0 and 1 append.
fn open_twice_to_append(verbs: &impl DataOperations) {
    for number in [0, 1] {
        assert_eq!(make(verbs, &Call::Open(0, OpenFlags::CREATE, true)), Ok(Answer::Number(number)));
    }
}

/// Between the pages of an append no other comes.
#[test]
fn appends_of_several_pages_follow_each_other() {
    const LENGTH: usize = 9000;
    overtake_and_repeat(50, vec![vec![7_u8], vec![8]], |_, plan| {
        with_instance_for(1, 16, |instance| {
            let (fs, core) = (instance.fs, instance.core(3));
            let owned = instance.process(&core);
            let process = &owned;
            open_twice_to_append(&fs.enter(&core, process, &Spin));
            let made = play(plan, |thread| {
                let core = instance.core(thread);
                move |fill: &u8| data::write(&fs.enter(&core, process, &Spin), thread as u32, &[*fill; LENGTH])
            });
            assert!(made.iter().flatten().all(|made| made.outcome == Ok(LENGTH)));
            let mut bytes = vec![0; 3 * LENGTH];
            assert_eq!(data::read_at(&fs.enter(&core, process, &Spin), 0, &mut bytes, 0), Ok(2 * LENGTH));
            let runs: Vec<_> = bytes[..2 * LENGTH].chunk_by(|one, next| one == next).map(<[u8]>::len).collect();
            assert_eq!(runs, [LENGTH; 2]);
            make(&fs.enter(&core, process, &Spin), &Call::Unlink(0)).unwrap();
            owned.exit(fs, &core, &Spin);
        });
    });
}

/// The last byte that a file can have is appended once: the other call is told so, and not that there is no space.
#[test]
fn of_two_appends_at_the_limit_one_is_too_large() {
    overtake_and_repeat(50, vec![vec![()]; 2], |_, plan| {
        with_instance_for(1, 8, |instance| {
            let (fs, core) = (instance.fs, instance.core(3));
            let owned = instance.process(&core);
            let process = &owned;
            open_twice_to_append(&fs.enter(&core, process, &Spin));
            data::truncate(&fs.enter(&core, process, &Spin), 0, i64::MAX - 1).unwrap();
            let made = play(plan, |thread| {
                let core = instance.core(thread);
                move |(): &()| data::write(&fs.enter(&core, process, &Spin), thread as u32, &[7])
            });
            let mut outcomes: Vec<_> = made.iter().map(|made| made[0].outcome).collect();
            outcomes.sort_by_key(Result::is_err);
            assert_eq!(outcomes, [Ok(1), Err(Errno::EFBIG)]);
            make(&fs.enter(&core, process, &Spin), &Call::Unlink(0)).unwrap();
            owned.exit(fs, &core, &Spin);
        });
    });
}

/// What each thread calls, and what there is in the beginning.
type Plan = (Vec<Vec<Call>>, Beginning);

/// Histories that had no order once, each with the fault that made them.
fn found_once() -> Vec<(&'static str, Plan)> {
    vec![
        // A read of the second page found a hole, when only the first was gone.
        (
            "scalefs: a page without a value is looked at once",
            (vec![vec![Call::Resize(0, 0)], vec![Call::ReadAt(1, 1, 1)]], Beginning::PLAIN),
        ),
        // The append wrote before an end behind which somebody had already read.
        (
            "scalefs: an append looks at the end before its change",
            (
                vec![vec![Call::Write(0, 1, 7), Call::Size(0)], vec![Call::Resize(1, 9), Call::ReadAt(1, 6, 1)]],
                Beginning::APPENDING,
            ),
        ),
        // A read found the end of the file where a hole had been, and the last page of a cut was about to be.
        (
            "scalefs: a page without a value is looked at once",
            (
                vec![vec![Call::Resize(1, 4), Call::Resize(1, 10), Call::ReadAt(1, 5, 1)], vec![Call::Resize(0, 7)]],
                Beginning::PLAIN,
            ),
        ),
        // A read found a hole: no page before the write, and one behind it during that.
        (
            "scalefs: a page without a value is looked at once",
            (vec![vec![Call::ReadAt(1, 8, 1)], vec![Call::WriteAt(0, 8, 5, 7), Call::Resize(0, 6)]], Beginning::PLAIN),
        ),
        // The size was seen before the page that a read needs to find below it.
        (
            "radix: a first value is not awaited",
            (
                vec![vec![Call::Resize(1, 24), Call::Resize(1, 14)], vec![Call::Size(0), Call::ReadAt(0, 8, 1)]],
                Beginning::PLAIN,
            ),
        ),
        // EPIPE, though an end was open: it was counted after the last one had gone.
        (
            "scalefs: an end is counted without the lock of its number",
            (vec![vec![Call::Duplicate(2), Call::Write(3, 1, 7)], vec![Call::Close(2)]], Beginning::PLAIN),
        ),
        // EAGAIN of a pipe that was not full: a slot had been filled, of which the writer did not know.
        (
            "scalefs: a pipe's slot is looked at whosever turn it is",
            (vec![vec![Call::Write(3, 4, 7)], vec![Call::Write(3, 4, 8)]], Beginning::PLAIN),
        ),
        // The size of a write was seen before the offset that it left.
        (
            "scalefs: an offset that is being moved stays",
            (
                vec![vec![Call::Write(0, 1, 7)], vec![Call::Size(1), Call::Seek(0, 0, Whence::Current)]],
                Beginning::PLAIN,
            ),
        ),
        // The same of an error.
        (
            "scalefs: an offset that is being moved stays",
            (
                vec![vec![Call::Write(0, 1, 7)], vec![Call::Size(1), Call::Seek(0, -7, Whence::Current)]],
                Beginning::PLAIN,
            ),
        ),
        // The same of a read at the end.
        (
            "scalefs: an offset that is being moved stays",
            (
                vec![
                    vec![Call::Resize(1, 0), Call::Write(0, 1, 7)],
                    vec![Call::WriteAt(1, 0, 1, 8), Call::ReadAt(1, 0, 2), Call::Read(0, 1)],
                ],
                Beginning::APPENDING,
            ),
        ),
        // A read found the end where its offset had been, was not, and is again.
        (
            "scalefs: an offset that comes back never went",
            (
                vec![
                    vec![Call::Size(0), Call::Read(0, 1)],
                    vec![
                        Call::Resize(1, 9),
                        Call::Seek(0, 2, Whence::Start),
                        Call::Resize(1, 6),
                        Call::Resize(1, 9),
                        Call::Seek(0, 6, Whence::Start),
                    ],
                ],
                Beginning::PLAIN,
            ),
        ),
        // EAGAIN in the middle of a read that then went on with what came.
        (
            "scalefs: the middle of a pipe's call is seen",
            (
                vec![vec![Call::Read(2, 4)], vec![Call::Write(3, 4, 8)], vec![Call::Write(3, 1, 7), Call::Read(2, 2)]],
                Beginning::PLAIN,
            ),
        ),
        // EAGAIN of a pipe that was not empty.
        (
            "scalefs: a pipe's slot is looked at whosever turn it is",
            (
                vec![vec![Call::Write(3, 4, 7), Call::Write(3, 4, 8), Call::Read(2, 4)], vec![Call::Read(2, 4)]],
                Beginning::PLAIN,
            ),
        ),
        // A write behind the end had a lock that a cut to nothing did not wait for: its page stayed, and its size did not.
        (
            "radix: a slot that is locked is taken to stay empty",
            (
                vec![vec![Call::Resize(0, 0)], vec![Call::WriteAt(1, 8, 4, 7), Call::Size(1), Call::ReadAt(1, 8, 1)]],
                Beginning::PLAIN,
            ),
        ),
        // The same of a write that locked after the cut had gone past.
        (
            "scalefs: who extends looks for cuts before the lock",
            (
                vec![vec![Call::Resize(0, 0)], vec![Call::WriteAt(1, 8, 4, 7), Call::Size(1), Call::ReadAt(1, 8, 1)]],
                Beginning::PLAIN,
            ),
        ),
        // A cut that came too late set the size that it had seen; what was written meanwhile had made it larger.
        (
            "scalefs: a cut sets the size that it saw",
            (
                vec![vec![Call::Resize(0, 5)], vec![Call::Resize(1, 1), Call::WriteAt(1, 0, 3, 7), Call::Size(1)]],
                Beginning::PLAIN,
            ),
        ),
        // The size of a write was seen before how far the offset reached.
        (
            "scalefs: an offset's reach is announced after the move",
            (
                vec![
                    vec![Call::Seek(0, 8, Whence::Start), Call::Write(0, 1, 7)],
                    vec![Call::Size(1), Call::Seek(0, -9, Whence::Current)],
                ],
                Beginning::PLAIN,
            ),
        ),
        // Zeros were not written, since there was no page once and the file went on behind it later: in between there was a page.
        (
            "scalefs: a hole is looked at once",
            (
                vec![
                    vec![Call::WriteAt(0, 4, 4, 0), Call::ReadAt(0, 4, 1)],
                    vec![Call::Resize(1, 0), Call::WriteAt(1, 4, 1, 7), Call::Size(1), Call::Resize(1, 9)],
                ],
                Beginning::PLAIN,
            ),
        ),
    ]
}

/// In so many rounds all faults that were found once are found when they are planted again, but for one that needs more.
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
        sync::mutant::must_be_caught(fault, || overtake_and_repeat(100_000, plan, explain));
    }
    let fault = "scalefs: cuts do not exclude each other";
    sync::mutant::must_be_caught(fault, || explore(0..20_000, few_kinds, explain));
}

/// As `explain`, but that no core maintains meanwhile: words that all maintain are where threads would be overtaken most.
fn explain_calls_alone(round: u64, plan: &Plan) {
    explain_if(false, round, plan);
}

/// What shows which bytes, offsets and numbers are left; and where calls may have changed that, what numbers and names lead to.
fn looks(plan: &[Vec<Call>]) -> impl Iterator<Item = Call> {
    let is_on_bytes = |call: &Call| {
        use Call::{Read, ReadAt, Resize, Seek, Size, Write, WriteAt};
        matches!(call, Read(..) | Write(..) | ReadAt(..) | WriteAt(..) | Seek(..) | Resize(..) | Size(..))
    };
    let changes_numbers = !plan.iter().flatten().all(is_on_bytes);
    let opens = (0..NAMES.len()).map(|name| Call::Open(name, OpenFlags::NONE, false));
    let before = [Call::Duplicate(0)].into_iter().chain(opens.filter(move |_| changes_numbers));
    let of = |fd| [Call::Size(fd), Call::Seek(fd, 0, Whence::Current)];
    let numbers = if changes_numbers { 0..8 } else { 0..2 };
    let bytes = [Call::ReadAt(0, 0, 24), Call::Read(2, 24)];
    // A byte of each shows which offsets are one, and which end of a pipe it is.
    let reads = (0..8).filter(move |_| changes_numbers).map(|fd| Call::Read(fd, 1));
    before.chain(numbers.flat_map(of)).chain(bytes).chain(reads)
}

fn explain(round: u64, plan: &Plan) {
    explain_if(true, round, plan);
}

/// Lets a thread make each list of calls, and looks for their order.
fn explain_if(maintains: bool, round: u64, (plan, beginning): &Plan) {
    with_instance_for(1, 64, |instance| {
        let fs = instance.fs;
        let core = instance.core(3);
        let owned = instance.process(&core);
        let process = &owned;
        let start = prepare(&fs.enter(&core, process, &Spin), *beginning);
        drop(core);
        let (clock, barrier) = (Clock::new(1), Barrier::new(plan.len()));
        let run = |number: usize, calls: &[Call]| {
            let core = instance.core(number);
            let mut made = Vec::new();
            barrier.wait();
            for call in calls {
                let began = clock.now();
                let outcome = make(&fs.enter(&core, process, &Spin), call);
                made.push(Made { operation: call.clone(), outcome, began, ended: clock.now() });
                if maintains {
                    fs.maintain(&core, &Spin);
                }
            }
            made
        };
        let made: Vec<Vec<_>> = threads::scope(|scope| {
            let run = &run;
            let running: Vec<_> =
                plan.iter().enumerate().map(|(number, calls)| scope.spawn(move || run(number, calls))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut events = vec![Vec::new(); plan.len()];
        for (thread, made) in made.iter().enumerate() {
            let event = |Made { operation, outcome, began, ended }: &Made<_, _>| Event {
                steps: steps(operation, outcome),
                began: *began,
                ended: *ended,
            };
            events[thread].extend(made.iter().map(event));
        }
        // What is left is looked at in the end: no plan has to do so.
        let core = instance.core(3);
        let verbs = fs.enter(&core, process, &Spin);
        let look = |call: Call| {
            let outcome = make(&verbs, &call);
            Event { steps: steps(&call, &outcome), began: u64::MAX - 1, ended: u64::MAX }
        };
        events[0].extend(looks(plan).map(look));
        drop(verbs);
        drop(core);
        expect_order(round, &events, &start, || told(&made));
        let core = instance.core(3);
        let verbs = fs.enter(&core, process, &Spin);
        for name in 0..NAMES.len() {
            let _ = make(&verbs, &Call::Unlink(name));
        }
        drop(verbs);
        owned.exit(fs, &core, &Spin);
    });
}
