//! Calls on descriptors: more numbers, pipes, flags, and several buffers at once.

use core::ffi::{c_int, c_void};
use std::vec::Vec;

use scalefs::data;
use scalefs::{Errno, NumberChoice, OnExec, StatusFlags};

use crate::border::{buffer, call, descriptor, length, place, source};
use crate::flags::{
    SCALEFS_APPEND, SCALEFS_CLOSE_ON_EXEC, SCALEFS_HANDLE, SCALEFS_NONBLOCK, SCALEFS_READ, SCALEFS_WRITE, closing,
    descriptor_options, status_flags,
};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// scalefs_fcntl returns the flags: SCALEFS_READ, SCALEFS_WRITE, SCALEFS_APPEND, SCALEFS_NONBLOCK (F_GETFL).
pub const SCALEFS_GET_FLAGS: u32 = 0;
/// It sets SCALEFS_APPEND and SCALEFS_NONBLOCK as in its argument (F_SETFL).
pub const SCALEFS_SET_FLAGS: u32 = 1;
/// It returns another descriptor, the lowest from its argument on (F_DUPFD).
pub const SCALEFS_DUPLICATE: u32 = 2;
/// It lets the descriptor be closed by exec if its argument is not 0 (F_SETFD).
pub const SCALEFS_SET_ON_EXEC: u32 = 3;

/// It returns 1 if exec closes the descriptor, 0 if not (F_GETFD).
pub const SCALEFS_GET_ON_EXEC: u32 = 4;
/// As SCALEFS_DUPLICATE; exec closes the new one (F_DUPFD_CLOEXEC).
pub const SCALEFS_DUPLICATE_CLOSING: u32 = 5;

/// Most buffers of one call (IOV_MAX of Linux).
const MOST_BUFFERS: usize = 1024;

/// One of several buffers; its layout is that of struct iovec.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct scalefs_buffer {
    /// Its bytes.
    pub start: *mut c_void,
    /// How many.
    pub size: usize,
}

/// The buffers of a call, and how many bytes they have together.
///
/// # Safety
/// There are so many, or the pointer is NULL.
unsafe fn buffers<'b>(first: *const scalefs_buffer, count: c_int) -> Result<(&'b [scalefs_buffer], usize), Errno> {
    let Some(count) = usize::try_from(count).ok().filter(|count| *count <= MOST_BUFFERS) else {
        return reason::invalid("a count of buffers below 0 or above 1024");
    };
    if count == 0 {
        return Ok((&[], 0));
    }
    let first = place(first.cast_mut())?;
    // SAFETY: the caller's promise.
    let buffers = unsafe { core::slice::from_raw_parts(first, count) };
    let total = buffers.iter().try_fold(0_usize, |sum, one| sum.checked_add(one.size));
    match total.filter(|total| isize::try_from(*total).is_ok()) {
        Some(total) => Ok((buffers, total)),
        None => reason::invalid("buffers of more than SSIZE_MAX bytes together"),
    }
}

/// Room for the bytes of several buffers: they go in one step, as those of one.
fn room(size: usize) -> Result<Vec<u8>, Errno> {
    let mut room = Vec::new();
    room.try_reserve_exact(size).map_err(|_| Errno::ENOMEM)?;
    Ok(room)
}

/// What several buffers hold.
///
/// # Safety
/// As `source` says of each.
unsafe fn gathered(first: *const scalefs_buffer, count: c_int) -> Result<Vec<u8>, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        let (buffers, total) = buffers(first, count)?;
        let mut bytes = room(total)?;
        for one in buffers {
            bytes.extend_from_slice(source(one.start, one.size)?);
        }
        Ok(bytes)
    }
}

/// Reads into several buffers what `read` gives for all of them.
///
/// # Safety
/// As `buffer` says of each.
unsafe fn scattered(
    first: *const scalefs_buffer,
    count: c_int,
    read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
) -> Result<i64, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        let (buffers, total) = buffers(first, count)?;
        for one in buffers {
            buffer(one.start, one.size)?;
        }
        let mut bytes = room(total)?;
        bytes.resize(total, 0);
        let count = read(&mut bytes)?;
        let mut left = &bytes[..count];
        for one in buffers {
            let (now, later) = left.split_at(left.len().min(one.size));
            buffer(one.start, now.len())?.copy_from_slice(now);
            left = later;
        }
        Ok(length(count))
    }
}

/// Returns another descriptor for what one leads to, the lowest that is free.
///
/// # Safety
/// See scalefs_open. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_dup(thread: *mut scalefs_thread, process: *mut scalefs_process, fd: c_int) -> c_int {
    // SAFETY: the caller's promise; the same in all calls.
    let result = unsafe {
        call(thread, process, |verbs| {
            data::duplicate(verbs, descriptor(fd)?, NumberChoice::LowestFrom(0), OnExec::Keep).map(i64::from)
        })
    };
    result as c_int
}

/// Lets target lead to what fd leads to, instead of to what it did (dup2); returns it.
///
/// # Safety
/// See scalefs_dup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_dup2(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    target: c_int,
) -> c_int {
    // SAFETY: see `scalefs_dup`.
    let result = unsafe {
        call(thread, process, |verbs| {
            data::duplicate_to(verbs, descriptor(fd)?, descriptor(target)?, OnExec::Keep).map(i64::from)
        })
    };
    result as c_int
}

