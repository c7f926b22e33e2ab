//! What a user of the shell's `try` relies on, by its manual: each of these is one sentence of it, or what it is checked for.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use support::{Bench, can_try, said};

/// Runs with something on standard input.
fn answered(bench: &Bench, arguments: &[&str], input: &str) -> Output {
    let mut command = bench.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn content(bench: &Bench, name: &str) -> Option<String> {
    fs::read_to_string(bench.path(name)).ok()
}

fn folder(bench: &Bench, name: &str) -> String {
    let path = bench.folder().join(name);
    fs::create_dir(&path).expect("a new folder");
    path.to_str().expect("text").to_owned()
}

#[test]
fn it_asks_before_it_commits() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    for (answer, is_made) in [("n\n", false), ("", false), ("\n", false), ("y\n", true)] {
        let output = answered(&bench, &["echo x > made"], answer);
        let shown = text(&output);
        assert!(shown.contains("Changes detected in the following files:"), "{shown}");
        assert!(shown.contains(&format!("{} (added)", bench.path("made").display())), "{shown}");
        assert!(shown.contains("Commit these changes?"), "{shown}");
        assert_eq!(bench.path("made").exists(), is_made, "{answer:?}");
    }
    assert_eq!(fs::read_dir(bench.folder().join("state/commutant/try")).expect("it is there").count(), 0);
}

#[test]
fn paths_can_be_chosen_in_an_editor() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let editor = bench.folder().join("editor");
    fs::write(&editor, "#!/bin/sh\ngrep -v '/skipped (added)$' \"$1\" > \"$1.new\"; mv \"$1.new\" \"$1\"\n")
        .expect("ours");
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("ours");
    let mut command = bench.command(["echo k > kept; echo s > skipped"]);
    command.env("EDITOR", &editor).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"i\n").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    assert_eq!((content(&bench, "kept"), content(&bench, "skipped")), (Some("k\n".to_owned()), None));
}

#[test]
fn the_exit_code_is_the_command_s() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    assert_eq!(bench.run(["exit", "3"]).status.code(), Some(3));
    assert_eq!(bench.run(["-n", "false"]).status.code(), Some(1));
    assert_eq!(bench.run(["-y", "kill -TERM $$"]).status.code(), Some(128 + 15));
}

#[test]
fn a_summary_says_what_becomes_of_each_path() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo fail > file_2; echo z > packed; touch target");
    bench.run_script("touch file_1; echo test > file_2; rm packed; rm target; mkdir target; mkdir -p new/nested");
    let output = bench.run(["summary", bench.changes().to_str().expect("text")]);
    let shown = text(&output);
    for (name, change) in [
        ("file_1", "added"),
        ("file_2", "modified"),
        ("packed", "deleted"),
        ("target", "replaced with dir"),
        ("new", "created dir"),
        ("new/nested", "created dir"),
    ] {
        let line = format!("{} ({change})", bench.path(name).display());
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let none = folder(&bench, "none");
    assert!(bench.run(["-N", &none, "--", "echo", "hi"]).status.success());
    let output = bench.run(["summary", &none]);
    assert_eq!((output.status.code(), text(&output)), (Some(1), String::new()));
}

#[test]
fn options_say_what_is_done() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    // -n keeps, and prints the directory; of -n and -y the last one counts.
    for options in [&["-n"][..], &["-yn"], &["-y", "-n"]] {
        let mut arguments = options.to_vec();
        arguments.push("echo x > made");
        let output = bench.run(arguments);
        let directory = text(&output).trim().to_owned();
        assert!(!bench.path("made").exists());
        assert!(bench.run(["-y", "commit", &directory]).status.success());
        assert!(bench.path("made").exists());
        bench.sh("rm made");
        fs::remove_dir_all(directory).expect("ours");
    }
    assert!(bench.run(["-n", "-y", "echo x > made"]).status.success());
    assert!(bench.path("made").exists());
    // -E and -I.
    assert!(bench.run(["-y", "-E", "foo1", "-E", "foo2", "touch foo1 foo2 bar"]).status.success());
    assert!(bench.path("bar").exists() && !bench.path("foo1").exists() && !bench.path("foo2").exists());
    assert!(
        bench
            .run(["-y", "-I", "foo1", "-I", "foo2", "touch foo1 foo2 other; mkdir d; touch d/foo1 d/x"])
            .status
            .success()
    );
    assert!(bench.path("foo1").exists() && bench.path("foo2").exists() && !bench.path("other").exists());
    assert!(bench.path("d/foo1").exists() && !bench.path("d/x").exists());
    // -i hides, and what is hidden stays.
    bench.sh("mkdir hidden-dir; touch hidden hidden-dir/file visible");
    let script = "test ! -e hidden && test ! -e hidden-dir && test -e visible && ! ls | grep hidden";
    let output = bench.run(["-y", "-i", "hidden", "-i", "hidden-dir", script]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(bench.path("hidden-dir/file").exists());
    // -x takes the network.
    assert!(
        bench
            .run(["-n", "-x", "test $(ls /sys/class/net | wc -l) -ge 0; ! cat /proc/net/route | grep -q 00000000"])
            .status
            .success()
    );
    // -t says what was read and written.
    let trace = bench.folder().join("trace");
    let output = bench.run(["-y", "-t", trace.to_str().expect("text"), "cat visible > traced"]);
    assert!(output.status.success(), "{}", said(&output));
    let trace = fs::read_to_string(trace).expect("it is there");
    let (reads, writes) = trace.split_once("#writes\n").expect("both");
    assert!(
        reads.starts_with("#reads\n") && reads.contains(&format!("{}\n", bench.path("visible").display())),
        "{reads}"
    );
    assert_eq!(writes, format!("{}\n", bench.path("traced").display()));
}

