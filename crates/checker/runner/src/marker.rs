//! Marks in the instruction stream that tell the tracer where a window and its calls begin and end.
//!
//! A mark is a NOP of 8 bytes, `0f 1f 84 00 <code> 52 54 4d` (`nop dword [rax+rax+disp32]`), which the tracer recognises
//! when it translates a block. It costs one instruction and touches no memory, on hardware and under an emulator alike.

/// Emits one mark; a macro, since the code is part of the instruction.
macro_rules! mark {
    ($code:literal) => {
        // SAFETY: the instruction is a NOP: it reads and writes nothing and leaves flags and registers alone. It is not
        // declared `nomem`, so that the compiler moves no access of memory across it.
        unsafe {
            core::arch::asm!(
                concat!(".byte 0x0f,0x1f,0x84,0x00,", $code, ",0x52,0x54,0x4d"),
                options(nostack, preserves_flags)
            )
        }
    };
}

/// The bytes of the mark in front of a call, for the assembly that makes the call.
#[macro_export]
macro_rules! call_begin_bytes {
    () => {
        ".byte 0x0f,0x1f,0x84,0x00,0x11,0x52,0x54,0x4d"
    };
}

/// The bytes of the mark after a call, for the assembly that makes the call.
#[macro_export]
macro_rules! call_end_bytes {
    () => {
        ".byte 0x0f,0x1f,0x84,0x00,0x12,0x52,0x54,0x4d"
    };
}

/// The coordinator starts a window: what was recorded before does not belong to it.
#[inline(always)]
pub fn window_open() {
    mark!("0x10");
}

/// A worker is about to make a call under test.
#[inline(always)]
pub fn call_begin() {
    mark!("0x11");
}

/// The call under test has returned.
#[inline(always)]
pub fn call_end() {
    mark!("0x12");
}

/// The coordinator ends a window: it is analysed now.
#[inline(always)]
pub fn window_close() {
    mark!("0x13");
}

/// The coordinator ends a batch: what was traced so far must be readable.
#[inline(always)]
pub fn flush() {
    mark!("0x14");
}

/// An actor has arrived on the core where it stays; or a program's thread is about to start another one.
#[inline(always)]
pub fn thread() {
    mark!("0x15");
}

/// An actor begins a step of set-up or observation, or what else the implementation does for the test: nothing is recorded,
/// but whose memory it allocates is known by its calls. A thread that makes steps reaches what is under test by
/// address, after the mark of a call as after this one: what follows a mark directly may run as it ran before.
#[inline(always)]
pub fn step_begin() {
    mark!("0x16");
}

/// The step ended.
#[inline(always)]
pub fn step_end() {
    mark!("0x17");
}
