//! A call, and what is lent in it.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use messages::{Step, Transport};
use posix_calls::{Errno, Failed, OperationError};

use super::domain::Domain;
use super::process::Process;
use crate::identity::{ObjectNumber, Target, name_hash};
use crate::wire::{Refusal, Reply};

/// Why an operation cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The object has gone since the call met it: the call is made again, as it has changed nothing ([`Domain::call`]).
    Stale,
    /// An owner has refused a message, or its answer was none.
    Garbled,
    /// Memory is mapped in the domain of its file, and this is another one.
    OtherDomain,
    /// What is not done across domains yet.
    Unsupported,
    /// What was written found no space at its owner when others were to know of it.
    NoSpace,
}

impl From<Fault> for Errno {
    fn from(fault: Fault) -> Errno {
        match fault {
            Fault::Stale | Fault::Garbled => Errno::EIO,
            Fault::OtherDomain => Errno::ENODEV,
            Fault::Unsupported => Errno::EOPNOTSUPP,
            Fault::NoSpace => Errno::ENOSPC,
        }
    }
}

impl From<Refusal> for Fault {
    /// Where none is expected.
    fn from(why: Refusal) -> Fault {
        match why {
            Refusal::Stale => Fault::Stale,
            Refusal::NoSpace => Fault::NoSpace,
            _ => Fault::Garbled,
        }
    }
}

/// A call may meet what has gone in the meantime this often, before that is taken to be an error: it needs another
/// change each time.
const MOST_ATTEMPTS: u32 = 10_000;

/// One call of a process.
pub struct Call<'c, T> {
    pub(super) domain: &'c Domain<T>,
    pub(super) process: &'c Process,
    /// Names that were found: of which directory.
    pub(super) names: RefCell<Vec<(ObjectNumber, Vec<u8>)>>,
    pub(super) is_stale: Cell<bool>,
}

/// An object during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'v> {
    pub(super) target: Target,
    pub(super) call: PhantomData<&'v ()>,
}

/// A name that was found during a call.
#[derive(Clone, Copy, Debug)]
pub struct Found<'v> {
    pub(super) target: Target,
    pub(super) stamp: u64,
    /// Its place in [`Call::names`].
    pub(super) place: usize,
    pub(super) call: PhantomData<&'v ()>,
}

/// A name of 1 to 255 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Key<'n>(pub(super) &'n [u8]);

/// An object that is kept over calls.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an object is kept until it is released"]
pub struct Handle(pub(super) Target);

impl<T: Transport> Domain<T> {
    /// Begins a call of a process of this domain.
    pub fn begin<'c>(&'c self, process: &'c Process) -> Call<'c, T> {
        self.transport().spend(Step::Call);
        Call { domain: self, process, names: RefCell::default(), is_stale: Cell::new(false) }
    }

    /// Makes a call of a process. It is made again if an object that it met has gone in the meantime: it has changed
    /// nothing then.
    ///
    /// # Errors
    /// Those of the call; EIO if it meets what has gone again and again.
    pub fn call<'c, R>(
        &'c self,
        process: &'c Process,
        mut make: impl FnMut(&Call<'c, T>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        for _ in 0..MOST_ATTEMPTS {
            let call = self.begin(process);
            let outcome = make(&call);
            if outcome.is_ok() || !call.is_stale.get() {
                return outcome;
            }
        }
        Err(Fault::Stale.into())
    }
}

impl<T: Transport> Call<'_, T> {
    /// An object that another call, of this domain or of another, has met: it lasts as long as something keeps it.
    pub fn of_other_call(&self, node: Node<'_>) -> Node<'_> {
        self.lend(node.target)
    }

    pub(super) fn lend(&self, target: Target) -> Node<'_> {
        Node { target, call: PhantomData }
    }

    /// The fault that a refusal stands for where none is expected.
    pub(super) fn fault(&self, why: Refusal) -> Fault {
        if why == Refusal::Stale {
            self.is_stale.set(true);
        }
        why.into()
    }

    /// Why an operation fails whose answer is none that it could have.
    pub(super) fn failed(&self, reply: &Reply) -> Failed<Fault> {
        match reply {
            Reply::Refused { why } => Failed(self.fault(*why)),
            _ => Failed(Fault::Garbled),
        }
    }

    /// What the call layer is given for a refusal.
    pub(super) fn outcome(&self, refusal: Refusal) -> OperationError<Fault> {
        match refusal {
            Refusal::Changed | Refusal::Stale => OperationError::Changed,
            Refusal::Exists => OperationError::Exists,
            Refusal::Dead => OperationError::Dead,
            Refusal::NotEmpty => OperationError::NotEmpty,
            Refusal::NoSpace => OperationError::NoSpace,
            Refusal::Busy | Refusal::Elsewhere | Refusal::Garbled | Refusal::Alone | Refusal::Unreadable => {
                OperationError::Fault(Fault::Garbled)
            }
        }
    }

    pub(super) fn note_name(&self, directory: ObjectNumber, name: &[u8]) -> usize {
        let mut names = self.names.borrow_mut();
        names.push((directory, name.to_vec()));
        names.len() - 1
    }

    /// A number for [`posix_calls::ObjectOperations::fingerprint`].
    pub(super) fn fingerprint_of(found: &Found<'_>) -> u64 {
        name_hash(found.target.number, &found.stamp.to_le_bytes())
    }
}
