//! The type of a block of memory, from the calls that asked for it.
//!
//! Rules, in this order; a type must make up the block as a whole, or as many times over as an array:
//! 1. a variable that receives the pointer, or a field that it is stored to;
//! 2. the type parameter of a container's function that allocates (`Box::new<T>`), or of the class whose method does
//!    (`__new_allocator<T>::allocate`, `Node<K, V>::alloc`), or what a pointer points to in what such a function gives back;
//! 3. the type of the pointer that an access to the block goes through;
//! 4. the only type of that size that the code's own sources define.
//!
//! Where all are silent, a container's bytes are bytes; and what receives the pointer in the function that allocates is the
//! block's head, after which other things follow.

use std::sync::Arc;

use crate::debug::{Declared, Entry, Function, SourceFiles, Type, Unit};
use crate::file::CodeName;
use crate::function_names::plain_name;
use crate::loaded::Loaded;
use crate::module::Module;
use crate::receive::{Received, instruction_bytes, memory_operand, pointed_to, receivers};

/// Calls, from the innermost one, within which an allocation may be wrapped.
const MOST_WRAPPERS: usize = 12;
/// Bytes of code that are looked at after a call.
const LOOK_BYTES: usize = 96;
/// Largest block without a type in which an offset says where.
const MOST_TOLD_BYTES: u64 = 1024;
const LONGEST_INSTRUCTION_BYTES: usize = 15;

/// Which rule gave a block's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A variable or a field receives the pointer.
    Receiver,
    /// A container's type parameter, or the class that allocates.
    Container,
    /// The same of a hash table, whose block holds more than its entries.
    HashTable,
    /// The pointer that an access goes through.
    Access,
    /// The only type of that size.
    OnlySize,
    /// A variable or a field receives the pointer as one to what is smaller than the block.
    Head,
}

impl Rule {
    /// What a finding says of it; empty for the first one, which needs no words.
    #[must_use]
    pub fn remark(self) -> &'static str {
        match self {
            Rule::Receiver => "",
            Rule::Container | Rule::HashTable => "by container",
            Rule::Access => "by access",
            Rule::OnlySize => "by size",
            Rule::Head => "by head",
        }
    }
}

/// An access to a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockAccess {
    /// Where the instruction stands.
    pub instruction: u64,
    /// How far from the block's start it reads or writes.
    pub offset: u64,
}

/// What is known of a block of memory.
#[derive(Debug, Clone)]
pub struct Block {
    /// What it consists of, such as `struct bucket[]`; without a type `block of 48 bytes`.
    pub label: String,
    /// Who asked for it, such as `table_new, chash.c:9`; empty if no one is known.
    pub place: String,
    /// Which rule gave the type.
    pub rule: Option<Rule>,
    size_bytes: u64,
    of_type: Option<(Arc<Unit>, Entry)>,
    /// Where the control bytes of a hash table begin, in front of which its entries end.
    control: Option<u64>,
    /// Where the adapter is from that was written to try a library, if the block is in a type of the adapter's.
    adapter: Option<Arc<str>>,
}

/// What an adapter's type wraps at an offset of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedName {
    /// The library's type.
    pub label: String,
    /// The innermost field at the offset, within that type.
    pub field: String,
    /// Where in the adapter's type it is: `struct queue.ring`.
    pub within: String,
}

impl Block {
    /// The library's own type and field at an offset, where the block is of a type that the adapter has around them.
    #[must_use]
    pub fn wrapped(&self, offset: u64) -> Option<WrappedName> {
        let (unit, entry) = self.of_type.as_ref()?;
        if self.label.ends_with("[]") || matches!(self.rule, Some(Rule::Head | Rule::HashTable)) {
            return None;
        }
        let found = unit.wrapped_at(*entry, offset, self.adapter.as_deref()?)?;
        Some(WrappedName {
            label: unit.name(found.of_type)?,
            field: unit.field_at(found.of_type, found.offset),
            within: format!("{}.{}", self.label, found.path),
        })
    }

