//! The coordinator's view of all actors: who is awake, and having one of them execute an operation.

use crate::place::{ACTOR_COUNT, CORE_LIMIT, PROCESS_LIMIT, Place};
use crate::slot::Slot;
use crate::target::{Marks, Target};

/// Slots of all actors, by [`Place::index`].
pub type Slots<Operation> = [Slot<Operation>; ACTOR_COUNT];

/// All actors. The home of process 0 is the coordinator itself: its operations are executed on the spot.
pub struct Crew<T: Target> {
    slots: &'static Slots<T::Operation>,
    /// Per virtual CPU, the actor that is awake on it.
    awake: [Option<Place>; CORE_LIMIT + PROCESS_LIMIT],
}

const COORDINATOR: Place = Place::Home { process: 0 };

impl<T: Target> Crew<T> {
    /// A crew whose actors serve `slots` (all but the home of process 0) and sleep.
    ///
    /// # Safety
    /// This is the only crew over `slots`, and nobody else commands them.
    #[must_use]
    pub unsafe fn new(slots: &'static Slots<T::Operation>) -> Self {
        Self { slots, awake: [None; CORE_LIMIT + PROCESS_LIMIT] }
    }

    /// The operation in an actor's slot.
    pub fn operation(&mut self, place: Place) -> &mut T::Operation {
        // SAFETY: we are the coordinator (`new`), no command is under way since each is waited for, and `&mut self` keeps
        // other references from here away.
        unsafe { self.slots[place.index()].operation() }
    }

    /// Makes sure that an actor spins on its virtual CPU, alone.
    pub fn attend(&mut self, place: Place) {
        let awake = &mut self.awake[place.cpu()];
        if place == COORDINATOR || *awake == Some(place) {
            return;
        }
        match awake.replace(place) {
            Some(other) => self.slots[other.index()].relieve(&self.slots[place.index()]),
            None => self.slots[place.index()].attend(),
        }
    }

    /// Has an actor execute the operation in its slot.
    pub fn run(&mut self, place: Place, marks: Marks) -> i64 {
        if place == COORDINATOR {
            return T::execute(self.operation(place), marks);
        }
        self.attend(place);
        self.slots[place.index()].run(marks)
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
