//! The command line.

use domains::Level;
use runner::place::CORE_LIMIT;

use crate::surroundings::Surroundings;

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
        /// What surrounds the calls.
        surroundings: Surroundings,
    },
    /// Run batches over domains.
    Domains {
        /// How many.
        domain_count: usize,
        /// What they see of each other's data.
        level: Level,
        /// As many as a test has calls.
        workers: usize,
        /// What surrounds the calls.
        surroundings: Surroundings,
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
    /// What surrounds the calls.
    pub surroundings: Surroundings,
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

/// What tests touch has no place in more.
const MOST_DOMAINS: usize = 16;

/// More users than calls make no difference.
const MOST_USERS: usize = CORE_LIMIT;

/// Far more components than people's paths have.
const MOST_DEPTH: usize = 64;

/// More rounds than caches of objects hold, or than maintenance is ever late.
const MOST_WARM: usize = 4096;

/// Reads the arguments behind the program's name.
///
/// # Errors
/// One line that says what was expected and what came.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Mode, String> {
    let arguments: Vec<String> = arguments.collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--calls"] => Ok(Mode::Calls),
        ["--symbols"] => Ok(Mode::Symbols),
        ["--plain", "--workers", workers, ref rest @ ..] => {
            let workers = number("--workers", workers, CORE_LIMIT)?;
            match surroundings(rest)? {
                (surroundings, []) => Ok(Mode::Plain { workers, surroundings }),
                _ => Err(EXPECTED.to_owned()),
            }
        }
        ["--domains", domains, "--level", level, "--workers", workers, ref rest @ ..] => {
            let domain_count = number("--domains", domains, MOST_DOMAINS)?;
            let level = match level {
                "posix" => Level::Posix,
                "close-to-open" => Level::CloseToOpen,
                other => return Err(format!("--level {other}: expected posix or close-to-open")),
            };
            let workers = number("--workers", workers, CORE_LIMIT)?;
            match surroundings(rest)? {
                (surroundings, []) => Ok(Mode::Domains { domain_count, level, workers, surroundings }),
                _ => Err(EXPECTED.to_owned()),
            }
        }
        ["--cores", cores, "--workers", workers, "--seed", seed, ref rest @ ..] => {
            let (surroundings, rest) = surroundings(rest)?;
            let cores = number("--cores", cores, MOST_CORES)?;
            let workers = number("--workers", workers, CORE_LIMIT.min(cores))?;
            let hash_seed =
                seed.parse().map_err(|_| format!("--seed {seed}: expected a number from 0 to {}", u64::MAX))?;
            let options = Options { cores, workers, hash_seed, surroundings };
            match rest {
                [] => Ok(Mode::Batches { options, objects: None }),
                ["--objects", file] => Ok(Mode::Batches { options, objects: Some((*file).to_owned()) }),
                ["--regions"] => Ok(Mode::Regions(options)),
                _ => Err(EXPECTED.to_owned()),
            }
        }
        _ => Err(EXPECTED.to_owned()),
    }
}

const EXPECTED: &str = "expected --cores N --workers N --seed N [SURROUNDINGS] [--regions|--objects FILE], or --plain --workers N \
     [SURROUNDINGS], or --domains N --level LEVEL --workers N [SURROUNDINGS], or --calls, or --symbols; surroundings are --warm N, --names long, --depth N, --users N";

fn number(what: &str, text: &str, most: usize) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| format!("{what} {text}: expected a number from 1 to {most}"))
}

/// Reads options of surroundings as far as there are any, and returns what stands behind them.
fn surroundings<'r, 't>(mut rest: &'r [&'t str]) -> Result<(Surroundings, &'r [&'t str]), String> {
    let mut found = Surroundings::default();
    while let [key, value, behind @ ..] = rest {
        match *key {
            "--warm" => found.warm = number(key, value, MOST_WARM)?,
            "--depth" => found.depth = number(key, value, MOST_DEPTH)?,
            "--users" => found.users = number(key, value, MOST_USERS)?,
            "--names" if *value == "long" => found.long_names = true,
            "--names" => return Err(format!("--names {value}: expected long")),
            _ => break,
        }
        rest = behind;
    }
    Ok((found, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Mode, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn batches_need_three_numbers() {
        let options = Options { cores: 16, workers: 2, hash_seed: 7, surroundings: Surroundings::default() };
        let batches = |objects| Ok(Mode::Batches { options, objects });
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7"), batches(None));
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --objects f"), batches(Some("f".to_owned())));
        assert_eq!(parsed("--cores 16 --workers 2 --seed 7 --regions"), Ok(Mode::Regions(options)));
        let surroundings = Surroundings { warm: 64, long_names: true, depth: 3, users: 2 };
        let batches = |objects| Ok(Mode::Batches { options: Options { surroundings, ..options }, objects });
        let all = "--warm 64 --names long --depth 3 --users 2";
        assert_eq!(parsed(&format!("--cores 16 --workers 2 --seed 7 {all}")), batches(None));
        assert_eq!(
            parsed(&format!("--cores 16 --workers 2 --seed 7 {all} --objects f")),
            batches(Some("f".to_owned()))
        );
        let usual = Surroundings::default();
        let domains = |level| Ok(Mode::Domains { domain_count: 3, level, workers: 2, surroundings: usual });
        assert_eq!(parsed("--domains 3 --level posix --workers 2"), domains(Level::Posix));
        assert_eq!(parsed("--domains 3 --level close-to-open --workers 2"), domains(Level::CloseToOpen));
        assert_eq!(parsed("--plain --workers 3"), Ok(Mode::Plain { workers: 3, surroundings: usual }));
        assert_eq!(parsed(&format!("--plain --workers 3 {all}")), Ok(Mode::Plain { workers: 3, surroundings }));
    }

    #[test]
    fn seeds_move_workers_to_any_two_cores() {
        let pairs: std::collections::BTreeSet<[usize; 2]> = (0..2_000)
            .map(|hash_seed| {
                let options = Options { cores: 8, workers: 2, hash_seed, surroundings: Surroundings::default() };
                [options.core_of(0), options.core_of(1)]
            })
            .collect();
        assert_eq!(pairs.len(), 8 * 7, "all ordered pairs of different cores");
        let all = Options { cores: 6, workers: 6, hash_seed: 3, surroundings: Surroundings::default() };
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
            ("--cores 2 --workers 2 --seed 1 --names short", "--names short: expected long"),
            ("--cores 2 --workers 2 --seed 1 --depth 65", "--depth 65: expected a number from 1 to 64"),
            ("--plain --workers 2 --users 7", "--users 7: expected a number from 1 to 6"),
            ("--plain --workers 2 --objects f", "expected --cores N"),
            ("--plain", "expected --cores N"),
            ("--domains 17 --level posix --workers 2", "--domains 17: expected a number from 1 to 16"),
            ("--domains 2 --level nfs --workers 2", "--level nfs: expected posix or close-to-open"),
            ("--domains 2", "expected --cores N"),
        ] {
            assert!(parsed(line).unwrap_err().starts_with(message), "{line}");
        }
    }
}
