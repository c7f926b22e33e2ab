//! Which object, and where it is.

use messages::DomainNumber;
use posix_calls::{InodeNumber, Kind};

use crate::wire::{Field, Reader};

/// Bits of a number that its domain gives; above them stands the domain.
const NUMBER_BITS: u32 = 48;

/// An object: the domain that owns it, and a number there that is never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectNumber(u64);

impl ObjectNumber {
    /// The root directory, which domain 0 owns.
    pub const ROOT: ObjectNumber = ObjectNumber(1);

    /// The object that a domain has given this number.
    pub(crate) fn new(home: DomainNumber, number: u64) -> ObjectNumber {
        debug_assert!(number < 1 << NUMBER_BITS);
        ObjectNumber(u64::from(home.0) << NUMBER_BITS | number)
    }

    /// The object of a number that [`ObjectNumber::inode`] has given.
    pub(crate) fn of_inode(number: u64) -> ObjectNumber {
        ObjectNumber(number)
    }

    /// The domain that owns it.
    pub fn home(self) -> DomainNumber {
        DomainNumber((self.0 >> NUMBER_BITS) as u16)
    }

    /// As `stat` tells it.
    pub fn inode(self) -> InodeNumber {
        InodeNumber(self.0)
    }
}

impl Field for ObjectNumber {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<ObjectNumber> {
        u64::take(reader).map(ObjectNumber)
    }
}

/// An object and what it is, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which.
    pub number: ObjectNumber,
    /// What.
    pub kind: Kind,
}

impl Target {
    /// The root directory.
    pub const ROOT: Target = Target { number: ObjectNumber::ROOT, kind: Kind::Directory };
}

impl Field for Target {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.number.put(bytes);
        self.kind.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Target> {
        Some(Target { number: Field::take(reader)?, kind: Field::take(reader)? })
    }
}

/// A number of a name that spreads well, and differs from directory to directory.
pub(crate) fn name_hash(directory: ObjectNumber, name: &[u8]) -> u64 {
    let mut hash = directory.0 ^ 0xcbf2_9ce4_8422_2325;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 27
}

/// Which of this many domains has a name of a directory that is split over them.
pub(crate) fn domain_of_name(hash: u64, domain_count: usize) -> DomainNumber {
    DomainNumber((hash % domain_count as u64) as u16)
}
