//! Whatever lies in a workspace, in the tree, or comes in between: a line that says so, and nothing of others changes.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Output};

use support::{Bench, can_try, conflicts, document, refusal, said, started};

const USER: u32 = 65_534;

fn commit_line(bench: &Bench, exit_code: i32) -> String {
    refusal(&bench.run(["commit", bench.changes().to_str().expect("text")]), exit_code)
}

/// A file of a workspace with another end, which is the hash of what is before it.
fn forge(bench: &Bench, name: &str, text: &str) {
    fs::write(bench.changes().join(name), format!("{text}end {}\n", blake3::hash(text.as_bytes()).to_hex()))
        .expect("ours");
}

#[test]
fn a_layer_of_another_user_is_not_committed_by_root() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.run_script("cp /bin/true made; chmod 4755 made");
    std::os::unix::fs::chown(bench.changes(), Some(USER), None).expect("root may");
    assert!(commit_line(&bench, 2).contains("belongs to user 65534"));
    std::os::unix::fs::chown(bench.changes(), Some(0), None).expect("root may");
    fs::set_permissions(bench.changes(), fs::Permissions::from_mode(0o777)).expect("ours");
    assert!(commit_line(&bench, 2).contains("others may write into"));
    assert_eq!(bench.left(), " d 755\n");
    fs::set_permissions(bench.changes(), fs::Permissions::from_mode(0o700)).expect("ours");
    assert_eq!(bench.commit()["outcome"], "committed");
    assert_eq!(fs::metadata(bench.path("made")).expect("it is there").mode() & 0o7777, 0o4755);
}

#[test]
fn a_damaged_record_commits_nothing() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.run_script("echo x > made");
    let record = bench.changes().join("records/1");
    let whole = fs::read(&record).expect("it is there");
    let middle = whole.len() / 2;
    let mut flipped = whole.clone();
    flipped[middle] ^= 1;
    let without_end =
        &whole[..whole.len() - 1 - whole.iter().rev().skip(1).position(|byte| *byte == b'\n').expect("lines")];
    let longer = [&whole[..], b"/x name absent\n"].concat();
    for damaged in [&whole[..middle], b"", &flipped[..], without_end, &longer[..], b"nonsense\n"] {
        fs::write(&record, damaged).expect("ours");
        assert!(commit_line(&bench, 2).contains("records/1"));
    }
    fs::remove_file(&record).expect("ours");
    assert_eq!(bench.commit()["outcome"], "refused", "what it replaces was not looked at");
    assert_eq!(bench.left(), " d 755\n");
}

#[test]
fn a_forged_journal_does_nothing() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo safe > victim");
    bench.run_script("echo x > made");
    let victim = fs::metadata(bench.path("victim")).expect("it is there");
    let path = bench.path("victim").display().to_string();
    let object = |inode: u64| format!("file 644 0 0 {} {inode} 1 5 0.000000000 0.000000000 0", victim.dev());
    let first = "commutant-try journal 1\n";
    let recover = |bench: &Bench| bench.run(["recover", bench.changes().to_str().expect("text")]);
    // No hash, or no step at all.
    fs::write(bench.changes().join("journal"), format!("{first}{path} workspace 0 remove {}\n", object(victim.ino())))
        .expect("ours");
    refusal(&recover(&bench), 2);
    for step in [
        format!("/etc/../{path} workspace 0 remove {}", object(victim.ino())),
        format!("{path} workspace ../../victim remove {}", object(victim.ino())),
        format!("{path} workspace 0 destroy {}", object(victim.ino())),
        format!("/ workspace 0 remove {}", object(victim.ino())),
        format!("relative workspace 0 remove {}", object(victim.ino())),
        format!("{path} workspace 0 attributes {0} 1 {0} 0", object(victim.ino())),
    ] {
        forge(&bench, "journal", &format!("{first}{step}\n"));
        refusal(&recover(&bench), 2);
    }
    // A step like ours, about another object or another version of it.
    for step in [
        format!("{path} workspace 0 remove {}", object(victim.ino() + 1)),
        format!("{path} workspace 0 remove {}", object(victim.ino())),
        format!("{path} workspace 0 create {}", object(1)),
    ] {
        forge(&bench, "journal", &format!("{first}{step}\n"));
        assert_eq!(recover(&bench).status.code(), Some(1));
        assert_eq!(fs::read_to_string(bench.path("victim")).expect("it is there"), "safe\n");
    }
    assert_eq!(bench.commit()["outcome"], "committed");
}

