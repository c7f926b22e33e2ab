//! Which instructions of a kernel the recorder must know.

/// What an instruction means to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing special.
    Plain,
    /// A near call: its store's address is the new stack pointer.
    Call,
    /// A near return: its load's address was the stack pointer.
    Return,
    /// Reads and writes a word at once: `lock ...`, or `xchg` with memory.
    Atomic,
    /// `movb $0, (%rdi)`: how a spin lock is released (`native_queued_spin_unlock`).
    ByteRelease,
    /// `mov disp(%rsi), %rsp`: in the task switch, the new task's stack pointer is loaded.
    LoadStackPointer,
    /// `in`, `out` and their string forms: talks to a device without touching memory.
    PortAccess,
}

/// Recognises an instruction by its bytes.
pub fn classify(bytes: &[u8]) -> Kind {
    let mut locked = false;
    let mut opcode = bytes;
    while let [prefix, rest @ ..] = opcode {
        match prefix {
            0xf0 => locked = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3 => {}
            _ => break,
        }
        opcode = rest;
    }
    let mut rex = 0;
    if let [prefix @ 0x40..=0x4f, rest @ ..] = opcode {
        rex = *prefix;
        opcode = rest;
    }
    match *opcode {
        _ if locked => Kind::Atomic,
        [0xe8, ..] => Kind::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Kind::Call,
        [0xc3, ..] | [0xc2, ..] => Kind::Return,
        [0x86 | 0x87, modrm, ..] if modrm >> 6 != 3 => Kind::Atomic,
        [0xc6, 0x07, 0x00] if rex == 0 => Kind::ByteRelease,
        [0x8b, 0x66 | 0xa6, ..] if rex == 0x48 => Kind::LoadStackPointer,
        [0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f, ..] => Kind::PortAccess,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_recognised_by_their_encoding() {
        for (bytes, kind) in [
            (&[0xe8, 1, 2, 3, 4][..], Kind::Call),
            (&[0x2e, 0xe8, 1, 2, 3, 4], Kind::Call), // cs call: a patched indirect call
            (&[0x41, 0xff, 0xd3], Kind::Call),
            (&[0xc3], Kind::Return),
            (&[0xf0, 0x0f, 0xb1, 0x17], Kind::Atomic), // lock cmpxchg %edx,(%rdi)
            (&[0xf0, 0x48, 0x0f, 0xc1, 0x33], Kind::Atomic), // lock xadd %rsi,(%rbx)
            (&[0x66, 0x87, 0x47, 0x02], Kind::Atomic), // xchg %ax,2(%rdi)
            (&[0x87, 0xc3], Kind::Plain),              // xchg %eax,%ebx
            (&[0xc6, 0x07, 0x00], Kind::ByteRelease),
            (&[0xc6, 0x07, 0x01], Kind::Plain),
            (&[0x41, 0xc6, 0x07, 0x00], Kind::Plain), // movb $0,(%r15)
            (&[0x48, 0x8b, 0xa6, 0x18, 0x15, 0, 0], Kind::LoadStackPointer),
            (&[0x4c, 0x8b, 0xa6, 0x18, 0x15, 0, 0], Kind::Plain),
            (&[0xee], Kind::PortAccess),
            (&[0xf3, 0x6e], Kind::PortAccess), // rep outsb
            (&[0x65, 0xff, 0x0d, 0, 0, 0, 0], Kind::Plain),
        ] {
            assert_eq!(classify(bytes), kind, "{bytes:x?}");
        }
        assert_eq!(classify(&[]), Kind::Plain);
    }
}
