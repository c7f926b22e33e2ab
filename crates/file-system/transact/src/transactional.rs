//! `transaction`: a closure whose calls happen at once, and that runs again if they cannot.

use core::cell::Cell;
use core::fmt;

use posix_calls::{Errno, Failed, NameChanges as _, Precedence};
use sync::mutant::planted;

use crate::attempts::{Attempts, Claims};
use crate::base::{Base, HandleIn};
use crate::call::Call;
use crate::hooks::{Hooks, Participant};
use crate::loss::Loss;
use crate::transaction::{End, Fault, Sharing, Spare, Transaction};

/// So often a closure runs in vain at most, unless told otherwise.
const ATTEMPTS: u32 = 100;
/// So often a transaction that waits looks whether something has changed, unless told otherwise.
const SPINS: u32 = 100_000;

/// A process of a file system, as transactions want it: how one of its calls begins. Its handles are `H`.
pub struct Transactional<F, H> {
    begin: F,
    /// Of the last one that has ended.
    spare: Cell<Spare<H>>,
    sharing: Sharing,
    attempts: u32,
    priority: u8,
    claims: Claims,
    waits: fn(u32) -> bool,
}

/// A transaction that is running: what its closure gets.
pub struct Running<'f, B: Base, F: Fn() -> B> {
    /// There until the end.
    transaction: Option<Transaction<HandleIn<B>>>,
    begin: &'f F,
    hooks: Hooks<'f>,
    /// The closure wants to run again once something that it has seen is not so any more.
    retries: Cell<bool>,
}

/// Spins for a while.
fn spin(round: u32) -> bool {
    core::hint::spin_loop();
    round < SPINS
}

impl<F, H> fmt::Debug for Transactional<F, H> {
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

impl<B: Base, F: Fn() -> B> Transactional<F, HandleIn<B>> {
    /// Transactions of the process whose calls `begin` begins.
    pub fn new(sharing: Sharing, begin: F) -> Self {
        let spare = Cell::default();
        Transactional { begin, spare, sharing, attempts: ATTEMPTS, priority: 0, claims: Claims::default(), waits: spin }
    }

    /// Lets transactions commit before those of lower priority that do so at the same time. Of equal ones the oldest is first;
    /// its age counts from the first attempt.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Transactional { priority, ..self }
    }

    /// Says when transactions claim what they lose by.
    #[must_use]
    pub fn claims(self, claims: Claims) -> Self {
        Transactional { claims, ..self }
    }

    /// Lets [`Running::retry`] wait by this, between looks whether something has changed. It gets how often it was called, and
    /// ends the wait by returning false.
    #[must_use]
    pub fn waits(self, waits: fn(u32) -> bool) -> Self {
        Transactional { waits, ..self }
    }

    /// Waits until an answer on which a transaction rests is another one. Its end is the caller's.
    fn wait(&self, transaction: &Transaction<HandleIn<B>>) -> Result<(), Errno> {
        if transaction.answers() == 0 {
            return Err(Errno::EDEADLK);
        }
        let mut round = 0;
        while transaction.is_still_so(&(self.begin)()).map_err(Errno::from)? {
            if !(self.waits)(round) {
                return Err(Errno::EAGAIN);
            }
            round = round.saturating_add(1);
        }
        Ok(())
    }

