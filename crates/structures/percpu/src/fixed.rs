//! Memory at addresses that are the same in each run. Only built under `cfg(loom)` and `cfg(shuttle)`.
//!
//! Structures hash addresses. loom wants all executions to do the same until they are given another order, and a round
//! of chosen schedules shall be repeatable: so what a hash looks at must be the same for each execution, thread and
//! run. Where the system chose the addresses, some runs of loom explored many times the executions of others, as counts
//! met in a slot, and a round that had failed did not fail again.

use alloc::vec::Vec;
use core::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

/// Regions begin at multiples of this; what a hash looks at are the bits below.
const STRIDE_BYTES: usize = 1 << 42;
/// Addresses of processes end here.
const ADDRESSES_END: usize = 1 << 47;

/// A region that no one uses: its size and where it begins.
struct Unused(usize, NonNull<u8>);

// SAFETY: plain memory that belongs to the one that takes it.
unsafe impl Send for Unused {}

static UNUSED: Mutex<Vec<Unused>> = Mutex::new(Vec::new());

/// Memory that begins at a multiple of the stride, a whole number of pages, of any content.
pub(crate) fn take(size_bytes: usize) -> NonNull<u8> {
    let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
    match unused.iter().position(|Unused(bytes, _)| *bytes == size_bytes) {
        Some(index) => unused.swap_remove(index).1,
        None => map(size_bytes),
    }
}

/// Gives back what [`take`] gave.
pub(crate) fn give_back(size_bytes: usize, region: NonNull<u8>) {
    UNUSED.lock().unwrap_or_else(PoisonError::into_inner).push(Unused(size_bytes, region));
}

/// Maps memory, shared with processes made later, at the first multiple of the stride that is free; it stays for as long as
/// the process lives.
fn map(size_bytes: usize) -> NonNull<u8> {
    (STRIDE_BYTES..ADDRESSES_END)
        .step_by(STRIDE_BYTES)
        .find_map(|wanted| {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let wanted = ptr::without_provenance_mut(wanted);
            // SAFETY: a new mapping, which replaces none.
            let at = unsafe { libc::mmap(wanted, size_bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            NonNull::new(at.cast::<u8>()).filter(|_| at == wanted)
        })
        .expect("a free multiple of the stride")
}
