//! `transaction`: a closure whose calls happen at once, and that runs again if they cannot.

use core::{fmt, mem};

use posix_calls::Errno;

use crate::base::{Base, HandleIn};
use crate::call::Call;
use crate::hooks::Hooks;
use crate::transaction::{Fault, Sharing, Transaction};

/// So often a closure runs at most, unless told otherwise.
const ATTEMPTS: u32 = 100;

/// A process of a file system, as transactions want it: how one of its calls begins.
pub struct Transactional<F> {
    begin: F,
    sharing: Sharing,
    attempts: u32,
}

/// A transaction that is running: what its closure gets.
pub struct Running<'f, B: Base, F: Fn() -> B> {
    /// There until the end.
    transaction: Option<Transaction<HandleIn<B>>>,
    begin: &'f F,
    hooks: Hooks<'f>,
}

impl<F> fmt::Debug for Transactional<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Transactional").field("sharing", &self.sharing).finish_non_exhaustive()
    }
}

impl<B: Base, F: Fn() -> B> fmt::Debug for Running<'_, B, F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = self.transaction.as_ref().map(Transaction::answers);
        formatter.debug_struct("Running").field("answers", &answers).finish_non_exhaustive()
    }
}

impl<B: Base, F: Fn() -> B> Transactional<F> {
    /// Transactions of the process whose calls `begin` begins.
    pub fn new(sharing: Sharing, begin: F) -> Transactional<F> {
        Transactional { begin, sharing, attempts: ATTEMPTS }
    }

    /// Lets closures run so often at most, and at least once.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Transactional<F> {
        Transactional { attempts, ..self }
    }

    /// Runs a closure whose calls, made by [`Running::begin`], happen at one moment; if it returns an error, or panics,
    /// nothing happens. It runs again if what it has seen is not so any more: so it does nothing else that could not be
    /// done twice.
    ///
    /// # Errors
    /// What the closure returns; ECANCELED if others came in between each time; ENOSPC if there is no memory for the changes.
    pub fn transaction<'f, T>(
        &'f self,
        mut body: impl FnMut(&Running<'f, B, F>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        for _ in 0..self.attempts.max(1) {
            let base = (self.begin)();
            let transaction = Transaction::begin(&base, self.sharing).map_err(Errno::from)?;
            drop(base);
            let mut running = Running { transaction: Some(transaction), begin: &self.begin, hooks: Hooks::default() };
            let outcome = body(&running);
            let transaction = running.transaction.take().expect("it is there until the end");
            let base = (self.begin)();
            let end = match outcome {
                Ok(_) => transaction.commit(&base),
                Err(_) => transaction.abort(&base),
            };
            drop(base);
            mem::take(&mut running.hooks).run(outcome.is_ok() && end.is_ok());
            match end {
                Ok(()) => return outcome,
                Err(Fault::Stale) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(Errno::ECANCELED)
    }
}

impl<'f, B: Base, F: Fn() -> B> Running<'f, B, F> {
    fn running(&self) -> &Transaction<HandleIn<B>> {
        self.transaction.as_ref().expect("it is there until the end")
    }

    /// Begins a call of the transaction.
    pub fn begin(&self) -> Call<'_, B> {
        Call::new((self.begin)(), self.running())
    }

    /// Runs a closure once the transaction has happened, and not if it does not happen: for what cannot be undone. Those of
    /// one transaction run in the order in which they were given.
    pub fn on_commit(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_commit(hook);
    }

    /// Runs a closure if the transaction does not happen: before the transaction's closure runs again, and before its error
    /// is told, or its panic goes on. Those of one transaction run the last ones first.
    pub fn on_abort(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_abort(hook);
    }

    /// Runs a part of the transaction. If it returns an error, nothing of the part has happened, and the transaction goes on.
    ///
    /// # Errors
    /// What the part returns.
    pub fn part<T>(&self, body: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let savepoint = self.running().savepoint();
        body().inspect_err(|_| self.running().go_back(savepoint))
    }
}

impl<B: Base, F: Fn() -> B> Drop for Running<'_, B, F> {
    /// After a panic of the closure: nothing happens, and nothing stays kept.
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            let _ = transaction.abort(&(self.begin)());
            mem::take(&mut self.hooks).run(false);
        }
    }
}
