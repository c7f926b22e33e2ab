//! Files of the tree in memory, and code that is mapped, whose calls are rewritten.
//!
//! A private mapping of a file gets a copy of its bytes, as they are then: programs and libraries, and what compilers and Python read
//! so. A shared one has the file's own pages ([`crate::shared`]).

use scalefs::{AccessMode, Errno, Fields, InProcess, Kind, ObjectOperations, StatusFlags, data};

use crate::dispatch::{After, Answer};
use crate::instance::{self, Here};
use crate::shared;
use crate::sites;
use crate::system::{self, number};
use crate::threads::Thread;

const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const READ_WRITE: u64 = 3;
const MAP_TYPE: u64 = 0xf;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_ANONYMOUS: u64 = 0x20;
const PAGE_BYTES: u64 = 4096;

/// mmap.
pub(crate) fn map(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [_, length, rights, flags, file, _] = call.1;
    if flags & MAP_ANONYMOUS == 0 && thread.home().numbers.is_closed(file) {
        return Answer::error(Errno::EBADF);
    }
    if flags & MAP_ANONYMOUS != 0 || !thread.home().numbers.is_ours(file) {
        shared::make_room(thread, call.1);
        let after = if rights & PROT_EXEC != 0 { After::Code } else { After::Nothing };
        return Answer::issue(thread, call.0, call.1, after);
    }
    let is_of_a_type = matches!(flags & MAP_TYPE, MAP_SHARED | MAP_PRIVATE | MAP_SHARED_VALIDATE);
    if length == 0 || !call.1[5].is_multiple_of(PAGE_BYTES) || !is_of_a_type {
        return Answer::error(Errno::EINVAL);
    }
    if matches!(flags & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE) {
        return match shared::map(thread, call.1) {
            Ok(at) => Answer::Done(at as i64),
            Err(errno) => Answer::number(errno),
        };
    }
    shared::make_room(thread, call.1);
    match map_ours(thread, call.1) {
        Ok(at) => Answer::Done(at as i64),
        Err(errno) => Answer::number(errno),
    }
}

/// What a descriptor that is to be mapped was opened for.
///
/// # Errors
/// EBADF, also if it only stands for a file (O_PATH).
pub(crate) fn mode_of(call: &InProcess<'_, Here>, number: u32) -> Result<AccessMode, Errno> {
    let (mode, status) = data::status(call, number)?;
    if status.contains(StatusFlags::HANDLE) { Err(Errno::EBADF) } else { Ok(mode) }
}

fn map_ours(thread: &Thread, [at, length, rights, flags, file, offset]: [u64; 6]) -> Result<u64, i32> {
    let number = file as u32;
    let seen = instance::call(thread, |call| {
        let mode = mode_of(call, number)?;
        let kind = call.kind(data::node(call, number)?);
        Ok((mode, kind, data::stat(call, number, Fields::SIZE)?.size_bytes))
    });
    let (mode, kind, size) = seen.map_err(Errno::number)?;
    if kind != Kind::Regular {
        return Err(Errno::ENODEV.number());
    }
    if !mode.read {
        return Err(Errno::EACCES.number());
    }
    let flags = flags & !MAP_TYPE | MAP_PRIVATE | MAP_ANONYMOUS;
    let place = system::try_call(number::MMAP, [at, length, READ_WRITE, flags, u64::MAX, 0])?;
    fill(thread, number, place, length.min(size.saturating_sub(offset)), offset);
    if rights & PROT_EXEC != 0 {
        sites::rewrite(place, length);
    }
    if rights & 7 != READ_WRITE {
        system::try_call(number::MPROTECT, [place, length, rights, 0, 0, 0])?;
    }
    Ok(place)
}

/// Copies bytes of a file of ours to fresh memory.
pub(crate) fn fill(thread: &Thread, number: u32, place: u64, length: u64, offset: u64) {
    let mut done = 0;
    while done < length {
        // SAFETY: fresh memory, of which no one else knows.
        let bytes = unsafe { core::slice::from_raw_parts_mut((place + done) as *mut u8, (length - done) as usize) };
        match instance::call(thread, |call| data::read_at(call, number, bytes, (offset + done) as i64)) {
            Ok(read) if read > 0 => done += read as u64,
            _ => return,
        }
    }
}

/// mprotect: memory that becomes code is looked at first.
pub(crate) fn protect(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    if let Err(errno) = shared::protect(thread, call.1) {
        return Answer::number(errno);
    }
    let after = if call.1[2] & PROT_EXEC != 0 { After::Code } else { After::Nothing };
    Answer::issue(thread, call.0, call.1, after)
}

/// The kernel has mapped code: the calls in it are rewritten before anybody runs there. Memory that can be written, too, is
/// left alone: it is code that is made at run time, and dispatch catches its calls.
pub(crate) fn code_was_mapped(number: u64, result: u64, [_, length, rights, flags, file, offset]: [u64; 6]) {
    let is_map = number == number::MMAP;
    if rights & PROT_WRITE != 0 || is_map && flags & MAP_ANONYMOUS != 0 {
        return;
    }
    // Memory that becomes code later is left alone, too: another thread can run there already.
    if !is_map || flags & MAP_TYPE != MAP_PRIVATE {
        return;
    }
    sites::rewrite_protected(result, length, rights, sites::code_of(file, offset, length));
}
