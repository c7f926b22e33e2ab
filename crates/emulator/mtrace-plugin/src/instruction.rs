//! Which x86-64 instructions the tracer must know: those that mark windows, call and return, leave the kernel, and
//! exchange the stack pointer in the kernel's task switch. Everything else is plain.

use crate::operand::Operand;

/// What an instruction means to the tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing special.
    Plain,
    /// One that QEMU may carry out in a function of its own, which accesses memory.
    Helped,
    /// A near call: its store is the return address, so the store's address is the new stack pointer.
    Call,
    /// A near return: its load is the return address.
    Return,
    /// `iretq`: the innermost exception or interrupt ends.
    InterruptReturn,
    /// `sysretq`: the system call ends.
    SystemCallReturn,
    /// `prefetchw`: takes the line of its operand from the other cores, which QEMU makes no access of.
    PrefetchForWrite(Operand),
    /// A marker with its code.
    Marker(Marker),
    /// `mov %rax, 0x4d545216(%rdi)`: a program's memory functions tell of a block, in the words that this stores to.
    BlockNote,
    /// `mov %rsp, disp(%rdi)`: in the task switch, the old task's stack pointer is saved.
    SaveStackPointer,
    /// `mov disp(%rsi), %rsp`: in the task switch, the new task's stack pointer is loaded.
    LoadStackPointer,
}

/// The markers by which the program that runs the tests tells what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Marker {
    /// A window begins: forget what was recorded.
    WindowOpen = 0x10,
    /// One of the window's calls begins on this core: record on all cores.
    CallBegin = 0x11,
    /// The call ended: stop recording.
    CallEnd = 0x12,
    /// The window ended: analyse and write.
    WindowClose = 0x13,
    /// A batch ended: everything written must be readable.
    Flush = 0x14,
    /// The executing task is one of the test's.
    Thread = 0x15,
    /// A step of set-up or observation begins on this core: follow calls.
    StepBegin = 0x16,
    /// The step ended.
    StepEnd = 0x17,
}

impl Marker {
    const ALL: [Marker; 8] = [
        Marker::WindowOpen,
        Marker::CallBegin,
        Marker::CallEnd,
        Marker::WindowClose,
        Marker::Flush,
        Marker::Thread,
        Marker::StepBegin,
        Marker::StepEnd,
    ];

    /// The marker of that code.
    pub fn from_code(code: u8) -> Option<Marker> {
        Self::ALL.into_iter().find(|marker| *marker as u8 == code)
    }
}

