//! Counts transfers as accesses come: private caches without end, MESI, and for each transfer who is to blame.
//!
//! **Idea.** For each line it is known which cores have it. A read by a core that has not is a *miss*; if another core has the
//! line, that one serves it, and it is a transfer (if none has, it comes from memory, and counts as none). A write wants the
//! line alone: a core that has it with others makes an *upgrade*, a core that has not a miss, and either *invalidates* what the
//! others have. That is all that MESI's four states say about who has to ask whom: modified and exclusive are a line that
//! one core has, shared is a line that several have or that one has left over, invalid is that a core has not got it. An access that
//! reads and writes atomically asks for the line alone at once.
//!
//! **Who is to blame.** A miss is there because another core wrote the line since this core had it: the one that wrote
//! it last. An upgrade is there because another core looked at it: the other that touched it last. So the two are kept
//! apart. What a place and a kind of work is says who counts ([`Touch`]).
//!
//! **Memory.** A line costs a record of 40 bytes, a bit for each core and its part of a table: at most a quarter of the number
//! of cores, and 64 bytes. Records lie in blocks of one size, so nothing is copied while they grow but the table.
//!
//! Nothing else of a machine is there: no sizes of caches, no prefetching, no places of memory, no time.

/// Bytes of a line.
pub const LINE_BYTES: u64 = 64;
/// Most cores.
pub const MOST_CORES: usize = 256;

/// Who touches a line: which core, at which place of the program, in which kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Touch {
    /// The place: a number that means something to the caller, below 2^32 - 1.
    pub place: u32,
    /// The core.
    pub core: u8,
    /// The kind of work.
    pub work: u8,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes, or reads and writes by one atomic instruction.
    Write,
}

/// How a line came to the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// The core had it not, another served it.
    Miss,
    /// The core had it, and others had to give it up.
    Upgrade,
}

/// One transfer of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// How it came.
    pub way: Way,
    /// How many cores lost it.
    pub invalidated: u32,
    /// Who is to blame.
    pub cause: Touch,
}

/// No touch yet.
const NOBODY: Touch = Touch { place: u32::MAX, core: 0, work: 0 };

/// A line, but for who has it.
#[derive(Debug, Clone, Copy)]
struct Line {
    number: u64,
    written: Touch,
    touched: Touch,
    /// The last touch by another core than that of `touched`.
    touched_before: Touch,
    /// See [`Caches::transfers_by_line`].
    transfers: u32,
}

/// Lines in a block of records.
const BLOCK: usize = 1 << 10;

struct Block {
    lines: Vec<Line>,
    /// Bits of who has each of them, `words` words a line.
    holders: Vec<u64>,
}

/// All cores' caches.
pub struct Caches {
    /// Words of a line's bits.
    words: usize,
    blocks: Vec<Block>,
    line_count: usize,
    /// Numbers of records, one more, by hash; 0 is free.
    table: Vec<u32>,
    /// The record that was asked for last by a hash: most accesses are to lines that were accessed just before.
    recent: Box<[u32; RECENT]>,
    /// Whether lines count their transfers.
    counts: bool,
}

const RECENT: usize = 1 << 10;
const SMALLEST_TABLE: usize = 1 << 10;

impl Caches {
    /// Empty caches of this many cores: 1 to [`MOST_CORES`].
    ///
    /// # Panics
    /// With none, or more.
    pub fn new(cores: usize) -> Self {
        assert!((1..=MOST_CORES).contains(&cores), "1 to {MOST_CORES} cores");
        Self {
            words: cores.div_ceil(64),
            blocks: Vec::new(),
            line_count: 0,
            table: vec![0; SMALLEST_TABLE],
            recent: Box::new([0; RECENT]),
            counts: false,
        }
    }

    /// From now on lines count their transfers.
    pub fn count_by_line(&mut self) {
        self.counts = true;
    }

    /// How many lines were touched.
    pub fn line_count(&self) -> usize {
        self.line_count
    }

