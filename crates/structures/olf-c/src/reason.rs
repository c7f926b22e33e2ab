//! What error numbers mean here, in a line each.

use core::ffi::{CStr, c_char, c_int};

use olf::{NotMoved, Stop};

/// There is no item with the key, or the item does not stand in the list (ENOENT).
pub const OLF_ABSENT: i32 = -2;
/// There is an item with the key (EEXIST).
pub const OLF_EXISTS: i32 = -17;
/// The item stands in a list by this link, or a domain is still used (EBUSY).
pub const OLF_BUSY: i32 = -16;
/// NULL, a handle that was given up, a link that was not initialised, or one of another domain (EINVAL).
pub const OLF_INVALID: i32 = -22;
/// One list twice (ELOOP).
pub const OLF_SAME_LIST: i32 = -40;
/// More than eight words in one operation (E2BIG).
pub const OLF_TOO_LARGE: i32 = -7;
/// olf_atomically inside of olf_atomically (EDEADLK).
pub const OLF_NESTED: i32 = -35;
/// What the steps have seen is not true any more: return it, and they are made again (EAGAIN).
pub const OLF_AGAIN: i32 = -11;
/// Memory does not suffice (ENOMEM).
pub const OLF_NO_MEMORY: i32 = -12;
/// All threads of the domain, or all its lists, are there already (EUSERS).
pub const OLF_TOO_MANY: i32 = -87;

/// What an error number means, in a line that lives as long as the program.
///
/// # Safety
/// Any number will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_reason(error: c_int) -> *const c_char {
    said(error).as_ptr()
}

fn said(error: c_int) -> &'static CStr {
    match error {
        0 => c"no error",
        OLF_ABSENT => c"expected an item with this key, or in this list; there is none",
        OLF_EXISTS => c"expected no item with this key; there is one, remove that first",
        OLF_BUSY => {
            c"expected an item in no list, or a domain without threads and lists; take it out, or give them up first"
        }
        OLF_INVALID => {
            c"expected handles that are in use and links of olf_link_init, all of one domain; got something else"
        }
        OLF_SAME_LIST => c"expected two lists, got one twice; an item stays where it is by no call at all",
        OLF_TOO_LARGE => c"expected at most eight words in one operation; split it",
        OLF_NESTED => c"expected no operation inside of an operation; use the steps that are given",
        OLF_AGAIN => c"the steps are made again; return this",
        OLF_NO_MEMORY => c"the memory does not suffice; give the process more",
        OLF_TOO_MANY => {
            c"expected a place for a thread or a list; give one up, or make a domain for more (at most 255 and 524287)"
        }
        _ => c"a number that the caller's own steps have returned",
    }
}

/// The number for why a closure's call did nothing.
pub(crate) fn of_stop(stop: Stop) -> c_int {
    match stop {
        Stop::Absent => OLF_ABSENT,
        Stop::Exists => OLF_EXISTS,
        Stop::Listed => OLF_BUSY,
        Stop::TooManyWords => OLF_TOO_LARGE,
        Stop::Nested => OLF_NESTED,
        _ => OLF_AGAIN,
    }
}

/// The number for what came of a move.
pub(crate) fn of_move(outcome: Result<(), NotMoved>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(NotMoved::Absent) => OLF_ABSENT,
        Err(NotMoved::Exists) => OLF_EXISTS,
        Err(_) => OLF_SAME_LIST,
    }
}
