//! Long runs of transactions that append to lists and read them have none of Adya's anomalies. A list is a directory: its names,
//! in order, are its values.
//!
//! `HISTORIES=2000 cargo test --release -p transact --test adya` makes so many runs. Under `--cfg shuttle`, where faults can be
//! planted, the same search finds them.
#![cfg(not(loom))]

use std::cell::Cell;
use std::sync::Mutex;

use history::{explore, play, repeat, rounds};
use percpu::testing::World;
use posix_calls::names;
use posix_calls::{Credentials, Errno, ObjectOperations, OpenFlags, Start, directories};
use proptest::collection::vec;
use proptest::prelude::*;
use scalefs::{Context, ScaleFs, ScaleFsConfig};
use sync::Spin;
use transact::{Sharing, Transactional};

#[path = "adya/check.rs"]
mod check;
use check::{Anomaly, Committed, History, Step, anomaly};

const LISTS: usize = 3;
const THREADS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Append(usize),
    Read(usize),
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// The values of a list.
fn read<V: ObjectOperations>(call: &V, list: usize) -> Result<Vec<u64>, Errno> {
    let mut listed: Vec<(u64, u64)> = Vec::new();
    let path = format!("list{list}");
    let opened = names::open(call, at(), path.as_bytes(), OpenFlags::READ | OpenFlags::DIRECTORY, 0)?.handle;
    let outcome = call.list(call.held(&opened), 0, &mut |item| {
        let name = String::from_utf8_lossy(item.name).into_owned();
        let (place, value) = name.split_once('-').expect("names are those of `append`");
        listed.push((place.parse().unwrap(), value.parse().unwrap()));
        true
    });
    names::close(call, opened);
    outcome.map_err(Into::<Errno>::into)?;
    listed.sort_unstable();
    Ok(listed.into_iter().map(|(_, value)| value).collect())
}

/// Appends a value behind those that are there, which it tells.
fn append<V: ObjectOperations>(call: &V, list: usize, value: u64) -> Result<Vec<u64>, Errno> {
    let before = read(call, list)?;
    let name = format!("list{list}/{}-{value}", before.len());
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE;
    names::close(call, names::open(call, at(), name.as_bytes(), flags, 0o600)?.handle);
    Ok(before)
}

/// Transactions of each thread.
type Plan = Vec<Vec<Vec<Operation>>>;

/// What came of a transaction: its steps, if it has happened, and the values of attempts that did not.
type Outcome = (Option<Vec<Step>>, Vec<u64>);

/// Lets threads make transactions, and tells what happened.
fn run(number: u64, plan: &[Vec<Vec<Operation>>]) -> History {
    let world = World::new(plan.len() + 1);
    let config = ScaleFsConfig { hash_seed: number, directory_bucket_count: 2, ..ScaleFsConfig::default() };
    let core = world.core(plan.len());
    let fs = ScaleFs::create(&core, config).unwrap();
    let context = Context::new(fs, &core, Credentials::SUPERUSER);
    for list in 0..LISTS {
        let path = format!("list{list}");
        directories::make_directory(&fs.begin(&core, &context, &Spin), at(), path.as_bytes(), 0o755).unwrap();
    }
    let made = play(plan, |thread| {
        let core = world.core(thread);
        let context = Context::new(fs, &core, Credentials::SUPERUSER);
        let next = Cell::new(thread as u64);
        move |operations: &Vec<Operation>| -> Outcome {
            let transactional = Transactional::new(Sharing::Shared, || fs.begin(&core, &context, &Spin)).attempts(8);
            let aborted = Mutex::new(Vec::new());
            let outcome = transactional.transaction(|t| {
                let mut steps = Vec::new();
                for operation in operations {
                    match *operation {
                        Operation::Read(list) => steps.push(Step::Read(list, read(&t.begin(), list)?)),
                        Operation::Append(list) => {
                            let value = next.replace(next.get() + THREADS as u64);
                            aborted.lock().unwrap().push(value);
                            steps.push(Step::Read(list, append(&t.begin(), list, value)?));
                            steps.push(Step::Append(list, value));
                        }
                    }
                }
                Ok(steps)
            });
            fs.maintain(&core, &Spin);
            let mut aborted = aborted.into_inner().unwrap();
            match outcome {
                Ok(steps) => {
                    aborted
                        .retain(|value| !steps.iter().any(|step| matches!(step, Step::Append(_, own) if own == value)));
                    (Some(steps), aborted)
                }
                Err(Errno::ECANCELED) => (None, aborted),
                Err(other) => panic!("a transaction ends with {other}"),
            }
        }
    });
    let mut history = History::default();
    for one in made.into_iter().flatten() {
        let (steps, aborted) = one.outcome;
        history.aborted.extend(aborted);
        history.committed.extend(steps.map(|steps| Committed { began: one.began, ended: one.ended, steps }));
    }
    // Whoever looks in the end sees all that has happened.
    let steps = (0..LISTS).map(|list| Step::Read(list, read(&fs.begin(&core, &context, &Spin), list).unwrap()));
    history.committed.push(Committed { began: u64::MAX - 1, ended: u64::MAX, steps: steps.collect() });
    history
}

