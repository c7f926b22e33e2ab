//! Sections of a lock by kind: who began them, whether they let readers in, and whether they wrote anything.
//!
//! How often sections of each two kinds conflict tells what another kind of lock would let run side by side: readers, if
//! sections that write nothing are many; two locks, if what two callers do never meets.

use std::collections::HashMap;

use crate::measures::{GRANULARITIES, Span, Spans, count, sum};

/// What tells one kind of section from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The recorder's number for the code that acquired the lock.
    pub caller: u64,
    /// Whether others could hold the lock at the same time (readers).
    pub shared: bool,
    /// Whether the section wrote anything but its own stack and locks.
    pub writes: bool,
}

/// The place of a kind in the report of its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindIndex(pub u8);

/// Sections of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindReport {
    /// Their kind.
    pub kind: Kind,
    /// How many ended.
    pub sections: u64,
    /// Their lengths.
    pub hold: Spans,
    /// The sum of the squares of their lengths in instructions: says how the lengths scatter.
    pub hold_squares: f64,
    /// Those that were compared with at least one other.
    pub compared: u64,
    /// Of these, those that conflict with any, by granularity: where few sections make all conflicts they are rarer than
    /// conflicting pairs would have it.
    pub conflicting: [u64; GRANULARITIES],
}

/// Pairs of sections of two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindPairs {
    /// The two kinds, the smaller index first.
    pub kinds: [KindIndex; 2],
    /// Pairs that were compared.
    pub compared: u64,
    /// Pairs that conflict, by granularity.
    pub conflicting: [u64; GRANULARITIES],
}

/// Sections of one thread, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadReport {
    /// The recorder's number for the thread.
    pub thread: u32,
    /// Sections by the place of their kind; kinds after the last have none.
    pub sections: Vec<u64>,
}

/// Kinds per lock that are distinguished; the rest is in the lock's own sums only.
const KIND_LIMIT: usize = 64;

/// Threads per lock that are distinguished: enough to know whether threads do different things.
const THREAD_LIMIT: usize = 64;

/// All kinds of one lock.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    reports: Vec<KindReport>,
    threads: Vec<ThreadReport>,
    pairs: HashMap<[KindIndex; 2], (u64, [u64; GRANULARITIES])>,
}

impl Kinds {
    /// Adds a section of a thread and tells the place of its kind; `None` when there are more kinds than are
    /// distinguished.
    pub fn add(&mut self, thread: u32, kind: Kind, hold: Span) -> Option<KindIndex> {
        let place = self.place(kind)?;
        let report = &mut self.reports[usize::from(place.0)];
        report.sections += 1;
        report.hold.add(hold);
        report.hold_squares += (hold.instructions as f64).powi(2);
        self.add_to_thread(thread, place, 1);
        Some(place)
    }

    /// The place of a kind, made if it is not there; `None` when there are more kinds than are distinguished.
    fn place(&mut self, kind: Kind) -> Option<KindIndex> {
        let index = self.reports.iter().position(|known| known.kind == kind).unwrap_or_else(|| {
            if self.reports.len() < KIND_LIMIT {
                let (hold, conflicting) = (Spans::default(), [0; GRANULARITIES]);
                self.reports.push(KindReport { kind, sections: 0, hold, hold_squares: 0.0, compared: 0, conflicting });
                self.reports.len() - 1
            } else {
                KIND_LIMIT
            }
        });
        (index < KIND_LIMIT).then_some(KindIndex(index as u8))
    }

    fn add_to_thread(&mut self, thread: u32, KindIndex(kind): KindIndex, sections: u64) {
        if !self.threads.iter().any(|known| known.thread == thread) && self.threads.len() < THREAD_LIMIT {
            self.threads.push(ThreadReport { thread, sections: Vec::new() });
        }
        let Some(known) = self.threads.iter_mut().find(|known| known.thread == thread) else { return };
        let kind = usize::from(kind);
        if known.sections.len() <= kind {
            known.sections.resize(kind + 1, 0);
        }
        known.sections[kind] += sections;
    }

    /// Adds that a section was compared with others, and whether it conflicts with any of them.
    pub fn add_compared(&mut self, kind: Option<KindIndex>, conflicts: [bool; GRANULARITIES]) {
        let Some(report) = kind.and_then(|KindIndex(index)| self.reports.get_mut(usize::from(index))) else { return };
        report.compared += 1;
        count(&mut report.conflicting, conflicts);
    }

    /// Adds a pair of sections that were compared; a pair of a kind that is not distinguished is left out.
    pub fn add_pair(&mut self, one: Option<KindIndex>, other: Option<KindIndex>, conflicts: [bool; GRANULARITIES]) {
        let (Some(one), Some(other)) = (one, other) else { return };
        let (compared, conflicting) = self.pairs.entry([one.min(other), one.max(other)]).or_default();
        *compared += 1;
        count(conflicting, conflicts);
    }

