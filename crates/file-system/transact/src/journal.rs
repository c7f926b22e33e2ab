//! Transactions that last: what they do is kept by a [`Journal`], in an order in which it can be done again.
//!
//! ```text
//! commit:  prepare ── open ── take a place ── ask again, decide ── finish ── keep the changes ── wait until they are kept
//!          │           └─ again, if it was revoked ───┘                 │
//!          └────────── all names, pages and attributes that change are locked ┘
//! ```
//! **The order.** A place is taken when all that changes is locked and open, before everything is asked for again. So who
//! changes the same later, or has seen the change, has a later place. Who has seen what was before has an earlier one: if it
//! looks while the change is open, it revokes it, and the next opening takes another place. It matters: a file that is linked
//! and then loses its first name stays, and in the other order its record would be gone first.
//!
//! **The decision comes first.** Observers see the changes at once, and wait for no disk. The answer of the transaction does
//! wait, and so do answers that rest on what others have changed: whoever hears of something has heard of what lasts.

use alloc::rc::Rc;
use core::cell::Cell;
use std::io;

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

    /// Takes a place; one that was taken for an opening that was revoked is given back.
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

/// Takes a place with each opening, when all that changes is locked.
pub(crate) struct TakesPlace<'j>(pub(crate) Rc<Place<'j>>);

impl Participant for TakesPlace<'_> {
    fn prepare(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn opened(&mut self) {
        if !planted("transact: a place is taken after the decision") {
            self.0.take();
        }
    }

    fn commit(&mut self) {}

    fn abort(&mut self) {}
}
