//! What receives the pointer that a call returns: a variable, or a field that it is stored to.
//!
//! After the call the pointer is in `rax`. The few instructions that follow are decoded: they copy it to other
//! registers, and store it. Debug information tells which variable a register or a place in the frame is from an
//! address on.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::debug::{Entry, Function, Local, Place, Unit};

/// Bytes after the call within which a variable must begin to be in a register.
const REACH_BYTES: u64 = 24;
/// Bytes after the call in which stores are looked for.
const STORE_BYTES: usize = 96;
const MOST_INSTRUCTIONS: usize = 24;

/// What code received a pointer, and of what type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// A variable; the type is what it points to.
    ByVariable(Entry),
    /// A field of what a register points to; the type is what the field points to.
    ByField(Entry),
    /// Memory at an address of the file.
    At(u64),
}

/// Looks after a call for what receives its result. `code` begins at `back`, the address that the call returns to;
/// `functions` are those that the call belongs to, the innermost first. In the order of what is more certain.
pub(crate) fn receivers(unit: &Unit, functions: &[&Function], code: &[u8], back: u64) -> Vec<Received> {
    let mut found = Vec::new();
    // A constructor that was inlined begins after the call, with the pointer as its first parameter.
    let begins_behind =
        |function: &&Function| function.ranges.iter().any(|(start, _)| (back..=back + REACH_BYTES).contains(start));
    let constructors = || functions.iter().flat_map(|function| function.inlined.iter()).filter(begins_behind);
    let locals = || functions.iter().copied().chain(constructors()).flat_map(|function| function.variables.iter());
    let typed =
        |local: &Local| unit.pointee(local.of_type).filter(|target| unit.size(*target).is_some_and(|size| size > 0));
    for local in locals() {
        let begins = |(range, place): &(Option<(u64, u64)>, Place)| {
            let near = range.is_some_and(|(start, _)| (back..=back + REACH_BYTES).contains(&start));
            near && matches!(place, Place::Register(_))
        };
        if let Some(target) = typed(local).filter(|_| local.places.iter().any(begins)) {
            found.push((local, target));
        }
    }
    let (copies, stores) = follow(code, back);
    // Of several variables that begin, only one that is in a register to which the pointer was copied.
    let holds = |local: &Local| {
        local.places.iter().any(|(range, place)| {
            let Place::Register(number) = place else { return false };
            let start = range.map_or(0, |(start, _)| start);
            copies
                .iter()
                .any(|copy| register_number(copy.register) == Some(*number) && (copy.from..=copy.to).contains(&start))
        })
    };
    let mut received: Vec<Received> = Vec::new();
    received.extend(found.iter().filter(|(local, _)| holds(local)).map(|(_, target)| Received::ByVariable(*target)));
    for store in stores {
        match store {
            Store::Absolute(address) => received.push(Received::At(address)),
            Store::Relative { base, displacement, at } => {
                received.extend(in_frame(unit, functions, base, displacement).map(Received::ByVariable));
                received.extend(in_field(unit, functions, base, displacement, at).map(Received::ByField));
            }
        }
    }
    received
}

enum Store {
    Absolute(u64),
    Relative { base: Register, displacement: i64, at: u64 },
}

/// A register that holds the pointer, from an instruction up to the one after which it does not.
struct Copy {
    register: Register,
    from: u64,
    to: u64,
}

