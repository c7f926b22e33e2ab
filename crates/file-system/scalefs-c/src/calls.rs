//! Instances, threads and processes, and the calls on paths from the working directory.

use core::ffi::{c_char, c_int, c_void};

use scalefs::attributes::{self, Access};
use scalefs::data::{self, Whence};
use scalefs::directories;
use scalefs::names::{self, RenameMode};
use scalefs::{
    Attributes, Credentials, DataOperations, Ended, Errno, Fields, Follow, ObjectOperations, OpenFlags, OwnedConfig,
    OwnedScaleFs, Sought, Start,
};

use crate::border::{answer, buffer, bytes, call, descriptor, known, length, on_names, place, source};
use crate::flags::open;
use crate::instance::{scalefs_instance, scalefs_process, scalefs_thread};
use crate::reason;

/// The version of this interface; it grows when something is added, and nothing is taken away.
pub const SCALEFS_VERSION: u32 = 2;

/// Fields of struct scalefs_status: permission bits, user, group, access time.
pub const SCALEFS_PERMISSIONS: u32 = 1;
/// Number of names.
pub const SCALEFS_LINK_COUNT: u32 = 2;
/// Size.
pub const SCALEFS_SIZE: u32 = 4;
/// Times of modification and of change.
pub const SCALEFS_TIMES: u32 = 8;
/// All fields.
pub const SCALEFS_ALL: u32 = 15;

/// scalefs_rename replaces what the new name leads to.
pub const SCALEFS_REPLACE: u32 = 0;
/// It fails if the new name exists (RENAME_NOREPLACE).
pub const SCALEFS_NO_REPLACE: u32 = 1;
/// Both names exist and exchange what they lead to (RENAME_EXCHANGE).
pub const SCALEFS_EXCHANGE: u32 = 2;

/// What scalefs_stat tells. Fields that were not asked for are zero; number and kind always come.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct scalefs_status {
    /// Its version: set by the caller to sizeof(scalefs_status).
    pub struct_size: u32,
    /// Kind and permission bits, as st_mode.
    pub mode: u32,
    /// Number of the inode, never used again.
    pub number: u64,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Number of names; 1 for a directory.
    pub link_count: u32,
    /// Bytes.
    pub size_bytes: u64,
    /// Nanoseconds since 1970.
    pub accessed_ns: i64,
    /// Nanoseconds since 1970.
    pub modified_ns: i64,
    /// Nanoseconds since 1970.
    pub changed_ns: i64,
    /// Of a name for a device its number, as st_rdev. Since version 2 of the library.
    pub device: u64,
}

/// Bytes of the struct in version 1.
const FIRST_STATUS_BYTES: usize = 64;

/// Writes a status as far as the caller's version of it goes.
///
/// # Safety
/// As [`answer`].
pub(crate) unsafe fn answer_status(to: *mut scalefs_status, of: Attributes, device: u64) -> Result<i64, Errno> {
    // SAFETY: the caller's promise.
    unsafe { answer(to, scalefs_status { device, ..status_of(of) }, FIRST_STATUS_BYTES) }
}

/// Gets one name of a listing (not terminated by NUL), the number of its inode, and the argument given to scalefs_list;
/// returns 0 to stop.
pub type scalefs_each = Option<unsafe extern "C" fn(*const c_char, usize, u64, *mut c_void) -> c_int>;

/// Makes an empty file system for threads on core_count cores (1 to 256): so many bytes of memory for names and inodes, and
/// page_count pages of 4096 bytes for data. hash_seed moves hash collisions. Returns NULL if that cannot be had:
/// scalefs_reason says why.
///
/// # Safety
/// None asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_create(
    metadata_bytes: usize,
    page_count: u32,
    core_count: u32,
    hash_seed: u64,
) -> *mut scalefs_instance {
    let config = OwnedConfig { metadata_bytes, page_count, core_count: core_count as usize, hash_seed };
    scalefs_instance::create(config, OwnedScaleFs::create)
}

/// Frees a file system that no thread is attached to; -EBUSY otherwise. Its threads and processes must not be used afterwards.
///
/// # Safety
/// The instance is of scalefs_create, and not used afterwards if the call returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_destroy(instance: *mut scalefs_instance) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { scalefs_instance::destroy(instance) }
}

