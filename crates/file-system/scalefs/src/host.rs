//! What the file system asks of whoever calls it: how to wait, and what time it is.

use sync::atomic::AtomicU32;
use sync::{Spin, Wait, WaitReason};

/// The caller's side of a call. The file system has no clock and no scheduler of its own.
pub trait Host: Wait {
    /// Nanoseconds since the epoch of POSIX (1 January 1970, UTC). A coarse clock will do: times of files are compared
    /// by "not earlier".
    fn now_ns(&self) -> u64;

    /// Whether calls look through the marks of their core's own open operation ([`Owning`]).
    #[doc(hidden)]
    const SEES_THROUGH_OWN_MARKS: bool = false;
}

/// A host of looks through the marks of the core's own open operation, at what was before. The file system's own.
#[repr(transparent)]
#[derive(Debug)]
pub struct Owning<H>(H);

impl<H> Owning<H> {
    #[allow(unsafe_code)]
    pub(crate) fn of(host: &H) -> &Owning<H> {
        // SAFETY: the type has the same representation.
        unsafe { &*core::ptr::from_ref(host).cast() }
    }
}

impl<H: Wait> Wait for Owning<H> {
    #[inline]
    fn wait(&self, reason: WaitReason, round: u32) {
        self.0.wait(reason, round);
    }

    fn wait_while(&self, word: &AtomicU32, seen: u32, reason: WaitReason, round: u32) {
        self.0.wait_while(word, seen, reason, round);
    }

    fn wake(&self, word: &AtomicU32) {
        self.0.wake(word);
    }
}

impl<H: Host> Host for Owning<H> {
    const SEES_THROUGH_OWN_MARKS: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
}

/// For callers to whom times do not matter: it is always 1970.
impl Host for Spin {
    #[inline]
    fn now_ns(&self) -> u64 {
        0
    }
}

/// A way to wait together with a clock.
#[derive(Clone, Copy, Debug)]
pub struct Clocked<W, C> {
    /// How to wait.
    pub wait: W,
    /// Tells nanoseconds since 1970.
    pub clock: C,
}

impl<W: Wait, C> Wait for Clocked<W, C> {
    #[inline]
    fn wait(&self, reason: WaitReason, round: u32) {
        self.wait.wait(reason, round);
    }

    fn wait_while(&self, word: &AtomicU32, seen: u32, reason: WaitReason, round: u32) {
        self.wait.wait_while(word, seen, reason, round);
    }

    fn wake(&self, word: &AtomicU32) {
        self.wait.wake(word);
    }
}

impl<W: Wait, C: Fn() -> u64> Host for Clocked<W, C> {
    #[inline]
    fn now_ns(&self) -> u64 {
        (self.clock)()
    }
}
