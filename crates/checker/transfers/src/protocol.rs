//! The chance that an event is a transfer, for two ways in which caches agree on who has a line.
//!
//! Let *w* be the core's last write before an event *e*, and *p* its last event before *e*; times between them are lengths
//! on the circle, and *n* is the number of other cores, each at a phase of its own.
//!
//! **Plain** (MESI). A read leaves the line with all that have it. So a read misses if another core wrote since *p*, and a
//! write takes the line if another core touched it since *w*. With *q* the chance that one other core did not, the chance
//! that any did is 1 - qⁿ.
//!
//! **Takes over** (a migratory line, as AMD's processors and many others treat it). A read of a line that another core has
//! modified takes it over whole: the reader may write it without asking anybody. After that:
//! - A read misses as above; and if nothing happened between *w* and *p*, also where another core read since *p*, for it
//!   took over what *w* had modified.
//! - A write need not take the line if nothing happened since *w*; nor if one of the core's own reads *r* since then took
//!   it over and nothing happened since *r*. It did if the last of the others' events before *r* came after the core's
//!   event before *r*, and its core had written the line after that event, and no third core touched it after that write.

use crate::event::{Circle, Event};

/// How caches agree on who has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// A read shares a line, no matter who modified it.
    Plain,
    /// A read of a line that another core has modified takes it over.
    TakesOver,
}

/// The expected transfers, per period, of two calls: of a core that repeats the first one while all others repeat the
/// second, and of one that repeats the second one while all others repeat the first. `cores` counts all, 2 at least.
pub fn transfers(calls: [&[Event]; 2], cores: u32, protocol: Protocol) -> f64 {
    transfers_to(calls[0], calls[1], cores, protocol) + transfers_to(calls[1], calls[0], cores, protocol)
}

/// The expected transfers, per period, to a core that repeats `own` while each of the others repeats `other`. Events are in
/// order; `cores` counts all, 2 at least.
pub fn transfers_to(own: &[Event], other: &[Event], cores: u32, protocol: Protocol) -> f64 {
    debug_assert!(cores >= 2, "one core alone transfers nothing");
    let is_shared = !own.is_empty() && !other.is_empty() && own.iter().chain(other).any(|event| event.takes);
    if !is_shared {
        return 0.0;
    }
    let others = Others { circle: Circle::new(other), count: cores.max(2) - 1 };
    let own = Circle::new(own);
    (0..own.len()).map(|index| others.chance(&own, index, protocol)).sum()
}

/// The other cores: all repeat one call.
struct Others<'a> {
    circle: Circle<'a>,
    count: u32,
}

impl Others<'_> {
    /// The chance that a core's own event is a transfer.
    fn chance(&self, own: &Circle<'_>, index: usize, protocol: Protocol) -> f64 {
        let before = (index + own.len() - 1) % own.len();
        let since_event = own.distance(before, index);
        let write = (1..=own.len()).map(|back| (index + own.len() - back) % own.len()).find(|&at| own.event(at).takes);
        let since_write = write.map(|write| own.distance(write, index));
        let chance = match (own.event(index).takes, protocol, since_write) {
            (true, Protocol::Plain, Some(since)) => 1.0 - self.power(self.circle.free(since, false)),
            (true, Protocol::TakesOver, Some(since)) => {
                1.0 - self.power(self.circle.free(since, false)) - self.taken_over_before(own, index, since)
            }
            (false, Protocol::TakesOver, Some(since)) => {
                let quiet = since - since_event;
                1.0 - self.power(self.circle.free(since_event, true))
                    + self.power(self.circle.quiet_then_read_only(quiet, since_event))
                    - self.power(self.circle.free(since, false))
            }
            // A write is found before itself, a period ago, if nowhere else: without one the event is a read.
            (_, _, None) | (false, Protocol::Plain, _) => 1.0 - self.power(self.circle.free(since_event, true)),
        };
        chance.clamp(0.0, 1.0)
    }

    /// The chance that all others do what one of them does with that chance.
    fn power(&self, chance: f64) -> f64 {
        chance.powi(self.count as i32)
    }

    /// The chance that one of the core's reads since its last write, `since_write` ago, took the line over from another
    /// core, and that nothing happened from there to the event.
    fn taken_over_before(&self, own: &Circle<'_>, index: usize, since_write: f64) -> f64 {
        let mut chance = 0.0;
        for back in 1..own.len() {
            let read = (index + own.len() - back) % own.len();
            let since_read = own.distance(read, index);
            if since_read >= since_write {
                break;
            }
            let before = (read + own.len() - 1) % own.len();
            chance += self.last_written_within(since_read, since_read + own.distance(before, read));
        }
        chance
    }

    /// The chance that one of the others wrote between `far` and `near` ago, wrote nothing since, touched nothing in the last
    /// `near`, and that no third core touched the line since that write.
    fn last_written_within(&self, near: f64, far: f64) -> f64 {
        let mut chance = 0.0;
        for write in (0..self.circle.len()).filter(|&index| self.circle.event(index).takes) {
            // How long ago that write may have been: from `near` on, but for where a later event of its core forbids it.
            let mut from = near;
            let mut until = far;
            for (distance, event) in self.circle.after(write) {
                if event.takes {
                    until = until.min(distance);
                    break;
                }
                if distance < until {
                    chance += self.third_cores_quiet(from, distance.min(until));
                    from = from.max(distance + near);
                }
            }
            chance += self.third_cores_quiet(from, until);
        }
        chance * f64::from(self.count)
    }

    /// The integral, over intervals that are between `from` and `until` long, of the chance that no third core has an event
    /// in one.
    fn third_cores_quiet(&self, from: f64, until: f64) -> f64 {
        if until <= from {
            return 0.0;
        }
        // The chance of one core is linear between the distances of its events, and a power of it has a plain integral.
        let knots = self.circle.gaps().iter().copied().filter(|gap| from < *gap && *gap < until);
        let (mut start, mut high, mut sum) = (from, self.circle.free(from, false), 0.0);
        for end in knots.chain([until]) {
            let low = self.circle.free(end, false);
            sum += (end - start) * mean_power(high, low, self.count - 1);
            (start, high) = (end, low);
        }
        sum
    }
}

/// The mean of xⁿ for x from one number to another.
fn mean_power(one: f64, other: f64, exponent: u32) -> f64 {
    let exponent = exponent as i32;
    if (one - other).abs() < 1e-6 {
        return ((one + other) / 2.0).powi(exponent);
    }
    (one.powi(exponent + 1) - other.powi(exponent + 1)) / (f64::from(exponent + 1) * (one - other))
}