#[test]
fn a_link_in_the_way_is_not_followed() {
    if !can_try() {
        return;
    }
    for at in ["CHECK", "PUBLICATION"] {
        let bench = Bench::new();
        let outside = bench.folder().join("outside");
        fs::create_dir(&outside).expect("a new folder");
        bench.sh("mkdir sub; echo old > sub/file");
        bench.run_script("echo new > sub/file; echo new > sub/made");
        fs::write(outside.join("file"), "outside\n").expect("ours");
        let swap = format!("cd {}; mv sub away; ln -s {} sub", bench.path("").display(), outside.display());
        let mut command = bench.command(["--json", "commit", bench.changes().to_str().expect("text")]);
        let output = command.env(format!("COMMUTANT_TRY_RUN_AT_{at}"), swap).output().expect("it starts");
        assert_eq!(document(&output)["outcome"], "refused", "{}", said(&output));
        assert_eq!(fs::read_to_string(outside.join("file")).expect("it is there"), "outside\n");
        assert!(!outside.join("made").exists());
        assert_eq!(fs::read_to_string(bench.path("away/file")).expect("it is there"), "old\n");
    }
}

#[test]
fn one_workspace_is_used_by_one() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.run_script("echo x > made");
    let held = fs::File::open(bench.changes()).expect("it is there");
    held.lock().expect("it is free");
    for verb in ["commit", "summary", "recover", "explore"] {
        assert!(refusal(&bench.run([verb, bench.changes().to_str().expect("text")]), 3).contains("in use"));
    }
    drop(held);
    assert_eq!(bench.commit()["outcome"], "committed");
}

#[test]
fn two_commits_at_once_come_one_after_the_other() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo 0 > counter");
    let increment = "read n < counter; echo $((n + 1)) > counter";
    let count = 4;
    let committed = std::thread::scope(|scope| {
        let run = || {
            let output = bench.command(["-y", "--json", "--retry", "100", increment]).output().expect("it starts");
            document(&output)["outcome"] == "committed"
        };
        let runs: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).filter(|committed| *committed).count()
    });
    assert_eq!(committed, count);
    assert_eq!(fs::read_to_string(bench.path("counter")).expect("it is there"), format!("{count}\n"), "none is lost");
}

#[test]
fn of_two_recoveries_at_once_one_does_it() {
    if !can_try() {
        return;
    }
    let cut_short = |place: u32| {
        let bench = Bench::new();
        bench.sh("for i in 1 2 3; do echo 0 > $i; done");
        bench.run_script("for i in 1 2 3; do echo 1 > $i; done");
        let mut command = bench.command(["commit", bench.changes().to_str().expect("text")]);
        let output = command.env("COMMUTANT_TRY_END_AT", place.to_string()).output().expect("it starts");
        assert!(output.status.code().is_none(), "{place}: {}", said(&output));
        bench
    };
    let bench = (1..).map(cut_short).find(is_halfway).expect("a commit has a middle");
    let changes = bench.changes();
    let changes = changes.to_str().expect("text");
    let recover = || bench.run(["recover", changes]);
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(recover);
        [recover(), other.join().expect("it ends")]
    });
    let is_done = |output: &Output| output.status.success();
    let is_in_use = |output: &Output| refusal(output, 3).contains("is in use");
    assert!(both.iter().any(is_done) && both.iter().all(|one| is_done(one) || is_in_use(one)), "{both:?}");
    bench.sh("test $(cat 1 2 3 | tr -d '\\n') = 111");
}

fn is_halfway(bench: &Bench) -> bool {
    let content = |name: &&str| fs::read_to_string(bench.path(name)).expect("it is there");
    let all: String = ["1", "2", "3"].iter().map(content).collect();
    all != "0\n0\n0\n" && all != "1\n1\n1\n"
}

