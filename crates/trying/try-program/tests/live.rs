//! `--live`: who looks while a commit is made sees all of it or nothing.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{Bench, can_try, conflicts, document, refusal, said};

const FILES: usize = 200;
/// So many looks of others fall into commits; `TRY_LOOKS` says another number.
const LOOKS: usize = 1_000;

fn name(number: usize) -> String {
    format!("folder/file{number:03}")
}

/// What others have seen: how many looks, and in how many of them the first file was new and the last one not.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    looks: usize,
    torn: usize,
}

/// Looks at the first file and then at the last one, again and again, until it is over.
fn watch(bench: &Bench, new: &str, is_over: &AtomicBool) -> Seen {
    let paths = [bench.path(&name(0)), bench.path(&name(FILES - 1))];
    let mut seen = Seen::default();
    while !is_over.load(Ordering::SeqCst) {
        let is_new = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text == new);
        let first = is_new(&paths[0]);
        let last = is_new(&paths[1]);
        seen.looks += 1;
        seen.torn += usize::from(first && !last);
    }
    seen
}

/// Commits changes of all files, as often as it takes for so many looks.
fn committed_under_looks(bench: &Bench, options: &[&str], wanted: usize) -> Seen {
    bench.sh("mkdir folder; for i in $(seq 0 199); do echo 0 > folder/file$(printf %03d $i); done");
    let mut all = Seen::default();
    for round in 1.. {
        let new = format!("{round}\n");
        bench.run_script(&format!("for i in folder/*; do echo {round} > $i; done; echo {round} > folder/new{round}"));
        let is_over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch(bench, &new, &is_over));
            let document = bench.commit_with(options);
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(document["outcome"], "committed", "{document}");
            watching.join().expect("it looks")
        });
        all = Seen { looks: all.looks + seen.looks, torn: all.torn + seen.torn };
        assert!(bench.path(&format!("folder/new{round}")).exists());
        if all.looks >= wanted {
            return all;
        }
    }
    all
}

fn is_covered(bench: &Bench) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("it is there");
    table.contains(&format!("{} ", bench.path("folder").display()))
}

#[test]
fn no_look_is_torn() {
    if !can_try() {
        return;
    }
    let looks = std::env::var("TRY_LOOKS").ok().and_then(|looks| looks.parse().ok()).unwrap_or(LOOKS);
    let bench = Bench::new();
    let seen = committed_under_looks(&bench, &["--live"], looks);
    println!("--live: {} of {} looks torn", seen.torn, seen.looks);
    assert_eq!(seen.torn, 0, "{seen:?}");
    assert!(!is_covered(&bench));
}

/// What others see after each step of a commit of four files: a line of all contents for each look.
fn seen_after_steps(planted: Option<&'static str>, options: &[&str]) -> Vec<String> {
    let mut bench = Bench::new();
    bench.planted = planted;
    bench.sh("mkdir folder; for i in 1 2 3 4; do echo 0 > folder/$i; done");
    bench.run_script("for i in folder/*; do echo 1 > $i; done");
    let look = format!("cd {}; echo $(cat folder/*) >> {}/seen", bench.path("").display(), bench.folder().display());
    let mut arguments = options.to_vec();
    let changes = bench.changes();
    arguments.extend(["commit", changes.to_str().expect("text")]);
    let output = bench.command(arguments).env("COMMUTANT_TRY_RUN_AT_STEP", look).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    let seen = fs::read_to_string(bench.folder().join("seen")).expect("others have looked");
    seen.lines().map(str::to_owned).collect()
}

#[test]
fn after_each_step_all_is_new_and_without_it_is_not() {
    if !can_try() {
        return;
    }
    let by_path = ["1 0 0 0", "1 1 0 0", "1 1 1 0", "1 1 1 1"];
    assert_eq!(seen_after_steps(None, &[]), by_path, "each path has its moment");
    assert_eq!(seen_after_steps(None, &["--live"]), ["1 1 1 1"; 4]);
    let fault = "try-program: the overlay goes before the steps are made";
    assert_eq!(seen_after_steps(Some(fault), &["--live"]), by_path, "a planted fault was missed");
}

