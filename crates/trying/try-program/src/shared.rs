//! Values that threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder has panicked guards values that are whole: each is changed in one step.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
