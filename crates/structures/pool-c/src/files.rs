//! Pools in files.

use core::ffi::{CStr, c_char};
use core::ptr;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pool::file::{Pool, create};

use crate::reason;
use crate::views::{View, pool_memory};

/// A flag of pool_join: another host has left this number without saying so, and has ended.
pub const POOL_TAKE_OVER: u32 = 1;
/// A flag of pool_join and pool_emulated_domain: the memory is taken for coherent, and write-backs and invalidations are nothing.
pub const POOL_COHERENT: u32 = 2;

/// # Safety
/// `path` is NULL or ends with NUL.
unsafe fn path_of<'p>(path: *const c_char) -> Option<&'p Path> {
    // SAFETY: the caller's promise.
    (!path.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

/// Makes a file a pool for that number of domains.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_create(path: *const c_char, size_bytes: u64, domain_count: u32) -> i32 {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { path_of(path) }) else { return reason::null("a path") };
    match create(path, size_bytes as usize, domain_count as usize) {
        Ok(()) => 0,
        Err(error) => {
            reason::keep(&error.to_string());
            reason::GONE
        }
    }
}

/// Joins a pool as a domain, with flags; NULL, and pool_reason says why not.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_join(path: *const c_char, domain: u32, flags: u32) -> *mut pool_memory {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { path_of(path) }) else {
        reason::null("a path");
        return ptr::null_mut();
    };
    let joined = match flags & POOL_TAKE_OVER {
        0 => Pool::join(path, domain as usize),
        _ => Pool::take_over(path, domain as usize),
    };
    match joined {
        Ok(pool) if flags & POOL_COHERENT != 0 => Box::into_raw(Box::new(pool_memory(View::FileAsCoherent(pool)))),
        Ok(pool) => Box::into_raw(Box::new(pool_memory(View::File(pool)))),
        Err(error) => {
            reason::keep(&error.to_string());
            ptr::null_mut()
        }
    }
}

/// Offset of the first byte that is not the pool's own; 0 for emulated memory.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_first_free(memory: *const pool_memory) -> u64 {
    // SAFETY: the caller's promise.
    match unsafe { memory.as_ref() }.map(|memory| &memory.0) {
        Some(View::File(pool) | View::FileAsCoherent(pool)) => pool.first_free() as u64,
        _ => 0,
    }
}
