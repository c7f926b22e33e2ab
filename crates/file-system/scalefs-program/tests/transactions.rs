//! `scalefs run --transaction`: all that a program and what it starts change on a mounted ScaleFS happens at one moment, or it leaves
//! no trace; it is refused where others have changed what it has seen, and only there.
#![cfg(target_os = "linux")]

mod commuting;
#[cfg(feature = "planted-faults")]
mod planted_in_transactions;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::{Mounted, Scratch, can_mount, refusal, scalefs, server_of};

/// The exit code of a program that was refused.
const REFUSED: i32 = 75;
/// How often is looked for what has to come, before it is missed.
const LOOKS: usize = 1_000;
/// How often many names are made at once, and removed.
const ROUNDS: usize = 4;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A program that is to be run in a transaction.
fn in_transaction(mounted: &Mounted, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    command.args(["run", "--transaction", "--at", mounted.place()]).args(options).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

fn outcome(mut command: Command) -> (i32, String) {
    ended(&command.output().expect("the program starts"))
}

fn ended(output: &Output) -> (i32, String) {
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code().unwrap_or(-1), said)
}

/// A program in a transaction that stops in the middle, until it may go on.
struct Halfway {
    running: Option<Child>,
    scratch: Scratch,
}

impl Halfway {
    fn new(mounted: &Mounted, options: &[&str], before: &str, after: &str) -> Halfway {
        let scratch = Scratch::new();
        let wait = "touch $READY; while ! test -e $GO; do sleep 0.01; done";
        let mut command = in_transaction(mounted, options, &format!("{before}\n{wait}\n{after}"));
        command.env("READY", scratch.path("ready")).env("GO", scratch.path("go"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut halfway = Halfway { running: Some(command.spawn().expect("the program starts")), scratch };
        let ready = halfway.scratch.path("ready");
        while !ready.exists() {
            thread::sleep(Duration::from_millis(2));
            let running = halfway.running.as_mut().expect("it runs");
            if running.try_wait().expect("ours").is_some() && !ready.exists() {
                panic!("it has ended: {:?}", halfway.end());
            }
        }
        halfway
    }

    fn process(&self) -> i32 {
        self.running.as_ref().expect("it runs").id().cast_signed()
    }

    /// Lets it go on to its end.
    fn go_on(self) -> (i32, String) {
        fs::write(self.scratch.path("go"), "").expect("our directory");
        self.end()
    }

    fn end(mut self) -> (i32, String) {
        ended(&self.running.take().expect("it runs").wait_with_output().expect("ours"))
    }
}

/// All names below a directory, in order, with what is there.
fn tree(top: &Path) -> Vec<(PathBuf, String)> {
    let (mut all, mut pending) = (Vec::new(), vec![top.to_path_buf()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("it is listed").path();
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let data = if metadata.is_file() { text(&fs::read(&path).expect("it can be read")) } else { String::new() };
            let name = path.strip_prefix(top).expect("it is below").to_path_buf();
            all.push((name, format!("{:o} {data}", metadata.mode())));
            pending.extend(metadata.is_dir().then_some(path));
        }
    }
    all.sort();
    all
}

fn mount() -> Mounted {
    Mounted::new(&["--no-cache", "--size", "16M"])
}

#[test]
fn a_file_that_is_saved_by_a_rename_is_the_old_one_and_then_the_new_one() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let letter = mounted.point.join("letter");
    fs::write(&letter, "Dear Bob").expect("there is room");
    let save = "cat letter > .letter.tmp && echo , you >> .letter.tmp && sync .letter.tmp && mv .letter.tmp letter";
    let halfway = Halfway::new(&mounted, &[], &format!("{save}; cat letter"), "");
    assert_eq!(fs::read_to_string(&letter).expect("it is there"), "Dear Bob", "a write leaks");
    assert_eq!(fs::read_dir(&mounted.point).expect("it is there").count(), 1, "a name leaks");
    assert_eq!(halfway.go_on(), (0, "Dear Bob, you\n".to_owned()));
    assert_eq!(fs::read_to_string(&letter).expect("it is there"), "Dear Bob, you\n");
    assert_eq!(fs::read_dir(&mounted.point).expect("it is there").count(), 1);
}

#[test]
fn who_looks_sees_all_or_nothing() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let (is_over, point) = (AtomicBool::new(false), mounted.point.clone());
    let seen = |round: usize, number: usize| point.join(format!("{round}-{number}")).exists();
    // Made from 1 to 40 and removed from 1 to 40: who sees the first one sees the last one then, unless all have gone.
    let is_torn = |round| seen(round, 1) && !seen(round, 40) && seen(round, 1);
    let (looks, torn) = thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let (mut looks, mut torn) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                torn += (0..ROUNDS).filter(|round| is_torn(*round)).count();
                looks += ROUNDS;
            }
            (looks, torn)
        });
        for round in 0..ROUNDS {
            for change in ["echo >", "rm"] {
                let script = format!("for n in $(seq 40); do {change} {round}-$n; done");
                assert_eq!(outcome(in_transaction(&mounted, &[], &script)), (0, String::new()));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        looker.join().expect("it looks")
    });
    println!("{torn} of {looks} looks saw a part");
    assert!(torn == 0 && looks > 0);
}