/// As scalefs_dup2, but that two equal numbers are -EINVAL, and exec closes target with SCALEFS_CLOSE_ON_EXEC (dup3).
///
/// # Safety
/// See scalefs_dup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_dup3(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    target: c_int,
    flags: u32,
) -> c_int {
    // SAFETY: see `scalefs_dup`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let on_exec = descriptor_options(flags, SCALEFS_CLOSE_ON_EXEC)?.on_exec;
            if fd == target {
                return reason::invalid("dup3 of a number to itself");
            }
            data::duplicate_to(verbs, descriptor(fd)?, descriptor(target)?, on_exec).map(i64::from)
        })
    };
    result as c_int
}

/// Makes a pipe: ends[0] is to be read, ends[1] to be written. flags may be SCALEFS_NONBLOCK, SCALEFS_CLOSE_ON_EXEC and
/// SCALEFS_ANY_NUMBER. A call that finds nothing to do is -EAGAIN in any case: scalefs_poll waits.
///
/// # Safety
/// See scalefs_dup; there is room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_pipe(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    ends: *mut c_int,
    flags: u32,
) -> c_int {
    // SAFETY: see `scalefs_dup`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let (ends, options) = (place(ends)?, descriptor_options(flags, !SCALEFS_APPEND)?);
            let (read, write) = data::pipe(verbs, options)?;
            ends.write(read as c_int);
            ends.add(1).write(write as c_int);
            Ok(0)
        })
    };
    result as c_int
}

/// Does with a descriptor what command says: SCALEFS_GET_FLAGS, SCALEFS_SET_FLAGS, SCALEFS_DUPLICATE,
/// SCALEFS_DUPLICATE_CLOSING, SCALEFS_SET_ON_EXEC, SCALEFS_GET_ON_EXEC.
///
/// # Safety
/// See scalefs_dup.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fcntl(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    command: u32,
    argument: u32,
) -> c_int {
    // SAFETY: see `scalefs_dup`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let fd = descriptor(fd)?;
            match command {
                SCALEFS_GET_FLAGS => {
                    let (mode, status) = data::status(verbs, fd)?;
                    let flags = [
                        (mode.read, SCALEFS_READ),
                        (mode.write, SCALEFS_WRITE),
                        (status.contains(StatusFlags::APPEND), SCALEFS_APPEND),
                        (status.contains(StatusFlags::NONBLOCK), SCALEFS_NONBLOCK),
                        (status.contains(StatusFlags::HANDLE), SCALEFS_HANDLE),
                    ];
                    Ok(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| i64::from(*flag)).sum())
                }
                SCALEFS_SET_FLAGS => data::set_status(verbs, fd, status_flags(argument)?).map(|()| 0),
                SCALEFS_DUPLICATE | SCALEFS_DUPLICATE_CLOSING => {
                    let on_exec = closing(command == SCALEFS_DUPLICATE_CLOSING);
                    data::duplicate(verbs, fd, NumberChoice::LowestFrom(argument), on_exec).map(i64::from)
                }
                SCALEFS_SET_ON_EXEC => data::set_on_exec(verbs, fd, closing(argument != 0)).map(|()| 0),
                SCALEFS_GET_ON_EXEC => data::on_exec(verbs, fd).map(|on_exec| i64::from(on_exec == OnExec::Close)),
                _ => reason::invalid("a command of fcntl that there is not"),
            }
        })
    };
    result as c_int
}

/// Reads into several buffers, one after the other, in one step; returns how many bytes.
///
/// # Safety
/// See scalefs_dup; each buffer has room for its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_readv(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *const scalefs_buffer,
    count: c_int,
) -> i64 {
    // SAFETY: see `scalefs_dup`.
    unsafe {
        call(thread, process, |verbs| {
            let fd = descriptor(fd)?;
            scattered(into, count, |bytes| data::read(verbs, fd, bytes))
        })
    }
}

/// Writes several buffers, one after the other, in one step; returns how many bytes.
///
/// # Safety
/// See scalefs_dup; each buffer holds its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_writev(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    from: *const scalefs_buffer,
    count: c_int,
) -> i64 {
    // SAFETY: see `scalefs_dup`.
    unsafe { call(thread, process, |verbs| data::write(verbs, descriptor(fd)?, &gathered(from, count)?).map(length)) }
}

/// Reads into several buffers from an offset on.
///
/// # Safety
/// See scalefs_readv.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_preadv(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *const scalefs_buffer,
    count: c_int,
    offset: i64,
) -> i64 {
    // SAFETY: see `scalefs_dup`.
    unsafe {
        call(thread, process, |verbs| {
            let fd = descriptor(fd)?;
            scattered(into, count, |bytes| data::read_at(verbs, fd, bytes, offset))
        })
    }
}

/// Writes several buffers at an offset.
///
/// # Safety
/// See scalefs_writev.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_pwritev(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    from: *const scalefs_buffer,
    count: c_int,
    offset: i64,
) -> i64 {
    // SAFETY: see `scalefs_dup`.
    unsafe {
        call(thread, process, |verbs| {
            data::write_at(verbs, descriptor(fd)?, &gathered(from, count)?, offset).map(length)
        })
    }
}
