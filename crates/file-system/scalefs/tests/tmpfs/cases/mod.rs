//! A table of cases of POSIX's calls on names, data and times (`cases.txt`), run on ScaleFS, crate `plain` and the host's tmpfs: each call
//! gives what its line says. What they are about is what pjdfstest is about; lines and code are our own.
//!
//! ```text
//! what it is about: step; step; ...        step = [user:] call operands [= what it gives]
//! {one|another}    each of these, so that a line is as many cases;  $2  what was chosen of the line's second such group
//! KIND NODIR       a kind of objects, or one but a directory;  ANY(p) NEW(p) OLD(p) FOLLOWS(p)  calls on a path
//! L255 P4095x T4095    a name, a path to x, a target, of so many bytes
//! 777-022  755&111     a mode without these bits, with these alone
//! ```
//! A step without `=` must succeed. Names of errors and what is printed are compared as text. `SCALEFS_CASES=all` runs all of them,
//! else one in [`QUICK`].

mod host;
mod operations;

use percpu::OwnerId;
use plain::Plain;
use scalefs::{Credentials, Host as Clock, OwnedConfig, OwnedScaleFs, Process};
use std::cell::Cell;
use sync::{Wait, WaitReason};

use call_language::{GROUPS, USERS};

use crate::host::with_host;

const TABLE: &str = include_str!("cases.txt");
/// Of so many cases one is run by `make test`: coprime to how many choices groups have.
const QUICK: usize = 11;

/// What a call gives: nothing or a text; or an error's name.
pub type Outcome = Result<String, String>;

/// Where cases are run.
pub trait World {
    /// An empty directory with the file `f` of user 1, in which all users work.
    fn begin(&mut self, number: usize);
    /// Makes a call.
    fn call(&mut self, user: usize, words: &[&str]) -> Outcome;
}

/// One case: the line's text with a choice of each group.
#[derive(Clone, Debug)]
struct Case {
    line: usize,
    text: String,
}

const MACROS: [(&str, &str); 2] =
    [("NODIR", "{file|fifo|char|block|sock|link}"), ("KIND", "{file|dir|fifo|char|block|sock|link}")];
const NEW: &str = "mkdir @ 755|mkfifo @ 644|mknod @ char 644|mknod @ block 644|mknod @ sock 644|mknod @ file 644|symlink t @|link f \
                   @|open @ wc 644";
const FOLLOWS: &str =
    "stat @ there|open @ r|chmod @ 600|chown @ 0 0|truncate @ 0|utimens @ 1 1|access @ 0|enter @|list @";
const OLD: &str = "lstat @ there|link @ other|rename @ other|unlink @|rmdir @|lchown @ 0 0|lutimens @ 1 1|readlink @";
const ONTO: &str = "rename f @";

/// The end of the group that opens at the start of a text.
fn closing(text: &str, (open, close): (char, char)) -> usize {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == open) - i32::from(*letter == close);
        depth == 0
    });
    end.unwrap_or_else(|| panic!("{text}: a group is not closed")).0
}

/// A line with macros replaced by what they stand for.
fn without_macros(line: &str) -> String {
    let mut text = MACROS.iter().fold(line.to_string(), |text, (name, stands_for)| text.replace(name, stands_for));
    let follows_and_old = format!("{FOLLOWS}|{OLD}");
    let any = format!("{NEW}|{follows_and_old}|{ONTO}");
    for (name, calls) in [("ANY(", &any[..]), ("NEW(", NEW), ("FOLLOWS(", FOLLOWS), ("OLD(", &follows_and_old)] {
        while let Some(start) = text.find(name) {
            let open = start + name.len() - 1;
            let end = open + closing(&text[open..], ('(', ')'));
            let calls = calls.replace('@', &text[open + 1..end]);
            text.replace_range(start..=end, &format!("{{{calls}}}"));
        }
    }
    text
}

