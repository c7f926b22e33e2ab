//! What every call checks of what C hands over, and how its outcome becomes a number.

use core::ffi::{CStr, c_char, c_int, c_void};

use scalefs::{Errno, InProcess, Outside};

use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// Runs a call and turns its outcome into a number.
///
/// # Safety
/// As for every call: the thread is of `scalefs_attach` and used by one thread at a time, the process of
/// `scalefs_process_new` of the same instance, paths end with NUL, buffers have the room that is said.
pub(crate) unsafe fn call(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    body: impl FnOnce(&InProcess<'_, Outside>) -> Result<i64, Errno>,
) -> i64 {
    // SAFETY: the caller's promise.
    let checked = unsafe {
        scalefs_thread::attached(thread)
            .and_then(|thread| scalefs_process::of(process, &thread).map(|process| (thread, process)))
    };
    let made = checked.and_then(|(thread, of)| match thread.transaction_of(process)? {
        None => thread.call(of, body),
        Some(_) => reason::not_in_a_transaction(),
    });
    made.unwrap_or_else(|errno| -i64::from(errno.number()))
}

/// As [`call`], for calls whose answer is an `int`.
///
/// # Safety
/// As there.
pub(crate) unsafe fn answer_int(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    body: impl FnOnce(&InProcess<'_, Outside>) -> Result<i64, Errno>,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(thread, process, body) as c_int }
}

/// Several values that C hands over; none for NULL and a count of 0.
///
/// # Safety
/// There are so many, which nobody changes during the call, or the pointer is NULL.
pub(crate) unsafe fn several<'v, T>(first: *const T, count: u32, at_most: u32) -> Result<&'v [T], Errno> {
    match count {
        0 => Ok(&[]),
        _ if count > at_most => reason::invalid(&std::format!("a count of {count}, expected at most {at_most}")),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { core::slice::from_raw_parts(place(first.cast_mut())?, count as usize) }),
    }
}

/// Runs a call on names, in the thread's transaction if it has one open. `$body` is compiled for either, since what it is
/// made on is of two types.
macro_rules! on_names {
    ($thread:expr, $process:expr, |$objects:ident| $body:expr) => {{
        // SAFETY: as in `call`.
        let checked = unsafe {
            $crate::instance::scalefs_thread::attached($thread).and_then(|thread| {
                $crate::instance::scalefs_process::of($process, &thread).map(|process| (thread, process))
            })
        };
        let made: Result<i64, Errno> = checked.and_then(|(thread, of)| match thread.transaction_of($process)? {
            None => thread.act(of, |objects| {
                let $objects = &objects;
                $body
            }),
            Some(transaction) => thread.act(of, |base| {
                let $objects = &transact::Call::new(base, transaction);
                $body
            }),
        });
        made.unwrap_or_else(|errno| -i64::from(errno.number()))
    }};
}
pub(crate) use on_names;

/// # Safety
/// The path ends with NUL, or is NULL.
pub(crate) unsafe fn bytes<'p>(path: *const c_char) -> Result<&'p [u8], Errno> {
    if path.is_null() {
        return reason::invalid("a path is NULL");
    }
    // SAFETY: the caller's promise, and it is not NULL.
    Ok(unsafe { CStr::from_ptr(path) }.to_bytes())
}

/// A buffer to read into, of at most as many bytes as one call can tell of (POSIX `read`: more is EINVAL here).
///
/// # Safety
/// The buffer has room for so many bytes, or is NULL, and nobody else uses it during the call.
pub(crate) unsafe fn buffer<'b>(start: *mut c_void, length: usize) -> Result<&'b mut [u8], Errno> {
    match isize::try_from(length) {
        Ok(0) => Ok(&mut []),
        Ok(_) if start.is_null() => reason::invalid("a buffer is NULL"),
        // SAFETY: the caller's promise.
        Ok(_) => Ok(unsafe { core::slice::from_raw_parts_mut(initialised(start.cast(), length), length) }),
        Err(_) => reason::invalid("a size is above SSIZE_MAX"),
    }
}

/// What C hands over may never have been written, which Rust must not see: from here on the bytes have values, whichever.
///
/// # Safety
/// The bytes can be written.
unsafe fn initialised(start: *mut u8, length: usize) -> *mut u8 {
    #[cfg(not(miri))]
    let mut start = start;
    #[cfg(miri)]
    // SAFETY: the caller's promise. An interpreter looks into no assembler: the bytes are written.
    unsafe {
        start.write_bytes(0, length);
    }
    // SAFETY: no instruction; for the compiler it may write any of the bytes, which are the caller's to give.
    #[cfg(not(miri))]
    unsafe {
        core::arch::asm!("/* {0} {1} */", inout(reg) start, in(reg) length, options(nostack, preserves_flags))
    };
    start
}

/// A buffer to write from: others may do so at the same time.
///
/// # Safety
/// The buffer holds so many bytes, or is NULL, and nobody writes to it during the call.
pub(crate) unsafe fn source<'b>(start: *const c_void, length: usize) -> Result<&'b [u8], Errno> {
    match isize::try_from(length) {
        Ok(0) => Ok(&[]),
        Ok(_) if start.is_null() => reason::invalid("a buffer is NULL"),
        // SAFETY: the caller's promise.
        Ok(_) => Ok(unsafe { core::slice::from_raw_parts(start.cast(), length) }),
        Err(_) => reason::invalid("a size is above SSIZE_MAX"),
    }
}

/// Where an answer goes; EINVAL for NULL.
pub(crate) fn place<T>(pointer: *mut T) -> Result<*mut T, Errno> {
    if pointer.is_null() { reason::invalid("the place for an answer is NULL") } else { Ok(pointer) }
}

/// Writes an answer as far as the caller's version of the struct goes, which its first field tells: at least so many bytes, of the
/// first version.
///
/// # Safety
/// There is room for as many bytes as the first field says, aligned as the struct is, or the pointer is NULL.
pub(crate) unsafe fn answer<T: Copy>(to: *mut T, answer: T, first_bytes: usize) -> Result<i64, Errno> {
    const FIRST: usize = size_of::<u32>();
    let to = place(to)?.cast::<u8>();
    // SAFETY: the caller's promise, and the structs begin with their size, of which the caller says how small it was at first.
    unsafe {
        let size = to.cast::<u32>().read() as usize;
        if size < first_bytes {
            return reason::invalid(
                "struct_size is smaller than the first version of the struct: set it to its sizeof",
            );
        }
        let from = (&raw const answer).cast::<u8>();
        core::ptr::copy_nonoverlapping(from.add(FIRST), to.add(FIRST), size.min(size_of::<T>()) - FIRST);
    }
    Ok(0)
}

/// The value of flags, or why not.
pub(crate) fn known<T>(flags: Option<T>) -> Result<T, Errno> {
    flags.map_or_else(|| reason::invalid("a flag or field that there is not"), Ok)
}

pub(crate) fn descriptor(fd: c_int) -> Result<u32, Errno> {
    u32::try_from(fd).map_err(|_| Errno::EBADF)
}

pub(crate) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