/// Recognises an instruction by its bytes.
pub fn classify(bytes: &[u8]) -> Kind {
    if let [0x0f, 0x1f, 0x84, 0x00, code, 0x52, 0x54, 0x4d] = *bytes {
        return Marker::from_code(code).map_or(Kind::Plain, Kind::Marker);
    }
    if let [0x48, 0x89, 0x87, 0x16, 0x52, 0x54, 0x4d] = *bytes {
        return Kind::BlockNote;
    }
    // Legacy prefixes (segment: padding of `call` in Linux; f2: MPX; f3: `rep ret`; 3e: notrack), then one REX prefix.
    let legacy = bytes.iter().take_while(|byte| matches!(byte, 0x2e | 0x36 | 0x3e | 0x26 | 0x64..=0x67 | 0xf2 | 0xf3));
    let (legacy, mut opcode) = bytes.split_at(legacy.count());
    let mut rex = 0;
    if let [prefix @ 0x40..=0x4f, rest @ ..] = opcode {
        rex = *prefix;
        opcode = rest;
    }
    let wide = rex & 0x08 != 0;
    match *opcode {
        [0xe8, ..] => Kind::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Kind::Call,
        [0xc3, ..] | [0xc2, ..] => Kind::Return,
        [0xcf, ..] if wide => Kind::InterruptReturn,
        [0x0f, 0x07, ..] if wide => Kind::SystemCallReturn,
        [0x89, 0x67 | 0xa7, ..] if rex == 0x48 => Kind::SaveStackPointer,
        [0x8b, 0x66 | 0xa6, ..] if rex == 0x48 => Kind::LoadStackPointer,
        [0x0f, 0x0d, modrm, ..] if (modrm >> 3) & 7 == 1 => {
            Operand::parse(legacy, rex, &opcode[2..], bytes.len()).map_or(Kind::Plain, Kind::PrefetchForWrite)
        }
        // Loads, stores, conditional moves and the like that are translated as such.
        [0x0f, 0x10 | 0x11 | 0x1f | 0x28 | 0x29 | 0x40..=0x4f | 0x6e | 0x6f | 0x7e | 0x7f | 0x80..=0x9f, ..]
        | [0x0f, 0xb6 | 0xb7 | 0xbe | 0xbf | 0xd6, ..] => Kind::Plain,
        // The other opcodes of two bytes, atomic ones, exchanges, floating point, vectors.
        [0x0f | 0xf0 | 0x86 | 0x87 | 0xd8..=0xdf | 0xc4 | 0xc5 | 0x62, ..] => Kind::Helped,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instructions_are_recognised_by_their_encoding() {
        for (bytes, kind) in [
            (&[0xe8, 1, 2, 3, 4][..], Kind::Call),
            (&[0x2e, 0xe8, 1, 2, 3, 4], Kind::Call), // cs call: a patched indirect call
            (&[0xff, 0xd0], Kind::Call),             // call *%rax
            (&[0x41, 0xff, 0xd3], Kind::Call),       // call *%r11
            (&[0x3e, 0xff, 0x55, 0x08], Kind::Call), // notrack call *8(%rbp)
            (&[0xff, 0x25, 0, 0, 0, 0], Kind::Plain), // jmp *0(%rip)
            (&[0xff, 0xc0], Kind::Plain),            // inc %eax
            (&[0xff, 0x1c, 0x24], Kind::Plain),      // far call
            (&[0xc3], Kind::Return),
            (&[0xf3, 0xc3], Kind::Return),
            (&[0xc2, 8, 0], Kind::Return),
            (&[0x48, 0xcf], Kind::InterruptReturn),
            (&[0xcf], Kind::Plain), // iret of 32-bit code
            (&[0x48, 0x0f, 0x07], Kind::SystemCallReturn),
            (&[0x48, 0x89, 0xa7, 0x18, 0x14, 0, 0], Kind::SaveStackPointer),
            (&[0x48, 0x8b, 0xa6, 0x18, 0x14, 0, 0], Kind::LoadStackPointer),
            (&[0x4c, 0x8b, 0xa6, 0x18, 0x14, 0, 0], Kind::Plain), // mov disp(%rsi), %r12
            (&[0x0f, 0x1f, 0x84, 0x00, 0x13, 0x52, 0x54, 0x4d], Kind::Marker(Marker::WindowClose)),
            (&[0x48, 0x89, 0x87, 0x16, 0x52, 0x54, 0x4d], Kind::BlockNote),
            (&[0x48, 0x89, 0x87, 0x17, 0x52, 0x54, 0x4d], Kind::Plain), // mov %rax, disp(%rdi)
            (&[0x0f, 0x1f, 0x84, 0x00, 0x99, 0x52, 0x54, 0x4d], Kind::Plain),
            (&[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0], Kind::Plain), // an ordinary long nop
            (&[0xf0, 0x0f, 0xb1, 0x0f], Kind::Helped),            // lock cmpxchg %ecx, (%rdi)
            (&[0x3e, 0xf0, 0x48, 0xff, 0x07], Kind::Helped),      // lock incq (%rdi)
            (&[0x48, 0x87, 0x07], Kind::Helped),                  // xchg %rax, (%rdi)
            (&[0x0f, 0xae, 0x24, 0x24], Kind::Helped),            // xsave (%rsp)
            (&[0xdb, 0x2f], Kind::Helped),                        // fldt (%rdi)
            (&[0x66, 0x0f, 0x74, 0x07], Kind::Helped),            // pcmpeqb (%rdi), %xmm0
            (&[0xc5, 0xfd, 0x6f, 0x07], Kind::Helped),            // vmovdqa (%rdi), %ymm0
            (&[0xf3, 0x0f, 0x6f, 0x07], Kind::Plain),             // movdqu (%rdi), %xmm0
            (&[0x0f, 0xb6, 0x07], Kind::Plain),                   // movzbl (%rdi), %eax
            (&[0x48, 0x8b, 0x07], Kind::Plain),                   // mov (%rdi), %rax
            (&[], Kind::Plain),
        ] {
            assert_eq!(classify(bytes), kind, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_some_instruction(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            let _ = classify(&bytes);
        }
    }
}