#[test]
fn a_program_does_not_get_out() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo safe > victim");
    let victim = bench.path("victim").display().to_string();
    let tries = [
        "mount --bind / /mnt && exit 9".to_owned(),
        "mknod disk b 254 0 && cat disk >/dev/null && exit 9".to_owned(),
        "mknod /dev/disk c 1 5 && head -c 1 /dev/disk >/dev/null && exit 9".to_owned(),
        // Process 1 has no more rights than the command, which may trace it.
        "while read -r key value; do case $key in CapPrm:|CapEff:) test $((0x$value >> 21 & 1)) = 0 || exit 9;; esac; done < /proc/1/status"
            .to_owned(),
        "echo 1 > /proc/sys/vm/overcommit_memory && exit 9".to_owned(),
        format!("for p in /proc/[0-9]*/root{victim}; do echo broken > $p; done"),
        "chroot /proc/1/cwd true && exit 9".to_owned(),
        "test -e /dev/sda -o -e /dev/vda && exit 9".to_owned(),
        "nsenter -t 1 -m true && exit 9".to_owned(),
        "kill -9 1; kill -9 -1 2>/dev/null".to_owned(),
    ];
    for script in tries {
        let output = bench.run(["-n", &format!("{{ {script}; }} 2>/dev/null")]);
        assert_ne!(output.status.code(), Some(9), "{script}");
        assert_eq!(fs::read_to_string(bench.path("victim")).expect("it is there"), "safe\n", "{script}");
    }
    assert_eq!(bench.left().lines().count(), 2);
}

#[test]
fn nothing_stays_behind() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let mounts = || {
        fs::read_to_string("/proc/self/mounts")
            .expect("it is there")
            .lines()
            .filter(|line| line.contains("try-test"))
            .count()
    };
    // A daemon that would live on.
    let output = bench.run(["-y", "(trap '' HUP TERM; exec 0<&- 1>&- 2>&-; sleep 98765) & sleep 0.1; echo x > made"]);
    assert!(output.status.success(), "{}", said(&output));
    let sleeping = Command::new("pgrep").args(["-f", "^sleep 98765"]).output().expect("there is pgrep");
    assert!(sleeping.stdout.is_empty(), "{}", said(&sleeping));
    assert_eq!(mounts(), 0);
    // A command that never ends, and somebody who has waited enough.
    let mut child = bench.command(["-y", "echo x > other; sleep 98765"]).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(300));
    Command::new("kill").arg(child.id().to_string()).status().expect("there is kill");
    assert!(!child.wait().expect("it ends").success());
    let sleeping = Command::new("pgrep").args(["-f", "^sleep 98765"]).output().expect("there is pgrep");
    assert!(sleeping.stdout.is_empty(), "{}", said(&sleeping));
    assert!(!bench.path("other").exists());
}

#[test]
fn unusual_objects_are_committed_or_named() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo one > linked; ln linked second; truncate -s 3M sparse; echo end >> sparse");
    bench.run_script(
        "mkfifo pipe; mknod null c 1 3; echo new > linked; echo more >> sparse; python3 -I -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"",
    );
    let document = bench.commit();
    assert_eq!(document["outcome"], "committed", "{document}");
    assert_eq!(document["left_out"].as_array().map(Vec::len), Some(1), "{document}");
    let kind = |name: &str| fs::symlink_metadata(bench.path(name)).expect("it is there").file_type();
    assert!(kind("pipe").is_fifo() && kind("null").is_char_device() && !bench.path("sock").exists());
    assert_eq!(fs::read_to_string(bench.path("second")).expect("it is there"), "one\n");
    let sparse = fs::metadata(bench.path("sparse")).expect("it is there");
    assert_eq!(sparse.size(), (3 << 20) + 9);
}

