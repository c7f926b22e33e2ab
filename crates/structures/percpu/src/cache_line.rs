//! A value on cache lines of its own.

use core::ops::Deref;

use crate::LINE_BYTES;

/// A value that starts a cache line and shares it with nothing.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CacheLine<T>(pub T);

const _: () = assert!(align_of::<CacheLine<u8>>() == LINE_BYTES);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
