//! Where choices come from: a seed, or bytes that somebody else has chosen, such as a fuzzer.

/// Where the choices are.
#[derive(Clone, Debug)]
enum Source {
    /// Splitmix64: good enough, small, and the same everywhere.
    Seed(u64),
    /// Bytes that are left.
    Bytes(Vec<u8>),
}

/// Choices, the paths that were drawn last, and those at which something was last to be made.
#[derive(Clone, Debug)]
pub struct Random {
    source: Source,
    recent: Vec<String>,
    made: Vec<String>,
}

/// So many of the last paths are drawn again.
const RECENT_PATHS: usize = 5;
/// Longer ones are not, so that paths grow deep by being drawn again and again, but not without end.
const RECENT_BYTES: usize = 600;

impl Random {
    /// All choices that a seed stands for.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        // Mixed, so that no seed's choices are those of another from the second on, as they would be of a multiple of `STEP`.
        let state = mixed(seed.wrapping_add(0x2545_f491_4f6c_dd1d));
        Random { source: Source::Seed(state), recent: Vec::new(), made: Vec::new() }
    }

    /// The choices that these bytes stand for: one each, two for more than 256 possibilities; the first of all without.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Random {
        Random { source: Source::Bytes(bytes.iter().rev().copied().collect()), recent: Vec::new(), made: Vec::new() }
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
                *state = state.wrapping_add(STEP);
                (mixed(*state) % limit as u64) as usize
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

    /// A path: mostly one of those that were drawn last, or one at which something was to be made, or one beside, below or
    /// above it. What matters mostly takes two calls on one thing: that one of two links is renamed to the other was found
    /// after 313,000 calls without this.
    pub fn path(&mut self, up: bool) -> String {
        let known = match self.below(6) {
            0 | 1 => self.one_of(|random| &random.recent),
            2 | 3 => self.one_of(|random| &random.made),
            _ => None,
        };
        let path = match known {
            Some(known) => self.near(known, up),
            None => self.new_path(up),
        };
        remember(&mut self.recent, &path);
        path
    }

    /// A path at which a call makes something.
    pub fn path_to_make(&mut self, up: bool) -> String {
        let path = self.path(up);
        remember(&mut self.made, &path);
        path
    }

    fn one_of(&mut self, paths: impl Fn(&Random) -> &[String]) -> Option<String> {
        match paths(self).len() {
            0 => None,
            count => {
                let chosen = self.below(count);
                Some(paths(self)[chosen].clone())
            }
        }
    }

    fn near(&mut self, known: String, up: bool) -> String {
        match self.below(10) {
            0 => format!("{known}/{}", self.name(up)),
            1 => match known.rsplit_once('/') {
                Some((directory, _)) => format!("{directory}/{}", self.name(up)),
                None => self.name(up),
            },
            2 => known.rsplit_once('/').map_or(known.clone(), |(directory, _)| directory.to_string()),
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

/// What splitmix64 adds from one choice to the next.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The mixing function of splitmix64.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn remember(paths: &mut Vec<String>, path: &str) {
    if (1..=RECENT_BYTES).contains(&path.len()) && !paths.iter().any(|known| known == path) {
        if paths.len() == RECENT_PATHS {
            paths.remove(0);
        }
        paths.push(path.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_share_no_choices() {
        let choices = |seed| {
            let mut random = Random::new(seed);
            (0..64).map(|_| random.below(1 << 30)).collect::<Vec<_>>()
        };
        let mut all: Vec<usize> = (0..200).flat_map(choices).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert!(count - all.len() < 3, "{} of {count} choices were made before", count - all.len());
    }
}