/// The registers that the pointer is copied to, and where it is stored.
fn follow(code: &[u8], back: u64) -> (Vec<Copy>, Vec<Store>) {
    let code = &code[..code.len().min(STORE_BYTES)];
    let mut copies = vec![Copy { register: Register::RAX, from: back, to: u64::MAX }];
    let mut live = vec![Register::RAX];
    fn end(copies: &mut [Copy], live: &mut Vec<Register>, at: u64, ends: impl Fn(Register) -> bool) {
        live.retain(|register| !ends(*register));
        for copy in copies.iter_mut().filter(|copy| copy.to == u64::MAX && ends(copy.register)) {
            copy.to = at;
        }
    }
    let mut stores = Vec::new();
    for instruction in Decoder::with_ip(64, code, back, DecoderOptions::NONE).iter().take(MOST_INSTRUCTIONS) {
        let is_move = instruction.mnemonic() == Mnemonic::Mov;
        let from = || instruction.op1_register().full_register();
        let is_ours = is_move
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register().is_gpr64()
            && live.contains(&from());
        if is_ours && instruction.op0_kind() == OpKind::Register {
            let to = instruction.op0_register().full_register();
            end(&mut copies, &mut live, instruction.ip(), |register| register == to);
            copies.push(Copy { register: to, from: instruction.ip(), to: u64::MAX });
            live.push(to);
            continue;
        }
        if is_ours && instruction.op0_kind() == OpKind::Memory {
            stores.push(store(&instruction));
            continue;
        }
        if instruction.mnemonic() == Mnemonic::Call {
            // Others are saved by who is called.
            end(&mut copies, &mut live, instruction.ip(), |register| {
                !matches!(register, Register::RBX | Register::RBP)
                    && !(Register::R12..=Register::R15).contains(&register)
            });
        }
        if matches!(instruction.mnemonic(), Mnemonic::Ret | Mnemonic::Jmp) {
            break;
        }
        if instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && !matches!(instruction.mnemonic(), Mnemonic::Test | Mnemonic::Cmp | Mnemonic::Push)
        {
            let written = instruction.op0_register().full_register();
            end(&mut copies, &mut live, instruction.ip(), |register| register == written);
        }
        if live.is_empty() {
            break;
        }
    }
    (copies, stores)
}

fn store(instruction: &Instruction) -> Store {
    if instruction.is_ip_rel_memory_operand() {
        return Store::Absolute(instruction.ip_rel_memory_address());
    }
    Store::Relative {
        base: instruction.memory_base(),
        displacement: instruction.memory_displacement64().cast_signed(),
        at: instruction.ip(),
    }
}

/// A local variable in the frame.
fn in_frame(unit: &Unit, functions: &[&Function], base: Register, displacement: i64) -> Option<Entry> {
    let base_number = register_number(base)?;
    let frame_base = functions.iter().find_map(|function| function.frame_base);
    let offset = match frame_base? {
        // With a frame pointer the canonical frame address is two words above what it points to.
        Place::FrameAddress if base == Register::RBP => displacement - 16,
        Place::Register(number) if number == base_number => displacement,
        _ => return None,
    };
    let is_there = |local: &&Local| local.places.iter().any(|(_, place)| *place == Place::Frame(offset));
    let local = functions.iter().flat_map(|function| function.variables.iter()).find(is_there)?;
    unit.pointee(local.of_type)
}

/// A field of what a register points to at an instruction.
fn in_field(unit: &Unit, functions: &[&Function], base: Register, displacement: i64, at: u64) -> Option<Entry> {
    let record = pointed_to(unit, functions, base, at)?;
    let offset = u64::try_from(displacement).ok()?;
    let field = unit.type_at(record, offset)?;
    unit.pointee(field)
}

/// The type of what a register points to at an instruction, by the variable that it holds there.
pub(crate) fn pointed_to(unit: &Unit, functions: &[&Function], register: Register, at: u64) -> Option<Entry> {
    let number = register_number(register)?;
    let is_there = |local: &&Local| {
        local.places.iter().any(|(range, place)| {
            *place == Place::Register(number) && range.is_none_or(|(start, end)| start <= at && at < end)
        })
    };
    let mut locals = functions.iter().flat_map(|function| function.variables.iter()).filter(is_there);
    locals.find_map(|local| unit.pointee(local.of_type))
}

/// DWARF's number of a register (System V ABI for AMD64, figure 3.36).
fn register_number(register: Register) -> Option<u16> {
    Some(match register {
        Register::RAX => 0,
        Register::RDX => 1,
        Register::RCX => 2,
        Register::RBX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        Register::R8 => 8,
        Register::R9 => 9,
        Register::R10 => 10,
        Register::R11 => 11,
        Register::R12 => 12,
        Register::R13 => 13,
        Register::R14 => 14,
        Register::R15 => 15,
        _ => return None,
    })
}

/// The register and the displacement of the memory that the instruction at the start of some code reaches; `None` if it
/// reaches none, or by an index, too.
pub(crate) fn memory_operand(code: &[u8]) -> Option<(Register, i64)> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let has_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    let plain = has_memory
        && !instruction.is_ip_rel_memory_operand()
        && instruction.memory_index() == Register::None
        && instruction.memory_base() != Register::None;
    plain.then(|| (instruction.memory_base(), instruction.memory_displacement64().cast_signed()))
}

/// Bytes of the instruction at the start of some code.
pub(crate) fn instruction_bytes(code: &[u8]) -> Option<u64> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| instruction.len() as u64)
}
