//! What is to be done once it is known whether a transaction has happened.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

type Hook<'h> = Box<dyn FnOnce() + 'h>;

/// Closures for either end of a transaction.
#[derive(Default)]
pub(crate) struct Hooks<'h> {
    on_commit: RefCell<Vec<Hook<'h>>>,
    on_abort: RefCell<Vec<Hook<'h>>>,
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |hooks: &RefCell<Vec<_>>| hooks.borrow().len();
        write!(formatter, "{} on commit, {} on abort", count(&self.on_commit), count(&self.on_abort))
    }
}

impl<'h> Hooks<'h> {
    pub(crate) fn on_commit(&self, hook: impl FnOnce() + 'h) {
        self.on_commit.borrow_mut().push(Box::new(hook));
    }

    pub(crate) fn on_abort(&self, hook: impl FnOnce() + 'h) {
        self.on_abort.borrow_mut().push(Box::new(hook));
    }

    /// Runs those of the end that has come: of a commit in their order, of an abort the last ones first, as one undoes.
    pub(crate) fn run(self, has_happened: bool) {
        if has_happened {
            self.on_commit.into_inner().into_iter().for_each(|hook| hook());
        } else {
            self.on_abort.into_inner().into_iter().rev().for_each(|hook| hook());
        }
    }
}
