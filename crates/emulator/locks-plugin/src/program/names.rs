//! Numbers for call stacks and for fields, which the report resolves.

use std::collections::HashMap;

use lock_study::{Fields, Word};

use super::addresses::Mapping;

/// All call stacks that mattered: a tree of (caller's number, address), equal stacks one number.
#[derive(Debug)]
pub struct Stacks {
    nodes: Vec<(u32, u64)>,
    numbers: HashMap<(u32, u64), u32>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { nodes: vec![(0, 0)], numbers: HashMap::new() }
    }
}

impl Stacks {
    /// The empty stack.
    pub const EMPTY: u32 = 0;

    /// The stack `caller` with `address` as its innermost.
    pub fn child(&mut self, caller: u32, address: u64) -> u32 {
        *self.numbers.entry((caller, address)).or_insert_with(|| {
            self.nodes.push((caller, address));
            self.nodes.len() as u32 - 1
        })
    }

    /// The addresses of a stack, the innermost first.
    pub fn addresses(&self, mut number: u32) -> Vec<u64> {
        let mut addresses = Vec::new();
        while let Some(&(caller, address)) = self.nodes.get(number as usize).filter(|_| number != Self::EMPTY) {
            addresses.push(address);
            number = caller;
        }
        addresses
    }

    /// The stack without its innermost addresses, that many.
    pub fn outer(&self, mut number: u32, count: usize) -> u32 {
        for _ in 0..count {
            number = self.nodes.get(number as usize).map_or(Self::EMPTY, |&(caller, _)| caller);
        }
        number
    }

    /// The innermost address of a stack.
    pub fn innermost(&self, number: u32) -> u64 {
        self.nodes.get(number as usize).map_or(0, |&(_, address)| address)
    }
}

/// What stands for the conflicting bytes of two sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A place in a file's data: a global variable.
    Variable(u64),
    /// This many bytes after the lock's start: a field of what the lock lies in.
    BesideLock(u64),
    /// Two instructions, the smaller address first: data that has no name of its own.
    Code(u64, u64),
}

/// A field with an example of how two sections came to conflict on it.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// What it is.
    pub key: Key,
    /// The example's address.
    pub address: u64,
    /// The example's two stacks, innermost address first in both.
    pub stacks: [u32; 2],
    /// Whether the first and the second of the two wrote.
    pub writes: [bool; 2],
}

/// Data that lies so close after a lock is taken to belong to the same object.
const BESIDE_LOCK_BYTES: u64 = 256;

/// All fields on which sections conflicted.
#[derive(Debug, Default)]
pub struct FieldNames {
    /// Data of files: global variables.
    data: Vec<(u64, u64)>,
    fields: Vec<Field>,
    numbers: HashMap<Key, u64>,
    stacks: Stacks,
}

impl FieldNames {
    /// Learns where global variables lie: in what is mapped from files, and right after it (variables that start as
    /// zero).
    pub fn learn(&mut self, mappings: &[Mapping]) {
        self.data.clear();
        for mapping in mappings {
            let behind = self.data.last().is_some_and(|&(_, end)| end == mapping.start);
            if !mapping.path.is_empty() || behind {
                self.data.push((mapping.start, mapping.end));
            }
        }
    }

    /// The stacks that words refer to.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// To number stacks.
    pub fn stacks_mut(&mut self) -> &mut Stacks {
        &mut self.stacks
    }

    /// All fields, by number.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn is_variable(&self, address: u64) -> bool {
        let behind = self.data.partition_point(|&(start, _)| start <= address);
        behind > 0 && address < self.data[behind - 1].1
    }
}

impl Fields for FieldNames {
    fn field(&mut self, lock_address: u64, ours: &Word, theirs: &Word) -> u64 {
        let (our_write, their_write) = ours.conflicting_writes(theirs);
        let stack = |word: &Word, write| if write { word.write_site } else { word.read_site };
        let stacks = [stack(ours, our_write), stack(theirs, their_write)];
        let address = ours.conflicting_address(theirs);
        let key = if self.is_variable(address) {
            Key::Variable(address)
        } else if (lock_address & !7..lock_address + BESIDE_LOCK_BYTES).contains(&address) {
            Key::BesideLock(address - (lock_address & !7))
        } else {
            let [one, other] = stacks.map(|number| self.stacks.innermost(number));
            Key::Code(one.min(other), one.max(other))
        };
        *self.numbers.entry(key).or_insert_with(|| {
            self.fields.push(Field { key, address, stacks, writes: [our_write, their_write] });
            self.fields.len() as u64 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::addresses::parse;

    fn word(address: u64, read: u8, written: u8, site: u32) -> Word {
        Word { number: address / 8, read, written, per_cpu: false, read_site: site, write_site: site + 1 }
    }

    #[test]
    fn data_is_named_by_variable_then_by_lock_then_by_code() {
        let mut names = FieldNames::default();
        names.learn(&parse("1000-1010 rw-p 00000000 fe:01 12 /bin/program\n1010-2000 rw-p 00000000 00:00 0 \n"));
        let sites: Vec<u32> = (0..4).map(|site| names.stacks_mut().child(Stacks::EMPTY, 0x100 + site)).collect();
        let (ours, theirs) = (|address| word(address, 0, 0xff, sites[0]), |address| word(address, 0xff, 0, sites[2]));
        for (address, key) in [
            (0x1010, Key::Variable(0x1010)),
            (0x8014, Key::BesideLock(0x10)),
            (0x8804, Key::Code(0x101, 0x102)),
            (0x8900, Key::Code(0x101, 0x102)),
        ] {
            let number = names.field(0x8004, &ours(address), &theirs(address));
            assert_eq!(names.fields()[number as usize].key, key, "{address:#x}");
            assert_eq!(names.fields()[number as usize].writes, [true, false]);
        }
        assert_eq!(names.fields().len(), 3);
    }

    /// A counter after a lock of four bytes, or after another counter, was named by what it shares a word with.
    #[test]
    fn data_within_a_word_is_named_by_the_bytes_that_conflict() {
        let mut names = FieldNames::default();
        names.learn(&parse("1000-2000 rw-p 00000000 fe:01 12 /bin/program\n"));
        let number = names.field(0x8000, &word(0x1010, 0xff, 0xf0, 0), &word(0x1010, 0xff, 0xf0, 0));
        assert_eq!(names.fields()[number as usize].key, Key::Variable(0x1014));
        let number = names.field(0x8000, &word(0x8000, 0, 0xf0, 0), &word(0x8000, 0xf0, 0, 0));
        assert_eq!(names.fields()[number as usize].key, Key::BesideLock(4));
    }

    #[test]
    fn equal_stacks_have_one_number() {
        let mut stacks = Stacks::default();
        let outer = stacks.child(Stacks::EMPTY, 1);
        let inner = stacks.child(outer, 2);
        assert_eq!(stacks.child(outer, 2), inner);
        assert_eq!(stacks.addresses(inner), [2, 1]);
        assert!(stacks.addresses(Stacks::EMPTY).is_empty());
        assert!(stacks.addresses(99).is_empty());
        assert_eq!([0, 1, 2, 3].map(|count| stacks.outer(inner, count)), [inner, outer, Stacks::EMPTY, Stacks::EMPTY]);
    }
}
