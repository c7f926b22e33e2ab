//! Heap memory of each thread for itself: no line of it, and nothing that leads to it, is another thread's.
//!
//! Transactions keep what they have seen in ordinary memory, so calls under test allocate. The C library's allocator would
//! show in each of them: a flag that all its threads read lies in one line with the first thread's heap. Here a block is a
//! power of two of at least a line, from lists of the thread; who gives it back keeps it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

/// Bytes of the smallest blocks: a line.
const SMALLEST: usize = 64;
/// Bytes of the smallest blocks, doubled so often less one, are the largest; what is larger is the C library's.
const SIZES: usize = 10;
/// Memory is taken from the system by so many bytes.
const CHUNK_BYTES: usize = 1 << 20;

thread_local! {
    /// Blocks that are free, by size; each begins with the address of the next one.
    static FREE: [Cell<*mut u8>; SIZES] = const { [const { Cell::new(null_mut()) }; SIZES] };
    /// Memory that no block had yet: where it begins, and how many bytes it has.
    static REST: Cell<(*mut u8, usize)> = const { Cell::new((null_mut(), 0)) };
}

/// See the module's head.
pub struct OwnMemory;

/// The number of the smallest size that fits, and the size in bytes; none if the largest is too small.
fn size_for(layout: Layout) -> Option<(usize, usize)> {
    let bytes = layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()?;
    let number = (bytes / SMALLEST).trailing_zeros() as usize;
    (number < SIZES).then_some((number, bytes))
}

/// A block that nobody had yet, at a multiple of its size; null without memory.
fn carve(bytes: usize) -> *mut u8 {
    let (mut start, mut length) = REST.get();
    let mut gap = start.align_offset(bytes);
    if length < gap.saturating_add(bytes) {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, wherever there is room.
        let chunk = unsafe { libc::mmap(null_mut(), CHUNK_BYTES, access, kind, -1, 0) };
        if chunk == libc::MAP_FAILED {
            return null_mut();
        }
        (start, length) = (chunk.cast(), CHUNK_BYTES);
        gap = start.align_offset(bytes);
    }
    let block = start.wrapping_add(gap);
    REST.set((block.wrapping_add(bytes), length - gap - bytes));
    block
}

// SAFETY: a block is handed out to one caller at a time: it is carved once, then in the list of the thread that gave it
// back. It has the size and alignment of its layout, which tells its list again. Lists are a thread's own; memory is
// never returned to the system, so a block outlives its thread.
unsafe impl GlobalAlloc for OwnMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((number, bytes)) = size_for(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc(layout) };
        };
        FREE.with(|free| {
            let block = free[number].get();
            if block.is_null() {
                return carve(bytes);
            }
            // SAFETY: a free block of this list begins with the address of the next one.
            free[number].set(unsafe { block.cast::<*mut u8>().read() });
            block
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some((number, _)) = size_for(layout) else {
            // SAFETY: the caller's promise; it came from there.
            return unsafe { System.dealloc(block, layout) };
        };
        FREE.with(|free| {
            // SAFETY: the block is nobody's now, aligned, and larger than an address.
            unsafe { block.cast::<*mut u8>().write(free[number].get()) };
            free[number].set(block);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn lines_of_many() -> (BTreeSet<usize>, Vec<Vec<u8>>) {
        let kept: Vec<Vec<u8>> = (1..600).map(|bytes| vec![7; bytes]).collect();
        let lines = |bytes: &Vec<u8>| (bytes.as_ptr() as usize / 64)..=(bytes.as_ptr() as usize + bytes.len() - 1) / 64;
        (kept.iter().flat_map(lines).collect(), kept)
    }

    #[test]
    fn no_line_is_two_threads() {
        let (mine, kept) = lines_of_many();
        let (theirs, _) = std::thread::spawn(lines_of_many).join().unwrap();
        assert!(mine.is_disjoint(&theirs), "a line has blocks of two threads");
        assert!(kept.iter().flatten().all(|byte| *byte == 7));
    }

    #[test]
    fn what_was_given_back_comes_again() {
        let first = Box::new([1_u64; 20]);
        let address = &raw const *first as usize;
        drop(first);
        assert_eq!(&raw const *Box::new([2_u64; 17]) as usize, address);
    }

    #[test]
    fn blocks_are_aligned_and_large_enough() {
        for (size, align) in [(1, 1), (64, 64), (65, 8), (100, 4096), (SMALLEST << (SIZES - 1), 64), (1 << 20, 64)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: written within its size, and given back with its layout.
            unsafe {
                let block = OwnMemory.alloc(layout);
                assert_eq!(block.align_offset(align), 0);
                block.write_bytes(3, size);
                OwnMemory.dealloc(block, layout);
            }
        }
    }
}