/// All choices of a line's groups.
fn expanded(line: &str) -> Vec<String> {
    let mut done = vec![(without_macros(line), Vec::<String>::new())];
    while let Some(start) = done[0].0.find('{') {
        let each = done.into_iter().flat_map(|(text, chosen)| {
            let end = start_of(&text) + closing(&text[start_of(&text)..], ('{', '}'));
            let start = start_of(&text);
            let choices: Vec<String> = text[start + 1..end].split('|').map(str::to_string).collect();
            choices.into_iter().map(move |choice| {
                let text = format!("{}{choice}{}", &text[..start], &text[end + 1..]);
                (text, [&chosen[..], &[choice]].concat())
            })
        });
        done = each.collect();
        let _ = start;
    }
    let numbered = |(text, chosen): (String, Vec<String>)| {
        (0..chosen.len()).rev().fold(text, |text, place| text.replace(&format!("${}", place + 1), &chosen[place]))
    };
    done.into_iter().map(numbered).collect()
}

fn start_of(text: &str) -> usize {
    text.find('{').expect("all choices of a line have as many groups")
}

fn cases() -> Vec<Case> {
    let lines = TABLE.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.flat_map(|(line, text)| expanded(text).into_iter().map(move |text| Case { line: line + 1, text })).collect()
}

/// A word as a call wants it.
fn word(word: &str) -> String {
    let number = |rest: &str| rest.parse::<usize>().ok();
    match word.split_at(word.len().min(1)) {
        _ if word == "\"\"" => String::new(),
        ("L", rest) if rest.contains(|letter: char| letter.is_ascii_digit()) => {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            format!("{}{}", "l".repeat(number(&rest[..digits]).unwrap()), &rest[digits..])
        }
        ("T", rest) if number(rest).is_some() => "t".repeat(number(rest).unwrap()),
        ("P", rest) if rest.ends_with('x') => {
            let bytes = number(&rest[..rest.len() - 1]).unwrap();
            let slash = if bytes % 2 == 0 { "/" } else { "" };
            format!("{}{slash}x", "./".repeat((bytes - 1) / 2))
        }
        _ => word.to_string(),
    }
}

/// What a step is to give.
fn expected(text: &str) -> Outcome {
    let octal = |digits: &str| u32::from_str_radix(digits, 8).ok();
    let two = |mark: char| text.split_once(mark).and_then(|(one, other)| Some((octal(one)?, octal(other)?)));
    if let Some((mode, without)) = two('-') {
        return Ok(format!("{:o}", mode & !without));
    }
    if let Some((mode, with)) = two('&') {
        return Ok(format!("{:o}", mode & with));
    }
    let is_error = text.len() > 2 && text.starts_with('E') && text.chars().all(|letter| letter.is_ascii_uppercase());
    if is_error { Err(text.to_string()) } else { Ok(text.to_string()) }
}

/// Runs a case; what is not as its line says, if something is not.
fn run(world: &mut dyn World, number: usize, case: &Case) -> Option<String> {
    world.begin(number);
    let (_, steps) = case.text.split_once(": ").expect("a line says what it is about");
    for step in steps.split("; ") {
        let (call, wanted) = step.split_once(" = ").unwrap_or((step, ""));
        let (user, call) = match call.split_once(": ") {
            Some((user, call)) => (user.parse().unwrap(), call),
            None => (0, call),
        };
        let words: Vec<String> = call.split(' ').map(word).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (given, wanted) = (world.call(user, &words), expected(wanted));
        if given != wanted {
            return Some(format!("cases.txt:{}: {}\n  `{step}` gives {given:?}", case.line, case.text));
        }
    }
    None
}

/// A host whose time goes on with each look.
#[derive(Default)]
struct Ticking(Cell<u64>);

impl Wait for Ticking {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits without end: {reason:?}");
    }
}

impl Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

