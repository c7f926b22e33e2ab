//! Copies to and from memory that other cores may be writing or reading at the same time.
//!
//! Readers of a page take no lock; one that reads while somebody writes finds out by a version and drops what it has.
//! In Rust such a copy must not be an ordinary one: a data race is undefined even if its result is dropped. On x86-64
//! the copy is in assembler, which the language does not look into and which copies what is there, each byte once;
//! elsewhere it is one atomic access per byte. Order with the version comes from the fences around it.
#![warn(clippy::missing_errors_doc)]
#![no_std]

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use core::sync::atomic::{AtomicU8, Ordering};

/// As many words are copied one by one.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FEW_WORDS: usize = 32;

/// Between pieces of memory of this many bytes other threads may run.
#[cfg(shuttle)]
const PIECE_BYTES: usize = 256;

/// Which side of a copy is shared; the other is the caller's own.
const FROM_SHARED: bool = true;
const TO_SHARED: bool = false;

/// Copies from shared memory.
///
/// # Safety
/// `source` is valid for reads of as many bytes as `target` has. Other accesses are by this module only.
#[inline]
pub unsafe fn load(target: &mut [u8], source: *const u8) {
    // SAFETY: both are valid, and they do not overlap, since `target` is borrowed alone.
    unsafe { copy::<FROM_SHARED>(target.as_mut_ptr(), source, target.len()) };
}

/// Copies to shared memory.
///
/// # Safety
/// `target` is valid for writes of as many bytes as `source` has. Other accesses are by this module only.
#[inline]
pub unsafe fn store(target: *mut u8, source: &[u8]) {
    // SAFETY: both are valid, and they do not overlap, since `source` is borrowed.
    unsafe { copy::<TO_SHARED>(target, source.as_ptr(), source.len()) };
}

/// Whether shared memory holds these bytes; looks no further than the first that differs.
///
/// # Safety
/// As for [`load`].
#[inline]
pub unsafe fn equals(source: *const u8, bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    #[cfg(shuttle)]
    pieces(source.addr(), 8 * words.len()).for_each(|piece| others_may_run(source.addr() + piece.start, false));
    // SAFETY: the caller's promise.
    unsafe {
        words.iter().enumerate().all(|(number, word)| load_word(source.add(8 * number)) == *word) && {
            let mut last = [0; 8];
            let last = &mut last[..rest.len()];
            load(last, source.add(8 * words.len()));
            last == rest
        }
    }
}

/// Eight bytes of shared memory.
///
/// # Safety
/// As for [`load`].
#[inline]
unsafe fn load_word(source: *const u8) -> [u8; 8] {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's promise.
    unsafe {
        let word: u64;
        core::arch::asm!(
            "mov {word}, [{source}]",
            word = out(reg) word, source = in(reg) source,
            options(nostack, preserves_flags, readonly)
        );
        word.to_ne_bytes()
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let mut word = [0; 8];
        // SAFETY: the caller's promise.
        unsafe { load(&mut word, source) };
        word
    }
}

/// Clears shared memory.
///
/// # Safety
/// As for [`store`], with `length` bytes.
#[inline]
pub unsafe fn clear(target: *mut u8, length: usize) {
    #[cfg(shuttle)]
    pieces(target.addr(), length).for_each(|piece| others_may_run(target.addr() + piece.start, true));
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's promise; the direction flag is clear by the calling convention.
    unsafe {
        let (words, rest) = (length / 8, length % 8);
        core::arch::asm!(
            "rep stosq", "mov rcx, {rest}", "rep stosb",
            rest = in(reg) rest,
            inout("rcx") words => _, inout("rdi") target => _, in("rax") 0_u64,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    for index in 0..length {
        // SAFETY: the caller's promise.
        unsafe { AtomicU8::from_ptr(target.add(index)) }.store(0, Ordering::Relaxed);
    }
}

/// # Safety
/// `source` is valid for reads and `target` for writes of `length` bytes, and they do not overlap. The side that `DIRECTION`
/// does not name is the caller's own; the other is accessed by this module only.
#[inline]
unsafe fn copy<const DIRECTION: bool>(target: *mut u8, source: *const u8, length: usize) {
    #[cfg(not(shuttle))]
    // SAFETY: the callers' promise.
    unsafe {
        copy_piece::<DIRECTION>(target, source, length);
    }
    #[cfg(shuttle)]
    {
        let shared = if DIRECTION == FROM_SHARED { source.addr() } else { target.addr() };
        for piece in pieces(shared, length) {
            others_may_run(shared + piece.start, DIRECTION == TO_SHARED);
            // SAFETY: the callers' promise.
            unsafe { copy_piece::<DIRECTION>(target.add(piece.start), source.add(piece.start), piece.len()) };
        }
    }
}

/// The parts of an access of this many bytes at an address that lie in one piece of memory each.
#[cfg(shuttle)]
fn pieces(address: usize, length: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
    let mut start = 0;
    core::iter::from_fn(move || {
        let end = (start + PIECE_BYTES - (address + start) % PIECE_BYTES).min(length);
        let piece = start..end;
        start = end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Lets other threads run before an access to a piece.
#[cfg(shuttle)]
fn others_may_run(address: usize, is_change: bool) {
    sync::scheduled::access(address & !(PIECE_BYTES - 1), is_change);
}

/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn copy_piece<const DIRECTION: bool>(target: *mut u8, source: *const u8, length: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: reads and writes `length` bytes, as the caller promises, and says which registers it changes; the direction flag
    // is clear by the calling convention.
    unsafe {
        // To start a string instruction costs as much as to copy a few lines: few words are copied one by one, and no
        // instruction is started for nothing.
        core::arch::asm!(
            "cmp rcx, {few}",
            "ja 3f",
            "jrcxz 4f",
            "2:",
            "mov {word}, [rsi]",
            "mov [rdi], {word}",
            "add rsi, 8",
            "add rdi, 8",
            "dec rcx",
            "jnz 2b",
            "jmp 4f",
            "3:",
            "rep movsq",
            "4:",
            "mov rcx, {rest}",
            "jrcxz 5f",
            "rep movsb",
            "5:",
            few = const FEW_WORDS, word = out(reg) _, rest = in(reg) length % 8,
            inout("rcx") length / 8 => _, inout("rdi") target => _, inout("rsi") source => _,
            options(nostack)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    for index in 0..length {
        // SAFETY: the callers' promise; one side is borrowed by them, the other accessed atomically by all.
        unsafe {
            let (target, source) = (target.add(index), source.add(index));
            if DIRECTION == FROM_SHARED {
                target.write(AtomicU8::from_ptr(source.cast_mut()).load(Ordering::Relaxed));
            } else {
                AtomicU8::from_ptr(target).store(source.read(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::equals;

    #[test]
    fn bytes_differ_wherever_one_does() {
        let bytes = core::array::from_fn::<u8, 41, _>(|index| index as u8);
        for (start, end) in (0..bytes.len()).flat_map(|start| (start..=bytes.len()).map(move |end| (start, end))) {
            let mut shared = bytes;
            let part = &bytes[start..end];
            // SAFETY: no one else uses the array.
            let holds = |shared: &[u8; 41]| unsafe { equals(shared.as_ptr().add(start), part) };
            assert!(holds(&shared));
            for other in 0..shared.len() {
                shared[other] ^= 0x80;
                assert_eq!(holds(&shared), !(start..end).contains(&other), "byte {other} of {start}..{end}");
                shared[other] ^= 0x80;
            }
        }
    }
}
