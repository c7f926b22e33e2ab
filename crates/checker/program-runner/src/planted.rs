//! What the self-test of every program calls: sharing that is planted, and none.

use std::sync::atomic::{AtomicU64, Ordering};

use runner::target::Signature;

/// The calls, for a target's list.
pub const SIGNATURES: [Signature; 2] =
    [Signature { name: "count_shared", parameters: &[] }, Signature { name: "count_per_core", parameters: &[] }];

#[repr(align(128))]
struct Lines<const CORES: usize>([Line; CORES]);

#[repr(align(64))]
struct Line(AtomicU64);

/// The planted conflict: one counter for all. Atomic, relaxed: nothing hangs on its value.
static PLANTED_SHARED_COUNT: Lines<1> = Lines([const { Line(AtomicU64::new(0)) }; 1]);
/// The planted non-conflict: a counter on a line of its own for each core. Atomic, relaxed.
static PLANTED_COUNTS_PER_CORE: Lines<256> = Lines([const { Line(AtomicU64::new(0)) }; 256]);

/// Counts on a line that all cores share.
#[inline(never)]
pub fn count_shared() {
    PLANTED_SHARED_COUNT.0[0].0.fetch_add(1, Ordering::Relaxed);
}

/// Counts on the core's own line.
///
/// # Panics
/// If the core's number is beyond 255.
#[inline(never)]
pub fn count_per_core(core: usize) {
    PLANTED_COUNTS_PER_CORE.0[core].0.fetch_add(1, Ordering::Relaxed);
}
