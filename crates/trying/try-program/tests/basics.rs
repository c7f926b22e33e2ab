//! What a command may rely on: its changes come whole or not at all, and only if what it has seen is still so.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use support::{Bench, can_try, conflicts, document, refusal, said};

/// Everything that a shell can do to a tree.
const MANY_CHANGES: &str = r"
    echo new > created; echo more >> appended; rm removed; rm -r folder; mkdir -p deep/er; echo in > deep/er/file
    ln -s created link; ln created hard; mkfifo pipe; chmod 640 rights; mv moved elsewhere; rm kind; mkdir kind; echo x > kind/x
    rmdir empty; echo no folder any more > empty; : > 'a
newline'; : > $(printf '\377\376'); truncate -s 1M sparse; touch -d 2001-02-03T04:05:06 old; ln -sf other turned";
const BEFORE: &str = r"
    echo old > appended; echo r > removed; mkdir -p folder/below; echo f > folder/below/f; echo r > rights; echo m > moved
    echo k > kind; mkdir empty; echo o > old; ln -s one turned; echo untouched > untouched";

#[test]
fn a_commit_leaves_what_the_command_alone_would_have_left() {
    if !can_try() {
        return;
    }
    let (tried, alone) = (Bench::new(), Bench::new());
    tried.sh(BEFORE);
    alone.sh(BEFORE);
    let before = tried.left();
    let untouched = fs::metadata(tried.path("untouched")).expect("it is there").ino();
    tried.run_script(MANY_CHANGES);
    assert_eq!(tried.left(), before, "nothing is changed before the commit");
    alone.sh(MANY_CHANGES);
    let document = tried.commit();
    assert_eq!(document["outcome"], "committed", "{document}");
    assert_eq!(tried.left(), alone.left());
    assert_eq!(fs::metadata(tried.path("untouched")).expect("it is there").ino(), untouched);
    assert_eq!(fs::metadata(tried.path("old")).expect("it is there").mtime(), 981_173_106);
    let links = |name: &str| fs::metadata(tried.path(name)).expect("it is there");
    assert_eq!(links("created").ino(), links("hard").ino(), "two names of one file stay so");
    assert_eq!(tried.commit()["outcome"], "nothing", "the workspace is as new");
}

#[test]
fn what_others_change_is_refused_and_named() {
    if !can_try() {
        return;
    }
    // What the command does; what others do; where that shows, and by which question.
    let cases = [
        ("while read x; do :; done < file", "printf abcd-more > file", "file", "data"),
        ("read x < file || true", "printf ABCD > file", "file", "data"),
        ("cat file", "printf ABCD > file", "file", "data"),
        ("cat missing; true", "echo x > missing", "missing", "name"),
        ("cat file", "rm file", "file", "name"),
        ("cat file", "rm file; mkdir file", "file", "name"),
        ("ls folder", "echo x > folder/new", "folder", "listing"),
        ("stat file", "touch -d 2001-01-01 file", "file", "attributes"),
        ("readlink link", "ln -sfn elsewhere link", "link", "target"),
        ("test -x file || true", "chmod 755 file", "file", "name"),
        ("echo mine > file", "echo theirs, later > file", "file", "version"),
        ("echo mine > made", "echo theirs > made", "made", "name"),
        // The commit puts a new file there, and the other name would keep the old one.
        ("echo more >> file", "ln file another-name", "file", "names"),
        ("echo mine > file", "ln file another-name", "file", "names"),
        ("rm file", "echo changed >> file", "file", "version"),
        ("rm -r folder", "echo x > folder/new", "folder", "listing"),
        ("rm -r folder", "echo x >> folder/inner", "inner", "version"),
        ("rmdir empty", "echo x > empty/new", "empty", "listing"),
        ("mkdir -p made/deep", "mkdir made", "made", "name"),
        (
            "getfattr -n user.note file 2>/dev/null || python3 -I -c 'import os; os.listxattr(\"file\")'",
            "python3 -I -c 'import os; os.setxattr(\"file\", \"user.note\", b\"x\")'",
            "file",
            "extended",
        ),
    ];
    for (command, others, place, question) in cases {
        let bench = Bench::new();
        bench.sh("printf abcd > file; mkdir folder empty; echo i > folder/inner; ln -s file link");
        bench.run_script(&format!("{command}; echo result > result-of-the-command"));
        bench.sh(others);
        let left = bench.left();
        let document = bench.commit();
        assert_eq!(document["outcome"], "refused", "{command}, {others}: {document}");
        assert_eq!(document["exit_code"], 1);
        assert_eq!(conflicts(&document), [place], "{command}, {others}: {document}");
        let shown = document["conflicts"][0]["question"].as_str().expect("text").to_owned();
        assert!(shown.starts_with(question), "{command}, {others}: {document}");
        assert_eq!(bench.left(), left, "{command}: nothing is changed");
    }
}

