//! Follows a virtual CPU's call stack without reading a register: from the addresses that calls and returns touch.
//!
//! A call stores its return address at the new top of the stack, a return loads it from there, so the address of the
//! access *is* the stack pointer. A frame is alive until a return loads its return address, or until a call or a return
//! uses a higher place of the same stack: then the frame was left without a return (`longjmp`, a task that never came
//! back, a stack that the kernel threw away).
//!
//! Stack switches: two addresses are taken for places of one stack if they are closer than the size of a stack. A call
//! on another stack is a callee like any other (Linux's interrupt stacks). A return on another stack that matches no
//! frame ends the innermost frame (Linux's `error_entry` is called on one stack and returns on another).
//!
//! A system call, an exception or an interrupt begins a *segment*: frames below it are out of reach until it ends.
//!
//! A task that leaves the CPU takes its frames with it ([`ShadowStack::put_away`]), and they are there again when it goes
//! on: other tasks have stacks of their own, which may end in any order.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::call_tree::{CallTree, ROOT};

/// Deepest stack that is followed; calls below it are attributed to the deepest frame.
const MAX_FRAMES: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Where the return address lies.
    stack_pointer: u64,
    /// The stack with this frame as its innermost.
    node: u32,
}

/// Where a segment began; gives back the state before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    length: u16,
    base: u16,
    base_node: u32,
    /// A stack that was cleared since does not go back to what was before.
    generation: u32,
}

/// The calls that a task was in when it left its virtual CPU.
#[derive(Debug, Default)]
pub struct WaitingStack {
    frames: Box<[Frame]>,
    base: usize,
    base_node: u32,
    generation: u32,
}

/// The next number for [`ShadowStack::generation`]: no two stacks have one in common, since each has a call tree of its own.
static NEXT_GENERATION: AtomicU32 = AtomicU32::new(0);

fn next_generation() -> u32 {
    // Relaxed: only distinct numbers are asked for.
    NEXT_GENERATION.fetch_add(1, Ordering::Relaxed)
}

/// The calls that a virtual CPU is in.
pub struct ShadowStack {
    frames: Vec<Frame>,
    /// Frames below this index belong to earlier segments.
    base: usize,
    /// The stack at the segment's start.
    base_node: u32,
    stack_bytes: u64,
    /// A number of its own for the time between two clearings.
    generation: u32,
}

impl ShadowStack {
    /// An empty stack; two addresses at least `stack_bytes` apart lie on different stacks.
    pub fn new(stack_bytes: u64) -> Self {
        Self {
            frames: Vec::with_capacity(MAX_FRAMES),
            base: 0,
            base_node: ROOT,
            stack_bytes,
            generation: next_generation(),
        }
    }

