//! One thread of the program: its call stack, and what it touches in open sections. Belongs to the thread.

use std::ops::Range;

use lock_study::{Moment, ThreadLog, Word};
use qemu_plugin::call_tree::{CallTree, ROOT};
use qemu_plugin::shadow_stack::ShadowStack;

use super::names::Stacks;

/// Call stacks and places of access that are distinguished per thread.
const CALL_TREE_NODES: usize = 1 << 16;
/// Two addresses that far apart lie on different stacks.
const STACK_BYTES: u64 = 8 << 20;

/// A thread, by the virtual CPU that runs it.
pub struct Thread {
    /// Counts up; a virtual CPU's number is used again.
    pub number: u32,
    /// The span of the run that its open sections belong to.
    pub span: u32,
    /// Accesses of open sections.
    log: ThreadLog,
    /// The same sections: the lock, and the fewest calls that the thread has been in since.
    shallowest: Vec<(u32, usize)>,
    /// The word that it tried to take last, and when.
    tried: Option<(u64, Moment)>,
    /// Words of locks of which a return will tell more, and how many calls the thread is in then.
    awaited: Vec<(u64, usize)>,
    stack: ShadowStack,
    tree: CallTree,
    own_stack: Option<Range<u64>>,
    /// Whether the recorder knows where its stack lies.
    stack_is_known: bool,
    filters_stack: bool,
}

impl Thread {
    /// A thread that has not run yet.
    pub fn new(number: u32, filters_stack: bool) -> Self {
        Self {
            number,
            span: 0,
            log: ThreadLog::default(),
            shallowest: Vec::new(),
            tried: None,
            awaited: Vec::new(),
            stack: ShadowStack::new(STACK_BYTES),
            tree: CallTree::new(CALL_TREE_NODES),
            own_stack: None,
            stack_is_known: false,
            filters_stack,
        }
    }

    /// A call from `site` stored its return address at `stack_pointer`; `stack_around` is asked for the thread's stack at the
    /// first one.
    #[inline]
    pub fn call(&mut self, stack_pointer: u64, site: u64, stack_around: impl FnOnce(u64) -> Range<u64>) {
        if self.own_stack.is_none() && self.filters_stack {
            self.own_stack = Some(stack_around(stack_pointer));
        }
        self.stack.call(&mut self.tree, stack_pointer, site, false);
    }

    /// Where the thread's stack lies, once that is known: the first time that this is asked.
    pub fn new_stack(&mut self) -> Option<Range<u64>> {
        if self.stack_is_known {
            return None;
        }
        self.stack_is_known = self.own_stack.is_some();
        self.own_stack.clone()
    }

    /// A return loaded its address from `stack_pointer`. Whether there is a word that waited for it ([`Thread::next_returned`]).
    #[inline]
    pub fn ret(&mut self, stack_pointer: u64) -> bool {
        self.stack.ret(stack_pointer);
        if self.shallowest.is_empty() && self.awaited.is_empty() {
            return false;
        }
        let depth = self.stack.depth();
        for (_, least) in &mut self.shallowest {
            *least = depth.min(*least);
        }
        self.awaited.iter().any(|&(_, awaited)| depth <= awaited)
    }

    /// The thread tries to take a word.
    pub fn tries(&mut self, word: u64, now: Moment) {
        self.tried = Some((word, now));
    }

    /// When the thread tried to take the word, if that was the last that it tried.
    pub fn tried_at(&self, word: u64) -> Option<Moment> {
        self.tried.filter(|&(tried, _)| tried == word).map(|(_, at)| at)
    }

    /// The next return to where the thread is will tell more of this word, unless an outer one is awaited already.
    pub fn await_return(&mut self, word: u64) {
        if !self.awaited.iter().any(|&(known, _)| known == word) {
            self.awaited.push((word, self.stack.depth()));
        }
    }

    /// No return will tell more of this word.
    pub fn await_no_return(&mut self, word: u64) {
        self.awaited.retain(|&(known, _)| known != word);
    }

    /// One of the words that waited for the return which has just happened.
    pub fn next_returned(&mut self) -> Option<u64> {
        let depth = self.stack.depth();
        let index = self.awaited.iter().position(|&(_, awaited)| depth <= awaited)?;
        Some(self.awaited.swap_remove(index).0)
    }

    /// An access by the instruction at `site`.
    #[inline]
    pub fn access(&mut self, address: u64, size_bytes: u8, write: bool, site: u64) {
        if !self.log.is_recording() || self.own_stack.as_ref().is_some_and(|stack| stack.contains(&address)) {
            return;
        }
        let Self { log, stack, tree, .. } = self;
        log.access(address, size_bytes, write, false, || tree.child(stack.node(), site, false));
    }

    /// A section of the lock begins.
    pub fn begin(&mut self, lock: u32) {
        self.log.begin(lock);
        self.shallowest.push((lock, self.stack.depth()));
    }

