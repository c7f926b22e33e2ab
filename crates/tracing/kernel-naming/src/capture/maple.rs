//! Nodes of maple trees: one slab cache, several layouts.
//!
//! A node does not say which of `struct maple_node`'s layouts it has. The pointer to it does, in bits that the alignment of
//! nodes leaves free, and that pointer stands in the tree or in a slot of the parent, to which the node's first word leads
//! (`lib/maple_tree.c`: `mte_node_type`, `mte_parent`). A node that is in no tree any more keeps the common name.

use super::space::Space;

/// The cache that all nodes come from.
pub(super) const CACHE: &str = "maple_node";

/// Nodes are aligned to this many bytes (`MAPLE_NODE_MASK`).
const NODE_BYTES: u64 = 256;
/// The parent of the root is the tree, marked by this bit (`MA_ROOT_PARENT`).
const ROOT_PARENT: u64 = 1;
/// Where a pointer to a node holds the type (`MAPLE_NODE_TYPE_SHIFT`, `MAPLE_NODE_TYPE_MASK`).
const TYPE_SHIFT: u32 = 3;
const TYPE_MASK: u64 = 0xf;
/// Where the pointer to a parent holds the slot (`MAPLE_PARENT_SLOT_SHIFT`; the mask of nodes of 64-bit ranges).
const SLOT_SHIFT: u32 = 3;
const SLOT_MASK: u64 = 0xf8;

/// The structure of the node at `node`, if it is in a tree.
pub(super) fn node_type(space: &Space<'_>, node: u64) -> Option<&'static str> {
    let numbers = &space.layout.numbers;
    if numbers.maple_tree_root == 0 {
        return None;
    }
    let parent = space.read_u64(node)?;
    let marked = if parent & ROOT_PARENT != 0 {
        space.field(parent & !ROOT_PARENT, numbers.maple_tree_root).filter(|marked| points_to(*marked, node))
    } else {
        let slot = 8 * ((parent & SLOT_MASK) >> SLOT_SHIFT);
        // The parent's own layout is one of two, and only in the right one its slot leads back here.
        [numbers.maple_range_slots, numbers.maple_gap_range_slots].into_iter().find_map(|slots| {
            let marked = space.field(parent & !(NODE_BYTES - 1), slots.checked_add(slot)?)?;
            points_to(marked, node).then_some(marked)
        })
    };
    // `enum maple_type`.
    match (marked? >> TYPE_SHIFT) & TYPE_MASK {
        1 | 2 => Some("maple_range_64"),
        3 => Some("maple_arange_64"),
        _ => None,
    }
}

fn points_to(marked: u64, node: u64) -> bool {
    marked & !(NODE_BYTES - 1) == node
}