    /// Adds the sections and pairs of another lock.
    pub fn join(&mut self, other: &Self) {
        let mut places = Vec::new();
        for report in &other.reports {
            let place = self.place(report.kind);
            if let Some(KindIndex(place)) = place {
                let mine = &mut self.reports[usize::from(place)];
                mine.sections += report.sections;
                mine.hold.join(report.hold);
                mine.hold_squares += report.hold_squares;
                mine.compared += report.compared;
                sum(&mut mine.conflicting, report.conflicting);
            }
            places.push(place);
        }
        for thread in &other.threads {
            for (&place, &sections) in places.iter().zip(&thread.sections).filter(|&(_, &sections)| sections > 0) {
                if let Some(place) = place {
                    self.add_to_thread(thread.thread, place, sections);
                }
            }
        }
        for (&[one, other_kind], &(compared, conflicting)) in &other.pairs {
            let (Some(one), Some(other_kind)) = (places[usize::from(one.0)], places[usize::from(other_kind.0)]) else {
                continue;
            };
            let mine = self.pairs.entry([one.min(other_kind), one.max(other_kind)]).or_default();
            mine.0 += compared;
            sum(&mut mine.1, conflicting);
        }
    }

    /// The kinds, in the order of their first section: a [`KindIndex`] is a place in it.
    #[must_use]
    pub fn reports(&self) -> &[KindReport] {
        &self.reports
    }

    /// What each thread did, in the order of their first section.
    #[must_use]
    pub fn threads(&self) -> &[ThreadReport] {
        &self.threads
    }

    /// The pairs of kinds of which sections were compared, in ascending order.
    #[must_use]
    pub fn pairs(&self) -> Vec<KindPairs> {
        let pairs = self.pairs.iter();
        let mut pairs: Vec<_> =
            pairs.map(|(&kinds, &(compared, conflicting))| KindPairs { kinds, compared, conflicting }).collect();
        pairs.sort_by_key(|pair| pair.kinds);
        pairs
    }
}

/// What threads did between two sections of one lock: the sum of the gaps, in instructions of the thread itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gaps {
    /// Gaps that were seen; a thread's first section has none.
    pub count: u64,
    /// Their sum.
    pub instructions: u64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Gaps {
    /// Adds one.
    pub fn add(&mut self, instructions: u64) {
        self.count += 1;
        self.instructions += instructions;
        self.squares += (instructions as f64).powi(2);
    }

    /// Adds those of another lock.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.instructions += other.instructions;
        self.squares += other.squares;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(caller: u64) -> Kind {
        Kind { caller, shared: false, writes: true }
    }

    #[test]
    fn pairs_are_counted_in_either_order() {
        let mut kinds = Kinds::default();
        let span = Span { instructions: 3, nanoseconds: 1 };
        let (one, other) = (kinds.add(7, kind(1), span), kinds.add(8, kind(2), span));
        kinds.add_pair(one, other, [true, true, true]);
        kinds.add_pair(other, one, [false, false, true]);
        kinds.add_compared(other, [true, true, true]);
        let expected = KindPairs { kinds: [KindIndex(0), KindIndex(1)], compared: 2, conflicting: [1, 1, 2] };
        assert_eq!(kinds.pairs(), [expected]);
        let second = kinds.reports()[1];
        let threads = [(7, vec![1]), (8, vec![0, 1])].map(|(thread, sections)| ThreadReport { thread, sections });
        assert_eq!(kinds.threads(), threads);
        assert_eq!((second.hold_squares, second.compared, second.conflicting), (9.0, 1, [1; GRANULARITIES]));
    }

    #[test]
    fn more_kinds_than_are_told_apart_leave_the_first_ones() {
        let mut kinds = Kinds::default();
        for caller in 0..1000 {
            let index = kinds.add(caller as u32, kind(caller), Span::default());
            assert_eq!(index.is_some(), caller < KIND_LIMIT as u64);
            kinds.add_pair(index, Some(KindIndex(0)), [false; GRANULARITIES]);
        }
        assert_eq!((kinds.reports().len(), kinds.pairs().len()), (KIND_LIMIT, KIND_LIMIT));
        assert_eq!(kinds.threads().len(), THREAD_LIMIT);
    }

    #[test]
    fn more_threads_than_are_told_apart_leave_the_first_ones_and_all_sections() {
        let mut kinds = Kinds::default();
        (0..100).for_each(|thread| assert_eq!(kinds.add(thread, kind(1), Span::default()), Some(KindIndex(0))));
        assert_eq!(kinds.threads().len(), THREAD_LIMIT);
        assert_eq!(
            (kinds.threads()[THREAD_LIMIT - 1].thread, kinds.reports()[0].sections),
            (THREAD_LIMIT as u32 - 1, 100)
        );
    }
}
