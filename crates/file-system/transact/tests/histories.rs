//! Every history has an order, and who commutes does not abort the other.
//!
//! Under `--cfg shuttle`, where faults can be planted, the same searches find them.

#![cfg(not(loom))]

mod interleaved;
mod shared;

use interleaved::calls::Call;
#[cfg(not(shuttle))]
use interleaved::commutes_as_wholes;
use interleaved::{Case, Party, Told, case, commutes, has_order, run};
use posix_calls::{Fields, Follow};
#[cfg(not(shuttle))]
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// So many cases, unless `HISTORIES` says how many.
#[cfg(not(shuttle))]
fn drawn(cases: u64) -> u32 {
    history::rounds(cases).least() as u32
}

/// Draws cases until one fails; the same from the same number.
fn search(cases: u32, holds: impl Fn(&Case) -> Result<(), String>) -> u32 {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new_with_rng(config, rng).run(&case(), |case| holds(&case).map_err(TestCaseError::fail));
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{cases} histories");
    cases
}

fn has_an_order(case: &Case) -> Result<(), String> {
    let run = run(case);
    if has_order(case, &run) { Ok(()) } else { Err(format!("no order shows {run:#?}")) }
}

/// What aborts does not commute, or leads through names that the other changes.
fn aborts_for_a_reason(case: &Case) -> Result<(), String> {
    let run = run(case);
    if run.aborts == 0 || !commutes(case, Told::Way) { Ok(()) } else { Err(format!("aborted for nothing: {run:#?}")) }
}

#[cfg(not(shuttle))]
#[test]
fn every_history_has_an_order() {
    search(drawn(1_000), has_an_order);
}

#[cfg(not(shuttle))]
#[test]
fn who_commutes_does_not_abort() {
    search(drawn(1_500), aborts_for_a_reason);
}

/// Each first call in an open transaction, the second in another that commits meanwhile.
const PAIRS: [(Call, Call); 8] = [
    (Call::MakeDirectory("f"), Call::Rename("g", "f")),
    (Call::Link("f", "g"), Call::Exchange("g", "d/f")),
    (Call::Create("d/n"), Call::CreateNew("d/x")),
    (Call::CreateNew("d/n"), Call::ChangeMode("d", 0o700)),
    (Call::RemoveDirectory("d"), Call::Unlink("d/f")),
    (Call::Stat("g", Follow::Nothing, Fields::IDENTITY), Call::Link("g", "n")),
    (Call::ChangeMode("f", 0o700), Call::ChangeGroup("f", 7)),
    (Call::Rename("d/c", "e/c"), Call::CreateNew("d/c/n")),
];

fn beside_each_other((open, meanwhile): &(Call, Call)) {
    let calls = [vec![*open], vec![*meanwhile]];
    let case = Case { users: [5, 5], parties: [Party::Together; 2], calls, schedule: vec![0, 1, 1, 0] };
    let run = run(&case);
    assert_eq!(run.aborts, 0, "{open:?} and {meanwhile:?}: {run:#?}");
    assert!(has_order(&case, &run), "{run:#?}");
}

/// One party is told that a name exists, and then to what it leads, which it does not any more: among so many answers that
/// they are not asked for again at each call. The name changes, so at the commit its lock stood for all that was told of it.
fn two_answers_about_a_name() {
    let first = vec![Call::ChangeOwner("d/c/n", 6), Call::RenameNew("s", "f"), Call::Create("f")];
    let second = vec![Call::Rename("f", "s/f"), Call::List("d/../f"), Call::ChangeDirectory("s/f")];
    let schedule = [&[0, 1, 0][..], &[1; 8], &[0; 3]].concat();
    let case = Case { users: [5; 2], parties: [Party::Together; 2], calls: [first, second], schedule };
    has_an_order(&case).unwrap();
}

#[cfg(not(shuttle))]
#[test]
fn what_is_told_of_a_name_is_so_together() {
    two_answers_about_a_name();
}

#[cfg(not(shuttle))]
#[test]
fn pairs_that_commute_do_not_abort() {
    PAIRS.iter().for_each(beside_each_other);
}

/// Two parties that show something else in the other order, in so many histories that each have an order.
/// `HISTORIES=0..1000000` says how many, `HISTORIES=1000000..2000000` which others; how far it is, it tells meanwhile.
#[cfg(not(shuttle))]
#[test]
fn calls_that_do_not_commute_have_an_order() {
    let rounds = history::rounds(150);
    let (first, wanted) = (rounds.first(), rounds.least());
    let mut seed = [9; 32];
    seed[..8].copy_from_slice(&first.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let (mut found, mut drawn, mut aborted) = (0, 0_u64, 0_u64);
    while found < wanted {
        let case = case().new_tree(&mut runner).unwrap().current();
        drawn += 1;
        if commutes_as_wholes(&case) {
            continue;
        }
        found += 1;
        let run = run(&case);
        aborted += u64::from(run.aborts > 0);
        assert!(has_order(&case, &run), "no order shows history {found} from {first}, {case:#?}: {run:#?}");
        if found % 50_000 == 0 {
            println!("{found} of {wanted}, {aborted} with an abort");
        }
    }
    println!("{wanted} histories of calls that do not commute, of {drawn} drawn; {aborted} with an abort");
    assert!(aborted * 40 > wanted, "a test without conflicts shows nothing: {aborted}");
}

/// How many abort of those whose results commute: some look at a name that the other changes, to the same end.
#[cfg(not(shuttle))]
#[test]
fn few_abort_whose_results_commute() {
    let mut runner = TestRunner::deterministic();
    let (mut aborted, mut commuting, mut for_nothing) = (0, 0, 0);
    let drawn = drawn(1_000);
    for _ in 0..drawn {
        let case = case().new_tree(&mut runner).unwrap().current();
        let aborts = run(&case).aborts > 0;
        let commutes = commutes(&case, Told::Result);
        aborted += u32::from(aborts);
        commuting += u32::from(commutes);
        for_nothing += u32::from(aborts && commutes);
    }
    println!("{aborted} of {drawn} abort; {commuting} commute by their results, of which {for_nothing} abort");
    assert!(aborted * 40 > drawn, "a test without conflicts shows nothing: {aborted}");
    assert!(for_nothing * 100 < commuting, "{for_nothing} of {commuting} abort for nothing");
}

#[cfg(shuttle)]
mod faults {
    use sync::mutant::must_be_caught;

    use super::*;

    #[test]
    fn absence_is_kept() {
        must_be_caught("transact: absence is not kept", || search(4_000, has_an_order));
    }

    #[test]
    fn changes_come_after_the_check() {
        must_be_caught("transact: checked after the changes", || search(4_000, has_an_order));
    }

    #[test]
    fn existence_is_not_identity() {
        must_be_caught("transact: that a name exists is kept as what it leads to", || {
            PAIRS.iter().for_each(beside_each_other);
        });
    }

    #[test]
    fn a_name_that_changed_between_two_looks_at_it() {
        must_be_caught("transact: answers about one name may differ", two_answers_about_a_name);
    }

    #[test]
    fn a_check_is_not_all_permissions() {
        must_be_caught("transact: a check is kept as all permissions", || search(20_000, aborts_for_a_reason));
    }
}
