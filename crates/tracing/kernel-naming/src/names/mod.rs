//! From a captured object and a byte range to the name that a kernel developer would write.
//!
//! Rules, in this order:
//!
//! 1. The structure is the one that pointers led to, else the one that the slab cache holds.
//! 2. The field is the innermost one that holds the whole range ([`KernelTypes::path`]).
//! 3. The object is the innermost *well-known* structure on that path (`inode`, `dentry`, `file`, ...): an inode is called
//!    `struct inode` whichever file system's structure it is embedded in.
//! 4. The full path ends at a word such as `atomic_t` or `spinlock_t`, whose insides have no meaning of their own
//!    (`i_rwsem.count`). The short path ends one level earlier, at the lock, list or work item that the field is part of
//!    (`i_rwsem`).
//! 5. Of a union's alternatives the accessing function chooses, where it is one of those that are known to (`usage`): the
//!    slab allocator accesses the `free list link` of a free object, who queues deferred work the field for that
//!    (`f_rcuhead`). Where the two sides of a pair use the bytes for different things, both are named, ` / ` between them.
//! 6. Variables are called by their symbol, per-CPU ones with `per-CPU` in front; a field follows where the type is known.
//! 7. Memory without type is called what it is: `kernel stack`, `page table`, `page cache page`, `user page`. A bare
//!    `kmalloc-192`, `page` or `unknown` is no name ([`ObjectName::known`] is false).
//!
//! Nothing in a name depends on an address, so it survives another boot, and mostly another build.

mod function;
mod holder;
mod pair;
mod tables;
mod usage;

pub use function::FunctionName;
pub use holder::Holder;
pub use pair::{PairName, Sharing, Side};

use crate::btf::{FieldStep, KernelTypes, TypeId, UnionUse};
use crate::capture::{CaptureKind, ObjectCapture, PageKind};
use crate::symbols::{KernelSymbols, without_number};
use usage::Use;

/// The name of a byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Type, variable, or kind of memory: `struct inode`, `per-CPU runqueues`, `page table`.
    pub object: String,
    /// The path to the field as a developer would write it (`i_rwsem`); empty where there is none.
    pub field: String,
    /// The path to its end (`i_rwsem.count`); for memory without type the offset (`+0x18`).
    pub full_field: String,
    /// Whether this names a type or variable, or a kind of memory that needs no further name.
    pub known: bool,
}

impl ObjectName {
    fn plain(object: impl Into<String>, known: bool) -> Self {
        Self { object: object.into(), field: String::new(), full_field: String::new(), known }
    }

    fn at_offset(object: impl Into<String>, offset: u64, known: bool) -> Self {
        Self { object: object.into(), field: String::new(), full_field: format!("+{offset:#x}"), known }
    }
}

/// Names what was captured, with the types and symbols of one kernel.
pub struct Namer {
    types: KernelTypes,
    symbols: KernelSymbols,
}

/// A byte range within a structure.
#[derive(Clone, Copy)]
struct Place {
    structure: TypeId,
    offset: u64,
    size_bytes: u64,
}

impl Namer {
    /// A namer for the kernel that both describe.
    #[must_use]
    pub fn new(types: KernelTypes, symbols: KernelSymbols) -> Self {
        Self { types, symbols }
    }

    /// The kernel's types.
    #[must_use]
    pub fn types(&self) -> &KernelTypes {
        &self.types
    }

    /// The kernel's symbols.
    #[must_use]
    pub fn symbols(&self) -> &KernelSymbols {
        &self.symbols
    }

    /// Names the `size_bytes` bytes at `address`, which lie in the captured object.
    #[must_use]
    pub fn name(&self, capture: &ObjectCapture, address: u64, size_bytes: u64) -> ObjectName {
        self.name_used(capture, address, size_bytes, Use::Unknown)
    }

    /// As [`Namer::name`], for what `function` ([`FunctionName::identity`]) accesses.
    #[must_use]
    pub fn name_for(&self, capture: &ObjectCapture, address: u64, size_bytes: u64, function: &str) -> ObjectName {
        self.name_used(capture, address, size_bytes, Use::of(function))
    }

    /// As [`Namer::name`], for what a function is known to use the bytes for.
    fn name_used(&self, capture: &ObjectCapture, address: u64, size_bytes: u64, used: Use) -> ObjectName {
        // Per-CPU memory and aliases of the image: `object` stands for the byte at `capture.address`.
        let canonical = capture.object.wrapping_add(address.wrapping_sub(capture.address));
        let within = address.wrapping_sub(capture.object);
        match capture.capture_kind() {
            CaptureKind::Slab => self.slab_name(capture, address, size_bytes, used),
            CaptureKind::StructPage => self.page_structure_name(capture, within, size_bytes, used),
            CaptureKind::Page => self.page_name(capture, address, size_bytes),
            CaptureKind::PerCpu => self.per_cpu_name(capture, canonical, size_bytes),
            CaptureKind::KernelImage => self.variable_name(canonical, size_bytes),
            CaptureKind::Module => self.variable_name(address, size_bytes),
            CaptureKind::Stack => ObjectName::plain("kernel stack", true),
            CaptureKind::Vmalloc => self.vmalloc_name(capture, address, size_bytes),
            CaptureKind::User => ObjectName::plain("user page", true),
            CaptureKind::CpuEntryArea => ObjectName::plain("CPU entry area", true),
            CaptureKind::Table => match capture.cache_name() {
                "" => ObjectName::at_offset("table", within, false),
                variable => ObjectName::at_offset(variable, within, true),
            },
            CaptureKind::Unknown => ObjectName::plain("unknown", false),
        }
    }

