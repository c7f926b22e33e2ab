//! Names for the trace of a program that loads libraries: modules with debug information, and blocks of memory.
//!
//! What is loaded where is only known once the program runs; it lists that in a file ([`program_naming::Loaded`]), which is
//! read when a window is to be named.

use std::collections::HashMap;
use std::sync::Arc;

use kernel_naming::Holder;
use program_naming::{Block, BlockAccess, DataName, Loaded, Rule, WrappedName};

use crate::blocks::{BlockCapture, BlockState};
use crate::record::{Access, SharedLine};

/// Bytes of what the C library's allocator keeps in front of a block.
const HEADER_BYTES: u64 = 16;

/// A type or variable with the path of a field in it, if any: `struct file.f_count`, `used[]`.
pub(crate) fn joined(object: &str, field: &str) -> String {
    let dot = if field.is_empty() || field.starts_with('[') { "" } else { "." };
    format!("{object}{dot}{field}")
}

/// What the names of a line's bytes depend on: its blocks, by where they begin from the line on, and where a module's data
/// is, the address.
pub type LoadedFieldsKey = (Vec<BlockCapture>, Option<u64>);

/// Gives all of a program's list so far.
pub type Listing = Box<dyn FnMut() -> String + Send>;

/// What an address of data is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceName {
    /// Type or variable, or kind of memory.
    pub object: String,
    /// Path within it, or empty.
    pub field: String,
    /// Who asked for the memory, or empty.
    pub place: String,
}

impl PlaceName {
    /// Object and field of a finding.
    #[must_use]
    pub fn parts(self) -> (String, String) {
        if self.place.is_empty() {
            (self.object, self.field)
        } else if self.field.is_empty() {
            (format!("{} ({})", self.object, self.place), String::new())
        } else {
            (self.object, format!("{} ({})", self.field, self.place))
        }
    }

    /// The name of two places, which come in either order, as object and field.
    #[must_use]
    pub fn of_both(one: PlaceName, other: PlaceName) -> (String, String) {
        let mut both = [one, other];
        both.sort();
        let [mut low, high] = both;
        if low == high {
            return low.parts();
        }
        let fields = !low.field.is_empty() && !high.field.is_empty();
        if fields && (&low.object, &low.place) == (&high.object, &high.place) {
            low.field = format!("{} | {}", low.field, high.field);
            return low.parts();
        }
        let [low, high] = [low, high].map(|name| {
            let (object, field) = name.parts();
            joined(&object, &field)
        });
        (format!("{low} | {high}"), String::new())
    }
}

/// Names of a program that loads libraries.
pub struct LoadedNames {
    listing: Listing,
    listed_bytes: usize,
    loaded: Loaded,
    blocks: HashMap<(Vec<u64>, u64), Arc<Block>>,
    /// Blocks that calls alone do not tell the type of, by how a line of them is accessed.
    accessed: HashMap<AccessedBlock, Arc<Block>>,
}

/// Who asked for a block, its size, and accesses to one of its lines.
type AccessedBlock = (Vec<u64>, u64, Vec<BlockAccess>);

impl LoadedNames {
    /// Names from a program's list, which may come later.
    #[must_use]
    pub fn new(listing: Listing) -> Self {
        Self { listing, listed_bytes: 0, loaded: Loaded::default(), blocks: HashMap::new(), accessed: HashMap::new() }
    }

    /// Reads on in the list.
    pub fn update(&mut self) {
        let text = (self.listing)();
        if text.len() != self.listed_bytes {
            let known = std::mem::take(&mut self.loaded);
            if let Some(loaded) = known.read(&text) {
                self.loaded = loaded;
                self.listed_bytes = text.len();
            }
        }
    }

    /// The function that an instruction is in.
    #[must_use]
    pub fn function(&self, address: u64) -> String {
        self.loaded.function(address)
    }

    /// The functions that an instruction is in, those that were inlined first, as they are declared.
    #[must_use]
    pub fn functions(&self, address: u64) -> Vec<String> {
        self.loaded.functions(address)
    }

