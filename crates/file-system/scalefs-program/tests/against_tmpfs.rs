//! The same random calls on a mounted ScaleFS and on tmpfs, by the system's own calls: each gives the same, and so does all
//! that can be seen in the end.
//!
//! `SCALEFS_SEED` repeats one sequence, `SCALEFS_ROUNDS` makes more of them.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

use support::{Mounted, Numbers, Scratch, can_mount};

const CALLS: u64 = 500;
/// Files that are open at once.
const OPEN_FILES: usize = 4;
/// Who calls, besides root.
const USER: u32 = 1234;

/// What a call gave: a text to compare, or the error's number.
type Given = Result<String, i32>;

fn given<T>(outcome: io::Result<T>, show: impl FnOnce(T) -> String) -> Given {
    outcome.map(show).map_err(|error| error.raw_os_error().unwrap_or(0))
}

fn nothing(outcome: io::Result<()>) -> Given {
    given(outcome, |()| String::new())
}

/// One of the two file systems, with files that are open in it.
struct Side {
    root: PathBuf,
    open: Vec<Option<File>>,
}

impl Side {
    fn new(root: &Path) -> Side {
        Side { root: root.to_path_buf(), open: (0..OPEN_FILES).map(|_| None).collect() }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn file<T>(&self, slot: usize, call: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        call(self.open[slot].as_ref().ok_or_else(|| io::Error::from_raw_os_error(9))?)
    }
}

/// What can be seen of an object. Sizes, link counts and blocks of directories are each file system's own.
fn shown(metadata: &fs::Metadata) -> String {
    let of_directory = metadata.is_dir();
    let (links, size) = if of_directory { (0, 0) } else { (metadata.nlink(), metadata.size()) };
    let device = metadata.rdev();
    format!("{:o} {}:{} links {links} size {size} device {device:x}", metadata.mode(), metadata.uid(), metadata.gid())
}

fn make_node(place: &Path, kind: SFlag, mode: u32, device: u64) -> io::Result<()> {
    mknod(place, kind, Mode::from_bits_truncate(mode), device).map_err(io::Error::from)
}

fn pattern(length: u64, salt: u64) -> Vec<u8> {
    (0..length).map(|index| (index.wrapping_mul(7) ^ salt) as u8).collect()
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Draws a call and makes it on both sides.
fn step(numbers: &mut Numbers, sides: &mut [Side; 2]) -> (String, [Given; 2]) {
    let name = |numbers: &mut Numbers| {
        let depth = numbers.below(3);
        let component = |numbers: &mut Numbers| ["a", "b", "c", "dd", "long-name-of-a-file"][numbers.below(5) as usize];
        (0..=depth).map(|_| component(numbers)).collect::<Vec<_>>().join("/")
    };
    let (path, other) = (name(numbers), name(numbers));
    let slot = numbers.below(OPEN_FILES as u64) as usize;
    let (first, second, salt) = (numbers.below(9000), numbers.below(5000), numbers.below(256));
    let mode = [0o777, 0o755, 0o644, 0o600, 0o4755, 0o2775, 0o1777, 0o000][numbers.below(8) as usize];
    let kind = numbers.below(27);
    let is_user = numbers.below(4) == 0;
    let call = |side: &mut Side| -> (&'static str, Given) {
        let (place, second_place) = (side.place(&path), side.place(&other));
        let rename =
            |flags| nothing(renameat2(AT_FDCWD, &place, AT_FDCWD, &second_place, flags).map_err(io::Error::from));
        let mut open = |options: &OpenOptions| match options.open(&place) {
            Ok(file) => {
                side.open[slot] = Some(file);
                Ok(String::new())
            }
            Err(error) => Err(error.raw_os_error().unwrap_or(0)),
        };
        match kind {
            0 => ("create", open(OpenOptions::new().read(true).write(true).create_new(true).mode(mode))),
            1 => ("open", open(OpenOptions::new().read(true).write(true))),
            2 => ("open to read", open(OpenOptions::new().read(true))),
            3 => ("open and cut", open(OpenOptions::new().write(true).create(true).truncate(true).mode(mode))),
            4 => ("open to append", open(OpenOptions::new().append(true).create(true).mode(mode))),
            5 | 6 => ("mkdir", nothing(fs::create_dir(&place))),
            7 => ("rmdir", nothing(fs::remove_dir(&place))),
            8 => ("unlink", nothing(fs::remove_file(&place))),
            9 => ("rename", rename(RenameFlags::empty())),
            10 => ("rename, not over", rename(RenameFlags::RENAME_NOREPLACE)),
            11 => ("exchange", rename(RenameFlags::RENAME_EXCHANGE)),
            12 => ("link", nothing(fs::hard_link(&place, &second_place))),
            13 => ("symlink", nothing(symlink(&other, &place))),
            14 => ("readlink", given(fs::read_link(&place), |target| format!("{target:?}"))),
            15 => ("chmod", nothing(fs::set_permissions(&place, fs::Permissions::from_mode(mode)))),
            16 => ("chown", nothing(lchown(&place, Some(first as u32 % 2 * USER), Some(second as u32 % 2 * USER)))),
            17 => ("utimes", {
                let (accessed, modified) = (TimeSpec::new(first as i64, 5), TimeSpec::new(second as i64 - 100, 7));
                let set = utimensat(AT_FDCWD, &place, &accessed, &modified, UtimensatFlags::NoFollowSymlink);
                let seen = set.map_err(io::Error::from).and_then(|()| fs::symlink_metadata(&place));
                given(seen, |seen| {
                    format!("{}.{} {}.{}", seen.atime(), seen.atime_nsec(), seen.mtime(), seen.mtime_nsec())
                })
            }),
            18 => ("stat", given(fs::symlink_metadata(&place), |metadata| shown(&metadata))),
            19 => ("readdir", {
                let names = fs::read_dir(&place).and_then(|names| names.collect::<io::Result<Vec<_>>>());
                given(names, |names| {
                    let mut names: Vec<_> = names.iter().map(|entry| entry.file_name()).collect();
                    names.sort();
                    format!("{names:?}")
                })
            }),
            20 => (
                "write",
                given(side.file(slot, |file| file.write_at(&pattern(second, salt), first)), |done| done.to_string()),
            ),
            21 => ("read", {
                let mut bytes = vec![0; second as usize];
                let read = side.file(slot, |file| file.read_at(&mut bytes, first));
                given(read, |length| format!("{length} {:x}", digest(&bytes[..length])))
            }),
            22 => ("ftruncate", nothing(side.file(slot, |file| file.set_len(first)))),
            23 => ("truncate", {
                let opened = nix::unistd::truncate(&place, second as i64).map_err(io::Error::from);
                nothing(opened)
            }),
            // Sockets: whoever opens a FIFO would wait, and whether devices can be opened is said by each mount.
            25 => ("mknod", nothing(make_node(&place, SFlag::S_IFSOCK, mode, 0))),
            24 => ("fstat", given(side.file(slot, File::metadata), |metadata| shown(&metadata))),
            _ => ("append", {
                use std::io::Write;
                let bytes = pattern(second % 100, salt);
                given(side.file(slot, |mut file| file.write(&bytes)), |done| done.to_string())
            }),
        }
    };
    let [ours, theirs] = sides;
    let call_as = |side: &mut Side| {
        let caller = if is_user { USER } else { 0 };
        setfsgid(Gid::from_raw(caller));
        setfsuid(Uid::from_raw(caller));
        let done = call(side);
        setfsuid(Uid::from_raw(0));
        setfsgid(Gid::from_raw(0));
        done
    };
    let ((what, ours), (_, theirs)) = (call_as(ours), call_as(theirs));
    let who = if is_user { "user" } else { "root" };
    (format!("{what} {path} {other}, {slot} {first} {second} {mode:o}, by {who}"), [ours, theirs])
}

/// Every object below a directory, with what can be seen of it.
fn tree(root: &Path) -> Vec<String> {
    let (mut lines, mut pending) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(place) = pending.pop() {
        let metadata = fs::symlink_metadata(&place).expect("it is there");
        let name = place.strip_prefix(root).expect("below").display();
        let content = if metadata.is_file() {
            format!("{:x}", digest(&fs::read(&place).expect("it can be read")))
        } else if metadata.is_symlink() {
            format!("{:?}", fs::read_link(&place).expect("it can be read"))
        } else if !metadata.is_dir() {
            String::new()
        } else {
            pending.extend(fs::read_dir(&place).expect("a directory").map(|entry| entry.expect("a name").path()));
            String::new()
        };
        lines.push(format!("{name} {} {content}", shown(&metadata)));
    }
    lines.sort();
    lines
}

/// Pipes, sockets and devices by name: made, seen, linked, moved and removed as on tmpfs, and a pipe carries bytes.
#[test]
fn names_of_what_the_kernel_has_itself_are_as_on_tmpfs() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    let shown_at = |root: &Path| -> Vec<Given> {
        let (at, mut seen) = (|name: &str| root.join(name), Vec::new());
        let large = makedev(0xabc, 0x12_345);
        for (name, kind, device) in [
            ("fifo", SFlag::S_IFIFO, 0),
            ("socket", SFlag::S_IFSOCK, 0),
            ("character", SFlag::S_IFCHR, makedev(1, 3)),
            ("block", SFlag::S_IFBLK, large),
            ("file", SFlag::S_IFREG, 0),
            ("plain", SFlag::empty(), 0),
            ("directory", SFlag::S_IFDIR, 0),
            ("symlink", SFlag::S_IFLNK, 0),
            ("fifo", SFlag::S_IFSOCK, 0),
        ] {
            seen.push(nothing(make_node(&at(name), kind, 0o640, device)));
            seen.push(given(fs::symlink_metadata(at(name)), |metadata| shown(&metadata)));
        }
        setfsuid(Uid::from_raw(USER));
        seen.push(nothing(make_node(&at("of a user"), SFlag::S_IFCHR, 0o600, makedev(1, 3))));
        seen.push(nothing(make_node(&at("pipe of a user"), SFlag::S_IFIFO, 0o600, 0)));
        setfsuid(Uid::from_raw(0));
        let open = OpenOptions::new().read(true).write(true).open(at("fifo"));
        seen.push(given(open, |mut pipe| {
            use std::io::{Read, Write};
            let mut bytes = [0; 5];
            pipe.write_all(b"bytes").and_then(|()| pipe.read_exact(&mut bytes)).expect("a pipe holds five bytes");
            String::from_utf8_lossy(&bytes).into_owned()
        }));
        seen.push(given(File::open(at("socket")), |_| String::new()));
        seen.push(nothing(fs::hard_link(at("block"), at("second"))));
        seen.push(nothing(fs::rename(at("second"), at("third"))));
        seen.push(nothing(fs::remove_file(at("block"))));
        seen.push(given(fs::symlink_metadata(at("third")), |metadata| shown(&metadata)));
        seen
    };
    let (ours, theirs) = (Scratch::below(&mounted.point), Scratch::below(Path::new("/dev/shm")));
    for scratch in [&ours, &theirs] {
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let (ours, theirs) = (shown_at(&ours.0), shown_at(&theirs.0));
    assert_eq!(ours, theirs);
    assert!(ours.iter().any(|given| given.as_deref() == Ok("bytes")), "{ours:?}");
}

/// A name is given by the object: the name that was heard last may be out of the caller's reach, or lead elsewhere by now.
#[test]
fn a_second_name_needs_no_right_to_reach_the_first() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    let (open, closed) = (mounted.point.join("open"), mounted.point.join("closed"));
    for (directory, mode) in [(&open, 0o777), (&closed, 0o700)] {
        fs::create_dir(directory).expect("a new directory");
        fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    File::create(open.join("file")).expect("a new file");
    lchown(open.join("file"), Some(USER), Some(USER)).expect("root may");
    fs::hard_link(open.join("file"), closed.join("file")).expect("root may");
    fs::symlink_metadata(closed.join("file")).expect("root may look");
    setfsuid(Uid::from_raw(USER));
    let linked = fs::hard_link(open.join("file"), open.join("other"));
    setfsuid(Uid::from_raw(0));
    linked.expect("the user reaches both names");
    assert_eq!(fs::metadata(open.join("other")).expect("it is there").nlink(), 3);
}

fn compare(seed: u64, mounted: &Mounted, tmpfs: &Path) {
    let (ours, theirs) = (Scratch::below(&mounted.point), Scratch::below(tmpfs));
    for scratch in [&ours, &theirs] {
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    let mut sides = [Side::new(&ours.0), Side::new(&theirs.0)];
    let mut numbers = Numbers(seed);
    let mut done = Vec::new();
    for _ in 0..CALLS {
        let (call, [ours, theirs]) = step(&mut numbers, &mut sides);
        done.push(call);
        let last = || done[done.len().saturating_sub(12)..].join("\n");
        assert_eq!(ours, theirs, "left is ScaleFS; seed {seed}, call {}:\n{}", done.len(), last());
    }
    assert_eq!(tree(&ours.0), tree(&theirs.0), "left is ScaleFS; seed {seed}, in the end");
}

fn rounds(options: &[&str], rounds: u64) {
    let tmpfs = Path::new("/dev/shm");
    if !can_mount() {
        return;
    }
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let mounted = Mounted::new(&[&["--size", "64M"], options].concat());
    assert_eq!(
        nix::sys::statfs::fstatfs(File::open(tmpfs).expect("it is there").as_fd()).map(|fs| fs.filesystem_type()),
        Ok(nix::sys::statfs::TMPFS_MAGIC)
    );
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("SCALEFS_ROUNDS").unwrap_or(rounds);
    let seeds = number("SCALEFS_SEED").map_or(1..=rounds, |seed| seed..=seed);
    for seed in seeds {
        compare(seed, &mounted, tmpfs);
    }
}

#[test]
fn random_calls_give_what_tmpfs_gives() {
    rounds(&[], 6);
}

#[test]
fn so_they_do_when_the_kernel_caches_nothing() {
    rounds(&["--no-cache"], 2);
}