const MAKEFILE: &str =
    "all: sum\n\nsum: one.o two.o\n\tcat one.o two.o > sum\n\n%.o: %.c\n\t@sed 's/source/object/' $< > $@\n";

#[test]
fn what_make_builds_is_there_whole_or_not_at_all() {
    let has_make = Command::new("make").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can_mount() || !has_make {
        return;
    }
    let mounted = mount();
    fs::create_dir(mounted.point.join("other")).expect("there is room");
    fs::write(mounted.point.join("Makefile"), MAKEFILE).expect("there is room");
    fs::write(mounted.point.join("one.c"), "source one\n").expect("there is room");
    let before = tree(&mounted.point);
    // A source is missing: what was built before that is gone with the rest.
    let (code, said) = outcome(in_transaction(&mounted, &[], "make -s -j2 -k"));
    assert!(code != 0 && said.contains("nothing in") && said.contains("two.o"), "{code} {said}");
    assert_eq!(tree(&mounted.point), before);
    fs::write(mounted.point.join("two.c"), "source two\n").expect("there is room");
    let halfway = Halfway::new(&mounted, &[], "make -s -j2", "");
    assert!(!mounted.point.join("sum").exists() && !mounted.point.join("one.o").exists());
    // What it has not asked for may change; it has listed its own directory.
    fs::write(mounted.point.join("other/notes"), "other work\n").expect("there is room");
    let (code, said) = halfway.go_on();
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(mounted.point.join("sum")).expect("it was built"), "object one\nobject two\n");
    let again = outcome(in_transaction(&mounted, &[], "make -q"));
    assert_eq!(again.0, 0, "all is newer than what it is made of: {}", again.1);
    // A source that changes while it is built.
    let halfway = Halfway::new(&mounted, &[], "touch two.c; make -s", "");
    fs::write(mounted.point.join("one.c"), "source 1\n").expect("there is room");
    let (code, said) = halfway.go_on();
    assert!(code == REFUSED && said.contains("one.c"), "{code} {said}");
}

