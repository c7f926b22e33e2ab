//! Decisions one after the other, and by the heir of a dead core.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, Ordering};

use commit::{Anyone, Decisions, Observed, Owner, Precedence, Revoked, Stance, Tag};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};
use sync::Spin;

fn with_cores(test: impl FnOnce(&Arena, &Decisions, &Core, &Core)) {
    let mut region = HeapRegion::new(1 << 20).unwrap();
    let arena = Arena::create(&mut region, ArenaConfig::new(256)).unwrap();
    let owner = OwnerId::new(1).unwrap();
    let decisions = Decisions::create(arena).unwrap();
    let (low, high) = (arena.claim(0, owner).unwrap(), arena.claim(255, owner).unwrap());
    test(arena, decisions, &low, &high);
}

#[test]
fn firm_operations_are_not_disturbed_by_observers() {
    with_cores(|_, decisions, low, high| {
        for core in [low, high] {
            let operation = decisions.begin_firm(core);
            let tag = operation.tag();
            assert_eq!(decisions.observe(tag), Observed::NotCommitted);
            operation.commit().unwrap();
            assert_eq!(decisions.observe(tag), Observed::Committed);
            let next = decisions.begin_firm(core);
            assert_eq!(decisions.observe(tag), Observed::Over);
            next.abort();
            assert_eq!(decisions.observe(next.tag()), Observed::NotCommitted);
        }
    });
}

#[test]
fn an_observed_revocable_operation_never_happens() {
    with_cores(|_, decisions, low, high| {
        let operation = decisions.begin_revocable(high);
        assert_eq!(decisions.observe(operation.tag()), Observed::NotCommitted);
        assert_eq!(operation.commit(), Err(Revoked));
        assert_eq!(decisions.observe(operation.tag()), Observed::NotCommitted);
        let operation = decisions.begin_revocable(low);
        operation.commit().unwrap();
        assert_eq!(decisions.observe(operation.tag()), Observed::Committed);
    });
}

#[test]
fn tags_are_unique_and_survive_a_word() {
    with_cores(|_, decisions, low, high| {
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..100 {
            let operation = decisions.begin_firm(if round % 2 == 0 { low } else { high });
            assert!(operation.tag().to_bits() < 1 << 62);
            assert!(seen.insert(operation.tag().to_bits()));
            assert_eq!(Tag::from_bits(operation.tag().to_bits()), Some(operation.tag()));
        }
        assert_eq!(Tag::from_bits(0), None);
    });
}

#[test]
fn the_heir_of_a_core_learns_what_happened() {
    with_cores(|_, decisions, low, _| {
        let operation = decisions.begin_revocable(low);
        assert_eq!(decisions.last(low), (operation.tag(), false));
        assert_eq!(decisions.observe(operation.tag()), Observed::NotCommitted, "it is still known");
        assert_eq!(operation.commit(), Err(Revoked));
        let operation = decisions.begin_firm(low);
        operation.commit().unwrap();
        assert_eq!(decisions.last(low), (operation.tag(), true));
    });
}

#[test]
fn what_is_decided_stays_decided() {
    with_cores(|_, decisions, low, high| {
        for core in [low, high] {
            let aborted = decisions.begin_revocable(core);
            aborted.abort();
            assert_eq!(aborted.commit(), Err(Revoked), "nobody has looked at it");
            let mut insists = decisions.begin_revocable(core);
            insists.open(Precedence(1), Stance::Insists);
            insists.abort();
            assert_eq!(decisions.observe(insists.tag()), Observed::NotCommitted, "there is nothing to wait for");
            let undecided = decisions.begin_revocable(core);
            assert_eq!(decisions.last(core), (undecided.tag(), false));
            assert_eq!(undecided.commit(), Err(Revoked), "the heir has decided it");
            let committed = decisions.begin_revocable(core);
            committed.commit().unwrap();
            assert_eq!(decisions.last(core), (committed.tag(), true));
            assert_eq!(decisions.observe(committed.tag()), Observed::Committed, "the heir has changed nothing");
        }
    });
}

#[test]
fn a_mark_that_names_a_core_leads_to_its_last_operation() {
    with_cores(|_, decisions, low, high| {
        for core in [low, high] {
            let last = || decisions.observe_last(core.index(), Anyone);
            let operation = decisions.begin_firm(core);
            assert_eq!(last(), Observed::NotCommitted);
            operation.commit().unwrap();
            assert_eq!(last(), Observed::Committed);
            decisions.begin_firm(core).abort();
            assert_eq!(last(), Observed::NotCommitted);
        }
    });
}

#[test]
fn who_goes_first_revokes_and_the_other_waits() {
    with_cores(|_, decisions, low, high| {
        let open = |core, precedence, stance| {
            let mut operation = decisions.begin_revocable(core);
            operation.open(Precedence(precedence), stance);
            operation
        };
        let [first, second] = [open(low, 1, Stance::Insists), open(high, 2, Stance::Insists)];
        assert_eq!(decisions.observe_by(second.tag(), Owner(low.index())), Observed::NotCommitted);
        assert_eq!(second.commit(), Err(Revoked), "whose number is larger is revoked, whatever it insists on");
        let (looks, tag, viewer) = (AtomicBool::new(false), first.tag(), Owner(high.index()));
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                looks.store(true, Ordering::Release);
                decisions.observe_by(tag, viewer)
            });
            while !looks.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // Long enough for a viewer that does not wait to do harm.
            (0..1_000).for_each(|_| std::thread::yield_now());
            assert_eq!(first.commit(), Ok(()));
            assert_eq!(seen.join().unwrap(), Observed::Committed);
        });
        let [first, second] = [open(low, 7, Stance::Yields), open(high, 7, Stance::Yields)];
        assert_eq!(decisions.observe_by(second.tag(), Owner(low.index())), Observed::NotCommitted);
        assert_eq!((first.commit(), second.commit()), (Ok(()), Err(Revoked)), "of equal numbers the core decides");
    });
}

#[test]
fn what_a_core_has_marked_is_as_before_until_it_commits() {
    with_cores(|_, decisions, low, high| {
        let marked = decisions.begin_firm(high);
        assert!(decisions.is_as_before(high.index(), low, &Spin));
        marked.commit().unwrap();
        assert!(!decisions.is_as_before(high.index(), low, &Spin));
        // Who has nothing open revokes what another core has.
        let open = |core| {
            let mut operation = decisions.begin_revocable(core);
            operation.open(Precedence(7), Stance::Yields);
            operation
        };
        let others = open(high);
        assert!(decisions.is_as_before(high.index(), low, &Spin));
        assert_eq!(others.commit(), Err(Revoked));
        // Its own it does not; and what its own has precedence over it revokes.
        let (own, others) = (open(low), open(high));
        assert!(decisions.is_as_before(low.index(), low, &Spin) && decisions.is_as_before(high.index(), low, &Spin));
        assert_eq!((own.commit(), others.commit()), (Ok(()), Err(Revoked)));
    });
}
