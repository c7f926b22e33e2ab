//! Which instructions the recorder must know.

use lock_annotation::{Event, event_of_instruction};

/// What an instruction means to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing special.
    Plain,
    /// A near call: its store's address is the new stack pointer.
    Call,
    /// A near return: its load's address was the stack pointer.
    Return,
    /// Tells an event of a lock of so many bytes.
    Tell(Event, u16),
    /// Changes a word at once, so that it may acquire a lock or release one: `cmpxchg`, `xchg`, `bts`.
    Exchange,
    /// Changes a word at once, but is never used to acquire: `lock dec`, `lock sub`, `lock and`, `lock xadd`, ...
    Modify,
}

/// Recognises an instruction by its bytes.
pub fn classify(bytes: &[u8]) -> Kind {
    if let Some((event, size_bytes)) = event_of_instruction(bytes) {
        return Kind::Tell(event, size_bytes);
    }
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
    if let [0x40..=0x4f, rest @ ..] = opcode {
        opcode = rest;
    }
    let in_memory = |modrm: u8| modrm >> 6 != 3;
    match *opcode {
        [0xe8, ..] => Kind::Call,
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Kind::Call,
        [0xc3, ..] | [0xc2, ..] => Kind::Return,
        [0x86 | 0x87, modrm, ..] if in_memory(modrm) => Kind::Exchange,
        [0x0f, 0xb0 | 0xb1 | 0xab, ..] | [0x0f, 0xba, ..] if locked => Kind::Exchange,
        _ if locked => Kind::Modify,
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
            (&[0x41, 0xff, 0xd3], Kind::Call),
            (&[0xf3, 0xc3], Kind::Return),
            (&[0xf0, 0x0f, 0xb1, 0x17], Kind::Exchange), // lock cmpxchg %edx,(%rdi)
            (&[0xf0, 0x41, 0x0f, 0xb0, 0x10], Kind::Exchange), // lock cmpxchg %dl,(%r8)
            (&[0x87, 0x07], Kind::Exchange),             // xchg %eax,(%rdi)
            (&[0x87, 0xc3], Kind::Plain),                // xchg %eax,%ebx
            (&[0xf0, 0x48, 0x0f, 0xba, 0x2f, 0x00], Kind::Exchange), // lock bts $0,(%rdi)
            (&[0xf0, 0xff, 0x0f], Kind::Modify),         // lock decl (%rdi)
            (&[0xf0, 0x0f, 0xc1, 0x07], Kind::Modify),   // lock xadd %eax,(%rdi)
            (&[0x0f, 0xb1, 0x17], Kind::Plain),          // cmpxchg of one processor
            (&[0xc7, 0x07, 0, 0, 0, 0], Kind::Plain),
            (&[0x8a, 0x80, 40, 0, 5, 0x4c], Kind::Tell(Event::Release, 40)),
        ] {
            assert_eq!(classify(bytes), kind, "{bytes:x?}");
        }
        assert_eq!(classify(&[]), Kind::Plain);
    }
}
