//! Locks of ranges of a file (`fcntl`): the kernel keeps them, on a file that stands for all files of the tree.
//!
//! ```text
//! byte b of inode n  ─►  byte n * 2^16 + b mod 2^16 of the kernel's file
//! ```
//! Two bytes of one file that are 2^16 apart are one here: a lock can conflict with one that it would not, and is never missed. A lock
//! on more bytes than that is one on all of the file. They go with the process, and when it closes any descriptor of the file, as
//! POSIX has it.

use core::sync::atomic::Ordering;

use scalefs::{DataOperations, Errno, Fields, ObjectOperations, data};

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::instance;
use crate::system::{self, number};
use crate::threads::Thread;

const BITS_PER_FILE: u32 = 16;
const BYTES_PER_FILE: i64 = 1 << BITS_PER_FILE;
const F_GETLK: u64 = 5;
const F_SETLK: u64 = 6;
const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;

/// `struct flock`: kind and from where, start, length, process.
type Lock = [u64; 4];

/// The bytes in the kernel's file.
fn range(inode: u64, start: i64, length: i64) -> Result<(u64, u64), Errno> {
    let (start, length) = if length < 0 { (start.saturating_add(length), -length) } else { (start, length) };
    if start < 0 {
        return Err(Errno::EINVAL);
    }
    let base = inode << BITS_PER_FILE;
    let first = start & (BYTES_PER_FILE - 1);
    match length {
        1..BYTES_PER_FILE if first + length <= BYTES_PER_FILE => Ok((base + first as u64, length as u64)),
        _ => Ok((base, BYTES_PER_FILE as u64)),
    }
}

/// fcntl with F_GETLK, F_SETLK or F_SETLKW, on a number of ours.
pub(crate) fn control(thread: &mut Thread, call: u64, number: u32, command: u64, at: u64) -> Answer {
    match prepare(thread, number, command, at) {
        Err(errno) => Answer::error(errno),
        Ok(lock) => {
            let locks = u64::from(instance::control().descriptors.locks);
            if instance::planted("shim: a lock is given to everybody") {
                return Answer::of(Ok(0));
            }
            if command == F_GETLK {
                return Answer::of(ask(locks, lock, at));
            }
            thread.home().has_locks.store(true, Ordering::Relaxed);
            let room = thread.kept_room();
            for (place, word) in room.chunks_exact_mut(8).zip(lock) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            let place = room.as_ptr() as u64;
            Answer::issue(thread, call, [locks, command, place, 0, 0, 0], After::Locked)
        }
    }
}

fn prepare(thread: &Thread, number: u32, command: u64, at: u64) -> Result<Lock, Errno> {
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
    let may = command == F_GETLK
        || match kind {
            F_RDLCK => mode.read,
            F_WRLCK => mode.write,
            F_UNLCK => true,
            _ => return Err(Errno::EINVAL),
        };
    if !may {
        return Err(Errno::EBADF);
    }
    let (first, length) = range(inode, base.saturating_add(start as i64), length as i64)?;
    Ok([kind, first, length, 0])
}

fn ask(locks: u64, mut lock: Lock, at: u64) -> Result<u64, Errno> {
    let [head, start, length, _] = guarded::read_value::<Lock>(at)?;
    if system::call(number::FCNTL, [locks, F_GETLK, lock.as_mut_ptr() as u64, 0, 0, 0]) < 0 {
        return Err(Errno::EINVAL);
    }
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
    let lock: Lock = [F_UNLCK, inode << BITS_PER_FILE, BYTES_PER_FILE as u64, 0];
    let locks = u64::from(instance::control().descriptors.locks);
    system::call(number::FCNTL, [locks, F_SETLK, lock.as_ptr() as u64, 0, 0, 0]);
}
