//! Extended attributes, and room for data.

use core::ffi::{c_char, c_int, c_void};

use scalefs::{DataOperations, Errno, InProcess, NodeOf, Outside, allocation, data, extended};

use crate::at::{SCALEFS_EMPTY_PATH, start};
use crate::border::{answer_int, buffer, bytes, call, descriptor, source};
use crate::calls::follow;
use crate::instance::{scalefs_process, scalefs_thread};

/// A flag of scalefs_setxattrat: the attribute must not be there yet (XATTR_CREATE).
pub const SCALEFS_MUST_BE_NEW: u32 = 1;
/// A flag of scalefs_setxattrat: the attribute must be there (XATTR_REPLACE).
pub const SCALEFS_MUST_EXIST: u32 = 2;
/// A bit of scalefs_fallocate's mode: the file stays as long as it is (FALLOC_FL_KEEP_SIZE).
pub const SCALEFS_KEEP_SIZE: u32 = 1;
/// A bit of scalefs_fallocate's mode: the bytes become zeros, and pages are given back (FALLOC_FL_PUNCH_HOLE).
pub const SCALEFS_PUNCH_HOLE: u32 = 2;

type Call<'c> = InProcess<'c, Outside>;

/// What an attribute is of: what a path leads to, or with SCALEFS_EMPTY_PATH a descriptor.
///
/// # Safety
/// The path ends with NUL, or is NULL and not looked at.
unsafe fn object<'v>(
    verbs: &'v Call<'_>,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
) -> Result<NodeOf<'v, Call<'v>>, Errno> {
    if follow_link == SCALEFS_EMPTY_PATH {
        return extended::of(verbs, descriptor(directory)?);
    }
    // SAFETY: the caller's promise.
    let path = unsafe { bytes(path) }?;
    extended::at(verbs.objects(), start(verbs, directory)?, path, follow(follow_link))
}

/// Reads an extended attribute (getxattr; lgetxattr with follow_link 0; fgetxattr with SCALEFS_EMPTY_PATH in place of it): how many bytes its
/// value has, also where size is 0, and then nothing is read. Names begin with "user.", "trusted." or "security.". -ENODATA if
/// there is none; -ERANGE if the value has more than size bytes.
///
/// # Safety
/// See scalefs_openat; name ends with NUL, and value has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getxattrat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    name: *const c_char,
    value: *mut c_void,
    size: usize,
) -> i64 {
    // SAFETY: the caller's promise; the same in all calls.
    unsafe {
        call(thread, process, |verbs| {
            let find = || object(verbs, directory, path, follow_link);
            let read = extended::get(verbs.objects(), find, bytes(name)?, buffer(value, size)?)?;
            Ok(read as i64)
        })
    }
}

/// Sets an extended attribute (setxattr and its kin, as scalefs_getxattrat); flags 0, SCALEFS_MUST_BE_NEW or SCALEFS_MUST_EXIST.
/// -EOPNOTSUPP for other namespaces; -EPERM where the caller may not; -ENOSPC where all attributes of the object would take more
/// than 65,000 bytes.
///
/// # Safety
/// See scalefs_openat; name ends with NUL, and value holds size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_setxattrat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    name: *const c_char,
    value: *const c_void,
    size: usize,
    flags: u32,
) -> c_int {
    // SAFETY: see `scalefs_getxattrat`.
    unsafe {
        answer_int(thread, process, |verbs| {
            let find = || object(verbs, directory, path, follow_link);
            extended::set(verbs.objects(), find, (bytes(name)?, source(value, size)?), flags).map(|()| 0)
        })
    }
}

/// Tells the names of all extended attributes (listxattr and its kin, as scalefs_getxattrat), each with a NUL: how many bytes they
/// take, also where size is 0, and then none is written. -ERANGE if that is more than size.
///
/// # Safety
/// See scalefs_openat; names has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_listxattrat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    names: *mut c_void,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_getxattrat`.
    unsafe {
        call(thread, process, |verbs| {
            let find = || object(verbs, directory, path, follow_link);
            Ok(extended::list(verbs.objects(), find, buffer(names, size)?)? as i64)
        })
    }
}

/// Removes an extended attribute (removexattr and its kin, as scalefs_getxattrat). -ENODATA if there is none.
///
/// # Safety
/// See scalefs_openat; name ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_removexattrat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    name: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_getxattrat`.
    unsafe {
        answer_int(thread, process, |verbs| {
            let find = || object(verbs, directory, path, follow_link);
            extended::remove(verbs.objects(), find, bytes(name)?).map(|()| 0)
        })
    }
}

/// Takes room for length bytes of a file from offset on, so that writes there find it, and makes the file as long (fallocate,
/// posix_fallocate). With SCALEFS_KEEP_SIZE in mode only as far as the file goes; with SCALEFS_PUNCH_HOLE as well the bytes become
/// zeros, and whole pages are free. -ENOSPC where there is not so much, and nothing has changed; -EOPNOTSUPP for other modes.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fallocate(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    mode: u32,
    offset: i64,
    length: i64,
) -> c_int {
    // SAFETY: see `scalefs_getxattrat`.
    unsafe {
        answer_int(thread, process, |verbs| {
            allocation::change(verbs, descriptor(fd)?, mode, (offset, length)).map(|()| 0)
        })
    }
}

/// Tells how many bytes of room the data of a file take (st_blocks counts them by 512): those of pages that are there, so that
/// holes take none. Looks at each page; what is no file takes no room.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_occupied(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
) -> i64 {
    // SAFETY: see `scalefs_getxattrat`.
    unsafe {
        call(thread, process, |verbs| {
            let occupied_bytes = allocation::occupied_bytes(verbs, data::node(verbs, descriptor(fd)?)?)?;
            Ok(i64::try_from(occupied_bytes).unwrap_or(i64::MAX))
        })
    }
}
