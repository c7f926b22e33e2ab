//! What other stores need of a base: the operation on whose decision its changes depend.
//!
//! The border of the file system names no structure of an implementation. A base has an operation of crate `commit`, or none.

use core::convert::Infallible;

use commit::Operation;
use posix_calls::NameChanges;

/// What an implementation has as its operation ([`NameChanges::Operation`]).
pub trait Decider<'o> {
    /// The operation that other stores mark.
    fn operation(self) -> &'o Operation<'o>;
}

impl<'o> Decider<'o> for &'o Operation<'o> {
    fn operation(self) -> &'o Operation<'o> {
        self
    }
}

impl<'o> Decider<'o> for Infallible {
    fn operation(self) -> &'o Operation<'o> {
        match self {}
    }
}

/// Implementations whose changes are decided by an operation of crate `commit`, or by none.
pub trait Decided: NameChanges {
    /// The operation on whose decision all that is prepared depends; see [`NameChanges::operation`].
    fn deciding<'o>(&self, prepared: &'o Self::Prepared<'_, '_>) -> Option<&'o Operation<'o>>;
}

impl<B: NameChanges> Decided for B
where
    for<'o> B::Operation<'o>: Decider<'o>,
{
    fn deciding<'o>(&self, prepared: &'o B::Prepared<'_, '_>) -> Option<&'o Operation<'o>> {
        self.operation(prepared).map(Decider::operation)
    }
}
