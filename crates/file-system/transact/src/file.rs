//! What a transaction has made of a file's data: bytes by ranges, over what the base has.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// What has become of a file's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnData {
    /// Bytes that were written, by offset; neither overlapping nor empty.
    written: BTreeMap<u64, Vec<u8>>,
    /// The smallest size to which it was cut: the base's bytes from there on are gone.
    pub(crate) cut_to: Option<u64>,
    size: OwnSize,
}

/// What a transaction has made of a file's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OwnSize {
    #[default]
    Same,
    /// That of the base, and this at least.
    Raised(u64),
    Exact(u64),
}

/// A part of a file, in the order of offsets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'d> {
    /// Written by the transaction.
    Own(&'d [u8]),
    /// As the base has it.
    Base(Range<u64>),
    /// Behind where the file was cut, and not written since.
    Zero(u64),
}

impl OwnData {
    pub(crate) fn is_changed(&self) -> bool {
        !self.written.is_empty() || self.size != OwnSize::Same
    }

    /// The size, if the base need not be asked.
    pub(crate) fn exact_size(&self) -> Option<u64> {
        match self.size {
            OwnSize::Exact(size) => Some(size),
            OwnSize::Same | OwnSize::Raised(_) => None,
        }
    }

    /// The file is this long at least.
    pub(crate) fn least_size(&self) -> u64 {
        match self.size {
            OwnSize::Same => 0,
            OwnSize::Raised(size) | OwnSize::Exact(size) => size,
        }
    }

    /// Bytes that wait to be written.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.written.iter().map(|(offset, bytes)| (*offset, &bytes[..]))
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        self.forget(offset..end);
        // What goes on where the last write ended is one run with it.
        let before = self.written.range_mut(..offset).next_back();
        match before.filter(|(start, run)| **start + run.len() as u64 == offset) {
            Some((_, run)) => run.extend_from_slice(bytes),
            None => drop(self.written.insert(offset, bytes.to_vec())),
        }
        self.size = match self.size {
            OwnSize::Same => OwnSize::Raised(end),
            OwnSize::Raised(size) => OwnSize::Raised(size.max(end)),
            OwnSize::Exact(size) => OwnSize::Exact(size.max(end)),
        };
    }

    pub(crate) fn resize(&mut self, size: u64) {
        self.forget(size..u64::MAX);
        self.cut_to = Some(self.cut_to.map_or(size, |cut| cut.min(size)));
        self.size = OwnSize::Exact(size);
    }

    /// Forgets what was written in a range.
    fn forget(&mut self, range: Range<u64>) {
        let before = self.written.range(..range.start).next_back().map(|(start, _)| *start);
        let first = before.unwrap_or(range.start);
        let touched: Vec<u64> = self.written.range(first..range.end).map(|(start, _)| *start).collect();
        for start in touched {
            let run = &self.written[&start];
            let end = start + run.len() as u64;
            if end <= range.start {
                continue;
            }
            let mut run = self.written.remove(&start).expect("found above");
            if end > range.end {
                self.written.insert(range.end, run.split_off((range.end - start) as usize));
            }
            if start < range.start {
                run.truncate((range.start - start) as usize);
                self.written.insert(start, run);
            }
        }
    }

    /// The parts of a range.
    pub(crate) fn parts(&self, range: Range<u64>) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let mut position = range.start;
        let cut = self.cut_to.unwrap_or(u64::MAX);
        let gap = |parts: &mut Vec<Part<'_>>, from: u64, to: u64| {
            if from < to.min(cut) {
                parts.push(Part::Base(from..to.min(cut)));
            }
            if from.max(cut) < to {
                parts.push(Part::Zero(to - from.max(cut)));
            }
        };
        let first = self.written.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
        for (start, run) in self.written.range(first..range.end) {
            let end = start + run.len() as u64;
            if end <= position {
                continue;
            }
            gap(&mut parts, position, *start);
            let from = position.max(*start);
            let to = end.min(range.end);
            parts.push(Part::Own(&run[(from - start) as usize..(to - start) as usize]));
            position = to;
        }
        gap(&mut parts, position, range.end);
        parts
    }
}
