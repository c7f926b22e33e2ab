//! Emulated memory, its reports, and programs of domains that take turns inside of their accesses.

use core::ffi::{c_char, c_void};
use core::ptr;

use pool::Coherent;
use pool::emulated::Emulated;
use pool::emulated::turns::{Program, Turns};

use crate::files::POOL_COHERENT;
use crate::reason;
use crate::views::{View, pool_emulated, pool_memory};

/// What a domain does in pool_run: gets the context that was given, and its number.
pub type pool_program = Option<unsafe extern "C" fn(*mut c_void, u32) -> i32>;

/// Emulated memory of zeros for `domain_count` domains, with an adversary that the seed determines; NULL, and pool_reason says why
/// not.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_emulated_new(size_bytes: u64, domain_count: u32, seed: u64) -> *mut pool_emulated {
    match Emulated::new(size_bytes as usize, domain_count as usize, seed) {
        Ok(emulated) => Box::into_raw(Box::new(pool_emulated(emulated))),
        Err(error) => {
            reason::keep(&error.to_string());
            ptr::null_mut()
        }
    }
}

/// Gives it up; views of its domains stay valid.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_emulated_free(emulated: *mut pool_emulated) {
    if !emulated.is_null() {
        // SAFETY: made by `pool_emulated_new`, and the caller's promise that it is used no more.
        drop(unsafe { Box::from_raw(emulated) });
    }
}

/// The memory as this domain sees it, with flags (POOL_COHERENT); NULL, and pool_reason says why not.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_emulated_domain(
    emulated: *const pool_emulated,
    domain: u32,
    flags: u32,
) -> *mut pool_memory {
    // SAFETY: the caller's promise.
    let Some(pool_emulated(memory)) = (unsafe { emulated.as_ref() }) else {
        reason::null("emulated memory");
        return ptr::null_mut();
    };
    if domain as usize >= memory.domain_count() {
        reason::keep(&format!("expected a domain below {}, got {domain}", memory.domain_count()));
        return ptr::null_mut();
    }
    let domain = memory.domain(domain as usize);
    let view = match flags & POOL_COHERENT {
        0 => View::Emulated(domain),
        _ => View::EmulatedAsCoherent(Coherent::new(domain)),
    };
    Box::into_raw(Box::new(pool_memory(view)))
}

/// Runs a program for each of `count` domains, on this thread: they take turns inside of their accesses, as the seed chooses, for
/// at most `step_count` steps. 1 if all have ended, 0 if not (their stacks, of 1 MiB, are then lost).
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_run(
    program: pool_program,
    context: *mut c_void,
    count: u32,
    seed: u64,
    step_count: u64,
) -> i32 {
    let Some(program) = program else { return reason::null("a program") };
    let programs = (0..count).map(|number| -> Program {
        Box::new(move || {
            // SAFETY: the caller's promise: the program may be called with its context.
            unsafe { program(context, number) };
        })
    });
    let mut turns = Turns::new(programs.collect());
    let all = turns.run(seed, step_count);
    // Frames of C cannot be unwound.
    core::mem::forget(turns);
    i32::from(all)
}

/// The run ends: what still had to reach memory is reported.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_emulated_end(emulated: *const pool_emulated) {
    // SAFETY: the caller's promise.
    if let Some(pool_emulated(memory)) = unsafe { emulated.as_ref() } {
        memory.end();
    }
}

/// How many faults the checker has found, the same ones counted again.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_report_count(emulated: *const pool_emulated) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { emulated.as_ref() }.map_or(0, |emulated| emulated.0.report_count())
}

/// Writes the report of this number, from 0, as one line with its seed, cut to `length` bytes and ended with NUL. Returns the
/// bytes of all of it, or 0 if there is none.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_report(
    emulated: *const pool_emulated,
    number: u32,
    into: *mut c_char,
    length: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let reports = unsafe { emulated.as_ref() }.map_or(Vec::new(), |emulated| emulated.0.reports());
    let Some(report) = reports.get(number as usize) else { return 0 };
    let text = report.to_string();
    if !into.is_null() && length != 0 {
        let count = text.len().min(length - 1);
        // SAFETY: the caller's promise: `length` bytes may be written.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), into.cast(), count);
            into.add(count).write(0);
        }
    }
    text.len()
}

/// A domain crashes: what its cache held is lost, and its calls fail with -EOWNERDEAD until pool_revive.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_crash(emulated: *const pool_emulated, domain: u32) {
    // SAFETY: the caller's promise.
    if let Some(pool_emulated(memory)) = unsafe { emulated.as_ref() }
        && (domain as usize) < memory.domain_count()
    {
        memory.crash(domain as usize);
    }
}

/// A domain that has crashed begins again.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pool_revive(emulated: *const pool_emulated, domain: u32) {
    // SAFETY: the caller's promise.
    if let Some(pool_emulated(memory)) = unsafe { emulated.as_ref() }
        && (domain as usize) < memory.domain_count()
    {
        memory.revive(domain as usize);
    }
}