#[test]
fn who_conflicts_is_refused_and_who_commutes_is_not() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let put = |name: &str, words: &str| fs::write(mounted.point.join(name), words).expect("there is room");
    let got = |name: &str| fs::read_to_string(mounted.point.join(name)).expect("it is there");
    put("counter", "1\n");
    let count = "n=$(cat counter); echo $((n + 1)) > counter; echo $n > log";
    let commuting = Halfway::new(&mounted, &[], count, "");
    put("other", "in the same directory");
    assert_eq!(commuting.go_on(), (0, String::new()));
    assert_eq!((got("counter").as_str(), got("other").as_str()), ("2\n", "in the same directory"));

    let conflicting = Halfway::new(&mounted, &[], count, "");
    put("counter", "7\n");
    let (code, said) = conflicting.go_on();
    assert_eq!(code, REFUSED, "{said}");
    assert!(said.starts_with("scalefs: refused, since others have changed ") && said.contains("counter"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!((got("counter").as_str(), got("log").as_str()), ("7\n", "1\n"));

    // It begins again, on what is there now.
    let again = Halfway::new(&mounted, &["--retry", "1"], count, "");
    put("counter", "9\n");
    let (code, said) = again.go_on();
    assert!(code == 0 && said.contains("it begins again, 0 more times at most"), "{code} {said}");
    assert_eq!((got("counter").as_str(), got("log").as_str()), ("10\n", "9\n"));

    // An error that rests on what is not so any more is no error.
    let misled = Halfway::new(&mounted, &["--retry", "2"], "test $(cat counter) = 11", "test $(cat counter) = 11");
    put("counter", "11\n");
    assert_eq!(misled.go_on().0, 0);
}

#[test]
fn two_transactions_at_once_count_each_once() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("counter"), "0\n").expect("there is room");
    let count = "n=$(cat counter); echo $((n + 1)) > counter";
    let (first, second) = (Halfway::new(&mounted, &[], count, ""), Halfway::new(&mounted, &[], count, ""));
    assert_eq!(first.go_on().0, 0);
    assert_eq!(second.go_on().0, REFUSED);
    let (first, second) =
        (Halfway::new(&mounted, &[], "echo > one", ""), Halfway::new(&mounted, &[], "echo > two", ""));
    assert_eq!((first.go_on().0, second.go_on().0), (0, 0));
    // Many that begin again until they are through lose nothing.
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let (code, said) = outcome(in_transaction(&mounted, &["--retry", "200"], count));
                    assert_eq!(code, 0, "{said}");
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(mounted.point.join("counter")).expect("it is there"), "13\n");
}

/// A file is added and committed, without anybody's settings.
fn commit_of(name: &str) -> String {
    format!(
        "export HOME=/nowhere; echo {name} > {name}; git add {name}; \
         git -c user.name=a -c user.email=a@b -c gc.auto=0 commit -qm {name}"
    )
}

#[test]
fn two_commits_of_git_at_once_are_both_kept() {
    let has_git = Command::new("git").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can_mount() || !has_git {
        return;
    }
    let mounted = mount();
    let begin = format!("git init -q . && {}", commit_of("zero"));
    assert_eq!(outcome(in_transaction(&mounted, &[], &begin)), (0, String::new()));
    // Neither sees the other's lock of the index; who ends later has read what the other one has replaced.
    let first = Halfway::new(&mounted, &[], &commit_of("one"), "");
    let second = Halfway::new(&mounted, &["--retry", "1"], &commit_of("two"), "");
    assert_eq!(first.go_on(), (0, String::new()));
    let (code, said) = second.go_on();
    assert!(code == 0 && said.contains("it begins again") && said.contains(".git/"), "{code} {said}");
    let look = "export HOME=/nowhere; git log --format=%s; git status --short; git fsck 2>&1; ls";
    assert_eq!(outcome(in_transaction(&mounted, &[], look)), (0, "two\none\nzero\none\ntwo\nzero\n".to_owned()));
}

#[test]
fn the_whole_tree_of_processes_is_in_it() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    // One that its parent leaves, in a session of its own, is waited for.
    let leaves = "mkdir d; setsid sh -c 'sleep 0.3; echo late > d/late' & exit 0";
    assert_eq!(outcome(in_transaction(&mounted, &[], leaves)), (0, String::new()));
    assert_eq!(fs::read_to_string(mounted.point.join("d/late")).expect("it was waited for"), "late\n");
    let fails = "setsid sh -c 'sleep 0.3; echo late > d/later' & exit 3";
    assert_eq!(outcome(in_transaction(&mounted, &[], fails)).0, 3);
    assert!(!mounted.point.join("d/later").exists());
    // It begins in the present directory, and that is in the transaction, too.
    let mut below = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    below.args(["run", "--transaction", "--", "sh", "-c", "pwd; echo x > here"]).current_dir(mounted.point.join("d"));
    let (code, said) = outcome(below);
    assert_eq!((code, said), (0, format!("{}\n", mounted.point.join("d").display())));
    assert!(mounted.point.join("d/here").exists());
}

