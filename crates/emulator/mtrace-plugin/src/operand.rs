//! Where an instruction's memory operand lies: parsed from the instruction's bytes, worked out from registers.
//!
//! Needed of instructions that QEMU makes no access of, and so tells no address. Intel's manual, volume 2, section 2.1.

use qemu_plugin::registers::Register;

/// A memory operand as it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand {
    base: Base,
    /// A register and by how many bits it is shifted.
    index: Option<(u8, u8)>,
    displacement: i32,
    segment: Option<Register>,
    /// Addresses have 32 bits (prefix 67).
    is_narrow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Base {
    None,
    Register(u8),
    /// The address after the instruction, which has this many bytes.
    NextInstruction(u8),
}

impl Operand {
    /// The operand of an instruction of `length` bytes with these legacy prefixes and REX prefix (0 for none); `bytes` are those
    /// from the ModRM byte on. None if it is a register, or bytes lack.
    pub fn parse(legacy: &[u8], rex: u8, bytes: &[u8], length: usize) -> Option<Operand> {
        let (&modrm, mut rest) = bytes.split_first()?;
        let (mode, low) = (modrm >> 6, modrm & 7);
        let mut take = |count: usize| -> Option<&[u8]> {
            let (taken, left) = rest.split_at_checked(count)?;
            rest = left;
            Some(taken)
        };
        let mut index = None;
        let mut base = match low {
            4 if mode != 3 => {
                let sib = take(1)?[0];
                let number = (sib >> 3) & 7 | (rex & 2) << 2;
                index = (number != 4).then_some((number, sib >> 6));
                Base::Register(sib & 7)
            }
            _ => Base::Register(low),
        };
        let displacement = match (mode, base) {
            (3, _) => return None,
            (0, Base::Register(5)) => {
                base = if low == 5 { Base::NextInstruction(length as u8) } else { Base::None };
                i32::from_le_bytes(take(4)?.try_into().ok()?)
            }
            (0, _) => 0,
            (1, _) => i32::from(take(1)?[0] as i8),
            _ => i32::from_le_bytes(take(4)?.try_into().ok()?),
        };
        if let Base::Register(number) = base {
            base = Base::Register(number | (rex & 1) << 3);
        }
        let segment = legacy.iter().rev().find_map(|prefix| match prefix {
            0x64 => Some(Register::FsBase),
            0x65 => Some(Register::GsBase),
            _ => None,
        });
        Some(Operand { base, index, displacement, segment, is_narrow: legacy.contains(&0x67) })
    }

    /// The operand's address, of the instruction at `instruction`; None if a register that it needs cannot be read.
    pub fn address(&self, instruction: u64, read: impl Fn(Register) -> Option<u64>) -> Option<u64> {
        let base = match self.base {
            Base::None => 0,
            Base::Register(number) => read(Register::General(number))?,
            Base::NextInstruction(length) => instruction.wrapping_add(u64::from(length)),
        };
        let index = match self.index {
            Some((number, shift)) => read(Register::General(number))? << shift,
            None => 0,
        };
        let sum = base.wrapping_add(index).wrapping_add(i64::from(self.displacement) as u64);
        let sum = if self.is_narrow { sum & u64::from(u32::MAX) } else { sum };
        let start = self.segment.map_or(Some(0), read)?;
        Some(sum.wrapping_add(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{Kind, classify};
    use proptest::prelude::*;

    /// What the address of a `prefetchw` is if the register of number *n* holds `n << 32 | 0x1000`, and it stands at 0x40_0000.
    fn address(bytes: &[u8]) -> Option<u64> {
        let Kind::PrefetchForWrite(operand) = classify(bytes) else { return None };
        operand.address(0x40_0000, |register| match register {
            Register::General(number) => Some(u64::from(number) << 32 | 0x1000),
            Register::FsBase => Some(0xf5_0000),
            Register::GsBase => None,
        })
    }

    #[test]
    fn operands_lie_where_the_assembler_says() {
        for (bytes, expected) in [
            (&[0x0f, 0x0d, 0x08][..], Some(0x1000)),                // prefetchw (%rax)
            (&[0x0f, 0x0d, 0x4f, 0x40], Some(0x7_0000_1040)),       // prefetchw 0x40(%rdi)
            (&[0x0f, 0x0d, 0x4f, 0xf8], Some(0x7_0000_0ff8)),       // prefetchw -8(%rdi)
            (&[0x41, 0x0f, 0x0d, 0x0c, 0x24], Some(0xc_0000_1000)), // prefetchw (%r12)
            (&[0x41, 0x0f, 0x0d, 0x4d, 0x00], Some(0xd_0000_1000)), // prefetchw 0(%r13)
            (&[0x0f, 0x0d, 0x0c, 0x24], Some(0x4_0000_1000)),       // prefetchw (%rsp)
            (&[0x0f, 0x0d, 0x0c, 0x06], Some(0x6_0000_2000)),       // prefetchw (%rsi,%rax)
            (&[0x4b, 0x0f, 0x0d, 0x8c, 0xfa, 0x00, 0x02, 0, 0], Some(0x82_0000_9200)), // prefetchw 0x200(%r10,%r15,8)
            (&[0x42, 0x0f, 0x0d, 0x0c, 0x20], Some(0xc_0000_2000)), // prefetchw (%rax,%r12)
            (&[0x0f, 0x0d, 0x0c, 0x0d, 0x10, 0, 0, 0], Some(0x1_0000_1010)), // prefetchw 0x10(,%rcx)
            (&[0x0f, 0x0d, 0x0d, 0x09, 0, 0, 0], Some(0x40_0010)),  // prefetchw 9(%rip)
            (&[0x64, 0x0f, 0x0d, 0x08], Some(0xf5_1000)),           // prefetchw %fs:(%rax)
            (&[0x65, 0x0f, 0x0d, 0x08], None),                      // a base that cannot be read
            (&[0x67, 0x0f, 0x0d, 0x0f], Some(0x1000)),              // prefetchw (%edi)
            (&[0x0f, 0x0d, 0x00], None),                            // prefetch (%rax)
            (&[0x0f, 0x18, 0x08], None),                            // prefetcht0 (%rax)
            (&[0x0f, 0x0d, 0xc8], None),                            // no memory
            (&[0x0f, 0x0d, 0x8f, 0x00], None),                      // cut off
        ] {
            assert_eq!(address(bytes), expected, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_behind_the_opcode_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..10)) {
            let _ = address(&[&[0x0f, 0x0d][..], &bytes].concat());
        }
    }
}
