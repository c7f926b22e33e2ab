//! Builds `program.c` with the system's C compiler over the static library, and runs it.
#![cfg(all(unix, not(loom)))]

mod build;

use std::path::Path;
use std::process::Command;

/// Compiles a program over the library and runs it; returns what it prints.
fn run(name: &str, source: &Path) -> String {
    let program = build::program(name, source, &[]);
    let ran = Command::new(program.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_program_in_c_works_on_the_library() {
    assert_eq!(run("program", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c")), "");
}

#[test]
fn calls_on_directories_and_descriptors_work_in_c() {
    assert_eq!(run("calls", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.c")), "");
}

#[test]
fn misuse_is_refused_with_a_reason_in_c() {
    assert_eq!(run("misuse", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/misuse.c")), "");
}

#[test]
fn processes_mappings_and_waiting_work_in_c() {
    assert_eq!(run("programs", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs.c")), "");
}

#[test]
fn transactions_work_in_c() {
    assert_eq!(run("transactions", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transactions.c")), "");
}

#[test]
fn the_guides_programs_in_c_run() {
    assert_eq!(guide("files", include_str!("../../../../docs/guides/files.md")), "Dear Bob\ngone\n");
    assert_eq!(guide("transactions", include_str!("../../../../docs/guides/transactions.md")), "added\n");
}

/// What the program of a guide prints.
fn guide(name: &str, guide: &str) -> String {
    let program = guide.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program in C");
    let source = std::env::temp_dir().join(format!("scalefs-guide-{name}-{}.c", std::process::id()));
    std::fs::write(&source, program).unwrap();
    let printed = run(&format!("guide-{name}"), &source);
    std::fs::remove_file(&source).unwrap();
    printed
}
