//! Builds programs with the system's C compiler over the static library, and runs them.
#![cfg(all(unix, not(any(loom, shuttle))))]

use std::path::Path;
use std::process::Command;

/// Compiles a program over the library and runs it; returns what it prints.
fn run(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = folder.join(format!("tests/{name}.c"));
    let program = c_header::program("libolf_c", &folder.join("include"), name, &source, &["-pthread"]);
    let ran = Command::new(program.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn items_go_from_list_to_list_in_c() {
    assert_eq!(run("calls"), "");
}

#[test]
fn misuse_is_refused_in_c() {
    assert_eq!(run("misuse"), "");
}

#[test]
fn accounts_of_two_threads_lose_no_money_in_c() {
    assert_eq!(run("accounts"), "");
}
