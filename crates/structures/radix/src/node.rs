//! Words and nodes.

use core::mem::offset_of;
use core::ptr::NonNull;

use epoch::{Retired, RetiredKind};
use percpu::{ArenaObject, Core, CoreIndex, Layout, ObjectKind, OutOfMemory, SizeClass, object_kind};
use seqlock::Sequence;
use sync::atomic::AtomicU64;

/// Kind of a retired leaf, for the callback of `Epochs::maintain`.
pub const KIND_LEAF: RetiredKind = RetiredKind(11);
/// Kind of a retired inner node.
pub const KIND_INNER: RetiredKind = RetiredKind(12);

/// Bits of an index.
pub const INDEX_BITS: u32 = LEAF_BITS + INNER_BITS * INNER_NODES;
/// Inner nodes on the longest way to a leaf.
const INNER_NODES: u32 = if cfg!(loom) { 2 } else { 8 };
const LEAF_BITS: u32 = if cfg!(loom) { 1 } else { 4 };
const INNER_BITS: u32 = if cfg!(loom) { 1 } else { 6 };

/// Largest value that a slot can hold.
pub const MAX_VALUE: u64 = (1 << 52) - 1;

const LOCKED: u64 = 1 << 63;
const HOLDER_SHIFT: u32 = 54;
const HOLDER_MASK: u64 = 0x1ff << HOLDER_SHIFT;
const PAYLOAD_SHIFT: u32 = 2;
const TAG_MASK: u64 = 3;
const EMPTY: u64 = 0;
const VALUE: u64 = 1;
const CHILD: u64 = 2;
const DEAD: u64 = 3;
/// Nodes are aligned to lines, so that a number below 64 fits below their address.
const SLOT_BITS_MASK: u64 = 0x3f;

/// What a slot holds, with its lock apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Uniform(Option<u64>),
    Child(Node),
    Dead,
}

/// The word of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    #[inline]
    pub(crate) fn new(content: Content) -> Word {
        Word(match content {
            Content::Uniform(None) => EMPTY,
            Content::Uniform(Some(value)) => value << PAYLOAD_SHIFT | VALUE,
            Content::Child(node) => {
                (node.address.as_ptr() as usize as u64 | u64::from(node.slot_bits)) << PAYLOAD_SHIFT | CHILD
            }
            Content::Dead => DEAD,
        })
    }

    #[inline]
    pub(crate) fn content(self) -> Content {
        if let Some(value) = self.value() {
            return Content::Uniform(value);
        }
        match self.0 & TAG_MASK {
            DEAD => Content::Dead,
            _ => Content::Child(self.child().expect("a child has an address")),
        }
    }

    /// The value, or that there is none, if the slot holds such.
    #[inline]
    pub(crate) fn value(self) -> Option<Option<u64>> {
        match self.0 & TAG_MASK {
            EMPTY => Some(None),
            VALUE => Some(Some(self.payload())),
            _ => None,
        }
    }

    /// The node, if there is one.
    #[inline]
    pub(crate) fn child(self) -> Option<Node> {
        if self.0 & TAG_MASK != CHILD {
            return None;
        }
        let payload = self.payload();
        let address = NonNull::new((payload & !SLOT_BITS_MASK) as usize as *mut u8)?;
        Some(Node { address, slot_bits: (payload & SLOT_BITS_MASK) as u32 })
    }

    #[inline]
    fn payload(self) -> u64 {
        (self.0 & !(LOCKED | HOLDER_MASK)) >> PAYLOAD_SHIFT
    }

    #[inline]
    pub(crate) fn locked_by(self, core: CoreIndex) -> Word {
        Word(self.0 & !HOLDER_MASK | LOCKED | (core.get() as u64) << HOLDER_SHIFT)
    }

    #[inline]
    pub(crate) fn holder(self) -> Option<usize> {
        (self.0 & LOCKED != 0).then_some(((self.0 & HOLDER_MASK) >> HOLDER_SHIFT) as usize)
    }

    /// The word of the same lock with another value.
    #[inline]
    pub(crate) fn with(self, value: Option<u64>) -> Word {
        Word(self.0 & (LOCKED | HOLDER_MASK) | Word::new(Content::Uniform(value)).0)
    }

    #[inline]
    pub(crate) fn unlocked(self) -> Word {
        Word(self.0 & !(LOCKED | HOLDER_MASK))
    }
}