    /// The frames that an instruction or a call stands for.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<String> {
        self.loaded.frames(address)
    }

    /// What the byte at an address of a line is called: where an adapter's type is around a library's, by the library's.
    pub fn name(&mut self, line: &SharedLine, address: u64) -> PlaceName {
        self.name_in(line, address, own_name)
    }

    fn name_in(&mut self, line: &SharedLine, address: u64, of_block: fn(&Block, u64) -> PlaceName) -> PlaceName {
        let holding = captures(line).filter(|capture| holds(capture, address));
        // A block that lives before one that lived.
        let capture = holding.min_by_key(|capture| capture.state as u32);
        if let Some(DataName { object, field }) = self.loaded.data(address) {
            return PlaceName { object, field, place: String::new() };
        }
        match capture {
            Some(capture) if capture.state != BlockState::Header => {
                let offset = address - capture.address;
                of_block(&self.block(capture, line), offset)
            }
            Some(_) => kind("header of a block, the C library's allocator"),
            None => kind("memory outside of blocks"),
        }
    }

    /// The block or variable that an address of a line lies in: as a whole, whatever it has a library's part in.
    pub fn holder(&mut self, line: &SharedLine, address: u64) -> Option<Holder> {
        let PlaceName { object, place, .. } = self.name_in(line, address, whole_name);
        let name = if place.is_empty() { object } else { format!("{object} ({place})") };
        let variable = self.loaded.variable_start(address);
        let block = || captures(line).filter(|capture| holds(capture, address)).map(|capture| capture.address).next();
        variable.or_else(block).map(|start| Holder { name, start })
    }

    /// What the names of a line's bytes depend on.
    pub fn fields_key(&mut self, line: &SharedLine) -> LoadedFieldsKey {
        let is_data = self.loaded.data(line.address).is_some();
        let relative =
            |capture: BlockCapture| BlockCapture { address: capture.address.wrapping_sub(line.address), ..capture };
        (captures(line).map(relative).collect(), is_data.then_some(line.address))
    }

    fn block(&mut self, capture: BlockCapture, line: &SharedLine) -> Arc<Block> {
        let (start, size_bytes) = (capture.address, capture.size_bytes);
        let key = (capture.sites, size_bytes);
        if !self.blocks.contains_key(&key) {
            let block = Arc::new(self.loaded.block(&key.0, size_bytes, &[]));
            self.blocks.insert(key.clone(), block);
        }
        let mut block = Arc::clone(&self.blocks[&key]);
        if matches!(block.rule, None | Some(Rule::OnlySize)) {
            let key = (key.0, size_bytes, accesses(line, start, size_bytes));
            block = match self.accessed.get(&key) {
                Some(known) => Arc::clone(known),
                None => {
                    let block = Arc::new(self.loaded.block(&key.0, size_bytes, &key.2));
                    self.accessed.insert(key, Arc::clone(&block));
                    block
                }
            };
        }
        block
    }
}

/// A block's name by its own type.
fn whole_name(block: &Block, offset: u64) -> PlaceName {
    PlaceName { object: block.label.clone(), field: block.field(offset), place: asked_by(block, "") }
}

/// A block's name by the library's own type.
fn own_name(block: &Block, offset: u64) -> PlaceName {
    let Some(WrappedName { label, field, within }) = block.wrapped(offset) else { return whole_name(block, offset) };
    PlaceName { object: label, field, place: asked_by(block, &format!("in {within}")) }
}

/// Who asked for a block and which rule gave its type, after what else is said.
fn asked_by(block: &Block, before: &str) -> String {
    let remark = block.rule.map_or("", Rule::remark);
    let parts = [before, block.place.as_str(), remark].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

fn captures(line: &SharedLine) -> impl Iterator<Item = BlockCapture> {
    line.captures.iter().filter_map(|bytes| BlockCapture::from_bytes(bytes))
}

/// The accesses of a line that touch a block, each once.
fn accesses(line: &SharedLine, start: u64, size_bytes: u64) -> Vec<BlockAccess> {
    let within = |access: &Access| {
        let offset = (line.address + u64::from(access.offset)).checked_sub(start).filter(|offset| *offset < size_bytes);
        offset.map(|offset| BlockAccess { instruction: access.instruction, offset })
    };
    let mut found: Vec<BlockAccess> = line.accesses.iter().filter_map(within).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether what was captured is at an address.
fn holds(capture: &BlockCapture, address: u64) -> bool {
    let size_bytes = if capture.state == BlockState::Header { HEADER_BYTES } else { capture.size_bytes };
    (capture.address..capture.address.saturating_add(size_bytes)).contains(&address)
}

fn kind(object: &str) -> PlaceName {
    PlaceName { object: object.to_owned(), field: String::new(), place: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(object: &str, field: &str, place: &str) -> PlaceName {
        PlaceName { object: object.to_owned(), field: field.to_owned(), place: place.to_owned() }
    }

    #[test]
    fn both_sides_of_false_sharing_are_told_in_one_order() {
        let (lock, count) = (name("struct table", "lock", "new, t.c:9"), name("struct table", "count", "new, t.c:9"));
        let expected = ("struct table".to_owned(), "count | lock (new, t.c:9)".to_owned());
        assert_eq!(PlaceName::of_both(lock.clone(), count.clone()), expected);
        assert_eq!(PlaceName::of_both(count, lock.clone()), expected);
        assert_eq!(
            PlaceName::of_both(lock, name("hits", "", "")),
            ("hits | struct table.lock (new, t.c:9)".to_owned(), String::new())
        );
    }

    #[test]
    fn accesses_to_a_block_are_told_once_and_from_its_start() {
        let at =
            |instruction, offset| Access { instruction, stack: 0, core: 0, offset, size_bytes: 8, kind: true.into() };
        let accesses_of_line = vec![at(9, 40), at(7, 0), at(9, 40), at(5, 16), at(5, 15), at(3, 41)];
        let line = SharedLine {
            address: 0x1000,
            physical: None,
            captures: vec![],
            accesses: accesses_of_line,
            moments: vec![],
        };
        let found = |start, size_bytes| {
            let pair = |access: BlockAccess| (access.instruction, access.offset);
            accesses(&line, start, size_bytes).into_iter().map(pair).collect::<Vec<_>>()
        };
        assert_eq!(found(0x1010, 25), [(5, 0), (9, 24)], "neither before the block nor behind it");
        assert_eq!(found(0xff8, 24), [(5, 23), (7, 8)], "a block that begins in the line before");
    }
}
