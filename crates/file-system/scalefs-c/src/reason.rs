//! Why a call was refused, in words, for the thread that made it.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::thread_local;

use scalefs::Errno;

thread_local! {
    static REASON: RefCell<CString> = RefCell::default();
}

/// Keeps a reason.
pub(crate) fn keep(reason: impl Into<String>) {
    // A reason of ours has no NUL; were there one, the text would end there for C.
    let reason = CString::new(reason.into()).unwrap_or_default();
    REASON.with(|kept| *kept.borrow_mut() = reason);
}

/// Refuses what can never be done, for this reason.
pub(crate) fn invalid<T>(reason: &str) -> Result<T, Errno> {
    keep(reason);
    Err(Errno::EINVAL)
}

/// Refuses a call that a transaction does not offer.
pub(crate) fn not_in_a_transaction<T>() -> Result<T, Errno> {
    keep("a transaction has no such call: end it first");
    Err(Errno::EOPNOTSUPP)
}

/// The reason kept last, until another one is.
pub(crate) fn last() -> *const c_char {
    REASON.with(|kept| CStr::as_ptr(&kept.borrow()))
}
