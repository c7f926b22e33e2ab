//! The example runs, and leaves nothing behind, whichever of its processes ends first.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use pool::file::{Pool, create, path_of};

/// `cargo test` builds the examples, `cargo test --test transports` alone does not.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|folder| folder.parent()).unwrap().join("examples/two_hosts")
}

/// Waits until something is so; the test's run is ended from outside if it never is.
fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The pool of an example's run.
fn pool_of(first: u32) -> PathBuf {
    path_of(&format!("two-hosts-{first}"))
}

#[test]
fn two_processes_use_the_same_files() {
    let first = Command::new(example()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pool = pool_of(first.id());
    let own = first.id();
    let ran = first.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    let [read, removed] = printed.lines().collect::<Vec<_>>()[..] else { panic!("{printed}") };
    assert!(read.ends_with(" reads: a letter from another host"), "{printed}");
    assert!(!read.contains(&format!("process {own} ")), "another process has read it: {printed}");
    assert_eq!(removed, format!("process {own} has removed what was answered"));
    assert!(!pool.exists());
}

#[test]
fn the_first_process_notices_that_the_second_has_ended() {
    // No one reads what is printed: the second process ends before it answers.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let first = Command::new(example()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let pool = pool_of(first.id());
    let ran = first.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.ends_with("Error: \"the other process has ended\"\n"), "{said}");
    assert!(!pool.exists());
}

/// A pool that this process has joined as the first one.
fn joined(name: &str) -> (PathBuf, Pool) {
    let path = path_of(&format!("{name}-{}", std::process::id()));
    create(&path, 1 << 21, 2).unwrap();
    let pool = Pool::join(&path, 0).unwrap();
    (path, pool)
}

#[test]
fn a_second_process_that_is_killed_leaves_no_file() {
    let (path, _pool) = joined("two-hosts-killed");
    let mut second = Command::new(example()).arg(&path).spawn().unwrap();
    // It waits for our answer, which never comes.
    wait_until(|| !path.exists());
    assert!(second.try_wait().unwrap().is_none());
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn a_second_process_ends_when_the_first_has() {
    let (path, pool) = joined("two-hosts-orphan");
    let second = Command::new(example()).arg(&path).stderr(Stdio::piped()).spawn().unwrap();
    // It waits for our answer, and sees then that none comes.
    wait_until(|| !path.exists());
    drop(pool);
    let ran = second.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    // A wait that took long is said before.
    let last = said.lines().last().unwrap_or_default();
    assert!(["Error: EIO", "Error: \"the other process has ended\""].contains(&last), "{said}");
    assert_eq!(ran.status.code(), Some(1));
}