    /// How many calls the thread has been in at least since the innermost section of the lock began: those made it, and will
    /// end it. None if there is no such section.
    pub fn shallowest(&self, lock: u32) -> Option<usize> {
        self.shallowest.iter().rev().find(|&&(open, _)| open == lock).map(|&(_, depth)| depth)
    }

    fn forget_shallowest(&mut self, lock: u32) {
        if let Some(index) = self.shallowest.iter().rposition(|&(open, _)| open == lock) {
            self.shallowest.remove(index);
        }
    }

    /// The innermost section of the lock ends: the words that it touched, with their sites as numbers of `stacks`. None if
    /// there is no such section.
    pub fn end(&mut self, lock: u32, stacks: &mut Stacks) -> Option<Vec<Word>> {
        self.forget_shallowest(lock);
        let Self { log, tree, .. } = self;
        log.end(lock, |words| {
            let mut words = words.to_vec();
            for word in &mut words {
                word.read_site = number_of(tree, stacks, word.read_site);
                word.write_site = number_of(tree, stacks, word.write_site);
            }
            words
        })
    }

    /// The innermost section of the lock, if there is one, was none.
    pub fn forget(&mut self, lock: u32) {
        self.forget_shallowest(lock);
        self.log.end(lock, |_| ());
    }

    /// The locks of open sections.
    pub fn open(&self) -> impl Iterator<Item = u32> + '_ {
        self.log.open()
    }

    /// Forgets all open sections.
    pub fn abandon(&mut self) {
        self.log.abandon().for_each(drop);
        self.shallowest.clear();
        self.awaited.clear();
    }

    /// The present call stack as a number of `stacks`.
    pub fn stack_number(&mut self, stacks: &mut Stacks) -> u32 {
        number_of(&mut self.tree, stacks, self.stack.node())
    }
}

/// The number in `stacks` of a thread's own node; asked for once per node.
fn number_of(tree: &mut CallTree, stacks: &mut Stacks, node: u32) -> u32 {
    if node == ROOT {
        return Stacks::EMPTY;
    }
    let own = tree.node(node);
    if own.trace_number != 0 {
        return own.trace_number as u32;
    }
    let caller = number_of(tree, stacks, own.parent);
    let number = stacks.child(caller, own.site);
    tree.set_trace_number(node, u64::from(number));
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_gets_its_words_with_the_stacks_that_touched_them() {
        let (mut thread, mut stacks) = (Thread::new(1, false), Stacks::default());
        thread.access(0x1000, 8, true, 0x50); // outside
        thread.call(0x7000, 0x10, |_| 0..0);
        thread.begin(3);
        thread.call(0x6f00, 0x20, |_| 0..0);
        thread.access(0x2000, 8, true, 0x51);
        thread.ret(0x6f00);
        thread.access(0x3000, 4, false, 0x52);
        let words = thread.end(3, &mut stacks).expect("an open section");
        let seen: Vec<_> = words.iter().map(|word| (word.number * 8, stacks.addresses(word.read_site))).collect();
        assert_eq!(seen, [(0x2000, vec![0x51, 0x20, 0x10]), (0x3000, vec![0x52, 0x10])]);
        assert!(thread.end(3, &mut stacks).is_none());
    }

    #[test]
    fn the_calls_that_a_section_outlives_are_told() {
        let (mut thread, mut stacks) = (Thread::new(1, false), Stacks::default());
        for (stack_pointer, site) in [(0x7000, 0x10), (0x6f00, 0x20), (0x6e00, 0x30)] {
            thread.call(stack_pointer, site, |_| 0..0);
        }
        thread.begin(3);
        thread.ret(0x6e00);
        thread.begin(4);
        thread.call(0x6e00, 0x40, |_| 0..0);
        assert_eq!((thread.shallowest(3), thread.shallowest(4), thread.shallowest(5)), (Some(2), Some(2), None));
        thread.end(3, &mut stacks).expect("an open section");
        assert_eq!(thread.shallowest(3), None);
    }

    #[test]
    fn a_word_waits_for_the_return_to_where_the_thread_was() {
        let mut thread = Thread::new(1, false);
        thread.call(0x7000, 0x10, |_| 0..0);
        thread.await_return(0x40);
        thread.call(0x6f00, 0x20, |_| 0..0);
        thread.await_return(0x40); // the outer one stays
        thread.call(0x6e00, 0x30, |_| 0..0);
        assert!(!thread.ret(0x6e00));
        assert!(thread.ret(0x6f00));
        assert_eq!((thread.next_returned(), thread.next_returned()), (Some(0x40), None));
    }

    #[test]
    fn a_threads_own_stack_is_left_out_if_asked_for() {
        for (filters_stack, count) in [(true, 1), (false, 2)] {
            let (mut thread, mut stacks) = (Thread::new(1, filters_stack), Stacks::default());
            thread.call(0x8000, 0x10, |stack_pointer| stack_pointer - 0x1000..stack_pointer + 8);
            thread.begin(3);
            thread.access(0x7fc0, 8, true, 0x51);
            thread.access(0x2000, 8, true, 0x51);
            assert_eq!(thread.end(3, &mut stacks).map(|words| words.len()), Some(count));
        }
    }
}
