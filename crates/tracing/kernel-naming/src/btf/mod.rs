//! Kernel types from BTF (BPF Type Format), the compact type description that a Linux kernel carries of itself.
//!
//! [`reader`] turns the bytes into [`KernelTypes`], strictly: everything that the format's description
//! (`Documentation/bpf/btf.rst`) forbids and that could mislead is an error, never a panic. [`path`] answers the question
//! that naming asks: which field lies at this offset. [`members`] writes a structure out, to be compared with another's.

mod members;
mod path;
mod reader;

use std::collections::HashMap;

pub use members::PlacedMember;
pub use path::{FieldPath, FieldStep, UnionUse};
pub use reader::BtfError;

/// Identifies a type within one [`KernelTypes`]; 0 is `void`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

impl TypeId {
    /// The type `void`.
    pub const VOID: Self = Self(0);
}

/// What a type is; only what naming needs is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Void,
    /// Integer, floating-point number or enumeration.
    Scalar {
        size_bytes: u32,
    },
    Pointer {
        target: TypeId,
    },
    Array {
        element: TypeId,
        count: u32,
    },
    /// Structure or union; members in `KernelTypes::members`.
    Aggregate {
        union: bool,
        size_bytes: u32,
        first_member: u32,
        member_count: u32,
    },
    /// `typedef`, `const`, `volatile`, `restrict` and type tags.
    Alias {
        target: TypeId,
    },
    /// Forward declaration, function, prototype, declaration tag: nothing that memory holds.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub name: NameRef,
    pub shape: Shape,
}

/// A string of the BTF string section, by offset; 0 is the empty string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameRef(pub u32);

/// A member of a structure or union. Bit offsets count from the start of the aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub name: NameRef,
    pub kind: TypeId,
    pub offset_bits: u32,
    /// Zero for everything that is no bit field.
    pub bit_field_bits: u8,
}

/// How deep structures may nest, and aliases may chain, before a lookup gives up. Linux stays below 12; only damaged or
/// hostile BTF (a structure that contains itself) goes further.
pub(crate) const NESTING_LIMIT: usize = 32;

/// How many members one search through nested structures may look at; Linux's largest structure has 1,500. Bounds the
/// exponential growth that a chain of structures, each holding the next one twice, would have.
const MEMBER_VISIT_LIMIT: usize = 100_000;

/// All types of one kernel, and of the modules that were added.
pub struct KernelTypes {
    pub(crate) strings: Vec<u8>,
    pub(crate) types: Vec<Type>,
    pub(crate) members: Vec<Member>,
    /// Enumeration, enumerator, value.
    pub(crate) enumerators: Vec<(NameRef, NameRef, i64)>,
    pub(crate) structs: HashMap<String, TypeId>,
    pub(crate) variables: HashMap<String, TypeId>,
    /// Types and string bytes of the kernel proper; what a module's BTF refers to.
    pub(crate) base_types: usize,
    pub(crate) base_strings: usize,
}

/// Where a member lies within its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Bytes from the start of the structure.
    pub offset_bytes: u64,
    /// Size of the member.
    pub size_bytes: u64,
    /// The member's type.
    pub kind: TypeId,
}

/// A pointer that a structure holds, directly or in a structure embedded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerMember<'a> {
    /// Bytes from the start of the outermost structure.
    pub offset_bytes: u64,
    /// Name of the structure pointed to.
    pub target: &'a str,
    /// Number of pointers (an array of pointers), else 1.
    pub count: u32,
}

impl KernelTypes {
    /// No types at all, those of a kernel without BTF: only symbols name anything then.
    #[must_use]
    pub fn none() -> Self {
        reader::none()
    }

    /// Reads the raw `.BTF` section (`/sys/kernel/btf/vmlinux`).
    ///
    /// # Errors
    /// [`BtfError`] says what is wrong and at which byte.
    pub fn parse(btf: &[u8]) -> Result<Self, BtfError> {
        reader::parse(btf)
    }

