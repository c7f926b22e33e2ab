//! Pictures: the shared lines of one object in one window, with all that each core touched of them.
//!
//! A finding is one pair of accesses, and the same in many tests; what else the calls touched on that line, and on the lines
//! next to it in the same object, differs from test to test. One that asks what a change of the object's layout would
//! free needs that of each test. Distinct pictures are few (the addresses of objects are no part of them), so each is
//! kept once.

use std::collections::{BTreeMap, HashMap};

use kernel_naming::Holder;

use crate::names::Names;
pub use crate::names::{ByteRange, Fields};
use crate::record::SharedLine;

/// A core's part in a line: the bytes that it read, and those that it wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Touched {
    /// The core.
    pub core: u8,
    /// Bytes read, in ranges that do not touch each other, ascending.
    pub read: Vec<ByteRange>,
    /// Bytes written, likewise.
    pub written: Vec<ByteRange>,
}

/// One shared line of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PictureLine {
    /// Where the line begins, in bytes from the object's start: below 0 where the object begins within the line. 0 where it
    /// lies in no object; of programs, whose objects are not known here, the line's address.
    pub offset: i64,
    /// Number of what its bytes are called ([`PictureStore::fields`]).
    pub fields: u32,
    /// What each core touched of it, by core.
    pub touched: Vec<Touched>,
}

/// The shared lines of one object in one window.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Picture {
    /// The object's type, or the variable; empty where the line lies in no object.
    pub holder: String,
    /// Its shared lines, ascending.
    pub lines: Vec<PictureLine>,
}

/// All pictures of a trace so far, each distinct one once.
#[derive(Default)]
pub struct PictureStore {
    numbers: HashMap<Picture, u32>,
    pictures: Vec<Picture>,
    field_numbers: HashMap<Fields, u32>,
    fields: Vec<Fields>,
}

impl PictureStore {
    /// The picture of a number.
    pub fn get(&self, number: u32) -> Option<&Picture> {
        self.pictures.get(number as usize)
    }

    /// What the bytes of a line are called, by the number in a [`PictureLine`].
    pub fn fields(&self, number: u32) -> Option<&Fields> {
        self.fields.get(number as usize)
    }

    /// The objects of a window's lines, each line with an offset that is touched in it: for each the number of its picture,
    /// and which of the lines are its, ascending.
    pub fn of_window(&mut self, lines: &[(&SharedLine, u8)], names: &mut Names) -> Vec<(u32, Vec<usize>)> {
        let mut objects: BTreeMap<(Holder, u64), Vec<usize>> = BTreeMap::new();
        for (index, (line, offset)) in lines.iter().enumerate() {
            objects.entry(names.holder(line, *offset)).or_default().push(index);
        }
        let mut numbered = Vec::with_capacity(objects.len());
        for ((Holder { name, start }, _), mut members) in objects {
            members.sort_by_key(|&index| lines[index].0.address.wrapping_sub(start).cast_signed());
            let drawn = |&index: &usize| {
                let line = lines[index].0;
                let offset = line.address.wrapping_sub(start).cast_signed();
                let field_numbers = &mut self.field_numbers;
                let fields = names.fields_once(line, |fields| {
                    let next = self.fields.len() as u32;
                    let number = *field_numbers.entry(fields.clone()).or_insert(next);
                    if number == next {
                        self.fields.push(fields);
                    }
                    number
                });
                PictureLine { offset, fields, touched: touched(line) }
            };
            let picture = Picture { holder: name, lines: members.iter().map(drawn).collect() };
            let next = self.pictures.len() as u32;
            let number = *self.numbers.entry(picture.clone()).or_insert(next);
            if number == next {
                self.pictures.push(picture);
            }
            numbered.push((number, members));
        }
        numbered
    }
}

/// What each core touched of a line, by core.
pub(crate) fn touched(line: &SharedLine) -> Vec<Touched> {
    let mut masks: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    for access in &line.accesses {
        let (read, written) = masks.entry(access.core).or_default();
        *(if access.kind.takes_line() { written } else { read }) |= access.byte_mask();
    }
    let touched = |(core, (read, written))| Touched { core, read: ranges(read), written: ranges(written) };
    masks.into_iter().map(touched).collect()
}

/// The ranges of set bits.
fn ranges(mut mask: u64) -> Vec<ByteRange> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while mask != 0 {
        let clear = mask.trailing_zeros();
        mask >>= clear;
        let set = mask.trailing_ones();
        ranges.push(((start + clear) as u8, set as u8));
        mask = mask.checked_shr(set).unwrap_or(0);
        start += clear + set;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NameSource, Symbol};
    use crate::record::Access;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_bits_and_do_not_touch(mask: u64) {
            let ranges = ranges(mask);
            let bits = ranges.iter().flat_map(|&(start, size)| start..start + size).fold(0, |bits, bit| bits | 1u64 << bit);
            prop_assert_eq!(bits, mask);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0));
        }
    }

    fn access(core: u8, offset: u8, size_bytes: u8, write: bool) -> Access {
        Access { instruction: 0, stack: 0, core, offset, size_bytes, kind: write.into() }
    }

    #[test]
    fn a_line_is_drawn_core_by_core_and_symbol_by_symbol() {
        let accesses =
            vec![access(1, 0, 4, false), access(0, 0, 4, true), access(0, 2, 6, true), access(0, 63, 1, false)];
        let line = SharedLine { address: 0x1000, physical: None, captures: Vec::new(), moments: Vec::new(), accesses };
        assert_eq!(
            touched(&line),
            [
                Touched { core: 0, read: vec![(63, 1)], written: vec![(0, 8)] },
                Touched { core: 1, read: vec![(0, 4)], written: vec![] },
            ]
        );
        let symbol = |start, end, name: &str| Symbol { start, end, name: name.to_owned() };
        let symbols =
            vec![symbol(0x0ff8, 0x1004, "before"), symbol(0x1010, 0x1014, "within"), symbol(0x103c, 0x1100, "last")];
        let fields = Names::new(NameSource::Program(symbols)).fields(&line);
        let expected = [((0, 4), "before"), ((16, 4), "within"), ((60, 4), "last")];
        assert_eq!(fields, expected.map(|(range, name)| (range, name.to_owned())));
    }

    #[test]
    fn lines_of_no_object_are_pictures_of_their_own_and_known_again() {
        let line = |address, core| SharedLine {
            address,
            physical: None,
            captures: Vec::new(),
            moments: Vec::new(),
            accesses: vec![access(core, 0, 8, true), access(core + 1, 8, 8, false)],
        };
        let (one, other, third) = (line(0x1000, 0), line(0x1040, 0), line(0x1000, 1));
        let mut names = Names::new(NameSource::Program(Vec::new()));
        let mut store = PictureStore::default();
        assert_eq!(store.of_window(&[(&other, 0), (&one, 0)], &mut names), [(0, vec![1]), (1, vec![0])]);
        assert_eq!(store.of_window(&[(&one, 0)], &mut names), [(0, vec![0])]);
        assert_eq!(store.of_window(&[(&third, 0)], &mut names), [(2, vec![0])]);
        let picture = store.get(1).expect("a known number");
        assert_eq!((picture.holder.as_str(), picture.lines[0].offset), ("", 0x1040));
    }
}