/// Attaches the calling thread as a core, from 0; NULL if there is no such core or another thread is it.
///
/// # Safety
/// The instance is of scalefs_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_attach(instance: *mut scalefs_instance, core: u32) -> *mut scalefs_thread {
    // SAFETY: the caller's promise.
    unsafe { scalefs_thread::attach(instance, core) }
}

/// Detaches a thread; nothing happens of a transaction that it has open. Within a callback it does nothing.
///
/// # Safety
/// The thread is of scalefs_attach, and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_detach(thread: *mut scalefs_thread) {
    // SAFETY: the caller's promise.
    unsafe { scalefs_thread::detach(thread) }
}

/// Does what is left to do between calls: for threads that call seldom. Cores without a thread are served too. Within a
/// callback it does nothing.
///
/// # Safety
/// The thread is of scalefs_attach and used by one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_maintain(thread: *mut scalefs_thread) {
    // SAFETY: the caller's promise.
    if let Ok(thread) = unsafe { scalefs_thread::attached(thread) } {
        thread.maintain_all();
    }
}

/// A process of a user and a group, working in the root directory, without descriptors; NULL without memory for it.
///
/// # Safety
/// As for scalefs_maintain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_process_new(
    thread: *mut scalefs_thread,
    user: u32,
    group: u32,
) -> *mut scalefs_process {
    // SAFETY: the caller's promise.
    unsafe { scalefs_thread::attached(thread) }.map_or(core::ptr::null_mut(), |thread| {
        let credentials = Credentials::new(user, group, &[]).expect("no supplementary groups are not too many");
        scalefs_process::new(&thread, credentials)
    })
}

/// Ends a process: closes its descriptors, and frees it. What is called on its behalf afterwards is -EINVAL. -EBUSY if it has
/// a transaction open, or within a callback.
///
/// # Safety
/// As for scalefs_maintain; the process is of scalefs_process_new, and no other thread calls on its behalf.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_process_exit(thread: *mut scalefs_thread, process: *mut scalefs_process) -> c_int {
    // SAFETY: the caller's promise.
    let exited = unsafe {
        scalefs_thread::attached(thread).and_then(|thread| scalefs_process::exit(process, &thread, Ended::Exited(0)))
    };
    exited.map_or_else(|errno| -errno.number(), |()| 0)
}

/// Why the library refused what this thread asked for last, in words: after NULL, or after -EINVAL for a handle, a
/// pointer, a size or a flag. The text stays until it refuses the next.
///
/// # Safety
/// None asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_reason() -> *const c_char {
    reason::last()
}

/// The SCALEFS_VERSION that the library was built with.
///
/// # Safety
/// None asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_version() -> u32 {
    SCALEFS_VERSION
}

/// Opens a file and returns its descriptor, the lowest that is free, or with SCALEFS_ANY_NUMBER any. SCALEFS_APPEND,
/// SCALEFS_NONBLOCK and SCALEFS_CLOSE_ON_EXEC are flags of the descriptor.
///
/// # Safety
/// As for scalefs_maintain and scalefs_process_exit; the path ends with NUL. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_open(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    flags: u32,
    mode: u32,
) -> c_int {
    // SAFETY: the caller's promise; the same in all calls.
    let result =
        unsafe { call(thread, process, |verbs| open(verbs, Start::WorkingDirectory, bytes(path)?, flags, mode)) };
    result as c_int
}

/// Closes a descriptor.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_close(thread: *mut scalefs_thread, process: *mut scalefs_process, fd: c_int) -> c_int {
    // SAFETY: see `scalefs_open`.
    unsafe { call(thread, process, |verbs| data::close(verbs, descriptor(fd)?).map(|()| 0)) as c_int }
}

/// Reads up to size bytes at the descriptor's offset; returns how many, 0 at the end.
///
/// # Safety
/// See scalefs_open; the buffer has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_read(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *mut c_void,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe { call(thread, process, |verbs| data::read(verbs, descriptor(fd)?, buffer(into, size)?).map(length)) }
}

