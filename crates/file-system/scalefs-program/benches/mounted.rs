//! What calls take in a mounted ScaleFS, as a part of what they take on tmpfs: both by the system's calls, by turns, by the clock,
//! since the work is done by two processes. And what they take in a transaction: transaction/mod.rs.
//!
//! Prints a row of each call, and where it is to where errors go: table/mod.rs.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod transaction;

#[cfg(target_os = "linux")]
fn main() {
    if transaction::is_child() || !support::can_mount() {
        return;
    }
    for (kind, options) in [("", &[] as &[&str]), (", nothing cached", &["--no-cache"])] {
        let mounted = support::Mounted::new(&[&["--size", "256M"], options].concat());
        let tmpfs = support::Scratch::below(std::path::Path::new("/dev/shm"));
        for call in measured::CALLS {
            measured::compare(&format!("{}{kind}", call.title), call, [&mounted.point, &tmpfs.0]);
        }
    }
    transaction::compare();
}

#[cfg(target_os = "linux")]
mod measured {
    use std::fs::{self, File, OpenOptions};
    use std::hint::black_box;
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::time::Instant;

    use crate::table;

    const ROUNDS: usize = 15;
    const PAGE: usize = 4096;
    /// Files that are read one after the other, and that a listing finds.
    const FILES: usize = 100;

    /// A call that is measured.
    pub struct Call {
        pub title: &'static str,
        /// How often in a round.
        count: u32,
        make: fn(&Path, u32),
    }

    thread_local! {
        static OPEN: std::cell::RefCell<Option<File>> = const { std::cell::RefCell::new(None) };
    }

    fn with_open<T>(call: impl FnOnce(&File) -> T) -> T {
        OPEN.with_borrow(|file| call(file.as_ref().expect("opened before")))
    }

    pub const CALLS: &[Call] = &[
        Call { title: "stat", count: 500, make: |top, _| drop(black_box(fs::metadata(top.join("a/b/file")))) },
        Call {
            title: "stat of what is not there",
            count: 500,
            make: |top, _| drop(black_box(fs::metadata(top.join("a/b/none")))),
        },
        Call { title: "fstat", count: 500, make: |_, _| drop(black_box(with_open(File::metadata))) },
        Call {
            title: "open+close",
            count: 200,
            make: |top, _| drop(File::open(top.join("a/b/file")).expect("it is there")),
        },
        Call { title: "create+unlink", count: 50, make: create_and_unlink },
        Call { title: "mkdir+rmdir", count: 50, make: mkdir_and_rmdir },
        Call { title: "rename", count: 50, make: rename_twice },
        Call { title: "link+unlink", count: 50, make: link_and_unlink },
        Call { title: "symlink+readlink+unlink", count: 50, make: symlink_and_unlink },
        Call { title: "chmod", count: 50, make: chmod },
        Call { title: "readdir of 100 names", count: 10, make: list },
        Call { title: "pread 4 KiB", count: 500, make: read_page },
        Call { title: "pwrite 4 KiB", count: 500, make: write_page },
        Call { title: "create, write 4 KiB, close, unlink", count: 50, make: write_and_unlink },
    ];

    fn create_and_unlink(top: &Path, _: u32) {
        drop(File::create_new(top.join("a/b/new")).expect("it is not there"));
        fs::remove_file(top.join("a/b/new")).expect("it is there");
    }

    fn mkdir_and_rmdir(top: &Path, _: u32) {
        fs::create_dir(top.join("a/b/new")).expect("it is not there");
        fs::remove_dir(top.join("a/b/new")).expect("it is there");
    }

    fn rename_twice(top: &Path, _: u32) {
        fs::rename(top.join("a/b/moved"), top.join("a/b/there")).expect("it is there");
        fs::rename(top.join("a/b/there"), top.join("a/b/moved")).expect("it is there");
    }

    fn link_and_unlink(top: &Path, _: u32) {
        fs::hard_link(top.join("a/b/moved"), top.join("a/b/other")).expect("it is there");
        fs::remove_file(top.join("a/b/other")).expect("it is there");
    }

    fn symlink_and_unlink(top: &Path, _: u32) {
        std::os::unix::fs::symlink("file", top.join("a/b/link")).expect("it is not there");
        black_box(fs::read_link(top.join("a/b/link")).expect("it is there"));
        fs::remove_file(top.join("a/b/link")).expect("it is there");
    }

    fn chmod(top: &Path, round: u32) {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(if round.is_multiple_of(2) { 0o600 } else { 0o644 });
        fs::set_permissions(top.join("a/b/moved"), mode).expect("it is there");
    }

    fn list(top: &Path, _: u32) {
        assert_eq!(fs::read_dir(top.join("names")).expect("it is there").count(), FILES);
    }

    fn read_page(_: &Path, index: u32) {
        let mut page = [0; PAGE];
        let offset = u64::from(index % 64) * PAGE as u64;
        assert_eq!(with_open(|file| file.read_at(&mut page, offset)).expect("it is open"), PAGE);
        black_box(page);
    }

    fn write_page(_: &Path, index: u32) {
        let offset = u64::from(index % 64) * PAGE as u64;
        let written = with_open(|file| file.write_at(&[index as u8; PAGE], offset));
        assert_eq!(written.expect("there is room"), PAGE);
    }

    fn write_and_unlink(top: &Path, _: u32) {
        fs::write(top.join("a/b/new"), [1; PAGE]).expect("there is room");
        fs::remove_file(top.join("a/b/new")).expect("it is there");
    }

    fn prepare(top: &Path) {
        if top.join("a").exists() {
            return;
        }
        fs::create_dir_all(top.join("a/b")).expect("there is room");
        fs::create_dir(top.join("names")).expect("there is room");
        for number in 0..FILES {
            File::create(top.join(format!("names/file-{number}"))).expect("there is room");
        }
        fs::write(top.join("a/b/file"), vec![0; 64 * PAGE]).expect("there is room");
        fs::write(top.join("a/b/moved"), "").expect("there is room");
    }

    /// Nanoseconds of a call.
    fn time(call: &Call, top: &Path) -> f64 {
        OPEN.set(Some(OpenOptions::new().read(true).write(true).open(top.join("a/b/file")).expect("it is there")));
        (call.make)(top, 0);
        let started = Instant::now();
        (0..call.count).for_each(|index| (call.make)(top, index));
        let taken = started.elapsed().as_nanos() as f64 / f64::from(call.count);
        OPEN.set(None);
        taken
    }

    pub fn compare(title: &str, call: &Call, tops: [&Path; 2]) {
        if !table::is_wanted(title) {
            return;
        }
        tops.iter().for_each(|top| prepare(top));
        let measured = table::rounds(title, table::size(ROUNDS, 1), |_| tops.map(|top| time(call, top)));
        table::row(title, &measured);
    }
}
