//! A folder with a tree, workspaces and the program, for a test; all of it goes with the test.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Whether commands can be tried here; where not, a test says why it looks at nothing.
pub fn can_try() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let has_device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    let has_overlay = fs::read_to_string("/proc/filesystems").is_ok_and(|known| known.contains("overlay"));
    if !(is_root && has_device && has_overlay) {
        eprintln!("not tested: it takes root, /dev/fuse and overlayfs");
    }
    is_root && has_device && has_overlay
}

/// Whether a program is installed; where not, a test says so.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = found.expect("there is a shell").status.success();
    if !is_there {
        eprintln!("not tested: {program} is not installed");
    }
    is_there
}

/// A program as it would be started outside of cargo. Cargo has the loader look into the folder of what it builds, so each program
/// that is tried has seen that folder, which another build may change.
pub fn started(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// A folder of a test's own.
pub struct Bench {
    folder: PathBuf,
    /// The fault that is planted in the program.
    pub planted: Option<&'static str>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    /// A folder on the file system of the workspace's target, with an empty tree `tree` and a workspace `changes`.
    pub fn new() -> Bench {
        Bench::below(&std::env::temp_dir())
    }

    pub fn below(above: &Path) -> Bench {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = above.join(format!("try-test-{}-{number}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        let folder = folder.canonicalize().expect("a path");
        for name in ["tree", "changes"] {
            fs::create_dir(folder.join(name)).expect("a new folder");
        }
        Bench { folder, planted: None }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path in the tree.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("tree").join(name)
    }

    /// The workspace.
    pub fn changes(&self) -> PathBuf {
        self.folder.join("changes")
    }

    /// A shell script in the tree, without any trying: the others.
    pub fn sh(&self, script: &str) {
        let status = Command::new("sh").args(["-euc", script]).current_dir(self.path("")).status();
        assert!(status.expect("there is a shell").success(), "{script}");
    }

    /// The program, in the tree.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = started(env!("CARGO_BIN_EXE_commutant-try"));
        command.args(arguments).current_dir(self.path("")).env("XDG_STATE_HOME", self.folder.join("state"));
        command.env("TRY_SHELL", "/bin/sh").stdin(Stdio::null());
        if let Some(fault) = self.planted {
            command.env("COMMUTANT_TRY_PLANTED", fault);
        }
        command
    }

    pub fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Runs a script in the workspace `changes`; it must succeed.
    pub fn run_script(&self, script: &str) -> Output {
        let changes = self.changes();
        let output = self.run(["-N", changes.to_str().expect("text"), script]);
        assert!(output.status.success(), "{script}: {}", said(&output));
        output
    }

    /// Commits the workspace; the document, whose exit code is the program's.
    pub fn commit(&self) -> Value {
        self.commit_with(&[])
    }

    pub fn commit_with(&self, options: &[&str]) -> Value {
        let changes = self.changes();
        let mut arguments = vec!["--json"];
        arguments.extend(options);
        arguments.extend(["commit", changes.to_str().expect("text")]);
        document(&self.run(arguments))
    }

    /// What the tree holds: kind, mode, size, target and contents of everything, by name.
    pub fn left(&self) -> String {
        left_at(&self.path(""))
    }
}

/// The same of any folder.
pub fn left_at(folder: &Path) -> String {
    let script = r"find . \( -type d -printf '%P %y %m\n' \) -o \( -type l -printf '%P %y %l\n' \) -o \
        \( -type f -printf '%P %y %m %s %n ' -exec sha256sum {} \; \) -o -printf '%P %y %m\n' | LC_ALL=C sort";
    let output = Command::new("sh").args(["-euc", script]).current_dir(folder).output().expect("there is a shell");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one JSON document on standard output.
pub fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("a document: {text} {}", said(output)));
    assert_eq!(document["exit_code"].as_i64(), output.status.code().map(i64::from), "{document}");
    document
}

/// Both outputs, for messages.
pub fn said(output: &Output) -> String {
    format!(
        "{}: {} {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What the program said when it refused, in one line.
pub fn refusal(output: &Output, exit_code: i32) -> String {
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit_code), "{}", said(output));
    assert_eq!(line.lines().count(), 1, "one line: {line}");
    assert!(line.starts_with("commutant try: "), "{line}");
    line
}

/// The paths of a document's conflicts, below the tree.
pub fn conflicts(document: &Value) -> Vec<String> {
    let all = document["conflicts"].as_array().expect("a list");
    let name =
        |conflict: &Value| conflict["path"].as_str().expect("text").rsplit('/').next().expect("a name").to_owned();
    all.iter().map(name).collect()
}

/// Lets everybody read and enter.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}
