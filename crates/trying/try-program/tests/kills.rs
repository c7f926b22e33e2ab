//! A commit that is cut short at any step, and a recovery that is cut short at any step: afterwards all of it is there, or nothing.
#![cfg(target_os = "linux")]

mod support;

use std::process::Output;

use support::{Bench, can_try, said};

const BEFORE: &str = r"
    echo old > replaced; echo r > removed; mkdir -p folder/below; echo f > folder/below/f; echo m > rights
    echo k > kind; mkdir empty";
const COMMAND: &str = r"
    echo new > created; echo new > replaced; rm removed; rm -r folder; mkdir -p deep/er; echo in > deep/er/file
    chmod 600 rights; rm kind; mkdir kind; echo x > kind/x; rmdir empty";

/// Runs a verb on the workspace that ends at a place; whether it was killed there.
fn ended_at(bench: &Bench, verb: &str, place: u32) -> (bool, Output) {
    let changes = bench.changes();
    let mut command = bench.command(["--json", verb, changes.to_str().expect("text")]);
    let output = command.env("COMMUTANT_TRY_END_AT", place.to_string()).output().expect("it starts");
    (output.status.code().is_none(), output)
}

fn prepared(before: &str, after: &str) -> Bench {
    let bench = Bench::new();
    bench.sh(BEFORE);
    assert_eq!(bench.left(), before);
    bench.run_script(COMMAND);
    let _ = after;
    bench
}

/// The tree before and after the commit, and at how many places it may end.
fn states() -> (String, String) {
    let (before, after) = (Bench::new(), Bench::new());
    before.sh(BEFORE);
    after.sh(&format!("{BEFORE}; {COMMAND}"));
    (before.left(), after.left())
}

#[test]
fn a_commit_that_is_killed_at_any_step_is_whole_or_nothing() {
    if !can_try() {
        return;
    }
    let (before, after) = states();
    let mut ends = Vec::new();
    for place in 1.. {
        let bench = prepared(&before, &after);
        let (was_killed, output) = ended_at(&bench, "commit", place);
        if !was_killed {
            assert!(output.status.success(), "{}", said(&output));
            break;
        }
        let recovered = bench.run(["recover", bench.changes().to_str().expect("text")]);
        assert!(recovered.status.success(), "{place}: {}", said(&recovered));
        let left = bench.left();
        assert!(left == before || left == after, "{place}: {left}");
        ends.push(left == after);
        // What was not done can be done now.
        let outcome = bench.commit();
        let expected = if left == after { "nothing" } else { "committed" };
        assert_eq!(outcome["outcome"], expected, "{place}: {outcome}");
        assert_eq!(bench.left(), after, "{place}");
    }
    let first_done = ends.iter().position(|is_done| *is_done).expect("some were done");
    assert!(first_done > 5 && ends.len() - first_done > 10, "{ends:?}");
    assert!(ends[first_done..].iter().all(|is_done| *is_done), "decided once: {ends:?}");
}

#[test]
fn a_recovery_that_is_killed_at_any_step_is_recovered() {
    if !can_try() {
        return;
    }
    let (before, after) = states();
    // In the middle of the publication, and in the middle of the cleaning.
    for first in [16, 21, 23] {
        for place in 1.. {
            let bench = prepared(&before, &after);
            assert!(ended_at(&bench, "commit", first).0);
            let (was_killed, output) = ended_at(&bench, "recover", place);
            if was_killed {
                let recovered = bench.run(["recover", bench.changes().to_str().expect("text")]);
                assert!(recovered.status.success(), "{first}, {place}: {}", said(&recovered));
            } else {
                assert!(output.status.success(), "{}", said(&output));
            }
            let left = bench.left();
            assert_eq!(left, after, "{first}, {place}");
            if !was_killed {
                break;
            }
        }
    }
}

#[test]
fn an_undoing_that_is_killed_at_any_step_is_recovered() {
    if !can_try() {
        return;
    }
    let (before, after) = states();
    let others = |bench: &Bench| format!("cd {}; echo theirs > created", bench.path("").display());
    let expected = Bench::new();
    expected.sh(&format!("{BEFORE}; echo theirs > created"));
    let expected = expected.left();
    for place in 1.. {
        let bench = prepared(&before, &after);
        let changes = bench.changes();
        let mut command = bench.command(["--json", "commit", changes.to_str().expect("text")]);
        command.env("COMMUTANT_TRY_RUN_AT_PUBLICATION", others(&bench));
        let output = command.env("COMMUTANT_TRY_END_AT", place.to_string()).output().expect("it starts");
        let was_killed = output.status.code().is_none();
        if was_killed {
            bench.run(["recover", changes.to_str().expect("text")]);
        }
        let left = bench.left();
        assert!(left == expected || (was_killed && left == before), "{place}: {left}");
        if !was_killed {
            break;
        }
    }
}
