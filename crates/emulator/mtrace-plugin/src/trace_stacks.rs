//! Numbers of call stacks in the trace: one tree for all virtual CPUs, of those stacks only that were written.
//!
//! A virtual CPU's own tree remembers the number that a node got, together with the generation of numbers that it
//! belongs to, so that a stack that was written before costs one comparison.

use std::collections::HashMap;

use mtrace::encode;
use mtrace::record::{MAX_STACK_NODES, ROOT_NODE, StackNode};

use qemu_plugin::call_tree::{CallTree, ROOT};

/// The stacks that were written since the last reset.
pub struct TraceStacks {
    numbers: HashMap<StackNode, u32>,
    new: Vec<StackNode>,
    /// Distinguishes the numbers of this tree from those before a reset; never 0.
    generation: u32,
}

impl Default for TraceStacks {
    fn default() -> Self {
        Self { numbers: HashMap::new(), new: Vec::new(), generation: 1 }
    }
}

/// First number that a window's new nodes get.
pub struct FirstNew(u32);

impl TraceStacks {
    /// Starts a window; makes room by a reset if the tree is nearly full.
    pub fn begin_window(&mut self, buffer: &mut Vec<u8>) -> FirstNew {
        if self.numbers.len() > MAX_STACK_NODES / 2 {
            self.numbers.clear();
            self.generation += 1;
            encode::stack_reset(buffer);
        }
        self.new.clear();
        FirstNew(self.numbers.len() as u32 + 1)
    }

    /// The number of a stack, a new one if it was never written.
    pub fn number(&mut self, tree: &mut CallTree, node: u32) -> u32 {
        // Outermost first: parents must be written before their children.
        let mut path = Vec::new();
        let mut at = node;
        let mut number = loop {
            if at == ROOT {
                break ROOT_NODE;
            }
            let node = tree.node(at);
            if node.trace_number >> 32 == u64::from(self.generation) {
                break node.trace_number as u32;
            }
            path.push(at);
            at = node.parent;
        };
        while let Some(at) = path.pop() {
            let node = StackNode { parent: number, site: tree.node(at).site };
            let next = self.numbers.len() as u32 + 1;
            if next as usize >= MAX_STACK_NODES {
                return number;
            }
            number = *self.numbers.entry(node).or_insert_with(|| {
                self.new.push(node);
                next
            });
            tree.set_trace_number(at, u64::from(self.generation) << 32 | u64::from(number));
        }
        number
    }

    /// Writes the nodes that are new in this window.
    pub fn write_new(&mut self, first: FirstNew, buffer: &mut Vec<u8>) {
        encode::stack_nodes(buffer, first.0, &self.new);
    }
}
