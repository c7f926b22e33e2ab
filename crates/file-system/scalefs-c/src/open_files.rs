//! Calls on what a descriptor leads to, where paths start, and the mask: what others do by path.

use core::ffi::{c_char, c_int};

use scalefs::{DataOperations, Kind, attributes, data, directories, handles, names};

use crate::at::{new_owner, new_times, start};
use crate::border::{answer_int, buffer, bytes, call, descriptor, length};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// Gives the file that a path leads to this size; scalefs_truncate does that with a descriptor.
///
/// # Safety
/// See scalefs_open. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_truncateat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    size_bytes: i64,
) -> c_int {
    // SAFETY: the caller's promise; the same in all calls.
    unsafe {
        answer_int(thread, process, |call| {
            data::truncate_path(call, start(call, directory)?, bytes(path)?, size_bytes).map(|()| 0)
        })
    }
}

/// Makes an empty file, or a name for a pipe, a socket or a device outside (mknodat): mode has one of S_IFREG, S_IFIFO, S_IFSOCK,
/// S_IFCHR and S_IFBLK, and permission bits; device is its number, or 0. What a name is for is the program's matter: opening one
/// is -ENXIO.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mknodat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    mode: u32,
    device: u64,
) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        answer_int(thread, process, |call| {
            let kind = match mode >> 12 {
                0o01 => Kind::NamedPipe,
                0o02 => Kind::CharacterDevice,
                0o04 => Kind::Directory,
                0o06 => Kind::BlockDevice,
                0o00 | 0o10 => Kind::Regular,
                0o14 => Kind::NamedSocket,
                _ => return reason::invalid("a kind of file that cannot be made so"),
            };
            let from = start(call, directory)?;
            names::make_node(call.objects(), from, bytes(path)?, (kind, device), mode & 0o7777).map(|()| 0)
        })
    }
}

/// Sets permission bits of what a descriptor leads to.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fchmod(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        answer_int(thread, process, |call| {
            let node = handles::node_to_change(call, descriptor(fd)?)?;
            attributes::change_mode_of(call.objects(), node, mode).map(|()| 0)
        })
    }
}

/// Sets user and group of what a descriptor leads to; SCALEFS_SAME_ID leaves one as it is.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fchown(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    user: u32,
    group: u32,
) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        answer_int(thread, process, |call| {
            let node = handles::node_to_change(call, descriptor(fd)?)?;
            attributes::change_owner_of(call.objects(), node, new_owner(user, group)).map(|()| 0)
        })
    }
}

/// Sets the times of what a descriptor leads to, as scalefs_utimensat.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_futimens(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    accessed_ns: i64,
    modified_ns: i64,
    which: u32,
) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        answer_int(thread, process, |call| {
            let times = new_times((accessed_ns, modified_ns), which)?;
            let node = handles::node_to_change(call, descriptor(fd)?)?;
            attributes::set_times_of(call.objects(), node, times).map(|()| 0)
        })
    }
}

/// Makes the directory that a descriptor leads to the working directory.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fchdir(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        answer_int(thread, process, |call| {
            directories::change_directory_to(call.objects(), data::node(call, descriptor(fd)?)?).map(|()| 0)
        })
    }
}

/// Writes the path of the working directory and a NUL into a buffer; returns how many bytes, with the NUL. -ERANGE if there
/// is not so much room, -ENOENT if the directory was removed.
///
/// # Safety
/// See scalefs_truncateat; the buffer has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getcwd(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    into: *mut c_char,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_truncateat`.
    unsafe {
        call(thread, process, |call| {
            let into = buffer(into.cast(), size)?;
            // The last byte is the NUL's.
            let room = into.len().saturating_sub(1);
            let found = directories::working_directory_path(call.objects(), &mut into[..room])?.len();
            into.copy_within(room - found..room, 0);
            into[found] = 0;
            Ok(length(found + 1))
        })
    }
}

/// Sets the permission bits that new objects do not get; returns those that they did not get before.
///
/// # Safety
/// See scalefs_truncateat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_umask(thread: *mut scalefs_thread, process: *mut scalefs_process, mask: u32) -> c_int {
    // SAFETY: see `scalefs_truncateat`.
    let set = unsafe {
        scalefs_thread::attached(thread).and_then(|thread| {
            let of = scalefs_process::of(process, &thread)?;
            match thread.transaction_of(process)? {
                None => Ok(of.context().set_umask(mask)),
                Some(_) => reason::not_in_a_transaction(),
            }
        })
    };
    set.map_or_else(|errno| -errno.number(), |old| old as c_int)
}
