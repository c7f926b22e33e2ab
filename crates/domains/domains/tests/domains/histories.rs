//! Calls of several domains at a time, in schedules that a seed chooses: an order of them explains what each returned.
//!
//! `HISTORIES=N` makes that many histories, `HISTORIES=4711..4712` one again (crate `history`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use domains::simulated::{Setup, SimulatedDomain, simulate};
use domains::{Limits, Process, Techniques};
use history::{Event, State, expect_order, explore, rounds};
use messages::Transport;
use messages::simulated::{Disorder, Latencies, RingSizes};
use posix_calls::{Credentials, Follow, Start};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::reference::{Bijection, Call, Outcome, Reference, Route, any_call, create_new, make};
use crate::walks::walk_on;

/// The plain reference, which numbers of files correspond, and how far the domains' walks have come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Names {
    reference: Reference,
    numbers: Bijection,
    walks: BTreeMap<usize, Vec<Route>>,
}

/// A call with what came of it.
type Step = (Call, Outcome);

impl Names {
    fn routes(&self, domain: usize, call: &Call) -> Vec<Route> {
        self.walks.get(&domain).cloned().unwrap_or_else(|| self.reference.routes(domain, call))
    }
}

impl State for Names {
    type Step = Step;

    fn take(&mut self, domain: usize, (call, outcome): &Step) -> bool {
        let routes = self.routes(domain, call);
        self.walks.remove(&domain);
        let expected = self.reference.call_from(domain, call, &routes);
        self.numbers.same(outcome, &expected)
    }

    fn come_nearer(&self, domain: usize, (call, _): &Step) -> Option<Names> {
        let routes = walk_on(&self.reference, call, &self.routes(domain, call))?;
        let mut nearer = self.clone();
        nearer.walks.insert(domain, routes);
        Some(nearer)
    }
}

/// What each domain calls.
pub type Plan = Vec<Vec<Call>>;

/// The names to begin with: files, a link, directories in each other.
fn beginning() -> Vec<Call> {
    let path = str::to_string;
    let file = |name| Call::Open(path(name), create_new());
    vec![
        file("n0"),
        Call::MakeDirectory(path("n1")),
        file("n1/n0"),
        Call::MakeDirectory(path("n1/n1")),
        Call::Link(path("n0"), path("n1/n2"), Follow::Nothing),
        Call::MakeDirectory(path("n2")),
    ]
}

fn call(domain: &SimulatedDomain<'_>, process: &Process, call: &Call) -> Outcome {
    let paths = call.paths();
    let path = |place: usize| (Start::WorkingDirectory, paths.get(place).copied().unwrap_or(""));
    domain.call(process, |begun| make(begun, call, path(0), path(1)))
}

/// Whether a call is one of those whose histories are explained here: listings and handles are not.
fn is_explained(call: &Call) -> bool {
    !matches!(call, Call::List(..) | Call::At(_) | Call::Hold(_))
}

/// Lets domains make their calls in the schedule of this number, and looks for an order.
pub fn explain(number: u64, plan: &Plan) {
    let domain_count = plan.len();
    let latencies = Latencies::of_machine(["x86", "cxl", "hare"][number as usize % 3]).unwrap();
    let techniques = Techniques { affinity: !number.is_multiple_of(4), ..Techniques::default() };
    let setup = Setup {
        rings: if number.is_multiple_of(5) { RingSizes([2, 84, 12, 90]) } else { RingSizes::default() },
        disorder: Disorder { seed: number + 1, longer_percent: 100, pause_one_in: 4, longest_pause_ns: 3_000 },
        limits: Limits {
            split_above: [usize::MAX, 2, 0][number as usize / 3 % 3],
            split_after: if number.is_multiple_of(7) { 8 } else { u64::MAX },
            ..Limits::default()
        },
        techniques,
        ..Setup::new(domain_count, latencies)
    };
    // How much of what there is to begin with was made, and when.
    let begun = Rc::new(Cell::new((0, 0)));
    let events: Rc<RefCell<Vec<Vec<Event<Step>>>>> = Rc::new(RefCell::new(vec![Vec::new(); domain_count]));
    let start = Rc::new(RefCell::new(Names::default()));
    let program = |(place, calls): (usize, &Vec<Call>)| {
        let (begun, events, calls) = (Rc::clone(&begun), Rc::clone(&events), calls.clone());
        let start = Rc::clone(&start);
        move |domain: &SimulatedDomain<'_>| {
            let process = Process::new(Credentials::SUPERUSER);
            // What there is to begin with is made by one domain after the other, so that each owns some.
            loop {
                let (made, from_ns) = begun.get();
                let is_time = domain.transport().now_ns() >= from_ns;
                match beginning().get(made) {
                    None if is_time => break,
                    Some(first) if is_time && made % domain_count == place => {
                        let step = (first.clone(), call(domain, &process, first));
                        assert!(start.borrow_mut().take(0, &step), "{step:?}");
                        begun.set((made + 1, domain.transport().now_ns() + 1));
                    }
                    _ if domain.serve() => {}
                    _ => domain.transport().pause(500),
                }
            }
            for next in &calls {
                // Of two calls that end and begin at one time no one knows which was first.
                let began = domain.transport().now_ns() * 2;
                let outcome = call(domain, &process, next);
                let ended = domain.transport().now_ns() * 2 + 1;
                events.borrow_mut()[place].push(Event { steps: vec![(next.clone(), outcome)], began, ended });
            }
        }
    };
    simulate(&setup, plan.iter().enumerate().map(program).collect()).unwrap_or_else(|stall| panic!("{stall}"));
    expect_order(number, &events.borrow(), &*start.borrow(), || format!("{setup:?}\n{plan:#?}\n"));
}

