//! Names for what a trace holds, each distinct one worked out once.
//!
//! A machine's trace is named by [`kernel_naming`], from the captures in the record. A program's trace is named by a list
//! of symbols. Windows repeat themselves: in a campaign of a million windows the same few thousand places and functions
//! come again and again, so that names are kept by what they depend on, which is never the address of an object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernel_naming::{CaptureKind, Holder, Namer, ObjectCapture, ObjectName, Side};

use crate::conflict::{Places, Sharing};
use crate::loaded::{LoadedFieldsKey, LoadedNames, PlaceName, joined};
use crate::record::{Access, SharedLine};
use crate::sections::{self, Step};

/// Bytes of a line: the first one, and how many.
pub type ByteRange = (u8, u8);

/// What bytes of a line are called, ascending; bytes without a name are in no range.
pub type Fields = Vec<(ByteRange, String)>;

/// A symbol of a program: code or data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Its name.
    pub name: String,
}

/// Where names come from.
pub enum NameSource {
    /// A kernel's types and symbols, shared by the traces of all its machines.
    Kernel(Arc<Namer>),
    /// A program's symbols, sorted by [`Names::new`].
    Program(Vec<Symbol>),
    /// What a program that loads libraries says of itself, and their debug information.
    /// The lock is never contended; it only makes names what threads may hand to each other.
    Loaded(Box<Mutex<LoadedNames>>),
}

/// Bytes of a capture as they stand in a trace.
type CaptureBytes = [u8; ObjectCapture::SIZE_BYTES];

/// What a place's name depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PlaceKey {
    kinds: (u32, u32),
    names: [[u8; kernel_naming::capture::NAME_BYTES]; 2],
    position: u64,
    typed_position: u64,
    size_bytes: u8,
}

/// What the names of a line's bytes depend on: each capture, where in the line it was taken, and the object's size.
type OtherFieldsKey = Vec<(PlaceKey, u64, u64)>;

/// The same, whatever names the line.
#[derive(Clone, PartialEq, Eq, Hash)]
enum FieldsKey {
    Loaded(LoadedFieldsKey),
    Other(OtherFieldsKey),
}

/// All names worked out so far.
pub struct Names {
    source: NameSource,
    places: HashMap<PlaceKey, u32>,
    place_numbers: HashMap<(String, String), u32>,
    place_names: Vec<String>,
    functions: HashMap<u64, u32>,
    function_numbers: HashMap<String, u32>,
    function_names: Vec<String>,
    field_numbers: HashMap<FieldsKey, u32>,
    whom_numbers: HashMap<[u8; kernel_naming::capture::NAME_BYTES], u32>,
    whom_texts: Vec<String>,
}

const LINE_BYTES: u8 = 64;

/// Code outside of the kernel in a machine's trace.
const USER_CODE: &str = "user code";

impl Names {
    /// Names from a source.
    pub fn new(mut source: NameSource) -> Self {
        if let NameSource::Program(symbols) = &mut source {
            symbols.sort_by(|a, b| (a.start, a.end, &a.name).cmp(&(b.start, b.end, &b.name)));
        }
        Self {
            source,
            places: HashMap::new(),
            place_numbers: HashMap::new(),
            place_names: Vec::new(),
            functions: HashMap::new(),
            function_numbers: HashMap::new(),
            function_names: Vec::new(),
            field_numbers: HashMap::new(),
            whom_numbers: HashMap::new(),
            whom_texts: vec![String::new()],
        }
    }

    /// A window is to be named: what is known of the program may have grown.
    pub fn update(&mut self) {
        if let NameSource::Loaded(loaded) = &mut self.source {
            owned(loaded).update();
        }
    }

    /// The frames of a call stack that an instruction stands for, `function+0xoffset`; those of inlined functions before it
    /// where they are known.
    pub fn frames(&mut self, address: u64) -> Vec<String> {
        match &mut self.source {
            NameSource::Kernel(namer) => match namer.function(address) {
                Some(function) => vec![function.to_string()],
                None if address >> 63 == 0 => vec![USER_CODE.to_owned()],
                None => vec![format!("{address:#x}")],
            },
            NameSource::Program(symbols) => match symbol_at(symbols, address) {
                Some(symbol) => vec![format!("{}+{:#x}", symbol.name, address - symbol.start)],
                None => vec![format!("{address:#x}")],
            },
            NameSource::Loaded(loaded) => owned(loaded).frames(address),
        }
    }

