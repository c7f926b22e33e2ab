//! Whether a process is still the one that made something, or came from it by `fork`.
//!
//! A child of `fork` has a copy of private memory, and one thread. What the other threads of its parent were doing stays half
//! done in that copy for ever: their cores are claimed, their locks held. So a child is refused before it waits for these.
//! Memory that processes share is another matter: each claims cores of its own there (`percpu::OwnerId`).
//!
//! Children of a bare `clone` or `vfork` are not noticed.
#![cfg_attr(all(feature = "std", unix, not(miri)), allow(unsafe_code))]

// Miri has no processes.
#[cfg(all(feature = "std", unix, not(miri)))]
mod counted {
    use core::sync::atomic::{AtomicU64, Ordering};
    use std::sync::Once;

    /// How many forks lie between this process and the first one that asked.
    static FORKS: AtomicU64 = AtomicU64::new(0);

    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn now() -> u64 {
        FORKS.load(Ordering::Relaxed)
    }

    pub(super) fn begin() -> u64 {
        static BEGIN: Once = Once::new();
        // SAFETY: the function touches one atomic, as a child of a process with threads may. Without memory for the note, the
        // child is not noticed.
        BEGIN.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(count)) });
        now()
    }
}

#[cfg(not(all(feature = "std", unix, not(miri))))]
mod counted {
    pub(super) fn now() -> u64 {
        0
    }

    pub(super) use now as begin;
}

/// A process, as long as it does not fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Maker(u64);

impl Maker {
    /// This process.
    pub(crate) fn this() -> Maker {
        Maker(counted::begin())
    }

    /// Whether it is this process. One load of a word that only `fork` writes.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.0 == counted::now()
    }
}
