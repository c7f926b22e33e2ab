//! How objects without a slab cache of their own (`kmalloc-192`) get a type: from what points to them.
//!
//! A layout holds a graph over types. Its roots are variables and the running tasks; its edges are pointer fields whose
//! target type is known. Capturing walks it from the roots until the wanted object is met.

/// Longest type name: what `ObjectCapture::type_name` holds.
pub const TYPE_NAME_LIMIT_BYTES: usize = 32;

/// A type that the walk knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeEntry {
    /// Structure name, or a description with `[]` for an array (`file*[]`); no spaces.
    pub name: String,
    /// Size of an object; for arrays that of an element, or the least size.
    pub size_bytes: u64,
}

impl TypeEntry {
    /// Whether objects reach to the end of the memory that was allocated for them.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.name.ends_with("[]")
    }
}

/// A pointer, or several, in an object of a known type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Index of the type that holds the pointer.
    pub source: u16,
    /// How to get from the field to the target.
    pub kind: EdgeKind,
    /// Where the field lies in the source.
    pub offset_bytes: u32,
    /// Index of the target's type.
    pub target: u16,
    /// Where in the target the pointer points (an embedded structure).
    pub target_offset_bytes: u32,
    /// The edge exists only in objects for which this holds.
    pub guard: Option<Guard>,
}

/// How a field leads to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// The field points to the target.
    Pointer,
    /// The field is an array of this many pointers, each to a target.
    Pointers(u32),
    /// The field is a per-CPU pointer: the target's address is an offset of the per-CPU area.
    PerCpu,
    /// The field points to the `struct page` of the target, which is the page's memory.
    Page,
}

/// A condition on an object: its 8 bytes at an offset, masked, have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Where the 8 bytes lie in the object.
    pub offset_bytes: u32,
    /// Bits that count.
    pub mask: u64,
    /// Their value.
    pub value: u64,
}

/// Where a walk starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// How to get from the address to the object.
    pub kind: RootKind,
    /// Index of the object's type.
    pub target: u16,
    /// Virtual address of the variable; for a per-CPU variable its offset.
    pub address: u64,
}

/// How a variable leads to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// The variable is the object.
    Object,
    /// The variable points to the object.
    Pointer,
    /// The variable is an array of this many pointers to objects.
    Pointers(u32),
    /// The variable is a per-CPU pointer variable, one object for each CPU.
    PerCpuPointer,
    /// The variable is a per-CPU object.
    PerCpuObject,
    /// The variable is the head of a list that runs through the objects at this offset.
    List(u32),
}

/// A table, such as a hash table, that was allocated at boot: named by the variable that points to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The variable's name.
    pub name: String,
    /// Virtual address of the variable that points to the table.
    pub pointer: u64,
    /// Virtual address of the 32-bit variable that holds the number of entries.
    pub entries_variable: u64,
    /// How that variable holds it.
    pub entries: RegionEntries,
    /// Bytes of an entry.
    pub entry_bytes: u64,
}

/// How a variable tells the number of entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionEntries {
    /// The number less one (`m_hash_mask`).
    Mask,
    /// A hash is shifted right by it to 32 bits less it: 2^(32 - value) (`d_hash_shift`).
    ShiftFrom32,
}
