//! What happens when a window closes: from the logs of all virtual CPUs to one record of the trace.
//!
//! Three passes over the logs, which hold a few thousand accesses:
//! 1. every access finds its line in a hash table, and the line notes which cores read and wrote it, per category;
//! 2. every line that two cores touched, one of them writing, is judged: it stays, or the first rule whose accesses it
//!    needs is counted. Most windows touch a thousand lines and keep five;
//! 3. the accesses to the lines that stay are written, each distinct one once.
//!
//! The hash table is never cleared: a slot belongs to the present window if its stamp does. It is as small as the windows
//! allow, since a window of a thousand lines that are spread over megabytes waits for memory a thousand times.
//!
//! **Where lines begin.** A slab whose objects are no whole number of lines long puts each at another distance from the
//! line's start, so that which of its fields share a line depends on the place that the allocator had free. A verdict must
//! not: in such objects lines are counted from the object's start, as the compiler and `pahole` see them. If the first
//! pass finds that two cores came close to each other in one, it is made again for the lines that such objects reach into.
//!
//! **Neighbours**, where they are asked for: two lines of an aligned pair stay if neither does by itself and two cores touch
//! them between them, one of them writing. Lines that are counted from an object's start have no neighbour: which line lies
//! next to which is up to the allocator there.

use std::ops::Range;

use mtrace::encode::{self, WindowSummary, WindowWriter};
use mtrace::record::{Access, MAX_ACCESSES, MAX_CAPTURES, MAX_CORES, Moments};
use mtrace::rules::RULE_COUNT;
use mtrace::{LINE_BYTES, OBJECT_ALIGNMENT_BYTES, PAIR_BYTES};

use crate::trace_stacks::TraceStacks;
use crate::vcpu::{CATEGORY_COUNT, COUNTS, Entry, Vcpu};

/// Lines that one window may touch.
const LINE_CAPACITY: usize = 1 << 18;
/// Slots that the table of lines has at least; most windows need no more.
const LEAST_SLOTS: usize = 1 << 12;

/// Addresses of the kernel that are another name of physical memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectMap {
    /// Where physical address 0 appears; 0 if unknown.
    pub base: u64,
    /// Bytes of physical memory, with gaps.
    pub bytes: u64,
}

impl DirectMap {
    /// The physical address of a kernel address in the direct map.
    #[inline]
    fn physical(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.bytes).then_some(offset)
    }
}

/// What was recorded in a window.
pub struct Logs<'a, 'b> {
    /// The virtual CPUs with their cores' numbers.
    pub vcpus: &'a mut [(u8, &'b mut Vcpu)],
    /// One more than the highest core there is.
    pub core_count: usize,
    /// Where physical memory appears in the kernel's addresses.
    pub direct_map: DirectMap,
}

/// Looks at the object at an address.
pub trait Capturer {
    /// Appends the capture of the object at `address` and gives the addresses that it speaks for.
    fn capture(&mut self, address: u64, out: &mut Vec<u8>) -> Range<u64>;

    /// The addresses of the object at `address`, if its allocator does not place objects by lines.
    fn object_off_lines(&mut self, address: u64) -> Option<Range<u64>>;
}

/// One line of the present window.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Virtual address, that of the kernel if both sides use one.
    address: u64,
    key: u64,
    /// What identifies it among the window's lines.
    slot_key: u64,
    /// Cores that read or wrote it, in whatever category, and those that wrote it.
    touched: u64,
    written: u64,
    readers: [u64; CATEGORY_COUNT],
    writers: [u64; CATEGORY_COUNT],
    /// Position among the lines that stay.
    rank: u32,
}

/// The line conflicts no more, or never did.
const DROPPED: u32 = u32::MAX;

impl Line {
    /// A line that no one has touched yet.
    fn untouched(piece: &Piece) -> Self {
        Self {
            address: piece.address,
            key: piece.key,
            slot_key: piece.slot_key,
            touched: 0,
            written: 0,
            readers: [0; CATEGORY_COUNT],
            writers: [0; CATEGORY_COUNT],
            rank: DROPPED,
        }
    }

