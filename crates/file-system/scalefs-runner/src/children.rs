//! The children of a test's process: each in a place of its own, which a test's calls name by its index.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use percpu::CacheLine;
use posix_calls::{Errno, ProcessNumber};

/// Children that tests can name.
pub const COUNT: usize = 4;

/// A child's place. Who ends it changes another line than who waits for it.
struct Slot<P> {
    /// The process, until it ends.
    process: CacheLine<UnsafeCell<Option<P>>>,
    /// Atomic: its number, until somebody has waited for it; or zero.
    number: CacheLine<AtomicU64>,
}

/// The children of the test's process.
pub struct Children<P>([Slot<P>; COUNT]);

// SAFETY: calls of tests are made one after the other, and so are those of set-ups; the coordinator orders them.
unsafe impl<P: Send> Sync for Children<P> {}

impl<P> Children<P> {
    /// None.
    #[must_use]
    pub fn none() -> Children<P> {
        Children(std::array::from_fn(|_| Slot {
            process: CacheLine(UnsafeCell::new(None)),
            number: CacheLine(AtomicU64::new(0)),
        }))
    }

    /// A child that has not ended.
    ///
    /// # Errors
    /// ECHILD if there is none.
    pub fn running(&self, child: usize) -> Result<&P, Errno> {
        // SAFETY: no other call is under way (see `Sync`), and what a call lends ends with it.
        unsafe { (*self.0[child].process.get()).as_ref() }.ok_or(Errno::ECHILD)
    }

    /// Takes a child that has not ended.
    ///
    /// # Errors
    /// As [`Children::running`].
    pub fn take(&self, child: usize) -> Result<P, Errno> {
        // Look without writing first.
        self.running(child)?;
        // SAFETY: as above.
        unsafe { (*self.0[child].process.get()).take() }.ok_or(Errno::ECHILD)
    }

    /// Puts a new child into its place.
    pub fn put(&self, child: usize, process: P, number: ProcessNumber) {
        // SAFETY: as above.
        unsafe { *self.0[child].process.get() = Some(process) };
        self.0[child].number.store(number.0, Ordering::Release);
    }

    /// A child's number, until it is forgotten.
    pub fn number(&self, child: usize) -> Option<ProcessNumber> {
        Some(ProcessNumber(self.0[child].number.load(Ordering::Acquire))).filter(|number| number.0 != 0)
    }

    /// Forgets a child's number, since somebody has waited for it.
    pub fn forget(&self, child: usize) {
        self.0[child].number.store(0, Ordering::Release);
    }
}
