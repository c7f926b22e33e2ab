//! What it takes to go back to a savepoint: step by step, the last one first, and no copy of what a transaction has changed.
//!
//! Steps are noted only as long as somebody has a savepoint. Each is as large as what the change replaced, so parts cost what
//! they change, however much the transaction had changed before.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use posix_calls::{AttributeChange, InodeNumber};

use crate::descriptors::{OwnDescription, OwnDescriptor};
use crate::file::Before;
use crate::own::{OwnName, Status};
use crate::pipe::OwnPipe;

/// A moment of a transaction, to go back to: but for what waits in pipes that it has made.
#[derive(Debug)]
pub struct Savepoint {
    /// Of the transaction.
    identity: Arc<()>,
    serial: u64,
}

/// A savepoint is not one of this transaction, or was undone itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchSavepoint;

impl fmt::Display for NoSuchSavepoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "expected a savepoint of this transaction that was not undone; go back to one that this transaction gave out",
        )
    }
}

impl core::error::Error for NoSuchSavepoint {}

/// How to undo a change. Places are those of rows.
#[derive(Debug)]
pub(crate) enum Step {
    NewName,
    Name(usize, OwnName),
    NewObject,
    Status(usize, Status),
    Attributes(usize, Vec<AttributeChange>),
    /// Of bytes in a range.
    Data(usize, Range<u64>, Before),
    Pipe(usize, OwnPipe),
    Descriptor(u32, Option<Option<OwnDescriptor>>),
    Description(u64, Option<OwnDescription>),
}

/// What a layer is at a savepoint, beside what steps lead back to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scalars {
    pub(crate) working_directory: Option<InodeNumber>,
    pub(crate) cookies: u64,
    /// Some directory has come to another parent.
    pub(crate) has_moves: bool,
}

#[derive(Debug)]
struct Mark {
    serial: u64,
    steps: usize,
    scalars: Scalars,
}

/// The steps back, and to where.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// Also in each savepoint; none before the first.
    identity: Option<Arc<()>>,
    given_out: u64,
    /// Of the savepoints that were not undone, the last one last.
    marks: Vec<Mark>,
    steps: Vec<Step>,
}

impl Undo {
    /// Whether somebody may want to go back.
    pub(crate) fn is_wanted(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| Arc::strong_count(identity) > 1)
    }

    /// Notes a step, if somebody may want to go back.
    pub(crate) fn note(&mut self, step: impl FnOnce() -> Step) {
        if self.is_wanted() {
            self.steps.push(step());
        }
    }

    pub(crate) fn savepoint(&mut self, scalars: Scalars) -> Savepoint {
        if !self.is_wanted() {
            self.marks.clear();
            self.steps.clear();
        }
        self.given_out += 1;
        let serial = self.given_out;
        self.marks.push(Mark { serial, steps: self.steps.len(), scalars });
        Savepoint { identity: self.identity.get_or_insert_default().clone(), serial }
    }

    /// The steps back to a savepoint, the last one last, and what the layer was there.
    pub(crate) fn back_to(&mut self, savepoint: &Savepoint) -> Result<(Vec<Step>, Scalars), NoSuchSavepoint> {
        let is_own = self.identity.as_ref().is_some_and(|identity| Arc::ptr_eq(identity, &savepoint.identity))
            || sync::mutant::planted("transact: any savepoint will do");
        let place = self.marks.iter().rposition(|mark| mark.serial == savepoint.serial);
        let place = place.filter(|_| is_own).ok_or(NoSuchSavepoint)?;
        let Mark { steps, scalars, .. } = self.marks[place];
        self.marks.truncate(place);
        Ok((self.steps.split_off(steps), scalars))
    }

    /// No savepoint is one of what comes next.
    pub(crate) fn clear(&mut self) {
        if self.identity.is_some() {
            *self = Undo::default();
        }
    }
}
