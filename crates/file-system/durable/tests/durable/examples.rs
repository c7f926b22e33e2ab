//! The example runs, and shows what it promises.

use std::process::Command;

#[test]
fn who_was_answered_is_there_again() {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(|folder| folder.parent()).unwrap().join("examples/lasting_directory");
    let ran = Command::new(&example).args(["4", "8"]).output();
    let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", example.display()));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let printed = String::from_utf8(ran.stdout).unwrap();
    // Of four requests in a row the second deletes what the first has added.
    assert!(printed.ends_with("people after 32 requests and another opening: 8\n"), "{printed}");
}
