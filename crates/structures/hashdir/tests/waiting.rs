//! Who looks up a name whose operation is over, and whose mark is still there, waits as its host likes to.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;

use commit::{Anyone, Decisions, Waiting};
use epoch::Epochs;
use hashdir::{HashDir, Key};
use percpu::testing::World;
use sync::{Spin, Wait, WaitReason};

/// Does something in the third round.
struct Host<F: Fn()>(Cell<u32>, F);

impl<F: Fn()> Wait for Host<F> {
    fn wait(&self, _: WaitReason, round: u32) {
        assert_eq!(self.0.replace(round + 1), round);
        if round == 2 {
            (self.1)();
        }
    }
}

#[test]
fn a_look_at_a_mark_that_is_left_waits_by_the_host() {
    let world = World::new(2);
    let (epochs, decisions) = (Epochs::create(world.arena()).unwrap(), Decisions::create(world.arena()).unwrap());
    let (core, other) = (world.core(0), world.core(1));
    // SAFETY: used with this world's cores and epochs only.
    let directory = world.place(unsafe { HashDir::new(&core, decisions, 4) }.unwrap()).unwrap();
    let (guard, looks) = (epochs.pin(&core), epochs.pin(&other));
    let key = Key::new(b"name", 7).unwrap();
    let locked = directory.lock(&guard, &key, &Spin);
    let operation = decisions.begin_firm(&core);
    let prepared = Cell::new(Some(locked.prepare_insert(&key, 9, operation.tag()).unwrap()));
    operation.commit().unwrap();
    drop(decisions.begin_firm(&core));
    let host = Host(Cell::new(0), || prepared.take().unwrap().finish(true));
    let found = directory.lookup_for(&looks, &key, Waiting(Anyone, &host)).expect("it was inserted");
    assert_eq!((found.value(), host.0.get()), (9, 3));
    assert!(found.still_same_for(Waiting(Anyone, &host)) && found.still_present_for(Waiting(Anyone, &host)));
    let present = directory.present_for(&looks, &key, Waiting(Anyone, &host)).unwrap();
    assert!(present.still_present_for(Waiting(Anyone, &host)));
    assert_eq!(host.0.get(), 3, "nothing more is waited for");
}
