//! Locks of files. A transaction has none.

use std::io;

use scalefs::data::Whence;
use scalefs::{DataOperations, Errno, LockKind, LockMode, LockRange, LockRefusal, LockRequest, Patience, locks};

use crate::door::Door;
use crate::errors::Refusal;

fn refused<T>(errno: Errno) -> Result<T, Refusal> {
    Err(Refusal::Failed(io::Error::from(errno)))
}

/// What Python asks for, in the words of `Descriptors.set_lock`.
fn requested<D: DataOperations>(
    calls: &D,
    fd: u32,
    (kind, mode): (u8, u8),
    (start, whence, length): (i64, u8, i64),
) -> Result<LockRequest, Errno> {
    let whence = match whence {
        0 => Whence::Start,
        1 => Whence::Current,
        2 => Whence::End,
        _ => return Err(Errno::EINVAL),
    };
    let kind = [LockKind::Process, LockKind::Description, LockKind::WholeFile].get(usize::from(kind)).copied();
    let mode = [None, Some(LockMode::Shared), Some(LockMode::Exclusive)].get(usize::from(mode)).copied();
    let (Some(kind), Some(mode)) = (kind, mode) else { return Err(Errno::EINVAL) };
    let range = match kind {
        LockKind::WholeFile => LockRange::ALL,
        LockKind::Process | LockKind::Description => locks::range(calls, fd, (start, whence), length)?,
    };
    Ok(LockRequest { kind, range, mode, seen_as: u64::from(std::process::id()) })
}

/// Locks or unlocks; the caller does not have the interpreter's lock.
pub fn set(door: &Door, fd: u32, asked: (u8, u8), bytes: (i64, u8, i64), waits: bool) -> Result<(), Refusal> {
    if door.transaction.is_some() {
        return refused(Errno::EOPNOTSUPP);
    }
    let files = door.files()?;
    // What counts from an offset is looked at once.
    let request = files.act(|calls| requested(&calls, fd, asked, bytes))?;
    let ask = |waited| {
        let made = files.act(|calls| {
            Ok(match waits {
                true => locks::ask_again(&calls, fd, &request, waited),
                false => locks::ask(&calls, fd, &request, Patience::Refuse),
            })
        });
        // In a child of `fork`.
        made.unwrap_or(Err(LockRefusal::Failed(Errno::EIO)))
    };
    let locked = locks::until_locked(ask, |busy, round| files.wait_for_lock(busy, round));
    locked.or_else(refused)
}

/// What is in the way.
pub fn in_the_way(
    door: &Door,
    fd: u32,
    asked: (u8, u8),
    bytes: (i64, u8, i64),
) -> Result<Option<(bool, u8, u64, u64)>, Refusal> {
    if door.transaction.is_some() {
        return refused(Errno::EOPNOTSUPP);
    }
    let found = door.files()?.act(|calls| locks::in_the_way(&calls, fd, &requested(&calls, fd, asked, bytes)?))?;
    Ok(found.map(|lock| {
        let mode = if lock.mode == LockMode::Shared { 1 } else { 2 };
        (lock.seen_as.is_some(), mode, lock.range.first, lock.range.length())
    }))
}
