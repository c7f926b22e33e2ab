//! A process of three is killed in the middle of a rename: the others say what they wait for, see that it has ended, and go on.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domains::{Decisions, Domain, Limits, OperationNumber, PoolLines, Process};
use messages::{DomainNumber, Transport};
use pool::file::{Pool, create, path_of};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Fields, Follow, OpenFlags, Start, attributes, directories};
use transports::{Plan, Rings};

const DOMAINS: usize = 3;
const KILLED: u16 = 1;

/// Names the pool to the process that is killed.
const POOL: &str = "TRANSPORTS_TEST_POOL";

type Host = Domain<Rings<Arc<Pool>>>;

/// Lines of a process that says so, and waits for its end, where it would decide.
struct Stuck(PoolLines<Arc<Pool>>);

impl Decisions for Stuck {
    fn commit(&self, _: OperationNumber) -> bool {
        // The line above is the test's own.
        println!("\nprepared");
        std::io::stdout().flush().unwrap();
        loop {
            std::thread::park();
        }
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        self.0.is_committed(operation)
    }
}

fn join(path: &Path, number: u16) -> Host {
    join_with(path, number, Limits::default())
}

fn join_with(path: &Path, number: u16, limits: Limits) -> Host {
    let pool = Arc::new(Pool::join(path, number.into()).unwrap());
    let ring_lines = [16, 64, 64, 64];
    let plan = Plan { at: pool.first_free(), domain_count: DOMAINS, ring_lines, salt: 1, patience: 1 << 30 };
    let rings = Rings::new(&pool, plan, DomainNumber(number)).unwrap();
    let lines = PoolLines::new(Arc::clone(&pool), plan.at + plan.bytes(), DOMAINS).unwrap();
    let lines: Rc<dyn Decisions> = if number == KILLED { Rc::new(Stuck(lines)) } else { Rc::new(lines) };
    Domain::new(rings, lines, || 0, limits)
}

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn process() -> Process {
    Process::new(Credentials::SUPERUSER)
}

fn make(host: &Host, process: &Process, path: &str) -> Result<(), Errno> {
    host.call(process, |call| {
        let flags = OpenFlags::CREATE | OpenFlags::WRITE;
        let fd = data::open(call, at(), path.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN)?;
        data::close(call, fd)
    })
}

fn make_directory(host: &Host, process: &Process, path: &str) {
    host.call(process, |call| directories::make_directory(call, at(), path.as_bytes(), 0o755)).unwrap();
}

fn rename(host: &Host, process: &Process, old: &str, new: &str) -> Result<(), Errno> {
    host.call(process, |call| names::rename(call, (at(), old.as_bytes()), (at(), new.as_bytes()), RenameMode::Replace))
}

fn is_there(host: &Host, process: &Process, path: &str) -> Result<bool, Errno> {
    match host.call(process, |call| attributes::stat(call, at(), path.as_bytes(), Follow::Symlinks, Fields::ALL)) {
        Ok(_) => Ok(true),
        Err(Errno::ENOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Serves until something is so.
fn serve_until(host: &Host, is_so: impl Fn() -> bool) {
    while !is_so() {
        if !host.serve() {
            host.transport().wait();
        }
    }
}

/// Set when this goes, also if an assertion fails: the other thread ends.
struct AtEnd<'f>(&'f AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// This test's program once more, as the process that is killed.
#[test]
fn a_process_that_is_stuck_in_a_rename() {
    let Some(path) = std::env::var_os(POOL) else { return };
    let (host, process) = (join(path.as_ref(), KILLED), process());
    make(&host, &process, "its").unwrap();
    rename(&host, &process, "a/file", "c/file").unwrap();
}

/// Starts it; it has prepared its rename when this returns.
fn start_stuck(first: &Host, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::a_process_that_is_stuck_in_a_rename", "--nocapture"])
        .env(POOL, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (output, has_prepared) = (child.stdout.take().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let said = BufReader::new(output).lines().map_while(Result::ok).any(|line| line == "prepared");
            has_prepared.store(true, Ordering::Release);
            assert!(said, "it has ended before");
        });
        serve_until(first, || has_prepared.load(Ordering::Acquire));
    });
    child
}

#[test]
fn others_say_what_they_wait_for_and_go_on_when_its_process_has_ended() {
    let path = path_of(&format!("transports-test-killed-{}", std::process::id()));
    create(&path, 1 << 20, DOMAINS).unwrap();
    let (is_made, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let first = (join(&path, 0), process());
    make_directory(&first.0, &first.1, "a");
    make(&first.0, &first.1, "a/file").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let third = (join(&path, 2), process());
            make_directory(&third.0, &third.1, "c");
            is_made.store(true, Ordering::Release);
            serve_until(&third.0, || is_over.load(Ordering::Acquire));
        });
        let (host, process) = &first;
        let _over = AtEnd(&is_over);
        serve_until(host, || is_made.load(Ordering::Acquire));
        let child = RefCell::new(start_stuck(host, &path));
        std::fs::remove_file(&path).unwrap();
        let said = Rc::new(RefCell::new(Vec::new()));
        let says = Rc::clone(&said);
        host.watch_waits(1_000_000, move |waiting| {
            says.borrow_mut().push(waiting.to_string());
            if says.borrow().len() == 1 {
                child.borrow_mut().kill().unwrap();
                child.borrow_mut().wait().unwrap();
            }
        });
        // Its mark is at this domain; then at the other one.
        rename(host, process, "a/file", "a/other").unwrap();
        make(host, process, "c/file").unwrap();
        let said = said.borrow();
        let expected =
            " s for a change by domain 1 that is not decided, at domain 0: let domain 1 go on, or end its process";
        assert!(said[0].starts_with("domain 0 has waited ") && said[0].ends_with(expected), "{said:?}");
        assert_eq!(is_there(host, process, "a/other"), Ok(true));
        // What it owned has gone with it.
        assert_eq!(is_there(host, process, "its"), Err(Errno::EIO));
    });
}

/// Its part would be lost. No one has waited for the domain that has ended, so that no one knows of it yet.
#[test]
fn no_directory_is_split_over_a_domain_that_has_ended() {
    let path = path_of(&format!("transports-test-split-{}", std::process::id()));
    create(&path, 1 << 20, DOMAINS).unwrap();
    let limits = Limits { split_above: 8, ..Limits::default() };
    let [first, second, third] = [0, 1, 2].map(|number| join_with(&path, number, limits));
    std::fs::remove_file(&path).unwrap();
    drop((second, third));
    let process = process();
    let names = (0..20).map(|number| format!("name{number}"));
    names.clone().for_each(|name| make(&first, &process, &name).unwrap());
    names.for_each(|name| assert_eq!(is_there(&first, &process, &name), Ok(true)));
}
