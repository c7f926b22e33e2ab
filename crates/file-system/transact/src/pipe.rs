//! What a transaction has made of a pipe that was there before.

use alloc::vec::Vec;

/// What a transaction has made of a pipe of the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPipe {
    /// So many bytes of the base were taken.
    pub(crate) taken_bytes: usize,
    /// What was put behind all that the base has, and was not taken again.
    pub(crate) put: Vec<u8>,
}

/// One that was only looked into.
pub(crate) static UNCHANGED: OwnPipe = OwnPipe { taken_bytes: 0, put: Vec::new() };
