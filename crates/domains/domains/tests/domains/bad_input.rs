//! What goes wrong at an unlucky moment: a domain that stops between prepare and decision, and renames in a circle.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};

use call_language::Random;
use domains::{Decisions, Limits, OfOneThread, OneThread, OperationNumber, OwnLines, Process};
use messages::DomainNumber;
use messages::simulated::RingSizes;
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, OpenFlags, Start, attributes, directories};

use crate::histories::explain;
use crate::random::number_from_environment;
use crate::reference::Call;

/// When a domain ends, as if it were killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Never,
    BeforeDecision,
    AfterDecision,
}

/// Lines whose domain ends when it writes one.
struct Deadly {
    lines: Rc<OwnLines>,
    end: Rc<Cell<End>>,
}

impl Decisions for Deadly {
    fn commit(&self, operation: OperationNumber) -> bool {
        assert_ne!(self.end.get(), End::BeforeDecision, "killed between prepare and decision");
        let is_written = self.lines.commit(operation);
        assert_ne!(self.end.get(), End::AfterDecision, "killed before owners are told");
        is_written
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        self.lines.is_committed(operation)
    }
}

type Actor = (Rc<OfOneThread>, Process);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn make(actor: &Actor, path: &str) -> Result<(), Errno> {
    actor.0.call(&actor.1, |call| {
        let flags = OpenFlags::CREATE | OpenFlags::WRITE;
        let fd = data::open(call, at(), path.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN)?;
        data::close(call, fd)
    })
}

fn make_directory(actor: &Actor, path: &str) -> Result<(), Errno> {
    actor.0.call(&actor.1, |call| directories::make_directory(call, at(), path.as_bytes(), 0o755))
}

fn stat(actor: &Actor, path: &str) -> Result<u64, Errno> {
    let status =
        actor.0.call(&actor.1, |call| attributes::stat(call, at(), path.as_bytes(), Follow::Symlinks, Fields::ALL));
    status.map(|status| status.number.0)
}

fn rename(actor: &Actor, old: &str, new: &str) -> Result<(), Errno> {
    actor
        .0
        .call(&actor.1, |call| names::rename(call, (at(), old.as_bytes()), (at(), new.as_bytes()), RenameMode::Replace))
}

/// A file of domain 0 was to be renamed into a directory of domain 2 by domain 1, which has ended in that.
struct Killed {
    first: Actor,
    third: Actor,
    file: u64,
}

impl Killed {
    fn at(end: End) -> Killed {
        let (lines, when) = (Rc::new(OwnLines::new(3)), Rc::new(Cell::new(End::Never)));
        let decisions =
            (0..3).map(|_| Rc::new(Deadly { lines: Rc::clone(&lines), end: Rc::clone(&when) }) as Rc<dyn Decisions>);
        let file_system = OneThread::with_decisions(decisions, RingSizes::default(), Limits::default(), || 0);
        let [first, killed, third]: [Actor; 3] =
            [0, 1, 2].map(|number| (file_system.domain(number), Process::new(Credentials::SUPERUSER)));
        make_directory(&first, "a").unwrap();
        first.0.call(&first.1, |call| attributes::change_mode(call, at(), b"a", 0o777)).unwrap();
        make_directory(&third, "c").unwrap();
        make(&first, "a/file").unwrap();
        let file = stat(&first, "a/file").unwrap();
        when.set(end);
        let died = catch_unwind(AssertUnwindSafe(|| rename(&killed, "a/file", "c/file")));
        assert!(died.is_err(), "it has prepared at two owners");
        when.set(End::Never);
        Killed { first, third, file }
    }

    /// Who waits says what for; once that was said, all others know that domain 1 has ended.
    fn is_noted_when_waited_for(&self) -> Rc<RefCell<Vec<String>>> {
        let said = Rc::new(RefCell::new(Vec::new()));
        let others: Rc<[_]> = [&self.first, &self.third].map(|(domain, _)| Rc::downgrade(domain)).into();
        for (domain, _) in [&self.first, &self.third] {
            let (said, others) = (Rc::clone(&said), Rc::clone(&others));
            domain.watch_waits(50_000, move |waiting| {
                said.borrow_mut().push(waiting.to_string());
                assert!(said.borrow().len() < 4, "it still waits: {:?}", said.borrow());
                others.iter().filter_map(Weak::upgrade).for_each(|other| other.note_end_of(DomainNumber(1)));
            });
        }
        said
    }
}

