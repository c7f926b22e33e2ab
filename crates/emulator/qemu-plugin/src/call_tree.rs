//! Call stacks as numbers: a tree of (caller's node, call site), where equal stacks are the same node.
//!
//! One tree per virtual CPU, so that it needs no lock. A node is found by open addressing in a table of fixed size, or
//! without it: code mostly makes its calls in the order of the last time, so each node remembers which of its parent's
//! children came next then, and nodes that were made together lie together. Nothing is allocated while recording. A full tree answers with the caller's own node (the stack then lacks its
//! innermost calls); [`CallTree::is_crowded`] tells in time, so that the owner can start again between two windows.

/// The empty stack.
pub const ROOT: u32 = 0;

/// One stack: a call from `site`, made by the stack `parent`.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// Address of the call instruction.
    pub site: u64,
    /// The caller's stack.
    pub parent: u32,
    /// The node's number in the trace, valid for the generation of numbers in the upper half.
    pub trace_number: u64,
    /// Whether a call of this stack was made by a function that allocates memory.
    pub under_allocator: bool,
    /// The child that was asked for last, and the parent's child that was asked for after this one, the last time. A
    /// node without such names itself or another stack, which is found out by looking.
    last_child: u32,
    next: u32,
}

/// All stacks that one virtual CPU has had.
pub struct CallTree {
    nodes: Vec<Node>,
    /// Node numbers by hash, 0 for a free slot (the root is never looked up).
    table: Box<[u32]>,
    capacity: usize,
}

impl CallTree {
    /// A tree for that many nodes, a power of two; memory is touched only as it fills.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "a call tree's capacity is a power of two");
        let mut tree =
            Self { nodes: Vec::with_capacity(capacity), table: vec![0; capacity * 2].into_boxed_slice(), capacity };
        tree.nodes.push(Node {
            site: 0,
            parent: ROOT,
            trace_number: 0,
            under_allocator: false,
            last_child: ROOT,
            next: ROOT,
        });
        tree
    }

    /// The node of a number that this tree gave out.
    #[inline]
    pub fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// Notes the node's number in the trace.
    pub fn set_trace_number(&mut self, number: u32, trace_number: u64) {
        self.nodes[number as usize].trace_number = trace_number;
    }

    /// The stack that a call from `site` makes of the stack `parent`.
    #[inline]
    pub fn child(&mut self, parent: u32, site: u64, in_allocator: bool) -> u32 {
        let last = self.nodes[parent as usize].last_child;
        let likely = self.nodes[last as usize].next;
        let node = &self.nodes[likely as usize];
        let number = if node.site == site && node.parent == parent && likely != ROOT {
            likely
        } else {
            let number = self.find_or_add(parent, site, in_allocator);
            if number == parent {
                return number; // the tree is full
            }
            self.nodes[last as usize].next = number;
            number
        };
        self.nodes[parent as usize].last_child = number;
        number
    }

    fn find_or_add(&mut self, parent: u32, site: u64, in_allocator: bool) -> u32 {
        let mask = self.table.len() - 1;
        let hash = (site ^ u64::from(parent).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> 32) as usize & mask;
        loop {
            let number = self.table[slot];
            if number == ROOT {
                break;
            }
            let node = &self.nodes[number as usize];
            if node.site == site && node.parent == parent {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        if self.nodes.len() == self.capacity {
            return parent;
        }
        let number = self.nodes.len() as u32;
        let under_allocator = in_allocator || self.nodes[parent as usize].under_allocator;
        self.nodes.push(Node { site, parent, trace_number: 0, under_allocator, last_child: ROOT, next: ROOT });
        self.table[slot] = number;
        number
    }

    /// Whether less than a quarter of the nodes is free.
    pub fn is_crowded(&self) -> bool {
        self.nodes.len() > self.capacity / 4 * 3
    }

    /// Forgets all nodes but the root; numbers given out before are void.
    pub fn clear(&mut self) {
        self.nodes.truncate(1);
        (self.nodes[0].last_child, self.nodes[0].next) = (ROOT, ROOT);
        self.table.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sites(tree: &CallTree, mut number: u32) -> Vec<u64> {
        let mut sites = Vec::new();
        while number != ROOT {
            sites.push(tree.node(number).site);
            number = tree.node(number).parent;
        }
        sites.reverse();
        sites
    }

    proptest! {
        #[test]
        fn equal_stacks_are_one_node_and_different_stacks_are_not(
            stacks in proptest::collection::vec(proptest::collection::vec(1u64..6, 0..6), 0..60)
        ) {
            let mut tree = CallTree::new(1 << 10);
            let numbers: Vec<u32> = stacks
                .iter()
                .map(|stack| stack.iter().fold(ROOT, |node, &site| tree.child(node, site, site == 5)))
                .collect();
            for (stack, &number) in stacks.iter().zip(&numbers) {
                prop_assert_eq!(&sites(&tree, number), stack);
                prop_assert_eq!(tree.node(number).under_allocator, stack.contains(&5));
                for (other, &other_number) in stacks.iter().zip(&numbers) {
                    prop_assert_eq!(stack == other, number == other_number);
                }
            }
        }
    }

    #[test]
    fn a_full_tree_answers_with_the_caller_and_can_start_anew() {
        let mut tree = CallTree::new(4);
        let numbers: Vec<u32> = (1..4).map(|site| tree.child(ROOT, site, false)).collect();
        assert!(tree.is_crowded());
        assert_eq!(tree.child(numbers[0], 9, false), numbers[0]);
        assert_eq!(tree.child(ROOT, 2, false), numbers[1]);
        tree.clear();
        assert!(!tree.is_crowded());
        assert_eq!(tree.child(ROOT, 9, false), 1);
    }
}
