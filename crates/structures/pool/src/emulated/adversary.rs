//! What caches do by themselves: from a seed, at any moment.

use super::caches::Caches;

/// What a cache can do without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A dirty line goes to memory early and stays.
    WriteBack {
        /// The domain whose cache does so.
        domain: usize,
        /// The line.
        line: usize,
    },
    /// A line makes room; a dirty one goes to memory.
    Evict {
        /// The domain whose cache does so.
        domain: usize,
        /// The line.
        line: usize,
    },
    /// A line is fetched ahead.
    Fetch {
        /// The domain whose cache does so.
        domain: usize,
        /// The line.
        line: usize,
    },
}

/// A generator of numbers that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of this seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }
}

/// It chooses from this number of lines that were touched last.
const RECENT: usize = 32;

/// Moves caches at random. Of four steps of domains, one is followed by a move.
#[derive(Debug)]
pub(super) struct Adversary {
    numbers: Numbers,
    recent: [usize; RECENT],
    touched: usize,
}

impl Adversary {
    pub fn new(seed: u64) -> Adversary {
        Adversary { numbers: Numbers::new(seed), recent: [0; RECENT], touched: 0 }
    }

    /// A domain has touched the line: it may be moved, or the next one be fetched ahead.
    pub fn after_step(&mut self, caches: &mut Caches, line: usize) {
        self.recent[self.touched % RECENT] = line;
        self.touched += 1;
        let drawn = self.numbers.draw();
        if drawn & 3 != 0 {
            return;
        }
        // Of a line that is just being read or written, parts are of different versions afterwards.
        let is_at_once = (drawn >> 48) & 1 == 0;
        let chosen = if is_at_once { line } else { self.recent[(drawn >> 8) as usize % self.touched.min(RECENT)] };
        let domain = (drawn >> 16) as usize % caches.domains.len();
        let next = (chosen + 1).min(caches.memory.len() - 1);
        make(
            caches,
            match (drawn >> 32) & 7 {
                0 | 1 => Move::WriteBack { domain, line: chosen },
                2..=4 => Move::Evict { domain, line: chosen },
                5 | 6 => Move::Fetch { domain, line: chosen },
                _ => Move::Fetch { domain, line: next },
            },
        );
    }
}

/// Makes a move; one that is not possible changes nothing.
pub(super) fn make(caches: &mut Caches, one: Move) {
    match one {
        Move::WriteBack { domain, line } => caches.write_back(domain, line),
        Move::Evict { domain, line } => caches.drop_line(domain, line),
        Move::Fetch { domain, line } => {
            caches.fetch(domain, line);
        }
    }
}
