//! Locks of files.

use core::ffi::c_int;

use scalefs::data::Whence;
use scalefs::{Errno, LockKind, LockMode, LockRange, LockRefusal, LockRequest, Patience, locks};

use crate::border::{call, descriptor, place};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// A lock of the process: it ends when the process closes any descriptor of the file (F_SETLK).
pub const SCALEFS_OF_PROCESS: u32 = 0;
/// A lock of what a descriptor leads to: it ends with the last descriptor that leads there (F_OFD_SETLK).
pub const SCALEFS_OF_DESCRIPTION: u32 = 1;
/// How a range is locked: not at all (F_UNLCK, LOCK_UN).
pub const SCALEFS_UNLOCKED: u32 = 0;
/// Others may lock it so, too (F_RDLCK, LOCK_SH).
pub const SCALEFS_SHARED_LOCK: u32 = 1;
/// No one else may lock it (F_WRLCK, LOCK_EX).
pub const SCALEFS_EXCLUSIVE_LOCK: u32 = 2;
/// A flag of scalefs_set_lock and scalefs_flock: wait until no other lock is in the way (F_SETLKW).
pub const SCALEFS_WAIT: u32 = 1;

/// A range of a file, and how it is locked.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct scalefs_lock {
    /// SCALEFS_OF_PROCESS or SCALEFS_OF_DESCRIPTION.
    pub kind: u32,
    /// SCALEFS_UNLOCKED, SCALEFS_SHARED_LOCK or SCALEFS_EXCLUSIVE_LOCK.
    pub mode: u32,
    /// Where it begins, counted as in scalefs_seek.
    pub start: i64,
    /// How many bytes; 0: all from there on, however many there will be; below 0: those before start.
    pub length: i64,
    /// From where start counts: 0 the first byte, 1 the descriptor's offset, 2 the end of the file.
    pub whence: u32,
    /// For answers: 1 if a process has the lock, whose number is below.
    pub has_process: u32,
    /// For answers: the number of the process, as scalefs_wait has it.
    pub process: u64,
}

fn mode(mode: u32) -> Result<Option<LockMode>, Errno> {
    match mode {
        SCALEFS_UNLOCKED => Ok(None),
        SCALEFS_SHARED_LOCK => Ok(Some(LockMode::Shared)),
        SCALEFS_EXCLUSIVE_LOCK => Ok(Some(LockMode::Exclusive)),
        _ => reason::invalid("a mode of locks that there is not"),
    }
}

fn kind(kind: u32) -> Result<LockKind, Errno> {
    match kind {
        SCALEFS_OF_PROCESS => Ok(LockKind::Process),
        SCALEFS_OF_DESCRIPTION => Ok(LockKind::Description),
        _ => reason::invalid("a kind of locks that there is not"),
    }
}

/// What a lock asks for.
fn requested<D: scalefs::DataOperations>(
    call: &D,
    fd: u32,
    lock: &scalefs_lock,
    seen_as: u64,
) -> Result<LockRequest, Errno> {
    let whence = match lock.whence {
        0 => Whence::Start,
        1 => Whence::Current,
        2 => Whence::End,
        _ => return reason::invalid("a whence that there is not"),
    };
    let range = locks::range(call, fd, (lock.start, whence), lock.length)?;
    Ok(LockRequest { kind: kind(lock.kind)?, range, mode: mode(lock.mode)?, seen_as })
}

