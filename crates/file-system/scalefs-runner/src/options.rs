//! The command line.

use runner::place::CORE_LIMIT;

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Mode {
    /// Run batches.
    Batches {
        /// On what.
        options: Options,
        /// The file that is to list what lies where.
        objects: Option<String>,
    },
    /// Run batches over `plain`.
    Plain {
        /// As many as a test has calls.
        workers: usize,
    },
    /// List the calls.
    Calls,
    /// List the symbols.
    Symbols,
    /// List the parts of the arena of an instance of such options.
    Regions(Options),
}

/// How to run batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Cores of the instance that tests may use; it has one more, for set-up and observation.
    pub cores: usize,
    /// How many threads there are: as many as a test has calls, each on one of these cores.
    pub workers: usize,
    /// The instance's hash seed, which chooses the cores that have a thread too.
    pub hash_seed: u64,
    /// Before its n-th window each core makes the remainder of n by this many rounds of calls; none if it is 1.
    pub warm: usize,
}

impl Options {
    /// The core of the instance that a worker acts as: any of those for tests, as the seed says, and no two the same.
    #[must_use]
    pub fn core_of(&self, worker: usize) -> usize {
        let mut cores: Vec<usize> = (0..self.cores).collect();
        let mut state = self.hash_seed;
        for place in 0..=worker {
            // Splitmix64, as far as one choice needs it.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let left = self.cores - place;
            cores.swap(place, place + ((word ^ (word >> 27)) % left as u64) as usize);
        }
        cores[worker]
    }
}

/// An instance has at most 256 cores, one of which is the coordinator's.
const MOST_CORES: usize = 255;

/// More rounds than caches of objects hold, or than maintenance is ever late.
const MOST_WARM: usize = 4096;

/// Reads the arguments behind the program's name.
///
/// # Errors
/// One line that says what was expected and what came.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Mode, String> {
    let arguments: Vec<String> = arguments.collect();
    let number = |what: &str, text: &str, most: usize| {
        text.parse()
            .ok()
            .filter(|number| (1..=most).contains(number))
            .ok_or_else(|| format!("{what} {text}: expected a number from 1 to {most}"))
    };
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--calls"] => Ok(Mode::Calls),
        ["--symbols"] => Ok(Mode::Symbols),
        ["--plain", "--workers", workers] => Ok(Mode::Plain { workers: number("--workers", workers, CORE_LIMIT)? }),
        ["--cores", cores, "--workers", workers, "--seed", seed, ref rest @ ..]
            if matches!(rest, [] | ["--regions"] | ["--objects", _])
                || matches!(rest, ["--warm", _] | ["--warm", _, "--regions"] | ["--warm", _, "--objects", _]) =>
        {
            let (warm, rest) = match rest {
                ["--warm", warm, rest @ ..] => (number("--warm", warm, MOST_WARM)?, rest),
                _ => (1, rest),
            };
            let cores = number("--cores", cores, MOST_CORES)?;
            let workers = number("--workers", workers, CORE_LIMIT.min(cores))?;
            let hash_seed =
                seed.parse().map_err(|_| format!("--seed {seed}: expected a number from 0 to {}", u64::MAX))?;
            let options = Options { cores, workers, hash_seed, warm };
            Ok(match rest {
                ["--regions"] => Mode::Regions(options),
                _ => Mode::Batches { options, objects: rest.get(1).map(ToString::to_string) },
            })
        }
        _ => Err("expected --cores N --workers N --seed N [--warm N] [--regions|--objects FILE], or --plain --workers N, or \
                 --calls, or --symbols"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Mode, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn batches_need_three_numbers() {
        let options = Options { cores: 16, workers: 2, hash_seed: 7, warm: 1 };
        let batches = |objects| Ok(Mode::Batches { options, objects });
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7"), batches(None));
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --objects f"), batches(Some("f".to_owned())));
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --regions"), Ok(Mode::Regions(options)));
        let warm = Options { warm: 64, ..options };
        let batches = |objects| Ok(Mode::Batches { options: warm, objects });
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --warm 64"), batches(None));
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --warm 64 --objects f"), batches(Some("f".to_owned())));
        assert_eq!(parsed("--plain --workers 3"), Ok(Mode::Plain { workers: 3 }));
    }

    #[test]
    fn seeds_move_workers_to_any_two_cores() {
        let pairs: std::collections::BTreeSet<[usize; 2]> = (0..2_000)
            .map(|hash_seed| {
                let options = Options { cores: 8, workers: 2, hash_seed, warm: 1 };
                [options.core_of(0), options.core_of(1)]
            })
            .collect();
        assert_eq!(pairs.len(), 8 * 7, "all ordered pairs of different cores");
        let all = Options { cores: 6, workers: 6, hash_seed: 3, warm: 1 };
        let mut cores: Vec<usize> = (0..6).map(|worker| all.core_of(worker)).collect();
        cores.sort_unstable();
        assert_eq!(cores, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, message) in [
            ("", "expected --cores N"),
            ("--cores 2", "expected --cores N"),
            ("--cores 2 --workers 2 --seed 1 --region", "expected --cores N"),
            ("--cores 0 --workers 1 --seed 1", "--cores 0: expected a number from 1 to 255"),
            ("--cores 256 --workers 1 --seed 1", "--cores 256"),
            ("--cores 2 --workers 3 --seed 1", "--workers 3: expected a number from 1 to 2"),
            ("--cores 9 --workers 7 --seed 1", "--workers 7: expected a number from 1 to 6"),
            ("--cores 2 --workers 2 --seed x", "--seed x"),
            ("--plain --workers 7", "--workers 7: expected a number from 1 to 6"),
            ("--cores 2 --workers 2 --seed 1 --warm 0", "--warm 0: expected a number from 1 to 4096"),
            ("--cores 2 --workers 2 --seed 1 --warm", "expected --cores N"),
            ("--cores 2 --workers 2 --seed 1 --warm 2 --objects", "expected --cores N"),
            ("--plain", "expected --cores N"),
        ] {
            assert!(parsed(line).unwrap_err().starts_with(message), "{line}");
        }
    }
}
