//! What the benchmarks of this crate have in common: how they are asked for less, how they say where they are, and their rows.
//!
//! ```text
//! cargo bench -p scalefs-program --bench NAME -- [--small] [WORD ...]   only the parts whose names have one of these words
//! ```
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::sync::LazyLock;

/// What was asked for, without what cargo adds.
static WORDS: LazyLock<Vec<String>> =
    LazyLock::new(|| std::env::args().skip(1).filter(|word| word != "--bench").collect());

/// One number where all is measured, and another where it is only to be seen that it runs.
pub fn size<T>(whole: T, small: T) -> T {
    if WORDS.iter().any(|word| word == "--small") { small } else { whole }
}

/// Whether a part is wanted.
pub fn is_wanted(part: &str) -> bool {
    let mut words = WORDS.iter().filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| part.contains(word.as_str()))
}

/// Measures in rounds, and says where errors go which one it is at.
pub fn rounds<T>(part: &str, count: usize, mut measure: impl FnMut(usize) -> T) -> Vec<T> {
    let all = (0..count).map(|round| {
        eprintln!("{part}: round {} of {count}", round + 1);
        measure(round)
    });
    all.collect()
}

fn quartiles(mut samples: Vec<f64>) -> [f64; 3] {
    samples.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| samples[(samples.len() - 1) * quarter / 4])
}

/// Prints a row: nanoseconds here and there, and their ratio, each the median of rounds with the first and third quartile.
pub fn row(title: &str, rounds: &[[f64; 2]]) {
    let shown = |side: usize| {
        let [low, median, high] = quartiles(rounds.iter().map(|round| round[side]).collect());
        format!("{median:.0} [{low:.0}, {high:.0}]")
    };
    let [low, median, high] = quartiles(rounds.iter().map(|[ours, theirs]| ours / theirs).collect());
    println!("{title}   {}   {}   {median:.3} [{low:.3}, {high:.3}]", shown(0), shown(1));
}
