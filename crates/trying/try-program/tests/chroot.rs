//! A run in a chroot whose root is a directory and no mount, as a system that was just unpacked into a folder has it.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use support::{Bench, can_try, conflicts, document, has, refusal, said, started};

/// What leads into `usr` on systems of today.
const LINKS: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Mounts this system's programs, devices and processes below the root, in a mount namespace of the script's own.
const MOUNTS: &str = "for name in usr dev sys; do mount --rbind /$name $0/$name; done; mount -t proc proc $0/proc";

/// A root with this system's programs, and the program itself.
fn root() -> Bench {
    let bench = Bench::new();
    for name in ["usr", "dev", "proc", "sys", "tmp", "srv", "changes"] {
        fs::create_dir(bench.path(name)).expect("a new folder");
    }
    for name in LINKS {
        let Ok(target) = fs::read_link(format!("/{name}")) else { continue };
        symlink(target, bench.path(name)).expect("a new link");
    }
    fs::copy(env!("CARGO_BIN_EXE_commutant-try"), bench.path("commutant-try")).expect("ours");
    bench
}

/// Runs the program in the chroot.
fn in_chroot(bench: &Bench, mounts: &str, arguments: &[&str]) -> Output {
    let script = format!("{mounts}; root=$0; exec chroot $root /commutant-try \"$@\"");
    let mut command = started("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-euc", &script]).arg(bench.path("")).args(arguments);
    command.env("TRY_SHELL", "/bin/sh").env("HOME", "/srv").current_dir("/");
    if let Some(fault) = bench.planted {
        command.env("COMMUTANT_TRY_PLANTED", fault);
    }
    command.output().expect("there is unshare")
}

fn can_change_root() -> bool {
    can_try() && has("unshare") && has("perl") && fs::read_link("/bin").is_ok()
}

#[test]
fn a_root_that_is_no_mount_is_a_tree_like_any_other() {
    if !can_change_root() {
        return;
    }
    let bench = root();
    fs::write(bench.path("srv/read"), "before\n").expect("ours");
    let ran = in_chroot(&bench, MOUNTS, &["-N", "/changes", "read x < /srv/read; echo $x > /srv/made"]);
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(!bench.path("srv/made").exists());
    let commit = ["--json", "commit", "/changes"];
    fs::write(bench.path("srv/read"), "afterwards\n").expect("ours");
    let refused = document(&in_chroot(&bench, MOUNTS, &commit));
    assert_eq!((&refused["outcome"], conflicts(&refused)), (&"refused".into(), vec!["read".to_owned()]), "{refused}");
    fs::write(bench.path("srv/read"), "before\n").expect("ours");
    assert_eq!(document(&in_chroot(&bench, MOUNTS, &commit))["outcome"], "committed");
    assert_eq!(fs::read_to_string(bench.path("srv/made")).expect("it is there"), "before\n");
}

/// Whether a root that climbs out of a chroot of its own, as one with its rights can, finds nothing above the run's tree.
fn keeps_in(bench: &Bench) -> bool {
    let above = bench.folder().join("above");
    fs::write(&above, "x\n").expect("ours");
    let climb = format!(
        "mkdir /srv/jail; exec perl -e 'chdir \"/\"; chroot \"/srv/jail\"; chdir \"..\" for 1..64; chroot \".\"; exit(-e \"{}\" ? 9 : 0)'",
        above.display()
    );
    let output = in_chroot(bench, MOUNTS, &["-N", "/changes", &climb]);
    assert!(matches!(output.status.code(), Some(0 | 9)), "{}", said(&output));
    output.status.code() == Some(0)
}

#[test]
fn what_lies_above_the_root_is_out_of_reach() {
    if !can_change_root() {
        return;
    }
    assert!(keeps_in(&root()));
    let mut bench = root();
    bench.planted = Some("try-program: what lies above a chroot stays");
    assert!(!keeps_in(&bench), "a planted fault was missed");
}

#[test]
fn a_chroot_without_what_a_run_needs_is_one_line() {
    if !can_change_root() {
        return;
    }
    let bench = root();
    let without = in_chroot(&bench, "mount --rbind /usr $0/usr; mount --rbind /dev $0/dev", &["-n", "true"]);
    assert!(refusal(&without, 3).contains("mount -t proc proc /proc"), "{}", said(&without));
    let without = in_chroot(&bench, "mount --rbind /usr $0/usr; mount -t proc proc $0/proc", &["-n", "true"]);
    assert!(refusal(&without, 3).contains("mount --rbind /dev"), "{}", said(&without));
}
