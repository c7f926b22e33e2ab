//! Whether calls on descriptors would find nothing to do, and waiting until one would not.

use core::ffi::c_int;
use std::time::{Duration, Instant};

use scalefs::data::{self, Ready};
use scalefs::{Errno, InProcess, Outside};
use sync::{Wait, WaitReason};

use crate::border::{call, several};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// There is something to read (POLLIN).
pub const SCALEFS_POLL_IN: u32 = 1;
/// There is room to write (POLLOUT).
pub const SCALEFS_POLL_OUT: u32 = 4;
/// Told in any case: all readers of the pipe have gone (POLLERR).
pub const SCALEFS_POLL_ERROR: u32 = 8;
/// Told in any case: all writers of the pipe have gone (POLLHUP).
pub const SCALEFS_POLL_HANG_UP: u32 = 16;
/// Told in any case: the descriptor is not open (POLLNVAL).
pub const SCALEFS_POLL_INVALID: u32 = 32;

/// Most descriptors of one call.
const MOST_ENTRIES: u32 = 1 << 20;

/// A descriptor to look at.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct scalefs_poll_entry {
    /// The descriptor; below 0: none.
    pub fd: c_int,
    /// What is asked: SCALEFS_POLL_IN, SCALEFS_POLL_OUT.
    pub wanted: u32,
    /// What is so, of that and of what is told in any case.
    pub found: u32,
}

/// What is so of a descriptor.
fn state(call: &InProcess<'_, Outside>, fd: u32) -> Result<u32, Errno> {
    let Ready { input, output, hang_up, error } = match data::ready(call, fd) {
        Err(Errno::EBADF) => return Ok(SCALEFS_POLL_INVALID),
        ready => ready?,
    };
    let found = [
        (input, SCALEFS_POLL_IN),
        (output, SCALEFS_POLL_OUT),
        (hang_up, SCALEFS_POLL_HANG_UP),
        (error, SCALEFS_POLL_ERROR),
    ];
    Ok(found.into_iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, flag)| all | flag))
}

/// Looks at descriptors until one has what is wanted of it, or so many milliseconds have passed; 0: once, below 0: without
/// end. Returns of how many something was found. A socket always seems to have room. -EDEADLK within a callback, unless
/// timeout_ms is 0.
///
/// # Safety
/// See scalefs_open; there are so many entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_poll(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    entries: *mut scalefs_poll_entry,
    count: u32,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: see `scalefs_open`. No entry is borrowed while it is written.
    let look = || unsafe {
        call(thread, process, |call| {
            let given: &[scalefs_poll_entry] = several(entries, count, MOST_ENTRIES)?;
            let mut ready = 0;
            for place in 0..given.len() {
                let entry = entries.add(place);
                let scalefs_poll_entry { fd, wanted, .. } = entry.read();
                let in_any_case = !(SCALEFS_POLL_IN | SCALEFS_POLL_OUT);
                let found = match u32::try_from(fd) {
                    Ok(fd) => state(call, fd)? & (wanted | in_any_case),
                    Err(_) => 0,
                };
                (&raw mut (*entry).found).write(found);
                ready += i64::from(found != 0);
            }
            Ok(ready)
        })
    };
    let begun = Instant::now();
    let patience = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    // SAFETY: see `scalefs_open`.
    if timeout_ms != 0 && unsafe { scalefs_thread::attached(thread) }.is_ok_and(|thread| thread.is_in_a_callback()) {
        reason::keep("a callback does not wait: its call keeps others from going on");
        return -Errno::EDEADLK.number();
    }
    for round in 0_u32.. {
        let found = look();
        if found != 0 || patience.is_some_and(|patience| begun.elapsed() >= patience) {
            return found as c_int;
        }
        Outside.wait(WaitReason::Pipe, round);
    }
    0
}
