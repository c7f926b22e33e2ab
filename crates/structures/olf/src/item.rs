//! Items: what stands in lists, each with one count for each list in which it stands.
//!
//! An [`Arc`] is a count of an item. A list takes it over when the item is inserted, hands it on when the item moves to
//! another list, and gives it back when the item is removed. So no item ends while it is listed. The last count retires
//! the item; it is dropped once no guard is left that could lead to it.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::domain::{Domain, Here};
use crate::header::Header;
use crate::word::{ADDRESSES_END, ITEM_ALIGN};

/// Room for an item, with its count before it.
#[repr(C, align(32))]
pub struct Slot<T> {
    header: Header,
    value: T,
}

impl<T> Slot<T> {
    /// Where an item stands, for links.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }

    /// The item at an address.
    ///
    /// # Safety
    /// Not zero, and [`Slot::address`] of a slot of this type that is not freed before `'g` ends.
    #[inline]
    pub(crate) unsafe fn at<'g>(address: usize) -> &'g Slot<T> {
        // SAFETY: the caller's promise.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }

    /// The item.
    #[inline]
    pub(crate) fn value(&self) -> &T {
        &self.value
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Its header, with the right to all of the slot.
    pub(crate) fn whole(&self) -> NonNull<Header> {
        // The address was exposed when the item was made: the right is that of the one that made it.
        let header = core::ptr::with_exposed_provenance_mut(self.address());
        // SAFETY: the address of a reference is not null.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// A count of an item of a domain: the item lives at least as long. Dropping the last one leaves the item to the one
/// that maintains next; [`Arc::end`] shares nothing.
pub struct Arc<'d, T: Send + Sync + 'static> {
    slot: NonNull<Slot<T>>,
    _domain: PhantomData<&'d Domain>,
}

// SAFETY: as for a shared reference to the item, which may also be dropped in another thread.
unsafe impl<T: Send + Sync> Send for Arc<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arc<'_, T> {}

/// An item cannot stand here: addresses above 2^47 do not fit into links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTooHigh(pub usize);

impl fmt::Display for AddressTooHigh {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected an address below 2^47 for an item, got {:#x}", self.0)
    }
}

impl core::error::Error for AddressTooHigh {}

impl<'d, T: Send + Sync + 'static> Arc<'d, T> {
    /// An item in memory of the global allocator.
    ///
    /// # Panics
    /// If the memory lies above 2^47, which no system gives to one that does not ask for it.
    #[cfg(feature = "alloc")]
    pub fn new(domain: &'d Domain, value: T) -> Arc<'d, T> {
        /// # Safety
        /// `header` is that of a slot of `T` from a box, and no one can reach it.
        unsafe fn free<T>(header: NonNull<Header>) {
            // SAFETY: the caller's promise.
            drop(unsafe { alloc::boxed::Box::from_raw(header.cast::<Slot<T>>().as_ptr()) });
        }
        let header = Header::new(&raw const domain.orphans, free::<T>);
        let slot = NonNull::from(alloc::boxed::Box::leak(alloc::boxed::Box::new(Slot { header, value })));
        assert!(slot.as_ptr().expose_provenance() < ADDRESSES_END, "{}", AddressTooHigh(slot.addr().get()));
        Arc { slot, _domain: PhantomData }
    }

    /// An item in memory of the caller's, who gets it back by `free` once it is reached by no one.
    ///
    /// # Errors
    /// [`AddressTooHigh`]: nothing has happened.
    ///
    /// # Safety
    /// `place` is valid for reads and writes of a slot, and aligned for one, until `free` was called with it. `free` gets a
    /// slot with an item in it, which it drops if it wants, in any thread that maintains.
    pub unsafe fn in_place(
        domain: &'d Domain,
        place: NonNull<Slot<T>>,
        value: T,
        free: unsafe fn(NonNull<Item>),
    ) -> Result<Arc<'d, T>, AddressTooHigh> {
        const { assert!(align_of::<Slot<T>>() >= ITEM_ALIGN) };
        let address = place.as_ptr().expose_provenance();
        if address >= ADDRESSES_END {
            return Err(AddressTooHigh(address));
        }
        // SAFETY: an `Item` is nothing but the slot's header.
        let free = unsafe { core::mem::transmute::<unsafe fn(NonNull<Item>), unsafe fn(NonNull<Header>)>(free) };
        let header = Header::new(&raw const domain.orphans, free);
        // SAFETY: the caller's promise.
        unsafe { place.write(Slot { header, value }) };
        Ok(Arc { slot: place, _domain: PhantomData })
    }

    /// The count that a list had.
    ///
    /// # Safety
    /// The count is the caller's, and the item is of a domain that lives for `'d`.
    pub(crate) unsafe fn from_count(slot: &Slot<T>) -> Arc<'d, T> {
        Arc { slot: slot.whole().cast(), _domain: PhantomData }
    }

    /// Leaves the count to the caller.
    pub(crate) fn into_count(self) {
        core::mem::forget(self);
    }

    #[inline]
    pub(crate) fn slot(&self) -> &Slot<T> {
        // SAFETY: the item lives as long as it has a count.
        unsafe { self.slot.as_ref() }
    }

    /// Ends the count. As dropping it, but that the last one shares nothing.
    ///
    /// # Panics
    /// If the item is of another domain.
    pub fn end(self, here: &Here<'d>) {
        assert!(here.domain.is(self.slot().header.orphans()), "the item belongs to another domain");
        let guard = here.pin();
        // SAFETY: the count is ours, and not ended again.
        unsafe { guard.end_count(self.slot().whole()) };
        core::mem::forget(self);
    }

    /// Leaves the count to the caller, for code that keeps it outside of Rust: [`Arc::from_raw`] makes it a count
    /// again.
    #[must_use]
    pub fn into_raw(self) -> NonNull<Slot<T>> {
        let slot = self.slot;
        core::mem::forget(self);
        slot
    }

    /// The count that [`Arc::into_raw`] left.
    ///
    /// # Safety
    /// The count is the caller's, and the item is of a domain that lives for `'d`.
    #[must_use]
    pub unsafe fn from_raw(slot: NonNull<Slot<T>>) -> Arc<'d, T> {
        Arc { slot, _domain: PhantomData }
    }

    /// Whether two counts are of one item.
    pub fn is_same(&self, other: &Arc<'d, T>) -> bool {
        self.slot == other.slot
    }
}

/// An item whose type has been forgotten: see [`Arc::in_place`].
#[repr(transparent)]
pub struct Item(Header);

impl<T: Send + Sync> Clone for Arc<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        self.slot().header.increment();
        Arc { slot: self.slot, _domain: PhantomData }
    }
}

