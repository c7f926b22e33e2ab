//! Items inside closures.

use core::marker::PhantomData;

use crate::item::{Arc, Slot};

/// An item inside a closure; it lives as long as that runs.
pub struct Held<'t, 'd, T: Send + Sync + 'static> {
    slot: &'t Slot<T>,
    _domain: PhantomData<Arc<'d, T>>,
}

impl<'t, 'd, T: Send + Sync> Held<'t, 'd, T> {
    pub(crate) fn new(slot: &'t Slot<T>) -> Held<'t, 'd, T> {
        Held { slot, _domain: PhantomData }
    }

    pub(crate) fn slot(&self) -> &'t Slot<T> {
        self.slot
    }

    /// A count of the item, to take it out of the closure. None if its last one has ended: then the closure will have lost.
    pub fn to_arc(&self) -> Option<Arc<'d, T>> {
        // SAFETY: the count is new, and goes into the `Arc`.
        self.slot.header().increment_if_any().then(|| unsafe { Arc::from_count(self.slot) })
    }
}

impl<T: Send + Sync> Clone for Held<'_, '_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync> Copy for Held<'_, '_, T> {}

impl<T: Send + Sync> core::ops::Deref for Held<'_, '_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.slot.value()
    }
}