    /// Reads the `.BTF` section of an ELF file such as an extracted `vmlinux`.
    ///
    /// # Errors
    /// [`BtfError`] if this is no ELF file, has no such section, or the section is damaged.
    pub fn from_elf(vmlinux: &[u8]) -> Result<Self, BtfError> {
        reader::parse(reader::elf_section(vmlinux)?)
    }

    /// Adds the types of a module (`/sys/kernel/btf/<module>`), whose BTF continues that of the kernel. Names that the
    /// kernel or an earlier module has already keep their meaning.
    ///
    /// # Errors
    /// [`BtfError`] if the section is damaged; nothing is added then.
    pub fn add_module(&mut self, btf: &[u8]) -> Result<(), BtfError> {
        reader::add_module(self, btf)
    }

    /// Number of types, `void` included.
    #[must_use]
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The structure or union of that name.
    #[must_use]
    pub fn structure(&self, name: &str) -> Option<TypeId> {
        self.structs.get(name).copied()
    }

    /// Size of the structure or union of that name.
    #[must_use]
    pub fn structure_size(&self, name: &str) -> Option<u64> {
        self.size_bytes(self.structure(name)?)
    }

    /// The type of a variable that BTF describes (per-CPU variables, on Linux 6.1).
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<TypeId> {
        self.variables.get(name).copied()
    }

    /// The element's type of an array, and how many bytes it has (more than none).
    #[must_use]
    pub fn array_element(&self, id: TypeId) -> Option<(TypeId, u64)> {
        let Shape::Array { element, .. } = self.shape(self.strip(id)) else { return None };
        let stride = self.size_bytes(element).filter(|stride| *stride > 0)?;
        Some((element, stride))
    }

    /// The value of an enumerator, by the names of its enumeration and itself.
    #[must_use]
    pub fn enumerator(&self, enumeration: &str, name: &str) -> Option<i64> {
        let matches =
            |entry: &&(NameRef, NameRef, i64)| self.text(entry.1) == name && self.text(entry.0) == enumeration;
        self.enumerators.iter().find(matches).map(|entry| entry.2)
    }

    /// Size of a type in memory; `None` for what has none (functions, forward declarations) and for endless types.
    #[must_use]
    pub fn size_bytes(&self, id: TypeId) -> Option<u64> {
        let mut factor = 1u64;
        let mut current = id;
        for _ in 0..NESTING_LIMIT {
            match self.shape(current) {
                Shape::Scalar { size_bytes } | Shape::Aggregate { size_bytes, .. } => {
                    return factor.checked_mul(u64::from(size_bytes));
                }
                Shape::Pointer { .. } => return factor.checked_mul(8),
                Shape::Array { element, count } => {
                    factor = factor.checked_mul(u64::from(count))?;
                    current = element;
                }
                Shape::Alias { target } => current = target,
                Shape::Void | Shape::Opaque => return None,
            }
        }
        None
    }

    /// Where the member `path` (`"d_lockref.count"`) of structure `name` lies. Members of unnamed structures and unions
    /// within count as members of the structure around them, as in C.
    #[must_use]
    pub fn member(&self, name: &str, path: &str) -> Option<Location> {
        let mut kind = self.structure(name)?;
        let mut offset_bits = 0u64;
        for part in path.split('.') {
            let mut visits = MEMBER_VISIT_LIMIT;
            let (member_offset, member_kind) = self.find_member(kind, part, NESTING_LIMIT, &mut visits)?;
            offset_bits = offset_bits.checked_add(member_offset)?;
            kind = member_kind;
        }
        Some(Location { offset_bytes: offset_bits / 8, size_bytes: self.size_bytes(kind)?, kind })
    }

