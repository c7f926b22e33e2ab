//! Whether a thread is in a closure that may run again: what cannot be done twice is refused there.
//!
//! Who runs closures and who refuses calls in them are different stores, which may know nothing of each other. Without a
//! standard library threads cannot be kept apart, and nothing is refused.

use core::marker::PhantomData;

#[cfg(feature = "std")]
std::thread_local! {
    static CLOSURES: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
}

/// The thread is in a closure that may run again, until this is dropped.
#[derive(Debug)]
pub struct InClosure(PhantomData<*const ()>);

impl InClosure {
    /// From now on.
    #[inline]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it says something of the thread")]
    pub fn new() -> InClosure {
        #[cfg(feature = "std")]
        CLOSURES.with(|closures| closures.set(closures.get() + 1));
        InClosure(PhantomData)
    }
}

impl Drop for InClosure {
    #[inline]
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        CLOSURES.with(|closures| closures.set(closures.get() - 1));
    }
}

/// Whether this thread is in such a closure.
#[inline]
pub fn is_in_closure() -> bool {
    #[cfg(feature = "std")]
    return CLOSURES.with(|closures| closures.get() > 0);
    #[cfg(not(feature = "std"))]
    false
}
