//! `core`'s atomics, with a choice before each access: go on, or let another thread or virtual core run. Only built under
//! `cfg(shuttle)` ([`crate::scheduled`] chooses) and `cfg(virtual_cores)` ([`crate::turns`]).

use core::sync::atomic as plain;

pub use plain::Ordering;

#[cfg(shuttle)]
use crate::scheduled::access as before;
#[cfg(not(shuttle))]
use crate::turns::access as before;

/// A fence, which orders nothing more than there is.
pub fn fence(_: Ordering) {
    before(0, false);
}

macro_rules! scheduled {
    ($($name:ident$(<$parameter:ident>)?: $value:ty;)*) => {$(
        #[doc = concat!("`core`'s ", stringify!($name), ", with a choice before each access: who goes on.")]
        #[repr(transparent)]
        #[derive(Debug, Default)]
        pub struct $name$(<$parameter>)?(plain::$name$(<$parameter>)?);

        impl$(<$parameter>)? $name$(<$parameter>)? {
            /// An atomic with this value.
            pub const fn new(value: $value) -> Self {
                Self(plain::$name::new(value))
            }

            /// As `core`'s.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                before(core::ptr::from_ref(self).addr(), false);
                self.0.load(order)
            }

            /// As `core`'s.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                before(core::ptr::from_ref(self).addr(), true);
                self.0.store(value, order);
            }

            /// As `core`'s.
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                before(core::ptr::from_ref(self).addr(), true);
                self.0.swap(value, order)
            }

            /// As `core`'s.
            ///
            /// # Errors
            /// The value, if it is not the expected one.
            #[inline]
            pub fn compare_exchange(
                &self,
                expected: $value,
                value: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                before(core::ptr::from_ref(self).addr(), true);
                self.0.compare_exchange(expected, value, success, failure)
            }

            /// As `core`'s, but that it never fails for no reason.
            ///
            /// # Errors
            /// The value, if it is not the expected one.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                expected: $value,
                value: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(expected, value, success, failure)
            }

            /// As `core`'s.
            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// As `core`'s.
            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }
    )*};
}

macro_rules! counting {
    ($($name:ident: $value:ty: $($operation:ident)*;)*) => {$(impl $name {$(
        /// As `core`'s.
        #[inline]
        pub fn $operation(&self, value: $value, order: Ordering) -> $value {
            before(core::ptr::from_ref(self).addr(), true);
            self.0.$operation(value, order)
        }
    )*})*};
}

scheduled! {
    AtomicI64: i64;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicUsize: usize;
    AtomicPtr<T>: *mut T;
}

counting! {
    AtomicI64: i64: fetch_add fetch_sub fetch_max;
    AtomicU32: u32: fetch_add fetch_sub fetch_and fetch_or fetch_max;
    AtomicU64: u64: fetch_add fetch_sub fetch_and fetch_or fetch_max;
    AtomicUsize: usize: fetch_add fetch_sub fetch_and fetch_or fetch_max;
}
