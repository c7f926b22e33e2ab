//! Locks of files, with Linux's semantics: of ranges of bytes ([`LockKind::Process`] and [`LockKind::Description`]) and of whole
//! files.
//!
//! **Waiting** as in [`crate::data`]: a request that would wait says for what ([`LockRefusal::Busy`]), and is made again. While a
//! process waits for another's lock, that is known: who would close a circle of processes is refused. The lock is given to
//! whichever waiter asks first.

use sync::mutant::planted;

use crate::data::{description, is_handle};
use crate::data_operations::DataOperations;
use crate::descriptors::Whence;
use crate::errno::Errno;
use crate::fields::Fields;
use crate::lock_operations::{
    ForeignLock, LockKind, LockMode, LockOperations, LockRange, LockRefusal, LockRequest, LockWait, Patience,
};
use crate::object_operations::ObjectOperations;

/// The bytes of a file that `fcntl` means by a start and a length.
///
/// Linux `flock64_to_posix_lock`: a negative length is of the bytes before the start, none reaches to the largest offset.
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL for bytes before the first one, EOVERFLOW behind the largest offset.
pub fn range<D: DataOperations>(
    process: &D,
    fd: u32,
    (start, whence): (i64, Whence),
    length: i64,
) -> Result<LockRange, Errno> {
    let found = description(process, fd)?;
    if is_handle(process, found)? {
        return Err(Errno::EBADF);
    }
    let base = match whence {
        Whence::Start => 0,
        Whence::Current => process.offset(found)?.bytes as i64,
        Whence::End => {
            let attributes = process.objects().attributes(process.node(found), Fields::SIZE)?;
            attributes.size_bytes as i64
        }
    };
    let start = base.checked_add(start).ok_or(Errno::EOVERFLOW)?;
    if start < 0 {
        return Err(Errno::EINVAL);
    }
    let (first, last) = match length {
        0 => (start, i64::MAX),
        1.. => (start, start.checked_add(length - 1).ok_or(Errno::EOVERFLOW)?),
        _ => (start.saturating_add(length), start.saturating_sub(1)),
    };
    let first = u64::try_from(first).map_err(|_| Errno::EINVAL)?;
    Ok(LockRange { first, last: last as u64 })
}

/// What a request is made on: its descriptor's description, which must be open for what is locked.
fn check<'v, D: DataOperations>(process: &'v D, fd: u32, request: &LockRequest) -> Result<D::Description<'v>, Errno> {
    let found = description(process, fd)?;
    if is_handle(process, found)? {
        return Err(Errno::EBADF);
    }
    let mode = process.mode(found);
    let is_open_for_it = match request.mode {
        _ if request.kind == LockKind::WholeFile => true,
        None => true,
        Some(LockMode::Shared) => mode.read,
        Some(LockMode::Exclusive) => mode.write,
    };
    if is_open_for_it || planted("calls: any descriptor locks anything") { Ok(found) } else { Err(Errno::EBADF) }
}

/// A request as locks are made: of a whole file for all of it, of a range with a byte.
fn checked(request: &LockRequest) -> Result<LockRequest, Errno> {
    let range = if request.kind == LockKind::WholeFile { LockRange::ALL } else { request.range };
    if range.first <= range.last { Ok(LockRequest { range, ..*request }) } else { Err(Errno::EINVAL) }
}

/// Locks or unlocks bytes of a file, or all of it; [`LockRefusal::Busy`] where the caller is to wait.
///
/// POSIX `fcntl` with F_SETLK, Linux `fcntl_setlk`, `flock_lock_inode`.
///
/// # Errors
/// EBADF if the descriptor is not open, or not for reading what is locked as shared, or for writing what is locked as exclusive;
/// EINVAL for a range whose last byte is before its first; EAGAIN where another's lock is in the way, EDEADLK where processes would wait for each other, ENOLCK without memory.
pub fn ask<D: LockOperations>(
    process: &D,
    fd: u32,
    request: &LockRequest,
    patience: Patience,
) -> Result<(), LockRefusal> {
    process.set_lock(fd, check(process, fd, request)?, &checked(request)?, patience)
}

/// [`ask`] of who does not wait.
///
/// # Errors
/// As there.
pub fn set<D: LockOperations>(process: &D, fd: u32, request: &LockRequest) -> Result<(), Errno> {
    ask(process, fd, request, Patience::Refuse).map_err(|refusal| match refusal {
        LockRefusal::Failed(errno) => errno,
        LockRefusal::Busy(_) => Errno::EAGAIN,
    })
}

/// [`ask`] of who waits, and has perhaps waited already.
///
/// # Errors
/// As there.
pub fn ask_again<D: LockOperations>(
    process: &D,
    fd: u32,
    request: &LockRequest,
    waited: Option<LockWait>,
) -> Result<(), LockRefusal> {
    let outcome = ask(process, fd, request, Patience::Wait);
    if let (Err(LockRefusal::Failed(_)), Some(wait)) = (&outcome, waited) {
        process.stop_waiting(wait).map_err(Errno::from)?;
    }
    outcome
}

/// Asks until no other's lock is in the way: `ask` makes [`ask_again`] in a call of its own, and `wait` spends time while there is
/// none.
///
/// # Errors
/// As [`ask`], but for EAGAIN.
pub fn until_locked(
    mut ask: impl FnMut(Option<LockWait>) -> Result<(), LockRefusal>,
    mut wait: impl FnMut(LockWait, u32),
) -> Result<(), Errno> {
    let mut waited = None;
    for round in 0_u32.. {
        match ask(waited) {
            Ok(()) => return Ok(()),
            Err(LockRefusal::Failed(errno)) => return Err(errno),
            Err(LockRefusal::Busy(busy)) => {
                wait(busy, round);
                waited = Some(busy);
            }
        }
    }
    Err(Errno::EAGAIN)
}

/// The lock that is in the way of a request, if one is.
///
/// POSIX `fcntl` with F_GETLK, Linux `fcntl_getlk`.
///
/// # Errors
/// EBADF if the descriptor is not open, EINVAL for a range whose last byte is before its first.
pub fn in_the_way<D: LockOperations>(
    process: &D,
    fd: u32,
    request: &LockRequest,
) -> Result<Option<ForeignLock>, Errno> {
    let found = description(process, fd)?;
    if is_handle(process, found)? {
        return Err(Errno::EBADF);
    }
    Ok(process.foreign_lock(found, &checked(request)?)?)
}
