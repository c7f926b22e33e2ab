//! What is known of the code in files: where it has calls of the kernel that are rewritten. One process looks through a file's code;
//! the others, and every later program, find what it has found.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

/// Pieces of code that are known at most, a power of two, and calls in all of them.
const PIECES: usize = 1024;
const CALLS: usize = 1 << 17;
/// As many places are looked at for a piece.
const LOOKS: usize = 16;

const FREE: u32 = 0;
const MADE: u32 = 1;
const KNOWN: u32 = 2;

/// Which code: a part of a file as it was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CodeOf {
    /// The file: device, number, size in bytes, and time of the last change in nanoseconds.
    pub file: [u64; 4],
    /// Where in the file it begins, and how many bytes it has.
    pub part: [u64; 2],
}

#[repr(C)]
struct Piece {
    /// Atomic.
    state: AtomicU32,
    count: UnsafeCell<u32>,
    first: UnsafeCell<u32>,
    of: UnsafeCell<CodeOf>,
}

/// See the module's head. Words of calls mean something to who writes and reads them.
#[repr(C)]
pub struct Code {
    /// Atomic: words that are taken.
    used: AtomicU32,
    pieces: [Piece; PIECES],
    calls: UnsafeCell<[u64; CALLS]>,
}

// SAFETY: what is not atomic is written by who has made a piece, and read by others once it is known.
unsafe impl Sync for Code {}

impl Code {
    fn places(&self, of: &CodeOf) -> impl Iterator<Item = &Piece> {
        let words = of.file.iter().chain(&of.part);
        let hash = words.fold(0_u64, |hash, word| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        (0..LOOKS).map(move |step| &self.pieces[(hash as usize).wrapping_add(step) % PIECES])
    }

    /// The words that were kept for a piece of code.
    pub fn find(&self, of: &CodeOf) -> Option<&[u64]> {
        for piece in self.places(of) {
            match piece.state.load(Ordering::Acquire) {
                FREE => return None,
                // SAFETY: it is known: no one writes it any more.
                KNOWN if unsafe { *piece.of.get() } == *of => {
                    // SAFETY: as above; the words are this piece's.
                    let (first, count) = unsafe { (*piece.first.get() as usize, *piece.count.get() as usize) };
                    // SAFETY: as above.
                    return unsafe { (&*self.calls.get()).get(first..first + count) };
                }
                _ => {}
            }
        }
        None
    }

    /// Keeps words for a piece of code, unless there is no room. Another process may do the same at the same time: then there are two.
    pub fn keep(&self, of: &CodeOf, words: &[u64]) {
        let Ok(count) = u32::try_from(words.len()) else { return };
        let take =
            |piece: &&Piece| piece.state.compare_exchange(FREE, MADE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let Some(piece) = self.places(of).find(take) else { return };
        let first = self.used.fetch_add(count, Ordering::Relaxed);
        if first as usize + words.len() > CALLS {
            // Nothing more is kept: what is there stays.
            self.used.store(CALLS as u32, Ordering::Relaxed);
            return;
        }
        // SAFETY: the piece and the words are this caller's until the piece is known.
        unsafe {
            let calls = self.calls.get().cast::<u64>().add(first as usize);
            core::ptr::copy_nonoverlapping(words.as_ptr(), calls, words.len());
            *piece.of.get() = *of;
            *piece.first.get() = first;
            *piece.count.get() = count;
        }
        piece.state.store(KNOWN, Ordering::Release);
    }
}