/// What is not decided is as it was, and all else goes on.
#[test]
fn others_go_on_after_one_that_is_killed_between_prepare_and_decision() {
    let Killed { first, third, file } = Killed::at(End::BeforeDecision);
    for actor in [&first, &third] {
        assert_eq!((stat(actor, "a/file"), stat(actor, "c/file")), (Ok(file), Err(Errno::ENOENT)));
        let number = actor.0.own().0;
        for directory in ["a", "c"] {
            let (one, other) = (format!("{directory}/one{number}"), format!("{directory}/other{number}"));
            make(actor, &one).unwrap();
            rename(actor, &one, &other).unwrap();
            assert!(stat(actor, &other).is_ok());
        }
        let across = (format!("a/other{number}"), format!("c/across{number}"));
        rename(actor, &across.0, &across.1).unwrap();
    }
}

/// A change of the same name waits and says what for; once it is known that the other one has ended, its marks are gone.
#[test]
fn who_waits_for_one_that_was_killed_says_so_and_goes_on_once_its_end_is_known() {
    let world = Killed::at(End::BeforeDecision);
    let said = world.is_noted_when_waited_for();
    rename(&world.third, "a/file", "a/other").unwrap();
    let line = said.borrow().join("; ");
    let expected =
        " s for a change by domain 1 that is not decided, at domain 0: let domain 1 go on, or end its process";
    assert!(line.starts_with("domain 2 has waited 0.0") && line.ends_with(expected), "{line}");
    assert_eq!(stat(&world.first, "a/other"), Ok(world.file));
    make(&world.first, "c/file").unwrap();
    assert_eq!(said.borrow().len(), 1, "at the other owner the marks have gone, too");
}

/// It had decided, and no one was informed: it is done for all.
#[test]
fn what_one_has_decided_that_was_killed_is_done() {
    let world = Killed::at(End::AfterDecision);
    world.is_noted_when_waited_for();
    [&world.first, &world.third].into_iter().for_each(|(domain, _)| domain.note_end_of(DomainNumber(1)));
    for actor in [&world.third, &world.first] {
        assert_eq!((stat(actor, "a/file"), stat(actor, "c/file")), (Err(Errno::ENOENT), Ok(world.file)));
    }
    rename(&world.first, "c/file", "a/file").unwrap();
    assert_eq!(stat(&world.third, "a/file"), Ok(world.file));
}

/// What it owned is lost with it: an error, no wait. No directory is split that would lose names with it.
#[test]
fn calls_that_need_one_that_has_ended_fail() {
    let limits = Limits { split_above: 2, ..Limits::default() };
    let file_system = OneThread::new(3, limits, || 0);
    let [first, ended, third]: [Actor; 3] =
        [0, 1, 2].map(|number| (file_system.domain(number), Process::new(Credentials::SUPERUSER)));
    make_directory(&ended, "its").unwrap();
    make(&ended, "its/file").unwrap();
    assert!(stat(&third, "its/file").is_ok());
    for (domain, _) in [&first, &third] {
        domain.note_end_of(DomainNumber(1));
        domain.note_end_of(DomainNumber(1));
    }
    for actor in [&first, &third] {
        assert_eq!(stat(actor, "its/file"), Err(Errno::EIO));
        assert_eq!(make(actor, "its/other"), Err(Errno::EIO));
        assert_eq!(rename(actor, "its/file", "file"), Err(Errno::EIO));
    }
    for number in 0..20 {
        let name = format!("name{number}");
        make(&third, &name).unwrap();
        assert!(stat(&first, &name).is_ok());
    }
}

#[cfg(fuzzing)]
#[test]
fn planted_faults_at_a_death_are_found() {
    use sync::mutant::must_be_caught;
    must_be_caught(
        "domains: marks of a dead domain stay",
        who_waits_for_one_that_was_killed_says_so_and_goes_on_once_its_end_is_known,
    );
    must_be_caught("domains: what a dead domain has decided is undone", what_one_has_decided_that_was_killed_is_done);
}

/// Of directories and of files. An order explains each: so no directory comes below itself, and no domain waits without end.
#[test]
fn renames_in_a_circle_over_three_owners_have_an_order() {
    let rename = |old: &str, new: &str| vec![Call::Rename(old.into(), new.into(), RenameMode::Replace)];
    let directories = vec![rename("n2", "n1/n1/n2"), rename("n1/n1", "n2/n1"), rename("n1", "n2/n3")];
    let files = vec![rename("n0", "n1/n3"), rename("n1/n0", "n2/n3"), rename("n2/n3", "n0")];
    let rounds = number_from_environment("DOMAINS_CALLS").unwrap_or(3_000) / 10;
    let first = Random::new(number_from_environment("DOMAINS_SEED").unwrap_or(1)).below(1 << 20) as u64;
    for number in first..first + rounds {
        explain(number, &directories);
        explain(number, &files);
    }
}
