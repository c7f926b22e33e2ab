//! The coordinator's view of all actors: who is awake, and having one of them execute an operation.

use crate::execution::{Execution, Marks};
use crate::place::{ACTOR_COUNT, CORE_LIMIT, Place};
use crate::slot::Slot;

/// Slots of all actors, by [`Place::index`].
pub type Slots<Operation> = [Slot<Operation>; ACTOR_COUNT];

/// All actors. The home of process 0 is the coordinator itself: its operations are executed on the spot.
pub struct Crew<T: Execution> {
    slots: &'static Slots<T::Operation>,
    /// Number of cores for calls under test.
    core_count: usize,
    /// Per core, the worker that is awake on it.
    awake: [Option<Place>; CORE_LIMIT],
}

const COORDINATOR: Place = Place::Home { process: 0 };

impl<T: Execution> Crew<T> {
    /// A crew of the actors of `core_count` cores, who serve `slots` (all but the home of process 0) and sleep.
    ///
    /// # Safety
    /// This is the only crew over `slots`, and no one else commands them.
    ///
    /// # Panics
    /// If there are more than [`CORE_LIMIT`] cores.
    #[must_use]
    pub unsafe fn new(slots: &'static Slots<T::Operation>, core_count: usize) -> Self {
        assert!(core_count <= CORE_LIMIT, "{core_count} cores: at most {CORE_LIMIT}");
        Self { slots, core_count, awake: [None; CORE_LIMIT] }
    }

    /// Number of cores that calls run on, and of processes.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.core_count
    }

    /// The operation in an actor's slot.
    pub fn operation(&mut self, place: Place) -> &mut T::Operation {
        let place = T::actor(place);
        // SAFETY: we are the coordinator (`new`), no command is under way since each is waited for, and `&mut self` keeps
        // other references from here away.
        unsafe { self.slots[place.index()].operation() }
    }

    /// Makes sure that a worker spins on its core, alone there. Homes need no such thing.
    pub fn attend(&mut self, place: Place) {
        let place = T::actor(place);
        let Place::Worker { core, .. } = place else { return };
        if T::ONE_THREAD {
            return;
        }
        let awake = &mut self.awake[core];
        if *awake == Some(place) {
            return;
        }
        match awake.replace(place) {
            // SAFETY: the slots are one array, which the actors of all of them serve (`new`).
            Some(other) => unsafe { self.slots[other.index()].relieve(&self.slots[place.index()]) },
            None => self.slots[place.index()].attend(),
        }
    }

    /// Has an actor execute the operation in its slot.
    pub fn run(&mut self, place: Place, marks: Marks) -> i64 {
        let place = T::actor(place);
        match place {
            _ if T::ONE_THREAD => T::execute(self.operation(place), marks),
            COORDINATOR => T::execute(self.operation(place), marks),
            Place::Home { .. } => self.slots[place.index()].run_here(marks),
            Place::Worker { .. } => {
                self.attend(place);
                self.slots[place.index()].run(marks)
            }
        }
    }

    /// Sends everybody to sleep.
    pub fn rest(&mut self) {
        for awake in &mut self.awake {
            if let Some(place) = awake.take() {
                self.slots[place.index()].sleep();
            }
        }
    }
}