    /// A core accesses it.
    #[inline]
    fn touch(&mut self, core_bit: u64, entry: &Entry, address: u64) {
        let cores = if entry.kind.takes_line() { &mut self.writers } else { &mut self.readers };
        cores[usize::from(entry.category)] |= core_bit;
        self.touched |= core_bit;
        self.written |= if entry.kind.takes_line() { core_bit } else { 0 };
        // The higher half is the kernel's: its address says more than a program's.
        self.address = self.address.max(address);
    }

    /// Forgets who touched it.
    fn forget(&mut self) {
        (self.touched, self.written) = (0, 0);
        self.readers = [0; CATEGORY_COUNT];
        self.writers = [0; CATEGORY_COUNT];
    }

    fn conflicts_without(&self, categories: &[bool; CATEGORY_COUNT]) -> bool {
        let (mut touched, mut written) = (0, 0);
        for (category, &dropped) in categories.iter().enumerate() {
            if !dropped {
                touched |= self.readers[category] | self.writers[category];
                written |= self.writers[category];
            }
        }
        // A set with a single member has nothing left without its lowest member.
        written != 0 && touched & (touched - 1) != 0
    }

    /// Whether two cores touched these two lines, one each, and one of them wrote, by accesses that count.
    fn conflicts_beside(&self, other: &Line) -> bool {
        let own = usize::from(COUNTS);
        let cross = |one: u64, two: u64| one != 0 && two != 0 && !(one == two && one.is_power_of_two());
        cross(self.writers[own], other.readers[own] | other.writers[own])
            || cross(self.readers[own], other.writers[own])
    }

    /// `None` if the line stays a conflict under all rules; else the rule that removed it, or `Some(None)` if there
    /// never was a conflict.
    fn judge(&self) -> Option<Option<usize>> {
        if self.written == 0 || self.touched.is_power_of_two() {
            return Some(None);
        }
        let mut dropped = [false; CATEGORY_COUNT];
        for rule in 0..RULE_COUNT {
            dropped[1 + rule] = true;
            if !self.conflicts_without(&dropped) {
                return Some(Some(rule));
            }
        }
        None
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    stamp: u32,
    line: u32,
}

/// A piece of an access that lies within one line.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// What identifies the line among the window's lines.
    slot_key: u64,
    /// The line's start: what identifies the memory there, and its virtual address.
    key: u64,
    address: u64,
    offset: u8,
    size_bytes: u8,
}

/// Objects in which lines are counted from the start, by what identifies their memory; sorted, apart.
type Objects = Vec<Range<u64>>;

/// The line that holds the byte at `key`: what identifies it, its start, and where the bytes after `key` leave it.
#[inline]
fn line_at(objects: &Objects, key: u64) -> (u64, Range<u64>) {
    let start = key & !(LINE_BYTES - 1);
    let mut end = start.saturating_add(LINE_BYTES);
    if !objects.is_empty() {
        let (before, behind) = objects.split_at(objects.partition_point(|object| object.start <= key));
        if let Some(object) = before.last().filter(|object| key < object.end) {
            let start = key - (key - object.start) % LINE_BYTES;
            // Odd, so that the lines that it overlaps are others.
            return (start | 1, start..object.end.min(start + LINE_BYTES));
        }
        end = behind.first().map_or(end, |object| object.start.min(end));
    }
    (start, start..end)
}

/// The pieces of an access, mostly one.
fn pieces(entry: &Entry, direct_map: DirectMap, objects: &Objects) -> impl Iterator<Item = Piece> {
    let key = direct_map.physical(entry.key).unwrap_or(entry.key);
    let mut done = 0;
    std::iter::from_fn(move || {
        let left = u64::from(entry.size_bytes) - done;
        if left == 0 {
            return None;
        }
        let at = key.wrapping_add(done);
        let (slot_key, line) = line_at(objects, at);
        let offset = at - line.start;
        let size_bytes = left.min(line.end - at).max(1);
        let address = entry.address.wrapping_add(done).wrapping_sub(offset);
        done += size_bytes;
        Some(Piece { slot_key, key: line.start, address, offset: offset as u8, size_bytes: size_bytes as u8 })
    })
}

/// An access that will be written.
#[derive(Debug, Clone, Copy)]
struct Kept {
    rank: u32,
    order: u32,
    made: Moments,
    access: Access,
}

