//! Decisions one after the other, and by the heir of a dead core.
#![cfg(not(loom))]

use commit::{Decisions, Observed, Revoked, Tag};
use percpu::{Arena, ArenaConfig, Core, HeapRegion, OwnerId};

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
        assert_eq!(operation.commit(), Err(Revoked));
        let operation = decisions.begin_firm(low);
        operation.commit().unwrap();
        assert_eq!(decisions.last(low), (operation.tag(), true));
    });
}
