//! Locks of ranges of a file (`fcntl`): the kernel keeps them, on a file that stands for all files of the tree.
//!
//! ```text
//! byte b of inode n  ─►  byte n * 2^16 + b mod 2^16 of the kernel's file
//! ```
//! Two bytes of one file that are 2^16 apart are one here: a lock can conflict with one that it would not, and is never missed. What
//! lies on both sides of a multiple of 2^16 is all of the file. So each process knows its own ranges byte for byte
//! ([`crate::ranges`]): the kernel's bytes are unlocked when none of them needs these any more. They go with the process, and when it
//! closes any descriptor of the file, as POSIX has it.

use core::sync::atomic::Ordering;

use scalefs::{DataOperations, Errno, Fields, ObjectOperations, data};

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::home::Home;
use crate::instance;
use crate::ranges::{Held, Range, Strength};
use crate::system::{self, number};
use crate::threads::Thread;

const F_GETLK: u64 = 5;
const F_SETLK: u64 = 6;
const F_SETLKW: u64 = 7;
/// The process has as many ranges as it can.
const ENOLCK: i32 = 37;
const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;

/// `struct flock`: kind and from where, start, length, process.
type Lock = [u64; 4];

/// What a lock of the kernel is called that keeps others from so much.
fn kind_of(strength: Strength) -> u64 {
    match strength {
        Strength::Nothing => F_UNLCK,
        Strength::Reading => F_RDLCK,
        Strength::Writing => F_WRLCK,
    }
}

fn strength_of(kind: u64) -> Result<Strength, Errno> {
    match kind {
        F_UNLCK => Ok(Strength::Nothing),
        F_RDLCK => Ok(Strength::Reading),
        F_WRLCK => Ok(Strength::Writing),
        _ => Err(Errno::EINVAL),
    }
}

/// The kernel's lock on some of a file's bytes there.
fn in_kernel(base: u64, (first, last): (u64, u64), strength: Strength) -> Lock {
    [kind_of(strength), base + first, last - first + 1, 0]
}

fn kernel(command: u64, lock: &mut Lock) -> Result<u64, i32> {
    let locks = u64::from(instance::control().descriptors.locks);
    system::try_call(number::FCNTL, [locks, command, lock.as_mut_ptr() as u64, 0, 0, 0])
}

/// The bytes that are asked for.
fn range(inode: u64, start: i64, length: i64, strength: Strength) -> Result<Range, Errno> {
    let end = |first: i64| if length == 0 { Some(i64::MAX) } else { first.checked_add(length.abs() - 1) };
    let first = if length < 0 { start.checked_add(length).ok_or(Errno::EINVAL)? } else { start };
    if first < 0 {
        return Err(Errno::EINVAL);
    }
    let last = end(first).ok_or(Errno::EOVERFLOW)?;
    Ok(Range { inode, first: first as u64, last: last as u64, strength })
}

/// fcntl with F_GETLK, F_SETLK or F_SETLKW, on a number of ours.
pub(crate) fn control(thread: &mut Thread, call: u64, number: u32, command: u64, at: u64) -> Answer {
    let wanted = match prepare(thread, number, command, at) {
        Err(errno) => return Answer::error(errno),
        Ok(wanted) => wanted,
    };
    if instance::planted("shim: a lock is given to everybody") {
        return Answer::of(Ok(0));
    }
    if command == F_GETLK {
        return Answer::of(ask(&wanted, at));
    }
    thread.home().has_locks.store(true, Ordering::Relaxed);
    match set(thread.home(), wanted) {
        Ok(()) => Answer::Done(0),
        Err(Refusal::Locked(lock)) if command == F_SETLKW => wait(thread, call, wanted, lock),
        Err(Refusal::Locked(_)) => Answer::error(Errno::EAGAIN),
        Err(Refusal::Number(errno)) => Answer::number(errno),
    }
}

/// Why a lock was not set.
enum Refusal {
    /// Another process has one: the kernel's lock that is missing.
    Locked(Lock),
    /// Another error.
    Number(i32),
}

/// Locks or unlocks, without waiting.
fn set(home: &Home, wanted: Range) -> Result<(), Refusal> {
    let mut locked = home.lock();
    let held = locked.held();
    if !held.has_room() {
        settle(held, &wanted);
        return Err(Refusal::Number(ENOLCK));
    }
    let needed = held.needed(&wanted);
    if wanted.strength != Strength::Nothing {
        let mut lock = in_kernel(wanted.base(), wanted.in_kernel(), needed);
        kernel(F_SETLK, &mut lock).map_err(|errno| match errno == Errno::EAGAIN.number() {
            true => Refusal::Locked(lock),
            false => Refusal::Number(errno),
        })?;
    }
    held.set(wanted);
    if wanted.strength == Strength::Nothing || wanted.strength != needed {
        settle(held, &wanted);
    }
    Ok(())
}

