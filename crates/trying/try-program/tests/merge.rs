//! `--merge`: of what others have changed since the command has seen it, what leaves the command's own changes alone does not count.
#![cfg(target_os = "linux")]

mod support;

use std::fs;

use serde_json::Value;
use support::{Bench, can_try, conflicts, document, said};

const ROUNDS: u64 = 12;

/// Runs a script in the workspace with `--merge`, lets others do something, and commits with `--merge`.
fn merged(bench: &Bench, script: &str, others: &str) -> Value {
    let changes = bench.changes();
    let output = bench.run(["--merge", "-N", changes.to_str().expect("text"), script]);
    assert!(output.status.success(), "{script}: {}", said(&output));
    bench.sh(others);
    bench.commit_with(&["--merge"])
}

fn content(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap_or_default()
}

/// Writes bytes at a place of a file, and reads nothing of it.
fn poke(name: &str, at: usize, bytes: &str) -> String {
    format!("printf %s '{bytes}' | dd of={name} bs=1 seek={at} conv=notrunc status=none")
}

#[test]
fn different_bytes_of_one_file_are_both_there() {
    if !can_try() {
        return;
    }
    let cases = [
        (poke("file", 0, "A"), poke("file", 7, "Z"), "Abcdef\nZhi\n"),
        ("sed -i s/abc/ABC/ file".to_owned(), "echo more >> file".to_owned(), "ABCdef\nghi\nmore\n"),
        ("sed -i '1i first' file".to_owned(), "sed -i s/ghi/GHI/ file".to_owned(), "first\nabcdef\nGHI\n"),
        ("sed -i 1d file".to_owned(), poke("file", 9, "X"), "ghX\n"),
        // Only its time is another one: there is nothing to put together.
        ("sed -i s/abc/ABC/ file".to_owned(), "touch -d 2001-01-01 file".to_owned(), "ABCdef\nghi\n"),
    ];
    for (script, others, expected) in cases {
        let bench = Bench::new();
        bench.sh("printf 'abcdef\\nghi\\n' > file; chmod 640 file");
        let document = merged(&bench, &script, &others);
        assert_eq!(document["outcome"], "committed", "{script}, {others}: {document}");
        assert_eq!(document["merged"].as_array().map(Vec::len), Some(1), "{document}");
        assert_eq!(content(&bench, "file"), expected, "{script}, {others}");
        bench.sh("test $(stat -c %a file) = 640");
        assert_eq!(bench.commit()["outcome"], "nothing");
    }
}

/// A refusal ended with what differed, and with no next step.
#[test]
fn a_refusal_says_what_to_do() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo 1 > file");
    let changes = bench.changes();
    bench.run(["-N", changes.to_str().expect("text"), "echo 2 >> file"]);
    bench.sh("echo 3 > file");
    let last_said = |options: &[&'static str]| {
        let options = options.iter().copied().chain(["commit", changes.to_str().expect("text")]);
        let output = bench.run(options);
        assert!(!output.status.success());
        said(&output).lines().last().unwrap_or_default().to_owned()
    };
    let last = last_said(&[]);
    assert!(last.contains("run the command again; with --merge it keeps"), "{last}");
    let last = last_said(&["--merge"]);
    assert!(last.ends_with("run the command again"), "who has given it needs no hint: {last}");
}

#[test]
fn the_same_bytes_are_refused_and_named() {
    if !can_try() {
        return;
    }
    let cases = [
        (poke("file", 0, "A"), poke("file", 0, "B"), "from byte 0 to 1"),
        // Of two that count, one has to count again, though both write the same.
        (
            "read n < count; echo $((n + 1)) > new; mv new count".to_owned(),
            "echo 1 > count".to_owned(),
            "from byte 0 to 1",
        ),
        ("echo ours >> file".to_owned(), "echo theirs >> file".to_owned(), "from byte 11 to 11"),
        // What was written blindly was never compared with what was there.
        ("echo all > file".to_owned(), poke("file", 0, "B"), ""),
        // A file that was read and not changed; one that is gone; rights.
        ("read x < file; echo $x > made".to_owned(), poke("file", 0, "B"), ""),
        (poke("file", 0, "A"), "rm file".to_owned(), ""),
        ("rm file".to_owned(), poke("file", 6, "B"), ""),
        (poke("file", 0, "A"), "ln file another-name".to_owned(), "2 names"),
        (poke("file", 0, "A"), format!("chmod 600 file; {}", poke("file", 6, "B")), ""),
    ];
    for (script, others, bytes) in cases {
        let bench = Bench::new();
        bench.sh("printf 'abcdef\\nghi\\n' > file; echo 0 > count");
        let document = merged(&bench, &script, &others);
        let left = bench.left();
        assert_eq!(document["outcome"], "refused", "{script}, {others}: {document}");
        assert!(conflicts(&document).len() == 1 && !bench.path("made").exists(), "{script}, {others}: {document}");
        let now = document["conflicts"][0]["there_now"].as_str().expect("text");
        assert!(now.contains(bytes), "{script}, {others}: {now}");
        assert_eq!(bench.left(), left);
    }
}

