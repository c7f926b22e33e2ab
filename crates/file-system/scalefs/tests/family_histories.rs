//! Concurrent histories of threads of one process that make children, end them and wait for them: there must be an order of the
//! calls in which a list of children returns the same, each call being one step.
//!
//! Every two calls, and drawn threes, run wherever one of them can be overtaken.
#![cfg(not(loom))]

#[allow(dead_code)]
mod instance;

use std::collections::BTreeMap;
use std::sync::Mutex;

use history::threads::lock;
use history::{
    Event, Made, State, expect_order, in_order, is_sample, mattering, no_call_commutes, of_few_calls, overtake,
    overtake_and_repeat, overtake_each, pairs, play, told,
};
use instance::with_instance_for;
use proptest::prelude::*;
use scalefs::data::{self, DescriptorOptions};
use scalefs::{Ended, Errno, Process, StatusFlags, Which, processes};
use sync::Spin;

/// How each child of a name ends.
const NAMES: [u8; 3] = [0, 1, 2];

/// A child is told by a name, which it keeps until it has been waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// Nothing if there is one of the name.
    Fork(u8),
    /// Nothing if none of the name runs.
    End(u8),
    /// For any child, or for the one of a name: nothing if there was none.
    Wait(Option<u8>),
}

/// What stands for a call that was not made, since the test knew of no child of the name.
const NOT_CALLED: Errno = Errno::ENOENT;

/// The child that was made, that ended, or, of `Wait`, that had ended.
type Outcome = Result<Option<u8>, Errno>;

/// Whether the children that are there have ended; what is in the beginning is a part of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Children(BTreeMap<u8, bool>);

impl Children {
    fn call(&mut self, call: Call) -> Outcome {
        match call {
            Call::Fork(name) => {
                let is_new = !self.0.contains_key(&name);
                self.0.entry(name).or_insert(false);
                Ok(is_new.then_some(name))
            }
            Call::End(name) => {
                let running = self.0.get_mut(&name).filter(|has_ended| !**has_ended);
                Ok(running.map(|has_ended| *has_ended = true).map(|()| name))
            }
            Call::Wait(which) => {
                let children = || self.0.iter().filter(|(name, _)| which.is_none_or(|which| which == **name));
                let ended = children().find(|(_, has_ended)| **has_ended).map(|(name, _)| *name);
                if children().next().is_none() {
                    return Err(Errno::ECHILD);
                }
                if let Some(name) = ended {
                    self.0.remove(&name);
                }
                Ok(ended)
            }
        }
    }
}

impl State for Children {
    type Step = (Call, Outcome);

    fn take(&mut self, _: usize, (call, outcome): &(Call, Outcome)) -> bool {
        match (call, outcome) {
            // Whichever has ended.
            (Call::Wait(None), Ok(Some(name))) => self.call(Call::Wait(Some(*name))) == Ok(Some(*name)),
            // The test itself knows of a child until the call that waited for it has returned.
            (Call::Fork(_) | Call::End(_), Ok(None)) | (Call::Wait(_), Err(NOT_CALLED)) => true,
            _ => self.call(*call) == *outcome,
        }
    }
}

/// Which children there are in the beginning, and which of them have ended; and what each thread calls. No two threads fork or
/// end a child of one name.
type Plan = (Vec<Call>, Vec<Vec<Call>>);

const BEGINNINGS: [&[Call]; 3] = [&[], &[Call::Fork(0)], &[Call::Fork(0), Call::End(0), Call::Fork(1)]];

fn every_call() -> Vec<Call> {
    let of = |name| [Call::Fork(name), Call::End(name), Call::Wait(Some(name))];
    NAMES.into_iter().flat_map(of).chain([Call::Wait(None)]).collect()
}

/// Whether threads make and end children of their own.
fn is_possible(plan: &[Vec<Call>]) -> bool {
    let names = |calls: &Vec<Call>| -> Vec<u8> {
        let changed = |call: &Call| match call {
            Call::Fork(name) | Call::End(name) => Some(*name),
            Call::Wait(_) => None,
        };
        calls.iter().filter_map(changed).collect()
    };
    let of_threads: Vec<Vec<u8>> = plan.iter().map(names).collect();
    let is_own = |(thread, name): (usize, &u8)| {
        of_threads.iter().enumerate().all(|(other, names)| other == thread || !names.contains(name))
    };
    of_threads.iter().enumerate().all(|(thread, names)| names.iter().all(|name| is_own((thread, name))))
}

fn no_call_of_it_commutes((beginning, plan): &Plan) -> bool {
    no_call_commutes(plan, |order| {
        let mut children = Children::default();
        beginning.iter().for_each(|call| _ = children.call(*call));
        (in_order(plan, order, |_, call| children.call(*call)), children)
    })
}

#[test]
fn every_two_calls_have_an_order() {
    let of = |beginning: &'static [Call]| {
        pairs(&every_call()).map(move |plan| (beginning.to_vec(), plan)).collect::<Vec<_>>()
    };
    let plans = BEGINNINGS.into_iter().flat_map(of).filter(|(_, plan)| is_possible(plan));
    overtake_each(mattering(plans, |_| true), explain);
}

