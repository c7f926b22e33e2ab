//! Operations that cannot be done: the way in which an implementation ends a call.
//!
//! **A fault ends the call.** The call layer asks nothing further and fails with the errno that the fault stands for. An
//! implementation in memory has none ([`Infallible`]: the compiler leaves nothing of it). One whose objects are far away
//! says so when their owner is gone; a transaction ends a call that goes on from answers that are not so any more. Who
//! wants to know afterwards which fault it was keeps it: nobody but the implementation has made it.

use core::convert::Infallible;

use crate::errno::Errno;

/// An operation that was not done, for this reason, which ends the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<F>(pub F);

impl<F: Into<Errno>> From<Failed<F>> for Errno {
    #[inline]
    fn from(failed: Failed<F>) -> Errno {
        failed.0.into()
    }
}

impl From<Infallible> for Errno {
    #[inline]
    fn from(never: Infallible) -> Errno {
        match never {}
    }
}

/// Why an operation changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationError<F> {
    /// The name exists already.
    Exists,
    /// What the caller saw before is not so any more: start the call again.
    Changed,
    /// The directory was removed.
    Dead,
    /// The directory that is to go has names.
    NotEmpty,
    /// No memory is left, or no inode.
    NoSpace,
    /// The operation cannot be done, now or again.
    Fault(F),
}

impl<F> From<Failed<F>> for OperationError<F> {
    #[inline]
    fn from(Failed(fault): Failed<F>) -> OperationError<F> {
        OperationError::Fault(fault)
    }
}

/// Whether the call is to start again, or fails.
pub(crate) fn start_again<F: Into<Errno>>(refusal: OperationError<F>) -> Result<(), Errno> {
    match refusal {
        OperationError::Exists | OperationError::Changed => Ok(()),
        OperationError::Dead => Err(Errno::ENOENT),
        OperationError::NotEmpty => Err(Errno::ENOTEMPTY),
        OperationError::NoSpace => Err(Errno::ENOSPC),
        OperationError::Fault(fault) => Err(fault.into()),
    }
}