    /// The innermost field at an offset of the block; the offset itself if no type is known.
    #[must_use]
    pub fn field(&self, offset: u64) -> String {
        let Some((unit, entry)) = &self.of_type else {
            // In a large block of no known type are many of something, and which of them a test meets differs each time.
            return if self.size_bytes > MOST_TOLD_BYTES { String::new() } else { format!("+{offset:#x}") };
        };
        let size = unit.size(*entry).filter(|size| *size > 0).unwrap_or(u64::MAX);
        if let Some(control) = self.control {
            return match control.checked_sub(offset + 1) {
                Some(from_end) => unit.field_at(*entry, size - 1 - from_end % size),
                None => "control bytes".to_owned(),
            };
        }
        match self.rule {
            Some(Rule::Head) if offset >= size => format!("+{offset:#x}"),
            _ if self.label.ends_with("[]") => unit.field_at(*entry, offset % size),
            _ => unit.field_at(*entry, offset),
        }
    }
}

impl Loaded {
    /// The block of this many bytes that the calls at `sites` (the innermost first) asked for, with accesses to it.
    /// Without accesses it is what the calls alone tell.
    pub fn block(&mut self, sites: &[u64], size_bytes: u64, accesses: &[BlockAccess]) -> Block {
        let own = self.program_range();
        let sites: Vec<u64> = sites.iter().copied().filter(|site| !own.contains(site)).collect();
        block(self, &sites, size_bytes, accesses)
    }
}

/// The block of this many bytes that the calls at `sites` (the innermost first) asked for, and that is accessed so.
/// Where what they say of the type does not depend on the accesses, those may be left out.
fn block(loaded: &mut Loaded, sites: &[u64], size_bytes: u64, accesses: &[BlockAccess]) -> Block {
    let place = place(loaded, sites);
    let found = by_frames(loaded, sites, size_bytes)
        .or_else(|| accesses.iter().find_map(|access| by_access(loaded, *access, size_bytes)))
        .or_else(|| by_size(loaded, sites, size_bytes))
        .or_else(|| bytes(loaded, sites, size_bytes))
        .or_else(|| by_head(loaded, sites, size_bytes));
    match found {
        Some((label, rule, unit, entry)) => {
            let control = (rule == Rule::HashTable).then(|| control_bytes(&unit, entry, size_bytes)).flatten();
            let adapter = adapter(loaded, sites);
            Block { label, place, rule: Some(rule), size_bytes, of_type: Some((unit, entry)), control, adapter }
        }
        None => Block {
            label: format!("block of {size_bytes} bytes"),
            place,
            rule: None,
            size_bytes,
            of_type: None,
            control: None,
            adapter: None,
        },
    }
}

/// Where the adapter is from among the modules that asked for a block.
fn adapter(loaded: &mut Loaded, sites: &[u64]) -> Option<Arc<str>> {
    sites.iter().find_map(|&site| loaded.module_at(site)?.0.adapter())
}

type Typed = (String, Rule, Arc<Unit>, Entry);

fn by_frames(loaded: &mut Loaded, sites: &[u64], size_bytes: u64) -> Option<Typed> {
    for &site in sites.iter().take(MOST_WRAPPERS) {
        let (module, site) = loaded.module_at(site)?;
        let Some(unit) = module.unit_of_code(site) else { continue };
        let chain = unit.functions_at(site);
        if chain.is_empty() {
            continue;
        }
        for (unit, entry) in received_as(module, &unit, &chain, site) {
            let entry = unit.content(entry);
            if let Some(label) = specific(&unit, entry).then(|| unit.label(entry, size_bytes)).flatten() {
                return Some((label, Rule::Receiver, unit, entry));
            }
        }
        // What makes a hash table has its keys' type as a parameter, too, which may fit by chance.
        if let Some((label, entry)) = chain.iter().find_map(|function| by_hash_table(&unit, function, size_bytes)) {
            return Some((label, Rule::HashTable, unit, entry));
        }
        if let Some((label, entry)) = chain.iter().find_map(|function| by_container(&unit, function, size_bytes)) {
            return Some((label, Rule::Container, unit, entry));
        }
        // A function that gives back something else than the pointer hides it from its callers: the pointer is in that.
        let outermost = chain.last()?;
        let returns = unit.declarations(&outermost.declared).find_map(|declared| declared.returns);
        if let Some(entry) = returns
            && !matches!(unit.plain(entry), Some(Type::Pointer(_)))
            && !is_container(&unit, outermost)
        {
            return (!is_of_library(&unit, outermost))
                .then(|| within(&unit, entry, size_bytes))
                .flatten()
                .map(|(label, entry)| (label, Rule::Container, unit, entry));
        }
    }
    None
}

