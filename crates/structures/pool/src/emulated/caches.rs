//! Memory, and a software cache for each domain that nothing keeps coherent.

use std::boxed::Box;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use sync::mutant::planted;

use crate::line::LINE_BYTES;

/// What was known to a domain when it wrote: by domain, the time that it had heard of.
pub(super) type Clock = Arc<[u64]>;

/// A version of a line that may be read at any time, as it is when its write has ended.
#[derive(Debug)]
pub(super) struct Version {
    /// Number of the write among all.
    pub id: u64,
    /// The writer's own number for it; 0: none.
    pub number: u64,
    /// Its bytes.
    pub bytes: [u8; LINE_BYTES],
    /// What the writer knew.
    pub clock: Clock,
}

/// A line with the version that its bytes, or some of them, are of.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub bytes: [u8; LINE_BYTES],
    pub version: Option<Arc<Version>>,
}

impl Default for Line {
    fn default() -> Line {
        Line { bytes: [0; LINE_BYTES], version: None }
    }
}

/// A line in a domain's cache.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    pub line: Line,
    /// Written by this domain, and not in memory.
    pub is_dirty: bool,
    /// A write-back was begun.
    pub is_leaving: bool,
}

const CHUNK: usize = 64;

/// The lines that one domain holds.
#[derive(Debug, Default)]
pub(super) struct Cache {
    chunks: Vec<Option<Box<[Option<Cached>; CHUNK]>>>,
    /// Lines whose write-back was begun.
    pub leaving: Vec<usize>,
}

impl Cache {
    pub fn get(&self, line: usize) -> Option<&Cached> {
        self.chunks[line / CHUNK].as_ref()?[line % CHUNK].as_ref()
    }

    pub fn get_mut(&mut self, line: usize) -> Option<&mut Cached> {
        self.chunks[line / CHUNK].as_mut()?[line % CHUNK].as_mut()
    }

    fn place(&mut self, line: usize) -> &mut Option<Cached> {
        &mut self.chunks[line / CHUNK].get_or_insert_with(|| Box::new([const { None }; CHUNK]))[line % CHUNK]
    }

    /// All lines that it holds, with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &Cached)> {
        let chunks = self.chunks.iter().enumerate().filter_map(|(number, chunk)| Some((number, chunk.as_ref()?)));
        chunks.flat_map(|(number, chunk)| {
            chunk.iter().enumerate().filter_map(move |(index, held)| Some((number * CHUNK + index, held.as_ref()?)))
        })
    }
}

/// Memory and caches.
#[derive(Debug)]
pub(super) struct Caches {
    pub memory: Vec<Line>,
    pub domains: Vec<Cache>,
}

impl Caches {
    pub fn new(line_count: usize, domain_count: usize) -> Caches {
        let chunk_count = line_count.div_ceil(CHUNK);
        let cache = || Cache { chunks: (0..chunk_count).map(|_| None).collect(), leaving: Vec::new() };
        Caches { memory: vec![Line::default(); line_count], domains: (0..domain_count).map(|_| cache()).collect() }
    }

    /// The domain's copy of the line, fetched if it has none.
    pub fn fetch(&mut self, domain: usize, line: usize) -> &mut Cached {
        let Caches { memory, domains } = self;
        domains[domain].place(line).get_or_insert_with(|| Cached {
            line: memory[line].clone(),
            is_dirty: false,
            is_leaving: false,
        })
    }

    /// Memory gets the line, if the domain holds it dirty: all of it, so that what others wrote there is undone.
    pub fn write_back(&mut self, domain: usize, line: usize) {
        if let Some(held) = self.domains[domain].get_mut(line) {
            if held.is_dirty && !planted("pool: an emulated write-back does not arrive") {
                self.memory[line] = held.line.clone();
            }
            held.is_dirty = false;
            held.is_leaving = false;
        }
    }

    /// A write-back of the line begins.
    pub fn begin_write_back(&mut self, domain: usize, line: usize) {
        let cache = &mut self.domains[domain];
        if let Some(held) = cache.get_mut(line).filter(|held| held.is_dirty && !held.is_leaving) {
            held.is_leaving = true;
            cache.leaving.push(line);
        }
    }

    /// Write-backs that were begun end.
    pub fn drain(&mut self, domain: usize) {
        for line in std::mem::take(&mut self.domains[domain].leaving) {
            if self.domains[domain].get(line).is_some_and(|held| held.is_leaving) {
                self.write_back(domain, line);
            }
        }
    }

    /// The domain holds the line no more; dirty bytes go to memory.
    pub fn drop_line(&mut self, domain: usize, line: usize) {
        self.write_back(domain, line);
        if !planted("pool: an emulated cache keeps what it is to forget") {
            *self.domains[domain].place(line) = None;
        }
    }

    /// The domain loses all that it holds, dirty bytes too.
    pub fn lose(&mut self, domain: usize) {
        let cache = &mut self.domains[domain];
        cache.leaving.clear();
        cache.chunks.iter_mut().for_each(|chunk| *chunk = None);
    }
}
