//! What lies in an arena: types of objects, each with a size class and a kind of its own, and fingerprints of layouts.
//!
//! Processes that share an arena must agree where everything is. Compilers lay types out as they like, so no number that
//! somebody raises by hand tells that: a [`Layout`] is computed from the sizes and places of all that lies there.

use core::alloc;
use core::ops::Range;

use crate::class::SizeClass;

/// A type whose objects lie in chunks of their own, and what tools call its fields. Made by [`object_kind!`].
#[derive(Debug)]
pub struct ObjectKind {
    /// From 1 to [`MAX_KIND`](crate::MAX_KIND), another for each kind in an arena; 0 for what lies in tables alone.
    pub number: u8,
    /// What such an object is called.
    pub name: &'static str,
    /// After this many bytes the next one begins. In a slab a power of two, to which they are aligned.
    pub stride_bytes: usize,
    /// Where each field starts, in bytes, and its name; in the order of their places.
    pub fields: &'static [(usize, &'static str)],
}

/// Memory that holds objects of one kind, one after the other: from its start on those of a table (kind 0), at multiples of
/// the stride those in slabs.
#[derive(Clone, Debug)]
pub struct Part {
    /// Addresses.
    pub memory: Range<usize>,
    /// What lies there.
    pub kind: &'static ObjectKind,
}

impl Part {
    /// The value at this place, as a table of one.
    pub fn of<T>(value: &T, kind: &'static ObjectKind) -> Part {
        let start = core::ptr::from_ref(value) as usize;
        Part { memory: start..start + size_of::<T>(), kind }
    }
}

/// Describes a type as an [`ObjectKind`]: `object_kind!(1, Entry as "directory entry" { "state" = first.state, ... })`. A number
/// of bytes may be added to a field's place, for elements of arrays.
#[macro_export]
macro_rules! object_kind {
    ($number:literal, $type:ty as $name:literal {
        $($field:literal = $($path:tt).+ $(+ $more:expr)?),* $(,)?
    }) => {
        $crate::ObjectKind {
            number: $number,
            name: $name,
            stride_bytes: ::core::mem::size_of::<$type>().next_power_of_two(),
            fields: &[$((::core::mem::offset_of!($type, $($path).+) $(+ $more)?, $field)),*],
        }
    };
}

/// Describes what lies in a table alone, as [`object_kind!`] does: the values of a [`PerCore`](crate::PerCore), or one value.
#[macro_export]
macro_rules! table_kind {
    ($type:ty as $name:literal { $($field:literal = $($path:tt).+ $(+ $more:expr)?),* $(,)? }) => {
        $crate::ObjectKind {
            number: 0,
            name: $name,
            stride_bytes: ::core::mem::size_of::<$crate::CacheLine<$type>>(),
            fields: &[$((::core::mem::offset_of!($type, $($path).+) $(+ $more)?, $field)),*],
        }
    };
}

/// A type whose objects lie in slabs of an arena, in chunks of their kind.
///
/// # Safety
/// No other type whose objects lie in the same arena has the same kind, unless both have one size class. An object has no
/// destructor that must run, since its memory is given back as it is.
pub unsafe trait ArenaObject: Sized {
    /// What tools call such an object, or what it is an array of.
    const KIND: ObjectKind;

    /// Where such objects are allocated: checked when it is compiled.
    const CLASS: SizeClass = {
        let (layout, kind) = (alloc::Layout::new::<Self>(), &Self::KIND);
        let class = SizeClass::of_type::<Self>().of_kind(kind.number);
        assert!(layout.size() > 0 && class.holds(layout), "an object is as large as its class, and as aligned");
        assert!(
            kind.stride_bytes.is_power_of_two() && kind.stride_bytes <= class.object_bytes(),
            "a whole number of parts"
        );
        kind.check_fields();
        class
    };

    /// Where everything is in such an object.
    const LAYOUT: Layout = Self::KIND.layout().and_type::<Self>();
}

/// A fingerprint of how memory is laid out. Two that differ stand for layouts that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout(u64);

impl Layout {
    /// Of nothing yet: what a build is made with. FNV-1a over words.
    pub const BUILD: Layout = Layout(0xcbf2_9ce4_8422_2325)
        .and_text(env!("CARGO_PKG_VERSION"))
        .and(cfg!(debug_assertions) as u64)
        .and(usize::BITS as u64);

    /// With one number more.
    pub const fn and(self, number: u64) -> Layout {
        let (mut hash, mut shift) = (self.0, 0);
        while shift < u64::BITS {
            hash = (hash ^ (number >> shift & 0xff)).wrapping_mul(0x0100_0000_01b3);
            shift += 8;
        }
        Layout(hash)
    }

    /// With a name more.
    pub const fn and_text(self, text: &str) -> Layout {
        let (mut layout, mut index) = (self.and(text.len() as u64), 0);
        while index < text.len() {
            layout = layout.and(text.as_bytes()[index] as u64);
            index += 1;
        }
        layout
    }

    /// With the size and alignment of a type more.
    pub const fn and_type<T>(self) -> Layout {
        self.and(size_of::<T>() as u64).and(align_of::<T>() as u64)
    }

    /// With all of another one more.
    pub const fn and_layout(self, other: Layout) -> Layout {
        self.and(other.0)
    }

    /// The fingerprint as a number, for a word of a header.
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl ObjectKind {
    /// Where the fields are.
    pub const fn layout(&self) -> Layout {
        let mut layout = Layout(0).and_text(self.name).and(self.number as u64).and(self.stride_bytes as u64);
        let mut index = 0;
        while index < self.fields.len() {
            layout = layout.and(self.fields[index].0 as u64).and_text(self.fields[index].1);
            index += 1;
        }
        layout
    }

    const fn check_fields(&self) {
        let mut index = 0;
        while index < self.fields.len() {
            assert!(self.fields[index].0 < self.stride_bytes, "a field lies in its object");
            index += 1;
        }
    }
}

/// What the arena's users find first in it, from which all else can be reached.
///
/// # Safety
/// Values of the type may be used by several processes, and stay where they are as long as the arena is used.
/// [`ArenaRoot::LAYOUT`] tells apart all types of which a value may be the root, and all builds that lay out differently
/// what is reached from one.
pub unsafe trait ArenaRoot: Sync {
    /// Where everything is that is reached from it.
    const LAYOUT: Layout;
}