    /// Object and field of what two accesses share, each with its line.
    pub fn pair(&mut self, sides: [(&SharedLine, Access); 2], sharing: Sharing) -> (String, String) {
        let functions = sides.map(|(_, access)| self.function(access.instruction));
        let [first, second] = sides.map(|(line, access)| line.address + u64::from(access.offset));
        let later = first.max(second);
        match &mut self.source {
            NameSource::Kernel(namer) => {
                let namer = Arc::clone(namer);
                let captures =
                    [(sides[0].0, first), (sides[1].0, second)].map(|(line, at)| capture_at(&namer, line, at));
                let side = |index: usize, address: u64| Side {
                    capture: &captures[index],
                    address,
                    size_bytes: u64::from(sides[index].1.size_bytes),
                    function: self.function_name(functions[index]),
                };
                let name = namer.name_pair(side(0, first), side(1, second));
                (name.object, name.field)
            }
            NameSource::Program(symbols) => {
                let (one, other) = (data_name(symbols, first), data_name(symbols, second));
                if sharing == Sharing::True {
                    return data_name(symbols, later);
                }
                let mut both = [one, other];
                both.sort();
                let [low, high] = both;
                if low.0 == high.0 {
                    let field = if low.1 == high.1 { low.1 } else { format!("{} | {}", low.1, high.1) };
                    (low.0, field)
                } else {
                    let whole =
                        |(object, field): (String, String)| if field.is_empty() { object } else { object + &field };
                    (format!("{} | {}", whole(low), whole(high)), String::new())
                }
            }
            NameSource::Loaded(loaded) => {
                let loaded = owned(loaded);
                if sharing == Sharing::True {
                    return loaded.name(sides[0].0, later).parts();
                }
                PlaceName::of_both(loaded.name(sides[0].0, first), loaded.name(sides[1].0, second))
            }
        }
    }

    /// Which file or directory both accesses' objects are about, as a number; 0 where that is not known of both, or is not
    /// the same.
    pub fn of_whom(&mut self, sides: [(&SharedLine, Access); 2]) -> u32 {
        let [one, other] = sides.map(|(line, access)| self.of_whom_at(line, access.offset));
        if one == other { one } else { 0 }
    }

    /// The same of the object that one byte of a line lies in.
    pub fn of_whom_at(&mut self, line: &SharedLine, offset: u8) -> u32 {
        let NameSource::Kernel(namer) = &self.source else { return 0 };
        let capture = capture_at(namer, line, line.address + u64::from(offset));
        if capture.of_whom().is_empty() {
            return 0;
        }
        let next = self.whom_texts.len() as u32;
        *self.whom_numbers.entry(capture.of_whom).or_insert_with(|| {
            self.whom_texts.push(capture.of_whom().to_owned());
            next
        })
    }

    /// What a number of [`Names::of_whom`] stands for.
    pub fn of_whom_text(&self, number: u32) -> &str {
        self.whom_texts.get(number as usize).map_or("", String::as_str)
    }

    /// The object that the byte at an offset of a line lies in, and a number that tells it from others of the window. A
    /// line in no object is one without name. The objects of programs are not known here: one holds all, from address 0.
    pub fn holder(&mut self, line: &SharedLine, offset: u8) -> (Holder, u64) {
        let nameless = |start| Holder { name: String::new(), start };
        let address = line.address + u64::from(offset);
        let namer = match &mut self.source {
            NameSource::Kernel(namer) => namer,
            NameSource::Program(_) => return (nameless(0), line.address),
            NameSource::Loaded(loaded) => {
                return (owned(loaded).holder(line, address).unwrap_or_else(|| nameless(line.address)), 0);
            }
        };
        match namer.holder(&capture_at(namer, line, address), address) {
            Some(holder) => (holder, 0),
            None => (nameless(line.address), 0),
        }
    }

    /// A number for what the bytes of a line are called: `number` gives that of [`Names::fields`], and is asked once.
    pub fn fields_once(&mut self, line: &SharedLine, number: impl FnOnce(Fields) -> u32) -> u32 {
        let key = match &mut self.source {
            NameSource::Loaded(loaded) => FieldsKey::Loaded(owned(loaded).fields_key(line)),
            _ => FieldsKey::Other(self.fields_key(line)),
        };
        if let Some(&number) = self.field_numbers.get(&key) {
            return number;
        }
        let number = number(self.fields(line));
        self.field_numbers.insert(key, number);
        number
    }

