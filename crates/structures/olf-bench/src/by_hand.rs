//! What a removal and an insertion cost at least without locks, if no one else changed anything: one compare and
//! exchange each on links without marks, under a guard. Not a list that threads could share.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use olf::Slot;
use percpu::CacheLine;

use crate::ours::Item;

/// A node of the caller's, in an item as large as those of `olf`: else more of them would lie in a line.
#[repr(align(32))]
pub struct Node {
    key: u64,
    next: AtomicPtr<Node>,
    _rest: [u64; REST],
}

/// Words of an item after key and link.
pub const REST: usize = size_of::<Slot<Item>>() / size_of::<u64>() - 2;

const _: () = assert!(size_of::<Node>() == size_of::<Slot<Item>>());

impl Node {
    /// In no list.
    pub fn new(key: u64) -> Node {
        Node { key, next: AtomicPtr::new(ptr::null_mut()), _rest: [0; REST] }
    }
}

/// A list in order, of nodes that live longer.
pub struct List<'n> {
    head: CacheLine<AtomicPtr<Node>>,
    _nodes: std::marker::PhantomData<&'n Node>,
}

impl<'n> List<'n> {
    /// A list of these nodes, which stand in none.
    pub fn of(nodes: impl IntoIterator<Item = &'n Node>) -> List<'n> {
        let head = CacheLine(AtomicPtr::new(ptr::null_mut()));
        let list = List { head, _nodes: std::marker::PhantomData };
        nodes.into_iter().for_each(|node| list.insert(node));
        list
    }

    #[inline]
    fn place(&self, key: u64) -> (&AtomicPtr<Node>, Option<&'n Node>) {
        let mut link = &self.head.0;
        loop {
            // SAFETY: nodes live longer than the list.
            match unsafe { link.load(Ordering::SeqCst).as_ref() } {
                Some(node) if node.key < key => link = &node.next,
                found => return (link, found),
            }
        }
    }

    /// Whether there is a node with this key.
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        self.place(key).1.is_some_and(|node| node.key == key)
    }

    /// Takes the node with this key out.
    #[inline]
    pub fn remove(&self, key: u64) -> &'n Node {
        let (link, found) = self.place(key);
        let node = found.expect("a node with the key");
        let next = node.next.load(Ordering::SeqCst);
        let outcome = link.compare_exchange(ptr::from_ref(node).cast_mut(), next, Ordering::SeqCst, Ordering::Acquire);
        outcome.expect("no one else");
        node
    }

    /// Puts a node in.
    #[inline]
    pub fn insert(&self, node: &'n Node) {
        let (link, found) = self.place(node.key);
        let next = found.map_or(ptr::null_mut(), |next| ptr::from_ref(next).cast_mut());
        node.next.store(next, Ordering::Relaxed);
        let outcome = link.compare_exchange(next, ptr::from_ref(node).cast_mut(), Ordering::SeqCst, Ordering::Acquire);
        outcome.expect("no one else");
    }
}
