//! An open file description that domains share.

use messages::DomainNumber;
use posix_calls::{PipeEnd, StatusFlags};

use crate::identity::ObjectNumber;
use crate::wire::DescriptionState;

/// A description that domains share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedDescription {
    pub(super) file: ObjectNumber,
    /// Of a pipe, which end.
    pub(super) end: Option<PipeEnd>,
    pub(super) state: DescriptionState,
    /// Domains that have descriptors of it, and those on their way to one.
    pub(super) holders: u32,
    pub(super) locked_by: Option<DomainNumber>,
}

impl DescriptionState {
    /// The offset moves.
    pub(crate) fn move_to(&mut self, offset: u64) {
        self.offset = offset;
        // A peer may have begun with any number.
        self.moves = self.moves.wrapping_add(1);
    }

    pub(crate) fn status(self) -> StatusFlags {
        StatusFlags::from_bits_truncate(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_may_say_that_an_offset_has_moved_as_often_as_can_be_counted() {
        let mut state = DescriptionState { offset: 0, status: 0, moves: u64::MAX };
        state.move_to(7);
        assert_eq!((state.offset, state.moves), (7, 0));
    }
}
