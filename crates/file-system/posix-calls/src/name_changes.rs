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
//!
//! **What else must be so** and is not locked is asked for while the changes are *open*: whoever meets one of them then
//! makes the decision fail, and it is asked for again.
//!
//! ```text
//! prepare, prepare_attributes
//! loop: open → ask by what it gives → decide      true: all has happened;  false: somebody came in between
//! finish
//! ```

use crate::fault::OperationError;
use crate::kind::{InodeNumber, Permissions};
use crate::object_operations::{Answer, NewObject, ObjectOperations, Outcome};
use crate::rights::{PermissionChange, TimesRight};

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

/// A change of an object's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeChange {
    /// As [`ObjectOperations::change_permissions`].
    Permissions(PermissionChange),
    /// As [`ObjectOperations::set_times`]: access and modification time in nanoseconds since 1970, each if given.
    Times(TimesRight, (Option<i64>, Option<i64>)),
}

/// What becomes of an object's attributes.
#[derive(Clone, Copy, Debug)]
pub struct AttributeChanges<'k, N> {
    /// The object, which no other of the same decision is.
    pub node: N,
    /// The changes, in order.
    pub changes: &'k [AttributeChange],
}

/// Which times of an object a change moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// That of the last change of status.
    Status,
    /// That, and the one of the last modification.
    Data,
}

/// When changes happen, as times tell it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'k, N> {
    /// Nanoseconds since 1970. A time that is later already stays.
    pub now_ns: u64,
    /// The objects whose times are to be this one, each once. Those of a decision that is dropped stay as they are.
    pub touched: &'k [(N, Touched)],
}

/// Who goes first of two decisions that look at each other's changes: the one with the smaller number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(pub u64);

/// What becomes of others who meet open changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// They make the decision fail.
    Yields,
    /// They wait for it.
    Insists,
}

/// How open changes stand against others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Against those who have open changes, too.
    pub precedence: Precedence,
    /// Against all others.
    pub stance: Stance,
}

/// What somebody claims who has lost again and again: others do not begin to change it before the claim ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'c> {
    /// Whose changes wait, of those that have a precedence: who has a larger one. All others' changes wait.
    pub precedence: Precedence,
    /// The objects; everything if there are none.
    pub objects: &'c [InodeNumber],
    /// When it ends by itself, on the implementation's clock.
    pub until_ns: u64,
}

/// A claim that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a claim that no one ends keeps others waiting until its time is over"]
pub struct Claimed {
    /// Where it is noted.
    pub place: usize,
    /// When it ends by itself.
    pub until_ns: u64,
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
    /// Room for changes of one object's attributes while they are prepared.
    type AttributeRoom<'v>: Default
    where
        Self: 'v;
    /// The operation on whose decision prepared changes depend, as the implementation has it;
    /// [`Infallible`](core::convert::Infallible) where it is decided otherwise.
    type Operation<'o>;
    /// Looks at what is so before the changes that the caller has open.
    type Looks<'v>: ObjectOperations<Handle = Self::Handle, Fault = Self::Fault>
    where
        Self: 'v;

    /// Keeps others from beginning to change what is claimed, and waits until who began before has ended, as far as that
    /// comes soon. It is for fairness alone: some changes may come through. Nothing is claimed if too much is, or, as here,
    /// where nobody else comes in between.
    fn claim(&self, _: &Claim<'_>) -> Option<Claimed> {
        None
    }

    /// Ends a claim.
    fn end_claim(&self, _: Claimed) {}

    /// Waits for claims that go before this precedence and that concern one of some objects.
    fn heed_claims(&self, _: Precedence, _: &dyn Fn(InodeNumber) -> bool) {}

    /// Lets the changes of this call wait for no claim, since it is made for somebody who has one.
    fn heed_no_claim(&self) {}

    /// A number for two looks at a name that told the same (whether it exists, or, `with_value`, what it leads to), of which one was made after a first call of this, and the other
    /// before a second one: if both calls gave the same, the looks would have told that all the time in between. Where nobody
    /// else comes between two looks of one commit, any number will do.
    fn name_version(&self, directory: Self::Node<'_>, key: &Self::Key<'_>, with_value: bool) -> u64;

    /// Whether the caller has prepared something by which nobody else can change the name.
    fn is_locked(&self, directory: Self::Node<'_>, key: &Self::Key<'_>) -> bool;

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

    /// Gives an object that was made, and that nobody else knows, its times of access, modification and change in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn set_times_of_made(&self, node: Self::Node<'_>, times: [i64; 3]) -> Answer<(), Self>;

    /// Prepares changes, of which all names differ, with room for each, and what times will say of them. Nobody sees anything of them, and nobody else
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
        moment: Moment<'p, Self::Node<'v>>,
        room: &'p mut [Self::Room<'v>],
    ) -> Result<Self::Prepared<'p, 'v>, OperationError<Self::Fault>>
    where
        'v: 'p;

    /// Prepares changes of attributes, of different objects, under the same decision, with room for each; once, before it is
    /// opened. Nobody sees anything of them, and nobody else changes permissions of these objects, before the decision.
    ///
    /// # Errors
    /// `Changed` if one is refused, or `NoSpace`; then all that was prepared can only be aborted. Or the fault.
    ///
    /// # Panics
    /// If there is less room than changes.
    fn prepare_attributes<'p, 'v>(
        &'v self,
        prepared: &mut Self::Prepared<'p, 'v>,
        changes: &[AttributeChanges<'_, Self::Node<'v>>],
        room: &'p mut [Self::AttributeRoom<'v>],
    ) -> Outcome<(), Self>
    where
        'v: 'p;

    /// The operation on whose decision all that is prepared depends, firm until it is opened: other stores may change by it. None
    /// where it is decided otherwise.
    fn operation<'o>(&self, _: &'o Self::Prepared<'_, '_>) -> Option<Self::Operation<'o>> {
        None
    }

    /// Opens what is prepared, or opens it again: [`NameChanges::decide`] then succeeds only if nobody has met it since.
    fn open<'v>(&'v self, prepared: &mut Self::Prepared<'_, 'v>, urgency: Urgency) -> Self::Looks<'v>;

    /// Lets what is open happen, unless somebody has come in between: then false, and it may be opened again.
    ///
    /// # Errors
    /// The implementation's fault: then nothing has happened.
    fn decide(&self, prepared: &mut Self::Prepared<'_, '_>) -> Answer<bool, Self>;

    /// Decides, if that has not been done, and replaces all marks by what has become of them.
    ///
    /// # Errors
    /// The implementation's fault: then nothing has happened.
    fn finish(&self, prepared: Self::Prepared<'_, '_>, decision: Decision) -> Answer<(), Self>;
}