/// A slot of a leaf, on a line of its own.
#[repr(align(64))]
pub(crate) struct LeafSlot {
    pub(crate) word: AtomicU64,
    /// Of what the value stands for; changed by the holder of the lock.
    pub(crate) sequence: Sequence,
    /// What the value is to be, encoded ([`encode_next`]), while the holder of the lock has it marked; else zero.
    pub(crate) next: AtomicU64,
    /// Used in the first slot only.
    retired: Retired,
}

/// A value that is to be, for [`LeafSlot::next`]: never zero.
pub(crate) fn encode_next(value: Option<u64>) -> u64 {
    value.map_or(1, |value| value + 2)
}

/// The value of [`encode_next`].
pub(crate) fn decode_next(bits: u64) -> Option<u64> {
    bits.checked_sub(2)
}

#[repr(C)]
struct Leaf {
    slots: [LeafSlot; 1 << LEAF_BITS],
}

#[repr(C, align(64))]
struct Inner {
    words: [AtomicU64; 1 << INNER_BITS],
    retired: Retired,
}

/// What tools call the parts of a leaf's slots.
pub const SLOT: ObjectKind = object_kind!(3, LeafSlot as "radix slot" { "word" = word, "sequence" = sequence, "next" = next, "retired" = retired });
/// What tools call the parts of an inner node.
pub const INNER: ObjectKind = object_kind!(4, Inner as "radix node" { "words" = words, "retired" = retired });
// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Leaf {
    const KIND: ObjectKind = SLOT;
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Inner {
    const KIND: ObjectKind = INNER;
}

/// The size class of the nodes that calls on small arrays allocate.
pub const LEAF_CLASS: SizeClass = Leaf::CLASS;
/// Where everything is in an array.
pub const LAYOUT: Layout = Leaf::LAYOUT.and_layout(Inner::LAYOUT);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Leaf>() == 1024);

/// A node in the arena: a leaf, or an inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    address: NonNull<u8>,
    /// Bits of the range that one slot covers: 0 in a leaf.
    pub(crate) slot_bits: u32,
}

/// Bits of the range that a node covers whose slots cover this many.
#[inline]
const fn bits_above(slot_bits: u32) -> u32 {
    slot_bits + if slot_bits == 0 { LEAF_BITS } else { INNER_BITS }
}

/// The bits of slots in the smallest node that covers all indices below `end`.
pub(crate) fn slot_bits_for(end: u64) -> u32 {
    let mut slot_bits = 0;
    while end > 1 << bits_above(slot_bits) && bits_above(slot_bits) < INDEX_BITS {
        slot_bits = bits_above(slot_bits);
    }
    slot_bits
}

impl Node {
    /// Allocates a node whose slots hold what `word` says.
    pub(crate) fn allocate(core: &Core<'_>, slot_bits: u32, word: impl Fn(usize) -> Word) -> Result<Node, OutOfMemory> {
        // Made where it is to lie.
        let address = if slot_bits == 0 {
            let leaf = core.allocate_place::<Leaf>()?;
            for index in 0..1 << LEAF_BITS {
                let slot = LeafSlot {
                    word: AtomicU64::new(word(index).0),
                    sequence: Sequence::new(),
                    next: AtomicU64::new(0),
                    retired: Retired::new(),
                };
                // SAFETY: fresh memory for a leaf, whose slots lie one behind the other.
                unsafe { leaf.cast::<LeafSlot>().add(index).write(slot) };
            }
            leaf.cast()
        } else {
            let inner = core.allocate_place::<Inner>()?;
            for index in 0..1 << INNER_BITS {
                // SAFETY: fresh memory for an inner node, which begins with its words.
                unsafe { inner.cast::<AtomicU64>().add(index).write(AtomicU64::new(word(index).0)) };
            }
            // SAFETY: as above; the field lies in that memory.
            unsafe { inner.byte_add(offset_of!(Inner, retired)).cast().write(Retired::new()) };
            inner.cast()
        };
        Ok(Node { address, slot_bits })
    }

