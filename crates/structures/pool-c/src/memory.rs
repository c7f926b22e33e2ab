//! The calls on memory: one set for all back ends.

use core::ffi::{c_char, c_void};
use core::slice;

use pool::{Fault, Memory, Use};

use crate::reason;
use crate::views::pool_memory;

/// A use of pool_declare: accesses of different domains are ordered by messages. What is not declared is this.
pub const POOL_DATA: u32 = 0;
/// A use of pool_declare: one domain writes, another takes each version once (pool_accept) before the next is written.
pub const POOL_MESSAGES: u32 = 1;
/// A use of pool_declare: one domain writes, all read at any time and take what is newest.
pub const POOL_REGISTER: u32 = 2;
/// A use of pool_declare: nothing is checked.
pub const POOL_UNCHECKED: u32 = 3;

/// # Safety
/// `memory` is NULL or valid.
unsafe fn call(memory: *const pool_memory, call: impl Fn(&dyn Memory) -> Result<(), Fault>) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { memory.as_ref() } {
        Some(memory) => reason::code(memory.0.with(call)),
        None => reason::null("memory"),
    }
}

/// Bytes of the memory; 0 for NULL.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_size_bytes(memory: *const pool_memory) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { memory.as_ref() }.map_or(0, |memory| memory.0.with(|memory| memory.size_bytes()) as u64)
}

/// Reads through this domain's cache.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_read(memory: *const pool_memory, at: u64, into: *mut c_void, length: usize) -> i32 {
    if into.is_null() {
        return reason::null("a buffer");
    }
    // SAFETY: the caller's promise.
    unsafe { call(memory, |memory| memory.read(at as usize, slice::from_raw_parts_mut(into.cast(), length))) }
}

/// Writes into this domain's cache.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_write(memory: *const pool_memory, at: u64, bytes: *const c_void, length: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { pool_write_version(memory, at, bytes, length, 0) }
}

/// Writes a version that has a number above 0, which pool_accept must take it for.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_write_version(
    memory: *const pool_memory,
    at: u64,
    bytes: *const c_void,
    length: usize,
    version: u64,
) -> i32 {
    if bytes.is_null() {
        return reason::null("bytes");
    }
    // SAFETY: the caller's promise.
    unsafe {
        call(memory, |memory| memory.write_version(at as usize, slice::from_raw_parts(bytes.cast(), length), version))
    }
}

/// Begins to write lines back; they have reached memory after the next pool_drain.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_write_back(memory: *const pool_memory, at: u64, length: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { call(memory, |memory| memory.write_back(at as usize, length)) }
}

/// Forgets lines, so that the next read is of memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_invalidate(memory: *const pool_memory, at: u64, length: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { call(memory, |memory| memory.invalidate(at as usize, length)) }
}

/// Waits until all write-backs of this thread have reached memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_drain(memory: *const pool_memory) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { call(memory, |memory| memory.drain()) }
}

/// Says how lines will be used (POOL_DATA and what follows it), by which writer, and by which reader of POOL_MESSAGES.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_declare(
    memory: *const pool_memory,
    at: u64,
    length: usize,
    used: u32,
    writer: u32,
    reader: u32,
) -> i32 {
    let (writer, reader) = (writer as usize, reader as usize);
    let used = match used {
        POOL_DATA => Use::Data,
        POOL_MESSAGES => Use::Messages { writer, reader },
        POOL_REGISTER => Use::Register { writer },
        POOL_UNCHECKED => Use::Unchecked,
        other => {
            reason::keep(&format!("expected a use from 0 to 3, got {other}"));
            return reason::INVALID;
        }
    };
    // SAFETY: the caller's promise.
    unsafe { call(memory, |memory| memory.declare(at as usize, length, used)) }
}

/// Says that the caller has validated what it last read of these lines, and takes it for this version, whole. 0: no number.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_accept(memory: *const pool_memory, at: u64, length: usize, version: u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        call(memory, |memory| {
            pool::in_bounds(at as usize, length, memory.size_bytes())?;
            memory.accept(at as usize, length, version);
            Ok(())
        })
    }
}

/// Says that others now rely on all that this domain has written for them to read at any time.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_promise(memory: *const pool_memory) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        call(memory, |memory| {
            memory.promise();
            Ok(())
        })
    }
}

/// Says that this domain sends message `number` of a channel that is not in the memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_sent(memory: *const pool_memory, channel: u64, number: u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        call(memory, |memory| {
            memory.sent(channel, number);
            Ok(())
        })
    }
}

/// Says that this domain has received message `number` of a channel that is not in the memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_received(memory: *const pool_memory, channel: u64, number: u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        call(memory, |memory| {
            memory.received(channel, number);
            Ok(())
        })
    }
}

/// Gives a view up. A domain of a pool file leaves it.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_leave(memory: *mut pool_memory) {
    if !memory.is_null() {
        // SAFETY: made by a call of ours, and the caller's promise that it is used no more.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// Why the last call of this thread that failed did; valid until the next one that fails.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_reason() -> *const c_char {
    reason::last()
}