    /// Lets closures run so often in vain at most, and once at least. Who waits ([`Running::retry`]) has not run in vain.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Transactional { attempts, ..self }
    }

    /// Runs a closure whose calls, made by [`Running::begin`], happen at one moment; if it returns an error, or panics,
    /// nothing happens. It runs again if what it has seen is not so any more: so it does nothing else that could not be
    /// done twice.
    ///
    /// # Errors
    /// What the closure returns; ECANCELED if others came in between each time; ENOSPC if there is no memory for the changes. Of
    /// [`Running::retry`], EAGAIN if nothing changes in time, EDEADLK if the closure has seen nothing that others change.
    pub fn transaction<'f, T>(
        &'f self,
        mut body: impl FnMut(&Running<'f, B, F>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut attempts = Attempts::new(self.claims, |claimed| (self.begin)().objects().end_claim(claimed));
        let mut in_vain = 0;
        while in_vain < self.attempts.max(1) {
            let base = (self.begin)();
            let by_age = |first: Precedence| Precedence(u64::from(u8::MAX - self.priority) << 56 | first.0 >> 8);
            let mut transaction = Transaction::begin_in(self.spare.take(), &base, self.sharing).map_err(Errno::from)?;
            attempts.begin(&base, &mut transaction, by_age);
            drop(base);
            let mut running = Running {
                transaction: Some(transaction),
                begin: &self.begin,
                hooks: Hooks::default(),
                retries: Cell::new(false),
            };
            let outcome = body(&running);
            if outcome.is_err() && running.retries.get() {
                running.hooks.end(false, || true);
                attempts.let_others();
                self.wait(running.running())?;
                in_vain += u32::from(planted("transact: who was woken has run in vain"));
                continue;
            }
            let (end, lost_by, spare) = running.end(outcome.is_ok());
            self.spare.set(spare);
            running.hooks.end(outcome.is_ok() && end.is_ok(), || true);
            match end {
                Ok(()) => return outcome,
                Err(Fault::Stale) => attempts.lose(lost_by),
                Err(fault) => return Err(fault.into()),
            }
            in_vain += 1;
        }
        Err(Errno::ECANCELED)
    }
}

impl<'f, B: Base, F: Fn() -> B> Running<'f, B, F> {
    fn running(&self) -> &Transaction<HandleIn<B>> {
        self.transaction.as_ref().expect("it is there until the end")
    }

    /// Ends the transaction. It stays where it is as long as a participant may panic, so that `drop` finds it.
    fn end(&mut self, commits: bool) -> (End<B::Objects>, Loss, Spare<HandleIn<B>>) {
        let base = (self.begin)();
        let running = self.transaction.as_mut().expect("it is there until the end");
        let outcome = commits.then(|| running.try_commit(&base, &self.hooks));
        let transaction = self.transaction.take().expect("seen above");
        match outcome {
            None => transaction.abort_with(&base),
            Some(outcome) => {
                let (lost_by, spare) = transaction.end(&base, outcome.is_ok());
                (outcome, lost_by, spare)
            }
        }
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

    /// Lets another store change with the transaction, or not at all.
    pub fn take_part(&self, participant: impl Participant + 'f) {
        self.hooks.take_part(participant);
    }

    /// The error by which a closure says that it cannot go on before something that it has seen is not so any more: nothing of it
    /// happens, it waits ([`Transactional::waits`]), and runs again (Harris and others, "Composable memory transactions").
    pub fn retry(&self) -> Errno {
        self.retries.set(true);
        Errno::EAGAIN
    }

    /// Runs a part of the transaction and, if that cannot go on ([`Running::retry`]), undoes it and runs another one instead. If
    /// that cannot either, the transaction waits for a change of what either has seen.
    ///
    /// # Errors
    /// What the part that ran last returns.
    pub fn or_else<T>(
        &self,
        first: impl FnOnce() -> Result<T, Errno>,
        second: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let outcome = self.part(first);
        if outcome.is_err() && self.retries.replace(false) { self.part(second) } else { outcome }
    }

    /// Runs a part of the transaction. If it returns an error, nothing of the part has happened, and the transaction goes on.
    ///
    /// # Errors
    /// What the part returns.
    pub fn part<T>(&self, body: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let (savepoint, base) = (self.running().savepoint(), (self.begin)());
        let pipes = self.running().own_pipes(&base).map_err(|Failed(fault)| fault.into())?;
        drop(base);
        body().inspect_err(|_| {
            self.running().go_back(savepoint).expect("parts stand within each other");
            self.running().restore_pipes(&(self.begin)(), pipes);
        })
    }
}

impl<B: Base, F: Fn() -> B> Drop for Running<'_, B, F> {
    /// After a panic of the closure or of a participant: nothing happens, and nothing stays kept. Also after a wait.
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take()
            && !planted("transact: what a panic or a wait has ended stays kept")
        {
            let _ = transaction.abort(&(self.begin)());
        }
        // Who has heard of the end is not among them.
        self.hooks.end(false, || true);
    }
}