/// Writes size bytes at the descriptor's offset; returns how many were written.
///
/// # Safety
/// See scalefs_open; from holds size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_write(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    from: *const c_void,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe { call(thread, process, |verbs| data::write(verbs, descriptor(fd)?, source(from, size)?).map(length)) }
}

/// Reads up to size bytes at an offset.
///
/// # Safety
/// See scalefs_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_pread(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *mut c_void,
    size: usize,
    offset: i64,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe {
        call(thread, process, |verbs| data::read_at(verbs, descriptor(fd)?, buffer(into, size)?, offset).map(length))
    }
}

/// Writes size bytes at an offset.
///
/// # Safety
/// See scalefs_write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_pwrite(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    from: *const c_void,
    size: usize,
    offset: i64,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe {
        call(thread, process, |verbs| data::write_at(verbs, descriptor(fd)?, source(from, size)?, offset).map(length))
    }
}

/// Sets the descriptor's offset: whence is 0 from the start, 1 from the offset, 2 from the end, 3 to the next data and 4 to the
/// next hole from there on (SEEK_DATA, SEEK_HOLE: by pages, and zeros in a hole are one). Returns the new offset.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_seek(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    offset: i64,
    whence: c_int,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe {
        call(thread, process, |verbs| {
            let whence = match whence {
                0 => Whence::Start,
                1 => Whence::Current,
                2 => Whence::End,
                3 | 4 => {
                    let sought = if whence == 3 { Sought::Data } else { Sought::Hole };
                    return data::seek_for(verbs, descriptor(fd)?, offset, sought).map(|offset| offset as i64);
                }
                _ => {
                    // Linux: `ksys_lseek` looks for the descriptor first.
                    data::node(verbs, descriptor(fd)?)?;
                    return reason::invalid("a whence that there is not: 0 to 4");
                }
            };
            data::seek(verbs, descriptor(fd)?, offset, whence).map(|offset| offset as i64)
        })
    }
}

/// Gives a file this size.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_truncate(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    size_bytes: i64,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    unsafe { call(thread, process, |verbs| data::truncate(verbs, descriptor(fd)?, size_bytes).map(|()| 0)) as c_int }
}

fn status_of(attributes: Attributes) -> scalefs_status {
    scalefs_status {
        struct_size: 0,
        number: attributes.number.0,
        mode: attributes.kind.mode_bits() | attributes.mode,
        user: attributes.user,
        group: attributes.group,
        link_count: attributes.link_count,
        size_bytes: attributes.size_bytes,
        accessed_ns: attributes.accessed_ns,
        modified_ns: attributes.modified_ns,
        changed_ns: attributes.changed_ns,
        device: 0,
    }
}

pub(crate) fn follow(follow: c_int) -> Follow {
    if follow == 0 { Follow::Nothing } else { Follow::Symlinks }
}

/// Tells about what a path leads to (a symbolic link at its end followed if follow is not 0): the fields that are wanted.
///
/// # Safety
/// See scalefs_open; there is room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_stat(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    follow_link: c_int,
    fields: u32,
    status: *mut scalefs_status,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        let fields = known(Fields::from_bits(fields))?;
        let (path, follow) = (bytes(path)?, follow(follow_link));
        let (found, device) = attributes::stat_with_device(objects, Start::WorkingDirectory, path, follow, fields)?;
        answer_status(status, found, device)
    }) as c_int
}

/// Tells about an open file; what is not wanted is not read, so that it shares nothing with its changes (fstatx).
///
/// # Safety
/// See scalefs_stat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_fstatx(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    fields: u32,
    status: *mut scalefs_status,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let fields = known(Fields::from_bits(fields))?;
            let (objects, node) = (verbs.objects(), data::node(verbs, descriptor(fd)?)?);
            let device = if objects.kind(node).is_device() { objects.device(node)? } else { 0 };
            answer_status(status, objects.attributes(node, fields)?, device)
        })
    };
    result as c_int
}

