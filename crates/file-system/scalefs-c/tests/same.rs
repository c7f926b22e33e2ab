//! Sequences of calls that `same/same.c` makes by the C library and, built with ON_HOST, by the host's own calls on tmpfs: every
//! answer must be the same.
#![cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]

mod build;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of the host's, on tmpfs if there is one, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let folder = parent.join(format!("scalefs-c-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether the caller may become other users, who then reach the folder.
fn may_become_others() -> bool {
    let ran = Command::new("id").arg("-u").output().expect("expected the command id");
    ran.stdout == b"0\n"
}

/// Whether the host lets the caller make devices, which it does not within most containers.
fn may_make_devices(folder: &Path) -> bool {
    let device = folder.join("device");
    let made = Command::new("mknod").arg(&device).args(["c", "510", "7"]).output().expect("expected the command mknod");
    let _ = std::fs::remove_file(device);
    made.status.success()
}

fn lines(program: &build::Program, folder: &Path) -> Vec<String> {
    let said = |may: bool| if may { "1" } else { "0" };
    let (users, devices) = (may_become_others(), may_make_devices(folder));
    let ran = Command::new(program.path()).arg(folder).args([said(users), said(users && devices)]).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn calls_in_c_answer_as_the_hosts_on_tmpfs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/same/same.c");
    let ours = build::program("same", &source, &[]);
    let hosts = build::program("same-host", &source, &["-DON_HOST"]);
    let folder = Folder::new("same");
    let (ours, hosts) = (lines(&ours, &folder.0), lines(&hosts, &folder.0));
    let differing: Vec<_> = ours.iter().zip(&hosts).filter(|(ours, hosts)| ours != hosts).collect();
    assert!(differing.is_empty(), "answers of the library, and of the host, by the line of same.c: {differing:#?}");
    assert_eq!(ours.len(), hosts.len());
    assert!(ours.len() > 250, "only {} answers were compared", ours.len());
}
