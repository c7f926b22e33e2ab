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

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if size_for(layout).is_none() {
            // SAFETY: the caller's promise. New pages are zero already, and none is touched here.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: new, and of that size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that a layout has room for it.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_bytes, layout.align()) };
        match (size_for(layout), size_for(wanted)) {
            // SAFETY: the caller's promise; it came from there and stays there, mostly without a copy.
            (None, None) => unsafe { System.realloc(block, layout, new_bytes) },
            (old, new) if old == new => block,
            // SAFETY: the new block is nobody else's, and as much is copied as both have room for.
            _ => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size().min(new_bytes));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
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
    use std::thread;

    const LARGE: usize = SMALLEST << SIZES;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 16).unwrap()
    }

    fn get(memory: &impl GlobalAlloc, bytes: usize) -> usize {
        // SAFETY: of more than 0 bytes, and written within them.
        unsafe {
            let block = memory.alloc(layout(bytes));
            block.write_bytes(7, bytes);
            block.expose_provenance()
        }
    }

    fn give_back(memory: &impl GlobalAlloc, block: usize, bytes: usize) {
        // SAFETY: each test gives back what it got, once.
        unsafe { memory.dealloc(std::ptr::with_exposed_provenance_mut(block), layout(bytes)) }
    }

    fn lines(block: usize, bytes: usize) -> impl Iterator<Item = usize> {
        block / 64..=(block + bytes - 1) / 64
    }

    /// How many lines two threads have in common. One gets blocks of all sizes up to some, and each second of them is
    /// given back by another thread, which gets as many of its own.
    fn lines_of_two(memory: &(impl GlobalAlloc + Sync)) -> usize {
        let sizes = || (1..300).chain([1001, 5000, 20_001, LARGE / 2]);
        let got: Vec<(usize, usize)> = sizes().map(|bytes| (get(memory, bytes), bytes)).collect();
        let (kept, given): (Vec<_>, Vec<_>) = got.into_iter().partition(|(_, bytes)| bytes % 2 == 0);
        let all_lines = |blocks: &[(usize, usize)]| -> BTreeSet<usize> {
            blocks.iter().flat_map(|&(block, bytes)| lines(block, bytes)).collect()
        };
        let theirs = thread::scope(|scope| {
            let other = scope.spawn(|| {
                given.iter().for_each(|&(block, bytes)| give_back(memory, block, bytes));
                let new: Vec<_> = sizes().map(|bytes| (get(memory, bytes), bytes)).collect();
                let lines = all_lines(&new);
                new.into_iter().for_each(|(block, bytes)| give_back(memory, block, bytes));
                lines
            });
            other.join().unwrap()
        });
        let more: Vec<_> = sizes().map(|bytes| (get(memory, bytes), bytes)).collect();
        let mine = &all_lines(&kept) | &all_lines(&more);
        kept.into_iter().chain(more).for_each(|(block, bytes)| give_back(memory, block, bytes));
        mine.intersection(&theirs).count()
    }

    #[test]
    fn no_line_is_two_threads() {
        assert_eq!(lines_of_two(&OwnMemory), 0, "a line has blocks of two threads");
        assert_ne!(lines_of_two(&System), 0, "so the test sees what it looks for");
    }

    #[test]
    fn what_was_given_back_comes_again_to_who_gave_it() {
        let block = get(&OwnMemory, 160);
        let again = thread::spawn(move || {
            give_back(&OwnMemory, block, 160);
            get(&OwnMemory, 136)
        });
        assert_eq!(again.join().unwrap(), block);
        assert_ne!(get(&OwnMemory, 160), block, "it is the other thread's now");
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

    #[test]
    fn zeroed_memory_is_zero_also_where_something_was() {
        for bytes in [40, 4000, LARGE / 2, LARGE] {
            let block = get(&OwnMemory, bytes);
            give_back(&OwnMemory, block, bytes);
            // SAFETY: read within its size, and given back.
            unsafe {
                let zeroed = OwnMemory.alloc_zeroed(layout(bytes));
                assert!(std::slice::from_raw_parts(zeroed, bytes).iter().all(|byte| *byte == 0), "{bytes} bytes");
                OwnMemory.dealloc(zeroed, layout(bytes));
            }
        }
    }

    /// Pages of such a range that are in memory.
    fn pages_in_memory(block: *mut u8, bytes: usize) -> usize {
        let first = block.map_addr(|address| address.next_multiple_of(4096));
        let mut pages = vec![0_u8; bytes / 4096 - 1];
        // SAFETY: the range is mapped, and has a byte of the vector for each page.
        let told = unsafe { libc::mincore(first.cast(), pages.len() * 4096, pages.as_mut_ptr()) };
        assert_eq!(told, 0);
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn large_memory_that_is_zero_is_not_touched() {
        const BYTES: usize = 64 << 20;
        // SAFETY: only asked for, and given back.
        unsafe {
            let block = OwnMemory.alloc_zeroed(layout(BYTES));
            assert!(pages_in_memory(block, BYTES) < 1024, "pages were touched");
            OwnMemory.dealloc(block, layout(BYTES));
        }
    }

    #[test]
    fn what_grows_and_shrinks_keeps_its_bytes() {
        let steps = [(10, 64), (64, 65), (65, 3000), (3000, LARGE), (LARGE, 5 * LARGE), (5 * LARGE, 100), (100, 20)];
        let mut block: *mut u8 = std::ptr::with_exposed_provenance_mut(get(&OwnMemory, steps[0].0));
        for (old, new) in steps {
            // SAFETY: it has the old size, and then the new one.
            unsafe {
                block = OwnMemory.realloc(block, layout(old), new);
                let bytes = std::slice::from_raw_parts_mut(block, new);
                assert!(bytes[..old.min(new)].iter().all(|byte| *byte == 7), "{old} to {new} bytes");
                bytes.fill(7);
            }
        }
        give_back(&OwnMemory, block.expose_provenance(), steps[steps.len() - 1].1);
    }
}
