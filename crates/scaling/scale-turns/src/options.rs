//! What `commutant scale` asks for, in the variable `COMMUTANT_SCALE`: cores, operations of each that count, operations before
//! these, seed, rate of interruptions, and the file for the list of what is loaded.

use std::path::PathBuf;

/// See the module's head.
pub struct Options {
    /// How many threads mark operations.
    pub cores: usize,
    /// Operations that do not count, of all cores.
    pub warm_up: u64,
    /// All operations of all cores.
    pub operations: u64,
    /// What is drawn is drawn from this.
    pub seed: u64,
    /// Of 1,024 accesses this many are followed by an interruption.
    pub rate: u64,
    /// Gets the list of what is loaded where.
    pub listing: PathBuf,
}

/// The options; `None` if there are none.
pub fn read() -> Option<Options> {
    let text = std::env::var("COMMUTANT_SCALE").ok()?;
    let words: Vec<&str> = text.splitn(6, ' ').collect();
    let [cores, operations, warm_up, seed, rate, listing] = words[..] else { return None };
    let cores: usize = cores.parse().ok()?;
    let of_all = |text: &str| text.parse::<u64>().ok()?.checked_mul(cores as u64);
    let (operations, warm_up) = (of_all(operations)?, of_all(warm_up)?);
    Some(Options {
        cores,
        warm_up,
        operations: warm_up.checked_add(operations)?,
        seed: seed.parse().ok()?,
        rate: rate.parse().ok()?,
        listing: PathBuf::from(listing),
    })
}