    /// Bytes of memory that the lines take, with what is kept free for more of them.
    pub fn memory_bytes(&self) -> usize {
        let of_block = |block: &Block| block.lines.capacity() * size_of::<Line>() + block.holders.capacity() * 8;
        self.blocks.iter().map(of_block).sum::<usize>() + self.table.len() * 4
    }

    /// For each line that moved while lines counted: its number, and how often it did; in no order.
    pub fn transfers_by_line(&self) -> impl Iterator<Item = (u64, u32)> {
        let lines = self.blocks.iter().flat_map(|block| &block.lines);
        lines.filter(|line| line.transfers > 0).map(|line| (line.number, line.transfers))
    }

    /// An access to a line; tells whether it was a transfer.
    pub fn access(&mut self, line: u64, access: Access, who: Touch) -> Option<Transfer> {
        let index = self.find(line);
        let block = &mut self.blocks[index / BLOCK];
        let record = &mut block.lines[index % BLOCK];
        let start = index % BLOCK * self.words;
        let holders = &mut block.holders[start..start + self.words];
        let (word, bit) = (usize::from(who.core) / 64, 1 << (who.core % 64));
        let has = holders[word] & bit != 0;
        if has && access == Access::Read {
            record.touch(who);
            return None;
        }
        let others = holders.iter().map(|word| word.count_ones()).sum::<u32>() - u32::from(has);
        let way = if has { Way::Upgrade } else { Way::Miss };
        let transfer = (others > 0).then(|| Transfer {
            way,
            invalidated: if access == Access::Write { others } else { 0 },
            cause: record.cause(way, who.core),
        });
        if access == Access::Write {
            holders.fill(0);
            record.written = who;
        }
        holders[word] |= bit;
        record.touch(who);
        if self.counts && transfer.is_some() {
            record.transfers += 1;
        }
        transfer
    }

    fn line(&self, index: usize) -> &Line {
        &self.blocks[index / BLOCK].lines[index % BLOCK]
    }

    /// The record of a line, made if there is none.
    fn find(&mut self, line: u64) -> usize {
        let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let recent = (hash >> 54) as usize;
        let index = self.recent[recent] as usize;
        if index < self.line_count && self.line(index).number == line {
            return index;
        }
        let index = self.look_up(line, hash);
        self.recent[recent] = index as u32;
        index
    }

    fn look_up(&mut self, line: u64, hash: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = (hash >> 20) as usize & mask;
        while self.table[slot] != 0 {
            let index = self.table[slot] as usize - 1;
            if self.line(index).number == line {
                return index;
            }
            slot = (slot + 1) & mask;
        }
        let index = self.line_count;
        if index.is_multiple_of(BLOCK) {
            let (lines, holders) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK * self.words));
            self.blocks.push(Block { lines, holders });
        }
        let block = &mut self.blocks[index / BLOCK];
        block.lines.push(Line { number: line, written: NOBODY, touched: NOBODY, touched_before: NOBODY, transfers: 0 });
        block.holders.resize(block.lines.len() * self.words, 0);
        self.line_count += 1;
        self.table[slot] = u32::try_from(self.line_count).expect("fewer than 2^32 lines");
        if self.line_count * 4 > self.table.len() * 3 {
            self.grow();
        }
        index
    }

    fn grow(&mut self) {
        let mut table = vec![0; self.table.len() * 2];
        let mask = table.len() - 1;
        for index in 0..self.line_count {
            let hash = self.line(index).number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut slot = (hash >> 20) as usize & mask;
            while table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            table[slot] = index as u32 + 1;
        }
        self.table = table;
    }
}

impl Line {
    fn touch(&mut self, who: Touch) {
        if self.touched.core != who.core {
            self.touched_before = self.touched;
        }
        self.touched = who;
    }

    /// Who is to blame that the line comes to a core so; another core has it.
    fn cause(&self, way: Way, core: u8) -> Touch {
        let other = if self.touched.core == core { self.touched_before } else { self.touched };
        // A core that never had the line misses it though no one wrote it since.
        let wrote = self.written != NOBODY && self.written.core != core;
        if way == Way::Miss && wrote { self.written } else { other }
    }
}