/// Plans of two or three domains and few names.
fn plans(number: u64) -> impl Strategy<Value = Plan> {
    let calls = if number.is_multiple_of(2) { 3 } else { 2 };
    let call = any_call(3).prop_filter("calls that are explained", is_explained);
    vec(vec(call, 1..=calls), 2..=3)
}

#[test]
fn calls_of_several_domains_have_an_order() {
    explore(rounds(200).longer(2), plans, explain);
}

#[cfg(fuzzing)]
mod planted {
    use posix_calls::names::RenameMode;

    use super::*;

    fn path(name: &str) -> String {
        name.to_string()
    }

    fn must_be_found(fault: &'static str, plan: Plan) {
        sync::mutant::must_be_caught(fault, || (0..20_000).for_each(|number| explain(number, &plan)));
    }

    fn stat(name: &str) -> Call {
        Call::Stat(path(name), Follow::Nothing)
    }

    fn rename(old: &str, new: &str) -> Call {
        Call::Rename(path(old), path(new), RenameMode::Replace)
    }

    #[test]
    fn planted_faults_are_found() {
        let make = |name| Call::Open(path(name), create_new());
        // Another domain keeps what a name leads to, or that it is absent.
        let looks = || vec![stat("n0"), stat("n0"), stat("n0")];
        let moved = || vec![vec![rename("n0", "n3")], looks(), looks()];
        must_be_found("domains: who keeps a name hears of no change", moved());
        must_be_found("domains: what is kept is used without a look at notices", moved());
        must_be_found(
            "domains: a name is kept while it changes",
            vec![looks(), vec![Call::Rename(path("n0"), path("n1/n0"), RenameMode::Exchange)], looks()],
        );
        // Names of a rename lie with several owners, and so do those who look at both.
        let both = || vec![stat("n1/n3"), stat("n0")];
        let over = || vec![both(), vec![rename("n0", "n1/n3")], both()];
        must_be_found("domains: a mark is not looked up where it is decided", over());
        must_be_found("domains: the decision is not written", over());
        // The owner of the root only serves from here on, so that all can happen between any two requests.
        let beside = |first: Vec<Call>, second: Vec<Call>| vec![vec![], first, second];
        let unlink = |name| Call::Unlink(path(name));
        let link = |old, new| Call::Link(path(old), path(new), Follow::Nothing);
        must_be_found(
            "domains: a name is not looked at again when it changes",
            beside(vec![rename("n0", "n3"), make("n0")], vec![unlink("n0"), stat("n0"), stat("n3")]),
        );
        must_be_found(
            "domains: a link does not look at its source again",
            beside(vec![rename("n1/n0", "n0"), stat("n3")], vec![link("n0", "n3"), stat("n3"), stat("n0")]),
        );
        must_be_found(
            "domains: a name goes that a link rests on",
            vec![
                vec![unlink("n0"), stat("n1/n3"), stat("n0")],
                vec![link("n0", "n1/n3")],
                vec![stat("n1/n3"), stat("n0")],
            ],
        );
        let rmdir = |name| Call::RemoveDirectory(path(name));
        must_be_found(
            "domains: names are made in a directory that is being removed",
            beside(vec![make("n2/n0"), stat("n2/n0")], vec![rmdir("n2")]),
        );
        must_be_found(
            "domains: a directory goes while a name is made in it",
            beside(vec![rename("n0", "n2/n0"), stat("n2/n0")], vec![rmdir("n2")]),
        );
        for fault in ["domains: two move directories at a time", "domains: a directory may come below itself"] {
            let plan = beside(vec![rename("n1", "n2/n1"), stat("n1")], vec![rename("n2", "n1/n1/n2"), stat("n2")]);
            must_be_found(fault, plan);
        }
        // Names of split directories, which are lent to who makes them.
        must_be_found(
            "domains: a name that is lent is looked up as it was",
            beside(vec![make("n3"), stat("n3")], vec![stat("n3"), stat("n3")]),
        );
        must_be_found(
            "domains: what was found is not looked at again",
            beside(vec![rename("n1/n1", "n3"), make("n3/n0")], vec![rmdir("n1/n1")]),
        );
    }
}
