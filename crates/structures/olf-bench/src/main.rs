//! What lists and maps of crate `olf` cost compared with others. Prints a line of JSON for each figure; `make
//! bench-olf` reads them.
//!
//! ```text
//! olf-bench                all figures: some two minutes
//! olf-bench --quick        the same with so few operations that the figures mean nothing: for tests
//! olf-bench moves mixes    these parts alone
//! olf-bench marked WHAT WAY THREADS    this many threads whose operations are marked, for `commutant scale`
//! ```
//!
//! Ways that are held against each other take turns, round by round, so that what else the machine does meets all of them.
//! Of one thread the quickest round counts; of two threads the best one, since both must have had a processor.

mod by_hand;
mod ends;
mod harness;
mod harris_michael;
mod maps;
mod mixes;
mod moves;
mod node;
mod ours;
mod random;
mod reclaim;
mod reuse;
mod sets;
mod snapshots;
mod spin;
mod stops;
mod threads;

use std::process::ExitCode;

use harness::{Effort, ROOM_FOR_THREADS, Span};

/// Besides the one that makes what they share.
const MOST_MARKED: usize = ROOM_FOR_THREADS - 1;

type Part = (&'static str, fn(Effort));

const PARTS: [Part; 8] = [
    ("moves", moves::measure),
    ("maps", maps::measure),
    ("reuse", reuse::measure),
    ("ends", ends::measure),
    ("threads", threads::measure),
    ("mixes", mixes::measure),
    ("snapshots", snapshots::measure),
    ("stops", stops::measure),
];

/// Runs threads for `commutant scale`.
fn marked(arguments: &[String]) -> Result<(), String> {
    let expected = || {
        let all = threads::comparisons().chain(mixes::comparisons());
        let names = all.flat_map(|(what, ways)| ways.into_iter().map(move |(way, _)| format!("\"{what}\" \"{way}\"")));
        let names = names.collect::<Vec<_>>().join(", ");
        format!("expected marked WHAT WAY THREADS, 1 to {MOST_MARKED} of them; WHAT WAY: {names}; got {arguments:?}")
    };
    let [what, way, threads] = arguments else { return Err(expected()) };
    let threads = threads.parse().ok().filter(|threads| (1..=MOST_MARKED).contains(threads)).ok_or_else(expected)?;
    let mut all = threads::comparisons().chain(mixes::comparisons());
    let ways = all.find(|(name, _)| name == what).map(|(_, ways)| ways).ok_or_else(expected)?;
    let (_, run) = ways.iter().find(|(name, _)| name == way).ok_or_else(expected)?;
    run(threads, Span::Marked);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let Some(("marked", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return match marked(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("olf-bench: {why}");
                ExitCode::from(2)
            }
        };
    }
    let (flags, wanted): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with('-'));
    let known = |word: &String| PARTS.iter().any(|(name, _)| name == word);
    if flags.iter().any(|flag| flag != "--quick") || !wanted.iter().all(known) {
        let parts = PARTS.map(|(name, _)| name).join("|");
        eprintln!("olf-bench: expected [--quick] [{parts}]..., got {:?}", std::env::args().skip(1).collect::<Vec<_>>());
        return ExitCode::from(2);
    }
    let effort = if flags.is_empty() { Effort::Full } else { Effort::Quick };
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure(effort);
        }
    }
    ExitCode::SUCCESS
}
