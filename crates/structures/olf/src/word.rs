//! What stands in a link: where it leads and in which list, or the mark of an operation.
//!
//! ```text
//! link  [63..48 list][46..5 pointer][4 sentinel][3..1 list, too][0 = 0]    no pointer: the end of that list
//! mark  [63 of another store][62..4 tag of the operation][3..1 place in its record][0 = 1]
//! ```
//!
//! A list has a number from 1 on. With number 0 the item stands nowhere ([`Word::NOWHERE`]).

use commit::Tag;

/// Most words of one operation: a mark says which one it is by three bits.
pub(crate) const MOST_WORDS: usize = 8;
/// Most lists of a domain: numbers have 19 bits.
pub(crate) const MOST_LISTS: usize = (1 << 19) - 1;
/// Items are aligned to this, so that the bits below are free.
pub(crate) const ITEM_ALIGN: usize = 32;
/// Addresses of items end here.
pub(crate) const ADDRESSES_END: usize = 1 << 47;

const MARK: u64 = 1;
const LIST_BITS: u64 = 0xffff_0000_0000_000e;
const SENTINEL: u64 = 1 << 4;
const POINTER_BITS: u64 = 0x0000_7fff_ffff_ffe0;
const PLACE_SHIFT: u32 = 1;
const TAG_SHIFT: u32 = 4;
const OF_ANOTHER: u64 = 1 << 63;

/// The content of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) tag: Tag,
    /// In the record of its core.
    pub(crate) place: usize,
    /// The operation is one of another store, which decides by its own words.
    pub(crate) is_of_another: bool,
}

/// A list's number, as it stands in links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListNumber(u64);

impl ListNumber {
    /// The list with this number, from 1 to [`MOST_LISTS`].
    pub(crate) fn new(number: usize) -> ListNumber {
        debug_assert!((1..=MOST_LISTS).contains(&number));
        let number = if sync::mutant::planted("olf: links without their list") { 1 } else { number as u64 };
        ListNumber((number >> 3) << 48 | (number & 7) << 1)
    }

    /// As it was given.
    pub(crate) fn number(self) -> usize {
        ((self.0 >> 48) << 3 | self.0 >> 1 & 7) as usize
    }
}

impl Word {
    /// Of an item that stands in no list by this link.
    pub(crate) const NOWHERE: Word = Word(0);

    pub(crate) fn from_bits(bits: u64) -> Word {
        Word(bits)
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// In this list, and the item at this address follows; none at zero.
    #[inline]
    pub(crate) fn link(list: ListNumber, address: usize) -> Word {
        debug_assert!(address as u64 & !POINTER_BITS == 0, "an item at {address:#x}");
        Word(list.0 | address as u64)
    }

    /// In this list, and the sentinel at this address follows.
    pub(crate) fn sentinel(list: ListNumber, address: usize) -> Word {
        Word(Word::link(list, address).0 | SENTINEL)
    }

    /// Whether a sentinel follows.
    #[inline]
    pub(crate) fn is_sentinel(self) -> bool {
        self.0 & SENTINEL != 0
    }

    /// The mark of an operation's word in this place of its record.
    #[inline]
    pub(crate) fn mark(tag: Tag, place: usize) -> Word {
        debug_assert!(place < MOST_WORDS && tag.to_bits() < 1 << (63 - TAG_SHIFT));
        Word(tag.to_bits() << TAG_SHIFT | (place as u64) << PLACE_SHIFT | MARK)
    }

    /// The same, of an operation of another store.
    #[cfg(feature = "alloc")]
    pub(crate) fn mark_of_another(tag: Tag, place: usize) -> Word {
        Word(Word::mark(tag, place).0 | OF_ANOTHER)
    }

    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        self.0 & MARK != 0
    }

    /// What it says, if it is a mark.
    #[inline]
    pub(crate) fn as_mark(self) -> Option<Mark> {
        let place = (self.0 >> PLACE_SHIFT) as usize & (MOST_WORDS - 1);
        let tag = Tag::from_bits((self.0 & !OF_ANOTHER) >> TAG_SHIFT)?;
        self.is_mark().then_some(Mark { tag, place, is_of_another: self.0 & OF_ANOTHER != 0 })
    }

    /// Whether it is a link in this list.
    #[inline]
    pub(crate) fn is_in(self, list: ListNumber) -> bool {
        let is_taken_for_it = !self.is_mark() && sync::mutant::planted("olf: the list is not checked");
        self.0 & (LIST_BITS | MARK) == list.0 || is_taken_for_it
    }

    /// Whether the item stands in a list, whichever.
    #[inline]
    pub(crate) fn is_listed(self) -> bool {
        self.0 & LIST_BITS != 0
    }

    /// The address of the item that follows; zero at the end.
    #[inline]
    pub(crate) fn address(self) -> usize {
        (self.0 & POINTER_BITS) as usize
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_what_was_put_into_it() {
        for number in [1, 7, 8, 4711, MOST_LISTS] {
            let list = ListNumber::new(number);
            assert_eq!(list.number(), number);
            for address in [0, 32, 0x7fff_ffff_ffe0] {
                let word = Word::link(list, address);
                assert!(word.is_in(list) && word.is_listed() && !word.is_mark() && word.as_mark().is_none());
                assert_eq!(word.address(), address);
                assert!(!word.is_in(ListNumber::new(number % MOST_LISTS + 1)));
            }
        }
        assert!(!Word::NOWHERE.is_listed());
        let tag = Tag::from_bits((1 << 59) - 1).unwrap();
        for (word, is_of_another) in [(Word::mark(tag, 5), false), (Word::mark_of_another(tag, 5), true)] {
            assert!(word.is_mark() && !word.is_in(ListNumber::new(MOST_LISTS)));
            assert_eq!(word.as_mark(), Some(Mark { tag, place: 5, is_of_another }));
        }
    }
}
