//! Reads BTF bytes. Layout, from `Documentation/bpf/btf.rst`:
//!
//! ```text
//! header   magic u16 = 0xeb9f, version u8 = 1, flags u8, header length u32,
//!          type offset, type length, string offset, string length: u32 each, offsets from the end of the header
//! type     name u32, info u32 (bits 0-15 vlen, 24-28 kind, 31 kind flag), size or type u32, then per kind:
//!          integer u32; array 3 x u32; struct and union vlen x 3 x u32; enum vlen x 2 x u32; prototype vlen x 2 x u32;
//!          variable u32; data section vlen x 3 x u32; declaration tag u32; enum64 vlen x 3 x u32
//! strings  NUL-terminated, the first one empty
//! ```
//!
//! Types are numbered from 1 in file order. A module's BTF goes on counting where the kernel's ends, for types and for
//! string offsets alike; here several modules live side by side, so their numbers are shifted when they are added.

use std::collections::HashMap;

use object::{Object as _, ObjectSection as _};

use super::{KernelTypes, Member, NameRef, Shape, Type, TypeId};

const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 24;
/// Far above any kernel's 5 MB; keeps every offset within 32 bits and a hostile file from filling memory.
const SIZE_LIMIT_BYTES: usize = 256 << 20;

/// Why BTF bytes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// The file is no ELF file, or lacks a `.BTF` section.
    #[error("expected an ELF file with a .BTF section, but {0}; use a kernel built with CONFIG_DEBUG_INFO_BTF")]
    NoSection(String),
    /// The bytes break the format.
    #[error("damaged BTF: {what} at byte {offset}")]
    Damaged {
        /// What was found, and what was expected.
        what: String,
        /// Byte within the BTF data.
        offset: usize,
    },
}

fn damaged(offset: usize, what: impl Into<String>) -> BtfError {
    BtfError::Damaged { what: what.into(), offset }
}

/// The bytes of the `.BTF` section of an ELF file.
pub(super) fn elf_section(elf: &[u8]) -> Result<&[u8], BtfError> {
    let file = object::File::parse(elf).map_err(|error| BtfError::NoSection(format!("this is none ({error})")))?;
    let section = file.section_by_name(".BTF").ok_or_else(|| BtfError::NoSection("it has none".to_owned()))?;
    section.data().map_err(|error| BtfError::NoSection(format!("the section cannot be read ({error})")))
}

pub(super) fn string_at(strings: &[u8], offset: u32) -> Option<&str> {
    let rest = strings.get(offset as usize..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..length]).ok()
}

/// No types but `void`.
pub(super) fn none() -> KernelTypes {
    KernelTypes {
        strings: Vec::new(),
        types: vec![Type { name: NameRef(0), shape: Shape::Void }],
        members: Vec::new(),
        enumerators: Vec::new(),
        structs: HashMap::new(),
        variables: HashMap::new(),
        base_types: 1,
        base_strings: 0,
    }
}

pub(super) fn parse(btf: &[u8]) -> Result<KernelTypes, BtfError> {
    let mut types = none();
    let section = Section::open(btf)?;
    if section.strings.first() != Some(&0) {
        return Err(damaged(section.string_start, "expected the string section to begin with an empty string"));
    }
    read_into(&mut types, &section)?;
    types.base_types = types.types.len();
    types.base_strings = types.strings.len();
    Ok(types)
}

pub(super) fn add_module(types: &mut KernelTypes, btf: &[u8]) -> Result<(), BtfError> {
    let section = Section::open(btf)?;
    let (type_count, string_bytes, member_count) = (types.types.len(), types.strings.len(), types.members.len());
    let result = read_into(types, &section);
    if result.is_err() {
        types.types.truncate(type_count);
        types.strings.truncate(string_bytes);
        types.members.truncate(member_count);
    }
    result
}

/// The two parts of BTF data, bounds checked.
struct Section<'a> {
    types: &'a [u8],
    type_start: usize,
    strings: &'a [u8],
    string_start: usize,
}

