//! The examples run, and show what they promise: with transactions, and without as the control.
#![cfg(all(not(any(loom, shuttle)), target_os = "linux"))]

use std::process::Command;

/// The numbers that an example prints, line by line. `cargo test` builds the examples, `cargo test --test examples` alone
/// does not.
fn numbers(name: &str, rounds: u32) -> Vec<(String, Vec<u64>)> {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(|folder| folder.parent()).unwrap().join("examples").join(name);
    let ran = Command::new(&example).arg(rounds.to_string()).output();
    let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", example.display()));
    assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    let of = |line: &str| line.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    printed.lines().map(|line| (line.to_owned(), of(line.rsplit(':').next().unwrap()))).collect()
}

/// What an example prints of a run in transactions and of one without, in pairs.
fn pairs(name: &str, rounds: u32) -> Vec<[(String, Vec<u64>); 2]> {
    let lines = numbers(name, rounds);
    assert!(lines.chunks(2).all(|pair| pair[0].0.contains("in transactions:") && pair[1].0.contains("without:")));
    lines.chunks(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect()
}

#[test]
fn the_attacker_wins_without_transactions_alone() {
    let ways = pairs("attacker", 400);
    assert_eq!(ways.len(), 4);
    for [(_, together), (told, alone)] in ways {
        assert_eq!(together[0], 0, "{told}");
        assert_eq!(alone[0], alone[1], "in step it always does: {told}");
    }
}

#[test]
fn accounts_are_changed_together() {
    let [[(_, together), (told, alone)]] = &pairs("accounts", 100)[..] else { panic!("two lines") };
    assert!(together[0] > 0 && together[1] == 0, "{together:?}");
    assert!(alone[1] > 0, "the control shows nothing: {told}");
}

#[test]
fn the_absence_of_a_lock_file_is_a_lock() {
    let [[(_, together), (told, alone)]] = &pairs("lock_file", 40)[..] else { panic!("two lines") };
    assert_eq!(together[0], together[1]);
    assert_eq!(2 * alone[0], alone[1], "in step each count of the new program is lost: {told}");
}

#[test]
fn mail_that_is_listed_is_there() {
    let [[(_, together), (told, alone)]] = &pairs("mail", 100)[..] else { panic!("two lines") };
    assert!(together[0] > 0 && together[1] == 0, "{together:?}");
    assert!(alone[1] > 0, "the control shows nothing: {told}");
}

#[test]
fn a_handler_is_one_step() {
    let [[(_, together), (told, alone)]] = &pairs("handlers", 50)[..] else { panic!("two lines") };
    assert_eq!(together[0], 0);
    assert_eq!(alone[0], 3 * alone[1], "in step all is removed twice: {told}");
}

#[test]
fn nobody_is_in_a_group_that_is_not_there() {
    let [[(_, together), (told, alone)]] = &pairs("directory_service", 60)[..] else { panic!("two lines") };
    assert!(together[0] > 0 && together[2] == 0, "{together:?}");
    assert_eq!(2 * alone[2], alone[1], "in step each person is without her group: {told}");
}

#[test]
fn another_store_changes_together_with_files() {
    let [[(_, together), (told, alone)]] = &pairs("participant", 100)[..] else { panic!("two lines") };
    assert!(together[0] > 0 && together[1] == 0, "{together:?}");
    assert!(alone[1] > 0, "the control shows nothing: {told}");
}