    fn fields_key(&self, line: &SharedLine) -> OtherFieldsKey {
        let captures = line.captures.iter().filter_map(|bytes| {
            let bytes: &CaptureBytes = bytes.as_slice().try_into().ok()?;
            ObjectCapture::from_bytes(bytes).ok()
        });
        let key = |capture: ObjectCapture| {
            let at = capture.address.wrapping_sub(line.address);
            (place_key(&capture, line.address, 1), at, capture.object_size)
        };
        let mut key: OtherFieldsKey = captures.map(key).collect();
        if key.is_empty() {
            // Symbols alone speak for the line.
            key.push((place_key(&ObjectCapture::unknown(line.address), line.address, 1), line.address, 0));
        }
        key
    }

    /// What the bytes of a line are called, in ranges of one name each; bytes without a name are in none.
    pub fn fields(&mut self, line: &SharedLine) -> Fields {
        let mut fields = Fields::new();
        for offset in 0..LINE_BYTES {
            let Some(name) = self.byte_name(line, line.address + u64::from(offset)) else { continue };
            match fields.last_mut() {
                Some(((start, size), known)) if *start + *size == offset && *known == name => *size += 1,
                _ => fields.push(((offset, 1), name)),
            }
        }
        fields
    }

    /// The innermost field or the symbol that a byte lies in, with its object.
    fn byte_name(&mut self, line: &SharedLine, address: u64) -> Option<String> {
        match &mut self.source {
            NameSource::Kernel(namer) => {
                let ObjectName { object, full_field, known, .. } =
                    namer.name(&capture_at(namer, line, address), address, 1);
                let named = !full_field.is_empty() && !full_field.starts_with('+');
                known.then(|| if named { joined(&object, &full_field) } else { object })
            }
            NameSource::Program(symbols) => symbol_at(symbols, address).map(|symbol| symbol.name.clone()),
            NameSource::Loaded(loaded) => {
                let PlaceName { object, field, .. } = owned(loaded).name(line, address);
                Some(joined(&object, &field))
            }
        }
    }

    /// What an instruction does to a lock, by the function that it is in; of a program by any that was inlined there, too.
    pub fn step(&mut self, instruction: u64) -> Option<Step> {
        let function = self.function(instruction);
        sections::step_of(self.function_name(function)).or_else(|| {
            let NameSource::Loaded(loaded) = &mut self.source else { return None };
            owned(loaded).functions(instruction).iter().find_map(|name| sections::step_of_method(name))
        })
    }

    fn place_number(&mut self, object: String, field: String) -> u32 {
        let next = self.place_numbers.len() as u32;
        *self.place_numbers.entry((object, field)).or_insert_with_key(|(object, field)| {
            self.place_names.push(joined(object, field));
            next
        })
    }

    /// The name of a place: a type with its field, or a variable.
    pub fn place_name(&self, place: u32) -> String {
        self.place_names.get(place as usize).cloned().unwrap_or_default()
    }
}

impl Places for Names {
    fn place(&mut self, line: &SharedLine, offset: u8, size_bytes: u8) -> u32 {
        let address = line.address + u64::from(offset);
        match &mut self.source {
            NameSource::Kernel(namer) => {
                let capture = capture_at(namer, line, address);
                let key = place_key(&capture, address, size_bytes);
                if let Some(&place) = self.places.get(&key) {
                    return place;
                }
                let ObjectName { object, field, .. } = namer.name(&capture, address, u64::from(size_bytes));
                let place = self.place_number(object, field);
                self.places.insert(key, place);
                place
            }
            NameSource::Program(symbols) => {
                let (object, field) = data_name(symbols, address);
                self.place_number(object, field)
            }
            NameSource::Loaded(loaded) => {
                let (object, field) = owned(loaded).name(line, address).parts();
                self.place_number(object, field)
            }
        }
    }

    fn function(&mut self, instruction: u64) -> u32 {
        if let Some(&function) = self.functions.get(&instruction) {
            return function;
        }
        let name = match &mut self.source {
            NameSource::Kernel(namer) => match namer.function(instruction) {
                Some(function) => function.identity,
                None if instruction >> 63 == 0 => USER_CODE.to_owned(),
                None => format!("{instruction:#x}"),
            },
            NameSource::Program(symbols) => match symbol_at(symbols, instruction) {
                Some(symbol) => symbol.name.clone(),
                None => format!("{instruction:#x}"),
            },
            NameSource::Loaded(loaded) => owned(loaded).function(instruction),
        };
        let next = self.function_names.len() as u32;
        let function = *self.function_numbers.entry(name.clone()).or_insert(next);
        if function == next {
            self.function_names.push(name);
        }
        self.functions.insert(instruction, function);
        function
    }

    fn function_name(&self, function: u32) -> &str {
        &self.function_names[function as usize]
    }
}

