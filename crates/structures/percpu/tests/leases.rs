//! Leases of cores: the processor's own, else another that was used, and none that was not.
#![cfg(not(loom))]

use percpu::testing::{World, owner};
use percpu::{ClaimError, Core};

const CORES: usize = 4;

fn number(core: Result<Core<'_>, ClaimError>) -> Result<usize, ClaimError> {
    core.map(|core| core.index().get())
}

fn a_lease_is_of_the_processors_core() {
    let world = World::new(CORES);
    for processor in [2, 2, 6, 1] {
        assert_eq!(number(world.lease(processor, owner(1))), Ok(processor % CORES));
    }
    assert_eq!(world.core_limit(), 3, "the cores of the processors alone were used");
    let taken = world.lease(2, owner(1)).unwrap();
    let other = world.lease(2, owner(1)).unwrap();
    assert!(other.index().get() < 2, "one that was used before");
    let last = world.lease(2, owner(1)).unwrap();
    assert_eq!(number(world.lease(2, owner(1))), Err(ClaimError::Busy));
    assert_eq!(number(world.lease(1, owner(1))), Err(ClaimError::Busy), "core 3 was never used");
    assert_eq!(world.core_limit(), 3);
    assert_eq!(number(world.claim_any(owner(1))), Ok(3), "whoever has waited for long may take it");
    drop((taken, other, last));
}

#[test]
fn threads_one_after_the_other_use_one_core() {
    a_lease_is_of_the_processors_core();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("percpu: a lease is of any core", a_lease_is_of_the_processors_core);
}

#[test]
fn a_core_that_is_served_is_passed_by_and_said_to_be() {
    let world = World::new(CORES);
    drop((world.core(0), world.core(1)));
    world.for_each_idle_core(owner(5), |idle| {
        let served = idle.index().get();
        let other = world.lease(served, owner(1)).unwrap();
        assert_eq!(other.index().get(), 1 - served, "the other one is free");
        assert_eq!(number(world.lease(served, owner(1))), Err(ClaimError::Served { by: owner(5) }));
    });
}
