//! The markers by which a program tells the tracer of windows and calls (docs/reference/trace-format.md).

pub const WINDOW_OPEN: u8 = 0x10;
pub const CALL_BEGIN: u8 = 0x11;
pub const CALL_END: u8 = 0x12;
pub const WINDOW_CLOSE: u8 = 0x13;
pub const FLUSH: u8 = 0x14;
pub const THREAD: u8 = 0x15;

/// A marker: an eight-byte no-operation with a code in its displacement.
macro_rules! mark {
    ($code:expr) => {
        // SAFETY: the instruction does nothing; that the compiler may not move memory accesses over it is wanted.
        unsafe { ::std::arch::asm!(".byte 0x0f, 0x1f, 0x84, 0x00, {code}, 0x52, 0x54, 0x4d", code = const $code) }
    };
}
pub(crate) use mark;