#[test]
fn mapped_files_appends_and_all_kinds_of_calls_are_in_it() {
    let has_python = Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can_mount() || !has_python {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("mapped"), "old words").expect("there is room");
    fs::write(mounted.point.join("log"), "first\n").expect("there is room");
    let script = r#"python3 -c '
import mmap, os
file = os.open("mapped", os.O_RDWR)
os.ftruncate(file, 5000)
memory = mmap.mmap(file, 5000)
os.close(file)
memory[0:3] = b"new"
memory[4500:4504] = b"last"
log = os.open("log", os.O_APPEND | os.O_WRONLY)
os.write(log, b"second\n")
os.link("log", "again")
os.symlink("log", "short")
os.mkfifo("pipe")
os.chmod("log", 0o640)
os.utime("again", ns=(7, 7 * 10**9))
os.rename("mapped", "moved")
os.mkdir("d")
os.rename("d", "e")
kept = os.open("gone", os.O_CREAT | os.O_RDWR)
os.unlink("gone")
os.write(kept, b"unseen")
print(os.pread(kept, 10, 0), os.stat("log").st_nlink, os.readlink("short"), sorted(os.listdir(".")))
memory[1000:1002] = b"by"
'"#;
    let (code, said) = outcome(in_transaction(&mounted, &[], script));
    let expected = "b'unseen' 2 log ['again', 'e', 'log', 'moved', 'pipe', 'short']\n";
    assert_eq!((code, said.as_str()), (0, expected));
    let moved = fs::read(mounted.point.join("moved")).expect("it is there");
    assert_eq!(
        (moved.len(), &moved[..9], &moved[1000..1002], &moved[4500..4504]),
        (5000, &b"new words"[..], &b"by"[..], &b"last"[..])
    );
    let log = fs::metadata(mounted.point.join("log")).expect("it is there");
    assert_eq!((log.mode() & 0o7777, log.nlink(), log.mtime()), (0o640, 2, 7));
    assert_eq!(fs::read_to_string(mounted.point.join("again")).expect("it is there"), "first\nsecond\n");
    // A file that others have open to append to goes on at the end that it has by then.
    let mut appends = fs::OpenOptions::new().append(true).open(mounted.point.join("log")).expect("it is there");
    assert_eq!(outcome(in_transaction(&mounted, &[], "echo third >> log")).0, 0);
    appends.write_all(b"fourth\n").expect("there is room");
    let log = fs::read_to_string(mounted.point.join("log")).expect("it is there");
    assert_eq!(log, "first\nsecond\nthird\nfourth\n");
    // A transaction that has seen a file mapped rests on it.
    let map =
        r#"python3 -c 'import mmap, os; print(mmap.mmap(os.open("moved", 0), 0, prot=mmap.PROT_READ)[:3])' > copy"#;
    let halfway = Halfway::new(&mounted, &[], map, "");
    fs::write(mounted.point.join("moved"), "others").expect("there is room");
    assert_eq!(halfway.go_on().0, REFUSED);
}

#[test]
fn who_has_mapped_a_file_sees_what_was_committed() {
    let has_python = Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can_mount() || !has_python {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("mapped"), "old words").expect("there is room");
    let script = r#"
import mmap, os, sys
memory = mmap.mmap(os.open("mapped", os.O_RDONLY), 0, prot=mmap.PROT_READ)
print(memory[:3], flush=True)
sys.stdin.readline()
print(memory[:3])
"#;
    let mut others = Command::new("python3");
    others.args(["-c", script]).current_dir(&mounted.point).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut others = others.spawn().expect("there is Python");
    let mut said = BufReader::new(others.stdout.take().expect("piped")).lines();
    let mut next = || said.next().expect("a line").expect("it can be read");
    assert_eq!(next(), "b'old'");
    let change = "printf new | dd of=mapped conv=notrunc status=none";
    assert_eq!(outcome(in_transaction(&mounted, &[], change)), (0, String::new()));
    drop(others.stdin.take());
    assert_eq!(next(), "b'new'");
    assert!(others.wait().expect("ours").success());
}

