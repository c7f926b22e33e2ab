//! Calls whose paths start at an open directory, and calls on owners, times and space.

use core::ffi::{c_char, c_int, c_void};

use scalefs::attributes::{self, Access, NewTime};
use scalefs::data;
use scalefs::directories;
use scalefs::handles;
use scalefs::names::{self, RenameMode};
use scalefs::{DataOperations, Errno, Fields, InProcess, NodeOf, Outside, Start};

use crate::border::{answer, buffer, bytes, call, descriptor, known, length};
use crate::calls::{SCALEFS_EXCHANGE, SCALEFS_NO_REPLACE, SCALEFS_REPLACE, answer_status, follow, scalefs_status};
use crate::flags::open;
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// In place of a directory's descriptor: paths start at the working directory (AT_FDCWD).
pub const SCALEFS_AT_CWD: i32 = -100;
/// scalefs_unlinkat removes a directory (AT_REMOVEDIR).
pub const SCALEFS_REMOVE_DIRECTORY: u32 = 1;
/// scalefs_utimensat sets the time of access to what is given.
pub const SCALEFS_SET_ACCESSED: u32 = 1;
/// It sets the time of modification to what is given.
pub const SCALEFS_SET_MODIFIED: u32 = 2;
/// It sets the time of access to the present (UTIME_NOW).
pub const SCALEFS_ACCESSED_NOW: u32 = 4;
/// It sets the time of modification to the present.
pub const SCALEFS_MODIFIED_NOW: u32 = 8;
/// In place of follow_link in scalefs_linkat, scalefs_chownat and scalefs_utimensat: the path, which may be NULL, is not looked at,
/// and the call is on what directory itself leads to (AT_EMPTY_PATH).
pub const SCALEFS_EMPTY_PATH: i32 = 2;
/// scalefs_chownat leaves this user or group as it is.
pub const SCALEFS_SAME_ID: u32 = 4294967295;

/// What scalefs_statvfs tells.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct scalefs_space {
    /// Its version: set by the caller to sizeof(scalefs_space).
    pub struct_size: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks for data.
    pub blocks: u64,
    /// Those that are free.
    pub free_blocks: u64,
    /// Most inodes that there can be.
    pub inodes: u64,
    /// Those that can still be made.
    pub free_inodes: u64,
}

type Call<'c> = InProcess<'c, Outside>;

/// What becomes of both times.
pub(crate) fn new_times((accessed_ns, modified_ns): (i64, i64), which: u32) -> Result<(NewTime, NewTime), Errno> {
    let time = |set: u32, now: u32, given: i64| match (which & set != 0, which & now != 0) {
        (false, false) => Ok(NewTime::Same),
        (true, false) => Ok(NewTime::At(given)),
        (false, true) => Ok(NewTime::Now),
        (true, true) => reason::invalid("a time is set to what is given and to the present"),
    };
    known((which < 16).then_some(()))?;
    let accessed = time(SCALEFS_SET_ACCESSED, SCALEFS_ACCESSED_NOW, accessed_ns)?;
    Ok((accessed, time(SCALEFS_SET_MODIFIED, SCALEFS_MODIFIED_NOW, modified_ns)?))
}

/// Owner and group, each if it is not to stay.
pub(crate) fn new_owner(user: u32, group: u32) -> (Option<u32>, Option<u32>) {
    let given = |id: u32| (id != SCALEFS_SAME_ID).then_some(id);
    (given(user), given(group))
}

pub(crate) fn start<'v>(verbs: &'v Call<'_>, directory: c_int) -> Result<Start<NodeOf<'v, Call<'v>>>, Errno> {
    if directory == SCALEFS_AT_CWD {
        return Ok(Start::WorkingDirectory);
    }
    Ok(Start::Handle(data::node(verbs, descriptor(directory)?)?))
}

/// Opens a file, as scalefs_open.
///
/// # Safety
/// See scalefs_open. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_openat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    flags: u32,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise; the same in all calls.
    let result = unsafe {
        call(thread, process, |verbs| {
            let from = start(verbs, directory)?;
            open(verbs, from, bytes(path)?, flags, mode)
        })
    };
    result as c_int
}

/// Tells about what a path leads to, as scalefs_stat.
///
/// # Safety
/// See scalefs_stat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_statat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    fields: u32,
    status: *mut scalefs_status,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let (fields, from) = (known(Fields::from_bits(fields))?, start(verbs, directory)?);
            let (path, follow) = (bytes(path)?, follow(follow_link));
            let (found, device) = attributes::stat_with_device(verbs.objects(), from, path, follow, fields)?;
            answer_status(status, found, device)
        })
    };
    result as c_int
}

/// Whether what a path leads to may be used so, as scalefs_access.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_accessat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    wanted: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let wanted = known((wanted < 8).then_some(wanted))?;
            let wanted = Access { read: wanted & 4 != 0, write: wanted & 2 != 0, execute: wanted & 1 != 0 };
            let from = start(verbs, directory)?;
            attributes::access(verbs.objects(), from, bytes(path)?, follow(follow_link), wanted).map(|()| 0)
        })
    };
    result as c_int
}

/// Makes a directory.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mkdirat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let from = start(verbs, directory)?;
            directories::make_directory(verbs.objects(), from, bytes(path)?, mode).map(|()| 0)
        })
    };
    result as c_int
}

