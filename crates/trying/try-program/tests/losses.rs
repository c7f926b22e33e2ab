//! What somebody else could lose by a commit: each of it is kept, or named before anything is done.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use support::{Bench, can_try, refusal, said, started};

fn lines(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap_or_default()
}

/// Prepares a bench and commits until a later place each time, until the commit was cut short where `is_there` says so.
fn cut_short(before: &str, script: &str, is_there: impl Fn(&Bench) -> bool) -> Bench {
    for place in 1..64 {
        let bench = Bench::new();
        bench.sh(before);
        bench.run_script(script);
        let mut command = bench.command(["commit", bench.changes().to_str().expect("text")]);
        let output = command.env("COMMUTANT_TRY_END_AT", place.to_string()).output().expect("it starts");
        assert!(output.status.code().is_none(), "the commit never came to that: {}", said(&output));
        if is_there(&bench) {
            return bench;
        }
    }
    panic!("the commit never came to that");
}

fn recover(bench: &Bench) -> std::process::Output {
    bench.run(["recover", bench.changes().to_str().expect("text")])
}

/// The only line that a recovery ends with.
fn last_line(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn what_cannot_be_put_back_is_kept() {
    if !can_try() {
        return;
    }
    for (script, others) in [
        ("echo 1 > a; echo 1 > z", "echo theirs > new; mv new a; echo theirs > z"),
        ("rm a; echo 1 > z", "echo theirs > a; echo theirs > z"),
    ] {
        let bench = cut_short("echo a > a; echo z > z", script, |bench| {
            lines(bench, "a") != "a\n" && lines(bench, "z") == "z\n"
        });
        bench.sh(others);
        for _ in 0..2 {
            let output = recover(&bench);
            assert_eq!(output.status.code(), Some(3), "{script}: {}", said(&output));
            let kept = bench.changes().join("stage/0");
            assert!(last_line(&output).contains(kept.to_str().expect("text")), "{script}: {}", said(&output));
            assert_eq!(fs::read_to_string(&kept).expect("it is kept"), "a\n", "{script}");
            assert_eq!((lines(&bench, "a"), lines(&bench, "z")), ("theirs\n".to_owned(), "theirs\n".to_owned()));
        }
        // As the line says: put away, and recovered again.
        fs::rename(bench.changes().join("stage/0"), bench.path("mine")).expect("ours");
        let output = recover(&bench);
        assert_eq!(output.status.code(), Some(1), "{script}: {}", said(&output));
        assert!(!bench.changes().join("journal.undo").exists());
        assert_eq!(lines(&bench, "mine"), "a\n");
    }
}

#[test]
fn attributes_are_undone_as_well() {
    if !can_try() {
        return;
    }
    let mode = |bench: &Bench, name: &str| fs::metadata(bench.path(name)).expect("it is there").mode() & 0o777;
    let bench = cut_short("echo a > a; echo z > z; chmod 644 a z", "chmod 600 a; chmod 600 z", |bench| {
        mode(bench, "a") == 0o600 && mode(bench, "z") == 0o644
    });
    bench.sh("echo theirs > new; chmod 640 new; mv new z");
    let output = recover(&bench);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!((mode(&bench, "a"), mode(&bench, "z")), (0o644, 0o640), "{}", said(&output));
}

#[test]
fn a_file_system_may_have_another_number_after_a_restart() {
    if !can_try() {
        return;
    }
    let bench = cut_short("echo a > a; echo r > r; echo z > z", "echo 1 > a; rm r; echo 1 > z", |bench| {
        lines(bench, "a") == "1\n" && lines(bench, "z") == "z\n"
    });
    let journal = bench.changes().join("journal");
    let text = fs::read_to_string(&journal).expect("it is there");
    let device = fs::metadata(&journal).expect("it is there").dev();
    let (body, _) = text.trim_end().rsplit_once('\n').expect("lines");
    let body = format!("{body}\n").replace(&format!(" {device} "), &format!(" {} ", device + 1));
    fs::write(&journal, format!("{body}end {}\n", blake3::hash(body.as_bytes()).to_hex())).expect("ours");
    let output = recover(&bench);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((lines(&bench, "a"), lines(&bench, "z")), ("1\n".to_owned(), "1\n".to_owned()));
    assert!(!bench.path("r").exists());
}

#[test]
fn a_recovery_takes_nothing_that_came_since() {
    if !can_try() {
        return;
    }
    for others in ["echo theirs > z/more", "echo theirs, longer > z/x", "echo theirs > z/deep/y"] {
        let bench =
            cut_short("echo a > a; mkdir -p z/deep; echo x > z/x; echo y > z/deep/y", "echo 1 > a; rm -r z", |bench| {
                lines(bench, "a") == "1\n" && bench.path("z").exists()
            });
        bench.sh(others);
        let copy = Bench::new();
        copy.sh(&format!("cp -a {}/. .; echo a > a", bench.path("").display()));
        let output = recover(&bench);
        assert_eq!(output.status.code(), Some(1), "{others}: {}", said(&output));
        assert_eq!(bench.left(), copy.left(), "{others}");
    }
}

#[test]
fn what_was_written_into_what_was_replaced_comes_back() {
    if !can_try() {
        return;
    }
    // A program that has held the old file open writes into it while the commit is cut short.
    for script in ["echo 1 > a; echo 1 > z", "rm a; echo 1 > z"] {
        let bench = cut_short("echo a > a; echo z > z", script, |bench| {
            lines(bench, "a") != "a\n" && lines(bench, "z") == "z\n"
        });
        let mut held = fs::OpenOptions::new().append(true).open(bench.changes().join("stage/0")).expect("it is there");
        held.write_all(b"theirs\n").expect("ours");
        let output = recover(&bench);
        assert_eq!(output.status.code(), Some(1), "{script}: {}", said(&output));
        assert_eq!(lines(&bench, "a"), "a\ntheirs\n", "{script}");
    }
}

#[test]
fn a_retry_never_drops_changes_of_earlier_runs() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo 1 > counter");
    bench.run_script("echo x > earlier");
    let changes = bench.changes();
    let changes = changes.to_str().expect("text");
    let increment = "read n < counter; echo $((n + 1)) > counter";
    let others = format!("cd {}; echo 10 > counter", bench.path("").display());
    let mut command = bench.command(["-y", "-N", changes, "--retry", "2", increment]);
    let output = command.env("COMMUTANT_TRY_RUN_AT_CHECK", others).output().expect("it starts");
    assert!(refusal(&output, 2).contains("holds changes of earlier runs"), "{}", said(&output));
    assert_eq!(bench.commit()["outcome"], "committed");
    assert_eq!(lines(&bench, "earlier"), "x\n");
    // Of an empty one, only the attempt's own changes go.
    let others = format!("cd {}; test -e once || {{ : > once; echo 20 > counter; }}", bench.path("").display());
    let mut command = bench.command(["-y", "-N", changes, "--retry", "2", increment]);
    let output = command.env("COMMUTANT_TRY_RUN_AT_CHECK", others).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(lines(&bench, "counter"), "21\n");
}

