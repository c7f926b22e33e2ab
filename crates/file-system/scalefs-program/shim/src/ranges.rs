//! The ranges of files that a process has locked, byte for byte; the kernel has them on fewer bytes ([`crate::locks`]).
//!
//! Where several of them are one range for the kernel, it has the strongest.

/// Ranges that a process can have locked at a time.
const MOST: usize = 512;
const BITS_PER_FILE: u32 = 16;
const BYTES_PER_FILE: u64 = 1 << BITS_PER_FILE;

/// What a lock keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// Nothing: there is no lock.
    Nothing,
    /// Locks for writing.
    Reading,
    /// All locks.
    Writing,
}

/// Bytes of a file, the last one included.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) inode: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) strength: Strength,
}

impl Range {
    const NONE: Range = Range { inode: 0, first: 0, last: 0, strength: Strength::Nothing };

    /// All bytes of a file, unlocked.
    pub(crate) const fn all(inode: u64) -> Range {
        Range { inode, first: 0, last: u64::MAX, strength: Strength::Nothing }
    }

    /// The file's first byte in the kernel's.
    pub(crate) fn base(&self) -> u64 {
        self.inode << BITS_PER_FILE
    }

    /// The first and the last byte that it is for the kernel, from the file's first one on.
    pub(crate) fn in_kernel(&self) -> (u64, u64) {
        if self.first >> BITS_PER_FILE == self.last >> BITS_PER_FILE {
            (self.first % BYTES_PER_FILE, self.last % BYTES_PER_FILE)
        } else {
            (0, BYTES_PER_FILE - 1)
        }
    }

    /// Whether two ranges of a file have a byte in common, or lie so near to each other.
    fn meets(&self, other: &Range, distance: u64) -> bool {
        self.first <= other.last.saturating_add(distance) && other.first <= self.last.saturating_add(distance)
    }

    /// What is left of it before and after another range of its file.
    fn without(&self, other: &Range) -> [Option<Range>; 2] {
        let before = (self.first < other.first).then(|| Range { last: self.last.min(other.first - 1), ..*self });
        let after = (self.last > other.last).then(|| Range { first: self.first.max(other.last + 1), ..*self });
        [before, after]
    }
}

/// What a process has locked. No byte is in two ranges.
pub(crate) struct Held {
    count: usize,
    ranges: [Range; MOST],
}

impl Held {
    pub(crate) const fn empty() -> Held {
        Held { count: 0, ranges: [Range::NONE; MOST] }
    }

    fn of(&self, inode: u64) -> impl Iterator<Item = &Range> {
        self.ranges[..self.count].iter().filter(move |range| range.inode == inode)
    }

    /// Whether there is room for one more change: it can divide a range, and make one.
    pub(crate) fn has_room(&self) -> bool {
        self.count + 2 <= MOST
    }

    /// How strong the kernel's lock must be for this one, with others that are the same bytes there.
    pub(crate) fn needed(&self, wanted: &Range) -> Strength {
        let (first, last) = wanted.in_kernel();
        let meets = |left: &Range| {
            let (from, to) = left.in_kernel();
            from <= last && first <= to
        };
        let others = self.of(wanted.inode).flat_map(|range| range.without(wanted)).flatten().filter(meets);
        others.map(|range| range.strength).fold(wanted.strength, Ord::max)
    }

    /// Locks or unlocks. There is room.
    pub(crate) fn set(&mut self, mut wanted: Range) {
        let mut index = 0;
        while index < self.count {
            let found = self.ranges[index];
            let is_one = found.strength == wanted.strength && found.meets(&wanted, 1);
            if found.inode != wanted.inode || !is_one && !found.meets(&wanted, 0) {
                index += 1;
                continue;
            }
            self.count -= 1;
            self.ranges[index] = self.ranges[self.count];
            if is_one {
                wanted.first = wanted.first.min(found.first);
                wanted.last = wanted.last.max(found.last);
                // It has become longer: what it meets now is looked for again.
                index = 0;
            } else {
                found.without(&wanted).into_iter().flatten().for_each(|part| self.add(part));
            }
        }
        if wanted.strength != Strength::Nothing {
            self.add(wanted);
        }
    }

    /// Forgets all of a file.
    pub(crate) fn forget(&mut self, inode: u64) {
        while let Some(index) = self.ranges[..self.count].iter().position(|range| range.inode == inode) {
            self.count -= 1;
            self.ranges[index] = self.ranges[self.count];
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    fn add(&mut self, range: Range) {
        self.ranges[self.count] = range;
        self.count += 1;
    }

    /// How strong the kernel's lock is to be from one of a file's bytes on, and up to which byte, `last` at most.
    pub(crate) fn strongest(&self, inode: u64, at: u64, last: u64) -> (Strength, u64) {
        self.of(inode).fold((Strength::Nothing, last), |(strength, end), range| match range.in_kernel() {
            (from, _) if from > at => (strength, end.min(from - 1)),
            (_, to) if to >= at => (strength.max(range.strength), end.min(to)),
            _ => (strength, end),
        })
    }
}