/// The lines of one window.
struct Lines {
    /// A power of two of them, twice as many as there are lines or more.
    slots: Vec<Slot>,
    stamp: u32,
    all: Vec<Line>,
    /// The line that was asked for last, what identifies it and its index: mostly the next one, too.
    last: (u64, u32),
}

/// What identifies no line: neither a multiple of a line's size nor odd.
const NO_KEY: u64 = 2;

impl Lines {
    fn new() -> Self {
        Self {
            slots: vec![Slot::default(); LEAST_SLOTS],
            stamp: 0,
            all: Vec::with_capacity(LINE_CAPACITY),
            last: (NO_KEY, 0),
        }
    }

    /// Forgets the last window's lines, and makes the table smaller if that window was much larger than the one before it.
    fn clear(&mut self) {
        let wanted = (self.all.len() * 4).next_power_of_two().max(LEAST_SLOTS);
        self.all.clear();
        self.last = (NO_KEY, 0);
        if wanted * 4 <= self.slots.len() {
            self.slots = vec![Slot::default(); wanted];
            self.stamp = 0;
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.slots.fill(Slot::default());
            self.stamp = 1;
        }
    }

    /// The slot of a line, or the free one where it belongs.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = ((key / LINE_BYTES).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot].stamp == self.stamp && self.slots[slot].key != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The line that is identified by `key`, if it was touched.
    #[inline]
    fn find(&self, key: u64) -> Option<&Line> {
        let slot = &self.slots[self.slot(key)];
        (slot.stamp == self.stamp).then(|| &self.all[slot.line as usize])
    }

    /// The index of a piece's line, a new one if it was not touched before; `None` if there is no room.
    #[inline]
    fn index_of(&mut self, piece: &Piece) -> Option<u32> {
        if self.last.0 == piece.slot_key {
            return Some(self.last.1);
        }
        let slot = self.slots[self.slot(piece.slot_key)];
        let line = if slot.stamp == self.stamp { slot.line } else { self.add(piece)? };
        self.last = (piece.slot_key, line);
        Some(line)
    }

    fn add(&mut self, piece: &Piece) -> Option<u32> {
        if self.all.len() == LINE_CAPACITY {
            return None;
        }
        if self.all.len() * 2 == self.slots.len() {
            self.slots = vec![Slot::default(); self.slots.len() * 2];
            self.stamp = 1;
            for line in 0..self.all.len() {
                self.enter(line);
            }
        }
        self.all.push(Line::untouched(piece));
        self.enter(self.all.len() - 1);
        Some(self.all.len() as u32 - 1)
    }

    fn enter(&mut self, line: usize) {
        let key = self.all[line].slot_key;
        let slot = self.slot(key);
        self.slots[slot] = Slot { key, stamp: self.stamp, line: line as u32 };
    }
}

/// Some of the lines, by index.
#[derive(Default)]
struct Marks(Vec<u64>);

impl Marks {
    fn clear(&mut self, line_count: usize) {
        self.0.clear();
        self.0.resize(line_count.div_ceil(64), 0);
    }

    fn set(&mut self, line: u32) {
        self.0[line as usize / 64] |= 1 << (line % 64);
    }

    #[inline]
    fn has(&self, line: u32) -> bool {
        self.0.get(line as usize / 64).is_some_and(|word| word >> (line % 64) & 1 != 0)
    }

    /// Whether an access whose line that is may be one to a marked line.
    #[inline]
    fn may_have(&self, line: u32) -> bool {
        line == SEVERAL || self.has(line)
    }
}

/// Stands for the line of an access that touches several, or found no room for one.
const SEVERAL: u32 = u32::MAX;

/// Buffers of the analysis, kept from window to window.
pub struct WindowAnalysis {
    /// Whether neighbouring lines count, too.
    neighbours: bool,
    lines: Lines,
    /// The line of each access, in the order of the logs.
    line_of: Vec<u32>,
    marks: Marks,
    staying: Vec<u32>,
    kept: Vec<Kept>,
    accesses: Vec<Access>,
    moments: Vec<Moments>,
    captures: Vec<u8>,
    captured: Vec<Range<u64>>,
    objects: Objects,
}