#[test]
fn signals_reach_the_program_and_are_not_blocked() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let (code, said) = outcome(in_transaction(&mounted, &[], "grep SigBlk /proc/self/status"));
    assert_eq!((code, said.as_str()), (0, "SigBlk:\t0000000000000000\n"));
    let halfway = Halfway::new(&mounted, &[], "trap 'echo heard; exit 4' TERM; echo > new", "");
    kill(Pid::from_raw(halfway.process()), Signal::SIGTERM).expect("it lives");
    let (code, said) = halfway.end();
    assert!(code == 4 && said.starts_with("heard\n"), "{code} {said}");
    assert!(!mounted.point.join("new").exists());
}

#[test]
fn nothing_is_left_of_what_fails() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("kept"), "as it was").expect("there is room");
    let used = || {
        let space = nix::sys::statvfs::statvfs(&mounted.point).expect("it is mounted");
        (space.files() - space.files_free(), space.blocks() - space.blocks_free())
    };
    // What was given up is free when each core has been seen.
    let comes_back_to = |before| (0..LOOKS).any(|_| used() == before);
    let (before, all) = (used(), tree(&mounted.point));
    let changes = "echo other > kept; mkdir -p a/b; head -c 1000000 /dev/zero > a/b/large; rm kept; mv a c";
    for end in ["exit 1", "kill -9 $$", "echo > /dev/full"] {
        let (code, said) = outcome(in_transaction(&mounted, &[], &format!("{changes}; {end}")));
        assert!(code != 0 && said.contains("not committed"), "{code} {said}");
        assert_eq!(tree(&mounted.point), all, "{end}");
    }
    // A refused one, too.
    let halfway = Halfway::new(&mounted, &[], &format!("cat kept; {changes}"), "");
    fs::write(mounted.point.join("kept"), "by others").expect("there is room");
    assert_eq!(halfway.go_on().0, REFUSED);
    fs::write(mounted.point.join("kept"), "as it was").expect("there is room");
    assert_eq!(tree(&mounted.point), all);
    assert!(comes_back_to(before), "room is lost: {before:?} and now {:?}", used());
    // More than there is room for: the program gets the error, and the instance works.
    let (code, said) = outcome(in_transaction(&mounted, &[], "head -c 40000000 /dev/zero > full"));
    assert!(code != 0 && said.contains("No space left"), "{code} {said}");
    assert!(comes_back_to(before), "room is lost: {before:?} and now {:?}", used());
}

