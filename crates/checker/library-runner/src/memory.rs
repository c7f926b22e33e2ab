//! The memory functions of the C library, for everything that the library under test loads: each tells the tracer what it
//! gave, and to whom is what the tracer knows itself. Memory comes from the C library's allocator, or, with
//! [`use_private_memory`], from one that is private to each thread ([`crate::private`]), so that what is shared is the
//! library's own.
//!
//! **What the tracer is informed of** stands in a page of the thread: size and address of a block. One recognisable
//! store of the size into that page is the mark; the tracer, in the same address space, reads the address after it. A
//! size of 0 says that the block is given back.
//!
//! Nothing of the runner is in it: its own memory is [`dlmalloc`]'s, which takes it from the system.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::private;

#[global_allocator]
static OWN: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Largest block that a library may ask for: more would be all memory.
const LARGEST_BLOCK_BYTES: usize = 1 << 30;
/// Most that one thread may have taken more than it gave back, for the same reason.
const MOST_BYTES: isize = 2 << 30;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
}

/// Atomic, set before any library is loaded: whether memory is private to each thread.
static PRIVATE: AtomicBool = AtomicBool::new(false);

/// From now on, each thread has memory of its own. To be called before a library is loaded.
pub fn use_private_memory() {
    PRIVATE.store(true, Ordering::Relaxed);
}

fn is_private() -> bool {
    PRIVATE.load(Ordering::Relaxed)
}

#[repr(C, align(128))]
struct Note {
    size: UnsafeCell<u64>,
    address: UnsafeCell<u64>,
}

thread_local! {
    /// Bytes that the thread has taken more than it gave back.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    static NOTE: Note = const { Note { size: UnsafeCell::new(0), address: UnsafeCell::new(0) } };
}

/// Where the mark's store goes, relative to its base register: "RTM" after a code, as in the other marks.
const MARK_DISPLACEMENT: usize = 0x4d54_5216;

#[inline(always)]
fn note(address: usize, size: usize) {
    NOTE.with(|note| {
        // SAFETY: the thread's own words. The store is `mov %rax, 0x4d545216(%rdi)`, whose bytes the tracer knows: it
        // writes the size into the note.
        unsafe {
            *note.address.get() = address as u64;
            core::arch::asm!(
                ".byte 0x48,0x89,0x87,0x16,0x52,0x54,0x4d",
                in("rax") size as u64,
                in("rdi") (note.size.get() as usize).wrapping_sub(MARK_DISPLACEMENT),
                options(nostack, preserves_flags)
            );
        }
    });
}

#[inline(always)]
fn given(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null() {
        // SAFETY: a block that was just given.
        count(unsafe { malloc_usable_size(block) }.cast_signed());
        note(block as usize, size.max(1));
    }
    block
}

/// Counts what the thread has taken, or gives back.
#[inline(always)]
fn count(bytes: isize) {
    TAKEN.set(TAKEN.get().wrapping_add(bytes));
}

/// Whether the thread may have this many bytes.
#[inline(always)]
fn may_take(size: usize) -> bool {
    size <= LARGEST_BLOCK_BYTES && TAKEN.get().saturating_add(size.cast_signed()) <= MOST_BYTES
}

fn too_much() -> *mut c_void {
    // SAFETY: the thread's own error number.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    std::ptr::null_mut()
}

/// See malloc(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if !may_take(size) {
        return too_much();
    }
    // SAFETY: as the caller promises.
    given(if is_private() { private::allocate(size, 16) } else { unsafe { __libc_malloc(size) } }, size)
}

/// See calloc(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size).filter(|bytes| may_take(*bytes)) else {
        return too_much();
    };
    let block = if is_private() {
        let block = private::allocate(bytes, 16);
        if !block.is_null() {
            // SAFETY: this many bytes were just given.
            unsafe { std::ptr::write_bytes(block.cast::<u8>(), 0, bytes) };
        }
        block
    } else {
        // SAFETY: as the caller promises.
        unsafe { __libc_calloc(count, size) }
    };
    given(block, bytes)
}

/// See realloc(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if !may_take(size) {
        return too_much();
    }
    if !block.is_null() {
        note(block as usize, 0);
        // SAFETY: one of ours, as the caller promises.
        count(-unsafe { malloc_usable_size(block) }.cast_signed());
    }
    if !is_private() {
        // SAFETY: as the caller promises.
        return given(unsafe { __libc_realloc(block, size) }, size);
    }
    let new = private::allocate(size, 16);
    if !block.is_null() && !new.is_null() {
        // SAFETY: the old block is one of ours and has at least this many bytes; the new one is apart from it.
        unsafe {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), size.min(private::size_of(block)));
            private::give_back(block);
        }
    }
    given(new, size)
}

/// See free(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    note(block as usize, 0);
    // SAFETY: as the caller promises.
    count(-unsafe { malloc_usable_size(block) }.cast_signed());
    // SAFETY: as the caller promises.
    unsafe { if is_private() { private::give_back(block) } else { __libc_free(block) } }
}

/// See memalign(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    if !may_take(size) || alignment > LARGEST_BLOCK_BYTES {
        return too_much();
    }
    let block = if is_private() {
        private::allocate(size, alignment)
    } else {
        // SAFETY: as the caller promises.
        unsafe { __libc_memalign(alignment, size) }
    };
    given(block, size)
}

/// See aligned_alloc(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { memalign(alignment, size) }
}

/// See posix_memalign(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    // SAFETY: as the caller promises.
    unsafe {
        let block = memalign(alignment, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        *place = block;
    }
    0
}

/// See reallocarray(3).
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the caller promises.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => too_much(),
    }
}

/// See malloc_usable_size(3). Says no more than a block must have, so that all of it is what the tracer was informed
/// of.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if is_private() {
        // SAFETY: as the caller promises.
        return unsafe { private::size_of(block) };
    }
    // SAFETY: the word in front of a block of glibc's holds the chunk's size with three flags (malloc/malloc.c, "chunk").
    unsafe { (*block.cast::<usize>().sub(1) & !7) - 2 * size_of::<usize>() }
}