    /// Forgets all frames and segments.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.base = 0;
        self.base_node = ROOT;
        self.generation = next_generation();
    }

    /// The calls of the task that runs, which leaves; those of the next one are empty.
    #[must_use]
    pub fn put_away(&mut self) -> WaitingStack {
        let waiting = WaitingStack {
            frames: self.frames.as_slice().into(),
            base: self.base,
            base_node: self.base_node,
            generation: self.generation,
        };
        self.frames.clear();
        (self.base, self.base_node) = (0, ROOT);
        waiting
    }

    /// The calls of a task that goes on. If it left before the stack was cleared, or on another virtual CPU, they stay empty.
    pub fn take_up(&mut self, waiting: &WaitingStack) {
        self.frames.clear();
        (self.base, self.base_node) = (0, ROOT);
        if waiting.generation == self.generation {
            self.frames.extend_from_slice(&waiting.frames);
            (self.base, self.base_node) = (waiting.base, waiting.base_node);
        }
    }

    /// The call tree's node of the present stack.
    #[inline]
    pub fn node(&self) -> u32 {
        if self.frames.len() > self.base { self.frames[self.frames.len() - 1].node } else { self.base_node }
    }

    /// Where the return address of the innermost call lies; None outside of calls.
    #[inline]
    pub fn innermost(&self) -> Option<u64> {
        self.frames[self.base..].last().map(|frame| frame.stack_pointer)
    }

    /// How many calls the stack has, those of earlier segments included.
    #[inline]
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    fn on_one_stack(&self, low: u64, high: u64) -> bool {
        low <= high && high - low < self.stack_bytes
    }

    /// A call from `site` stored its return address at `stack_pointer`.
    #[inline]
    pub fn call(&mut self, tree: &mut CallTree, stack_pointer: u64, site: u64, in_allocator: bool) {
        while self.frames.len() > self.base
            && self.on_one_stack(self.frames[self.frames.len() - 1].stack_pointer, stack_pointer)
        {
            self.frames.pop();
        }
        if self.frames.len() < MAX_FRAMES {
            let node = tree.child(self.node(), site, in_allocator);
            self.frames.push(Frame { stack_pointer, node });
        }
    }

    /// A return loaded its address from `stack_pointer`.
    #[inline]
    pub fn ret(&mut self, stack_pointer: u64) {
        let Some(top) = self.frames[self.base..].last() else { return };
        if top.stack_pointer == stack_pointer {
            self.frames.pop();
            return;
        }
        if let Some(index) = self.frames[self.base..].iter().rposition(|frame| frame.stack_pointer == stack_pointer) {
            self.frames.truncate(self.base + index);
            return;
        }
        let (low, high) = (top.stack_pointer.min(stack_pointer), top.stack_pointer.max(stack_pointer));
        if !self.on_one_stack(low, high) {
            self.frames.pop();
            return;
        }
        while self.frames.len() > self.base
            && self.on_one_stack(self.frames[self.frames.len() - 1].stack_pointer, stack_pointer)
        {
            self.frames.pop();
        }
    }

    /// Begins a segment whose stack starts as `node`.
    pub fn begin_segment(&mut self, node: u32) -> Segment {
        let before = Segment {
            length: self.frames.len() as u16,
            base: self.base as u16,
            base_node: self.base_node,
            generation: self.generation,
        };
        self.base = self.frames.len();
        self.base_node = node;
        before
    }

    /// Ends a segment and all that began in it. If the stack was cleared since, what remains is an empty stack.
    pub fn end_segment(&mut self, before: Segment) {
        if before.generation != self.generation {
            self.frames.clear();
            (self.base, self.base_node) = (0, ROOT);
            return;
        }
        self.frames.truncate(usize::from(before.length));
        self.base = usize::from(before.base).min(self.frames.len());
        self.base_node = before.base_node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sites(tree: &CallTree, stack: &ShadowStack) -> Vec<u64> {
        let mut sites = Vec::new();
        let mut number = stack.node();
        while number != ROOT {
            sites.push(tree.node(number).site);
            number = tree.node(number).parent;
        }
        sites
    }

    #[test]
    fn frames_left_without_a_return_are_dropped() {
        let (mut tree, mut stack) = (CallTree::new(64), ShadowStack::new(0x4000));
        stack.call(&mut tree, 0x1f00, 1, false);
        stack.call(&mut tree, 0x1e00, 2, false);
        stack.call(&mut tree, 0x1d00, 3, false);
        stack.call(&mut tree, 0x1e80, 4, false); // frames 2 and 3 lie below: longjmp
        assert_eq!(sites(&tree, &stack), [4, 1]);
        stack.ret(0x1e80);
        stack.ret(0x1f00);
        assert_eq!(sites(&tree, &stack), []);
        stack.ret(0x1f80);
        assert_eq!(sites(&tree, &stack), []);
    }

    #[test]
    fn calls_on_another_stack_are_callees_and_their_returns_match() {
        let (mut tree, mut stack) = (CallTree::new(64), ShadowStack::new(0x4000));
        stack.call(&mut tree, 0x1_0000, 1, false);
        stack.call(&mut tree, 0x9_0000, 2, false); // a higher address, another stack
        stack.call(&mut tree, 0x8_ff00, 3, false);
        assert_eq!(sites(&tree, &stack), [3, 2, 1]);
        stack.ret(0x8_ff00);
        stack.ret(0x9_0000);
        assert_eq!(sites(&tree, &stack), [1]);
        stack.call(&mut tree, 0x9_0000, 2, false);
        stack.ret(0x2_0000); // called on one stack, returns on a third
        assert_eq!(sites(&tree, &stack), [1]);
    }

    #[test]
    fn a_segment_hides_what_lies_below_and_its_end_brings_it_back() {
        let (mut tree, mut stack) = (CallTree::new(64), ShadowStack::new(0x4000));
        stack.call(&mut tree, 0x1f00, 1, false);
        let outer = stack.begin_segment(ROOT);
        assert_eq!(sites(&tree, &stack), []);
        stack.call(&mut tree, 0x1f80, 2, false);
        let node = tree.child(stack.node(), 7, false);
        let inner = stack.begin_segment(node);
        stack.ret(0x1fff);
        assert_eq!(sites(&tree, &stack), [7, 2]);
        stack.end_segment(inner);
        assert_eq!(sites(&tree, &stack), [2]);
        stack.end_segment(outer);
        assert_eq!(sites(&tree, &stack), [1]);
        stack.clear();
        stack.end_segment(inner);
        assert_eq!(sites(&tree, &stack), []);
    }

    #[test]
    fn tasks_keep_their_calls_in_whatever_order_they_run() {
        let (mut tree, mut stack) = (CallTree::new(64), ShadowStack::new(0x4000));
        let mut waiting: [WaitingStack; 3] = Default::default();
        stack.call(&mut tree, 0x1f00, 1, false);
        let before_a_clearing = stack.put_away();
        stack.clear();
        // Each task calls once whenever it runs: task 0, 1, 2, 1, 0, 2.
        for (site, task) in [(10, 0usize), (20, 1), (30, 2), (21, 1), (11, 0), (31, 2)] {
            stack.take_up(&waiting[task]);
            let depth = 0x100 * sites(&tree, &stack).len() as u64;
            let segment = stack.begin_segment(stack.node());
            stack.call(&mut tree, 0x1_0000 * (1 + task as u64) + 0x3f00 - depth, site, false);
            let node = stack.node();
            stack.end_segment(segment);
            let _ = stack.begin_segment(node);
            waiting[task] = stack.put_away();
            assert_eq!(sites(&tree, &stack), []);
        }
        for (task, expected) in [(2, [31, 30]), (0, [11, 10]), (1, [21, 20])] {
            stack.take_up(&waiting[task]);
            assert_eq!(sites(&tree, &stack), expected);
        }
        // What left before the stack was cleared is void, and leaves the frames of no one else behind.
        stack.take_up(&before_a_clearing);
        assert_eq!(sites(&tree, &stack), []);
        // Another virtual CPU's numbers say nothing here.
        let mut other = ShadowStack::new(0x4000);
        other.take_up(&waiting[0]);
        assert_eq!(sites(&tree, &other), []);
    }

    proptest! {
        #[test]
        fn proper_calls_and_returns_give_the_real_stack(steps in proptest::collection::vec(any::<Option<u8>>(), 0..200)) {
            let (mut tree, mut stack) = (CallTree::new(1 << 12), ShadowStack::new(0x4000));
            let mut real: Vec<(u64, u64)> = Vec::new();
            let mut pointer = 0xf000u64;
            for step in steps {
                match step {
                    Some(site) if real.len() < 100 => {
                        pointer -= 8 + u64::from(site % 4) * 8;
                        real.push((pointer, u64::from(site)));
                        stack.call(&mut tree, pointer, u64::from(site), false);
                    }
                    _ => if let Some((at, _)) = real.pop() {
                        stack.ret(at);
                        pointer = at + 8;
                    }
                }
                let expected: Vec<u64> = real.iter().rev().map(|&(_, site)| site).collect();
                prop_assert_eq!(sites(&tree, &stack), expected);
            }
        }

        #[test]
        fn any_sequence_is_survived(steps in proptest::collection::vec((0u8..5, 0u64..0x9000), 0..300)) {
            let (mut tree, mut stack) = (CallTree::new(256), ShadowStack::new(0x4000));
            let mut segments = Vec::new();
            for (what, address) in steps {
                match what {
                    0 | 1 => stack.call(&mut tree, address, address % 7, false),
                    2 => stack.ret(address),
                    3 => segments.push(stack.begin_segment(ROOT)),
                    _ => if let Some(segment) = segments.pop() { stack.end_segment(segment) },
                }
                let _ = stack.node();
            }
        }
    }
}