#[test]
fn what_the_command_has_not_seen_may_change() {
    if !can_try() {
        return;
    }
    let cases = [
        ("cat file", "echo x > unrelated"),
        ("read x < file || true", "touch file"),
        ("read x < file || true", "ln file another-name"),
        ("read x < long", "echo more >> long"),
        ("test -r file", "echo other > file"),
        ("echo mine > mine", "echo theirs > theirs; rm unseen"),
        ("mkdir -p folder/mine/deep", "echo theirs > folder/theirs"),
        ("rm file", "echo x > other; ls"),
        ("echo more >> folder/inner", "echo x > folder/other; rm -r empty"),
        ("mv file elsewhere", "mkdir new; mv long longer"),
        ("echo mine > mine; python3 -I -c 'import os; os.replace(\"mine\", \"file\")'", "ln file another-name"),
        ("ls -l file", "echo x > new"),
    ];
    for (command, others) in cases {
        let bench = Bench::new();
        bench.sh("printf abcd > file; seq 100000 > long; mkdir folder empty; echo i > folder/inner; echo u > unseen");
        bench.run_script(&format!("{command}; echo result > result-of-the-command"));
        bench.sh(others);
        let document = bench.commit();
        assert_eq!(document["outcome"], "committed", "{command}, {others}: {document}");
        assert_eq!(fs::read_to_string(bench.path("result-of-the-command")).expect("it is there"), "result\n");
    }
}

#[test]
fn other_names_of_a_file_may_come_and_go() {
    if !can_try() {
        return;
    }
    for (command, others, outcome) in [
        ("unlink file", "rm alias", "committed"),
        ("unlink file", "ln alias third", "committed"),
        // Before the overlay copies a file it asks for all that `stat` says. That was taken for the command's own question.
        ("echo mine > file", "mv alias away", "committed"),
        // Python asks what it has opened: that is the copy.
        ("python3 -I -c 'open(\"file\", \"w\")'", "rm alias", "committed"),
        ("echo more >> file", "rm alias", "committed"),
        ("mv file elsewhere", "ln alias third", "committed"),
        ("stat file; echo mine > file", "mv alias away", "refused"),
        ("echo more >> file", "touch -d 2001-01-01 alias", "refused"),
        // So does `rm`.
        ("unlink file", "rm alias; touch -d 2001-01-01 file", "refused"),
        ("unlink file", "echo theirs >> alias", "refused"),
        ("unlink file", "echo theirs > new; mv new file", "refused"),
        ("rm file", "rm alias", "refused"),
    ] {
        let bench = Bench::new();
        bench.sh("echo x > file; ln file alias");
        bench.run_script(command);
        bench.sh(others);
        let document = bench.commit();
        assert_eq!(document["outcome"], outcome, "{command}, {others}: {document}");
    }
}

#[test]
fn an_empty_file_may_be_touched() {
    if !can_try() {
        return;
    }
    // What is in it cannot be lost: nothing is.
    for (command, others, outcome) in [
        ("unlink empty", "touch -d 2001-01-01 empty", "committed"),
        (": > empty", "touch -d 2001-01-01 empty", "committed"),
        // Opened to be written, and not written.
        ("python3 -I -c 'open(\"empty\", \"r+\")'", "touch -d 2001-01-01 empty", "nothing"),
        ("echo mine > empty", "echo theirs > empty; : > empty", "committed"),
        ("unlink folder/empty; rmdir folder", "touch -d 2001-01-01 folder/empty", "committed"),
        ("unlink empty", "echo theirs > empty", "refused"),
        (": > empty", "echo theirs > empty", "refused"),
        ("stat empty; unlink empty", "touch -d 2001-01-01 empty", "refused"),
        ("echo more >> empty", "touch -d 2001-01-01 empty", "refused"),
        // Another file: made while the first is there, so that it has another number.
        ("unlink empty", ": > new; mv new empty", "refused"),
    ] {
        let bench = Bench::new();
        bench.sh(": > empty; mkdir folder; : > folder/empty");
        bench.run_script(command);
        bench.sh(others);
        let document = bench.commit();
        assert_eq!(document["outcome"], outcome, "{command}, {others}: {document}");
    }
}

