//! Which instructions the recorder must know.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
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
    /// Tells an event of a lock of this many bytes.
    Tell(Event, u16),
    /// Changes a word at once, so that it may acquire a lock or release one: `cmpxchg`, `bts`.
    Exchange,
    /// An exchange without a condition (`xchg`): it may acquire a lock, if what it found is looked at afterwards; else it is
    /// a store that waits for no other, as compilers make of `atomic_store`.
    Swap,
    /// An exchange that leaves zero: it may release a lock, and never acquires one.
    Clear,
    /// An exchange that may acquire a lock, and never releases one: it leaves something else, or expects zero.
    Take,
    /// `cmpxchg` that leaves zero, if the word holds what it expects: it may release a lock, or fail to.
    TryClear,
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
        [0x86 | 0x87, modrm, ..] if in_memory(modrm) => Kind::Swap,
        [0x0f, 0xb0 | 0xb1 | 0xab, ..] | [0x0f, 0xba, ..] if locked => Kind::Exchange,
        _ if locked => Kind::Modify,
        _ => Kind::Plain,
    }
}

/// Whether what a swap found in memory is read by the instructions after it, before it is written over.
///
/// `code` is the swap and what follows it in its block. Where the block ends without a jump (at the end of a page) that is
/// not known, and taken for read; where it ends with one, no one will read it: one that tests a lock does so before it
/// jumps.
pub fn reads_what_it_found(code: &[u8]) -> bool {
    let mut instructions = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
    let Some(found) = instructions.next().and_then(|swap| swapped_register(&swap)) else { return true };
    let found = found.full_register();
    let mut factory = InstructionInfoFactory::new();
    let mut ends_with_jump = false;
    for instruction in instructions {
        let used = factory.info(&instruction).used_registers().iter();
        let mut is_overwritten = false;
        for register in used.filter(|used| used.register().full_register() == found) {
            match register.access() {
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite => return true,
                OpAccess::Write => is_overwritten = register.register().size() >= 4,
                OpAccess::None | OpAccess::CondWrite | OpAccess::NoMemAccess => {}
            }
        }
        if is_overwritten {
            return false;
        }
        ends_with_jump = instruction.flow_control() != iced_x86::FlowControl::Next;
    }
    !ends_with_jump
}

/// What an exchange does, if a register tells that its block has set: a swap with zero releases, one with another value tries to
/// acquire, and so does `cmpxchg` where it expects zero or leaves what is not zero. One that leaves zero tries to release; one
/// that leaves less than it expects counts down.
///
/// `code` is the block up to the exchange and with it.
pub fn exchange_at_end(code: &[u8]) -> Kind {
    let instructions: Vec<Instruction> = Decoder::new(64, code, DecoderOptions::NONE).into_iter().collect();
    let Some((exchange, before)) = instructions.split_last() else { return Kind::Exchange };
    let Some(register) = swapped_register(exchange) else { return Kind::Exchange };
    match exchange.mnemonic() {
        Mnemonic::Xchg => match value_of(register, before) {
            Some(0) => Kind::Clear,
            Some(_) => Kind::Take,
            None => Kind::Exchange,
        },
        Mnemonic::Cmpxchg if value_of(accumulator(register.size()), before) == Some(0) => Kind::Take,
        Mnemonic::Cmpxchg => match value_of(register, before) {
            Some(0) => Kind::TryClear,
            _ if sets_bits(register, before) => Kind::Take,
            _ if is_less_than_expected(register, before) => Kind::Modify,
            _ => Kind::Exchange,
        },
        _ => Kind::Exchange,
    }
}

