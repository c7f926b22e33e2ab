//! Hare's 13 benchmarks as calls: by the clock on domains, on ScaleFS and on tmpfs, and in virtual time on simulated machines.
//! Prints a line of JSON for each figure, which `make bench-domains` reads, and to standard error how far it has come.
//!
//! ```text
//! domains-bench                      all figures: some minutes on two processors that no one else wants
//! domains-bench --quick              the same with so few calls that the figures mean nothing: for tests
//! domains-bench trips measured       these parts alone: trips, measured, hare, cxl
//! ```

mod benchmarks;
mod client;
mod clock;
mod effort;
mod measured;
mod over_domains;
mod over_scalefs;
mod places;
mod row;
mod simulated;
mod system;
mod tmpfs;

use std::process::ExitCode;

use effort::Effort;

type Part = (&'static str, fn(Effort) -> Result<(), String>);

const PARTS: [Part; 4] = [
    ("trips", measured::measure_round_trips),
    ("measured", measured::measure),
    ("hare", simulated::measure_hare),
    ("cxl", simulated::measure_cxl),
];

fn main() -> ExitCode {
    let (flags, wanted): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let known = |word: &String| PARTS.iter().any(|(name, _)| name == word);
    if flags.iter().any(|flag| flag != "--quick") || !wanted.iter().all(known) {
        let parts = PARTS.map(|(name, _)| name).join("|");
        eprintln!(
            "domains-bench: expected [--quick] [{parts}]..., got {:?}",
            std::env::args().skip(1).collect::<Vec<_>>()
        );
        return ExitCode::from(2);
    }
    let effort = if flags.is_empty() { Effort::Full } else { Effort::Quick };
    for (name, measure) in PARTS {
        let is_wanted = wanted.is_empty() || wanted.iter().any(|word| word == name);
        if is_wanted && let Err(why) = measure(effort) {
            eprintln!("domains-bench: {why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
