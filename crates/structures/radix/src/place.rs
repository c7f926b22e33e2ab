//! Slots with the range that each covers.

use core::ops::Range;

use sync::atomic::AtomicU64;

use crate::node::Node;

/// A slot with the range that it covers.
#[derive(Clone, Copy)]
pub(crate) struct Place<'g> {
    pub(crate) slot: &'g AtomicU64,
    pub(crate) base: u64,
    pub(crate) bits: u32,
}

impl Place<'_> {
    pub(crate) fn end(&self) -> u64 {
        self.base + (1 << self.bits)
    }

    pub(crate) fn lies_in(&self, range: &Range<u64>) -> bool {
        range.start <= self.base && self.end() <= range.end
    }
}

/// The places of a node's slots that meet a range. The caller chooses `'g`: the guard under which it has found the node, the
/// call of `visit`, or the time in which the node is the caller's own.
pub(crate) fn places<'g>(node: Node, base: u64, range: &Range<u64>) -> impl Iterator<Item = Place<'g>> + use<'g> {
    let bits = node.slot_bits;
    let first = range.start.saturating_sub(base) >> bits;
    let end = range.end.saturating_sub(base).div_ceil(1 << bits).min(node.slot_count() as u64);
    (first..end).map(move |index| {
        // SAFETY: the node lives for `'g`: the one that walks is pinned in that time, and nodes are retired; or no one
        // else knows it.
        let slot = unsafe { node.slot(index as usize) };
        Place { slot, base: base + (index << bits), bits }
    })
}