/// What the code after a call receives the pointer as, in the order of what is more certain.
fn received_as(module: &mut Module, unit: &Arc<Unit>, chain: &[&Function], site: u64) -> Vec<(Arc<Unit>, Entry)> {
    let bytes = module.code_bytes(site, LOOK_BYTES + 16).to_vec();
    let Some(length) = instruction_bytes(&bytes) else { return Vec::new() };
    let received = receivers(unit, chain, &bytes[length as usize..], site + length);
    let typed = received.into_iter().filter_map(|one| match one {
        Received::ByVariable(entry) | Received::ByField(entry) => Some((Arc::clone(unit), entry)),
        Received::At(address) => {
            let (unit, entry) = module.type_of_variable(address)?;
            let entry = unit.pointee(entry)?;
            Some((unit, entry))
        }
    });
    typed.collect()
}

/// By what receives the pointer in the innermost function of the code's own sources: a record that is smaller than the block.
fn by_head(loaded: &mut Loaded, sites: &[u64], size_bytes: u64) -> Option<Typed> {
    for &site in sites.iter().take(MOST_WRAPPERS) {
        let (module, site) = loaded.module_at(site)?;
        let Some(unit) = module.unit_of_code(site) else { continue };
        let chain = unit.functions_at(site);
        for (unit, entry) in received_as(module, &unit, &chain, site) {
            let is_smaller = unit.size(entry).is_some_and(|size| (1..size_bytes).contains(&size));
            if is_smaller && matches!(unit.plain(entry), Some(Type::Record(_))) {
                return Some((unit.name(entry)?, Rule::Head, unit, entry));
            }
        }
        if chain.last().is_some_and(|function| !is_of_library(&unit, function)) {
            return None;
        }
    }
    None
}

/// By the pointers within what a function gives back. Of several types that fit the largest one: a small one fits by chance.
fn within(unit: &Unit, entry: Entry, size_bytes: u64) -> Option<(String, Entry)> {
    let is_record = |entry: &Entry| matches!(unit.plain(*entry), Some(Type::Record(_)));
    let fitting = unit.pointees(entry).into_iter().filter(is_record).filter_map(|entry| fits(unit, entry, size_bytes));
    // What it points to itself is one, not an array.
    let direct = unit.pointee(entry);
    let fitting = fitting.filter(|(label, entry)| Some(*entry) != direct || !label.ends_with("[]"));
    fitting.max_by_key(|(_, entry)| unit.size(*entry))
}

fn is_of_library(unit: &Unit, function: &Function) -> bool {
    names(unit, function).any(|declared| declared.is_of_library)
}

/// Whether a type says more than that there are bytes.
fn specific(unit: &Unit, entry: Entry) -> bool {
    !matches!(unit.plain(entry), Some(Type::Base { size_bytes: 0 | 1, .. }) | None)
}

/// Names of functions that allocate what their type parameter says (Rust's library `alloc`).
const MAKERS: [&str; 13] = [
    "new",
    "new_in",
    "pin",
    "new_uninit",
    "new_uninit_in",
    "with_capacity",
    "with_capacity_in",
    "try_new_in",
    "from_elem",
    "from_iter",
    "new_uninit_slice",
    "reserve",
    "grow_one",
];

fn names<'a>(unit: &'a Unit, function: &'a Function) -> impl Iterator<Item = &'a Declared> {
    unit.declarations(&function.declared)
}