#[test]
fn who_is_killed_leaves_nothing() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("kept"), "as it was").expect("there is room");
    let all = tree(&mounted.point);
    let changes = "echo other > kept; echo > new; echo $$ > $READY.shell";
    // The program.
    let halfway = Halfway::new(&mounted, &[], changes, "");
    let shell = fs::read_to_string(halfway.scratch.path("ready.shell")).expect("it has said so");
    kill(Pid::from_raw(shell.trim().parse().expect("a number")), Signal::SIGKILL).expect("it lives");
    let (code, said) = halfway.end();
    assert!(code == 137 && said.contains("not committed, since sh ended with 137"), "{code} {said}");
    assert_eq!(tree(&mounted.point), all);
    // Who waits for it: calls that the program makes then fail, once the server has heard of it.
    let until_refused = "while echo > new; do sleep 0.01; done; echo refused > $READY.refused";
    let mut halfway = Halfway::new(&mounted, &[], changes, until_refused);
    kill(Pid::from_raw(halfway.process()), Signal::SIGKILL).expect("it lives");
    let status = halfway.running.as_mut().expect("it runs").wait().expect("ours");
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    fs::write(halfway.scratch.path("go"), "").expect("our directory");
    while !halfway.scratch.path("ready.refused").exists() {
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(tree(&mounted.point), all);
    // The server: with it the instance ends, and who waits says so in one line, whatever the program does.
    let halfway = Halfway::new(&mounted, &[], changes, "sleep 1000");
    kill(Pid::from_raw(server_of(&mounted.point)), Signal::SIGKILL).expect("it lives");
    let (code, said) = halfway.end();
    assert!(code == 1 && said.contains("has ended, and with it what was in memory"), "{code} {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn what_cannot_be_is_said_in_one_line_and_changes_nothing() {
    let scratch = Scratch::new();
    let place = scratch.0.to_str().expect("plain letters").to_owned();
    let refused = |arguments: &[&str]| {
        let output = scalefs(&[&["run", "--transaction"], arguments].concat());
        (output.status.code(), refusal(&output))
    };
    assert!(refused(&["--at", &place, "--", "true"]).1.contains("lies in no ScaleFS that is mounted"));
    assert!(refused(&["--at", "/no/such/place", "--", "true"]).1.contains("does not exist"));
    assert!(refused(&["--at", "/proc/self/status", "--", "true"]).1.contains("is no directory"));
    assert!(refused(&["--at", &place]).1.contains("expected a program after --"));
    assert!(refused(&["--at", &place, "--from", ".", "--", "true"]).1.contains("--from is for a new tree"));
    if !can_mount() {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("data"), "no program").expect("there is room");
    let all = tree(&mounted.point);
    let at = mounted.place();
    let (code, said) = refused(&["--at", at, "--", "no-such-program"]);
    assert!(code == Some(127) && said.contains("there is no such program"), "{said}");
    let (code, said) = refused(&["--at", at, "--", "./data"]);
    assert!(code == Some(126) && said.contains("Permission denied"), "{said}");
    // One within another.
    let own = env!("CARGO_BIN_EXE_scalefs");
    let (code, said) = outcome(in_transaction(&mounted, &[], &format!("echo > x; {own} run --transaction -- true")));
    assert!(code == 1 && said.contains("is seen in a transaction: one within another cannot be"), "{said}");
    // What is open already would not be in it.
    let mut command = in_transaction(&mounted, &[], "true");
    command.stdin(fs::File::open(mounted.point.join("data")).expect("it is there"));
    assert!(refusal(&command.output().expect("it starts")).contains("descriptor 0 is open in"));
    assert_eq!(tree(&mounted.point), all);
    // Where the kernel keeps what others change.
    let cached = Mounted::new(&[]);
    let said = refusal(&in_transaction(&cached, &[], "echo > x").output().expect("it starts"));
    assert!(said.contains("mount it by scalefs mount --no-cache"), "{said}");
    assert_eq!(tree(&cached.point), []);
}

/// All children are waited for before the transaction ends, and these are not the program's.
#[test]
fn children_from_before_are_not_waited_for() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let program = env!("CARGO_BIN_EXE_scalefs");
    let script = format!(
        "sleep 60 >/dev/null 2>&1 & echo $!; exec {program} run --transaction --at {} -- true",
        mounted.place()
    );
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().expect("there is a shell");
    let sleeping = text(&output.stdout).trim().parse().expect("a number");
    kill(Pid::from_raw(sleeping), Signal::SIGKILL).expect("it sleeps");
    assert!(refusal(&output).contains("expected no children of the shell"));
}

#[test]
fn an_instance_that_is_to_end_waits_for_it() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let to = scratch.path("out");
    let mounted = Mounted::new(&["--no-cache", "--to", to.to_str().expect("plain letters")]);
    let halfway = Halfway::new(&mounted, &[], "echo word > file", "");
    let lazily = scalefs(&["unmount", "--lazy", mounted.place()]);
    assert!(lazily.status.success(), "{}", text(&lazily.stderr));
    assert_eq!(halfway.go_on(), (0, String::new()));
    // It ends with its last user, and is copied out then.
    while !to.join("file").exists() {
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_signal_of_real_time_ends_a_process_as_any_other_does() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let (code, said) = outcome(in_transaction(&mounted, &[], "kill -34 $$"));
    assert!(code == 162 && said.contains("not committed, since sh ended with 162"), "{code} {said}");
    let (code, said) = outcome(in_transaction(&mounted, &[], "sh -c 'kill -34 $$'; echo after > after"));
    assert_eq!(code, 0, "{said}");
    assert!(mounted.point.join("after").exists());
}

