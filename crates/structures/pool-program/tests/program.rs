//! The program, run: what it says of pools, and of files that are none or that somebody has spoiled.

use std::ffi::CString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SIZE: u64 = 1 << 16;

/// A file of a test's own, which is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        Temporary(PathBuf::from(format!("/dev/shm/pool-program-{name}-{}", std::process::id())))
    }

    fn pool(name: &str) -> Temporary {
        let file = Temporary::new(name);
        assert_eq!(pool(&["create", "--size", "64K", file.text()]), (0, String::new(), String::new()));
        file
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn open(&self) -> fs::File {
        OpenOptions::new().read(true).write(true).open(&self.0).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pool"))
}

/// Exit code, what is printed, and what is complained of.
fn pool(arguments: &[&str]) -> (i32, String, String) {
    let ran = program().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

/// The one line of a run that fails.
fn complaint(arguments: &[&str]) -> String {
    let (code, out, error) = pool(arguments);
    assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}: {error}");
    assert_eq!(error.matches('\n').count(), 1, "{error}");
    error.trim_end().to_owned()
}

/// A stay in a pool in the background.
struct Stay {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Stay {
    /// Once it has joined.
    fn of(file: &Temporary, arguments: &[&str]) -> Stay {
        let mut child = program()
            .args(["join", file.text()])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stay = Stay { child, lines };
        assert!(stay.next_line().contains("joined"));
        stay
    }

    fn next_line(&mut self) -> String {
        self.lines.next().expect("the program goes on").unwrap()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child, and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Exit code and complaint.
    fn end(self) -> (Option<i32>, String) {
        let ended = self.child.wait_with_output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    }
}

#[test]
fn two_domains_join_find_memory_coherent_and_leave() {
    let file = Temporary::pool("two");
    let (mut first, mut second) = (Stay::of(&file, &["--domain", "0"]), Stay::of(&file, &["--domain", "1", "--json"]));
    let found = "coherent: each change of another domain was seen without write-backs";
    assert_eq!(first.next_line(), found);
    assert_eq!(second.next_line(), r#"{"event": "tested", "memory": "coherent"}"#);
    let (code, out, _) = pool(&["inspect", "--json", file.text()]);
    assert_eq!(code, 0);
    assert!(out.starts_with(&format!(r#"{{"file": "{}", "version": 1, "size_bytes": 65536, "#, file.text())), "{out}");
    let member = |domain: u32, process: u32| {
        format!(r#"{{"domain": {domain}, "process": {process}, "joined": true, "incarnation": 1}}"#)
    };
    let members = [member(0, first.child.id()), member(1, second.child.id())].join(", ");
    assert!(out.ends_with(&format!("\"members\": [{members}]}}\n")), "{out}");
    first.signal(libc::SIGTERM);
    assert_eq!(first.end(), (Some(0), String::new()));
    // A process that is killed leaves its number free.
    second.signal(libc::SIGKILL);
    assert_eq!(second.end(), (None, String::new()));
    let (_, out, _) = pool(&["inspect", file.text()]);
    assert!(out.contains("; 0 of 2 domains have joined\ndomain 0: has left: "), "{out}");
    let (code, out, _) = pool(&["join", "--domain", "1", "--for", "0", "--coherent", file.text()]);
    let unknown = "no other domain has answered: whether memory is coherent is unknown";
    assert_eq!((code, out), (0, format!("joined as domain 1 of 2, for the 2. time\n{unknown}\n")));
}

#[test]
fn two_domains_of_one_number_are_refused() {
    let file = Temporary::pool("one-number");
    let stay = Stay::of(&file, &["--domain", "1"]);
    let refused = complaint(&["join", "--domain", "1", file.text()]);
    let process = stay.child.id();
    let expected =
        format!("expected domain 1 to be free, but process {process} is in it: end that, or join as another");
    assert_eq!(refused, format!("pool: {}: {expected}", file.text()));
    let in_use = complaint(&["create", "--size", "64K", file.text()]);
    assert!(in_use.ends_with("expected a pool that is not in use, but domain 1 has joined: end it first"));
    let none = complaint(&["join", "--domain", "2", file.text()]);
    assert!(none.ends_with("expected a domain below 2, got 2"));
    stay.signal(libc::SIGINT);
    assert_eq!(stay.end(), (Some(0), String::new()));
}

#[test]
fn a_pool_that_is_made_shorter_ends_the_stay() {
    let file = Temporary::pool("shorter");
    let stay = Stay::of(&file, &["--domain", "0"]);
    file.open().set_len(64).unwrap();
    let why = "expected the pool's file to keep its size, but it was made shorter: create the pool again";
    assert_eq!(stay.end(), (Some(1), format!("pool: {}: {why}\n", file.text())));
    let refused = complaint(&["inspect", file.text()]);
    assert!(refused.contains("expected a pool of at least 65536 bytes, got 64"), "{refused}");
}

#[test]
fn what_is_no_pool_or_of_another_version_or_size_is_refused() {
    let file = Temporary::new("refused");
    let small = complaint(&["create", "--size", "1K", file.text()]);
    assert!(
        small.ends_with("expected a pool of at least 4160 bytes, got 1024: create it with a larger size"),
        "{small}"
    );
    let odd = complaint(&["create", "--size", "65537", file.text()]);
    assert!(odd.ends_with("expected a multiple of 64 bytes, got 65537"), "{odd}");
    assert!(!file.path().exists(), "a pool that cannot be made leaves no file");
    assert!(complaint(&["inspect", file.text()]).ends_with("open: No such file or directory (os error 2)"));
    let file = Temporary::pool("refused");
    file.open().write_all_at(&7_u32.to_le_bytes(), 8).unwrap();
    let other = complaint(&["join", "--domain", "0", file.text()]);
    assert!(
        other.ends_with("expected a pool of version 1, got version 7: create it again with this program"),
        "{other}"
    );
    file.open().write_all_at(&1_u32.to_le_bytes(), 8).unwrap();
    file.open().write_all_at(&[1], 40).unwrap();
    let damaged = complaint(&["join", "--domain", "0", file.text()]);
    assert!(damaged.ends_with("expected a pool, got one whose header has wrong bits: create it again"), "{damaged}");
}

#[test]
fn files_that_others_put_there_are_refused() {
    let pipe = Temporary::new("fifo");
    let path = CString::new(pipe.text()).unwrap();
    // SAFETY: the path ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let no_pool = "expected a pool, got another file: name a pool, or create one";
    for arguments in [&["create", "--size", "64K"][..], &["join", "--domain", "0"], &["inspect"]] {
        let refused = complaint(&[arguments, &[pipe.text()]].concat());
        assert_eq!(refused, format!("pool: {}: {no_pool}", pipe.text()), "{arguments:?}");
        assert!(complaint(&[arguments, &["/dev/shm"]].concat()).contains("Is a directory"));
        // A device that is no memory.
        let device = complaint(&[arguments, &["/dev/null"]].concat());
        assert!(device.contains("/dev/null: "), "{device}");
    }
    let file = Temporary::pool("of-others");
    for mode in [0o602, 0o666] {
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        let open = complaint(&["join", "--domain", "0", file.text()]);
        let expected = "expected a pool that only you, or you and a group, may write";
        assert!(open.contains(&format!("{expected}, got one of user ")), "{open}");
        assert!(open.contains(&format!("mode {mode:04o}")), "{open}");
    }
    fs::set_permissions(file.path(), Permissions::from_mode(0o660)).unwrap();
    assert_eq!(pool(&["inspect", file.text()]).0, 0);
    // Only the superuser can give files away; it is who must not trust those of others.
    if chown(file.path(), Some(4321), None).is_ok() {
        let foreign = complaint(&["join", "--domain", "0", file.text()]);
        assert!(foreign.contains("got one of user 4321, mode 0660"), "{foreign}");
        assert!(complaint(&["create", "--size", "64K", file.text()]).contains("got one of user 4321"));
    }
    let link = Temporary::new("link");
    let letter = Temporary::new("letter");
    fs::write(letter.path(), b"what somebody wants to keep, long enough to be looked at as a pool: 64 bytes").unwrap();
    symlink(letter.path(), link.path()).unwrap();
    assert!(complaint(&["create", "--size", "64K", link.text()]).ends_with(no_pool));
    assert!(fs::read(letter.path()).unwrap().starts_with(b"what somebody"));
    // A link that leads to nothing yet: the pool would be made where a stranger wants it.
    fs::remove_file(letter.path()).unwrap();
    assert!(complaint(&["create", "--size", "64K", link.text()]).ends_with(no_pool));
    assert!(!letter.path().exists(), "nothing is made where the link leads");
    // Not even to a pool.
    let real = Temporary::pool("real");
    fs::remove_file(link.path()).unwrap();
    symlink(real.path(), link.path()).unwrap();
    for arguments in [&["create", "--size", "64K"][..], &["join", "--domain", "0"], &["inspect"]] {
        assert!(complaint(&[arguments, &[link.text()]].concat()).ends_with(no_pool), "{arguments:?}");
    }
}

#[test]
fn a_header_that_claims_more_than_there_is_maps_nothing() {
    let file = Temporary::pool("claims");
    // As a stranger writes it: a size of 2^60 bytes. Its checksum is wrong, too, and if it were right, the file is too small.
    file.open().write_all_at(&(1_u64 << 60).to_le_bytes(), 16).unwrap();
    assert!(complaint(&["join", "--domain", "0", file.text()]).ends_with("has wrong bits: create it again"));
    let file = Temporary::pool("cut");
    file.open().set_len(SIZE - 64).unwrap();
    let cut = complaint(&["join", "--domain", "0", file.text()]);
    assert!(cut.contains("expected a pool of at least 65536 bytes, got 65472"), "{cut}");
}

/// As of `pool inspect FILE | head -0`.
#[test]
fn who_reads_no_more_gets_no_traceback() {
    let file = Temporary::pool("unread");
    for arguments in [&["--help"][..], &["inspect", file.text()], &["inspect", "--json", file.text()]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = program().args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let error = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(
            (ran.status.code(), error.as_str()),
            (Some(1), "pool: Broken pipe (os error 32)\n"),
            "{arguments:?}"
        );
    }
}

/// The system says no only once the file is open.
#[test]
fn a_size_that_the_system_refuses_leaves_what_was_there() {
    let (new, old) = (Temporary::new("too-large"), Temporary::pool("kept"));
    for file in [&new, &old] {
        let refused = complaint(&["create", "--size", "16777215G", file.text()]);
        assert!(refused.contains("mmap: ") || refused.contains("truncate: "), "{refused}");
    }
    assert!(!new.path().exists());
    assert_eq!(pool(&["inspect", old.text()]).0, 0);
    assert_eq!(fs::metadata(old.path()).unwrap().len(), SIZE);
}

#[test]
fn a_wrong_command_line_is_refused_in_one_line() {
    let (code, out, error) = pool(&["join", "/dev/shm/none"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(error, "pool: expected --domain N, such as --domain 0: see pool join --help\n");
    let (code, out, error) = pool(&["--help"]);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("pool: memory that domains share without coherence"));
}
