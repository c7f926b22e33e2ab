//! A program as C writes it, with pointers to memory that was never written, handles that are used too long, and a second
//! thread: small enough for an interpreter that knows undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use scalefs_c::*;

const EINVAL: i64 = -22;

unsafe extern "C" fn count(_: *const c_char, length: usize, _: u64, names: *mut c_void) -> c_int {
    // SAFETY: the caller handed over a number.
    unsafe { *names.cast::<usize>() += usize::from(length > 0) };
    1
}

struct Pointers(*mut scalefs_instance, *mut scalefs_process);
// SAFETY: an instance and its processes may be used by several threads.
unsafe impl Sync for Pointers {}

#[test]
fn a_program_with_what_c_may_hand_over() {
    // SAFETY: handles are of the calls that give them out; buffers have room.
    unsafe {
        let instance = scalefs_create(2 << 20, 8, 2, 1);
        assert!(!instance.is_null(), "{:?}", CStr::from_ptr(scalefs_reason()));
        let thread = scalefs_attach(instance, 0);
        let process = scalefs_process_new(thread, 0, 0);
        let path = |path: &'static CStr| path.as_ptr();
        assert_eq!(scalefs_mkdir(thread, process, path(c"/d"), 0o755), 0);
        let flags = SCALEFS_READ | SCALEFS_WRITE | SCALEFS_CREATE;
        let fd = scalefs_open(thread, process, path(c"/d/f"), flags, 0o644);
        assert_eq!(fd, 0);
        // A constant buffer; then one that was never written; then sizes that cannot be.
        static WORDS: [u8; 11] = *b"hello, file";
        assert_eq!(scalefs_write(thread, process, fd, WORDS.as_ptr().cast(), WORDS.len()), 11);
        let mut bytes = [MaybeUninit::<u8>::uninit(); 16];
        let buffer = bytes.as_mut_ptr().cast::<c_void>();
        assert_eq!(scalefs_pread(thread, process, fd, buffer, 16, 7), 4);
        assert_eq!(bytes[..4].bytes_written(), b"file");
        assert_eq!(scalefs_pread(thread, process, fd, buffer, usize::MAX, 0), EINVAL);
        assert_eq!(scalefs_read(thread, process, fd, ptr::null_mut(), 1), EINVAL);
        assert_eq!(scalefs_link(thread, process, path(c"/d/f"), path(c"/g")), 0);
        assert_eq!(scalefs_symlink(thread, process, path(c"/d/f"), path(c"/s")), 0);
        assert_eq!(scalefs_rename(thread, process, path(c"/g"), path(c"/d/h"), SCALEFS_REPLACE), 0);
        // A struct of which only the size was written.
        let mut status = MaybeUninit::<scalefs_status>::uninit();
        (&raw mut (*status.as_mut_ptr()).struct_size).write(size_of::<scalefs_status>() as u32);
        assert_eq!(scalefs_fstatx(thread, process, fd, SCALEFS_ALL, status.as_mut_ptr()), 0);
        assert_eq!((*status.as_ptr()).link_count, 2);
        let (mut cookie, mut names) = (0, 0_usize);
        let told = scalefs_list(thread, process, path(c"/d"), &mut cookie, Some(count), (&raw mut names).cast());
        assert_eq!((told, names), (0, 4));
        let pointers = &Pointers(instance, process);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Pointers(instance, process) = pointers;
                let other = scalefs_attach(*instance, 1);
                let made = scalefs_open(other, *process, c"/t".as_ptr(), SCALEFS_CREATE | SCALEFS_WRITE, 0o600);
                assert_eq!(scalefs_write(other, *process, made, WORDS.as_ptr().cast(), 3), 3);
                assert_eq!(scalefs_close(other, *process, made), 0);
                scalefs_maintain(other);
                scalefs_detach(other);
            });
            assert_eq!(scalefs_pwrite(thread, process, fd, WORDS.as_ptr().cast(), 5, 0), 5);
            scalefs_maintain(thread);
        });
        assert_eq!(scalefs_unlink(thread, process, path(c"/t")), 0);
        assert_eq!(scalefs_close(thread, process, fd), 0);
        assert_eq!(scalefs_destroy(instance), -16);
        assert_eq!(scalefs_process_exit(thread, process), 0);
        // What is left of handles says that they were given up.
        assert_eq!(i64::from(scalefs_unlink(thread, process, path(c"/s"))), EINVAL);
        scalefs_detach(thread);
        assert_eq!(i64::from(scalefs_unlink(thread, process, path(c"/s"))), EINVAL);
        assert_eq!(scalefs_destroy(instance), 0);
    }
}

trait Written {
    /// The bytes, which were written.
    unsafe fn bytes_written(&self) -> Vec<u8>;
}

impl Written for [MaybeUninit<u8>] {
    unsafe fn bytes_written(&self) -> Vec<u8> {
        // SAFETY: the caller's promise.
        self.iter().map(|byte| unsafe { byte.assume_init() }).collect()
    }
}