/// Removes a name; with SCALEFS_REMOVE_DIRECTORY that of an empty directory.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_unlinkat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    flags: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let (objects, from) = (verbs.objects(), start(verbs, directory)?);
            let removed = match flags {
                0 => names::unlink(objects, from, bytes(path)?),
                SCALEFS_REMOVE_DIRECTORY => directories::remove_directory(objects, from, bytes(path)?),
                _ => known(None),
            };
            removed.map(|()| 0)
        })
    };
    result as c_int
}

/// Makes another name of a file, of a symbolic link itself unless follow_link is not 0.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_linkat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    old_directory: c_int,
    old_path: *const c_char,
    new_directory: c_int,
    new_path: *const c_char,
    follow_link: c_int,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let new = (start(verbs, new_directory)?, bytes(new_path)?);
            if follow_link == SCALEFS_EMPTY_PATH {
                let node = data::node(verbs, descriptor(old_directory)?)?;
                return handles::link_object(verbs.objects(), node, new).map(|()| 0);
            }
            let old = (start(verbs, old_directory)?, bytes(old_path)?);
            names::link(verbs.objects(), old, new, follow(follow_link)).map(|()| 0)
        })
    };
    result as c_int
}

/// Makes a symbolic link to target, which need not exist.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_symlinkat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    target: *const c_char,
    directory: c_int,
    path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let from = start(verbs, directory)?;
            names::symlink(verbs.objects(), bytes(target)?, from, bytes(path)?).map(|()| 0)
        })
    };
    result as c_int
}

/// Writes what a symbolic link leads to into a buffer, as scalefs_readlink; with an empty path that which directory stands for.
///
/// # Safety
/// See scalefs_readlink.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_readlinkat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    into: *mut c_char,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_openat`.
    unsafe {
        call(thread, process, |verbs| {
            let into = buffer(into.cast::<c_void>(), size)?;
            let path = bytes(path)?;
            // Linux: `do_readlinkat` takes no path for the symbolic link that the descriptor stands for.
            let target = match path.is_empty() && directory != SCALEFS_AT_CWD {
                true => handles::read_link_of(verbs, descriptor(directory)?)?,
                false => names::read_link(verbs.objects(), start(verbs, directory)?, path)?,
            };
            let count = target.len().min(into.len());
            into[..count].copy_from_slice(&target[..count]);
            Ok(length(count))
        })
    }
}

/// Gives what the old path leads to the new one, as scalefs_rename.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_renameat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    old_directory: c_int,
    old_path: *const c_char,
    new_directory: c_int,
    new_path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let mode = match mode {
                SCALEFS_REPLACE => RenameMode::Replace,
                SCALEFS_NO_REPLACE => RenameMode::NoReplace,
                SCALEFS_EXCHANGE => RenameMode::Exchange,
                _ => return known(None),
            };
            let old = (start(verbs, old_directory)?, bytes(old_path)?);
            let new = (start(verbs, new_directory)?, bytes(new_path)?);
            names::rename(verbs.objects(), old, new, mode).map(|()| 0)
        })
    };
    result as c_int
}

/// Sets permission bits of what a path leads to.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_chmodat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let from = start(verbs, directory)?;
            attributes::change_mode(verbs.objects(), from, bytes(path)?, mode).map(|()| 0)
        })
    };
    result as c_int
}

/// Sets user and group of what a path leads to; SCALEFS_SAME_ID leaves one as it is.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_chownat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    user: u32,
    group: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let owner = new_owner(user, group);
            if follow_link == SCALEFS_EMPTY_PATH {
                let node = data::node(verbs, descriptor(directory)?)?;
                return attributes::change_owner_of(verbs.objects(), node, owner).map(|()| 0);
            }
            let from = start(verbs, directory)?;
            attributes::change_owner(verbs.objects(), from, bytes(path)?, follow(follow_link), owner).map(|()| 0)
        })
    };
    result as c_int
}

/// Sets the times that which names (SCALEFS_SET_ACCESSED and so on), in nanoseconds since 1970.
///
/// # Safety
/// See scalefs_openat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_utimensat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    directory: c_int,
    path: *const c_char,
    follow_link: c_int,
    accessed_ns: i64,
    modified_ns: i64,
    which: u32,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let times = new_times((accessed_ns, modified_ns), which)?;
            if follow_link == SCALEFS_EMPTY_PATH {
                let node = data::node(verbs, descriptor(directory)?)?;
                return attributes::set_times_of(verbs.objects(), node, times).map(|()| 0);
            }
            let from = start(verbs, directory)?;
            attributes::set_times(verbs.objects(), from, bytes(path)?, follow(follow_link), times).map(|()| 0)
        })
    };
    result as c_int
}

/// Tells how much room there is.
///
/// # Safety
/// See scalefs_stat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_statvfs(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    space: *mut scalefs_space,
) -> c_int {
    // SAFETY: see `scalefs_openat`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let told = attributes::space(verbs.objects())?;
            let told = scalefs_space {
                struct_size: 0,
                block_bytes: told.block_bytes as u32,
                blocks: told.blocks,
                free_blocks: told.free_blocks,
                inodes: told.inodes,
                free_inodes: told.free_inodes,
            };
            answer(space, told, size_of::<scalefs_space>())
        })
    };
    result as c_int
}