#[test]
fn a_file_that_comes_instead_of_an_equal_one_is_another_one() {
    if !can_try() {
        return;
    }
    // The old file keeps its other name. An empty one was given the time of the new one instead.
    for bytes in ["", "x"] {
        let bench = Bench::new();
        bench.sh(&format!("printf '{bytes}' > old; ln old alias; printf '{bytes}' > new; touch -d 2001-01-01 new"));
        let alias = || fs::metadata(bench.path("alias")).expect("it is there");
        let before = alias();
        bench.run_script("python3 -I -c 'import os; os.rename(\"new\", \"old\")'");
        assert_eq!(bench.commit()["outcome"], "committed");
        let after = alias();
        assert_eq!((after.nlink(), after.mtime()), (1, before.mtime()), "{bytes}");
        assert_ne!(fs::metadata(bench.path("old")).expect("it is there").ino(), after.ino());
    }
}

#[test]
fn two_commands_that_commute_both_commit() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir shared; echo a > shared/a; echo b > shared/b");
    let other = bench.folder().join("other");
    fs::create_dir(&other).expect("a new folder");
    let other = other.to_str().expect("text");
    bench.run_script("cat shared/a; echo 1 > shared/one; rm shared/a");
    assert!(bench.run(["-N", other, "cat shared/b; echo 2 > shared/two"]).status.success());
    assert_eq!(bench.commit()["outcome"], "committed");
    assert_eq!(document(&bench.run(["--json", "commit", other]))["outcome"], "committed");
    assert!(bench.path("shared/one").exists() && bench.path("shared/two").exists() && !bench.path("shared/a").exists());
}