fn credentials() -> [Credentials; 3] {
    [0, 1, 2].map(|user| Credentials::new(USERS[user], USERS[user], GROUPS[user]).unwrap())
}

/// Runs the cases that are chosen; how many, and what is wrong.
fn run_all(world: &mut dyn World) -> (usize, Vec<String>) {
    let all = std::env::var("SCALEFS_CASES").is_ok_and(|chosen| chosen == "all");
    let chosen: Vec<Case> = cases().into_iter().step_by(if all { 1 } else { QUICK }).collect();
    let wrong = chosen.iter().enumerate().filter_map(|(number, case)| run(world, number, case)).collect();
    (chosen.len(), wrong)
}

fn must_be_right(name: &str, (count, wrong): (usize, Vec<String>)) {
    println!("{count} cases on {name}");
    assert!(wrong.is_empty(), "{} of {count} cases on {name}:\n{}", wrong.len(), wrong.join("\n"));
}

fn on_scalefs() -> (usize, Vec<String>) {
    let config = OwnedConfig { core_count: 1, page_count: 4096, metadata_bytes: 64 << 20, ..OwnedConfig::default() };
    let instance = OwnedScaleFs::create(config).unwrap();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = instance.file_system();
    let clock = Ticking::default();
    let processes = credentials().map(|user| Process::new(fs, &core, user).unwrap());
    let maintain = || fs.maintain(&core, &clock);
    let outcome = run_all(&mut operations::Ours::new(
        |user: usize| fs.enter(&core, &processes[user], &clock),
        |user: usize, mask: u32| {
            processes[user].context().set_umask(mask);
        },
        maintain,
    ));
    processes.into_iter().for_each(|process| process.exit(fs, &core, &clock));
    outcome
}

fn on_plain() -> (usize, Vec<String>) {
    fn now() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(1, Ordering::Relaxed)
    }
    let plain = Plain::new(plain::Limits::default(), now);
    let processes = credentials().map(|user| plain::Process::new(&plain, user));
    run_all(&mut operations::Ours::new(
        |user: usize| plain.begin(&processes[user]),
        |user: usize, mask: u32| {
            processes[user].set_umask(mask);
        },
        || (),
    ))
}

#[test]
fn cases_of_the_table_are_as_it_says() {
    must_be_right("scalefs", on_scalefs());
    must_be_right("plain", on_plain());
}

#[test]
fn cases_of_the_table_are_so_on_tmpfs() {
    let seen = with_host(None, |host| {
        (host.can_use_root() && host::may_make_devices()).then(|| run_all(&mut host::OnHost::new(host)))
    });
    match seen.flatten() {
        Some(outcome) => must_be_right("tmpfs", outcome),
        None => eprintln!("not compared: only the superuser can be several users, and make devices"),
    }
}

#[test]
fn a_table_has_many_cases_and_a_wrong_line_is_found() {
    assert!(cases().len() > 1_500, "{}", cases().len());
    let plain = Plain::default();
    let processes = credentials().map(|user| plain::Process::new(&plain, user));
    let mut world = operations::Ours::new(
        |user: usize| plain.begin(&processes[user]),
        |user: usize, mask: u32| {
            processes[user].set_umask(mask);
        },
        || (),
    );
    for (number, wrong) in ["mkdir f 755", "stat f size = 1", "stat none size = EACCES"].into_iter().enumerate() {
        let case = Case { line: 0, text: format!("wrong: {wrong}") };
        assert!(run(&mut world, number, &case).is_some(), "{wrong}");
    }
}

#[cfg(any(fuzzing, shuttle))]
#[test]
fn planted_faults_of_calls_are_found_by_the_table() {
    for fault in [
        "calls: chown keeps set-id bits",
        "calls: a sticky directory keeps no one's names",
        "calls: paths have no limit",
    ] {
        sync::mutant::must_be_caught(fault, || must_be_right("scalefs", on_scalefs()));
    }
}
