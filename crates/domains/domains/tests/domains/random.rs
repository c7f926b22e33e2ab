//! Random calls from all domains give what they give on `plain`, call by call, and leave nothing.

use call_language::{Call, Random, data_scene, scene};
use domains::Techniques;
use messages::simulated::RingSizes;

use crate::spread::Spread;
use crate::systems::comparison::{difference_from_plain, report};

const CALLS_PER_SEQUENCE: usize = 200;

pub fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}")))
}

/// On names alone.
fn names(random: &mut Random) -> Vec<Call> {
    let mut calls = scene(random, true);
    calls.extend((0..CALLS_PER_SEQUENCE).map(|_| Call::any(random, true)));
    calls
}

/// On names and data.
fn data(random: &mut Random) -> Vec<Call> {
    let user = random.below(2);
    let mut calls = [data_scene(random, user), scene(random, true)].concat();
    calls.extend((0..CALLS_PER_SEQUENCE).map(|_| Call::of_names_and_data(random, true, user, false)));
    calls
}

/// How sequences are drawn.
type Draw = fn(&mut Random) -> Vec<Call>;

/// Draws sequences until this many calls are made; panics at the first that differs.
pub fn compare(mut systems: Spread, draw: Draw, share: u64) {
    let wanted = number_from_environment("DOMAINS_CALLS").unwrap_or(3_000) / share;
    let first = number_from_environment("DOMAINS_SEED").unwrap_or(1);
    let mut made = 0;
    for seed in first.. {
        if made >= wanted {
            break;
        }
        let calls = draw(&mut Random::new(seed));
        made += calls.len() as u64;
        if difference_from_plain(&mut systems, &calls).is_some() {
            let told = report(calls, |calls| difference_from_plain(&mut systems, calls));
            panic!("{told}\nof {systems:?}; repeat with DOMAINS_SEED={seed}");
        }
    }
    println!("{made} calls held against plain");
}

#[test]
fn random_calls_on_names_give_the_same_as_on_plain() {
    for domain_count in [1, 2, 3, 5] {
        compare(Spread::new(domain_count), names, 4);
    }
}

#[test]
fn random_calls_on_directories_that_split_give_the_same_as_on_plain() {
    for split_above in [0, 1, 3] {
        compare(Spread { split_above, ..Spread::new(3) }, names, 4);
    }
    compare(Spread { split_after: 2, ..Spread::new(3) }, names, 4);
}

#[test]
fn random_calls_give_the_same_without_each_technique() {
    let all = Techniques::default();
    for techniques in [
        Techniques { caches: false, ..all },
        Techniques { affinity: false, ..all },
        Techniques { broadcast: false, ..all },
        Techniques { affinity: false, coalesced: false, ..all },
        Techniques { lending: false, ..all },
    ] {
        compare(Spread { techniques, split_above: 2, ..Spread::new(3) }, names, 4);
    }
}

#[test]
fn random_calls_over_rings_that_are_full_give_the_same_as_on_plain() {
    let rings = RingSizes([2, 84, 12, 90]);
    compare(Spread { rings, split_above: 1, ..Spread::new(3) }, names, 2);
    compare(Spread { rings, wanders: false, ..Spread::new(2) }, data, 2);
}

/// The lines of decisions lie where old copies are really read, and an adversary drops and writes back what it likes.
#[test]
fn random_calls_decided_in_memory_without_coherence_give_the_same_as_on_plain() {
    for seed in 0..3 {
        compare(Spread { pool_seed: Some(seed), ..Spread::new(3) }, names, 4);
    }
}

#[test]
fn random_calls_on_names_and_data_give_the_same_as_on_plain() {
    for domain_count in [1, 2, 3] {
        compare(Spread { wanders: false, ..Spread::new(domain_count) }, data, 3);
    }
}

/// Files lie with all domains, as their names do, and one domain makes all calls.
#[test]
fn random_calls_of_one_domain_at_level_close_to_open_give_the_same_as_on_plain() {
    let techniques = Techniques { affinity: false, ..Techniques::default() };
    let spread = Spread { techniques, split_above: 0, wanders: false, ..Spread::new(3) };
    for pages in [64, 3] {
        compare(Spread { alone: Some((1, pages)), ..spread }, data, 3);
    }
    let without_pages = Techniques { direct: false, coalesced: false, ..techniques };
    compare(Spread { techniques: without_pages, alone: Some((2, 0)), ..spread }, data, 3);
}

#[cfg(fuzzing)]
#[test]
fn planted_faults_are_found() {
    use sync::mutant::must_be_caught;

    let few_notices = Spread { rings: RingSizes([2, 84, 12, 90]), ..Spread::new(3) };
    must_be_caught("domains: one who is to forget all forgets nothing", || compare(few_notices, names, 1));
    must_be_caught("domains: who keeps a directory hears of no change", || compare(Spread::new(3), names, 1));
    let in_pool = Spread { pool_seed: Some(1), split_above: 2, ..Spread::new(3) };
    for fault in [
        "domains: a decision is not written back",
        "domains: a decision is not drained",
        "domains: a line is read from an old copy",
    ] {
        must_be_caught(fault, || compare(in_pool, names, 1));
    }
    must_be_caught("domains: a directory goes with its names", || compare(Spread::new(3), names, 1));
}
