//! Who looks after a tree: how it is found and asked, that another takes its place, and that a tree stays whole, whoever is killed.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Numbers, Scratch, compiled, refusal, scalefs};

/// So long something may take that is to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// As long as a survivor of a kill may wait for anything, on a machine with much other work, too.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What deaths may cost: of many kills few come between two stores, and of these few while a stack of pages is taken (16 and more).
const MOST_PAGES_LOST: i64 = 64;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A tree that runs in the background, whose processes are ended with this.
struct Running {
    name: String,
    hidden: Scratch,
    child: Child,
}

impl Running {
    fn start(word: &str, options: &[&str], program: &[&str]) -> Running {
        Running::start_with(word, options, program, &[])
    }

    /// With variables.
    fn start_with(word: &str, options: &[&str], program: &[&str], variables: &[(&str, &str)]) -> Running {
        let (hidden, name) = (Scratch::new(), format!("{word}-{}", std::process::id()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
        command.args(["run", "--size", "16M", "--instance", &name]).args(options).arg("--at").arg(&hidden.0);
        command.arg("--").args(program).envs(variables.iter().copied());
        let child = command.stdin(Stdio::null()).spawn().expect("it starts");
        let running = Running { name, hidden, child };
        // The name is taken before the first process is there.
        running.wait_for("a first process", || running.processes() > 0);
        running
    }

    fn wait_for(&self, what: &str, mut has_come: impl FnMut() -> bool) {
        let started = Instant::now();
        while !has_come() {
            assert!(started.elapsed() < PATIENCE, "{}: waited in vain for {what}", self.name);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        scalefs(&[arguments, &["--instance", &self.name]].concat())
    }

    /// A number in the line of `scalefs status`.
    fn status(&self, column: usize) -> Option<i32> {
        let said = text(&self.ask(&["status"]).stdout);
        said.lines().find(|line| line.contains(&self.name))?.split_whitespace().nth(column)?.parse().ok()
    }

    fn supervisor(&self) -> Option<i32> {
        self.status(0)
    }

    fn processes(&self) -> i32 {
        self.status(4).unwrap_or(0)
    }

    fn is_there(&self) -> bool {
        self.ask(&["status"]).status.success()
    }

    /// What `status --check` says, and whether all is whole.
    fn check(&self) -> (bool, String) {
        let output = self.ask(&["status", "--check"]);
        (output.status.success(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    }

    #[track_caller]
    fn assert_whole(&self) {
        let (is_whole, said) = self.check();
        assert!(is_whole && said.contains("whole: "), "{said}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask(&["stop"]);
        let _ = self.child.wait();
    }
}

/// The numbers of all processes that have a parent among these, and of these.
fn family_of(first: i32) -> Vec<i32> {
    let mut found = vec![first];
    let mut index = 0;
    while index < found.len() {
        let list = format!("/proc/{0}/task/{0}/children", found[index]);
        let children = fs::read_to_string(list).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|number| number.parse::<i32>().ok()));
        index += 1;
    }
    found
}

/// Whether a process waits to take another's place.
fn is_heir(process: &i32) -> bool {
    fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|words| words.contains("run-heir"))
}

#[test]
fn a_tree_has_a_name_and_can_be_asked_and_stopped() {
    let mut running = Running::start("named", &[], &["sh", "-c", "echo words > file; sleep 100 & wait"]);
    running.wait_for("two processes", || running.processes() == 2);
    let listed = text(&scalefs(&["status"]).stdout);
    let line = listed.lines().find(|line| line.contains(&running.name)).expect("it is listed");
    assert!(line.ends_with(running.hidden.0.to_str().expect("plain letters")), "{listed}");
    running.assert_whole();
    let again = scalefs(&["run", "--instance", &running.name, "--", "true"]);
    assert!(refusal(&again).contains("there is such a tree"));
    let none = scalefs(&["status", "--check", "--instance", "no-such-tree"]);
    assert!(refusal(&none).contains("there is no tree no-such-tree"));
    assert!(refusal(&scalefs(&["stop", "--instance", "no-such-tree"])).contains("there is no tree"));
    assert!(running.ask(&["stop"]).status.success());
    assert_eq!(running.child.wait().expect("ours").code(), Some(128 + Signal::SIGTERM as i32));
    assert!(!running.is_there());
}

/// Who hears no TERM is killed.
#[test]
fn a_tree_that_does_not_stop_is_killed() {
    let running = Running::start("stubborn", &[], &["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]);
    assert!(running.ask(&["stop"]).status.success());
    assert!(!running.is_there());
}

/// A supervisor is killed, its heir, and the heir of that: each time another looks after the tree, which is whole, and the last one copies
/// it out.
#[test]
fn a_supervisor_that_is_killed_gets_a_successor() {
    let results = Scratch::new();
    let to = results.path("result");
    let script = "echo words > kept; i=0; while :; do i=$((i+1)); echo $i > f$0; mv f$0 g$0; rm g$0; done";
    let options = ["--to", to.to_str().expect("plain letters")];
    let running =
        Running::start("followed", &options, &["sh", "-c", &format!("sh -c '{script}' a & exec sh -c '{script}' b")]);
    running.wait_for("two processes", || running.processes() >= 2);
    for _ in 0..3 {
        let supervisor = running.supervisor().expect("it is asked");
        let heir = || family_of(supervisor).into_iter().skip(1).find(is_heir);
        running.wait_for("an heir", || heir().is_some());
        // It has begun to wait.
        thread::sleep(Duration::from_millis(200));
        kill(Pid::from_raw(supervisor), Signal::SIGKILL).expect("it runs");
        running.wait_for("a successor", || running.supervisor().is_some_and(|now| now != supervisor));
        running.assert_whole();
    }
    assert!(running.processes() >= 2);
    // One of the tree's processes is repaired by the successor, as by the first.
    assert!(running.ask(&["stop"]).status.success());
    running.wait_for("the end", || !running.is_there());
    assert_eq!(fs::read_to_string(to.join("kept")).expect("copied out"), "words\n");
}

/// A supervisor that is stopped is listed as such, and holds no one up; who waits for its end when it is killed waits for its heir's.
#[test]
fn a_supervisor_that_does_not_answer_is_said_and_one_that_is_killed_is_waited_for() {
    let running = Running::start("paused", &[], &["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]);
    let supervisor = Pid::from_raw(running.supervisor().expect("it is asked"));
    let heir = || family_of(supervisor.as_raw()).into_iter().skip(1).find(is_heir);
    running.wait_for("an heir", || heir().is_some());
    // It has begun to wait.
    thread::sleep(Duration::from_millis(200));
    kill(supervisor, Signal::SIGSTOP).expect("it runs");
    let listed = text(&scalefs(&["status"]).stdout);
    let line = listed.lines().find(|line| line.contains(&running.name));
    assert!(line.is_some_and(|line| line.contains("does not answer")), "{listed}");
    assert!(refusal(&running.ask(&["stop"])).contains("does not answer"));
    kill(supervisor, Signal::SIGCONT).expect("it runs");
    running.wait_for("an answer", || running.supervisor().is_some());
    let mut stopping = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    let mut stopping = stopping.args(["stop", "--instance", &running.name]).spawn().expect("it starts");
    thread::sleep(Duration::from_millis(500));
    kill(supervisor, Signal::SIGKILL).expect("it runs");
    assert!(stopping.wait().expect("ours").success());
    assert!(!running.is_there());
}

/// Who comes while a tree is copied out is answered, and hears of the end after it.
#[test]
fn a_tree_that_is_copied_out_answers_and_is_waited_for() {
    let results = Scratch::new();
    let to = results.path("result");
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i > f$i; done; echo made > last; sleep 100";
    let options = ["--to", to.to_str().expect("plain letters")];
    let running = Running::start("copied", &options, &["sh", "-c", script]);
    running.wait_for("the files", || running.status(3).is_some_and(|files| files > 3000));
    let stops: Vec<bool> = thread::scope(|scope| {
        let stops = (0..20).map(|number| {
            thread::sleep(Duration::from_millis(number));
            let running = &running;
            scope.spawn(move || {
                let output = running.ask(&["stop"]);
                output.status.success() || refusal(&output).contains("there is no tree")
            })
        });
        stops.collect::<Vec<_>>().into_iter().map(|stop| stop.join().expect("it ends")).collect()
    });
    assert!(stops.iter().all(|is_well| *is_well), "{stops:?}");
    assert_eq!(fs::read_dir(&to).expect("copied out by now").count(), 3001);
    assert!(!running.is_there());
}

/// An heir that is killed is followed by another one.
#[test]
fn an_heir_that_is_killed_is_replaced() {
    let running = Running::start("inherited", &[], &["sleep", "100"]);
    let supervisor = running.supervisor().expect("it is asked");
    let heir = || family_of(supervisor).into_iter().skip(1).find(is_heir);
    running.wait_for("an heir", || heir().is_some());
    thread::sleep(Duration::from_millis(300));
    let first = heir().expect("there is one");
    kill(Pid::from_raw(first), Signal::SIGKILL).expect("it runs");
    running.wait_for("another heir", || heir().is_some_and(|now| now != first));
    running.assert_whole();
}

/// Whether nothing is wrong but that something is reached by no one, or counted once too often, or a page is lost that was taken and not
/// yet stored: a death between two stores can cost that (see `docs/reference/scalefs.md` and crate `pages`).
fn is_whole_but_for_losses(said: &str) -> bool {
    let numbers = |line: &str| {
        let words = line.split([' ', ',']).filter_map(|word| word.parse::<i64>().ok());
        words.collect::<Vec<_>>()
    };
    let is_loss = |line: &str| match numbers(line)[..] {
        [there, reached] => line.ends_with(" are reached") && there > reached,
        [_, names, counted] if line.contains(" names, and counts ") => names < counted,
        [total, free, used] if line.contains(" are free, and ") => {
            (1..=MOST_PAGES_LOST).contains(&(total - free - used))
        }
        _ => false,
    };
    let (first, last) = (said.lines().next().unwrap_or_default(), said.lines().last().unwrap_or_default());
    let middle = said.lines().skip(1).take(said.lines().count().saturating_sub(2));
    first.contains(": whole: ") || last.ends_with(": damaged") && middle.into_iter().all(is_loss)
}

/// What a look says once the last who was killed is buried: that takes the supervisor a moment.
fn said_in_the_end(running: &Running) -> String {
    let started = Instant::now();
    loop {
        let (_, said) = running.check();
        if is_whole_but_for_losses(&said) || started.elapsed() > PATIENCE {
            return said;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Processes change one directory, and each time any of them is killed; the tree is whole, and no one waits for the dead.
/// `SCALEFS_KILLS` says how often.
#[test]
fn killed_processes_leave_a_whole_tree() {
    let kills = std::env::var("SCALEFS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let seed = std::env::var("SCALEFS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2013);
    let script = r"mkdir d; work() { i=0; while :; do i=$((i+1)); f=d/$1-$((i%7)); echo $i > $f; ln $f l$f 2> /dev/null; mv $f d/m$((i%5))
        mkdir d/n$1 2> /dev/null; mv d/m$((i%5)) d/n$1/x 2> /dev/null; rm -rf d/n$1; rm -f ld/*; done; }
        for v in a b c; do while :; do (work $v) 2> /dev/null; done & done; wait";
    let running = Running::start("killed", &["--size", "32M"], &["bash", "-c", script]);
    let (mut numbers, mut killed) = (Numbers(seed), 0);
    let supervisor = running.supervisor().expect("it is asked");
    let first = family_of(supervisor)[1..].iter().copied().find(|process| !is_heir(process)).expect("bash");
    let started = Instant::now();
    while killed < kills {
        thread::sleep(Duration::from_micros(500 + numbers.below(8000)));
        // The first three of the family stay, which begin others again.
        let victims: Vec<i32> = family_of(first).into_iter().skip(4).collect();
        if victims.is_empty() {
            continue;
        }
        let victim = victims[numbers.below(victims.len() as u64) as usize];
        if kill(Pid::from_raw(victim), Signal::SIGKILL).is_ok() {
            killed += 1;
        }
        if killed % 20 == 0 {
            let began = Instant::now();
            let said = said_in_the_end(&running);
            assert!(is_whole_but_for_losses(&said), "after {killed} kills, with SCALEFS_SEED={seed}: {said}");
            assert!(began.elapsed() < LONGEST_WAIT, "a look took {:?}", began.elapsed());
        }
    }
    let said = said_in_the_end(&running);
    println!("{killed} kills in {:?}: {said}", started.elapsed());
    assert!(is_whole_but_for_losses(&said), "after all kills, with SCALEFS_SEED={seed}: {said}");
}

/// A child is killed before it has received its process, by its parent and with it: what was for it is closed.
#[cfg(feature = "planted-faults")]
#[test]
fn a_child_that_is_killed_before_it_has_its_process_leaves_nothing() {
    const KILLS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int status, file = open("f", O_CREAT | O_RDWR, 0644), parent;
    static char bytes[1500000];
    write(file, bytes, sizeof bytes);
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        if (!WIFSIGNALED(status)) return 1;
    }
    if ((parent = fork()) == 0) {
        pid_t child = fork();
        kill(child, SIGKILL);
        raise(SIGKILL);
    }
    waitpid(parent, 0, 0);
    unlink("f");
    close(file);
    sleep(2);
    /* No child has the file open any more: there is room for another one. */
    int other = open("other", O_CREAT | O_RDWR, 0644);
    if (write(other, bytes, sizeof bytes) == sizeof bytes) creat(words[1], 0644);
    for (;;) pause();
}
"#;
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, KILLS, &[]) else { return };
    let fault = "shim: a child receives its process late";
    let done = scratch.path("done");
    let words = [&program, &done].map(|path| path.to_str().expect("plain letters"));
    let running = Running::start_with("unborn", &["--size", "2M"], &words, &[("COMMUTANT_PLANTED_FAULT", fault)]);
    running.wait_for("the end of its work", || done.exists());
    let said = said_in_the_end(&running);
    assert!(is_whole_but_for_losses(&said), "{said}");
}

/// Who attaches to a process of a tree, and leaves it, sees its calls; it goes on.
#[test]
fn a_tracer_may_come_later() {
    // The one stays until it is interrupted.
    for (tool, arguments) in [
        ("strace", &["-s", "INT", "2", "strace", "-f", "-o", "/dev/null", "-p"][..]),
        ("gdb", &["100", "gdb", "-batch", "-nx", "-ex", "detach", "-p"]),
    ] {
        if Command::new(tool).arg("--version").output().is_err() {
            eprintln!("not tested: {tool} is not installed");
            continue;
        }
        let script = "i=0; while :; do i=$((i+1)); echo $i > f; mv f g; done";
        let running = Running::start("traced", &[], &["bash", "-c", script]);
        let supervisor = running.supervisor().expect("it is asked");
        let program = || family_of(supervisor)[1..].iter().copied().find(|process| !is_heir(process));
        let process = program().expect("bash");
        let mut command = Command::new("timeout");
        let output = command.args(arguments).arg(process.to_string()).stdin(Stdio::null()).output().expect("it starts");
        assert!(!text(&output.stderr).contains("not permitted"), "{tool}: {}", text(&output.stderr));
        assert_eq!(program(), Some(process), "{tool}: it runs");
        let read = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let (before, state) = (read(), |stat: &str| stat.rsplit(") ").next().map(|rest| rest[..1].to_owned()));
        running.wait_for("its work to go on", || read() != before && state(&read()).is_some_and(|state| state != "t"));
        running.assert_whole();
    }
}

/// Stores of a program into the memory of the instance are damage, and are said; they end no one else.
#[test]
fn a_wild_store_is_found() {
    const WILD: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    /* Where the instance lies: its arena is looked through for the name, which stands in an entry before its value. */
    unsigned char *from = (unsigned char *)0x620000200000, *to = from + (48 << 20);
    close(open("a-name-of-its-own", O_CREAT | O_WRONLY, 0644));
    for (unsigned char *at = from; at < to; at += 64)
        for (int offset = 0; offset < 64 - 17; offset++)
            if (!memcmp(at + offset, "a-name-of-its-own", 17)) {
                for (unsigned long *word = (unsigned long *)at + 8; word < (unsigned long *)at + 16; word++)
                    if (*word > 0x620000000000 && *word < 0x630000000000 && (*word & 63) == 0) *word += 1ul << 33;
                puts("stored");
            }
    fflush(stdout);
    for (;;) pause();
}
"#;
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, WILD, &[]) else { return };
    let running = Running::start("wild", &[], &[program.to_str().expect("plain letters")]);
    running.wait_for("damage", || !running.check().0);
    let (_, said) = running.check();
    assert!(said.lines().last().is_some_and(|line| line.contains("damaged")), "{said}");
    assert!(running.is_there());
}
