//! Descriptors that are counted so that whoever closes the last one learns it at once: those of an end of a pipe, and of a socket.
//!
//! They are counted per core and read exactly by whoever closes one (crate `refcache`, "eager zero").
#![allow(unsafe_code)]

use percpu::{CacheLine, Core};
use refcache::{Counted, CountedKind};
use sync::Wait;

use crate::instance::ScaleFs;

/// Counted from here on, so that what is applied of a count is never zero: nothing is to be freed then.
const NONE: i64 = 1 << 40;
/// Kind of these counts, for the callback of `RefCache::maintain`, which never gets one.
const KIND_ENDS: CountedKind = CountedKind(4);

/// How many descriptors lead to something, in the arena with it.
#[repr(transparent)]
pub(crate) struct Ends(CacheLine<Counted>);

impl Ends {
    /// None so far.
    pub(crate) fn new() -> Ends {
        Ends(CacheLine(Counted::new(NONE, KIND_ENDS)))
    }

    /// One more: the first one, or one that is counted while another one is open.
    pub(crate) fn open(&self, fs: &ScaleFs, core: &Core<'_>) {
        // SAFETY: a description keeps what they lead to.
        unsafe { fs.counts().change(core, &self.0, 1) };
    }

    /// One less; whether it was the last. Of several that are closed at a time, more than one may be told so.
    pub(crate) fn close(&self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) -> bool {
        // SAFETY: as above; the count never becomes zero, so it is not reviewed.
        unsafe { fs.counts().change(core, &self.0, -1) };
        self.are_closed(fs, wait)
    }

    /// Whether none is left.
    pub(crate) fn are_closed(&self, fs: &ScaleFs, wait: &impl Wait) -> bool {
        // SAFETY: as above.
        unsafe { fs.counts().exact(&self.0, wait) == NONE }
    }
}
