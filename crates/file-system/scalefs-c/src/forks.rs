//! A child of `fork` has copies of instances in whatever state they were: another thread may have been in a call, with
//! locks that nobody frees. Handles know whether they were made in this process.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;

/// How many forks lead to this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// POSIX `pthread_atfork`.
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> core::ffi::c_int;
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The number of this process among those that descend from the first one.
pub(crate) fn generation() -> u32 {
    static WATCHED: Once = Once::new();
    // Miri has no processes.
    #[cfg(not(miri))]
    // SAFETY: the function touches one atomic word, which a child may (POSIX `fork`).
    WATCHED.call_once(|| assert_eq!(unsafe { pthread_atfork(None, None, Some(in_child)) }, 0, "pthread_atfork"));
    current()
}

/// The same, once somebody has asked for it.
pub(crate) fn current() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
