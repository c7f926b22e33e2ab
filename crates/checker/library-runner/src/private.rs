//! Memory that is private to each thread: two threads never get blocks that share a line, and a block belongs to the
//! thread that gives it back. So nothing that this allocator does is shared, and what a library shares with it is its
//! own.
//!
//! Blocks of up to 32 KiB come in sizes of whole lines, a power of two or one and a half of it, from chunks of 256 KiB that
//! hold one size each; the size stands at the chunk's start, which is never written again. Larger blocks are mappings.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;

const LINE_BYTES: usize = 64;
const CHUNK_BYTES: usize = 256 << 10;
/// What stands in front of a chunk's blocks, or of a large block: as far as its alignment.
const HEADER_BYTES: usize = 128;
const LARGEST_BYTES: usize = 32 << 10;
const SIZES: usize = 20;

/// Bytes of the blocks of a class: 64, 96 rounded to lines, 128, 192, 256, ...
const fn class_bytes(class: usize) -> usize {
    let power = LINE_BYTES << (class / 2);
    let bytes = if class.is_multiple_of(2) { power } else { power + power / 2 };
    bytes.div_ceil(LINE_BYTES) * LINE_BYTES
}

/// What stands at the start of a chunk, and at the last multiple of [`CHUNK_BYTES`] in front of a large block.
struct Header {
    /// Bytes of each block, and its class; [`SIZES`] for a large one.
    block_bytes: usize,
    class: usize,
}

#[derive(Clone, Copy)]
struct Class {
    /// Blocks that were given back; the first word of each leads to the next.
    free: *mut *mut c_void,
    /// The rest of the present chunk.
    next: usize,
    end: usize,
}

struct Thread(UnsafeCell<[Class; SIZES]>);

const NO_CLASS: Class = Class { free: ptr::null_mut(), next: 0, end: 0 };

thread_local! {
    static THREAD: Thread = const { Thread(UnsafeCell::new([NO_CLASS; SIZES])) };
}