#[test]
fn calls_that_are_overtaken_have_an_order() {
    let plans = |number| {
        let matters = move |plan: &Plan| is_sample(number) || no_call_of_it_commutes(plan);
        let beginning = proptest::sample::select(&BEGINNINGS).prop_map(<[Call]>::to_vec);
        (beginning, of_few_calls(proptest::sample::select(every_call())))
            .prop_filter("possible, and no call commutes", move |plan| is_possible(&plan.1) && matters(plan))
    };
    overtake(history::plans(30).longer(10), plans, explain);
}

/// Lets a thread make each list of calls, and looks for their order.
fn explain(round: u64, (beginning, plan): &Plan) {
    with_instance_for(2, 0, |instance| {
        let fs = instance.fs;
        let core = instance.core(3);
        let owned = instance.process(&core);
        let process = &owned;
        // The child of each name that runs, and the numbers of all.
        let running: &[Mutex<Option<Process>>; 3] = &Default::default();
        let numbers = &Mutex::new(BTreeMap::new());
        let make = |core: &percpu::Core<'_>, call: Call| -> Outcome {
            match call {
                Call::Fork(name) => {
                    if !lock(numbers).values().any(|known| *known == name) {
                        let child = process.fork(fs, core, &Spin).unwrap();
                        lock(numbers).insert(child.number(), name);
                        *lock(&running[usize::from(name)]) = Some(child);
                        return Ok(Some(name));
                    }
                    Ok(None)
                }
                Call::End(name) => {
                    let child = lock(&running[usize::from(name)]).take();
                    Ok(child.map(|child| child.exit_with(fs, core, Ended::Exited(name), &Spin)).map(|()| name))
                }
                Call::Wait(which) => {
                    let number =
                        |wanted: u8| lock(numbers).iter().find(|(_, name)| **name == wanted).map(|(number, _)| *number);
                    let which = match which.map(number) {
                        None => Which::Any,
                        Some(Some(number)) => Which::Child(number),
                        Some(None) => return Err(NOT_CALLED),
                    };
                    let waited = processes::wait(&fs.enter(core, process, &Spin), which)?;
                    let Some((number, ended)) = waited else { return Ok(None) };
                    let Ended::Exited(name) = ended else { panic!("child {number:?} {ended:?}") };
                    assert_eq!(lock(numbers).remove(&number).unwrap_or(name), name, "another child's end");
                    Ok(Some(name))
                }
            }
        };
        for call in beginning {
            make(&core, *call).unwrap();
        }
        drop(core);
        let make_call = &make;
        let made = play(plan, |thread| {
            let core = instance.core(thread);
            move |call: &Call| make_call(&core, *call)
        });
        let mut events: Vec<Vec<_>> = made.iter().map(|made| made.iter().map(Made::event).collect()).collect();
        let core = instance.core(3);
        // All that are left are waited for, end, and are waited for again.
        let waits = NAMES.map(|name| Call::Wait(Some(name)));
        let ends = NAMES.map(Call::End);
        let looks = waits.into_iter().chain([Call::Wait(None)]).chain(ends).chain([Call::Wait(None); 4]);
        let looks: Vec<_> = looks.map(|call| (call, make(&core, call))).collect();
        let at_the_end = |step| Event { steps: vec![step], began: u64::MAX - 1, ended: u64::MAX };
        events.push(looks.into_iter().map(at_the_end).collect());
        let mut start = Children::default();
        beginning.iter().for_each(|call| _ = start.call(*call));
        expect_order(round, &events, &start, || told(&made));
        owned.exit(fs, &core, &Spin);
    });
}

/// Who is told of a child's end finds its descriptors closed: a pipe whose only writer it was is at its end.
#[test]
fn the_descriptors_of_a_child_are_closed_before_its_end_is_told() {
    overtake_and_repeat(if cfg!(shuttle) { 500 } else { 50 }, vec![vec!["end"], vec!["wait"]], |_, plan| {
        with_instance_for(2, 8, |instance| {
            let (fs, core) = (instance.fs, instance.core(3));
            let owned = instance.process(&core);
            let process = &owned;
            let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
            assert_eq!(data::pipe(&fs.enter(&core, process, &Spin), options), Ok((0, 1)));
            let child = &Mutex::new(Some(process.fork(fs, &core, &Spin).unwrap()));
            data::close(&fs.enter(&core, process, &Spin), 1).unwrap();
            play(plan, |thread| {
                let core = instance.core(thread);
                move |call: &&str| {
                    if *call == "end" {
                        let child = lock(child).take().unwrap();
                        child.exit_with(fs, &core, Ended::Exited(7), &Spin);
                    } else if processes::wait(&fs.enter(&core, process, &Spin), Which::Any).unwrap().is_some() {
                        assert_eq!(data::read(&fs.enter(&core, process, &Spin), 0, &mut [0]), Ok(0));
                    }
                }
            });
            owned.exit(fs, &core, &Spin);
        });
    });
}