    fn find_member(&self, aggregate: TypeId, name: &str, depth: usize, visits: &mut usize) -> Option<(u64, TypeId)> {
        let depth = depth.checked_sub(1)?;
        let members = self.members_of(self.strip(aggregate));
        members.iter().find_map(|member| {
            *visits = visits.checked_sub(1)?;
            let offset = u64::from(member.offset_bits);
            if self.text(member.name) == name {
                return Some((offset, member.kind));
            }
            if member.name.0 != 0 {
                return None;
            }
            let (inner, kind) = self.find_member(member.kind, name, depth, visits)?;
            Some((offset + inner, kind))
        })
    }

    /// Every pointer to a structure in structure `name`, embedded structures (not unions, whose content is uncertain)
    /// included, in order of their offsets.
    #[must_use]
    pub fn pointer_members(&self, name: &str) -> Vec<PointerMember<'_>> {
        let mut found = Vec::new();
        if let Some(id) = self.structure(name) {
            let mut visits = MEMBER_VISIT_LIMIT;
            self.collect_pointers(id, 0, NESTING_LIMIT, &mut visits, &mut found);
        }
        found
    }

    fn collect_pointers<'a>(
        &'a self,
        id: TypeId,
        base_bytes: u64,
        depth: usize,
        visits: &mut usize,
        found: &mut Vec<PointerMember<'a>>,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        for member in self.members_of(self.strip(id)) {
            let Some(left) = visits.checked_sub(1) else { return };
            *visits = left;
            let offset_bytes = base_bytes + u64::from(member.offset_bits) / 8;
            let (kind, count) = match self.shape(self.strip(member.kind)) {
                Shape::Array { element, count } => (self.strip(element), count),
                _ => (self.strip(member.kind), 1),
            };
            match self.shape(kind) {
                Shape::Pointer { target } => {
                    let target = self.strip(target);
                    if matches!(self.shape(target), Shape::Aggregate { .. }) && count > 0 {
                        found.push(PointerMember { offset_bytes, target: self.name(target), count });
                    }
                }
                Shape::Aggregate { union: false, .. } if count == 1 => {
                    self.collect_pointers(kind, offset_bytes, depth, visits, found);
                }
                _ => {}
            }
        }
    }

    /// Follows typedefs and qualifiers to the type itself.
    #[must_use]
    pub fn strip(&self, id: TypeId) -> TypeId {
        let mut current = id;
        for _ in 0..NESTING_LIMIT {
            match self.shape(current) {
                Shape::Alias { target } => current = target,
                _ => return current,
            }
        }
        TypeId::VOID
    }

    /// The name of a type, empty where it has none.
    #[must_use]
    pub fn name(&self, id: TypeId) -> &str {
        self.types.get(id.0 as usize).map_or("", |kind| self.text(kind.name))
    }

    /// The names on the way from a type, over its typedefs, to the type itself.
    pub(crate) fn type_names(&self, id: TypeId) -> impl Iterator<Item = &str> {
        let mut next = Some(id);
        let chain = std::iter::from_fn(move || {
            let current = next?;
            next = if let Shape::Alias { target } = self.shape(current) { Some(target) } else { None };
            Some(self.name(current))
        });
        chain.take(NESTING_LIMIT).filter(|name| !name.is_empty())
    }

    /// Whether a type is a structure or union.
    #[must_use]
    pub fn is_aggregate(&self, id: TypeId) -> bool {
        matches!(self.shape(self.strip(id)), Shape::Aggregate { .. })
    }

    pub(crate) fn shape(&self, id: TypeId) -> Shape {
        self.types.get(id.0 as usize).map_or(Shape::Opaque, |kind| kind.shape)
    }

    pub(crate) fn members_of(&self, id: TypeId) -> &[Member] {
        match self.shape(id) {
            Shape::Aggregate { first_member, member_count, .. } => {
                let first = first_member as usize;
                self.members.get(first..first + member_count as usize).unwrap_or(&[])
            }
            _ => &[],
        }
    }

    pub(crate) fn text(&self, name: NameRef) -> &str {
        reader::string_at(&self.strings, name.0).unwrap_or("")
    }
}
