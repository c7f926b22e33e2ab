//! What a transaction has made of a file's data: bytes by ranges, over what the base has.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// What had become of a range of a file before a change.
#[derive(Debug)]
pub(crate) struct Before {
    runs: Vec<(u64, Vec<u8>)>,
    cut_to: Option<u64>,
    size: OwnSize,
}

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
    pub(crate) fn writes(&self) -> impl Iterator<Item = (u64, &[u8])> + use<'_> {
        self.written.iter().map(|(offset, bytes)| (*offset, &bytes[..]))
    }

    /// Lets the file have bytes; what there was before them, if that is wanted.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], is_wanted: bool) -> Before {
        let end = offset + bytes.len() as u64;
        let mut before = Before { runs: Vec::new(), cut_to: self.cut_to, size: self.size };
        self.put(offset, bytes, is_wanted.then_some(&mut before.runs));
        self.size = match self.size {
            OwnSize::Same => OwnSize::Raised(end),
            OwnSize::Raised(size) => OwnSize::Raised(size.max(end)),
            OwnSize::Exact(size) => OwnSize::Exact(size.max(end)),
        };
        before
    }

    pub(crate) fn resize(&mut self, size: u64) -> Before {
        let before = Before { runs: self.take(size..u64::MAX), cut_to: self.cut_to, size: self.size };
        self.cut_to = Some(self.cut_to.map_or(size, |cut| cut.min(size)));
        self.size = OwnSize::Exact(size);
        before
    }

    /// Lets a range be what it was before a change.
    pub(crate) fn restore(&mut self, range: Range<u64>, Before { runs, cut_to, size }: Before) {
        (self.cut_to, self.size) = (cut_to, size);
        let is_whole = |(start, run): &(u64, Vec<u8>)| *start == range.start && start + run.len() as u64 == range.end;
        if !matches!(&runs[..], [run] if is_whole(run)) {
            self.take(range);
        }
        runs.into_iter().for_each(|(offset, run)| self.put(offset, &run, None));
    }

    /// Puts bytes into a range, and what was there into a list, if there is one.
    fn put(&mut self, offset: u64, bytes: &[u8], before: Option<&mut Vec<(u64, Vec<u8>)>>) {
        let end = offset + bytes.len() as u64;
        let around = self.written.range_mut(..=offset).next_back();
        if let Some((start, run)) = around.filter(|(start, run)| **start + run.len() as u64 >= end) {
            // Within a run, however long that is.
            let place = &mut run[(offset - start) as usize..(end - start) as usize];
            if let Some(before) = before {
                before.push((offset, place.to_vec()));
            }
            place.copy_from_slice(bytes);
            return;
        }
        let taken = self.take(offset..end);
        if let Some(before) = before {
            *before = taken;
        }
        // What goes on where the last write ended is one run with it.
        let last = self.written.range_mut(..offset).next_back();
        match last.filter(|(start, run)| **start + run.len() as u64 == offset) {
            Some((_, run)) => run.extend_from_slice(bytes),
            None => drop(self.written.insert(offset, bytes.to_vec())),
        }
    }

    /// Takes out what was written in a range.
    fn take(&mut self, range: Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut taken = Vec::new();
        let before = self.written.range(..range.start).next_back().map(|(start, _)| *start);
        let first = before.unwrap_or(range.start);
        let touched: Vec<u64> = self.written.range(first..range.end).map(|(start, _)| *start).collect();
        for start in touched {
            let end = start + self.written[&start].len() as u64;
            if end <= range.start {
                continue;
            }
            let run = self.written.get_mut(&start).expect("found above");
            // What stays before the range stays where it is.
            let mut run = if start < range.start {
                run.split_off((range.start - start) as usize)
            } else {
                self.written.remove(&start).expect("found above")
            };
            let start = start.max(range.start);
            if end > range.end {
                self.written.insert(range.end, run.split_off((range.end - start) as usize));
            }
            taken.push((start, run));
        }
        taken
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::{OwnData, Part};

    const SIZE: u64 = 40;

    /// What each byte is, the sizes that are known, and how many runs there are at most.
    fn seen(data: &OwnData) -> (Vec<Option<u8>>, Option<u64>, u64, Option<u64>) {
        let mut bytes = Vec::new();
        for part in data.parts(0..SIZE) {
            match part {
                Part::Own(run) => bytes.extend(run.iter().map(|byte| Some(*byte))),
                Part::Zero(count) => bytes.extend((0..count).map(|_| Some(0))),
                Part::Base(range) => bytes.extend(range.map(|_| None)),
            }
        }
        (bytes, data.exact_size(), data.least_size(), data.cut_to)
    }

    /// Writes and cuts at drawn places: each is undone, the last one first, and leaves what there was before.
    #[test]
    fn what_is_undone_leaves_what_was_before() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let (mut data, mut undo) = (OwnData::default(), Vec::new());
            for step in 1..=1 + draw(12) {
                let (before, offset) = (seen(&data), draw(SIZE));
                let (range, back) = if draw(4) == 0 {
                    (offset..u64::MAX, data.resize(offset))
                } else {
                    let end = offset + 1 + draw(SIZE - offset);
                    (offset..end, data.write(offset, &vec![step as u8; (end - offset) as usize], true))
                };
                let again = seen(&data);
                let is_written = |place: usize| range.end == u64::MAX || again.0[place] == Some(step as u8);
                assert!((range.start..range.end.min(SIZE)).all(|place| is_written(place as usize)));
                undo.push((before, range, back));
            }
            for (before, range, back) in undo.into_iter().rev() {
                data.restore(range, back);
                assert_eq!(seen(&data), before);
            }
            assert!(!data.is_changed());
        }
    }
}
