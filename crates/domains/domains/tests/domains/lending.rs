//! Names of split directories that are lent: what others see of them in the meantime, and what it saves.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use domains::simulated::{Setup, SimulatedDomain, simulate};
use domains::{Limits, OneThread, Process};
use messages::Transport;
use messages::simulated::{Disorder, Latencies};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, ObjectOperations, OpenFlags, Start, attributes, directories};

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn make<D: posix_calls::DataOperations>(call: &D, path: &str) -> Result<(), Errno> {
    let flags = OpenFlags::CREATE | OpenFlags::WRITE;
    let fd = data::open(call, at(), path.as_bytes(), flags, 0o600, DescriptorOptions::PLAIN)?;
    data::close(call, fd)
}

fn stat<O: ObjectOperations>(call: &O, path: &str) -> Result<(), Errno> {
    attributes::stat(call, at(), path.as_bytes(), Follow::Nothing, Fields::ALL).map(drop)
}

#[test]
fn who_has_made_a_name_asks_nobody_until_somebody_else_does() {
    let limits = Limits { split_above: 0, ..Limits::default() };
    let file_system = OneThread::new(3, limits, || 0);
    let process = || Process::new(Credentials::SUPERUSER);
    let [first, maker, other] = [0, 1, 2].map(|number| (file_system.domain(number), process()));
    first.0.call(&first.1, |call| directories::make_directory(call, at(), b"split", 0o777)).unwrap();
    first.0.call(&first.1, |call| make(call, "split/one")).unwrap();
    file_system.settle();
    let paths: Vec<String> = (0..8).map(|number| format!("split/n{number}")).collect();
    paths.iter().for_each(|path| maker.0.call(&maker.1, |call| make(call, path)).unwrap());
    let trips = |(domain, process): &(Rc<domains::OfOneThread>, Process), act: &dyn Fn(&domains::Call<'_, _>)| {
        let before = domain.counts();
        act(&domain.begin(process));
        domain.counts().since(&before).round_trips
    };
    let of_maker = trips(&maker, &|call| {
        for pair in paths.chunks(2) {
            names::unlink(call, at(), pair[0].as_bytes()).unwrap();
            names::rename(call, (at(), pair[1].as_bytes()), (at(), pair[0].as_bytes()), RenameMode::Replace).unwrap();
            make(call, &pair[1]).unwrap();
            stat(call, &pair[1]).unwrap();
        }
    });
    assert_eq!(of_maker, 0);
    for path in &paths {
        other.0.call(&other.1, |call| stat(call, path)).unwrap();
        other.0.call(&other.1, |call| names::unlink(call, at(), path.as_bytes())).unwrap();
        assert_eq!(maker.0.call(&maker.1, |call| stat(call, path)), Err(Errno::ENOENT));
    }
    first.0.call(&first.1, |call| names::unlink(call, at(), b"split/one")).unwrap();
    maker.0.call(&maker.1, |call| directories::remove_directory(call, at(), b"split")).unwrap();
}

const NAMES: usize = 12;

/// Four domains with directories that are split at once, in the schedule of a seed.
fn setup(seed: u64) -> Setup {
    Setup {
        disorder: Disorder { seed: seed + 1, longer_percent: 100, pause_one_in: 4, longest_pause_ns: 3_000 },
        limits: Limits { split_above: 0, ..Limits::default() },
        ..Setup::new(4, Latencies::of_machine("cxl").unwrap())
    }
}

/// How many have come to a place of their programs, and when the last one has.
type Meeting = Cell<(usize, u64)>;

/// Waits until all four have come.
fn meet(domain: &SimulatedDomain<'_>, meeting: &Meeting) {
    let now_ns = || domain.transport().now_ns();
    let (come, last_ns) = meeting.get();
    meeting.set((come + 1, last_ns.max(now_ns())));
    while meeting.get().0 < 4 || now_ns() < meeting.get().1 {
        if !domain.serve() {
            domain.transport().pause(300);
        }
    }
}

/// Names exist all the time while one domain lists them, and others look them up, so that they come back to their owners.
fn list_while_names_move(seed: u64) {
    let made = Rc::new(Meeting::default());
    let program = |number: usize| {
        let made = Rc::clone(&made);
        move |domain: &SimulatedDomain<'_>| {
            let process = Process::new(Credentials::SUPERUSER);
            let all = || (0..NAMES).map(|name| format!("n{name}"));
            if number == 1 {
                all().for_each(|path| domain.call(&process, |call| make(call, &path)).unwrap());
            }
            meet(domain, &made);
            match number {
                2 | 3 => {
                    let is_mine = |name: &(usize, String)| name.0 % 2 == number % 2;
                    for (_, path) in all().enumerate().filter(is_mine) {
                        domain.call(&process, |call| stat(call, &path)).unwrap();
                    }
                }
                0 => {
                    for _ in 0..6 {
                        let mut seen = BTreeSet::new();
                        let call = domain.begin(&process);
                        call.list(call.root(), 0, &mut |item| seen.insert(item.name.to_vec())).unwrap();
                        let expected = all().map(String::into_bytes).collect::<BTreeSet<_>>();
                        assert_eq!(seen, expected, "seed {seed}");
                    }
                }
                _ => {}
            }
        }
    };
    simulate(&setup(seed), (0..4).map(program).collect()).unwrap();
}

/// Directories of one name each are not removed while that is on its way.
fn remove_while_names_move(seed: u64) {
    let meetings: Rc<[Meeting; 2]> = Rc::default();
    let program = |number: usize| {
        let meetings = Rc::clone(&meetings);
        move |domain: &SimulatedDomain<'_>| {
            let process = Process::new(Credentials::SUPERUSER);
            let all = || (0..NAMES).map(|name| format!("d{name}"));
            if number == 0 {
                for path in all() {
                    directories::make_directory(&domain.begin(&process), at(), path.as_bytes(), 0o777).unwrap();
                }
            }
            meet(domain, &meetings[0]);
            if number == 1 {
                for path in all() {
                    let [first, name] = ["first", "name"].map(|name| format!("{path}/{name}"));
                    domain.call(&process, |call| make(call, &first).and_then(|()| make(call, &name))).unwrap();
                    domain.call(&process, |call| names::unlink(call, at(), first.as_bytes())).unwrap();
                }
            }
            meet(domain, &meetings[1]);
            for path in all() {
                match number {
                    2 => {
                        let removed =
                            domain.call(&process, |call| directories::remove_directory(call, at(), path.as_bytes()));
                        assert_eq!(removed, Err(Errno::ENOTEMPTY), "seed {seed}, {path}");
                    }
                    3 => domain.call(&process, |call| stat(call, &format!("{path}/name"))).unwrap(),
                    _ => {}
                }
            }
        }
    };
    simulate(&setup(seed), (0..4).map(program).collect()).unwrap();
}

#[test]
fn a_directory_stays_whose_names_are_on_their_way() {
    (0..20).for_each(remove_while_names_move);
}

#[test]
fn a_listing_has_names_that_are_on_their_way() {
    (0..40).for_each(list_while_names_move);
}

#[cfg(fuzzing)]
#[test]
fn planted_faults_are_found() {
    let fault = "domains: a listing leaves out what is on its way";
    sync::mutant::must_be_caught(fault, || (0..2_000).for_each(list_while_names_move));
    let fault = "domains: a directory is closed while names of it are lent";
    sync::mutant::must_be_caught(fault, || (0..2_000).for_each(remove_while_names_move));
}
