//! Telling events of the locks that programs hand to the functions of this library.

use lock_annotation::tell_at;

/// Tells an event of a lock: see [`lock_annotation::tell`].
#[inline(always)]
pub(crate) fn tell<const EVENT: u32, const SIZE_BYTES: u16>(lock: *const impl Sized) {
    // SAFETY: a program hands pthread's functions addresses of locks: they read them, too.
    unsafe { tell_at::<EVENT, SIZE_BYTES>(lock) }
}