fn explain(number: u64, plan: &Plan) {
    let history = run(number, plan);
    assert_eq!(anomaly(&history), None, "round {number}: {history:#?}");
}

fn any_plan(length: usize) -> impl Strategy<Value = Plan> {
    let operation = prop_oneof![(0..LISTS).prop_map(Operation::Append), (0..LISTS).prop_map(Operation::Read)];
    vec(vec(vec(operation, 1..4), length), THREADS)
}

#[test]
fn long_runs_have_no_anomaly() {
    let length = if cfg!(shuttle) { 4 } else { 16 };
    explore(rounds(if cfg!(shuttle) { 100 } else { 8 }), move |_| any_plan(length), explain);
}

/// Two that read both lists and append to one each, and one that reads both.
fn skewed() -> Plan {
    use Operation::{Append, Read};
    vec![
        vec![vec![Read(1), Append(0)], vec![Read(0), Read(1)]],
        vec![vec![Read(0), Append(1)], vec![Read(1), Read(0)]],
        vec![vec![Read(0), Read(1)], vec![Append(0), Append(1)]],
    ]
}

#[test]
fn skew_has_no_anomaly() {
    repeat(if cfg!(shuttle) { 300 } else { 30 }, skewed(), explain);
}

/// Each anomaly is told by its name.
#[test]
fn anomalies_are_told_apart() {
    let one = |steps: &[Step]| Committed { began: 0, ended: 9, steps: steps.to_vec() };
    let read = |list, values: &[u64]| Step::Read(list, values.to_vec());
    let put = Step::Append;
    let last = |first: &[u64], second: &[u64]| one(&[read(0, first), read(1, second)]);
    let of = |committed: Vec<Committed>| anomaly(&History { committed, aborted: [66].into() });
    assert_eq!(of(vec![one(&[put(0, 1)]), one(&[read(0, &[1])]), one(&[read(0, &[])])]), None);
    assert_eq!(of(vec![one(&[read(0, &[66])])]), Some(Anomaly::AbortedRead));
    assert_eq!(of(vec![one(&[put(0, 1), put(0, 2)]), one(&[read(0, &[1])])]), Some(Anomaly::IntermediateRead));
    let both = |first, second| one(&[put(0, first), put(1, second)]);
    assert_eq!(of(vec![both(1, 2), both(3, 4), last(&[1, 3], &[4, 2])]), Some(Anomaly::G0));
    let lost = vec![one(&[put(0, 1)]), one(&[put(0, 2)]), one(&[read(0, &[1])]), one(&[read(0, &[2])])];
    assert_eq!(of(lost), Some(Anomaly::Order));
    let told = vec![one(&[put(0, 1), read(1, &[2])]), one(&[put(1, 2), read(0, &[1])])];
    assert_eq!(of(told), Some(Anomaly::G1c));
    let skewed_read = vec![both(1, 2), one(&[read(0, &[1]), read(1, &[])]), last(&[1], &[2])];
    assert_eq!(of(skewed_read), Some(Anomaly::GSingle));
    let skewed = vec![one(&[read(1, &[]), put(0, 1)]), one(&[read(0, &[]), put(1, 2)]), last(&[1], &[2])];
    assert_eq!(of(skewed), Some(Anomaly::G2));
    let stale = vec![
        Committed { began: 0, ended: 1, steps: vec![put(0, 1)] },
        Committed { began: 2, ended: 3, steps: vec![read(0, &[])] },
        Committed { began: 4, ended: 5, steps: vec![read(0, &[1])] },
    ];
    assert_eq!(of(stale), Some(Anomaly::RealTime));
}

#[cfg(shuttle)]
mod faults {
    use sync::mutant::must_be_caught;

    use super::*;

    /// Two that read a list each, and append to the other's.
    fn crossed() -> Plan {
        use Operation::{Append, Read};
        vec![vec![vec![Read(1), Append(0)]], vec![vec![Read(0), Append(1)]]]
    }

    #[test]
    fn listings_end_where_they_ended() {
        must_be_caught("transact: where a listing ends is not kept", || repeat(20_000, crossed(), explain));
    }

    #[test]
    fn changes_come_before_the_check() {
        must_be_caught("transact: checked after the changes", || repeat(20_000, crossed(), explain));
    }
}
