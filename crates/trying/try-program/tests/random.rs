//! Random commands and random changes of others: a commit is refused exactly if a change touches what the command has seen.
//!
//! `TRY_ROUNDS` says how many pairs, `TRY_SEED` which ones; a failure prints both.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::fs;

use support::{Bench, can_try, conflicts};

const ROUNDS: u64 = 20;
const FOLDERS: [&str; 3] = ["a", "b", "a/deep"];
const FILES: [&str; 8] = ["a/1", "a/2", "b/1", "b/2", "a/deep/1", "a/deep/2", "top1", "top2"];
const ABSENT: [&str; 5] = ["a/none", "b/none", "a/deep/none", "none1", "none2"];

/// A part of the tree's state that an answer may depend on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// What a name leads to, and who may use that.
    Name(String),
    Data(String),
    Names(String),
    /// What `stat` says besides.
    Rest(String),
}

/// A sequence of numbers without a pattern (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % below as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.next(all.len())]
    }
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or_else(|| ".".to_owned(), |(parent, _)| parent.to_owned())
}

/// The names on the way to a path, and the path's own.
fn names(path: &str) -> impl Iterator<Item = Part> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    ends.map(|end| Part::Name(path[..end].to_owned())).collect::<Vec<_>>().into_iter()
}

/// A look of the command: its line, and the parts that it depends on.
fn look(chance: &mut Chance) -> (String, Vec<Part>) {
    match chance.next(5) {
        0 | 1 => {
            let file = chance.of(&FILES);
            let parts = names(file).chain([Part::Data(file.to_owned())]).collect();
            (format!("while read x; do :; done < {file}"), parts)
        }
        2 => {
            let folder = chance.of(&FOLDERS);
            (format!("echo {folder}/* >/dev/null"), names(folder).chain([Part::Names(folder.to_owned())]).collect())
        }
        3 => {
            let file = chance.of(&FILES);
            let parts = names(file).chain([Part::Data(file.to_owned()), Part::Rest(file.to_owned())]).collect();
            (format!("stat {file} >/dev/null"), parts)
        }
        _ => {
            let absent = chance.of(&ABSENT);
            (format!("[ -r {absent} ]"), names(absent).collect())
        }
    }
}

/// A change of others: its line, and the parts that it touches.
fn change(chance: &mut Chance) -> (String, Vec<Part>) {
    let (file, absent) = (chance.of(&FILES), chance.of(&ABSENT));
    match chance.next(6) {
        0 => (format!("echo other > {file}"), vec![Part::Data(file.into()), Part::Rest(file.into())]),
        1 => (format!("echo more >> {file}"), vec![Part::Data(file.into()), Part::Rest(file.into())]),
        2 => (format!("echo x > {absent}"), vec![Part::Name(absent.into()), Part::Names(parent(absent))]),
        3 => {
            let parts = vec![Part::Name(file.into()), Part::Names(parent(file)), Part::Data(file.into())];
            (format!("rm {file}"), parts)
        }
        4 => (format!("chmod 600 {file}"), vec![Part::Name(file.into()), Part::Rest(file.into())]),
        _ => (format!("touch -d 2001-01-01 {file}"), vec![Part::Rest(file.into())]),
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

// A round takes a tenth of a second: two runs of the program.
#[test]
fn what_was_seen_and_changed_is_refused_and_nothing_else() {
    if !can_try() {
        return;
    }
    let (rounds, seed) = (number("TRY_ROUNDS", ROUNDS), number("TRY_SEED", 1));
    let (mut refused, mut committed) = (0, 0);
    for round in 0..rounds {
        let mut chance = Chance(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let bench = Bench::new();
        bench.sh("mkdir -p a/deep b; for f in a/1 a/2 b/1 b/2 a/deep/1 a/deep/2 top1 top2; do echo $f > $f; done");
        let looks: Vec<(String, Vec<Part>)> = (0..=chance.next(8)).map(|_| look(&mut chance)).collect();
        // One change: two might undo each other.
        let (others, touched) = change(&mut chance);
        let command = looks.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("; ");
        bench.run_script(&format!("{command}; echo written > result"));
        bench.sh(&others);
        let seen: BTreeSet<&Part> = looks.iter().flat_map(|(_, parts)| parts).collect();
        let is_touched = touched.iter().any(|part| seen.contains(part));
        let document = bench.commit();
        let expected = if is_touched { "refused" } else { "committed" };
        assert_eq!(
            document["outcome"],
            expected,
            "TRY_SEED={seed} TRY_ROUNDS={} {command} against {others}: {document}",
            round + 1
        );
        if is_touched {
            refused += 1;
            let named = conflicts(&document);
            let is_of_change = |name: &String| {
                others.contains(name.as_str()) || FOLDERS.iter().any(|folder| folder.ends_with(name.as_str()))
            };
            assert!(named.iter().all(is_of_change), "{command} against {others}: {document}");
            assert!(!bench.path("result").exists());
        } else {
            committed += 1;
            assert_eq!(fs::read_to_string(bench.path("result")).expect("it is there"), "written\n");
        }
    }
    println!("{rounds} pairs: {refused} refused, {committed} committed");
    assert!(refused > 0 && committed > 0);
}
