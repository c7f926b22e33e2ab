//! From accesses to bytes of an object's lines to events of the lines that a layout makes of them.
//!
//! A [`Course`] is what cores did to the lines of one object, in order. A layout says which of these accesses a new line
//! meets: those to some bytes of some lines ([`Part`]). An access that a layout cuts in two is an event of both lines.

use crate::event::Event;
use crate::protocol::{Protocol, transfers};

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Reads its bytes.
    Read = 0,
    /// Writes them.
    Write = 1,
    /// Takes the line as a write would, and changes nothing.
    PrefetchForWrite = 2,
    /// Reads and writes them by one instruction.
    Update = 3,
}

impl Kind {
    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<Kind> {
        [Kind::Read, Kind::Write, Kind::PrefetchForWrite, Kind::Update].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// An access of a core to bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// How many accesses of its core's call came before it.
    pub position: u32,
    /// What it does.
    pub kind: Kind,
    /// The bytes, bit *i* for byte *i* of the line.
    pub bytes: u64,
}

/// What cores did to the lines of one object in one window.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// For each core the accesses of its call; more than the position of any of them.
    pub periods: Vec<u32>,
    /// For each line, for each core, its accesses in order.
    pub lines: Vec<Vec<Vec<Access>>>,
}

/// What a new line has of an old one, of one core: the accesses that read one of the bytes `read`, or write one of the
/// bytes `written`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    /// Which of the course's lines.
    pub line: usize,
    /// Which of its cores.
    pub core: usize,
    /// Bytes whose reads come along.
    pub read: u64,
    /// Bytes whose writes come along.
    pub written: u64,
}

impl Course {
    /// The expected transfers, per period, of a line that is made of these parts: summed over all pairs of cores, each alone.
    pub fn transfers(&self, parts: &[Part], cores: u32, protocol: Protocol) -> f64 {
        let events: Vec<Vec<Event>> = (0..self.periods.len()).map(|core| self.events(parts, core)).collect();
        let mut sum = 0.0;
        for (index, one) in events.iter().enumerate() {
            for other in &events[index + 1..] {
                sum += transfers([one, other], cores, protocol);
            }
        }
        sum
    }

    /// The events of a core on a line that is made of these parts.
    fn events(&self, parts: &[Part], core: usize) -> Vec<Event> {
        let period = f64::from(self.periods[core].max(1));
        let own = parts.iter().filter(|part| part.core == core);
        let of_part = |part: &Part| {
            let (read, written) = (part.read, part.written);
            self.lines[part.line][core].iter().filter_map(move |access| {
                let reads = matches!(access.kind, Kind::Read | Kind::Update) && access.bytes & read != 0;
                let takes = access.kind != Kind::Read && access.bytes & written != 0;
                (reads || takes).then(|| Event { at: f64::from(access.position) / period, takes })
            })
        };
        let mut events: Vec<Event> = own.flat_map(of_part).collect();
        events.sort_by(|one, other| one.at.total_cmp(&other.at));
        // What the layout put together again was one access.
        events.dedup_by(|later, event| {
            let same = later.at == event.at;
            event.takes |= same && later.takes;
            same
        });
        events
    }
}
