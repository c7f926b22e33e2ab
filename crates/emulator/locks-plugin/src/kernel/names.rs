//! Names for locks and for the data that sections conflict on, from the guest's memory while its objects are alive.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use kernel_naming::{CaptureKind, GuestLayout, GuestMemory, KernelSymbols, KernelTypes, Namer, WindowView};
use lock_study::{Fields, Word};
use qemu_plugin::ram::Ram;

use super::functions::Family;

/// Addresses whose names are remembered; memory changes its meaning, so they are forgotten now and then.
const REMEMBERED_ADDRESSES: usize = 1 << 20;

/// The spin lock within a mutex or semaphore.
const INNER_LOCK: &str = "wait_lock";

/// Texts with numbers.
#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Texts {
    /// The number of a text.
    pub fn number(&mut self, text: String) -> u64 {
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            self.texts.len() as u64 - 1
        })
    }

    /// The text of a number.
    pub fn text(&self, number: u64) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }
}

/// A field with an example of how two sections came to conflict on it.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name's number.
    pub name: u64,
    /// The example's address.
    pub address: u64,
    /// The example's two stacks: nodes of the call tree.
    pub stacks: [u32; 2],
    /// Whether the first and the second of the two wrote.
    pub writes: [bool; 2],
}

/// A lock's kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Class {
    /// `struct inode.i_rwsem`, `rcu_state.lock`, ...
    pub name: String,
    /// Whether that names a type's field or a variable, not only the code that uses the lock.
    pub known: bool,
}

/// What the recorder asks about a kernel's memory.
pub trait LockNames: Fields {
    /// The class of the lock at an address, which `caller` is about to use. A spin lock may be a part of another lock.
    fn class(&mut self, address: u64, caller: u64, family: Family) -> Class;

    /// Where the per-CPU area of each virtual CPU lies.
    fn per_cpu_areas(&mut self, count: usize) -> Vec<Range<u64>>;
}

/// The kernel's names.
pub struct KernelNames {
    namer: Namer,
    layout: GuestLayout,
    ram: Ram,
    ram_below_4g_bytes: u64,
    texts: Texts,
    /// The field at an address.
    places: HashMap<u64, u64, BuildHasherDefault<NumberHasher>>,
    fields: Vec<Field>,
    field_of_name: HashMap<u64, u64>,
}

impl KernelNames {
    /// Names for the kernel with these types and symbols, whose guest has its memory in `ram`.
    ///
    /// # Errors
    /// One line if it is a kernel whose objects cannot be named.
    pub fn new(types: KernelTypes, symbols: KernelSymbols, ram: Ram, ram_below_4g_bytes: u64) -> Result<Self, String> {
        let layout = GuestLayout::derive(&types, &symbols).map_err(|error| error.to_string())?;
        Ok(Self {
            namer: Namer::new(types, symbols),
            layout,
            ram,
            ram_below_4g_bytes,
            texts: Texts::default(),
            places: HashMap::default(),
            fields: Vec::new(),
            field_of_name: HashMap::new(),
        })
    }

    fn look_up(&mut self, address: u64, size_bytes: u64) -> Option<(CaptureKind, kernel_naming::ObjectName)> {
        let memory = GuestMemory::new(self.ram.words().ok()?, self.ram_below_4g_bytes);
        let capture = WindowView::new(memory, &self.layout).capture(address);
        Some((capture.capture_kind(), self.namer.name(&capture, address, size_bytes)))
    }

    /// All fields, by number.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The text of a name.
    pub fn text(&self, name: u64) -> &str {
        self.texts.text(name)
    }

    fn name_at(&mut self, address: u64) -> u64 {
        let text = self.look_up(address, 1).map_or("unknown".to_owned(), |(_, name)| text_of(&name));
        self.texts.number(text)
    }
}

/// Spreads numbers over a table: there are millions of look-ups a second.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A name as one text: `struct inode.i_size`.
fn text_of(name: &kernel_naming::ObjectName) -> String {
    let field = if name.field.is_empty() { &name.full_field } else { &name.field };
    match field.as_str() {
        "" => name.object.clone(),
        offset if offset.starts_with('+') => format!("{}{offset}", name.object),
        field => format!("{}.{field}", name.object),
    }
}

impl LockNames for KernelNames {
    fn class(&mut self, address: u64, caller: u64, family: Family) -> Class {
        let function = self.namer.function(caller).map_or("unknown code".to_owned(), |function| function.identity);
        let Some((kind, name)) = self.look_up(address, 4) else {
            return Class { name: format!("lock of {function}"), known: false };
        };
        if kind == CaptureKind::Stack {
            return Class { name: format!("on the stack ({function})"), known: true };
        }
        let known = name.known && !(name.field.is_empty() && kind != CaptureKind::KernelImage);
        let mut text = text_of(&name);
        if family == Family::Spin && name.full_field.ends_with(&format!("{}.{INNER_LOCK}", name.field)) {
            text = format!("{text}.{INNER_LOCK}");
        }
        Class { name: if known { text } else { format!("{text} ({function})") }, known }
    }

    fn per_cpu_areas(&mut self, count: usize) -> Vec<Range<u64>> {
        let numbers = self.layout.numbers;
        let Ok(words) = self.ram.words() else { return Vec::new() };
        let memory = GuestMemory::new(words, self.ram_below_4g_bytes);
        let view = WindowView::new(memory, &self.layout);
        (0..count).filter_map(|cpu| view.per_cpu_area(cpu)).take_while(|_| numbers.per_cpu_offsets != 0).collect()
    }
}

impl Fields for KernelNames {
    fn field(&mut self, _lock_address: u64, ours: &Word, theirs: &Word) -> u64 {
        let address = ours.conflicting_address(theirs);
        if let Some(&field) = self.places.get(&address) {
            return field;
        }
        let name = self.name_at(address);
        let next = self.fields.len() as u64;
        let field = *self.field_of_name.entry(name).or_insert(next);
        if field == next {
            let (our_write, their_write) = ours.conflicting_writes(theirs);
            let stack = |word: &Word, write| if write { word.write_site } else { word.read_site };
            let stacks = [stack(ours, our_write), stack(theirs, their_write)];
            self.fields.push(Field { name, address, stacks, writes: [our_write, their_write] });
        }
        if self.places.len() >= REMEMBERED_ADDRESSES {
            self.places.clear();
        }
        self.places.insert(address, field);
        field
    }
}