impl<'a> Section<'a> {
    fn open(btf: &'a [u8]) -> Result<Self, BtfError> {
        if btf.len() > SIZE_LIMIT_BYTES {
            return Err(damaged(0, format!("expected at most {SIZE_LIMIT_BYTES} bytes, got {}", btf.len())));
        }
        if btf.len() < HEADER_BYTES {
            return Err(damaged(btf.len(), format!("expected a header of {HEADER_BYTES} bytes, got {}", btf.len())));
        }
        let magic = u16::from_le_bytes([btf[0], btf[1]]);
        if magic != MAGIC || btf[2] != VERSION {
            let found = format!("magic {magic:#06x}, version {}", btf[2]);
            return Err(damaged(0, format!("expected magic {MAGIC:#06x}, version {VERSION}, found {found}")));
        }
        let field = |index: usize| u32_at(btf, 4 + 4 * index).unwrap_or(0) as usize;
        let header = field(0);
        if header < HEADER_BYTES {
            return Err(damaged(4, format!("expected a header length of {HEADER_BYTES} or more, found {header}")));
        }
        let part = |offset: usize, length: usize, name: &str, at: usize| {
            let start = header.checked_add(offset);
            let bytes = start.and_then(|start| btf.get(start..start.checked_add(length)?));
            match (start, bytes) {
                (Some(start), Some(bytes)) => Ok((start, bytes)),
                _ => Err(damaged(at, format!("the {name} section reaches beyond the end of the data"))),
            }
        };
        let (type_start, types) = part(field(1), field(2), "type", 8)?;
        let (string_start, strings) = part(field(3), field(4), "string", 16)?;
        if strings.last().is_some_and(|byte| *byte != 0) {
            return Err(damaged(string_start + strings.len() - 1, "expected the string section to end with a NUL"));
        }
        Ok(Self { types, type_start, strings, string_start })
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let word = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Walks the type section and renumbers what refers to this section itself.
struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    start: usize,
    base_types: u32,
    type_shift: u32,
    base_strings: u32,
    string_shift: u32,
    string_end: u32,
}

impl Cursor<'_> {
    fn next(&mut self) -> Result<u32, BtfError> {
        let value = u32_at(self.bytes, self.position)
            .ok_or_else(|| damaged(self.start + self.position, "the type section ends within a type"))?;
        self.position += 4;
        Ok(value)
    }

    fn id(&mut self) -> Result<TypeId, BtfError> {
        let id = self.next()?;
        Ok(TypeId(if id >= self.base_types { id.saturating_add(self.type_shift) } else { id }))
    }

    fn name(&mut self) -> Result<NameRef, BtfError> {
        let offset = self.next()?;
        let shifted = if offset >= self.base_strings { offset.saturating_add(self.string_shift) } else { offset };
        if shifted >= self.string_end {
            return Err(damaged(self.start + self.position - 4, format!("string offset {offset} is outside")));
        }
        Ok(NameRef(shifted))
    }
}

/// Appends the section's types to `types`. For the kernel itself the shifts are zero.
fn read_into(types: &mut KernelTypes, section: &Section<'_>) -> Result<(), BtfError> {
    let first_new = types.types.len();
    if types.strings.len() + section.strings.len() > u32::MAX as usize {
        return Err(damaged(section.string_start, "expected at most 4 GiB of names in all modules together"));
    }
    let mut cursor = Cursor {
        bytes: section.types,
        position: 0,
        start: section.type_start,
        base_types: types.base_types as u32,
        type_shift: (first_new - types.base_types) as u32,
        base_strings: types.base_strings as u32,
        string_shift: (types.strings.len() - types.base_strings) as u32,
        string_end: (types.strings.len() + section.strings.len()) as u32,
    };
    types.strings.extend_from_slice(section.strings);
    let mut variables = Vec::new();
    let mut enumerators = Vec::new();
    while cursor.position < section.types.len() {
        let offset = cursor.start + cursor.position;
        let name = cursor.name()?;
        if string_at(&types.strings, name.0).is_none() {
            return Err(damaged(offset, "a name is not UTF-8"));
        }
        let info = cursor.next()?;
        let shape = read_shape(types, &mut cursor, name, info, offset, &mut variables, &mut enumerators)?;
        types.types.push(Type { name, shape });
    }
    check_references(types, first_new, section.type_start)?;
    for (name, kind) in variables {
        let name = types.text(name).to_owned();
        types.variables.entry(name).or_insert(kind);
    }
    types.enumerators.append(&mut enumerators);
    for index in first_new..types.types.len() {
        let kind = types.types[index];
        if matches!(kind.shape, Shape::Aggregate { .. }) && kind.name.0 != 0 {
            let name = types.text(kind.name).to_owned();
            types.structs.entry(name).or_insert(TypeId(index as u32));
        }
    }
    Ok(())
}

