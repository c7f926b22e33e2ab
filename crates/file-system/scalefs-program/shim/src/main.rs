//! The loader and shim of `scalefs run`: a program that maps another one into its own process, so that system calls on one
//! directory are calls of ScaleFS.
//!
//! ```text
//! exec ─► start: the memory of the instance, the process of it, the program and its interpreter, dispatch ─► the program
//! program ─ syscall ─► entry (a rewritten site, or dispatch) ─► dispatch ─┬─► names, attributes, data, descriptors ─► ScaleFS
//!                                                                        ├─► processes, execute, mapped, signals
//!                                                                        └─► the kernel
//! ```
//! It runs without a library, on a stack per thread of its own, and finds its state by the register `gs`, which programs of
//! x86-64 do not use.
#![no_std]
#![no_main]

mod attributes;
mod constants;
mod credentials;
mod data;
mod decimal;
mod descriptors;
mod dispatch;
mod elf;
mod entry;
mod execute;
mod guarded;
mod home;
mod instance;
mod loaded;
mod locks;
mod mapped;
mod messages;
mod names;
mod numbers;
mod owners;
mod paths;
mod processes;
mod ready;
mod running;
mod shared;
mod signals;
mod sites;
mod stand_ins;
mod start;
mod system;
mod threads;

use core::alloc::{GlobalAlloc, Layout};
use core::fmt::Write;
use core::panic::PanicInfo;

/// Nothing here takes memory from a heap; a part of a crate that could is linked all the same.
struct NoHeap;

// SAFETY: it gives nothing.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;

/// Where programs say their errors.
struct Errors;

impl Write for Errors {
    fn write_str(&mut self, words: &str) -> core::fmt::Result {
        system::say(&[words]);
        Ok(())
    }
}

#[panic_handler]
fn panic(panic: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Errors, "scalefs: a fault of ours: {panic}");
    system::die(&["the process ends"]);
}

/// The library of the language names it, and never calls it: a panic ends the process.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    system::die(&["unwinding"]);
}