#[test]
fn a_workspace_can_be_used_again() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo x > packed");
    bench.run_script("touch file_1; echo test > file_2; rm packed");
    bench.run_script("rm file_1; echo test2 >> file_2; touch packed");
    assert!(bench.run(["-y", "commit", bench.changes().to_str().expect("text")]).status.success());
    assert_eq!(content(&bench, "file_1"), None);
    assert_eq!(content(&bench, "file_2").as_deref(), Some("test\ntest2\n"));
    assert_eq!(content(&bench, "packed").as_deref(), Some(""));
    // What is no workspace is none.
    for verb in ["summary", "commit", "explore"] {
        assert_eq!(bench.run([verb, "non-existent"]).status.code(), Some(2));
    }
    assert_eq!(bench.run(["-N", "non-existent", "touch x"]).status.code(), Some(2));
    let other = folder(&bench, "other");
    fs::write(format!("{other}/file"), "x").expect("ours");
    assert_eq!(bench.run(["-N", &other, "touch x"]).status.code(), Some(2));
}

#[test]
fn layers_of_other_workspaces_lie_below() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let folders = ["one", "two", "three"].map(|name| folder(&bench, name));
    for (folder, script) in folders.iter().zip(["echo 1 > file1", "echo 2 > file2", "echo 3 > file2"]) {
        assert!(bench.run(["-N", folder, script]).status.success());
    }
    let layers = format!("{}:{}:{}", folders[2], folders[1], folders[0]);
    let output = bench.run(["-L", &layers, "cat file1 file2"]);
    assert!(text(&output).starts_with("1\n3\n"), "{}", said(&output));
    assert!(!bench.path("file1").exists());
}

#[test]
fn the_command_has_what_it_would_have_outside() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    // Streams.
    let output = answered(
        &bench,
        &["-n", "read x < /dev/stdin; echo $((x * 2)) > /dev/stdout; echo $((x * 3)) > /dev/stderr"],
        "5\n",
    );
    assert!(text(&output).starts_with("10\n"), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("15"));
    // The folder, variables, the shell.
    let mut command = bench.command(["-n", "echo $PWD $OLDPWD; echo ${SANDBOX_DIR-none}; realpath /proc/$$/exe; true"]);
    command
        .env("PWD", bench.path("").canonicalize().expect("it is there"))
        .env("OLDPWD", "/usr")
        .env("TRY_SHELL", "/bin/bash");
    let shown = text(&command.output().expect("it starts"));
    let tree = bench.path("").canonicalize().expect("it is there").display().to_string();
    let bash = fs::canonicalize("/bin/bash").expect("there is bash").display().to_string();
    assert!(shown.starts_with(&format!("{tree} /usr\nnone\n{bash}\n")), "{shown}");
    // Devices, pipes, substitutions, links, names.
    let mut command = bench.command([
        "-y",
        "head -c 5 /dev/urandom | wc -c; seq 100 | tail -1; echo $(echo inner); cat <(echo substituted); ln -s a b; ln -s /nowhere c; touch $'new\\nline'; mktemp",
    ]);
    let shown = text(&command.env("TRY_SHELL", "/bin/bash").output().expect("it starts"));
    assert!(shown.starts_with("5\n100\ninner\nsubstituted\n/tmp/"), "{shown}");
    assert!(bench.path("new\nline").exists() && bench.path("b").is_symlink() && bench.path("c").is_symlink());
    bench.sh(&format!("rm -f {}", shown.lines().last().expect("a line")));
    // The rights of what lies at the top.
    let script = "find / -mindepth 1 -maxdepth 1 -printf '%m %y %l %p\\n' | grep -v -e /proc -e /dev -e /sys | sort";
    let outside = std::process::Command::new("sh").args(["-c", script]).output().expect("there is a shell");
    assert!(text(&bench.run(["-n", script])).starts_with(&text(&outside)));
    // Several words stay what they are.
    assert_eq!(text(&bench.run(["-n", "sh", "-c", "echo \"a  $0\"", "it's"])).lines().next(), Some("a  it's"));
}

#[test]
fn a_folder_comes_instead_of_a_file_and_the_other_way_round() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("touch file; mkdir -p folder/inner; touch folder/inner/x; mkdir again; touch again/old");
    let script =
        "rm file; mkdir file; touch file/in; rm -r folder; echo f > folder; rm -r again; mkdir again; touch again/new";
    assert!(bench.run(["-y", script]).status.success());
    assert!(bench.path("file/in").exists() && bench.path("folder").is_file());
    assert!(bench.path("again/new").exists() && !bench.path("again/old").exists());
}

#[test]
fn a_shell_over_the_tree_explores() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    // The first line is the shell's, the answer is read afterwards.
    let mut command = bench.command(["explore"]);
    command.env("TRY_SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"echo hi > explored; exit\n").expect("it reads");
    std::thread::sleep(std::time::Duration::from_millis(700));
    input.write_all(b"y\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(text(&output).contains("Commit these changes?"), "{}", said(&output));
    assert_eq!(content(&bench, "explored").as_deref(), Some("hi\n"));
}

#[test]
fn a_run_within_a_run_changes_the_outer_one() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo x > file");
    let program = env!("CARGO_BIN_EXE_commutant-try");
    let script = format!("{program} -y 'read x < file; echo $x-inner > inner' && cat inner && echo outer > outer");
    let output = bench.run(["-y", &script]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(text(&output).lines().next(), Some("x-inner"), "{}", said(&output));
    assert_eq!(
        (content(&bench, "inner").as_deref(), content(&bench, "outer").as_deref()),
        (Some("x-inner\n"), Some("outer\n"))
    );
}