#[test]
fn of_two_commands_that_do_not_commute_one_commits() {
    if !can_try() {
        return;
    }
    // Each reads what the other writes: whichever comes first, the other one would have done something else.
    let bench = Bench::new();
    bench.sh("echo 0 > x; echo 0 > y");
    let other = bench.folder().join("other");
    fs::create_dir(&other).expect("a new folder");
    let other = other.to_str().expect("text");
    bench.run_script("test $(cat x) = 0 && echo 1 > y");
    assert!(bench.run(["-N", other, "test $(cat y) = 0 && echo 1 > x"]).status.success());
    assert_eq!(bench.commit()["outcome"], "committed");
    let document = document(&bench.run(["--json", "commit", other]));
    assert_eq!(document["outcome"], "refused");
    assert_eq!(conflicts(&document), ["y"]);
    // Run again, it sees what the first one has left, and fails by its own judgement.
    assert_eq!(bench.run(["-y", "test $(cat y) = 0 && echo 1 > x"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(bench.path("x")).expect("it is there"), "0\n");
}

#[test]
fn a_command_runs_again_when_it_was_refused() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo 1 > counter");
    // Another process counts in the middle of the commit, each time but at most once a commit.
    let counts = format!("cd {}; test -e once || {{ : > once; echo 10 > counter; }}", bench.path("").display());
    let mut command = bench.command(["-y", "--json", "--retry", "3", "read n < counter; echo $((n + 1)) > counter"]);
    let output = command.env("COMMUTANT_TRY_RUN_AT_CHECK", counts).output().expect("it starts");
    let document = document(&output);
    assert_eq!((&document["outcome"], &document["attempts"]), (&"committed".into(), &2.into()), "{document}");
    assert_eq!(fs::read_to_string(bench.path("counter")).expect("it is there"), "11\n");
    assert_eq!(
        fs::read_dir(bench.folder().join("state/commutant/try")).expect("it is there").count(),
        0,
        "no workspace is left"
    );
}

#[test]
fn what_changes_during_publication_undoes_all_of_it() {
    if !can_try() {
        return;
    }
    let changes = [
        ("echo theirs > d", "d"),
        ("echo theirs > new", "new"),
        ("rm e; echo theirs > e", "e"),
        ("ln d another-name", "d"),
        ("echo theirs > gone/more", "gone"),
        ("rm -r sub; ln -s elsewhere sub", "inner"),
    ];
    for (others, place) in changes {
        let bench = Bench::new();
        bench.sh("echo a > a; echo d > d; echo e > e; mkdir gone sub elsewhere; echo x > gone/x; echo s > sub/inner");
        bench.run_script("echo 1 > a; echo 1 > d; rm e; echo 1 > new; rm -r gone; echo 1 > sub/inner; chmod 700 .");
        let copy = Bench::new();
        copy.sh(&format!("cp -a {}/. .; {others}", bench.path("").display()));
        let mut command = bench.command(["--json", "commit", bench.changes().to_str().expect("text")]);
        let others = format!("cd {}; {others}", bench.path("").display());
        let output = command.env("COMMUTANT_TRY_RUN_AT_PUBLICATION", others).output().expect("it starts");
        let document = document(&output);
        assert_eq!(document["outcome"], "refused", "{document}");
        assert_eq!(conflicts(&document), [place], "{document}");
        assert_eq!(bench.left(), copy.left(), "only the others' change is there");
    }
}

#[test]
fn a_failed_command_leaves_no_trace() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let output = bench.run(["-y", "echo x > made; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(bench.left(), " d 755\n");
    assert_eq!(fs::read_dir(bench.folder().join("state/commutant/try")).expect("it is there").count(), 0);
    assert_eq!(bench.run(["no-such-program-anywhere", "x"]).status.code(), Some(127), "as the shell has it");
}

#[test]
fn a_run_that_did_not_begin_leaves_the_workspace_as_it_was() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir elsewhere");
    bench.run_script("echo x > made");
    let changes = bench.changes();
    // Where it would begin is hidden from it.
    let mut command = bench.command(["-N", changes.to_str().expect("text"), "-i", ".", "true"]);
    let output = command.current_dir(bench.path("elsewhere")).output().expect("it starts");
    assert!(refusal(&output, 3).contains("elsewhere: No such file"), "{}", said(&output));
    assert_eq!(bench.commit()["outcome"], "committed");
    assert!(bench.path("made").exists());
}

#[test]
fn the_tree_stays_as_it_was_first_seen() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo before > seen; mkdir folder; echo x > folder/x; seq 100000 > long");
    let looks = "cat seen; ls folder; head -n 2 long; stat -c %s seen; echo ready; read go; cat seen; ls folder; \
                 head -n 2 long; stat -c %s seen";
    let mut command = bench.command(["-n", looks]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    let first: Vec<String> = lines.by_ref().take_while(|line| line != "ready").collect();
    assert_eq!(first, ["before", "x", "1", "2", "7"], "what a look finds");
    // The others come between the command's first look and its second.
    bench.sh("echo afterwards > seen; echo y > folder/y; echo z > long");
    child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    let again: Vec<String> = lines.take(5).collect();
    assert_eq!(again, first);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn what_the_kernel_keeps_shows_no_more_than_what_is_recorded() {
    if !can_try() {
        return;
    }
    // Whoever wants no question asked gets the same of any file until the question was asked.
    let shown = |tree: &str, command: &str| {
        let bench = Bench::new();
        bench.sh(tree);
        let output = bench.run(["-n", command]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().take(2).collect::<Vec<_>>().join("\n")
    };
    let trees = [
        "printf abcd > file; ln file alias; ln -s to link",
        "printf abcdef > file; ln file alias; ln file third; touch -d 2001-01-01 file; ln -s away link",
    ];
    let kept = "stat --cached=always -c '%F %a %s %X %Y %Z %h' file link";
    assert_eq!(shown(trees[0], kept), shown(trees[1], kept));
    let [first, second] = trees.map(|tree| shown(tree, "read x < file; cat file; echo; readlink link"));
    assert_eq!((first.as_str(), second.as_str()), ("abcd\nto", "abcdef\naway"));
    let asked = "stat -c %s file > /dev/null; stat --cached=always -c '%s %h' file; cat link 2> /dev/null || echo";
    let [first, second] = trees.map(|tree| shown(tree, asked));
    assert!(first.starts_with("4 2") && second.starts_with("6 3"), "{first} {second}");
}

#[test]
fn programs_that_were_run_are_seen() {
    if !can_try() {
        return;
    }
    // A large program is read by the kernel itself, and is a look all the same.
    for (others, outcome) in [("echo >> program", "refused"), ("echo x > unrelated", "committed")] {
        let bench = Bench::new();
        bench.sh("cp $(readlink -f /bin/bash) program; chmod 755 program");
        bench.run_script("./program -c 'exit 0'; echo x > result");
        bench.sh(others);
        let document = bench.commit();
        assert_eq!(document["outcome"], outcome, "{document}");
    }
}

#[test]
fn numbers_of_inodes_are_those_of_the_tree() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo x > file");
    let inode = fs::metadata(bench.path("file")).expect("it is there").ino();
    let output = bench.run(["-n", "stat -c %i file"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("{inode}\n")), "git compares them");
}

#[test]
fn all_options_are_explained_and_wrong_ones_are_refused() {
    let bench = Bench::new();
    let help = String::from_utf8_lossy(&bench.run(["--help"]).stdout).into_owned();
    for option in ["-n", "-y", "-x", "-E", "-I", "-i", "-N", "-L", "-t", "--retry", "--merge", "--json", "recover"] {
        assert!(help.contains(option), "{option}");
    }
    for wrong in [
        &["--nonsense", "true"][..],
        &["-q", "true"],
        &["summary"],
        &["commit", "a", "b"],
        &["-N"],
        &["-I", "(", "true"],
        &["--retry", "x", "true"],
        &["--retry", "2", "true"],
        &["commit", "does-not-exist"],
        &["commit", "/"],
        &["--format", "xml", "true"],
    ] {
        refusal(&bench.run(wrong.iter().copied()), 2);
    }
}
