//! What a program's memory functions have given, by address, with the calls that asked for it.
//!
//! Memory is given back and given again soon, so only here, in the order of time, is it known what lay at an address when a
//! window closed. Blocks that were given back within the window are kept until the next one begins: what was shared in
//! them was shared.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use mtrace::LINE_BYTES;
use mtrace::blocks::{BlockCapture, BlockState};

use crate::window::Capturer;

/// Distinct call stacks that are kept; blocks with others have none.
const MOST_STACKS: usize = 1 << 16;
/// Bytes that glibc's allocator keeps in front of a block (malloc/malloc.c, "chunk").
const HEADER_BYTES: u64 = 16;

#[derive(Clone)]
struct Block {
    size_bytes: u64,
    sites: Rc<[u64]>,
}

/// All blocks.
#[derive(Default)]
pub struct Blocks {
    live: BTreeMap<u64, Block>,
    /// Given back since the window began, in the order of time.
    freed: Vec<(u64, Block)>,
    stacks: HashMap<Rc<[u64]>, ()>,
}

// SAFETY: the reference counts are shared by nothing outside of this structure, which moves between threads as a whole.
unsafe impl Send for Blocks {}

impl Blocks {
    /// Whether nothing was ever reported.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.freed.is_empty()
    }

    /// A block was given; the innermost of the calls that asked for it comes first.
    pub fn give(&mut self, address: u64, size_bytes: u64, sites: &[u64]) {
        let known = self.stacks.get_key_value(sites).map(|(sites, ())| Rc::clone(sites));
        let sites = known.unwrap_or_else(|| {
            let new: Rc<[u64]> = if self.stacks.len() < MOST_STACKS { Rc::from(sites) } else { Rc::from([]) };
            self.stacks.insert(Rc::clone(&new), ());
            new
        });
        self.live.insert(address, Block { size_bytes, sites });
    }

    /// A block was given back.
    pub fn give_back(&mut self, address: u64) {
        if let Some(block) = self.live.remove(&address) {
            self.freed.push((address, block));
        }
    }

    /// A window begins.
    pub fn forget_freed(&mut self) {
        self.freed.clear();
    }

    fn find(&self, address: u64) -> (BlockCapture, Range<u64>) {
        let holds = |start: u64, block: &Block| (start..start.saturating_add(block.size_bytes)).contains(&address);
        let before = self.live.range(..=address).next_back();
        let found = before.filter(|(start, block)| holds(**start, block)).map(|(start, block)| (*start, block));
        let freed = || self.freed.iter().rev().find(|(start, block)| holds(*start, block));
        let (state, block) = match (found, found.is_none().then(freed).flatten()) {
            (Some(block), _) => (BlockState::Live, Some(block)),
            (None, Some((start, block))) => (BlockState::Freed, Some((*start, block))),
            (None, None) => (BlockState::None, None),
        };
        if let Some((start, block)) = block {
            let capture =
                BlockCapture { address: start, size_bytes: block.size_bytes, state, sites: block.sites.to_vec() };
            return (capture, start..start.saturating_add(block.size_bytes));
        }
        let next = self.live.range(address..).next().map_or(u64::MAX, |(start, _)| *start);
        let state = if next - address <= HEADER_BYTES { BlockState::Header } else { BlockState::None };
        let line = address & !(LINE_BYTES - 1);
        let end =
            if state == BlockState::Header { next } else { next.saturating_sub(HEADER_BYTES).min(line + LINE_BYTES) };
        (BlockCapture { address, size_bytes: 0, state, sites: Vec::new() }, address..end.max(address + 1))
    }
}

impl Capturer for Blocks {
    fn capture(&mut self, address: u64, out: &mut Vec<u8>) -> Range<u64> {
        let (capture, range) = self.find(address);
        out.extend_from_slice(&capture.to_bytes());
        range
    }

    fn object_off_lines(&mut self, _: u64) -> Option<Range<u64>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(blocks: &Blocks, address: u64) -> (BlockState, u64, Vec<u64>) {
        let (capture, range) = blocks.find(address);
        assert!(range.contains(&address));
        (capture.state, capture.address, capture.sites)
    }

    #[test]
    fn the_block_that_lives_at_an_address_speaks_for_it() {
        let mut blocks = Blocks::default();
        blocks.give(0x1000, 0x40, &[1, 2]);
        blocks.give(0x1050, 0x10, &[1, 2]);
        assert_eq!(at(&blocks, 0x103f), (BlockState::Live, 0x1000, vec![1, 2]));
        assert_eq!(at(&blocks, 0x1048), (BlockState::Header, 0x1048, vec![]));
        assert_eq!(at(&blocks, 0x1060).0, BlockState::None);
        blocks.give_back(0x1000);
        assert_eq!(at(&blocks, 0x1000), (BlockState::Freed, 0x1000, vec![1, 2]));
        blocks.give(0x1020, 0x10, &[3]);
        assert_eq!(at(&blocks, 0x1020), (BlockState::Live, 0x1020, vec![3]));
        assert_eq!(at(&blocks, 0x1018).0, BlockState::Freed);
        blocks.forget_freed();
        assert_eq!(at(&blocks, 0x1018), (BlockState::Header, 0x1018, vec![]));
    }
}