#[test]
fn what_the_patterns_leave_out_is_not_lost() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir -p proj/keep other; echo k > proj/keep/k; echo x > proj/x; echo o > other/o");
    let before = bench.left();
    for script in ["rm -r proj", "rm -r proj; mkdir proj; echo new > proj/new", "rm -r proj; echo file > proj"] {
        let line = refusal(&bench.run(["-y", "-E", "/keep/", script]), 2);
        assert!(line.contains("proj/keep/k is left out"), "{script}: {line}");
        assert_eq!(bench.left(), before, "{script}");
    }
    assert!(bench.run(["-y", "-E", "/keep/", "rm -r other"]).status.success());
    assert!(!bench.path("other").exists());
    // A commit of a workspace drops nothing that it held.
    bench.run_script("echo 1 > one; echo 2 > two; rm proj/x; chmod 600 proj/keep/k");
    let changes = bench.changes();
    let changes = changes.to_str().expect("text");
    for pattern in ["/two$", "/one$", "/x$", "/k$"] {
        let line = refusal(&bench.run(["commit", "-E", pattern, changes]), 2);
        assert!(line.contains("would be left out"), "{line}");
        assert!(!bench.path("one").exists());
    }
    assert!(bench.run(["commit", "-E", "/three$", changes]).status.success());
    assert!(bench.path("one").exists() && bench.path("two").exists() && !bench.path("proj/x").exists());
}

