//! Virtual cores: coroutines of one thread, which hand over to each other before their accesses to atomics. Only built under
//! `cfg(virtual_cores)`.
//!
//! Who measures how often lines go from core to core needs operations of many cores that interleave inside, on one processor
//! and the same again from the same seed. What is measured is otherwise as it is in ordinary builds: unlike under
//! `cfg(shuttle)`, no structure is smaller here, and no execution is too long.

use std::cell::Cell;

/// Of this many accesses, as many as are asked for hand over, on average.
pub const RATE_OF: u64 = 1024;

std::thread_local! {
    // All virtual cores are coroutines of the thread that began.
    static TURNS: Cell<Option<Turns>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct Turns {
    state: u64,
    rate: u64,
    hand_over: fn(),
}

/// From now on `hand_over` is called before accesses of this thread to atomics: before `rate` of [`RATE_OF`], drawn by the seed,
/// and whenever a core waits.
pub fn begin(seed: u64, rate: u64, hand_over: fn()) {
    TURNS.set(Some(Turns { state: seed | 1, rate, hand_over }));
}

/// From now on this thread is no virtual cores any more.
pub fn end() {
    TURNS.set(None);
}

/// A core waits: others have to run.
#[inline(never)]
pub fn wait() {
    match TURNS.get() {
        Some(turns) => (turns.hand_over)(),
        None => std::hint::spin_loop(),
    }
}

/// Before an access.
#[inline(never)]
pub(crate) fn access(_address: usize, _is_change: bool) {
    let Some(mut turns) = TURNS.get() else { return };
    // xorshift64*
    turns.state ^= turns.state >> 12;
    turns.state ^= turns.state << 25;
    turns.state ^= turns.state >> 27;
    let drawn = turns.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 54;
    TURNS.set(Some(turns));
    if drawn < turns.rate {
        (turns.hand_over)();
    }
}
