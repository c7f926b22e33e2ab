//! Events on the circle of a period, and the room that they leave there.
//!
//! A call that is repeated meets a line at the same moments of each period, so its events lie on a circle. The phase of
//! another core is random: whether an interval of one's own contains an event of the other depends only on its length, and
//! on the distances from each of the other's events to the next. All chances are sums over these distances.

/// A core reads a line, or takes it to write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// When, as a part of the period: from 0, below 1.
    pub at: f64,
    /// Whether the line is taken from all other cores.
    pub takes: bool,
}

/// The events of a call that is repeated, as those see them who do not know its phase.
pub(crate) struct Circle<'a> {
    events: &'a [Event],
    /// The distances from each event to the next, ascending; and from each that takes the line to the next that does.
    gaps: Vec<f64>,
    gaps_of_takes: Vec<f64>,
}

impl<'a> Circle<'a> {
    /// `events` are in order, at moments of one period.
    pub(crate) fn new(events: &'a [Event]) -> Self {
        debug_assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at), "events are in order");
        let mut circle = Self { events, gaps: Vec::new(), gaps_of_takes: Vec::new() };
        circle.gaps = circle.distances(|_| true);
        circle.gaps_of_takes = circle.distances(|event| event.takes);
        circle
    }

    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The event of that number.
    pub(crate) fn event(&self, index: usize) -> Event {
        self.events[index]
    }

    /// How long after event `from` event `to` comes next: more than 0 rounds, at most one.
    pub(crate) fn distance(&self, from: usize, to: usize) -> f64 {
        let distance = self.events[to].at - self.events[from].at;
        if to > from { distance } else { distance + 1.0 }
    }

    /// The events after one, in the order in which they come, with their distances from it; itself is the last.
    pub(crate) fn after(&self, from: usize) -> impl Iterator<Item = (f64, Event)> {
        let count = self.len();
        (from + 1..=from + count).map(move |index| (self.distance(from, index % count), self.events[index % count]))
    }

    /// The distances from each chosen event to the next chosen one, ascending.
    fn distances(&self, chosen: impl Fn(&Event) -> bool) -> Vec<f64> {
        let moments: Vec<f64> = self.events.iter().filter(|event| chosen(event)).map(|event| event.at).collect();
        let mut gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if let (Some(first), Some(last)) = (moments.first(), moments.last()) {
            gaps.push(first + 1.0 - last);
        }
        gaps.sort_unstable_by(f64::total_cmp);
        gaps
    }

    /// The distances from each event to the next, ascending.
    pub(crate) fn gaps(&self) -> &[f64] {
        &self.gaps
    }

    /// The chance that an interval of that length holds no event, or none that takes the line.
    pub(crate) fn free(&self, length: f64, only_takes: bool) -> f64 {
        let gaps = if only_takes { &self.gaps_of_takes } else { &self.gaps };
        if gaps.is_empty() {
            return 1.0;
        }
        gaps.iter().rev().take_while(|gap| **gap > length).map(|gap| gap - length).sum()
    }

    /// The chance that an interval of length `quiet` holds no event, and one of length `read_only` right after it none
    /// that takes the line.
    pub(crate) fn quiet_then_read_only(&self, quiet: f64, read_only: f64) -> f64 {
        if self.len() == 0 {
            return 1.0;
        }
        let room = |index: usize| {
            let mut after = self.after(index).peekable();
            let next = after.peek().map_or(1.0, |(distance, _)| *distance);
            let next_take = after.find(|(_, event)| event.takes).map_or(f64::INFINITY, |(distance, _)| distance);
            (next - quiet).min(next_take - quiet - read_only).max(0.0)
        };
        (0..self.len()).map(room).sum()
    }
}