/// The last of these instructions that wrote a register, and its place.
fn last_writer(register: Register, instructions: &[Instruction]) -> Option<(usize, &Instruction)> {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    let mut factory = InstructionInfoFactory::new();
    instructions.iter().enumerate().rev().find(|(_, instruction)| {
        let mut used = factory.info(instruction).used_registers().iter();
        used.any(|used| {
            used.register().full_register() == register.full_register()
                && matches!(used.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
        })
    })
}

/// Whether a register got bits set last, as a lock's word does that is taken or awaited: what it holds is not zero.
fn sets_bits(register: Register, instructions: &[Instruction]) -> bool {
    let Some((_, last)) = last_writer(register, instructions) else { return false };
    last.mnemonic() == Mnemonic::Or
        && last.op0_kind() == OpKind::Register
        && last.try_immediate(1).is_ok_and(|bits| bits != 0)
}

/// Whether a register holds less than the accumulator, from which it was computed: so references are given back, and places
/// of a semaphore taken, and no lock is.
fn is_less_than_expected(register: Register, instructions: &[Instruction]) -> bool {
    let Some((place, last)) = last_writer(register, instructions) else { return false };
    let is_negative = |value: u64| (value as i64) < 0 || (value as u32 as i32) < 0 && value <= u64::from(u32::MAX);
    let counts_down = match last.mnemonic() {
        Mnemonic::Dec => true,
        Mnemonic::Sub => last.try_immediate(1).is_ok_and(|value| value != 0 && !is_negative(value)),
        Mnemonic::Add => last.try_immediate(1).is_ok_and(is_negative),
        Mnemonic::Lea => {
            let is_alone = last.memory_index() == Register::None;
            return is_alone
                && last.memory_base().full_register() == Register::RAX
                && is_negative(last.memory_displacement64());
        }
        _ => false,
    };
    let copy = last_writer(register, &instructions[..place]).map(|(_, copy)| copy);
    let is_copy = copy.is_some_and(|copy| {
        copy.mnemonic() == Mnemonic::Mov
            && copy.op1_kind() == OpKind::Register
            && copy.op1_register().full_register() == Register::RAX
    });
    counts_down && is_copy
}

/// What a register holds after these instructions, if the last of them that wrote it set it.
fn value_of(register: Register, instructions: &[Instruction]) -> Option<u64> {
    let (_, last) = last_writer(register, instructions)?;
    if last.op0_kind() != OpKind::Register || last.op0_register().size() < register.size() {
        return None;
    }
    match last.mnemonic() {
        Mnemonic::Xor | Mnemonic::Sub => {
            let is_itself = last.op1_kind() == OpKind::Register && last.op0_register() == last.op1_register();
            is_itself.then_some(0)
        }
        Mnemonic::Mov => last.try_immediate(1).ok().map(|value| value & (u64::MAX >> (64 - 8 * register.size()))),
        _ => None,
    }
}

/// What `cmpxchg` compares this many bytes with.
fn accumulator(size_bytes: usize) -> Register {
    match size_bytes {
        1 => Register::AL,
        2 => Register::AX,
        4 => Register::EAX,
        _ => Register::RAX,
    }
}

/// The register of an instruction that has one operand in memory and one in a register.
fn swapped_register(instruction: &Instruction) -> Option<Register> {
    let register = (0..2).find(|&operand| instruction.op_kind(operand) == OpKind::Register)?;
    Some(instruction.op_register(register))
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
            (&[0x87, 0x07], Kind::Swap),                 // xchg %eax,(%rdi)
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

    #[test]
    fn what_an_exchange_does_is_told_by_a_register_that_was_set() {
        for (code, kind) in [
            (&[0x31, 0xc0, 0x87, 0x07][..], Kind::Clear), // xor %eax,%eax; xchg %eax,(%rdi)
            (&[0xb9, 0, 0, 0, 0, 0x89, 0xd3, 0x86, 0x0f], Kind::Clear), // mov $0,%ecx; mov %edx,%ebx; xchg %cl,(%rdi)
            (&[0xb8, 2, 0, 0, 0, 0x87, 0x07], Kind::Take), // mov $2,%eax; xchg %eax,(%rdi)
            (&[0xb8, 0, 1, 0, 0, 0x86, 0x07], Kind::Clear), // mov $256,%eax; xchg %al,(%rdi)
            (&[0x31, 0xc0, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Take), // xor %eax,%eax; lock cmpxchg %ecx,(%rdi)
            (&[0xb8, 1, 0, 0, 0, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Exchange), // mov $1,%eax; lock cmpxchg %ecx,(%rdi)
            (&[0x31, 0xc9, 0xf0, 0x0f, 0xb1, 0x0f], Kind::TryClear), // xor %ecx,%ecx; lock cmpxchg %ecx,(%rdi)
            (&[0x89, 0xc1, 0x83, 0xc9, 0x01, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Take), // mov %eax,%ecx; or $1,%ecx; ...
            (&[0x89, 0xc1, 0x83, 0xe1, 0xfe, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Exchange), // mov %eax,%ecx; and $-2,%ecx; ...
            // A count that goes down, in four ways; the last two go up, or from another number.
            (&[0x8d, 0x48, 0xff, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Modify), // lea -1(%rax),%ecx; lock cmpxchg %ecx,(%rdi)
            (&[0x89, 0xc1, 0xff, 0xc9, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Modify), // mov %eax,%ecx; dec %ecx; ...
            (&[0x89, 0xc1, 0x83, 0xe9, 0x01, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Modify), // mov %eax,%ecx; sub $1,%ecx; ...
            (&[0x89, 0xc1, 0x83, 0xc1, 0xff, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Modify), // mov %eax,%ecx; add $-1,%ecx; ...
            (&[0x8d, 0x48, 0x01, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Exchange), // lea 1(%rax),%ecx; ...
            (&[0x8d, 0x4b, 0xff, 0xf0, 0x0f, 0xb1, 0x0f], Kind::Exchange), // lea -1(%rbx),%ecx; ...
            (&[0x87, 0x07], Kind::Exchange),                             // set elsewhere
            (&[0x31, 0xc0, 0xff, 0xc0, 0x87, 0x07], Kind::Exchange),     // xor %eax,%eax; inc %eax; xchg %eax,(%rdi)
            (&[0x31, 0xd8, 0x87, 0x07], Kind::Exchange),                 // xor %ebx,%eax; xchg %eax,(%rdi)
            (&[0x30, 0xc0, 0x87, 0x07], Kind::Exchange),                 // xor %al,%al; xchg %eax,(%rdi)
            (&[0x31, 0xc0, 0xf0, 0x0f, 0xba, 0x2f, 0x00], Kind::Exchange), // xor %eax,%eax; lock bts $0,(%rdi)
        ] {
            assert_eq!(exchange_at_end(code), kind, "{code:x?}");
        }
    }

    #[test]
    fn a_swap_whose_result_nobody_reads_is_a_store() {
        for (code, reads) in [
            (&[0x87, 0x07, 0x85, 0xc0, 0x75, 0xf8][..], true), // xchg %eax,(%rdi); test %eax,%eax; jne
            (&[0x86, 0x07, 0x89, 0xc3, 0xc3], true),           // xchg %al,(%rdi); mov %eax,%ebx; ret
            (&[0x87, 0x0f, 0x88, 0x4c, 0x24, 0x07], true),     // xchg %ecx,(%rdi); mov %cl,7(%rsp)
            (&[0x87, 0x07, 0xc3], false),                      // xchg %eax,(%rdi); ret
            (&[0x87, 0x07, 0x31, 0xc0, 0x75, 0xf8], false),    // xchg %eax,(%rdi); xor %eax,%eax; jne
            (&[0x87, 0x07, 0x89, 0xcb, 0xeb, 0xf8], false),    // xchg %eax,(%rdi); mov %ecx,%ebx; jmp
            (&[0x87, 0x07, 0xb0, 0x01, 0x84, 0xc0], true),     // ...; mov $1,%al; test %al,%al: the upper bytes remain
            (&[0x87, 0x07, 0x89, 0xcb], true),                 // the end of a page: not known
        ] {
            assert_eq!(reads_what_it_found(code), reads, "{code:x?}");
        }
    }
}