/// Whether a path leads to something that may be read (4), written (2), executed (1); 0 asks whether it exists.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_access(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    wanted: u32,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        if wanted > 7 {
            return Err(Errno::EINVAL);
        }
        let wanted = Access { read: wanted & 4 != 0, write: wanted & 2 != 0, execute: wanted & 1 != 0 };
        attributes::access(objects, Start::WorkingDirectory, bytes(path)?, Follow::Symlinks, wanted).map(|()| 0)
    }) as c_int
}

/// Makes a directory.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mkdir(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        directories::make_directory(objects, Start::WorkingDirectory, bytes(path)?, mode).map(|()| 0)
    }) as c_int
}

/// Removes an empty directory.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_rmdir(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        directories::remove_directory(objects, Start::WorkingDirectory, bytes(path)?).map(|()| 0)
    }) as c_int
}

/// Makes a directory the working directory.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_chdir(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        directories::change_directory(objects, Start::WorkingDirectory, bytes(path)?).map(|()| 0)
    }) as c_int
}

/// Removes a name.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_unlink(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        names::unlink(objects, Start::WorkingDirectory, bytes(path)?).map(|()| 0)
    }) as c_int
}

/// Sets permission bits.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_chmod(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        attributes::change_mode(objects, Start::WorkingDirectory, bytes(path)?, mode).map(|()| 0)
    }) as c_int
}

/// Makes another name of a file.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_link(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    old_path: *const c_char,
    new_path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        names::link(
            objects,
            (Start::WorkingDirectory, bytes(old_path)?),
            (Start::WorkingDirectory, bytes(new_path)?),
            Follow::Nothing,
        )
        .map(|()| 0)
    }) as c_int
}

/// Makes a symbolic link to target, which need not exist.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_symlink(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    target: *const c_char,
    path: *const c_char,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        names::symlink(objects, bytes(target)?, Start::WorkingDirectory, bytes(path)?).map(|()| 0)
    }) as c_int
}

/// Writes what a symbolic link leads to into a buffer, cut off at size bytes and without NUL; returns how many.
///
/// # Safety
/// See scalefs_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_readlink(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    into: *mut c_char,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        let target = names::read_link(objects, Start::WorkingDirectory, bytes(path)?)?;
        let copied = target.len().min(size);
        buffer(into.cast(), copied)?.copy_from_slice(&target[..copied]);
        Ok(length(copied))
    })
}

/// Gives what the old path leads to the new one; mode is SCALEFS_REPLACE, SCALEFS_NO_REPLACE or SCALEFS_EXCHANGE.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_rename(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    old_path: *const c_char,
    new_path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        let mode = match mode {
            SCALEFS_REPLACE => RenameMode::Replace,
            SCALEFS_NO_REPLACE => RenameMode::NoReplace,
            SCALEFS_EXCHANGE => RenameMode::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        names::rename(
            objects,
            (Start::WorkingDirectory, bytes(old_path)?),
            (Start::WorkingDirectory, bytes(new_path)?),
            mode,
        )
        .map(|()| 0)
    }) as c_int
}

/// Tells each the names of a directory from *cookie on (0: from the start), "." and ".." included, and sets *cookie to
/// where to go on; returns 1 if there may be more, 0 at the end, from where on there are none. It may make calls by the same thread:
/// memory that is given up meanwhile becomes free afterwards.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_list(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    cookie: *mut u64,
    each: scalefs_each,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    let result = unsafe {
        call(thread, process, |verbs| {
            let (each, cookie) = (each.ok_or(Errno::EINVAL)?, place(cookie)?);
            let objects = verbs.objects();
            let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
            let opened = names::open(objects, Start::WorkingDirectory, bytes(path)?, flags, 0)?.handle;
            let next = match cookie.read() {
                data::END_OF_LISTING.. => Ok(None),
                from => directories::read_directory(objects, objects.held(&opened), from, |entry| {
                    each(entry.name.as_ptr().cast(), entry.name.len(), entry.number.0, argument) != 0
                }),
            };
            names::close(objects, opened);
            let next = next?;
            // Not the start again, where who looks at the names that come alone would go round for ever.
            cookie.write(next.unwrap_or(data::END_OF_LISTING));
            Ok(i64::from(next.is_some()))
        })
    };
    result as c_int
}
