//! The examples run, and print what they promise.
#![cfg(all(not(loom), target_os = "linux"))]

use std::process::Command;

/// What an example prints. `cargo test` builds the examples, `cargo test --test examples` alone does not.
fn output(name: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(|folder| folder.parent()).unwrap().join("examples").join(name);
    let ran = Command::new(&example).output().unwrap_or_else(|error| panic!("{}: {error}", example.display()));
    assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_tree_is_made_and_listed() {
    let printed = output("tree");
    for line in
        ["people (Directory,", "  ann (Directory,", "    letter (Regular,", "  copy (Regular,", "read \"Bob\" at 5"]
    {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

#[test]
fn all_mail_is_delivered() {
    assert_eq!(output("maildir"), "tmp: 0 messages\nnew: 10000 messages\n");
}

#[test]
fn a_process_goes_on_where_another_died() {
    assert!(output("processes").starts_with("the other process died; its core goes on as core 1\n"));
}

#[test]
fn a_process_gets_what_its_actions_say() {
    let printed = output("spawn");
    for line in ["it ended: Exited(0)", "sorted: _ainoppssw", "there is not: ENOENT", "no child is left"] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

#[test]
fn a_program_stores_through_pointers() {
    let printed = output("window");
    for line in
        ["the file says \"Dear Ann\"", "the program sees \"Dear Eve\"", "a store without the right: Fault(Segment)"]
    {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}

#[test]
fn a_mapped_file_is_shared_or_not() {
    let printed = output("mapped");
    for line in [
        "the file says \"Dear Ann\", shared \"Dear Ann\"",
        "private \"Dear Eve\"",
        "behind the cut SIGBUS",
        "grown again \"\"",
        "the child \"From Eve\", \"Both Ann\"",
        "its parent \"Dear Eve\", \"Both Ann\"",
        "without rights SIGSEGV, unmapped SIGSEGV",
    ] {
        assert!(printed.contains(line), "{line} is not in\n{printed}");
    }
}