#[test]
fn a_file_that_changes_once_more_is_not_replaced() {
    if !can_try() {
        return;
    }
    for at in ["CHECK", "PUBLICATION"] {
        let bench = Bench::new();
        bench.sh("printf 'abcdef\\nghi\\n' > file; echo x > other");
        let changes = bench.changes();
        let changes = changes.to_str().expect("text");
        let script = format!("{}; echo y > other", poke("file", 0, "A"));
        assert!(bench.run(["--merge", "-N", changes, &script]).status.success());
        bench.sh(&poke("file", 7, "G"));
        let others = format!("cd {}; {}", bench.path("").display(), poke("file", 8, "H"));
        let mut command = bench.command(["--json", "--merge", "commit", changes]);
        let refused = document(&command.env(format!("COMMUTANT_TRY_RUN_AT_{at}"), others).output().expect("it starts"));
        assert_eq!(refused["outcome"], "refused", "{at}: {refused}");
        assert_eq!((content(&bench, "file"), content(&bench, "other")), ("abcdef\nGHi\n".into(), "x\n".into()));
        // Asked again, it is put together with all of them.
        assert_eq!(bench.commit_with(&["--merge"])["outcome"], "committed");
        assert_eq!(content(&bench, "file"), "Abcdef\nGHi\n");
    }
}

#[test]
fn names_of_one_directory_are_both_there() {
    if !can_try() {
        return;
    }
    for (script, others, outcome) in [
        ("ls folder; echo x > folder/ours", "echo x > folder/theirs; rm folder/old", "committed"),
        ("ls -l folder; rm folder/old", "echo x > folder/theirs", "committed"),
        ("ls folder; echo x > folder/same", "echo x > folder/same", "refused"),
        ("rm -r folder", "echo x > folder/theirs", "refused"),
    ] {
        let bench = Bench::new();
        bench.sh("mkdir folder; echo x > folder/old");
        let document = merged(&bench, script, others);
        assert_eq!(document["outcome"], outcome, "{script}, {others}: {document}");
        // Without the option a listing is what it was.
        let strict = Bench::new();
        strict.sh("mkdir folder; echo x > folder/old");
        strict.run_script(script);
        strict.sh(others);
        assert_eq!(strict.commit()["outcome"], "refused", "{script}, {others}");
    }
}

#[test]
fn bytes_are_merged_only_where_the_run_has_kept_them() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("printf 'abcdef\\nghi\\n' > file");
    bench.run_script(&poke("file", 0, "A"));
    bench.sh(&poke("file", 6, "Z"));
    assert_eq!(bench.commit_with(&["--merge"])["outcome"], "refused");
    // Two runs of one workspace, of which the second goes on from what the first has left.
    let changes = bench.changes();
    fs::remove_dir_all(&changes).and_then(|()| fs::create_dir(&changes)).expect("ours");
    for script in [poke("file", 0, "B"), poke("file", 1, "C")] {
        assert!(bench.run(["--merge", "-N", changes.to_str().expect("text"), &script]).status.success());
    }
    bench.sh(&poke("file", 8, "Y"));
    assert_eq!(bench.commit_with(&["--merge"])["outcome"], "committed");
    assert_eq!(content(&bench, "file"), "BCcdefZgYi\n");
}

#[test]
fn two_that_change_one_file_both_commit() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("seq 30 > list");
    let runs: Vec<String> = ["one", "two", "three"]
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let folder = bench.folder().join(name);
            fs::create_dir(&folder).expect("a new folder");
            let folder = folder.to_str().expect("text").to_owned();
            let script = format!("sed -i '{}s/$/ {name}/' list", 5 + 10 * number);
            assert!(bench.run(["--merge", "-N", &folder, &script]).status.success());
            folder
        })
        .collect();
    for folder in runs {
        assert_eq!(document(&bench.run(["--json", "--merge", "commit", &folder]))["outcome"], "committed");
    }
    bench.sh("test \"$(grep -c ' ' list)\" = 3; test \"$(sed -n 15p list)\" = '15 two'; test $(wc -l < list) = 30");
}

/// Changes of bytes that are drawn: committed exactly if no byte was changed by both, and then the file has both.
#[test]
fn drawn_bytes_are_merged_or_refused() {
    if !can_try() {
        return;
    }
    let rounds = std::env::var("TRY_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let mut state: u64 = std::env::var("TRY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut counts = [0, 0];
    for round in 0..rounds {
        let bench = Bench::new();
        // Longer than what is read at once, so that the version read is put together from parts.
        let length = [40, 5_000, 300_000][draw(3)];
        fs::write(bench.path("file"), "a".repeat(length)).expect("ours");
        let ranges = [0, 1].map(|_| {
            let start = if draw(2) == 0 { draw(length) } else { draw(40.min(length)) };
            start..(start + 1 + draw(20)).min(length)
        });
        let [script, others] = [(0, "o"), (1, "t")]
            .map(|(who, byte): (usize, &str)| poke("file", ranges[who].start, &byte.repeat(ranges[who].len())));
        let document = merged(&bench, &script, &others);
        let both = ranges[0].start.max(ranges[1].start) < ranges[0].end.min(ranges[1].end);
        counts[usize::from(both)] += 1;
        let mut expected = "a".repeat(length).into_bytes();
        expected[ranges[1].clone()].fill(b't');
        if !both {
            expected[ranges[0].clone()].fill(b'o');
        }
        assert_eq!(
            document["outcome"],
            if both { "refused" } else { "committed" },
            "round {round}: {ranges:?} {document}"
        );
        assert!(fs::read(bench.path("file")).expect("it is there") == expected, "round {round}: {ranges:?}");
    }
    println!("{rounds} pairs: {} merged, {} refused", counts[0], counts[1]);
    assert!(rounds < 10 || counts.iter().all(|count| *count > 0));
}