    fn slab_name(&self, capture: &ObjectCapture, address: u64, size_bytes: u64, used: Use) -> ObjectName {
        let cache = capture.cache_name();
        let offset = address.wrapping_sub(capture.object);
        if used == Use::FreeObject {
            // While it is free, an object is nothing but a link in its slab's list, whatever it was before.
            let structure = tables::cache_structures(cache).find(|structure| self.types.structure(structure).is_some());
            let object = structure.map_or_else(|| cache.to_owned(), |structure| format!("struct {structure}"));
            let field = tables::FREE_LIST_LINK.to_owned();
            return ObjectName {
                object,
                field: field.clone(),
                full_field: field,
                known: !cache.is_empty() && !tables::is_kmalloc(cache),
            };
        }
        if cache == tables::MAPLE_NODES && matches!(used, Use::Deferred | Use::SpareNode) {
            // Whatever the node was in its tree.
        } else if let Some(name) = self.typed_name(capture, address, size_bytes) {
            return name;
        }
        if !tables::is_kmalloc(cache) {
            // Sizes are not compared: objects may be shorter than their structure, whose last array is cut to what the
            // machine needs (`kmem_cache.node`, the register state in `task_struct`).
            let by_use = usage::maple_structure(used).filter(|_| cache == tables::MAPLE_NODES);
            let mut structures = by_use.into_iter().chain(tables::cache_structures(cache));
            let structure = structures.find_map(|structure| self.types.structure(structure));
            if let Some(structure) = structure {
                return self.structure_name_used(Place { structure, offset, size_bytes }, used);
            }
        }
        // Memory from kmalloc, or a cache of a structure that BTF does not have.
        let known = !cache.is_empty() && !tables::is_kmalloc(cache);
        ObjectName::at_offset(if cache.is_empty() { "slab object" } else { cache }, offset, known)
    }

    /// The name by the type that pointers led to.
    fn typed_name(&self, capture: &ObjectCapture, address: u64, size_bytes: u64) -> Option<ObjectName> {
        let name = capture.type_name();
        if name.is_empty() {
            return None;
        }
        let offset = match capture.capture_kind() {
            CaptureKind::PerCpu => {
                let canonical = capture.object.wrapping_add(address.wrapping_sub(capture.address));
                canonical.wrapping_sub(capture.typed_start)
            }
            _ => address.wrapping_sub(capture.typed_start),
        };
        // Elements of an array have one name, as they have within a structure.
        let element = name.strip_suffix("[]").and_then(|element| self.types.structure(element));
        if let Some((structure, stride)) = element.and_then(|id| Some((id, self.types.size_bytes(id)?)))
            && offset.checked_rem(stride).is_some()
        {
            return Some(self.structure_name(Place { structure, offset: offset % stride, size_bytes }));
        }
        Some(match self.types.structure(name) {
            Some(structure) => self.structure_name(Place { structure, offset, size_bytes }),
            None => ObjectName::at_offset(name, offset, true),
        })
    }

    fn page_structure_name(&self, capture: &ObjectCapture, offset: u64, size_bytes: u64, used: Use) -> ObjectName {
        let structure = if capture.page() == PageKind::Slab { "slab" } else { "page" };
        let Some(id) = self.types.structure(structure) else { return ObjectName::plain("struct page", true) };
        let mut name = self.structure_name(Place { structure: id, offset, size_bytes });
        // The path alone cannot know the alternative.
        let holds = |field: &&&str| {
            self.types.member("page", field).is_some_and(|member| {
                let end = member.offset_bytes.saturating_add(member.size_bytes);
                offset >= member.offset_bytes && offset.saturating_add(size_bytes) <= end
            })
        };
        if let Some(field) = usage::page_members(capture.page(), used).iter().find(holds) {
            name.field = (*field).to_owned();
            name.full_field = (*field).to_owned();
        }
        name
    }

    fn page_name(&self, capture: &ObjectCapture, address: u64, size_bytes: u64) -> ObjectName {
        match capture.page() {
            PageKind::PageTable => ObjectName::plain("page table", true),
            PageKind::PageCache => ObjectName::plain("page cache page", true),
            PageKind::Anonymous => ObjectName::plain("anonymous page", true),
            PageKind::Slab => ObjectName::plain("slab page", false),
            PageKind::Reserved | PageKind::Other | PageKind::None => {
                let typed = self.typed_name(capture, address, size_bytes);
                typed.unwrap_or_else(|| ObjectName::plain("page", false))
            }
        }
    }

