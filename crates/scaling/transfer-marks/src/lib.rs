//! Says to the counter (crate `transfers-plugin`) whose turn it is: by a store that it knows by its encoding, to three words of
//! which the other two say more. Without the counter it is a store.
#![no_std]

use core::ops::Range;

/// What operations are to the counter.
pub const OPERATION: u64 = 0;
/// What maintenance between operations is.
pub const MAINTENANCE: u64 = 1;

/// Part of the instruction's encoding.
const DISPLACEMENT: usize = 0x4d54_5218;

#[inline(always)]
fn tell(what: u64, first: u64, second: u64) {
    let mut words = [what, first, second];
    let place = words.as_mut_ptr().wrapping_byte_sub(DISPLACEMENT);
    // SAFETY: stores the first word to where it is; the two others are there before, since the compiler must take it that all
    // of them are read: it gives away a pointer to them, where an address alone would let it write them later.
    unsafe {
        core::arch::asm!(
            "mov [rdi + {displacement}], rax",
            displacement = const DISPLACEMENT,
            in("rdi") place,
            in("rax") what,
            options(nostack, preserves_flags),
        );
    }
}

/// This code is not measured.
pub fn own_code(range: Range<usize>) {
    tell(1, range.start as u64, range.end as u64);
}

/// This memory is not measured.
pub fn own_memory(range: Range<usize>) {
    tell(2, range.start as u64, range.end as u64);
}

/// There are this many cores; what they touch is followed from now on.
pub fn cores(count: usize) {
    tell(3, count as u64, 0);
}

/// It is this core's turn, in this kind of work.
#[inline(always)]
pub fn turn(core: usize, work: u64) {
    tell(4, core as u64, work);
}

/// It is no core's turn.
#[inline(always)]
pub fn nobody() {
    tell(5, 0, 0);
}

/// Transfers count from now on.
pub fn count() {
    tell(6, 0, 0);
}

/// Nothing follows.
pub fn end() {
    tell(7, 0, 0);
}

/// The stack of the core whose turn comes next: no other core touches it.
pub fn stack(range: Range<usize>) {
    tell(8, range.start as u64, range.end as u64);
}

/// After this many of 1,024 accesses of a core the counter sends [`INTERRUPTION`] to its thread; the seed says after
/// which.
pub fn interrupt(seed: u64, rate: u64) {
    tell(9, seed, rate);
}

/// After an access of this code no signal is sent.
pub fn never_interrupted(range: Range<usize>) {
    tell(10, range.start as u64, range.end as u64);
}

/// The signal of [`interrupt`]: SIGSTKFLT, which Linux itself never sends.
pub const INTERRUPTION: i32 = 16;
