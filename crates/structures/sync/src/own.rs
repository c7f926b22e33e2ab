//! Words that one core alone writes, in memory that outlives its process.
//!
//! Nothing orders plain stores for a compiler but what the thread itself can see; a process that is killed stops between
//! any two of its machine's stores. So what an heir shall find in order is stored in order: an [`OwnWord`] comes to memory
//! after all that its core has stored before, which costs nothing on x86.
//!
//! Words of which the order does not matter, such as statistics, are relaxed atomics.

use core::fmt;
// No model interleaves them: no one but their core, and later its heir, makes anything of them.
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// What an [`OwnWord`] can hold: integers and pointers of which the machine stores all bytes at once.
pub trait Word: Copy + sealed::Sealed {
    /// The atomic that holds one.
    #[doc(hidden)]
    type Atomic: Send + Sync;
    #[doc(hidden)]
    fn atomic(self) -> Self::Atomic;
    #[doc(hidden)]
    fn load(atomic: &Self::Atomic) -> Self;
    #[doc(hidden)]
    fn store(self, atomic: &Self::Atomic);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! words {
    ($($word:ty: $atomic:ty $(, $parameter:ident)?;)*) => {$(
        impl$(<$parameter>)? sealed::Sealed for $word {}

        impl$(<$parameter>)? Word for $word {
            type Atomic = $atomic;

            #[inline(always)]
            fn atomic(self) -> $atomic {
                <$atomic>::new(self)
            }

            #[inline(always)]
            fn load(atomic: &$atomic) -> $word {
                atomic.load(Ordering::Relaxed)
            }

            #[inline(always)]
            fn store(self, atomic: &$atomic) {
                atomic.store(self, Ordering::Release);
            }
        }
    )*};
}

words! {
    u8: AtomicU8;
    u32: AtomicU32;
    u64: AtomicU64;
    usize: AtomicUsize;
    *mut T: AtomicPtr<T>, T;
}

/// A word that one core at a time reads and writes; its stores come to memory in the order of the program. Anyone else
/// who looks at it learns nothing that holds.
pub struct OwnWord<W: Word>(W::Atomic);

impl<W: Word> OwnWord<W> {
    /// A word of this value.
    #[inline]
    pub fn new(value: W) -> OwnWord<W> {
        OwnWord(value.atomic())
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> W {
        W::load(&self.0)
    }

    /// Sets the value: all stores of before come to memory before it.
    #[inline]
    pub fn set(&self, value: W) {
        // Its process may end here.
        #[cfg(shuttle)]
        crate::scheduled::pass();
        value.store(&self.0);
    }
}

impl<W: Word + fmt::Debug> fmt::Debug for OwnWord<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}
