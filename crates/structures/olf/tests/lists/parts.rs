//! Parts of another store's operations: that store, of one name, rests on what it has not locked.

use std::sync::Arc as Plain;

use commit::{Decisions, Keeper, Observed, Owner, Precedence, Revoked, Stance, Tag};
use olf::{Domain, Here, Stop};
use percpu::model::ModelArena;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Spin, Wait, WaitReason};

use super::{World, world_of};

/// A store with one name, which is there or not, and two cores.
struct Store {
    /// Twice whether it is there; or one more than four times the tag of the operation by which it comes.
    name: AtomicU64,
    model: ModelArena,
    decisions: &'static Decisions,
}

struct Kept(&'static Decisions);

// SAFETY: the decisions lie in the model's arena, as the lists do.
unsafe impl Keeper for Kept {
    fn decisions(&self) -> &Decisions {
        self.0
    }

    fn wait(&self, round: u32) {
        Spin.wait(WaitReason::Operation, round);
    }
}

impl Store {
    fn new() -> Plain<Store> {
        let model = ModelArena::new(2, 128 << 10);
        let decisions = Decisions::create(model.arena()).unwrap();
        Plain::new(Store { name: AtomicU64::new(0), model, decisions })
    }

    /// Things of these keys stand in the first of two lists that change with the store.
    fn world(&self, in_first: &[usize]) -> World {
        let world = world_of(|domain: Domain| domain.together_with(Box::new(Kept(self.decisions))));
        for key in in_first {
            world.lists[0].insert(&world.last, world.things[*key].clone()).unwrap();
        }
        world
    }

    fn is_there(&self, viewer: impl commit::Viewer) -> bool {
        loop {
            let seen = self.name.load(Ordering::Acquire);
            if seen & 1 == 0 {
                return seen != 0;
            }
            match self.decisions.observe_by(Tag::from_bits(seen >> 2).unwrap(), viewer) {
                Observed::Committed => return true,
                Observed::NotCommitted => return false,
                Observed::Over => Spin.wait(WaitReason::Operation, 0),
            }
        }
    }

    /// The name comes to be.
    fn create(&self) {
        let core = self.model.core(1);
        let operation = self.decisions.begin_firm(&core);
        self.name.store(operation.tag().to_bits() << 2 | 1, Ordering::Release);
        operation.commit().unwrap();
        self.name.store(2, Ordering::Release);
    }

    /// Moves thing 0 to the second list, if the name is not there at that moment; whether it did. It locks nothing of the name.
    fn move_if_absent(&self, world: &World, here: &Here<'static>) -> bool {
        let part = here.part(|a| {
            let thing = a.remove(&world.lists[0], &0)?;
            a.insert(&world.lists[1], thing)
        });
        let (mut part, ()) = match part {
            Ok(part) => part,
            Err(Stop::Absent) => return false,
            Err(other) => panic!("{other}"),
        };
        let core = self.model.core(0);
        let mut operation = self.decisions.begin_firm(&core);
        if part.mark(&operation).is_err() {
            return false;
        }
        let has_happened = loop {
            operation.open(Precedence(0), Stance::Yields);
            if self.is_there(Owner(core.index())) {
                break false;
            }
            match operation.commit() {
                Ok(()) => break true,
                Err(Revoked) => {}
            }
        };
        operation.abort();
        part.unmark(has_happened);
        has_happened
    }
}

/// Who creates the name, and then looks for the thing, comes after a move that has found no name.
pub fn move_and_create(first: bool) {
    let store = Store::new();
    let (for_a, for_b) = (Plain::clone(&store), Plain::clone(&store));
    let (is_moved, is_seen, _) = store.world(&[0]).play(
        first,
        move |world, here| for_a.move_if_absent(world, here),
        move |world, here| {
            for_b.create();
            world.lists[1].contains(here, &0)
        },
    );
    assert_eq!(is_moved, is_seen, "moved, and seen by who had created the name before");
}

/// A part, and a removal of the same thing: one of them has it.
pub fn move_and_remove(first: bool) {
    let store = Store::new();
    let for_a = Plain::clone(&store);
    let (is_moved, is_removed, world) = store.world(&[0]).play(
        first,
        move |world, here| for_a.move_if_absent(world, here),
        |world, here| world.lists[0].remove(here, &0).is_some(),
    );
    assert!(is_moved != is_removed, "moved: {is_moved}, removed: {is_removed}");
    assert_eq!((world.is_in(0, 0), world.is_in(1, 0)), (false, is_moved));
}

#[test]
fn parts_of_another_store() {
    for first in [false, true] {
        sync::model::explore(2, 50, move || move_and_create(first));
        sync::model::explore(2, 50, move || move_and_remove(first));
        sync::model::must_catch("olf: readers do not revoke what is open", 2, move || move_and_create(first));
        sync::model::must_catch("olf: writers do not wait for another store", 2, move || move_and_remove(first));
    }
}
