//! Transactions that last: what they do is kept by a [`Journal`], in an order in which it can be done again.
//!
//! ```text
//! commit:  prepare ── take a place ── ask again, decide ── finish ── keep the changes ── wait until they are kept
//!          └──────────── all names, pages and attributes that change are locked ┘
//! ```
//! **The order.** A place is taken when all that changes is locked, and before it is decided. So who changes the same later,
//! or has seen the change, has a later place. Who only has seen what was before may have an earlier or a later one: to do
//! both again leads to the same either way.
//!
//! **The decision comes first.** Observers see the changes at once, and wait for no disk. The answer of the transaction does
//! wait, and so do answers that rest on what others have changed: whoever hears of something has heard of what lasts.

use alloc::rc::Rc;
use core::cell::Cell;
use std::io;

use commit::Operation;
use sync::mutant::planted;

use crate::changes::Changes;
use crate::hooks::{Participant, Refused};

/// Keeps what transactions do.
pub trait Journal {
    /// The next place: of a transaction that is about to be decided. It is called with locks held, and waits for no one.
    fn take_place(&self) -> u64;

    /// The transaction of this place has happened, and this is what it has changed.
    fn keep(&self, place: u64, changes: &Changes<'_>);

    /// The transaction of this place has not happened.
    fn give_back(&self, place: u64);

    /// Waits until all that was kept up to this place lasts, if answers are to wait for that.
    ///
    /// # Errors
    /// It may not last.
    fn wait(&self, place: u64) -> io::Result<()>;
}

/// The place of an attempt, as long as it is not known whether it happens.
pub(crate) struct Place<'j> {
    journal: &'j dyn Journal,
    taken: Cell<Option<u64>>,
}

impl<'j> Place<'j> {
    pub(crate) fn new(journal: &'j dyn Journal) -> Place<'j> {
        Place { journal, taken: Cell::new(None) }
    }

    /// Takes a place; one that was taken for locks that are gone is given back.
    fn take(&self) {
        self.give_back();
        self.taken.set(Some(self.journal.take_place()));
    }

    /// It has happened.
    pub(crate) fn keep(&self, changes: &Changes<'_>) {
        if planted("transact: a place is taken after the decision") {
            self.take();
        }
        self.journal.keep(self.taken.get().expect("a commit takes one"), changes);
    }

    /// It has not happened.
    pub(crate) fn give_back(&self) {
        if let Some(place) = self.taken.take() {
            self.journal.give_back(place);
        }
    }

    /// Waits for all that the transaction has changed, or that it may have seen.
    pub(crate) fn wait(&self, has_happened: bool) -> io::Result<()> {
        if !has_happened {
            // All that it may have seen has a place before this one.
            self.take();
        }
        let place = self.taken.get().expect("a commit takes one");
        if !has_happened {
            self.give_back();
            if planted("transact: an error does not wait for what it rests on") {
                return Ok(());
            }
        }
        self.taken.set(None);
        self.journal.wait(place)
    }
}

impl Drop for Place<'_> {
    /// Also after a panic.
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Takes the place with each try of a commit, when all that changes is locked.
pub(crate) struct TakesPlace<'j>(pub(crate) Rc<Place<'j>>);

impl Participant for TakesPlace<'_> {
    fn prepare(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn mark(&mut self, _: Option<&Operation<'_>>) -> Result<(), Refused> {
        if !planted("transact: a place is taken after the decision") {
            self.0.take();
        }
        Ok(())
    }

    fn commit(&mut self) {}

    fn abort(&mut self) {}
}