#[test]
fn a_part_that_is_mounted_elsewhere_is_not_taken_for_all() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let (part, elsewhere) = (mounted.point.join("part"), mounted.scratch.path("elsewhere"));
    fs::create_dir(&part).expect("there is room");
    fs::create_dir(&elsewhere).expect("our directory");
    let bound = Command::new("mount").arg("--bind").args([&part, &elsewhere]).status();
    assert!(bound.is_ok_and(|status| status.success()));
    let all = tree(&mounted.point);
    let at = elsewhere.to_str().expect("plain letters");
    let output = scalefs(&["run", "--transaction", "--at", at, "--", "sh", "-c", "echo > made"]);
    let unbound = Command::new("umount").arg(&elsewhere).status();
    assert!(unbound.is_ok_and(|status| status.success()));
    assert!(refusal(&output).contains("shows /part of a ScaleFS alone"));
    assert_eq!(tree(&mounted.point), all);
}

#[test]
fn what_may_not_be_executed_is_said_not_to_be() {
    let has_python = Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can_mount() || !has_python {
        return;
    }
    let mounted = mount();
    fs::write(mounted.point.join("words"), "no program").expect("there is room");
    let ask =
        "python3 -c 'import os; print([os.access(\"words\", way) for way in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)])'";
    let halfway = Halfway::new(&mounted, &[], ask, &format!("chmod +x words; {ask}"));
    assert_eq!(halfway.go_on(), (0, "[True, True, True, False]\n[True, True, True, True]\n".to_owned()));
}

#[test]
fn who_is_asked_to_end_asks_those_whom_the_program_has_left_and_does_not_begin_again() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let leaves = "setsid sh -c 'trap \"exit 0\" TERM; touch $READY.left; while :; do sleep 0.01; done' & exit 3";
    let scratch = Scratch::new();
    let mut command = in_transaction(&mounted, &[], leaves);
    command.env("READY", scratch.path("ready"));
    let mut running = command.spawn().expect("the program starts");
    let is_waited_for = |number: u32| {
        let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
        let command = |child: &str| fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        children.split_whitespace().any(|child| command(child).starts_with("sh\0-c\0trap"))
    };
    while !(scratch.path("ready.left").exists() && is_waited_for(running.id())) {
        thread::sleep(Duration::from_millis(2));
    }
    let mut has_ended = false;
    for _ in 0..LOOKS {
        kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGINT).expect("ours");
        thread::sleep(Duration::from_millis(5));
        has_ended |= running.try_wait().expect("ours").is_some();
        if has_ended {
            break;
        }
    }
    running.kill().expect("ours");
    assert_eq!((has_ended, running.wait().expect("ours").code()), (true, Some(3)));

    fs::write(mounted.point.join("counter"), "1").expect("there is room");
    let halfway = Halfway::new(&mounted, &["--retry", "1"], "trap 'exit 4' TERM; cat counter", "");
    fs::write(mounted.point.join("counter"), "7").expect("there is room");
    kill(Pid::from_raw(halfway.process()), Signal::SIGTERM).expect("it lives");
    fs::write(halfway.scratch.path("go"), "").expect("our directory");
    let (code, said) = halfway.end();
    assert!(code == REFUSED && !said.contains("begins again"), "{code} {said}");
}

#[test]
fn a_name_that_another_has_taken_keeps_nothing_from_being_mounted() {
    // In a network of its own: servers of other tests at this time want such names, too.
    let mut alone = Command::new("unshare");
    alone.args(["--net", "--", "python3"]);
    let has_both = alone.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !can_mount() || !has_both {
        return;
    }
    // All the numbers that its server can get soon.
    let script = r#"
import os, socket, subprocess, sys
taken = []
for number in range(os.getpid(), os.getpid() + 900):
    taken.append(socket.socket(socket.AF_UNIX))
    try: taken[-1].bind("\0scalefs-mount/%d" % number); taken[-1].listen()
    except OSError: pass
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"#;
    let scratch = Scratch::new();
    let (point, own) = (scratch.0.to_str().expect("plain letters"), env!("CARGO_BIN_EXE_scalefs"));
    let mut alone = Command::new("unshare");
    alone.args(["--net", "--", "python3", "-c", script, own, "mount", "--no-cache", point]);
    let output = alone.output();
    let output = output.expect("there is Python");
    let said = text(&output.stderr);
    let unmounted = scalefs(&["unmount", point]);
    assert!(output.status.success() && said.contains("no transactions here"), "{said}");
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
}