impl WindowAnalysis {
    /// Without any window yet; `neighbours` says whether neighbouring lines count, too.
    pub fn new(neighbours: bool) -> Self {
        Self {
            neighbours,
            lines: Lines::new(),
            line_of: Vec::new(),
            marks: Marks::default(),
            staying: Vec::new(),
            kept: Vec::new(),
            accesses: Vec::new(),
            moments: Vec::new(),
            captures: Vec::new(),
            captured: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Analyses the logs and appends the window's record (and new stack nodes) to `buffer`.
    pub fn close<C: Capturer>(
        &mut self,
        sequence: u64,
        logs: Logs<'_, '_>,
        stacks: &mut TraceStacks,
        mut capturer: Option<&mut C>,
        buffer: &mut Vec<u8>,
    ) {
        let Logs { vcpus, core_count, direct_map } = logs;
        self.objects.clear();
        let mut lost = self.find_lines(vcpus, direct_map);
        if let Some(capturer) = capturer.as_deref_mut() {
            self.find_objects(direct_map, capturer);
            lost += self.find_lines_of_objects(vcpus, direct_map);
        }
        let mut ignored_lines = [0; RULE_COUNT];
        self.staying.clear();
        for (index, line) in self.lines.all.iter_mut().enumerate() {
            line.rank = DROPPED;
            match line.judge() {
                None => self.staying.push(index as u32),
                Some(None) => {}
                Some(Some(rule)) => ignored_lines[rule] += 1,
            }
        }
        if self.neighbours {
            self.find_neighbours();
        }
        self.rank_lines();
        let node_at = stacks.begin_window(buffer);
        let logged_accesses = self.keep_accesses(vcpus, direct_map, stacks);
        stacks.write_new(node_at, buffer);

        let mut counted_accesses = vec![0; core_count];
        for (core, vcpu) in vcpus.iter() {
            counted_accesses[usize::from(*core)] = vcpu.counted;
            lost += vcpu.lost;
        }
        let summary = WindowSummary {
            sequence,
            lost_accesses: lost,
            counted_accesses: &counted_accesses,
            logged_accesses: &logged_accesses[..core_count],
            ignored_lines: &ignored_lines,
        };
        self.write(&summary, capturer, buffer);
    }

    /// First pass. Gives the number of pieces that found no room.
    fn find_lines(&mut self, vcpus: &[(u8, &mut Vcpu)], direct_map: DirectMap) -> u64 {
        self.lines.clear();
        self.line_of.clear();
        let mut lost = 0;
        for (core, vcpu) in vcpus {
            for entry in &vcpu.log {
                let line = touch(&mut self.lines, *core, pieces(entry, direct_map, &self.objects), entry, &mut lost);
                self.line_of.push(line);
            }
        }
        lost
    }

    /// The first pass once more, for lines that an object reaches into: who touched such a line is forgotten, and noted
    /// again with the objects in mind. That an access is noted twice at a line next to it does not matter.
    fn find_lines_of_objects(&mut self, vcpus: &[(u8, &mut Vcpu)], direct_map: DirectMap) -> u64 {
        if self.objects.is_empty() {
            return 0;
        }
        self.marks.clear(self.lines.all.len());
        for (index, line) in (0..).zip(&mut self.lines.all) {
            if reach_into(&self.objects, line.key..line.key.saturating_add(LINE_BYTES)) {
                line.forget();
                self.marks.set(index);
            }
        }
        let mut lost = 0;
        let entries = vcpus.iter().flat_map(|(core, vcpu)| vcpu.log.iter().map(move |entry| (*core, entry)));
        for ((core, entry), line) in entries.zip(&mut self.line_of) {
            if self.marks.may_have(*line) {
                *line = touch(&mut self.lines, core, pieces(entry, direct_map, &self.objects), entry, &mut lost);
            }
        }
        lost
    }

    /// The objects off lines in which two cores came so close that counting lines from their start may make or undo a
    /// conflict: on a line that one wrote, or on the ones next to it.
    fn find_objects<C: Capturer>(&mut self, direct_map: DirectMap, capturer: &mut C) {
        for line in &self.lines.all {
            // Objects are met by their address in the direct map, which shows physical memory.
            if line.key >= direct_map.bytes || line.written == 0 {
                continue;
            }
            let beside = [line.key.wrapping_sub(LINE_BYTES), line.key + LINE_BYTES];
            let touched = beside.into_iter().filter_map(|key| self.lines.find(key));
            if !touched.fold(line.touched, |cores, other| cores | other.touched).is_power_of_two() {
                add_objects(&mut self.objects, line.key, direct_map, capturer);
            }
        }
        self.objects.sort_unstable_by_key(|object| object.start);
        self.objects.dedup();
    }

    /// Lets pairs of lines stay neither of which does by itself.
    fn find_neighbours(&mut self) {
        self.marks.clear(self.lines.all.len());
        self.staying.iter().for_each(|line| self.marks.set(*line));
        for (index, line) in self.lines.all.iter().enumerate() {
            // The key of a line of an object off lines is odd, and so is never that of the line next to another.
            if !line.slot_key.is_multiple_of(PAIR_BYTES) || self.marks.has(index as u32) {
                continue;
            }
            let slot = &self.lines.slots[self.lines.slot(line.slot_key + LINE_BYTES)];
            if slot.stamp != self.lines.stamp || self.marks.has(slot.line) {
                continue;
            }
            if line.conflicts_beside(&self.lines.all[slot.line as usize]) {
                self.staying.extend([index as u32, slot.line]);
            }
        }
    }

    /// Orders the lines that stay by address.
    fn rank_lines(&mut self) {
        let lines = &mut self.lines.all;
        self.staying.sort_unstable_by_key(|&index| {
            let line = &lines[index as usize];
            (line.address, physical(line))
        });
        for (rank, &index) in self.staying.iter().enumerate() {
            lines[index as usize].rank = rank as u32;
        }
    }

    /// Third pass: collects the distinct accesses to the lines that stay, by line and then first occurrence.
    /// Gives for each core how many accesses of its log count; none of a window without such lines.
    fn keep_accesses(
        &mut self,
        vcpus: &mut [(u8, &mut Vcpu)],
        direct_map: DirectMap,
        stacks: &mut TraceStacks,
    ) -> [u32; MAX_CORES] {
        self.kept.clear();
        let mut logged_accesses = [0; MAX_CORES];
        if self.staying.is_empty() {
            return logged_accesses;
        }
        self.marks.clear(self.lines.all.len());
        self.staying.iter().for_each(|line| self.marks.set(*line));
        let mut line_of = self.line_of.iter();
        for (core, vcpu) in vcpus {
            let Vcpu { log, tree, .. } = &mut **vcpu;
            let mut next = 0;
            for (entry, line) in log.iter().zip(&mut line_of).filter(|(entry, _)| entry.category == COUNTS) {
                let at = next;
                next += 1;
                if !self.marks.may_have(*line) {
                    continue;
                }
                for piece in pieces(entry, direct_map, &self.objects) {
                    let Some(rank) = self.lines.find(piece.slot_key).map(|line| line.rank) else { continue };
                    if rank == DROPPED {
                        continue;
                    }
                    let access = Access {
                        instruction: entry.site.address(),
                        stack: stacks.number(tree, entry.node),
                        core: *core,
                        offset: piece.offset,
                        size_bytes: piece.size_bytes,
                        kind: entry.kind,
                    };
                    let made = Moments { first: at, last: at };
                    self.kept.push(Kept { rank, order: self.kept.len() as u32, made, access });
                }
            }
            logged_accesses[usize::from(*core)] = next;
        }
        let identity = |kept: &Kept| {
            let access = &kept.access;
            let bytes = u32::from_le_bytes([access.core, access.offset, access.size_bytes, access.kind as u8]);
            (kept.rank, access.instruction, access.stack, bytes)
        };
        self.kept.sort_unstable_by_key(|kept| (identity(kept), kept.order));
        self.kept.dedup_by(|later, kept| {
            let same = identity(later) == identity(kept);
            if same {
                kept.made.last = later.made.last;
            }
            same
        });
        self.kept.sort_unstable_by_key(|kept| (kept.rank, kept.order));
        logged_accesses
    }

    fn write<C: Capturer>(&mut self, summary: &WindowSummary<'_>, mut capturer: Option<&mut C>, buffer: &mut Vec<u8>) {
        let start = buffer.len();
        let mut writer = WindowWriter::begin(buffer, summary);
        let mut unwritten = 0;
        let mut rest = &self.kept[..];
        for (rank, &index) in self.staying.iter().enumerate() {
            let line = &self.lines.all[index as usize];
            let count = rest.partition_point(|kept| kept.rank as usize <= rank);
            let (own, behind) = rest.split_at(count);
            rest = behind;
            self.accesses.clear();
            self.accesses.extend(own.iter().take(MAX_ACCESSES).map(|kept| kept.access));
            self.moments.clear();
            self.moments.extend(own.iter().take(MAX_ACCESSES).map(|kept| kept.made));
            unwritten += own.len() - self.accesses.len();
            self.captures.clear();
            self.captured.clear();
            if let Some(capturer) = capturer.as_deref_mut() {
                capture_objects(capturer, line.address, &self.accesses, &mut self.captures, &mut self.captured);
            }
            if writer.has_room(self.captures.len(), self.accesses.len()) {
                let Self { captured, captures, accesses, moments, .. } = self;
                writer.line(line.address, physical(line), captured.len(), captures, accesses, moments);
            } else {
                unwritten += self.accesses.len();
            }
        }
        writer.finish();
        if unwritten > 0 {
            // Too much for one record: say so instead, in a record without lines.
            buffer.truncate(start);
            let lost_accesses = summary.lost_accesses + unwritten as u64;
            WindowWriter::begin(buffer, &WindowSummary { lost_accesses, ..*summary }).finish();
        }
    }
}

/// Notes an access at the lines of its pieces. Gives the line, or [`SEVERAL`]; counts the pieces that found no room.
#[inline]
fn touch(lines: &mut Lines, core: u8, pieces: impl Iterator<Item = Piece>, entry: &Entry, lost: &mut u64) -> u32 {
    let mut touched = None;
    for piece in pieces {
        let line = lines.index_of(&piece);
        match line {
            Some(line) => lines.all[line as usize].touch(1 << core, entry, piece.address),
            None => *lost += 1,
        }
        touched = Some(if touched.is_none() { line.unwrap_or(SEVERAL) } else { SEVERAL });
    }
    touched.unwrap_or(SEVERAL)
}

/// Whether an object has a byte in a range of what identifies memory.
#[inline]
fn reach_into(objects: &Objects, range: Range<u64>) -> bool {
    let behind = objects.partition_point(|object| object.end <= range.start);
    objects.get(behind).is_some_and(|object| object.start < range.end)
}

/// Adds the objects off lines that reach into the line at physical address `start`.
fn add_objects<C: Capturer>(objects: &mut Objects, start: u64, direct_map: DirectMap, capturer: &mut C) {
    let mut at = start;
    while at < start + LINE_BYTES {
        let Some(object) = capturer.object_off_lines(direct_map.base.wrapping_add(at)) else { return };
        let physical = object.start.wrapping_sub(direct_map.base)..object.end.wrapping_sub(direct_map.base);
        // What the guest's memory says is not believed where it makes no sense.
        let aligned = physical.start.is_multiple_of(OBJECT_ALIGNMENT_BYTES);
        if !aligned || !physical.contains(&at) || physical.end > direct_map.bytes {
            return;
        }
        at = physical.end;
        objects.push(physical);
    }
}

/// The physical address of a line that is identified by it.
fn physical(line: &Line) -> Option<u64> {
    // Kernel addresses, and those of a program in user mode, identify themselves.
    (line.key != line.address).then_some(line.key)
}

/// Captures each object of the line once, at the first byte of an access.
fn capture_objects<C: Capturer>(
    capturer: &mut C,
    line_address: u64,
    accesses: &[Access],
    captures: &mut Vec<u8>,
    captured: &mut Vec<Range<u64>>,
) {
    for access in accesses {
        let address = line_address + u64::from(access.offset);
        if captured.len() < MAX_CAPTURES && !captured.iter().any(|range| range.contains(&address)) {
            let range = capturer.capture(address, captures);
            captured.push(range);
        }
    }
}

/// Writes a window in which nothing was recorded.
pub fn write_empty(sequence: u64, buffer: &mut Vec<u8>) {
    let summary = WindowSummary {
        sequence,
        lost_accesses: 0,
        counted_accesses: &[],
        logged_accesses: &[],
        ignored_lines: &[0; RULE_COUNT],
    };
    encode::WindowWriter::begin(buffer, &summary).finish();
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