#[test]
fn a_commit_by_a_mount_leaves_what_another_one_would() {
    if !can_try() {
        return;
    }
    let before =
        "mkdir -p folder/deep folder/gone; echo 1 > folder/one; echo 2 > folder/deep/two; echo 3 > folder/gone/three";
    let script = "echo x > folder/one; rm -r folder/gone; mkdir folder/made; echo y > folder/made/y; rm folder/deep/two; \
                  rmdir folder/deep; echo z > folder/deep; chmod 700 folder; ln -s one folder/link";
    let (live, plain) = (Bench::new(), Bench::new());
    for (bench, options) in [(&live, &["--live"][..]), (&plain, &[])] {
        bench.sh(before);
        bench.run_script(script);
        assert_eq!(bench.commit_with(options)["outcome"], "committed");
    }
    assert_eq!(live.left(), plain.left());
    assert!(!is_covered(&live));
    // With -y, and a command that fails or finds others in its way.
    let output = live.run(["-y", "--live", "--json", "echo more > folder/more"]);
    assert_eq!(document(&output)["outcome"], "committed", "{}", said(&output));
    live.run_script("cat folder/more > folder/again");
    live.sh("echo theirs > folder/more");
    let refused = live.commit_with(&["--live"]);
    assert_eq!((&refused["outcome"], conflicts(&refused)), (&"refused".into(), vec!["more".to_owned()]));
    assert!(!is_covered(&live));
}

#[test]
fn who_changes_something_below_undoes_it() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir folder; echo a > folder/a; echo z > folder/z");
    bench.run_script("echo 1 > folder/a; echo 1 > folder/z");
    let mut command = bench.command(["--json", "--live", "commit", bench.changes().to_str().expect("text")]);
    let others = format!("cd {}; echo theirs > folder/z", bench.path("").display());
    let refused = document(&command.env("COMMUTANT_TRY_RUN_AT_PUBLICATION", others).output().expect("it starts"));
    assert_eq!((&refused["outcome"], conflicts(&refused)), (&"refused".into(), vec!["z".to_owned()]));
    bench.sh("test $(cat folder/a) = a; test $(cat folder/z) = theirs");
    assert!(!is_covered(&bench));
}

/// Commits until a place.
fn ended_at(bench: &Bench, place: u32) -> Output {
    let mut command = bench.command(["--live", "commit", bench.changes().to_str().expect("text")]);
    command.env("COMMUTANT_TRY_END_AT", place.to_string()).output().expect("it starts")
}

#[test]
fn a_commit_that_is_killed_is_uncovered_by_a_recovery() {
    if !can_try() {
        return;
    }
    let mut covered = 0;
    for place in 1.. {
        let bench = Bench::new();
        bench.sh("mkdir folder; echo a > folder/a; echo z > folder/z");
        bench.run_script("echo 1 > folder/a; rm folder/z; echo 1 > folder/new");
        let was_killed = ended_at(&bench, place).status.code().is_none();
        covered += usize::from(is_covered(&bench));
        let recovered = bench.run(["recover", bench.changes().to_str().expect("text")]);
        assert!(recovered.status.success(), "{place}: {}", said(&recovered));
        assert!(!is_covered(&bench), "{place}");
        assert_eq!(bench.commit_with(&["--live"])["exit_code"], 0, "{place}");
        bench.sh("test $(cat folder/a) = 1; test ! -e folder/z; test $(cat folder/new) = 1");
        if !was_killed {
            break;
        }
    }
    assert!(covered > 2, "{covered}");
}

/// A commit that was killed while its overlay lies over `above/folder`; `victim` beside it has a mount of others at the same name.
fn covered_beside_a_victim(planted: Option<&'static str>) -> Bench {
    for place in 1.. {
        let mut bench = Bench::new();
        bench.sh("mkdir -p above/folder victim/folder; echo a > above/folder/a; echo z > above/folder/z");
        bench.run_script("echo 1 > above/folder/a; rm above/folder/z");
        assert!(ended_at(&bench, place).status.code().is_none(), "it is covered before it has ended");
        if mounts(&bench).contains("above/folder ") {
            bench.sh("mount -t tmpfs theirs victim/folder; echo theirs > victim/folder/file");
            bench.planted = planted;
            return bench;
        }
        assert!(bench.run(["recover", bench.changes().to_str().expect("text")]).status.success());
    }
    unreachable!("a commit has an end")
}

