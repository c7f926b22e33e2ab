//! Transactions in the manner of TxOS (thesis, table 2.1): between `scalefs_xbegin` and `scalefs_xend`, a thread's calls on
//! names are parts of its transaction.

use core::ffi::{c_char, c_int};

use scalefs::{Direct, Errno, Kind, OpenNode, Outside, Start, names};
use transact::{Fault, Transaction};

use crate::border::{bytes, on_names};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// scalefs_xbegin with all that a transaction is by itself: nothing reaches a disk, and no memory of the program is rolled back.
pub const SCALEFS_TX_DEFAULTS: u32 = 0;
/// Nothing reaches a disk: always so.
pub const SCALEFS_TX_NONDURABLE: u32 = 1;
/// The program's memory is not rolled back: always so.
pub const SCALEFS_TX_NO_USER_ROLLBACK: u32 = 2;
/// The library does not retry: always so. The program begins again after -ECANCELED.
pub const SCALEFS_TX_NO_AUTO_RETRY: u32 = 4;
/// A call that a transaction does not offer returns -EOPNOTSUPP, and the transaction goes on: always so.
pub const SCALEFS_TX_ERROR_UNSUPPORTED: u32 = 8;
const ALL_FLAGS: u32 = 15;

/// What `scalefs_xend` and `scalefs_xabort` do.
#[derive(PartialEq, Eq)]
enum End {
    Commit,
    Abort,
}

/// Begins a transaction of the thread for a process: the thread's calls on names are parts of it until scalefs_xend or
/// scalefs_xabort. Other calls, such as those on descriptors, return -EOPNOTSUPP, and all that are made for another process
/// -EINVAL, these two included. -EINVAL if the thread has one open. The process does not exit before it ends (-EBUSY); where
/// the thread is detached, nothing of it happens.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_xbegin(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    flags: u32,
) -> c_int {
    let begun = || {
        if flags & !ALL_FLAGS != 0 {
            return reason::invalid("a flag of transactions that there is not");
        }
        // SAFETY: see `scalefs_open`.
        let thread = unsafe { scalefs_thread::attached(thread) }?;
        // SAFETY: see `scalefs_open`.
        if unsafe { thread.begin(process) }? {
            Ok(())
        } else {
            reason::invalid("the thread has begun a transaction: end it first")
        }
    };
    begun().map_or_else(|errno| -errno.number(), |()| 0)
}

/// Ends the thread's transaction: all of it happens at this moment, and 0 comes back; or nothing of it, since what it has
/// seen is not so any more (-ECANCELED: begin again), or without memory (-ENOSPC). -EINVAL if there is none.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_xend(thread: *mut scalefs_thread, process: *mut scalefs_process) -> c_int {
    // SAFETY: see `scalefs_open`.
    unsafe { end(thread, process, &End::Commit) }
}

/// Ends the thread's transaction: nothing of it happens. -ECANCELED if what it has seen is not so any more: what was concluded
/// from it need not be true. -EINVAL if there is none.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_xabort(thread: *mut scalefs_thread, process: *mut scalefs_process) -> c_int {
    // SAFETY: see `scalefs_open`.
    unsafe { end(thread, process, &End::Abort) }
}

/// # Safety
/// See `scalefs_open`.
unsafe fn end(thread: *mut scalefs_thread, process: *mut scalefs_process, how: &End) -> c_int {
    let ended = || {
        // SAFETY: the caller's promise.
        let thread = unsafe { scalefs_thread::attached(thread) }?;
        let by = |transaction: Transaction<OpenNode>, base: Direct<'_, Outside>| match how {
            End::Commit => transaction.commit(&base),
            End::Abort => transaction.abort(&base),
        };
        // SAFETY: the caller's promise.
        unsafe { thread.end(process, by) }?.map_err(|fault: Fault<_>| Errno::from(fault))
    };
    ended().map_or_else(|errno| -errno.number(), |()| 0)
}

/// Makes an empty file, which must not exist, without a descriptor (POSIX mknod of a regular file).
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mknod(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    path: *const c_char,
    mode: u32,
) -> c_int {
    // SAFETY: see `scalefs_open`.
    on_names!(thread, process, |objects| unsafe {
        names::make_node(objects, Start::WorkingDirectory, bytes(path)?, (Kind::Regular, 0), mode).map(|()| 0)
    }) as c_int
}