fn is_container(unit: &Unit, function: &Function) -> bool {
    names(unit, function).any(|declared| {
        let class = declared.class.and_then(|class| unit.types.get(&class));
        let class = class.map_or("", |class| if let Type::Record(record) = class { record.name.as_str() } else { "" });
        let name = declared.name.split('<').next().unwrap_or_default();
        (declared.is_of_library && MAKERS.contains(&name))
            || ["allocator", "Box<", "Vec<", "RawVec", "Arc<", "Rc<", "RawTable"]
                .iter()
                .any(|known| class.contains(known))
    })
}

/// By a function's or its class's type parameter.
fn by_container(unit: &Unit, function: &Function, size_bytes: u64) -> Option<(String, Entry)> {
    for declared in names(unit, function) {
        let class = declared.class.and_then(|class| match unit.types.get(&class) {
            Some(Type::Record(record)) => Some((class, record)),
            _ => None,
        });
        // C++: `__new_allocator<T>`, `new_allocator<T>`, `allocator<T>`.
        if let Some((_, record)) = class
            && record.name.contains("allocator<")
            && let Some(found) = record.parameters.iter().find_map(|(_, entry)| fits(unit, *entry, size_bytes))
        {
            return Some(found);
        }
        // Rust: a method of the container itself.
        if let Some((_, record)) = class
            && record.is_of_library
            && ["Vec<", "RawVec<", "VecDeque<", "Box<"].iter().any(|known| record.name.starts_with(known))
            && let Some(found) = record.parameters.first().and_then(|(_, entry)| fits(unit, *entry, size_bytes))
        {
            return Some(found);
        }
        let name = declared.name.split('<').next().unwrap_or_default();
        if MAKERS.contains(&name) && declared.is_of_library {
            let of_function = declared.parameters.iter().find_map(|(_, entry)| fits(unit, *entry, size_bytes));
            if let Some(found) = of_function.or_else(|| counted(unit, declared, size_bytes)) {
                return Some(found);
            }
        }
        // The class that allocates: `Node<K, V>::alloc`.
        if name.starts_with("alloc")
            && let Some((entry, record)) = class
            && !record.name.contains("llocator")
            && let Some(found) = fits(unit, entry, size_bytes)
        {
            return Some(found);
        }
    }
    None
}

/// hashbrown, the hash table of Rust's library: `RawTable<T>::with_capacity`, `RawTableInner::resize` in it. The block holds
/// the entries, rounded up to 16 bytes, and after them a byte for each and 16 more.
fn by_hash_table(unit: &Unit, function: &Function, size_bytes: u64) -> Option<(String, Entry)> {
    names(unit, function).find_map(|declared| {
        let class = declared.class.and_then(|class| unit.types.get(&class));
        let Some(Type::Record(record)) = class else { return None };
        let parameter = record.parameters.first().filter(|_| record.name.starts_with("RawTable<"))?;
        control_bytes(unit, parameter.1, size_bytes)?;
        Some((format!("{}[]", unit.name(parameter.1)?), parameter.1))
    })
}

/// Where the control bytes of a table of such entries begin in a block of this size; `None` if it is no such block.
fn control_bytes(unit: &Unit, entry: Entry, size_bytes: u64) -> Option<u64> {
    const GROUP_BYTES: u64 = 16;
    let size = unit.size(entry).filter(|size| *size > 0)?;
    let buckets = (size_bytes.checked_sub(GROUP_BYTES)? / (size + 1)).checked_add(1)?.next_power_of_two();
    [buckets, buckets / 2].into_iter().find_map(|buckets| {
        let control = buckets.checked_mul(size)?.next_multiple_of(GROUP_BYTES);
        (buckets > 0 && control + buckets + GROUP_BYTES == size_bytes).then_some(control)
    })
}

fn fits(unit: &Unit, entry: Entry, size_bytes: u64) -> Option<(String, Entry)> {
    let entry = unit.content(entry);
    if !specific(unit, entry) {
        return None;
    }
    unit.label(entry, size_bytes).map(|label| (label, entry))
}