/// What is mounted in the tree, and recovered of it while others do this as soon as the mount is found.
fn recovered_beside(bench: &Bench, others: &str) -> Output {
    let mut command = bench.command(["recover", bench.changes().to_str().expect("text")]);
    let once = format!("cd {} && test -e {others}", bench.path("").display());
    command.env("COMMUTANT_TRY_RUN_AT_UNCOVERING", once).output().expect("it starts")
}

fn mounts(bench: &Bench) -> String {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("it is there");
    let own = bench.path("").display().to_string();
    table.lines().filter(|line| line.contains(&own)).map(|line| format!("{line}\n")).collect()
}

/// The recovery of root unmounted what a path led to by then: who may rename a directory on the way to the overlay could put a link
/// there, and have any mount of the machine taken away.
#[test]
fn a_recovery_unmounts_nothing_but_its_own_overlay() {
    if !can_try() {
        return;
    }
    let swap = "above && mv above away && ln -s victim above";
    let unmounts_theirs = |planted| {
        let bench = covered_beside_a_victim(planted);
        let recovered = recovered_beside(&bench, swap);
        let left = mounts(&bench);
        bench.sh("umount victim/folder 2> /dev/null || true; umount away/folder 2> /dev/null || true");
        (said(&recovered), left)
    };
    let (said, left) = unmounts_theirs(None);
    assert!(left.contains("victim/folder "), "theirs has gone: {said} {left}");
    assert!(!left.contains("away/folder "), "the overlay stays: {said} {left}");
    let (said, left) = unmounts_theirs(Some("try-program: a recovery unmounts by a path"));
    assert!(!left.contains("victim/folder "), "a planted fault was missed: {said} {left}");
}

/// The recovery looked at the path at which the overlay was made, and left it for good where its directory was moved.
#[test]
fn an_overlay_goes_also_if_its_directory_was_moved() {
    if !can_try() {
        return;
    }
    let bench = covered_beside_a_victim(None);
    bench.sh("umount victim/folder; mv above away");
    let recovered = bench.run(["recover", bench.changes().to_str().expect("text")]);
    assert_eq!(mounts(&bench), "", "{}", said(&recovered));
    bench.sh("test $(cat away/folder/a) = a -a $(cat away/folder/z) = z");
}

#[test]
fn what_no_mount_can_show_is_refused_in_one_line() {
    if !can_try() {
        return;
    }
    let live = |bench: &Bench, more: &[&str]| {
        let changes = bench.changes();
        let mut arguments = vec!["--live"];
        arguments.extend(more);
        arguments.extend(["commit", changes.to_str().expect("text")]);
        bench.run(arguments)
    };
    // The workspace below the directory that would be covered.
    let bench = Bench::new();
    bench.run_script("echo x > made; echo y > ../beside");
    assert!(refusal(&live(&bench, &[]), 2).contains("with -N"));
    // No directory but the root holds both. Nothing is left in either.
    let bench = Bench::new();
    let other = Bench::below("/var/tmp".as_ref());
    if bench.path("").components().nth(1) != other.path("").components().nth(1) {
        bench.run_script(&format!("echo x > made; echo x > {}", other.path("made").display()));
        assert!(refusal(&live(&bench, &[]), 2).contains("no directory but /"));
        assert!(!bench.path("made").exists() && !other.path("made").exists());
    }
    // Merged bytes lie in no layer.
    let bench = Bench::new();
    bench.sh("mkdir folder; seq 9 > folder/list");
    let changes = bench.changes();
    let script = "sed -i s/1/one/ folder/list";
    assert!(bench.run(["--merge", "-N", changes.to_str().expect("text"), script]).status.success());
    bench.sh("echo 10 >> folder/list");
    assert!(refusal(&live(&bench, &["--merge"]), 2).contains("--merge or --live"));
    // A user's layer.
    let about = changes.join("about");
    let text = fs::read_to_string(&about).expect("it is there");
    fs::write(&about, text.replace("right root", "right user")).expect("ours");
    bench.sh("seq 9 > folder/list");
    let line = refusal(&live(&bench, &["--merge"]), 2);
    assert!(line.contains("takes root"), "{line}");
}