/// Gives up what the kernel has locked in a range's bytes and none of the process's ranges needs. Others never find free there what
/// is still needed.
fn settle(held: &Held, range: &Range) {
    let (mut at, last) = range.in_kernel();
    while at <= last {
        let (strength, end) = held.strongest(range.inode, at, last);
        // It can fail for want of the kernel's memory: then more stays locked until the next time.
        let _ = kernel(F_SETLK, &mut in_kernel(range.base(), (at, end), strength));
        at = end + 1;
    }
}

/// Lets the kernel wait for a lock.
fn wait(thread: &mut Thread, call: u64, wanted: Range, lock: Lock) -> Answer {
    let request = [wanted.inode, wanted.first, wanted.last, kind_of(wanted.strength)];
    let room = thread.kept_room();
    for (place, word) in room.chunks_exact_mut(8).zip(lock.into_iter().chain(request)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let place = room.as_ptr() as u64;
    let locks = u64::from(instance::control().descriptors.locks);
    Answer::issue(thread, call, [locks, F_SETLKW, place, 0, 0, 0], After::Locked)
}

/// The kernel has waited for a lock: it is noted, unless another thread has unlocked the same bytes of the kernel's before, and
/// somebody else has them now.
pub(crate) fn waited(thread: &mut Thread, call: u64) -> Answer {
    let Some(room) = thread.kept_of_this_call() else { return Answer::number(ENOLCK) };
    let mut words = [0_u64; 8];
    for (word, place) in words.iter_mut().zip(room.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*place);
    }
    let [.., inode, first, last, kind] = words;
    let wanted = match strength_of(kind) {
        Ok(strength) => Range { inode, first, last, strength },
        Err(errno) => return Answer::error(errno),
    };
    match set(thread.home(), wanted) {
        Ok(()) => Answer::Done(0),
        Err(Refusal::Locked(lock)) => wait(thread, call, wanted, lock),
        Err(Refusal::Number(errno)) => Answer::number(errno),
    }
}

fn prepare(thread: &Thread, number: u32, command: u64, at: u64) -> Result<Range, Errno> {
    let [head, start, length, _] = guarded::read_value::<Lock>(at)?;
    let (kind, whence) = (head & 0xffff, head >> 16 & 0xffff);
    let (inode, mode, size, offset) = instance::call(thread, |call| {
        let status = data::stat(call, number, Fields::SIZE)?;
        let (mode, _) = data::status(call, number)?;
        let description = call.description(number).map_err(Errno::from)?.ok_or(Errno::EBADF)?;
        Ok((
            status.number.0,
            mode,
            status.size_bytes as i64,
            call.offset(description).map_err(Errno::from)?.bytes as i64,
        ))
    })?;
    let base = match whence {
        0 => 0,
        1 => offset,
        2 => size,
        _ => return Err(Errno::EINVAL),
    };
    let strength = strength_of(kind)?;
    let may = match strength {
        _ if command == F_GETLK => true,
        Strength::Reading => mode.read,
        Strength::Writing => mode.write,
        Strength::Nothing => true,
    };
    if !may {
        return Err(Errno::EBADF);
    }
    range(inode, base.checked_add(start as i64).ok_or(Errno::EOVERFLOW)?, length as i64, strength)
}

fn ask(wanted: &Range, at: u64) -> Result<u64, Errno> {
    let [head, start, length, _] = guarded::read_value::<Lock>(at)?;
    let mut lock = in_kernel(wanted.base(), wanted.in_kernel(), wanted.strength);
    kernel(F_GETLK, &mut lock).map_err(|_| Errno::EINVAL)?;
    if lock[0] & 0xffff == F_UNLCK {
        return guarded::write_value(at, [head & !0xffff | F_UNLCK, start, length, 0]).map(|()| 0);
    }
    // Where in the file is known up to a multiple: the range that was asked for is given.
    guarded::write_value(at, [lock[0] & 0xffff, start, length, lock[3]]).map(|()| 0)
}

/// A descriptor is closed: the process's locks on its file go.
pub(crate) fn forget(thread: &Thread, number: u32) {
    if !thread.home().has_locks.load(Ordering::Relaxed) || instance::planted("shim: locks outlive the descriptor") {
        return;
    }
    let found = instance::call(thread, |call| {
        let node = data::node(call, number)?;
        Ok(call.objects().number(node)?.0)
    });
    let Ok(inode) = found else { return };
    let all = Range::all(inode);
    let mut locked = thread.home().lock();
    let held = locked.held();
    held.forget(inode);
    settle(held, &all);
}