#[test]
fn what_is_mounted_below_a_directory_stays() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir -p 'outer/in ner'; echo x > outer/x");
    let program = env!("CARGO_BIN_EXE_commutant-try");
    let changes = bench.changes();
    let changes = changes.display();
    let mount = "mount -t tmpfs inner 'outer/in ner' && echo y > 'outer/in ner/y'";
    // Mounted when the commit begins.
    let script = format!(
        "{mount}; {program} -N {changes} 'rm -rf outer; true'; {program} commit {changes} && exit 9; cat outer/x 'outer/in ner/y'"
    );
    let output = started("unshare")
        .args(["-m", "sh", "-uc", &script])
        .current_dir(bench.path(""))
        .env("TRY_SHELL", "/bin/sh")
        .output()
        .expect("there is unshare");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x\ny\n", "{}", said(&output));
    assert!(last_line(&output).contains("outer/in ner is a mount"), "{}", said(&output));
    // Mounted when all is published and what was taken is about to go.
    let bench = cut_short("mkdir -p outer/inner", "rm -r outer", |bench| bench.changes().join("journal.done").exists());
    let changes = bench.changes();
    let changes = changes.display();
    let script = format!(
        "inner=$(echo {changes}/stage/*/inner); mount -t tmpfs inner $inner && echo y > $inner/y; \
         {program} recover {changes} && exit 9; cat $inner/y"
    );
    let output = started("unshare").args(["-m", "sh", "-uc", &script]).output().expect("there is unshare");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "y\n", "{}", said(&output));
    assert!(recover(&bench).status.success());
    assert!(!bench.path("outer").exists());
}

#[test]
fn a_name_of_another_workspace_stays() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir inner");
    let changes = bench.changes();
    // The name that each workspace of this name would stage its first change under, if it came from the name alone.
    let own = b"changes".iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let theirs = format!("inner/.commutant-try-{own:016x}-0");
    let script = format!(
        "mount -t tmpfs inner inner && echo old > inner/file; {program} -N {changes} 'echo new > inner/file'; \
         echo theirs > {theirs}; {program} commit {changes}; cat inner/file {theirs}; ls -A inner | wc -l",
        program = env!("CARGO_BIN_EXE_commutant-try"),
        changes = changes.display(),
    );
    let output = started("unshare")
        .args(["-m", "sh", "-uc", &script])
        .current_dir(bench.path(""))
        .env("TRY_SHELL", "/bin/sh")
        .output()
        .expect("there is unshare");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "new\ntheirs\n2\n", "{}", said(&output));
}

#[test]
fn equal_bytes_of_others_are_a_change_of_others() {
    if !can_try() {
        return;
    }
    // Both have counted from 0 to 1, at the same time as far as the clock of the file system says.
    let bench = Bench::new();
    bench.sh("echo 0 > counter");
    let count = "echo 1 > counter; touch -d 2001-01-01 counter";
    bench.run_script(&format!("read n < counter; {count}"));
    bench.sh(count);
    assert_eq!(bench.commit()["outcome"], "refused");
}

#[test]
fn a_recovery_waits_for_the_file_system_of_the_commit() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir inner");
    // A commit is cut short once it is decided; then another file system is mounted where the first one was.
    let script = format!(
        "mount -t tmpfs inner inner; echo old > inner/file; {program} -N {changes} 'echo new > inner/file'; place=0; \
         until test -e {changes}/journal; do place=$((place + 1)); COMMUTANT_TRY_END_AT=$place {program} commit {changes}; done; \
         mount -t tmpfs other inner; echo other > inner/file; {program} recover {changes}; echo $?; \
         ls {changes} | grep journal; cat inner/file; umount inner; {program} recover {changes} >/dev/null; echo $?; cat inner/file",
        program = env!("CARGO_BIN_EXE_commutant-try"),
        changes = bench.changes().display(),
    );
    let output = started("unshare")
        .args(["-m", "sh", "-uc", &script])
        .current_dir(bench.path(""))
        .env("TRY_SHELL", "/bin/sh")
        .output()
        .expect("there is unshare");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3\njournal\nother\n0\nnew\n", "{}", said(&output));
}
