//! Where choices come from: a seed, or bytes that somebody else has chosen, such as a fuzzer.

/// Where the choices are.
#[derive(Clone, Debug)]
enum Source {
    /// Splitmix64: good enough, small, and the same everywhere.
    Seed(u64),
    /// Bytes that are left.
    Bytes(Vec<u8>),
}

/// Choices, and the paths that were drawn last.
#[derive(Clone, Debug)]
pub struct Random {
    source: Source,
    recent: Vec<String>,
}

/// So many of the last paths are drawn again.
const RECENT_PATHS: usize = 5;
/// Longer ones are not, so that paths grow deep by being drawn again and again, but not without end.
const RECENT_BYTES: usize = 600;

impl Random {
    /// All choices that a seed stands for.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random { source: Source::Seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), recent: Vec::new() }
    }

    /// The choices that these bytes stand for: one each, two for more than 256 possibilities; the first of all without.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Random {
        Random { source: Source::Bytes(bytes.iter().rev().copied().collect()), recent: Vec::new() }
    }

    /// Whether there are no more bytes.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(&self.source, Source::Bytes(bytes) if bytes.is_empty())
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        match &mut self.source {
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut word = *state;
                word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((word ^ (word >> 31)) % limit as u64) as usize
            }
            Source::Bytes(bytes) => {
                let low = bytes.pop().map_or(0, usize::from);
                let high = if limit > 256 { bytes.pop().map_or(0, usize::from) } else { 0 };
                (high << 8 | low) % limit
            }
        }
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn name(&mut self, up: bool) -> String {
        match self.below(60) {
            0 => ".".into(),
            1 | 2 if up => "..".into(),
            3 => "x".repeat(255),
            4 => "x".repeat(256),
            number => format!("n{}", number % 4),
        }
    }

    /// A path: two in five times one of those that were drawn last, or one beside or below it. What matters mostly takes
    /// two calls on one thing: that one of two links is renamed to the other was found after 313,000 calls without this.
    pub fn path(&mut self, up: bool) -> String {
        let path = if self.recent.is_empty() || self.below(5) >= 2 { self.new_path(up) } else { self.known_path(up) };
        if (1..=RECENT_BYTES).contains(&path.len()) && !self.recent.contains(&path) {
            if self.recent.len() == RECENT_PATHS {
                self.recent.remove(0);
            }
            self.recent.push(path.clone());
        }
        path
    }

    fn known_path(&mut self, up: bool) -> String {
        let known = self.below(self.recent.len());
        let known = self.recent[known].clone();
        match self.below(8) {
            0 => format!("{known}/{}", self.name(up)),
            1 => match known.rsplit_once('/') {
                Some((directory, _)) => format!("{directory}/{}", self.name(up)),
                None => self.name(up),
            },
            _ => known,
        }
    }

    fn new_path(&mut self, up: bool) -> String {
        let components = [1, 1, 1, 1, 2, 2, 3][self.below(7)];
        let components: Vec<String> = (0..components).map(|_| self.name(up)).collect();
        match self.below(40) {
            0 => String::new(),
            1 => "x/".repeat(2047),
            2 => "x/".repeat(2048),
            3 if up => "/".into(),
            4 | 5 if up => format!("/{}", components.join("/")),
            6..=8 => format!("{}/", components.join("/")),
            9 => components.join("//"),
            _ => components.join("/"),
        }
    }
}