impl<T: Send + Sync> Drop for Arc<'_, T> {
    fn drop(&mut self) {
        let header = &self.slot().header;
        let (orphans, whole) = (header.orphans(), self.slot().whole());
        if header.decrement() {
            // SAFETY: the domain lives for `'d`; the last count has just ended, here.
            unsafe { (*orphans).push(whole) };
        }
    }
}

impl<T: Send + Sync> Deref for Arc<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.slot().value
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Arc<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

/// An item that was found in a list: it is not freed as long as the guard lives, whatever happens to the list.
pub struct Ref<'g, 'd, T: Send + Sync + 'static> {
    slot: &'g Slot<T>,
    _domain: PhantomData<&'d Domain>,
}

impl<'g, 'd, T: Send + Sync + 'static> Ref<'g, 'd, T> {
    /// # Safety
    /// A guard of the item's domain, which lives for `'d`, lives for `'g`.
    pub(crate) unsafe fn new(slot: &'g Slot<T>) -> Ref<'g, 'd, T> {
        Ref { slot, _domain: PhantomData }
    }

    /// The item, for as long as the guard lives.
    pub fn get(&self) -> &'g T {
        &self.slot.value
    }

    /// A count of the item; none if its last one has ended since it was found.
    pub fn to_arc(&self) -> Option<Arc<'d, T>> {
        // SAFETY: the count is new, and goes into the `Arc`.
        self.slot.header.increment_if_any().then(|| unsafe { Arc::from_count(self.slot) })
    }
}

/// What leads to an item: a count of it, or what was found in a list.
pub trait Handle<'d, T: Send + Sync + 'static> {
    #[doc(hidden)]
    fn slot(&self) -> &Slot<T>;
}

impl<'d, T: Send + Sync + 'static> Handle<'d, T> for Arc<'d, T> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        Arc::slot(self)
    }
}

impl<'d, T: Send + Sync + 'static> Handle<'d, T> for Ref<'_, 'd, T> {
    #[inline]
    fn slot(&self) -> &Slot<T> {
        self.slot
    }
}

impl<T: Send + Sync> Clone for Ref<'_, '_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync> Copy for Ref<'_, '_, T> {}

impl<T: Send + Sync> Deref for Ref<'_, '_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.slot.value
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Ref<'_, '_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}
