//! Transactions in the manner of `std::fs`: `files.transaction(|t| ...)` on a [`FileSystem`].
//!
//! ```
//! use transact::Transactions;
//!
//! let files = scalefs::FileSystem::create(Default::default())?;
//! files.root()?.create_dir("etc")?;
//! files.transaction(|t| {
//!     for name in ["passwd", "shadow", "group"] {
//!         t.create(format!("etc/{name}"))?;
//!     }
//!     t.on_commit(|| println!("all three are there"));
//!     Ok(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```

use alloc::rc::Rc;
use core::{fmt, ops};
use std::io;

use posix_calls::{Errno, NameChanges as _};
use scalefs::FileSystem;
use sync::mutant::planted;

use crate::attempts::{Attempts, Claims};
use crate::base::{Base as _, WithData};
use crate::changes::Changes;
use crate::hooks::{Hooks, Participant};
use crate::journal::{Journal, Place, TakesPlace};
use crate::members::Member;
use crate::path_calls::{End, PathCalls};

/// So often a closure runs at most.
const ATTEMPTS: u32 = 100;

/// Groups of calls that happen at once or not at all.
pub trait Transactions {
    /// Runs a closure whose calls by [`Scope`] happen at one moment; if it returns an error, or panics, nothing happens. It
    /// runs again if what it has seen is not so any more: so it does nothing else that could not be done twice. Other
    /// calls of the file system in the closure are none of the transaction's, nor is a transaction that it begins.
    ///
    /// # Errors
    /// What the closure returns; ECANCELED if others came in between a hundred times; ENOSPC without memory for the changes.
    fn transaction<'f, T>(&'f self, body: impl FnMut(&Scope<'f>) -> io::Result<T>) -> io::Result<T>;

    /// Begins a transaction that other threads may join ([`Member::join`]). It commits when the last member has ended.
    ///
    /// # Errors
    /// None but for memory.
    fn begin_together(&self) -> io::Result<Member>;
}

/// A transaction that is running: its calls ([`PathCalls`]), and what belongs to the closure alone.
pub struct Scope<'f> {
    calls: PathCalls<&'f FileSystem>,
    hooks: Hooks<'f>,
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scope").field("calls", &self.calls).field("hooks", &self.hooks).finish()
    }
}

impl Transactions for FileSystem {
    fn transaction<'f, T>(&'f self, body: impl FnMut(&Scope<'f>) -> io::Result<T>) -> io::Result<T> {
        run(self, None, body)
    }

    fn begin_together(&self) -> io::Result<Member> {
        Member::begin(self.clone())
    }
}

/// As [`Transactions::transaction`], kept by a journal. The closures of
/// [`Scope::on_commit`] run when the journal has kept it.
///
/// # Errors
/// As there, and the journal's: then the transaction has happened for all who are here, but need not last.
pub fn journaled<'f, T>(
    files: &'f FileSystem,
    journal: &'f dyn Journal,
    body: impl FnMut(&Scope<'f>) -> io::Result<T>,
) -> io::Result<T> {
    run(files, Some(journal), body)
}

/// Runs a transaction, kept by a journal if there is one.
fn run<'f, T>(
    files: &'f FileSystem,
    journal: Option<&'f dyn Journal>,
    mut body: impl FnMut(&Scope<'f>) -> io::Result<T>,
) -> io::Result<T> {
    let end = |claimed| {
        // In a child of `fork` there is nothing to end.
        let _ = files.act(|base| {
            WithData(base).objects().end_claim(claimed);
            Ok(())
        });
    };
    let mut attempts = Attempts::new(Claims::default(), end);
    for _ in 0..ATTEMPTS {
        // Who has tried before is older than who begins now.
        let calls = PathCalls::begin(files, &mut attempts)?;
        let mut scope = Scope { calls, hooks: Hooks::default() };
        let outcome = body(&scope);
        let place = journal.map(|journal| Rc::new(Place::new(journal)));
        if let Some(place) = &place {
            scope.take_part(TakesPlace(place.clone()));
        }
        let mut keep = |changes: &Changes<'_>| place.iter().for_each(|place| place.keep(changes));
        let ended = scope.calls.end(outcome.is_ok(), &scope.hooks, &mut keep);
        let is_done = matches!(ended, Ok(End::Done));
        if !is_done {
            place.iter().for_each(|place| place.give_back());
        }
        let mut lasts = Ok(());
        scope.hooks.end(is_done && outcome.is_ok(), || {
            if let Some(place) = place.iter().find(|_| is_done) {
                // Others change what they like now.
                attempts.let_others();
                lasts = place.wait(outcome.is_ok());
            }
            lasts.is_ok()
        });
        match ended? {
            End::Done => return lasts.and(outcome),
            End::Stale(lost_by) => attempts.lose(lost_by),
        }
    }
    Err(Errno::ECANCELED.into())
}

impl<'f> ops::Deref for Scope<'f> {
    type Target = PathCalls<&'f FileSystem>;

    fn deref(&self) -> &PathCalls<&'f FileSystem> {
        &self.calls
    }
}

impl<'f> Scope<'f> {
    /// The calls alone, for threads that end within the closure.
    pub fn calls(&self) -> &PathCalls<&'f FileSystem> {
        &self.calls
    }

    /// Runs a part of the transaction. If it returns an error, nothing of the part has happened, and the transaction goes on.
    ///
    /// # Errors
    /// What the part returns.
    pub fn part<T>(&self, body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let savepoint = self.calls.savepoint();
        body().inspect_err(|_| self.calls.go_back(savepoint))
    }

    /// Runs a closure once the transaction has happened; see [`Running::on_commit`](crate::Running::on_commit).
    pub fn on_commit(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_commit(hook);
    }

    /// Lets another store change with the transaction, or not at all.
    pub fn take_part(&self, participant: impl Participant + 'f) {
        self.hooks.take_part(participant);
    }

    /// Runs a closure if the transaction does not happen; see [`Running::on_abort`](crate::Running::on_abort).
    pub fn on_abort(&self, hook: impl FnOnce() + 'f) {
        self.hooks.on_abort(hook);
    }
}

impl Drop for Scope<'_> {
    /// After a panic of the closure or of a participant: nothing happens, and nothing stays kept.
    fn drop(&mut self) {
        if self.calls.is_open() && !planted("transact: what a panic or a wait has ended stays kept") {
            let _ = self.calls.end(false, &Hooks::default(), &mut |_| ());
        }
        // Who has heard of the end is not among them.
        self.hooks.end(false, || true);
    }
}
