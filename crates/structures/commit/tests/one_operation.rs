//! A core has one operation that is not decided: one that begins another is refused, and nothing that is done with one
//! that is over changes what marks of another say.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use commit::{Decisions, Observed, Operation, Precedence, Revoked, Stance, Tag};
use percpu::Core;
use percpu::testing::World;

fn with_core<R>(test: impl FnOnce(&Decisions, &Core) -> R) -> R {
    let world = World::new(2);
    test(Decisions::create(world.arena()).unwrap(), &world.core(0))
}

/// Begins another operation if it can.
fn another<'d>(decisions: &'d Decisions, core: &'d Core) -> Option<Operation<'d>> {
    catch_unwind(AssertUnwindSafe(|| decisions.begin_firm(core))).ok()
}

/// What a mark of an operation that no one commits says, whatever the core commits before and after.
fn the_older_is_decided_last() {
    with_core(|decisions, core| {
        let older = decisions.begin_firm(core);
        let younger = another(decisions, core);
        let mark: Option<Tag> = younger.as_ref().map(Operation::tag);
        older.commit().unwrap();
        decisions.begin_firm(core).commit().unwrap();
        let said = mark.map(|mark| decisions.observe(mark));
        assert_ne!(said, Some(Observed::Committed), "nobody has committed what this mark belongs to");
    });
}

#[test]
fn a_core_begins_one_operation_at_a_time() {
    the_older_is_decided_last();
    with_core(|decisions, core| {
        assert!(!decisions.is_deciding(core));
        let begin: [fn(&Decisions, &Core); 4] = [
            |decisions, core| decisions.begin_firm(core).commit().unwrap(),
            |decisions, core| decisions.begin_revocable(core).abort(),
            |decisions, core| drop(decisions.begin_revocable(core)),
            |decisions, core| {
                let operation = decisions.begin_firm(core);
                assert!(decisions.is_deciding(core) && another(decisions, core).is_none());
                assert_eq!(decisions.observe(operation.tag()), Observed::NotCommitted, "refused without a trace");
            },
        ];
        for begin in begin.into_iter().cycle().take(8) {
            begin(decisions, core);
            assert!(!decisions.is_deciding(core), "it is decided, or was dropped");
        }
        for stance in [Stance::Yields, Stance::Insists] {
            let mut operation = decisions.begin_firm(core);
            operation.open(Precedence(1), stance);
            assert!(decisions.is_deciding(core) && another(decisions, core).is_none());
        }
    });
}

#[test]
fn what_is_done_with_an_operation_that_is_over_changes_no_other() {
    with_core(|decisions, core| {
        let revoked = decisions.begin_revocable(core);
        assert_eq!(decisions.observe(revoked.tag()), Observed::NotCommitted);
        let committed = decisions.begin_firm(core);
        committed.commit().unwrap();
        assert_eq!(revoked.commit(), Err(Revoked));
        revoked.abort();
        drop(revoked);
        assert_eq!(decisions.observe(committed.tag()), Observed::Committed);
        committed.abort();
        assert_eq!(decisions.observe(committed.tag()), Observed::Committed, "it has happened");
        drop(committed);
        assert!(decisions.last(core).1);
    });
}

#[test]
fn a_panic_between_marks_and_decision_aborts() {
    with_core(|decisions, core| {
        let mut mark = None;
        let torn = catch_unwind(AssertUnwindSafe(|| {
            let operation = decisions.begin_firm(core);
            mark = Some(operation.tag());
            panic!("in between");
        }));
        assert!(torn.is_err());
        assert_eq!(decisions.observe(mark.unwrap()), Observed::NotCommitted);
        decisions.begin_firm(core).commit().unwrap();
    });
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    sync::mutant::must_be_caught("commit: a core begins two operations", the_older_is_decided_last);
}
