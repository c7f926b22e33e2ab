//! What a run or a commit meets that it cannot do, or can do only by name: one line, and nothing is left behind.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::process::{Output, Stdio};

use support::{Bench, can_try, conflicts, has, refusal, said, started};

/// Runs a script as root in a mount namespace of its own, in the tree; `$TRY` is the and `$CHANGES` the workspace.
fn apart(bench: &Bench, script: &str) -> Output {
    let mut command = started("unshare");
    command.args(["-m", "sh", "-euc", script]).current_dir(bench.path("")).env("TRY_SHELL", "/bin/sh");
    command.env("TRY", env!("CARGO_BIN_EXE_commutant-try")).env("CHANGES", bench.changes());
    command.env("XDG_STATE_HOME", bench.folder().join("state")).stdin(Stdio::null());
    command.output().expect("there is unshare")
}

#[test]
fn a_full_disk_is_said_and_nothing_is_changed() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir inner");
    // The changes lie elsewhere: their copies do not fit beside their places. With more room they do.
    let output = apart(
        &bench,
        "mount -t tmpfs -o size=1m inner inner; echo old > inner/small
         $TRY -N $CHANGES 'echo new > inner/small; head -c 3000000 /dev/zero > inner/large'
         $TRY commit $CHANGES && exit 9; test $(cat inner/small) = old; test \"$(ls -A inner)\" = small
         mount -o remount,size=8m inner; $TRY commit $CHANGES; test $(cat inner/small) = new; test $(stat -c %s inner/large) = 3000000
         test \"$(ls -A inner | tr '\\n' ' ')\" = 'large small '",
    );
    assert!(output.status.success(), "{}", said(&output));
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(line.lines().count() == 1 && line.contains("No space left on device"), "{line}");
}

#[test]
fn a_large_file_with_holes_costs_no_space() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.run_script("truncate -s 100G huge; echo end >> huge");
    assert_eq!(bench.commit()["outcome"], "committed");
    bench.sh("test $(stat -c %s huge) = $((100 * 1024 * 1024 * 1024 + 4)); test $(stat -c %b huge) -lt 1000");
}

#[test]
fn a_directory_of_the_tree_is_moved_by_copy() {
    if !can_try() || !has("perl") {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir -p old/deep; echo x > old/deep/x");
    // The call itself is refused with EXDEV (18), as between file systems; programs that move directories copy then.
    let output = bench.run(["-n", "perl -e 'exit(rename(\"old\", \"new\") ? 0 : $!)'"]);
    assert_eq!(output.status.code(), Some(18), "{}", said(&output));
    bench.run_script("mv old new");
    assert_eq!(bench.commit()["outcome"], "committed");
    bench.sh("test ! -e old; test $(cat new/deep/x) = x");
}

#[test]
fn a_run_has_no_descriptor_of_its_caller() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo secret > victim");
    let output = apart(
        &bench,
        "exec 7<>victim; $TRY -n 'test ! -e /proc/self/fd/7; ! echo x >&7' 2>/dev/null >/dev/null; cat victim",
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "secret\n", "{}", said(&output));
}

#[test]
fn notes_of_an_overlay_in_the_tree_are_not_followed() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir folder elsewhere; echo x > folder/x; echo secret > elsewhere/x");
    let note = "python3 -I -c 'import os; os.setxattr(\"folder\", \"trusted.overlay.opaque\", b\"y\"); \
                os.setxattr(\"folder\", \"trusted.overlay.redirect\", b\"elsewhere\")'";
    bench.sh(note);
    let output = bench.run(["-n", "cat folder/x; python3 -I -c 'import os; print(os.listxattr(\"folder\"))'"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("x\n[]\n"), "{}", said(&output));
    // And those that a command makes are no more than the command's.
    bench.run_script("echo y > folder/y");
    assert_eq!(bench.commit()["outcome"], "committed");
    bench.sh("test $(cat folder/x) = x; test $(cat folder/y) = y");
}

#[test]
fn rights_of_a_program_arrive_or_are_named() {
    if !can_try() || !has("setcap") {
        return;
    }
    let bench = Bench::new();
    bench.run_script("cp /bin/true made; chmod 755 made; setcap cap_net_raw+ep made");
    assert_eq!(bench.commit()["outcome"], "committed");
    bench.sh("getcap made | grep -q cap_net_raw");
}

#[test]
fn what_a_machine_does_not_have_is_one_line() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let without = apart(&bench, "mount --bind /dev/null /dev/fuse 2>/dev/null; exec $TRY -n true");
    assert!(!without.status.success() && said(&without).contains("commutant try: "), "{}", said(&without));
    // A kernel that knows no overlayfs, and has no modules to load.
    if !fs::exists("/proc/modules").is_ok_and(|exists| exists) {
        let without =
            apart(&bench, "echo 'nodev proc' > ../known; mount --bind ../known /proc/filesystems; exec $TRY -n true");
        assert!(refusal(&without, 3).contains("no overlayfs"), "{}", said(&without));
    }
    // User namespaces that are not allowed: root of one is a user.
    let script =
        "chmod 755 ..; exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec $TRY -n true'";
    let without = apart(&bench, script);
    assert!(refusal(&without, 3).contains("user namespaces are not allowed"), "{}", said(&without));
    // A file system that no layer can lie on.
    let script = "mkdir l u w m; mount -t overlay -o lowerdir=l,upperdir=u,workdir=w o m; mkdir m/changes; exec $TRY -N m/changes true";
    let without = apart(&bench, script);
    assert!(refusal(&without, 3).contains("on another file system with -N"), "{}", said(&without));
}

#[test]
fn what_became_something_else_is_named() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo x > file; mkdir folder; echo y > folder/y");
    bench.run_script("cat file folder/y > both");
    bench.sh("rm file; mkdir file; rm -r folder; echo z > folder");
    let document = bench.commit();
    assert_eq!(document["outcome"], "refused", "{document}");
    let named = conflicts(&document);
    assert!(named.contains(&"file".to_owned()) && named.contains(&"folder".to_owned()), "{document}");
    assert!(!bench.path("both").exists());
}
