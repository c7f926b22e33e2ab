//! What is to be done once it is known whether a transaction has happened, and who takes part in knowing it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::{self, Vec};
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::{fmt, mem};

use commit::Operation;
use sync::mutant::planted;

/// Another store that changes with a transaction, or not at all (thesis on TxOS, section 3.7.1: a memory with locks prepares,
/// and then does as the system's transaction does).
pub trait Participant {
    /// Looks whether all that it rests on is still so, and keeps it so until one of the other two is called. Called once, when all
    /// the transaction's changes are prepared. It does not wait for others: they may wait for the transaction. If it panics,
    /// the transaction has not happened.
    ///
    /// # Errors
    /// Something is not so any more, or somebody else holds it: nothing happens, and the transaction runs again.
    fn prepare(&mut self) -> Result<(), Refused>;

    /// Puts marks of the operation on whose decision the transaction depends on all that it rests on: for stores that know how to
    /// look at such a mark, and so change at that very moment. Called with each operation by which the transaction tries to
    /// commit, after [`Participant::prepare`] and as that; with none over a base that decides otherwise.
    ///
    /// # Errors
    /// As for [`Participant::prepare`]; then nothing is marked.
    fn mark(&mut self, _operation: Option<&Operation<'_>>) -> Result<(), Refused> {
        Ok(())
    }

    /// The operation is decided, or is not to happen: replaces its marks, if some were placed. No other operation of its core has
    /// begun. If it panics, the transaction goes on to its end first, where there is `std`.
    fn unmark(&mut self, _has_happened: bool) {}

    /// The operation is open: who looks at what it changes and decides has revoked it, and then it opens again. All that the
    /// transaction rests on is asked for next. Called with each opening.
    fn opened(&mut self) {}

    /// It has happened: whoever looks at the store from now on sees its changes, too.
    fn commit(&mut self);

    /// It has not happened. Called also if it was never prepared.
    fn abort(&mut self);
}

/// A [`Participant`] cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

type Hook<'h> = Box<dyn FnOnce() + 'h>;

/// What somebody has panicked with.
type Panic = Box<dyn Any + Send>;

/// Runs what may panic; without `std` the panic goes on.
fn catch(act: impl FnOnce()) -> Option<Panic> {
    #[cfg(feature = "front")]
    return std::panic::catch_unwind(core::panic::AssertUnwindSafe(act)).err();
    #[cfg(not(feature = "front"))]
    {
        act();
        None
    }
}

/// Lets a panic go on, unless another one does.
fn resume(panic: Option<Panic>) {
    #[cfg(feature = "front")]
    if let Some(panic) = panic.filter(|_| !std::thread::panicking()) {
        std::panic::resume_unwind(panic);
    }
    #[cfg(not(feature = "front"))]
    drop(panic);
}

/// Closures for either end of a transaction, and its participants.
#[derive(Default)]
pub(crate) struct Hooks<'h> {
    participants: RefCell<Vec<Box<dyn Participant + 'h>>>,
    on_commit: RefCell<Vec<Hook<'h>>>,
    on_abort: RefCell<Vec<Hook<'h>>>,
    /// However often the commit looks for space.
    are_prepared: Cell<bool>,
    /// Of a participant that was to replace its marks: it goes on when all is done that follows from the decision.
    panicked: Cell<Option<Panic>>,
}

/// Who is still to hear of the end: participants, then whoever says whether it lasts, then the closures of the end that has come.
struct Unheard<'h, L: FnOnce() -> bool> {
    has_happened: bool,
    participants: vec::IntoIter<Box<dyn Participant + 'h>>,
    lasts: Option<L>,
    hooks: Hooks<'h>,
    closures: VecDeque<Hook<'h>>,
}

impl<L: FnOnce() -> bool> Unheard<'_, L> {
    fn tell(&mut self) {
        for mut participant in self.participants.by_ref() {
            if self.has_happened { participant.commit() } else { participant.abort() }
        }
        if let Some(lasts) = self.lasts.take() {
            let is_commit = lasts() && self.has_happened;
            let hooks = mem::take(&mut self.hooks);
            self.closures = if is_commit {
                hooks.on_commit.into_inner().into()
            } else {
                hooks.on_abort.into_inner().into_iter().rev().collect()
            };
        }
        while let Some(hook) = self.closures.pop_front() {
            hook();
        }
    }
}

