//! Error numbers, and why a call failed, in words, for the thread that made it.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use std::ffi::CString;

use pool::Fault;

thread_local! {
    static REASON: RefCell<CString> = RefCell::default();
}

/// Argument is NULL, or impossible (EINVAL).
pub(crate) const INVALID: i32 = -22;
/// An access past the end (ERANGE).
const OUT_OF_BOUNDS: i32 = -34;
/// Memory has gone (EIO).
pub(crate) const GONE: i32 = -5;
/// The domain has crashed (EOWNERDEAD).
const CRASHED: i32 = -130;

/// Keeps a reason.
pub(crate) fn keep(reason: &str) {
    REASON.with(|kept| *kept.borrow_mut() = CString::new(reason.replace('\0', "?")).unwrap_or_default());
}

/// The reason kept last.
pub(crate) fn last() -> *const c_char {
    REASON.with(|kept| CStr::as_ptr(&kept.borrow()))
}

/// What a call returns.
pub(crate) fn code(outcome: Result<(), Fault>) -> i32 {
    let Err(fault) = outcome else { return 0 };
    keep(&fault.to_string());
    match fault {
        Fault::OutOfBounds { .. } => OUT_OF_BOUNDS,
        Fault::Truncated => GONE,
        Fault::Crashed => CRASHED,
    }
}

/// Refuses a NULL.
pub(crate) fn null(what: &str) -> i32 {
    keep(&format!("expected {what}, got NULL"));
    INVALID
}