/// `Arc::new<T>` allocates a counted `T`: the record `ArcInner<T>`.
fn counted(unit: &Unit, declared: &Declared, size_bytes: u64) -> Option<(String, Entry)> {
    let parameter = unit.name(declared.parameters.first()?.1)?;
    unit.types.iter().find_map(|(entry, known)| {
        let Type::Record(record) = known else { return None };
        let is_counted = record.name.starts_with("ArcInner<")
            || record.name.starts_with("RcInner<")
            || record.name.starts_with("RcBox<");
        let base = parameter.split('<').next().unwrap_or_default();
        (is_counted && record.size_bytes == size_bytes && record.name.contains(base))
            .then(|| unit.name(*entry).map(|name| (name, *entry)))
            .flatten()
    })
}

/// By the variable in the register through which an instruction reaches the block, if that points to the block's start.
fn by_access(loaded: &mut Loaded, access: BlockAccess, size_bytes: u64) -> Option<Typed> {
    let (module, at) = loaded.module_at(access.instruction)?;
    let (base, displacement) = memory_operand(module.code_bytes(at, LONGEST_INSTRUCTION_BYTES))?;
    if displacement.cast_unsigned() != access.offset {
        return None;
    }
    let unit = module.unit_of_code(at)?;
    let entry = unit.content(pointed_to(&unit, &unit.functions_at(at), base, at)?);
    // A pointer to the first field of a record points to its start, too: its type may divide the block by chance.
    let label = specific(&unit, entry).then(|| unit.label(entry, size_bytes)).flatten()?;
    (!label.ends_with("[]")).then_some((label, Rule::Access, unit, entry))
}

fn by_size(loaded: &mut Loaded, sites: &[u64], size_bytes: u64) -> Option<Typed> {
    for &site in sites {
        let (module, site) = loaded.module_at(site)?;
        let frames = module.frames(site);
        if !frames.iter().any(is_own) {
            continue;
        }
        let unit = module.unit_of_code(site)?;
        let entry = unit.only_record_of(size_bytes)?;
        return Some((unit.name(entry)?, Rule::OnlySize, unit, entry));
    }
    None
}

/// Bytes of a container: what says so little only counts where nothing else is known.
fn bytes(loaded: &mut Loaded, sites: &[u64], size_bytes: u64) -> Option<Typed> {
    for &site in sites.iter().take(MOST_WRAPPERS) {
        let (module, site) = loaded.module_at(site)?;
        let Some(unit) = module.unit_of_code(site) else { continue };
        let is_byte = |entry: &Entry| unit.size(*entry) == Some(1);
        let of_container = |declared: &Declared| {
            let (_, entry) = declared.parameters.first().filter(|_| declared.is_of_library)?;
            Some(*entry).filter(is_byte)
        };
        let chain = unit.functions_at(site);
        let entry = chain.iter().find_map(|function| names(&unit, function).find_map(of_container));
        if let Some((label, entry)) = entry.and_then(|entry| Some((unit.label(entry, size_bytes)?, entry))) {
            return Some((label, Rule::Container, unit, entry));
        }
        if chain.last().is_some_and(|function| !is_of_library(&unit, function)) {
            return None;
        }
    }
    None
}

/// Whether a frame is in the code's own sources, and not in a compiler's library.
fn is_own(frame: &CodeName) -> bool {
    frame.line.as_ref().is_some_and(|(path, line)| *line > 0 && !SourceFiles::is_of_library(path))
}

/// The innermost function in own sources that asked, with file and line; else the innermost one with a name.
fn place(loaded: &mut Loaded, sites: &[u64]) -> String {
    let mut known = None;
    for &site in sites {
        let Some((module, site)) = loaded.module_at(site) else { continue };
        for frame in module.frames(site) {
            let function = plain_name(&frame.function);
            if let Some((path, line)) = &frame.line
                && is_own(&frame)
            {
                return format!("{function}, {}:{line}", path.rsplit('/').next().unwrap_or(path));
            }
        }
        let symbol = || module.function(site).map(|(name, _)| plain_name(name));
        known = known.or_else(symbol).or_else(|| Some(module.name.clone()));
    }
    known.unwrap_or_default()
}
