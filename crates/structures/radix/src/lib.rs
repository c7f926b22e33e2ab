//! A radix array with a lock bit in every slot: reads without locks, range locks, uniform ranges folded into one slot.
//!
//! **Idea** (RadixVM, section 3.2; sv6's radix array). An array of 2^52 slots as a tree. A slot holds nothing, a value,
//! or the way to a node of slots that cover parts of its range. A range of equal slots needs no node: its value is
//! *folded* into the slot above. The lock of an index is a bit in the very word that holds its value, so changing
//! different indices shares nothing.
//!
//! ```text
//! root ─► node, level 1: 64 words ─► leaf, level 0: 16 slots, a line each
//!          │ empty │ value (folded, 16 indices) │ child │ ...
//! word:  bit 63 locked │ 54..62 core that holds it │ 2..53 value, or node and the bits of a slot in it │ 0..1 empty, value, child, dead
//! ```
//!
//! ```text
//! get(i):            follow words from the root; dead → start again                                       (no write)
//! lock(range):       from left to right: wait for and set the lock bits of all slots that cover the range; a slot that
//!                    the range covers in part is expanded into a node whose slots in the range are born locked
//! read(i, look):     sequence of the slot; look at what the value stands for; again if that or the value is another
//! change(i, c):      under the lock: sequence odd; c changes what the value stands for; new value; sequence even
//! set(i, v), fill(v) under the lock; fill folds: the slots of a node that lies wholly in the range become dead, the slot
//!                    above gets the value, the node is retired; who waits for a dead slot starts again
//! ```
//!
//! **Lines.** A leaf's slot is a line of its own (64 bytes for a page of 4096: 1.6 %), inner words are written only when
//! a node comes or goes. The root grows in height as indices need it; a small array is one leaf.
//!
//! **Lock order**: within an array by index; an array's slots come after everything that its owner locks.
//!
//! **Death of a process** leaves lock bits that name its core: [`RadixArray::unlock_taken_over`] clears them; what the
//! slots hold is whole at any moment.
//!
//! **Cost**: get 2 to 4 dependent loads; lock and unlock of one index an exchange and a store in its line.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p radix --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

mod array;
mod lock;
mod node;
mod place;
mod range;
mod read;
mod slot;

pub use array::RadixArray;
pub use node::{INDEX_BITS, INNER, KIND_INNER, KIND_LEAF, LAYOUT, LEAF_CLASS, MAX_VALUE, SLOT, free_retired};
pub use range::{LockedRange, SlotOfRange};
pub use slot::LockedSlot;
