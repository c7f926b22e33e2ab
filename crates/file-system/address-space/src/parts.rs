//! The cores' own parts of an address space: where each looks for room.

use core::ops::Range;

use percpu::{CoreIndex, MAX_CORES};

/// Where they begin, and how long each is: so long that the nodes of two share no line. Histories are about the first pages, which
/// so lie in the part of core 0.
const FIRST_PART: u64 = if cfg!(any(loom, shuttle)) { 0 } else { 1 << 33 };
const PART_PAGES: u64 = 1 << 25;

/// The pages of a core's own part.
pub(crate) fn part_of(core: CoreIndex) -> Range<u64> {
    let start = FIRST_PART + core.get() as u64 * PART_PAGES;
    start..start + PART_PAGES
}

/// The core in whose part all of these pages lie, if there is one.
pub(crate) fn owner_of(pages: &Range<u64>) -> Option<CoreIndex> {
    let number = pages.start.checked_sub(FIRST_PART)? / PART_PAGES;
    let core = usize::try_from(number).ok().filter(|number| *number < MAX_CORES).and_then(CoreIndex::new)?;
    (pages.end <= part_of(core).end).then_some(core)
}
