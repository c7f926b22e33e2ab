//! One value per core, each on lines of its own.

use core::alloc::Layout;
use core::ops::Range;

use crate::OutOfMemory;
use crate::arena::Arena;
use crate::cache_line::CacheLine;
use crate::core_handle::Core;
use crate::core_index::CoreIndex;

/// An array in an arena with one `T` per core. The array itself never changes, so reaching a value writes nothing.
///
/// Cost: one comparison and one multiplication per access; memory `core_count` times `T`, rounded up to lines.
pub struct PerCore<T> {
    // Immutable; both point into the arena.
    arena: *const Arena,
    values: *const CacheLine<T>,
}

// SAFETY: a core's value is reached through `&Core`, which one thread at a time has (claiming hands memory over with
// acquire and release), or through `all`, which asks for `T: Sync`.
unsafe impl<T: Send> Sync for PerCore<T> {}
// SAFETY: the pointers lead to the arena, which belongs to no thread; the values may be sent, since `T` may.
unsafe impl<T: Send> Send for PerCore<T> {}

impl<T> PerCore<T> {
    /// Makes one value for each core of the arena, in memory that is never given back.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    ///
    /// # Safety
    /// The array is not used once the arena's memory is gone, as one that lies in the arena itself is not.
    pub unsafe fn create(arena: &Arena, mut make: impl FnMut(CoreIndex) -> T) -> Result<PerCore<T>, OutOfMemory> {
        let layout = Layout::array::<CacheLine<T>>(arena.core_count()).map_err(|_| OutOfMemory)?;
        let values = arena.allocate_permanent(layout)?.cast::<CacheLine<T>>();
        for index in arena.cores() {
            // SAFETY: in bounds of the fresh array.
            unsafe { values.add(index.get()).write(CacheLine(make(index))) };
        }
        Ok(PerCore { arena, values: values.as_ptr() })
    }

    /// The value of the caller's core.
    ///
    /// # Panics
    /// If the core belongs to another arena, as [`PerCore::is_of`] tells.
    #[inline]
    pub fn get<'s>(&'s self, core: &'s Core<'_>) -> &'s T {
        assert!(self.is_of(core), "the core belongs to another arena");
        // SAFETY: the arena is there, by the promise to `create`, and the index is in bounds in it; the caller is the only one to act as this core.
        unsafe { &(*self.values.add(core.index().get())).0 }
    }

    /// Whether a core belongs to the arena that the values were made for.
    #[inline]
    pub fn is_of(&self, core: &Core<'_>) -> bool {
        core::ptr::eq(self.arena, core.arena())
    }

    /// Where the values lie, one after the other.
    pub fn memory(&self) -> Range<usize> {
        let start = self.values as usize;
        // SAFETY: the arena is there, by the promise to `create`.
        start..start + unsafe { (*self.arena).core_count() } * size_of::<CacheLine<T>>()
    }

    /// Where the value of a core lies, for structures that keep pointers to parts of it that all cores may look at.
    pub fn as_ptr(&self, index: CoreIndex) -> *mut T {
        // SAFETY: the arena is there, by the promise to `create`; the index is checked.
        unsafe {
            assert!(index.get() < (*self.arena).core_count());
            self.values.add(index.get()).cast_mut().cast::<T>()
        }
    }

    /// The value of any core, for what other cores may look at.
    #[inline]
    pub fn of(&self, index: CoreIndex) -> &T
    where
        T: Sync,
    {
        // SAFETY: the arena is there, by the promise to `create`; the index is checked; `T: Sync` allows the sharing.
        unsafe {
            assert!(index.get() < (*self.arena).core_count());
            &(*self.values.add(index.get())).0
        }
    }

    /// See [`Arena::core_limit`].
    #[inline]
    pub fn limit(&self) -> usize {
        // SAFETY: the arena is there, by the promise to `create`.
        unsafe { (*self.arena).core_limit() }
    }

    /// See [`Arena::core_limit_seen`].
    #[inline]
    pub fn limit_seen(&self) -> usize {
        // SAFETY: the arena is there, by the promise to `create`.
        unsafe { (*self.arena).core_limit_seen() }
    }

    /// The values of the cores below `limit`, at most all.
    #[inline]
    pub fn below(&self, limit: usize) -> impl Iterator<Item = (CoreIndex, &T)>
    where
        T: Sync,
    {
        // SAFETY: the arena is there, by the promise to `create`.
        let limit = limit.min(unsafe { (*self.arena).core_count() });
        (0..limit).map(|number| {
            // SAFETY: below the number of cores, as many as there are values; `T: Sync` allows the sharing.
            (CoreIndex(number as u16), unsafe { &(*self.values.add(number)).0 })
        })
    }

    /// The values of all cores that were ever on-line. Cores that come on-line later are ordered after the scan, see
    /// [`Arena::core_limit`].
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = (CoreIndex, &T)>
    where
        T: Sync,
    {
        self.below(self.limit())
    }
}