/// A thread of a server: how often it has given its processor away by itself, which one that asks again and again never does.
fn waits_of(server: i32, name: &str) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{server}/task")).expect("it lives");
    let mut folders = threads.flatten().map(|thread| thread.path());
    let folder = folders.find(|folder| fs::read_to_string(folder.join("comm")).is_ok_and(|own| own.trim() == name))?;
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// `accept` fails at once where no descriptor is left, also if nobody calls: the server asked again without a pause, with all of a
/// processor.
#[test]
fn a_server_without_descriptors_waits_and_then_serves_again() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let server = server_of(&mounted.point);
    let limit = |descriptors: &str| {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &server.to_string(), &format!("--nofile={descriptors}:")]);
        assert!(command.status().expect("util-linux is there").success());
    };
    limit("3");
    // It waits with a descriptor already; the next one is refused.
    let (code, said) = outcome(in_transaction(&mounted, &[], "true"));
    assert!(code == 1 && said.starts_with("scalefs: "), "{code} {said}");
    let before = waits_of(server, "transactions").expect("there is such a thread");
    let waits = (0..LOOKS).any(|_| {
        thread::sleep(Duration::from_millis(5));
        waits_of(server, "transactions").is_some_and(|now| now >= before + 3)
    });
    assert!(waits, "it asks again and again");
    limit("1024");
    let served = (0..LOOKS).any(|_| {
        let (code, said) = outcome(in_transaction(&mounted, &[], "echo > new"));
        assert!(code == 0 || said.lines().count() == 1, "{said}");
        code == 0
    });
    assert!(served && mounted.point.join("new").exists());
}

/// A process that was started, and its server, which is stopped until this goes.
struct Stopped(i32);

impl Stopped {
    fn new(server: i32) -> Stopped {
        kill(Pid::from_raw(server), Signal::SIGSTOP).expect("it lives");
        Stopped(server)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0), Signal::SIGCONT);
    }
}

/// Signals were blocked while the server's answer was waited for: of a server that was stopped nothing but SIGKILL ended the waiting.
#[test]
fn who_waits_for_a_server_that_is_stopped_can_be_ended() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    for (end, last) in [("exit 0", "it may happen yet"), ("exit 3", "not committed, since sh ended with 3")] {
        let mut halfway = Halfway::new(&mounted, &[], "echo > new", &format!("cd /; {end}"));
        let stopped = Stopped::new(server_of(&mounted.point));
        fs::write(halfway.scratch.path("go"), "").expect("our directory");
        let (number, running) = (halfway.process(), halfway.running.as_mut().expect("it runs"));
        let children = format!("/proc/{number}/task/{number}/children");
        while !fs::read_to_string(&children).expect("it lives").is_empty() {
            thread::sleep(Duration::from_millis(2));
        }
        // The first one may come when the end of the program was not noticed yet.
        let has_ended = (0..LOOKS).any(|_| {
            let _ = kill(Pid::from_raw(number), Signal::SIGTERM);
            thread::sleep(Duration::from_millis(5));
            running.try_wait().expect("ours").is_some()
        });
        let _ = running.kill();
        drop(stopped);
        let (code, said) = halfway.end();
        assert!(has_ended, "it waits");
        assert!(said.contains(last) && said.lines().count() == 1, "{said}");
        assert_eq!(code, if end == "exit 0" { 128 + Signal::SIGTERM as i32 } else { 3 });
        let (code, said) = outcome(in_transaction(&mounted, &[], "rm -f new"));
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn a_user_who_is_not_root_is_refused_in_one_line() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    fs::set_permissions(&mounted.point, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("root may");
    let mut command = in_transaction(&mounted, &[], "echo > new");
    let scratch = Scratch::new();
    // The user may not reach the folder in which the program was built.
    let own = scratch.path("scalefs");
    fs::copy(command.get_program(), &own).expect("there is room");
    for path in [scratch.0.clone(), mounted.scratch.0.clone(), own.clone()] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    }
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(own);
    std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    let said = refusal(&command.args(arguments).current_dir("/").output().expect("it starts"));
    assert!(said.contains("expected root"), "{said}");
    assert!(!mounted.point.join("new").exists());
}