    /// # Safety
    /// No one uses the node any more.
    pub(crate) unsafe fn free(self, core: &Core<'_>) {
        // SAFETY: the caller's promise; the type is that of the allocation.
        unsafe {
            if self.is_leaf() {
                core.free_object::<Leaf>(self.address.cast());
            } else {
                core.free_object::<Inner>(self.address.cast());
            }
        }
    }

    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.slot_bits == 0
    }

    /// Bits of the range that the node covers.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        bits_above(self.slot_bits)
    }

    #[inline]
    pub(crate) fn slot_count(self) -> usize {
        if self.is_leaf() { 1 << LEAF_BITS } else { 1 << INNER_BITS }
    }

    /// # Safety
    /// The node lives for all of `'n`.
    #[inline]
    pub(crate) unsafe fn slot<'n>(self, index: usize) -> &'n AtomicU64 {
        let index = index & (self.slot_count() - 1);
        // SAFETY: `allocate` made a leaf if the bits are zero, and else an inner node; the bits stand next to the
        // address in the word, and change with it alone. The node lives by the caller's promise; the index is masked.
        unsafe {
            if self.is_leaf() {
                &self.address.cast::<Leaf>().as_ref().slots[index].word
            } else {
                &self.address.cast::<Inner>().as_ref().words[index]
            }
        }
    }

    /// The slot of an index in a leaf.
    ///
    /// # Safety
    /// The node is a leaf and lives for all of `'n`.
    #[inline]
    pub(crate) unsafe fn leaf_slot<'n>(self, index: u64) -> &'n LeafSlot {
        debug_assert!(self.is_leaf());
        // SAFETY: a leaf that lives, by the caller's promise; the index is masked.
        unsafe { &self.address.cast::<Leaf>().as_ref().slots[index as usize & ((1 << LEAF_BITS) - 1)] }
    }

    /// The slots of an index in a leaf, and of those that follow in it.
    ///
    /// # Safety
    /// As for [`Node::leaf_slot`].
    #[inline]
    pub(crate) unsafe fn leaf_slots_from<'n>(self, index: u64) -> &'n [LeafSlot] {
        debug_assert!(self.is_leaf());
        // SAFETY: as there.
        unsafe { &self.address.cast::<Leaf>().as_ref().slots[index as usize & ((1 << LEAF_BITS) - 1)..] }
    }

    /// Link and kind for retirement.
    pub(crate) fn retirement(self) -> (NonNull<Retired>, RetiredKind) {
        // SAFETY: the fields lie in the memory that `allocate` took for a node with these bits.
        unsafe {
            if self.is_leaf() {
                (self.address.byte_add(offset_of!(LeafSlot, retired)).cast(), KIND_LEAF)
            } else {
                (self.address.byte_add(offset_of!(Inner, retired)).cast(), KIND_INNER)
            }
        }
    }
}

/// Frees a retired node: for the callback of `Epochs::maintain`. False if the kind is not one of ours.
///
/// # Safety
/// Called once per retired object, by that callback.
pub unsafe fn free_retired(core: &Core<'_>, kind: RetiredKind, object: NonNull<Retired>) -> bool {
    // SAFETY: objects of our kinds are retired by the links that `retirement` gives, and once (the promise to `retire`).
    unsafe {
        match kind {
            KIND_LEAF => core.free_object::<Leaf>(object.byte_sub(offset_of!(LeafSlot, retired)).cast()),
            KIND_INNER => core.free_object::<Inner>(object.byte_sub(offset_of!(Inner, retired)).cast()),
            _ => return false,
        }
    }
    true
}