/// A mapping of `bytes`, at a multiple of [`CHUNK_BYTES`]; null if there is no memory.
fn map(bytes: usize) -> usize {
    let whole = bytes + CHUNK_BYTES;
    // SAFETY: a new mapping.
    let mapped = unsafe {
        libc::mmap(
            ptr::null_mut(),
            whole,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED { 0 } else { (mapped as usize).next_multiple_of(CHUNK_BYTES) }
}

/// A block of `size` bytes at a multiple of `alignment`, a power of two; null if there is no memory, or the alignment is
/// larger than a quarter of a chunk.
pub fn allocate(size: usize, alignment: usize) -> *mut c_void {
    if !alignment.is_power_of_two() || alignment > CHUNK_BYTES / 4 {
        return ptr::null_mut();
    }
    // A block of a class is as aligned as its size is.
    let wanted = |class: &usize| class_bytes(*class) >= size && class_bytes(*class).is_multiple_of(alignment);
    let Some(class) = (0..SIZES).find(wanted).filter(|class| class_bytes(*class) <= LARGEST_BYTES) else {
        return allocate_large(size, alignment);
    };
    THREAD.with(|thread| {
        // SAFETY: the thread's own, and nothing below comes back here.
        let class_state = unsafe { &mut (&mut *thread.0.get())[class] };
        if !class_state.free.is_null() {
            let block = class_state.free;
            // SAFETY: a block of ours that no one uses: its first word leads to the next.
            class_state.free = unsafe { (*block).cast() };
            return block.cast();
        }
        let block_bytes = class_bytes(class);
        if class_state.next + block_bytes > class_state.end {
            let chunk = map(CHUNK_BYTES);
            if chunk == 0 {
                return ptr::null_mut();
            }
            // SAFETY: the chunk was just mapped.
            unsafe { ptr::with_exposed_provenance_mut::<Header>(chunk).write(Header { block_bytes, class }) };
            class_state.next = (chunk + HEADER_BYTES).next_multiple_of(alignment_of(block_bytes));
            class_state.end = chunk + CHUNK_BYTES;
        }
        let block = class_state.next;
        class_state.next += block_bytes;
        ptr::with_exposed_provenance_mut(block)
    })
}

/// The largest power of two that divides a size.
fn alignment_of(block_bytes: usize) -> usize {
    1 << block_bytes.trailing_zeros()
}

fn allocate_large(size: usize, alignment: usize) -> *mut c_void {
    let start = HEADER_BYTES.next_multiple_of(alignment.max(LINE_BYTES));
    let base = map(start + size);
    if base == 0 {
        return ptr::null_mut();
    }
    // SAFETY: just mapped.
    unsafe {
        ptr::with_exposed_provenance_mut::<Header>(base).write(Header { block_bytes: start + size, class: SIZES });
    }
    ptr::with_exposed_provenance_mut(base + start)
}

fn header(block: *mut c_void) -> *const Header {
    ptr::with_exposed_provenance((block as usize - 1) & !(CHUNK_BYTES - 1))
}

/// Bytes that a block has.
///
/// # Safety
/// [`allocate`] gave it.
pub unsafe fn size_of(block: *mut c_void) -> usize {
    // SAFETY: what `allocate` gave has a header at the multiple of a chunk's size in front of it.
    let Header { block_bytes, class } = unsafe { header(block).read() };
    if class == SIZES { block_bytes - (block as usize - header(block) as usize) } else { block_bytes }
}

/// Takes a block back: it is the calling thread's now.
///
/// # Safety
/// [`allocate`] gave it, and no one uses it any more.
pub unsafe fn give_back(block: *mut c_void) {
    // SAFETY: as in `size_of`.
    let Header { block_bytes, class } = unsafe { header(block).read() };
    if class == SIZES {
        // SAFETY: the pages from the header on were mapped by `allocate_large`, and no one uses them any more. What the
        // mapping had in front, to be aligned, stays reserved.
        unsafe { libc::munmap(header(block).cast_mut().cast(), block_bytes) };
        return;
    }
    THREAD.with(|thread| {
        // SAFETY: the thread's own; the block is no one else's.
        unsafe {
            let class_state = &mut (&mut *thread.0.get())[class];
            block.cast::<*mut c_void>().write(class_state.free.cast());
            class_state.free = block.cast();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart_aligned_and_come_back() {
        let sizes = [1, 16, 64, 65, 100, 200, 500, 3000, 30_000, 32 << 10, 100_000, 1 << 20];
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for size in sizes {
            for alignment in [16, 64, 256, 4096] {
                let block = allocate(size, alignment);
                assert!(!block.is_null() && (block as usize).is_multiple_of(alignment), "{size} {alignment}");
                // SAFETY: just allocated.
                unsafe {
                    assert!(size_of(block) >= size, "{size} {alignment}");
                    std::ptr::write_bytes(block.cast::<u8>(), 0xa5, size);
                }
                blocks.push((block as usize, size));
            }
        }
        blocks.sort_unstable();
        assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        for (block, size) in blocks {
            let block: *mut c_void = ptr::with_exposed_provenance_mut(block);
            // SAFETY: allocated above.
            unsafe {
                assert_eq!(*block.cast::<u8>().add(size - 1), 0xa5);
                give_back(block);
            }
        }
        let first = allocate(100, 16);
        // SAFETY: just allocated.
        unsafe { give_back(first) };
        assert_eq!(allocate(120, 16), first);
    }

    #[test]
    fn what_another_thread_gives_back_is_its_own_then() {
        let block = allocate(64, 16) as usize;
        let again = std::thread::spawn(move || {
            // SAFETY: allocated above, used by no one.
            unsafe { give_back(ptr::with_exposed_provenance_mut(block)) };
            allocate(64, 16) as usize
        });
        assert_eq!(again.join().unwrap(), block);
    }
}