/// Makes a request; waits if the flags say so.
///
/// # Safety
/// As for every call.
unsafe fn set(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    flags: u32,
    request: impl Fn(&scalefs::InProcess<'_, scalefs::Outside>, u32, u64) -> Result<LockRequest, Errno>,
) -> c_int {
    let made = || {
        if flags & !SCALEFS_WAIT != 0 {
            return reason::invalid("a flag that there is not");
        }
        // SAFETY: the caller's promise.
        let (attached, of) = unsafe {
            let attached = scalefs_thread::attached(thread)?;
            let of = scalefs_process::of(process, &attached)?;
            (attached, of)
        };
        if attached.transaction_of(process)?.is_some() {
            return reason::not_in_a_transaction();
        }
        let waits = flags & SCALEFS_WAIT != 0;
        if waits && attached.is_in_a_callback() {
            reason::keep("a callback does not wait: its call keeps others from going on");
            return Err(Errno::EDEADLK);
        }
        let fd = descriptor(fd)?;
        // What counts from an offset is looked at once.
        let request = attached.call(of, |call| request(call, fd, of.number().0))?;
        locks::until_locked(
            |waited| {
                attached.call(of, |call| match waits {
                    true => locks::ask_again(call, fd, &request, waited),
                    false => locks::ask(call, fd, &request, Patience::Refuse).map_err(|refusal| match refusal {
                        LockRefusal::Busy(_) => LockRefusal::Failed(Errno::EAGAIN),
                        failed => failed,
                    }),
                })
            },
            |wait, round| attached.wait_for_lock(wait, round),
        )
    };
    made().map_or_else(|errno| -errno.number(), |()| 0)
}

/// Locks or unlocks a range of a file (fcntl with F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW). It becomes what lock says, also where
/// it was locked before. -EAGAIN where another's lock is in the way, with SCALEFS_WAIT in flags only after that has gone;
/// -EDEADLK where processes would wait for each other; -EBADF if fd is not open for reading what is to be shared, or for
/// writing what is to be exclusive; -ENOLCK without memory; -EOPNOTSUPP in a transaction.
///
/// # Safety
/// See scalefs_open; lock is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_set_lock(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    lock: *const scalefs_lock,
    flags: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let lock = match place(lock.cast_mut()) {
            Ok(lock) => lock.read(),
            Err(errno) => return -errno.number(),
        };
        set(thread, process, fd, flags, |call, fd, seen_as| requested(call, fd, &lock, seen_as))
    }
}

/// Looks for what is in the way of a lock (fcntl with F_GETLK, F_OFD_GETLK): lock becomes that, with start from the first byte, or only
/// its mode SCALEFS_UNLOCKED if nothing is. The mode that is asked for is not SCALEFS_UNLOCKED.
///
/// # Safety
/// See scalefs_open; lock is there, and no one else uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_get_lock(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    lock: *mut scalefs_lock,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe {
        call(thread, process, |call| {
            let (place, fd) = (place(lock)?, descriptor(fd)?);
            let asked = place.read();
            if asked.mode == SCALEFS_UNLOCKED {
                return reason::invalid("nothing is in the way of unlocking");
            }
            let found = locks::in_the_way(call, fd, &requested(call, fd, &asked, 0)?)?;
            place.write(match found {
                None => scalefs_lock { mode: SCALEFS_UNLOCKED, ..asked },
                Some(found) => scalefs_lock {
                    kind: found.kind as u32,
                    mode: if found.mode == LockMode::Shared { SCALEFS_SHARED_LOCK } else { SCALEFS_EXCLUSIVE_LOCK },
                    start: found.range.first as i64,
                    length: found.range.length() as i64,
                    whence: 0,
                    has_process: u32::from(found.seen_as.is_some()),
                    process: found.seen_as.unwrap_or(0),
                },
            });
            Ok(0)
        })
    };
    result as c_int
}

/// Locks or unlocks all of a file (flock): the lock is of what fd leads to, and locks of ranges know nothing of it. mode is
/// SCALEFS_UNLOCKED, SCALEFS_SHARED_LOCK or SCALEFS_EXCLUSIVE_LOCK, flags 0 or SCALEFS_WAIT. A lock that is to be another one is given up
/// first, also where that then is -EAGAIN.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_flock(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    how: u32,
    flags: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        set(thread, process, fd, flags, |_, _, seen_as| {
            Ok(LockRequest { kind: LockKind::WholeFile, range: LockRange::ALL, mode: mode(how)?, seen_as })
        })
    }
}