fn read_shape(
    types: &mut KernelTypes,
    cursor: &mut Cursor<'_>,
    name: NameRef,
    info: u32,
    offset: usize,
    variables: &mut Vec<(NameRef, TypeId)>,
    enumerators: &mut Vec<(NameRef, NameRef, i64)>,
) -> Result<Shape, BtfError> {
    let vlen = info & 0xffff;
    let kind_flag = info >> 31 == 1;
    Ok(match (info >> 24) & 0x1f {
        1 => {
            let size_bytes = cursor.next()?;
            cursor.next()?;
            Shape::Scalar { size_bytes }
        }
        2 => Shape::Pointer { target: cursor.id()? },
        3 => {
            cursor.next()?;
            let element = cursor.id()?;
            cursor.next()?; // index type
            Shape::Array { element, count: cursor.next()? }
        }
        kind @ (4 | 5) => {
            let size_bytes = cursor.next()?;
            let first_member = types.members.len() as u32;
            for _ in 0..vlen {
                let (name, kind, raw_offset) = (cursor.name()?, cursor.id()?, cursor.next()?);
                let (offset_bits, bit_field_bits) =
                    if kind_flag { (raw_offset & 0xff_ffff, (raw_offset >> 24) as u8) } else { (raw_offset, 0) };
                if u64::from(offset_bits) > u64::from(size_bytes) * 8 {
                    return Err(damaged(offset, format!("a member at bit {offset_bits} of {size_bytes} bytes")));
                }
                types.members.push(Member { name, kind, offset_bits, bit_field_bits });
            }
            Shape::Aggregate { union: kind == 5, size_bytes, first_member, member_count: vlen }
        }
        6 => {
            let size_bytes = cursor.next()?;
            for _ in 0..vlen {
                let (enumerator, value) = (cursor.name()?, cursor.next()?);
                let value = if kind_flag { i64::from(value as i32) } else { i64::from(value) };
                enumerators.push((name, enumerator, value));
            }
            Shape::Scalar { size_bytes }
        }
        7 | 12 => {
            cursor.next()?;
            Shape::Opaque
        }
        8..=11 | 18 => Shape::Alias { target: cursor.id()? },
        13 => {
            cursor.next()?;
            for _ in 0..2 * vlen {
                cursor.next()?;
            }
            Shape::Opaque
        }
        14 => {
            variables.push((name, cursor.id()?));
            cursor.next()?;
            Shape::Opaque
        }
        15 => {
            cursor.next()?;
            for _ in 0..3 * vlen {
                cursor.next()?;
            }
            Shape::Opaque
        }
        16 => Shape::Scalar { size_bytes: cursor.next()? },
        17 => {
            cursor.next()?;
            cursor.next()?;
            Shape::Opaque
        }
        19 => {
            let size_bytes = cursor.next()?;
            for _ in 0..vlen {
                let (enumerator, low, high) = (cursor.name()?, cursor.next()?, cursor.next()?);
                let value = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                enumerators.push((name, enumerator, value));
            }
            Shape::Scalar { size_bytes }
        }
        kind => return Err(damaged(offset, format!("type kind {kind} is unknown (this reader knows 1 to 19)"))),
    })
}

/// Every type that a new type refers to must exist, also those that come after it.
fn check_references(types: &KernelTypes, first_new: usize, start: usize) -> Result<(), BtfError> {
    let count = types.types.len() as u32;
    for (index, kind) in types.types.iter().enumerate().skip(first_new) {
        let referred = match kind.shape {
            Shape::Pointer { target } | Shape::Alias { target } => target.0,
            Shape::Array { element, .. } => element.0,
            Shape::Aggregate { .. } => {
                types.members_of(TypeId(index as u32)).iter().map(|member| member.kind.0).max().unwrap_or(0)
            }
            _ => 0,
        };
        if referred >= count {
            return Err(damaged(start, format!("type {index} refers to type {referred}, but there are {count}")));
        }
    }
    Ok(())
}
