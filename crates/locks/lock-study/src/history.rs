//! The last sections of one lock.
//!
//! A plain ring would hold the sections of one thread where threads run in long turns, as emulated ones do, and leave
//! nothing to compare. A full history therefore gives up the oldest section of the thread that has most.

use std::collections::VecDeque;

use crate::address_set::AddressSet;
use crate::kinds::KindIndex;

/// A critical section that has ended.
#[derive(Debug, Clone)]
pub struct Section {
    /// Who executed it: the recorder's number.
    pub thread: u32,
    /// Whether others could hold the lock at the same time (readers).
    pub shared: bool,
    /// What kind of section it is, if its lock tells that kind apart.
    pub kind: Option<KindIndex>,
    /// Whether it touched a device: counts as conflicting with all others.
    pub touched_device: bool,
    /// What it read and wrote.
    pub set: AddressSet,
}

impl Section {
    /// Whether the lock keeps the two apart, so that it means something to compare them: sections of different threads of
    /// which one excludes others. (What one thread does, it does in order.)
    #[must_use]
    pub fn is_kept_from(&self, other: &Section) -> bool {
        self.thread != other.thread && !(self.shared && other.shared)
    }
}

/// Sections of one lock, the oldest first.
#[derive(Debug, Default)]
pub struct History {
    sections: VecDeque<Section>,
}

impl History {
    /// Adds a section; at most `limit` stay.
    pub fn push(&mut self, section: Section, limit: usize) {
        while self.sections.len() >= limit.max(1) {
            let index = self.oldest_of_most_frequent();
            self.sections.remove(index);
        }
        self.sections.push_back(section);
    }

    /// The sections, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().rev()
    }

    fn oldest_of_most_frequent(&self) -> usize {
        let mut counts: Vec<(u32, usize, usize)> = Vec::new(); // thread, sections, index of the oldest
        for (index, section) in self.sections.iter().enumerate() {
            match counts.iter_mut().find(|(thread, ..)| *thread == section.thread) {
                Some(known) => known.1 += 1,
                None => counts.push((section.thread, 1, index)),
            }
        }
        let most = counts.iter().map(|&(_, count, _)| count).max().unwrap_or(0);
        counts.iter().find(|&&(_, count, _)| count == most).map_or(0, |&(_, _, index)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(pushed: &[u32], limit: usize) -> Vec<u32> {
        let mut history = History::default();
        for &thread in pushed {
            let section =
                Section { thread, shared: false, kind: None, touched_device: false, set: AddressSet::default() };
            history.push(section, limit);
        }
        history.newest_first().map(|section| section.thread).collect()
    }

    #[test]
    fn a_thread_that_runs_long_does_not_push_out_the_others() {
        assert_eq!(threads(&[1, 2, 3, 3, 3, 3, 3, 3], 4), [3, 3, 2, 1]);
    }

    #[test]
    fn threads_that_take_turns_leave_the_newest_sections() {
        assert_eq!(threads(&[1, 2, 1, 2, 1, 2], 4), [2, 1, 2, 1]);
    }
}