#[test]
fn another_mount_is_part_of_the_tree() {
    if !can_try() {
        return;
    }
    // /dev/shm is a mount of its own, which each run has for itself; so one is made, in a namespace of the test's own.
    let bench = Bench::new();
    bench.sh("mkdir inner");
    let program = env!("CARGO_BIN_EXE_commutant-try");
    let changes = bench.changes();
    let script = format!(
        "mount -t tmpfs inner inner && echo before > inner/file && mkdir inner/gone && \
         {program} -N {0} 'read x < inner/file; echo $x-after > inner/file; rmdir inner/gone; truncate -s 1M inner/sparse; mkdir inner/d; echo y > inner/d/y' && \
         {program} commit {0} && cat inner/file inner/d/y && ls -A inner && stat -c %b inner/sparse",
        changes.display()
    );
    let output = started("unshare")
        .args(["-m", "sh", "-euc", &script])
        .current_dir(bench.path(""))
        .env("TRY_SHELL", "/bin/sh")
        .output();
    let output = output.expect("there is unshare");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "before-after\ny\nd\nfile\nsparse\n0\n");
}

#[test]
fn a_refused_step_undoes_the_others() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("echo a > a; echo z > z");
    bench.run_script("echo 1 > a; echo 1 > z; echo 1 > n");
    let left = bench.left();
    let immutable = Command::new("chattr").arg("+i").arg(bench.path("z")).status();
    if !immutable.is_ok_and(|status| status.success()) {
        eprintln!("not tested: this file system has no immutable files");
        return;
    }
    let output = bench.run(["commit", bench.changes().to_str().expect("text")]);
    let undone = bench.left();
    assert!(Command::new("chattr").arg("-i").arg(bench.path("z")).status().expect("there is chattr").success());
    // A change of its flags is one of its time of change: it is a conflict, unless the commit has found out by itself.
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(undone, left);
}

#[test]
fn a_user_commits_what_a_user_may() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    for path in [bench.folder().to_owned(), bench.path("")] {
        std::os::unix::fs::chown(path, Some(USER), Some(USER)).expect("root may");
    }
    fs::create_dir(bench.path("of-root")).expect("ours");
    fs::write(bench.path("of-root/file"), "root's\n").expect("ours");
    symlink("of-root/file", bench.path("link")).expect("ours");
    let program = bench.folder().join("commutant-try");
    fs::copy(env!("CARGO_BIN_EXE_commutant-try"), &program).expect("ours");
    let script = format!(
        "mknod {0}/device c 10 229; chmod 666 {0}/device; mount --bind {0}/device /dev/fuse; \
         exec setpriv --reuid={USER} --regid={USER} --clear-groups env HOME={0} TRY_SHELL=/bin/sh sh -euc '\
         cat link >/dev/null; {1} -y \"id -u; cat link; echo mine > mine; mkdir -p d/e; echo x > d/e/x; ! echo x > of-root/file; ! echo x > /etc/x; ! cat /etc/shadow\" 2>/dev/null'",
        bench.folder().display(),
        program.display()
    );
    let output = started("unshare").args(["-m", "sh", "-euc", &script]).current_dir(bench.path("")).output();
    let output = output.expect("there is unshare");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{USER}\nroot's\n"));
    let made = fs::metadata(bench.path("d/e/x")).expect("it is there");
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o777), (USER, USER, 0o644));
    assert_eq!(fs::metadata(bench.path("")).expect("it is there").mode() & 0o777, 0o755);
    // Without a device: one line that says what to do.
    let script = format!(
        "exec setpriv --reuid={USER} --regid={USER} --clear-groups env HOME={} {} -y true",
        bench.folder().display(),
        program.display()
    );
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(bench.path("")).output().expect("there is a shell");
    if !output.status.success() {
        assert!(refusal(&output, 3).contains("/dev/fuse"));
    }
}

#[test]
fn paths_may_be_anything() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    let deep: String = (0..30).map(|_| format!("{}/", "d".repeat(200))).collect();
    bench.sh(r#"printf x > 'a b
c'; printf x > "$(printf '\377')""#);
    bench.run_script(&format!(
        "python3 - <<'END'\nimport os\nfor part in '{deep}'.split('/')[:-1]:\n    os.mkdir(part); os.chdir(part)\nopen('x', 'w').write('y')\nEND\n\
         read x < 'a b\nc' || true; read x < \"$(printf '\\377')\" || true"
    ));
    let document = bench.commit();
    assert_eq!(document["outcome"], "committed", "{document}");
    assert_eq!(conflicts(&document), Vec::<String>::new());
    assert!(bench.path(&"d".repeat(200)).is_dir());
    bench.sh("rm -rf d*");
}