impl<L: FnOnce() -> bool> Drop for Unheard<'_, L> {
    /// Where one of them panics, the others hear of it all the same.
    fn drop(&mut self) {
        if !planted("transact: after a panic at the end the others do not hear of it") {
            self.tell();
        }
    }
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |hooks: &RefCell<Vec<_>>| hooks.borrow().len();
        write!(formatter, "{} on commit, {} on abort", count(&self.on_commit), count(&self.on_abort))
    }
}

/// Marks of participants under one operation; dropped, they are replaced.
pub(crate) struct Marked<'m, 'h> {
    hooks: &'m Hooks<'h>,
    has_happened: bool,
}

impl Marked<'_, '_> {
    /// The operation is decided.
    pub(crate) fn decide(mut self, has_happened: bool) {
        self.has_happened = has_happened;
    }
}

impl Drop for Marked<'_, '_> {
    fn drop(&mut self) {
        let mut participants = self.hooks.participants.borrow_mut();
        for participant in participants.iter_mut() {
            if let Some(panic) = catch(|| participant.unmark(self.has_happened)) {
                self.hooks.panicked.set(Some(panic));
            }
        }
    }
}

impl<'h> Hooks<'h> {
    pub(crate) fn on_commit(&self, hook: impl FnOnce() + 'h) {
        self.on_commit.borrow_mut().push(Box::new(hook));
    }

    pub(crate) fn on_abort(&self, hook: impl FnOnce() + 'h) {
        self.on_abort.borrow_mut().push(Box::new(hook));
    }

    pub(crate) fn take_part(&self, participant: impl Participant + 'h) {
        self.participants.borrow_mut().push(Box::new(participant));
    }

    /// Prepares all participants, unless they are.
    fn prepare(&self) -> Result<(), Refused> {
        if self.are_prepared.replace(true) {
            return Ok(());
        }
        self.participants.borrow_mut().iter_mut().try_for_each(|participant| participant.prepare())
    }

    /// Whether no one takes part.
    pub(crate) fn are_alone(&self) -> bool {
        self.participants.borrow().is_empty()
    }

    /// Prepares all participants, unless they are, and lets them place marks of an operation, until what is returned is dropped.
    pub(crate) fn mark(&self, operation: Option<&Operation<'_>>) -> Result<Marked<'_, 'h>, Refused> {
        let marked = Marked { hooks: self, has_happened: false };
        self.prepare()?;
        self.participants.borrow_mut().iter_mut().try_for_each(|participant| participant.mark(operation))?;
        Ok(marked)
    }

    /// Says to all participants that the operation is open.
    pub(crate) fn opened(&self) {
        self.participants.borrow_mut().iter_mut().for_each(|participant| participant.opened());
    }

    /// [`Hooks::run`], after which there are none; nothing to do in most transactions, which have none.
    pub(crate) fn end(&mut self, has_happened: bool, lasts: impl FnOnce() -> bool) {
        let is_none = self.participants.get_mut().is_empty()
            && self.on_commit.get_mut().is_empty()
            && self.on_abort.get_mut().is_empty();
        if is_none {
            lasts();
        } else {
            mem::take(self).run(has_happened, lasts);
        }
    }

    /// Lets participants do as the transaction does, waits for what says whether it lasts, and runs the closures of the end that
    /// has come: of a commit in their order, of an abort the last ones first, as one undoes. What has happened and need not
    /// last is no commit to closures. No participant is kept from others by that wait.
    fn run(self, has_happened: bool, lasts: impl FnOnce() -> bool) {
        let participants = self.participants.take().into_iter();
        let panicked = self.panicked.take();
        Unheard { has_happened, participants, lasts: Some(lasts), hooks: self, closures: VecDeque::new() }.tell();
        resume(panicked);
    }
}