/// The capture of a line that speaks for an address: the nearest one at or below it, else the first one above. Without any
/// (the tracer makes none of a kernel without types) a symbol speaks for its own addresses.
fn capture_at(namer: &Namer, line: &SharedLine, address: u64) -> ObjectCapture {
    let mut best: Option<ObjectCapture> = None;
    for bytes in &line.captures {
        let bytes: Option<&CaptureBytes> = bytes.as_slice().try_into().ok();
        let Some(Ok(capture)) = bytes.map(ObjectCapture::from_bytes) else { continue };
        let rank = |capture: &ObjectCapture| {
            let object = capture.object..capture.object.saturating_add(capture.object_size);
            (object.contains(&address), capture.address <= address, capture.address)
        };
        if best.as_ref().is_none_or(|known| rank(known) < rank(&capture)) {
            best = Some(capture);
        }
    }
    best.unwrap_or_else(|| {
        let mut capture = ObjectCapture::unknown(address);
        if namer.symbols().data_at(address).is_some_and(|symbol| address - symbol.address < symbol.reach_bytes) {
            capture.kind = CaptureKind::Module as u32;
        }
        capture
    })
}

/// What the name of the bytes at `address` in a captured object depends on: see [`Namer::name`].
fn place_key(capture: &ObjectCapture, address: u64, size_bytes: u8) -> PlaceKey {
    let within = address.wrapping_sub(capture.object);
    let from_capture = address.wrapping_sub(capture.address);
    let canonical = capture.object.wrapping_add(from_capture);
    let typed = !capture.type_name().is_empty();
    let (position, typed_position) = match capture.capture_kind() {
        CaptureKind::Slab | CaptureKind::Page if typed => (within, address.wrapping_sub(capture.typed_start)),
        CaptureKind::Slab | CaptureKind::StructPage | CaptureKind::Table => (within, 0),
        CaptureKind::PerCpu => (canonical, capture.typed_start),
        CaptureKind::KernelImage => (canonical, 0),
        CaptureKind::Module => (address, 0),
        CaptureKind::Vmalloc if typed => (capture.owner, address.wrapping_sub(capture.typed_start)),
        CaptureKind::Vmalloc => (capture.owner, 0),
        CaptureKind::Page | CaptureKind::Stack | CaptureKind::User => (0, 0),
        CaptureKind::CpuEntryArea | CaptureKind::Unknown => (0, 0),
    };
    // The name of the task whose stack it is is no part of a stack's name.
    let cache_name = if capture.capture_kind() == CaptureKind::Stack { Default::default() } else { capture.cache_name };
    PlaceKey {
        kinds: (capture.kind, capture.page_kind),
        names: [cache_name, capture.type_name],
        position,
        typed_position,
        size_bytes,
    }
}

/// Names whose lock no one else can hold.
fn owned(loaded: &mut Mutex<LoadedNames>) -> &mut LoadedNames {
    loaded.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn symbol_at(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let behind = symbols.partition_point(|symbol| symbol.start <= address);
    symbols[..behind].last().filter(|symbol| address < symbol.end)
}

/// A program's data: symbol and offset, or that it has none.
fn data_name(symbols: &[Symbol], address: u64) -> (String, String) {
    match symbol_at(symbols, address) {
        Some(symbol) if symbol.start == address => (symbol.name.clone(), String::new()),
        Some(symbol) => (symbol.name.clone(), format!("+{:#x}", address - symbol.start)),
        None => ("memory without symbol".to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_naming::{KernelSymbols, KernelTypes};

    /// Of a kernel without types the tracer captures nothing.
    #[test]
    fn without_captures_symbols_name_their_own_addresses_and_nothing_else() {
        let symbols = "ffffffff81000000 T vfs_open\nffffffff82000000 d rename_lock\nffffffff82000010 D next\n";
        let symbols = KernelSymbols::parse(symbols.as_bytes()).unwrap();
        let mut names = Names::new(NameSource::Kernel(Arc::new(Namer::new(KernelTypes::none(), symbols))));
        let mut pair = |address: u64, offset: u8| {
            let instruction = 0xffff_ffff_8100_0004;
            let access = |core| Access { instruction, stack: 0, core, offset, size_bytes: 4, kind: true.into() };
            let line =
                SharedLine { address, physical: None, captures: Vec::new(), accesses: Vec::new(), moments: Vec::new() };
            names.pair([(&line, access(0)), (&line, access(1))], Sharing::True).0
        };
        assert_eq!(pair(0xffff_ffff_8200_0000, 4), "rename_lock");
        assert_eq!(pair(0xffff_8880_0012_3440, 4), "unknown");
        assert_eq!(pair(0xffff_ffff_9000_0000, 4), "unknown");
    }
}
