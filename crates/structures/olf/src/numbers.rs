//! Numbers of lists: which are free, and which are not yet.
//!
//! A word of an item says in which list it stands by the list's number. When a list ends, readers may still stand at items
//! whose word they have seen with its number. So a number waits, with a stamp of the epochs, until all guards of then are gone.

use epoch::Epochs;
use percpu::{Arena, OutOfMemory};
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::word::ListNumber;

const FREE: u64 = 0;
const IN_USE: u64 = u64::MAX;

/// The numbers of a domain's lists.
pub(crate) struct Numbers {
    // Immutable: memory in the arena, for the number `index + 1` each: free, in use, or the stamp since which it waits.
    states: *const AtomicU64,
    count: usize,
    /// Where to look first: no one relies on it.
    next: AtomicUsize,
}

// SAFETY: the pointer leads to atomics that live as long as the arena.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

impl Numbers {
    /// This many numbers.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold their states.
    pub(crate) fn create(arena: &Arena, count: usize) -> Result<Numbers, OutOfMemory> {
        let layout = core::alloc::Layout::array::<AtomicU64>(count).map_err(|_| OutOfMemory)?;
        let states = arena.allocate_permanent(layout)?.cast::<AtomicU64>();
        for index in 0..count {
            // SAFETY: in bounds of the fresh array.
            unsafe { states.add(index).write(AtomicU64::new(FREE)) };
        }
        Ok(Numbers { states: states.as_ptr(), count, next: AtomicUsize::new(0) })
    }

    fn state(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count);
        // SAFETY: in bounds of an array that is never given back.
        unsafe { &*self.states.add(index) }
    }

    /// A number that no list has, and that no reader still knows; none if there is no such.
    pub(crate) fn take(&self, epochs: &Epochs) -> Option<ListNumber> {
        let first = self.next.load(Ordering::Relaxed);
        let is_free = |seen: u64| seen == FREE || (seen != IN_USE && epochs.has_passed(seen));
        let taken = (0..self.count).map(|offset| (first + offset) % self.count).find(|index| {
            let state = self.state(*index);
            let seen = state.load(Ordering::Relaxed);
            // Acquire pairs with the release in `give`.
            is_free(seen) && state.compare_exchange(seen, IN_USE, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        self.next.store((taken + 1) % self.count, Ordering::Relaxed);
        Some(ListNumber::new(taken + 1))
    }

    /// Gives a number back: no word holds it any more.
    pub(crate) fn give(&self, number: ListNumber, epochs: &Epochs) {
        let stamp = if sync::mutant::planted("olf: a number is reused at once") { FREE } else { epochs.stamp() };
        // Release pairs with the acquire in `take`.
        self.state(number.number() - 1).store(stamp, Ordering::Release);
    }
}
