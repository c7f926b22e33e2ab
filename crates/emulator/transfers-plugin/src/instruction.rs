//! Which instructions the counter must know: marks, calls and returns, and those that read and write at once.

/// What an instruction means to the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing special.
    Plain,
    /// A near call: its store's address is the new stack pointer.
    Call,
    /// A near return: its load's address was the stack pointer.
    Return,
    /// Reads and writes memory atomically: it wants the line alone before it reads.
    Atomic,
    /// `mov %rax, 0x4d545218(%rdi)`: a mark ([`crate::mark`]).
    Mark,
}

/// Recognises an instruction by its bytes.
pub fn classify(bytes: &[u8]) -> Kind {
    if let [0x48, 0x89, 0x87, 0x18, 0x52, 0x54, 0x4d] = *bytes {
        return Kind::Mark;
    }
    let prefixes =
        bytes.iter().take_while(|byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3));
    let (prefixes, mut opcode) = bytes.split_at(prefixes.count());
    if prefixes.contains(&0xf0) {
        return Kind::Atomic;
    }
    if let [0x40..=0x4f, rest @ ..] = opcode {
        opcode = rest;
    }
    match *opcode {
        [0xe8, ..] => Kind::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Kind::Call,
        [0xc3, ..] | [0xc2, ..] => Kind::Return,
        // With memory, an exchange is atomic by itself (Intel's manual, volume 2, XCHG).
        [0x86 | 0x87, modrm, ..] if modrm >> 6 != 3 => Kind::Atomic,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_recognised_by_their_encoding() {
        for (bytes, kind) in [
            (&[0x48, 0x89, 0x87, 0x18, 0x52, 0x54, 0x4d][..], Kind::Mark),
            (&[0x48, 0x89, 0x87, 0x16, 0x52, 0x54, 0x4d], Kind::Plain), // the tracer's
            (&[0xe8, 1, 2, 3, 4], Kind::Call),
            (&[0x41, 0xff, 0xd3], Kind::Call),
            (&[0xff, 0x25, 0, 0, 0, 0], Kind::Plain),
            (&[0xc3], Kind::Return),
            (&[0xf3, 0xc3], Kind::Return),
            (&[0xf0, 0x48, 0x0f, 0xc1, 0x07], Kind::Atomic), // lock xadd
            (&[0x3e, 0xf0, 0x48, 0xff, 0x07], Kind::Atomic), // lock inc
            (&[0x48, 0x87, 0x07], Kind::Atomic),             // xchg with memory
            (&[0x48, 0x87, 0xc7], Kind::Plain),              // xchg of registers
            (&[0x48, 0x8b, 0x07], Kind::Plain),
            (&[], Kind::Plain),
        ] {
            assert_eq!(classify(bytes), kind, "{bytes:02x?}");
        }
    }
}
