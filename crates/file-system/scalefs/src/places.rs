//! Places in arrays of which each core has a part: a core that takes one shares nothing with others that do.

use epoch::Guard;
use percpu::{MAX_CORES, OutOfMemory};
use posix_calls::Errno;
use radix::{LockedSlot, RadixArray};
use sync::{OwnWord, Wait};

/// Places of one core.
pub(crate) const PART: u64 = 1 << 20;
/// Places of all cores.
pub(crate) const ALL: u64 = PART * MAX_CORES as u64;
/// A core takes as many places one after the other as a node of the arrays has, before it looks for one that is free again.
const IN_A_ROW: u64 = 16;

/// Where the part of the guard's core begins.
pub(crate) fn start(guard: &Guard<'_>) -> u64 {
    guard.core().index().get() as u64 * PART
}

/// Locks a place of the core's part that is empty, and tells which one. `hint` is where the core looks first.
///
/// # Errors
/// EAGAIN without a place, ENOMEM.
pub(crate) fn lock_free<'g>(
    array: &'g RadixArray,
    guard: &'g Guard<'g>,
    hint: &OwnWord<u32>,
    wait: &impl Wait,
) -> Result<(u64, LockedSlot<'g>), Errno> {
    let start = start(guard);
    let mut place = start + u64::from(hint.get());
    loop {
        // Now and then from the beginning, for places that other cores have emptied.
        if place.is_multiple_of(IN_A_ROW) || array.get(guard, place).is_some() {
            place = array.first_empty(guard, start);
        }
        if place >= start + PART {
            return Err(Errno::EAGAIN);
        }
        let slot = array.lock_slot(guard, place, wait).map_err(|OutOfMemory| Errno::ENOMEM)?;
        if slot.value().is_none() {
            hint.set((place + 1 - start) as u32);
            return Ok((place, slot));
        }
    }
}
