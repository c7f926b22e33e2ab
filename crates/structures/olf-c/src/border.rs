//! What every call checks of what C hands over.

use core::ffi::c_int;
use core::ptr::NonNull;

use sync::atomic::{AtomicU64, Ordering};

use crate::reason::OLF_INVALID;

/// Says of which kind a handle is, and that it is in use. Stands first in all of them.
#[repr(transparent)]
pub(crate) struct Seal(AtomicU64);

impl Seal {
    pub(crate) fn new(kind: u64) -> Seal {
        Seal(AtomicU64::new(kind))
    }

    pub(crate) fn is(&self, kind: u64) -> bool {
        // Relaxed: it tells mistakes, and orders nothing.
        self.0.load(Ordering::Relaxed) == kind
    }

    /// From now on the handle is no longer in use.
    pub(crate) fn break_up(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A handle for C.
pub(crate) trait Handle {
    /// What its seal says.
    const KIND: u64;

    fn seal(&self) -> &Seal;
}

/// What a handle leads to.
///
/// # Safety
/// NULL, or memory in which there was one: what was given up is known as long as its memory is not used again.
pub(crate) unsafe fn of<'h, H: Handle>(handle: *const H) -> Result<&'h H, c_int> {
    // SAFETY: the caller's promise.
    let found = unsafe { handle.as_ref() }.ok_or(OLF_INVALID)?;
    if found.seal().is(H::KIND) { Ok(found) } else { Err(OLF_INVALID) }
}

/// Where an answer goes.
///
/// # Safety
/// NULL, or a place for it.
pub(crate) unsafe fn answer<T>(place: *mut T, value: T) -> Result<(), c_int> {
    let place = NonNull::new(place).ok_or(OLF_INVALID)?;
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// The number that a call returns.
pub(crate) fn number(outcome: Result<(), c_int>) -> c_int {
    outcome.err().unwrap_or(0)
}
