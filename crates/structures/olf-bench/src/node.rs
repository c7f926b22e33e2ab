//! A node of Harris and Michael's list.

use std::sync::atomic::AtomicUsize;

use epoch::Retired;

/// A node. Its link is 1 in its last bit once it is removed.
#[repr(C)]
pub struct Node {
    // First, so that its address is the node's.
    retired: Retired,
    /// What it is found by.
    pub key: u64,
    /// What follows.
    pub next: AtomicUsize,
}

impl Node {
    /// In no list.
    pub fn new(key: u64) -> Node {
        Node { retired: Retired::new(), key, next: AtomicUsize::new(0) }
    }
}
