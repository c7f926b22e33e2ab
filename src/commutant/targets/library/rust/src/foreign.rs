//! `commutant.h` in Rust, and what the macro `library!` expands to. Nothing in it is for adapters themselves.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::{Answer, Arguments, Results};

/// `COMMUTANT_VERSION`.
const VERSION: u32 = 1;

/// `commutant_value`.
#[repr(C)]
pub struct Value {
    pub(crate) kind: u32,
    pub(crate) length: u32,
    pub(crate) number: i64,
    pub(crate) text: *const c_char,
    pub(crate) field: *const c_char,
}

impl Value {
    /// The text, empty if there is none or it is no UTF-8.
    pub(crate) fn text(&self) -> &str {
        if self.text.is_null() {
            return "";
        }
        // SAFETY: the runner's arguments have this many bytes there, until the call has returned.
        let bytes = unsafe { std::slice::from_raw_parts(self.text.cast::<u8>(), self.length as usize) };
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

type Function = unsafe extern "C-unwind" fn(*mut c_void, *const Value, *mut Results);

/// `commutant_call`.
#[repr(C)]
pub struct Call {
    /// The signature, which ends with NUL.
    pub signature: *const c_char,
    /// What makes the call.
    pub function: Option<Function>,
}

/// The calls of an adapter, the last of which is empty.
pub struct Calls<const COUNT: usize>(pub [Call; COUNT]);

// SAFETY: constants; what the pointers lead to lives forever and is never written.
unsafe impl<const COUNT: usize> Sync for Calls<COUNT> {}

/// `commutant_adapter_type`.
#[repr(C)]
pub struct Adapter {
    version: u32,
    size: u32,
    calls: *const Call,
    make: extern "C-unwind" fn() -> *mut c_void,
    drop: unsafe extern "C-unwind" fn(*mut c_void),
    /// Empties an object.
    pub reset: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    /// Called on each core's thread before each test.
    pub settle: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    /// Called once on each core's thread.
    pub enter: Option<extern "C-unwind" fn(u32)>,
}

// SAFETY: a constant, as above.
unsafe impl Sync for Adapter {}

impl Adapter {
    /// One without what may be left out.
    #[must_use]
    pub const fn new(
        calls: &'static [Call],
        make: extern "C-unwind" fn() -> *mut c_void,
        drop: unsafe extern "C-unwind" fn(*mut c_void),
    ) -> Self {
        let size = size_of::<Self>() as u32;
        Self { version: VERSION, size, calls: calls.as_ptr(), make, drop, reset: None, settle: None, enter: None }
    }
}

/// How many parameters a signature has.
#[must_use]
pub const fn parameters(signature: &str) -> usize {
    let bytes = signature.as_bytes();
    let (mut place, mut commas, mut names) = (0, 0, false);
    while place < bytes.len() && bytes[place] != b'(' {
        place += 1;
    }
    place += 1;
    while place < bytes.len() && bytes[place] != b')' {
        commas += (bytes[place] == b',') as usize;
        names |= bytes[place] != b' ';
        place += 1;
    }
    if names { commas + 1 } else { 0 }
}

/// A new object; null if making it panics.
pub fn make<T: Send + Sync>(make: impl FnOnce() -> T) -> *mut c_void {
    catch_unwind(AssertUnwindSafe(|| Box::into_raw(Box::new(make())))).map_or(ptr::null_mut(), <*mut T>::cast)
}

/// Gives an object up.
///
/// # Safety
/// [`make`] made it, and no one uses it any more.
pub unsafe extern "C-unwind" fn drop<T>(object: *mut c_void) {
    // SAFETY: as the caller promises. A panic says itself what is wrong, and leaves nothing to be done.
    let _ = catch_unwind(|| std::mem::drop(unsafe { Box::from_raw(object.cast::<T>()) }));
}

/// Does something with an object.
///
/// # Safety
/// [`make`] made it, and it is not given up.
pub unsafe fn visit<T: Sync>(object: *mut c_void, function: impl FnOnce(&T)) {
    // SAFETY: as the caller promises.
    let _ = catch_unwind(AssertUnwindSafe(|| function(unsafe { &*object.cast::<T>() })));
}

/// Makes a call; one that panics has failed, with the panic's message.
///
/// # Safety
/// [`make`] made the object, and it is not given up; this many arguments stand there; the result is the runner's, and
/// no one else's until the call has returned.
pub unsafe fn call<T: Sync, A: Answer>(
    object: *mut c_void,
    arguments: *const Value,
    count: usize,
    result: *mut Results,
    function: impl FnOnce(&T, Arguments<'_>) -> A,
) {
    // SAFETY: as the caller promises.
    let (object, arguments, result) =
        unsafe { (&*object.cast::<T>(), std::slice::from_raw_parts(arguments, count), &mut *result) };
    let given = catch_unwind(AssertUnwindSafe(|| function(object, Arguments::over(arguments)).put(result)));
    if let Err(panic) = given {
        WHY.with_borrow_mut(|why| {
            *why = format!("it panicked: {}", message(&*panic));
            result.fail(why);
        });
    }
}

thread_local! {
    /// Why the thread's last call failed; stays until its next one.
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn parameters_are_counted_as_the_runner_does() {
        for (signature, count) in
            [("pop()", 0), ("pop( )", 0), ("get(key)", 1), ("put(key, value)", 2), ("a(b,c,d)", 3)]
        {
            assert_eq!(parameters(signature), count, "{signature}");
        }
    }
}
