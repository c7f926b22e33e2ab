//! Where the host has no windows there is nothing that they show.

use core::ops::Range;

use address_space::FileId;

pub(crate) use address_space::SoftwareMmu as WindowMmu;

/// See `window`.
#[derive(Clone, Copy)]
pub(crate) enum Forgotten {
    Stores,
    Replaced,
    CutOff,
}

pub(crate) fn forget(_: FileId, _: &Range<u64>, _: Forgotten) {}
