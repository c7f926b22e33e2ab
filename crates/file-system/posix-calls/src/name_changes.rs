//! Changes of many names under one decision, prepared apart from being decided.
//!
//! The compound operations of [`ObjectOperations`] prepare, decide and finish in one step. Who has something to check in
//! between, or changes more names than two, takes the steps:
//!
//! ```text
//! make          objects that no name leads to yet, kept by handles
//! prepare       all names locked in one order, looked at, and marked; whoever looks sees what was before
//!               (the caller checks what else must be so)
//! finish        Commit: all of it is so at one moment;  Abort: nothing has happened
//! ```
//! Dropping what was prepared aborts it.

use crate::fault::OperationError;
use crate::kind::Permissions;
use crate::object_operations::{Answer, NewObject, ObjectOperations, Outcome};

/// What becomes of a name. With nothing before and after it stays absent until the decision, and with the same object it
/// stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct NameChange<'k, N, K> {
    /// The directory of the name.
    pub directory: N,
    /// The name, which no other change of the same decision has.
    pub key: &'k K,
    /// What it leads to; nothing if it does not exist.
    pub before: Option<N>,
    /// What it is to lead to; nothing if it is to be gone. An object that loses its last name is removed; a directory that
    /// does must be empty then, and takes no names.
    pub after: Option<N>,
}

/// Whether what was prepared happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All of it, at one moment.
    Commit,
    /// Nothing of it.
    Abort,
}

/// Implementations in which many names can change at one moment.
pub trait NameChanges: ObjectOperations {
    /// Room for one change while it is prepared.
    type Room<'v>: Default
    where
        Self: 'v;
    /// Changes that are prepared. Dropping them aborts them.
    type Prepared<'p, 'v>
    where
        Self: 'v,
        'v: 'p;

    /// Makes an object that no name leads to, and keeps it. A directory stands in `directory` until a name says otherwise, and
    /// takes names together with its own, or later.
    ///
    /// # Errors
    /// `NoSpace`, or the implementation's fault.
    fn make(
        &self,
        directory: Self::Node<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Outcome<Self::Handle, Self>;

    /// Prepares changes, of which all names differ, with room for each. Nobody sees anything of them, and nobody else
    /// changes these names, before the decision. A directory has one name before and one after, or none; what has none
    /// before was [made](NameChanges::make) by this caller or leads to a file that has other names.
    ///
    /// Refused if a name does not lead to what is expected (`Changed`, `Exists`), if its directory is removed (`Dead`), if a
    /// directory that is to be removed has names that stay (`NotEmpty`), if one would become its own descendant
    /// (`Changed`), if an object has lost all its names (`Changed`), or without memory.
    ///
    /// # Errors
    /// A [`OperationError`], as said above, and nothing has happened; or the implementation's fault.
    ///
    /// # Panics
    /// If there is less room than changes, or two changes have one name.
    fn prepare<'p, 'v, 'n: 'p>(
        &'v self,
        changes: &'p [NameChange<'p, Self::Node<'v>, Self::Key<'n>>],
        room: &'p mut [Self::Room<'v>],
    ) -> Result<Self::Prepared<'p, 'v>, OperationError<Self::Fault>>
    where
        'v: 'p;

    /// Decides, and replaces all marks by what has become of them.
    ///
    /// # Errors
    /// The implementation's fault: then nothing has happened.
    fn finish(&self, prepared: Self::Prepared<'_, '_>, decision: Decision) -> Answer<(), Self>;
}
