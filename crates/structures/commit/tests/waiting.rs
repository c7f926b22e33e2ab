//! Who looks at a mark of what insists waits as its host likes to.
#![cfg(not(loom))]

use std::cell::RefCell;

use commit::{Anyone, Decisions, Observed, Owner, Precedence, Stance, Viewer, Waiting};
use percpu::testing::World;
use sync::{Wait, WaitReason};

/// Counts the rounds, and does something in the fourth.
struct Host<F: Fn()>(RefCell<Vec<u32>>, F);

impl<F: Fn()> Wait for Host<F> {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert_eq!(reason, WaitReason::Operation);
        self.0.borrow_mut().push(round);
        if round == 3 {
            (self.1)();
        }
    }
}

fn waits_for_what_insists(viewer: impl Viewer) {
    let world = World::new(2);
    let decisions = Decisions::create(world.arena()).unwrap();
    let (insisting, looking) = (world.core(0), world.core(1));
    let mut operation = decisions.begin_firm(&insisting);
    operation.open(Precedence(1), Stance::Insists);
    let mut own = decisions.begin_firm(&looking);
    own.open(Precedence(2), Stance::Yields);
    let host = Host(RefCell::default(), || operation.commit().unwrap());
    assert_eq!(decisions.observe_by(operation.tag(), Waiting(viewer, &host)), Observed::Committed);
    assert_eq!(*host.0.borrow(), [0, 1, 2, 3]);
    assert!(!decisions.is_as_before(insisting.index(), &looking, &host), "it has happened");
}

#[test]
fn a_viewer_waits_by_its_host() {
    waits_for_what_insists(Anyone);
    let second = World::new(2).core(1).index();
    waits_for_what_insists(Owner(second));
}