    fn per_cpu_name(&self, capture: &ObjectCapture, template: u64, size_bytes: u64) -> ObjectName {
        if let Some(name) = self.typed_name(capture, capture.address, size_bytes) {
            return ObjectName { object: format!("per-CPU {}", name.object), ..name };
        }
        let end = self.symbols.address("__per_cpu_end").unwrap_or(0);
        let symbol = self.symbols.per_cpu_at(template).filter(|_| template < end);
        let Some(symbol) = symbol else { return ObjectName::plain(tables::DYNAMIC_PER_CPU, false) };
        if tables::is_per_cpu_stack(symbol.name) {
            return ObjectName::plain("kernel stack", true);
        }
        let object = format!("per-CPU {}", without_number(symbol.name));
        let offset = template - symbol.address;
        let Some(kind) = self.types.variable(symbol.name) else { return offset_name(object, offset) };
        // Elements of an array of structures have one name.
        if let Some((element, stride)) =
            self.types.array_element(kind).filter(|(element, _)| self.is_structure(*element))
        {
            let place = Place { structure: element, offset: offset % stride, size_bytes };
            return self.variable_field(format!("{object}[]"), place);
        }
        if self.is_structure(kind) {
            return self.variable_field(object, Place { structure: kind, offset, size_bytes });
        }
        offset_name(object, offset)
    }

    fn variable_name(&self, address: u64, size_bytes: u64) -> ObjectName {
        let Some(symbol) = self.symbols.data_at(address) else {
            return match self.function(address) {
                Some(function) => ObjectName::plain(format!("code of {}", function.identity), true),
                None => ObjectName::plain("kernel image", false),
            };
        };
        if tables::is_stack_variable(symbol.name) {
            return ObjectName::plain("kernel stack", true);
        }
        let offset = address - symbol.address;
        let variable = without_number(symbol.name);
        let listed = tables::variable_structure(symbol.name).and_then(|structure| self.types.structure(structure));
        let structure = listed.or_else(|| self.types.variable(symbol.name)).filter(|kind| self.is_structure(*kind));
        let fits = |kind: &TypeId| self.types.size_bytes(*kind).is_some_and(|size| offset < size);
        match structure.filter(fits) {
            Some(structure) => self.variable_field(variable.to_owned(), Place { structure, offset, size_bytes }),
            None => offset_name(variable.to_owned(), offset),
        }
    }

    fn vmalloc_name(&self, capture: &ObjectCapture, address: u64, size_bytes: u64) -> ObjectName {
        if let Some(name) = self.typed_name(capture, address, size_bytes) {
            return name;
        }
        match self.function(capture.owner) {
            Some(caller) => match tables::vmalloc_purpose(&caller.identity) {
                Some(purpose) => ObjectName::plain(purpose, purpose != tables::DYNAMIC_PER_CPU),
                None => ObjectName::plain(format!("vmalloc of {}", caller.identity), true),
            },
            None => ObjectName::plain("vmalloc area", false),
        }
    }

    fn is_structure(&self, kind: TypeId) -> bool {
        self.types.is_aggregate(kind)
    }

    /// A field of a variable: the variable is the object, and the path is not cut at well-known structures.
    fn variable_field(&self, object: String, place: Place) -> ObjectName {
        let steps = self.types.path(place.structure, place.offset, place.size_bytes);
        ObjectName {
            object,
            field: self.join(&steps, Depth::Short),
            full_field: self.join(&steps, Depth::Full),
            known: true,
        }
    }

    /// A field of a structure, the object being the innermost well-known one.
    fn structure_name(&self, place: Place) -> ObjectName {
        self.structure_name_used(place, Use::Plain)
    }

    fn structure_name_used(&self, place: Place, used: Use) -> ObjectName {
        let union_use = if used == Use::Deferred { UnionUse::Deferred } else { UnionUse::Plain };
        let steps = self.types.path_used(place.structure, place.offset, place.size_bytes, union_use);
        let mut structure = self.types.name(place.structure);
        let mut rest = steps.as_slice();
        for (index, step) in steps.iter().enumerate() {
            let name = self.types.name(self.types.strip(step.kind));
            // Not the last step: the whole embedded structure is a field of the one around it.
            if tables::is_well_known(name) && index + 1 < steps.len() {
                structure = name;
                rest = &steps[index + 1..];
            }
        }
        let (field, full_field) = (self.join(rest, Depth::Short), self.join(rest, Depth::Full));
        let full_field = if full_field.is_empty() { format!("+{:#x}", place.offset) } else { full_field };
        ObjectName { object: format!("struct {structure}"), field, full_field, known: true }
    }

    /// Joins a path, ending where the depth says.
    fn join(&self, steps: &[FieldStep], depth: Depth) -> String {
        let mut text = String::new();
        for step in steps {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&step.name);
            let ends = self
                .types
                .type_names(step.kind)
                .any(|name| tables::is_word(name) || (depth == Depth::Short && tables::is_building_block(name)));
            if ends {
                break;
            }
        }
        text
    }
}

/// How far a path is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Short,
    Full,
}

/// A variable without type: the symbol, and where in it.
fn offset_name(object: String, offset: u64) -> ObjectName {
    if offset == 0 { ObjectName::plain(object, true) } else { ObjectName::at_offset(object, offset, true) }
}
