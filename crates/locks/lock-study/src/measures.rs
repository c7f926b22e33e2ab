//! What everything in the study is measured in: granularities, shares, lengths of time.

/// Conflicts are counted per byte, per word of 8 bytes and per line of 64 bytes.
pub const GRANULARITIES: usize = 3;

/// A share in percent of a whole that may be empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub Option<f64>);

impl Percent {
    /// `part` of `whole`; nothing of nothing is no number.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        Self((whole > 0).then(|| 100.0 * part as f64 / whole as f64))
    }
}

/// A length of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Instructions that the thread executed in it.
    pub instructions: u64,
    /// By the clock.
    pub nanoseconds: u64,
}

/// Many lengths of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spans {
    /// Their sum.
    pub total: Span,
    /// The longest, by either measure.
    pub longest: Span,
}

impl Spans {
    /// Adds one.
    pub fn add(&mut self, span: Span) {
        self.total.instructions += span.instructions;
        self.total.nanoseconds += span.nanoseconds;
        self.longest.instructions = self.longest.instructions.max(span.instructions);
        self.longest.nanoseconds = self.longest.nanoseconds.max(span.nanoseconds);
    }

    /// Adds those of another lock.
    pub fn join(&mut self, other: Self) {
        self.total.instructions += other.total.instructions;
        self.total.nanoseconds += other.total.nanoseconds;
        self.longest.instructions = self.longest.instructions.max(other.longest.instructions);
        self.longest.nanoseconds = self.longest.nanoseconds.max(other.longest.nanoseconds);
    }
}

/// Adds counts to counts, by granularity.
pub(crate) fn sum(sums: &mut [u64; GRANULARITIES], added: [u64; GRANULARITIES]) {
    sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
}

/// Counts those of a thing's granularities at which it conflicts.
pub(crate) fn count(counts: &mut [u64; GRANULARITIES], conflicts: [bool; GRANULARITIES]) {
    counts.iter_mut().zip(conflicts).for_each(|(count, conflict)| *count += u64::from(conflict));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_nothing_is_no_number() {
        assert_eq!(
            [(1, 4), (0, 4), (0, 0)].map(|(part, whole)| Percent::of(part, whole).0),
            [Some(25.0), Some(0.0), None]
        );
    }

    #[test]
    fn the_longest_is_told_by_either_measure() {
        let span = |instructions, nanoseconds| Span { instructions, nanoseconds };
        let mut spans = Spans::default();
        spans.add(span(3, 10));
        spans.add(span(5, 7));
        assert_eq!(spans, Spans { total: span(8, 17), longest: span(5, 10) });
        let mut others = Spans::default();
        others.add(span(4, 20));
        spans.join(others);
        assert_eq!(spans, Spans { total: span(12, 37), longest: span(5, 20) });
    }
}
