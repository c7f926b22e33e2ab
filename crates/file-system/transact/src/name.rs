//! Names that a transaction keeps, with their hashes: short ones without memory of their own.

use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash, Hasher};
use core::ops::Deref;

use foldhash::fast::FixedState;

/// So long a name is kept in place.
const SHORT: usize = 22;

/// A name: 1 to 255 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// As the base's key has it.
    pub(crate) hash: u64,
    text: Text,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Text {
    /// Bytes beyond the length are zero.
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl Hash for Name {
    fn hash<S: Hasher>(&self, state: &mut S) {
        state.write_u64(self.mixed());
    }
}

impl Name {
    /// Its hash; where the base has none, one of the text.
    #[inline]
    pub(crate) fn mixed(&self) -> u64 {
        if self.hash == 0 { FixedState::default().hash_one(&self.text) } else { self.hash }
    }

    #[inline]
    pub(crate) fn new(name: &[u8], hash: u64) -> Name {
        if name.len() > SHORT {
            return Name { hash, text: Text::Long(name.into()) };
        }
        let mut bytes = [0; SHORT];
        bytes[..name.len()].copy_from_slice(name);
        Name { hash, text: Text::Short(name.len() as u8, bytes) }
    }
}

/// A name during a call.
#[derive(Clone, Copy, Debug)]
pub struct NameKey<'n> {
    pub(crate) name: &'n [u8],
    pub(crate) hash: u64,
}

impl NameKey<'_> {
    #[inline]
    pub(crate) fn kept(&self) -> Name {
        Name::new(self.name, self.hash)
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.text {
            Text::Short(length, bytes) => &bytes[..usize::from(*length)],
            Text::Long(bytes) => bytes,
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> core::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, SHORT, Text};

    #[test]
    fn names_of_any_length_are_themselves() {
        assert_eq!(size_of::<Name>(), 32);
        let bytes: [u8; 255] = core::array::from_fn(|index| index as u8 + 1);
        for length in 1..=bytes.len() {
            let name = Name::new(&bytes[..length], 7);
            assert_eq!(name[..], bytes[..length]);
            assert_eq!(matches!(name.text, Text::Short(..)), length <= SHORT);
            assert!(name > Name::new(&bytes[..length - 1], 7));
        }
    }
}
