//! The calls of a case on the host's tmpfs.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;

use super::operations::{DEVICE, helper, moved, octal, owner, shown};
use super::{Outcome, World};
use crate::host::{Host, c_path, on_behalf_of};

/// The descriptor that `hold` opens.
const HELD: libc::c_int = 700;

/// Whether this user may make devices here.
pub fn may_make_devices() -> bool {
    // SAFETY: a path that ends with NUL.
    unsafe {
        let made = libc::mknod(c"device".as_ptr(), libc::S_IFCHR | 0o600, DEVICE);
        libc::unlink(c"device".as_ptr());
        made == 0
    }
}

pub struct OnHost<'h> {
    host: &'h Host,
    notes: HashMap<String, [i64; 3]>,
}

impl OnHost<'_> {
    pub fn new(host: &Host) -> OnHost<'_> {
        host.clear();
        OnHost { host, notes: HashMap::new() }
    }
}

/// The name of an error.
fn name(number: i32) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ENXIO, "ENXIO"),
        (libc::EBADF, "EBADF"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::ELOOP, "ELOOP"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    ];
    names.into_iter().find(|(other, _)| *other == number).map_or(number.to_string(), |(_, name)| name.into())
}

fn checked(result: impl Into<i64>) -> Result<i64, String> {
    let result = result.into();
    if result < 0 { Err(name(io::Error::last_os_error().raw_os_error().unwrap())) } else { Ok(result) }
}

fn flags_of(letters: &str) -> libc::c_int {
    let access = match (letters.contains('r'), letters.contains('w')) {
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
        _ => libc::O_RDONLY,
    };
    let rest = [
        ('c', libc::O_CREAT),
        ('x', libc::O_EXCL),
        ('t', libc::O_TRUNC),
        ('d', libc::O_DIRECTORY),
        ('n', libc::O_NOFOLLOW),
        ('a', libc::O_APPEND),
    ];
    rest.iter()
        .filter(|(letter, _)| letters.contains(*letter))
        .fold(access | libc::O_NONBLOCK, |sum, (_, flag)| sum | flag)
}

fn told(seen: &libc::stat, field: &str) -> String {
    let nanoseconds = |seconds: i64, nanoseconds: i64| (seconds * 1_000_000_000 + nanoseconds).to_string();
    match field {
        "there" => "yes".into(),
        "kind" => match seen.st_mode & libc::S_IFMT {
            libc::S_IFREG => "file",
            libc::S_IFDIR => "dir",
            libc::S_IFLNK => "link",
            libc::S_IFIFO => "fifo",
            libc::S_IFSOCK => "sock",
            libc::S_IFCHR => "char",
            _ => "block",
        }
        .into(),
        "mode" => format!("{:o}", seen.st_mode & 0o7777),
        "uid" => seen.st_uid.to_string(),
        "gid" => seen.st_gid.to_string(),
        "size" => seen.st_size.to_string(),
        "links" => seen.st_nlink.to_string(),
        "atime" => nanoseconds(seen.st_atime, seen.st_atime_nsec),
        "mtime" => nanoseconds(seen.st_mtime, seen.st_mtime_nsec),
        other => panic!("{other} is nothing that is told"),
    }
}

fn status(path: &str, flags: libc::c_int) -> Result<libc::stat, String> {
    let mut seen = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a path that ends with NUL, and room for the answer, which is written if the call succeeds.
    unsafe {
        checked(libc::fstatat(libc::AT_FDCWD, c_path(path).as_ptr(), seen.as_mut_ptr(), flags))?;
        Ok(seen.assume_init())
    }
}

fn times_of(path: &str) -> Result<[i64; 3], String> {
    let seen = status(path, libc::AT_SYMLINK_NOFOLLOW)?;
    let time = |seconds: i64, nanoseconds: i64| seconds * 1_000_000_000 + nanoseconds;
    Ok([
        time(seen.st_atime, seen.st_atime_nsec),
        time(seen.st_mtime, seen.st_mtime_nsec),
        time(seen.st_ctime, seen.st_ctime_nsec),
    ])
}

/// Waits until what changes from now on has another time: the clock of file systems ticks.
fn wait_for_a_tick() {
    let now = || {
        // SAFETY: all-zero is a valid time; room for the answer.
        unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            assert_eq!(libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time), 0);
            (time.tv_sec, time.tv_nsec)
        }
    };
    let start = now();
    while now() == start {
        std::thread::yield_now();
    }
}

fn time(text: &str) -> libc::timespec {
    match text {
        "now" => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW },
        "same" => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT },
        time => {
            let time: i64 = time.parse().unwrap();
            libc::timespec { tv_sec: time.div_euclid(1_000_000_000), tv_nsec: time.rem_euclid(1_000_000_000) }
        }
    }
}

fn call(words: &[&str]) -> Outcome {
    let at = libc::AT_FDCWD;
    let done = |result: libc::c_int| checked(result).map(|_| String::new());
    let id = |number: &str| owner(number).unwrap_or(u32::MAX);
    // SAFETY: paths end with NUL, buffers have the lengths that are given with them; descriptors are this thread's.
    unsafe {
        let open =
            |path: &str, letters: &str, mode: u32| checked(libc::open(c_path(path).as_ptr(), flags_of(letters), mode));
        let chown = |path: &str, user: &str, group: &str, flags| {
            done(libc::fchownat(at, c_path(path).as_ptr(), id(user), id(group), flags))
        };
        let utimens = |path: &str, accessed: &str, modified: &str, flags| {
            done(libc::utimensat(at, c_path(path).as_ptr(), [time(accessed), time(modified)].as_ptr(), flags))
        };
        let make_node = |path: &str, kind: &str, mode: &str| {
            let (kind, device) = match kind {
                "file" => (libc::S_IFREG, 0),
                "fifo" => (libc::S_IFIFO, 0),
                "sock" => (libc::S_IFSOCK, 0),
                "char" => (libc::S_IFCHR, DEVICE),
                _ => (libc::S_IFBLK, DEVICE),
            };
            done(libc::mknod(c_path(path).as_ptr(), kind | octal(mode), device))
        };
        match *words {
            ["open", path, letters] => open(path, letters, 0).and_then(|fd| done(libc::close(fd as libc::c_int))),
            ["open", path, letters, mode] => {
                open(path, letters, octal(mode)).and_then(|fd| done(libc::close(fd as libc::c_int)))
            }
            ["hold", path, letters] => {
                let fd = open(path, letters, 0)? as libc::c_int;
                checked(libc::dup2(fd, HELD))?;
                done(libc::close(fd))
            }
            ["drop"] => done(libc::close(HELD)),
            ["write", text] => {
                checked(libc::write(HELD, text.as_ptr().cast(), text.len()) as i64).map(|_| String::new())
            }
            ["readat", offset, length] => {
                let mut bytes = vec![0_u8; length.parse().unwrap()];
                let count = libc::pread(HELD, bytes.as_mut_ptr().cast(), bytes.len(), offset.parse().unwrap());
                checked(count as i64).map(|count| shown(&bytes[..count as usize]))
            }
            ["fstat", field] => {
                let mut seen: libc::stat = std::mem::zeroed();
                checked(libc::fstat(HELD, &raw mut seen)).map(|_| told(&seen, field))
            }
            ["ftruncate", size] => done(libc::ftruncate(HELD, size.parse().unwrap())),
            ["fchmod", mode] => done(libc::fchmod(HELD, octal(mode))),
            ["fchown", user, group] => done(libc::fchown(HELD, id(user), id(group))),
            ["allocate", mode, offset, length] => {
                done(libc::fallocate(HELD, mode.parse().unwrap(), offset.parse().unwrap(), length.parse().unwrap()))
            }
            ["mkdir", path, mode] => done(libc::mkdir(c_path(path).as_ptr(), octal(mode))),
            ["mkfifo", path, mode] => make_node(path, "fifo", mode),
            ["mknod", path, kind, mode] => make_node(path, kind, mode),
            ["symlink", target, path] => done(libc::symlink(c_path(target).as_ptr(), c_path(path).as_ptr())),
            ["link", old, new] => done(libc::linkat(at, c_path(old).as_ptr(), at, c_path(new).as_ptr(), 0)),
            ["rename", old, new] => done(libc::rename(c_path(old).as_ptr(), c_path(new).as_ptr())),
            ["unlink", path] => done(libc::unlink(c_path(path).as_ptr())),
            ["rmdir", path] => done(libc::rmdir(c_path(path).as_ptr())),
            ["chmod", path, mode] => done(libc::chmod(c_path(path).as_ptr(), octal(mode))),
            ["chown", path, user, group] => chown(path, user, group, 0),
            ["lchown", path, user, group] => chown(path, user, group, libc::AT_SYMLINK_NOFOLLOW),
            ["truncate", path, size] => done(libc::truncate(c_path(path).as_ptr(), size.parse().unwrap())),
            ["utimens", path, accessed, modified] => utimens(path, accessed, modified, 0),
            ["lutimens", path, accessed, modified] => utimens(path, accessed, modified, libc::AT_SYMLINK_NOFOLLOW),
            // `access` itself asks for the real user.
            ["access", path, _] => {
                let path = c_path(path);
                checked(libc::syscall(libc::SYS_faccessat2, at, path.as_ptr(), libc::F_OK, libc::AT_EACCESS))
                    .map(|_| String::new())
            }
            ["readlink", path] => {
                let mut buffer = [0_u8; 4096];
                let count = libc::readlink(c_path(path).as_ptr(), buffer.as_mut_ptr().cast(), buffer.len());
                checked(count as i64).map(|count| String::from_utf8_lossy(&buffer[..count as usize]).into_owned())
            }
            ["stat", path, field] => status(path, 0).map(|seen| told(&seen, field)),
            ["lstat", path, field] => status(path, libc::AT_SYMLINK_NOFOLLOW).map(|seen| told(&seen, field)),
            ["same", one, other] => {
                let number = |path: &str| status(path, libc::AT_SYMLINK_NOFOLLOW).map(|seen| seen.st_ino);
                Ok(if number(one)? == number(other)? { "yes" } else { "no" }.into())
            }
            ["list", path] => open(path, "rd", 0).and_then(|fd| done(libc::close(fd as libc::c_int))),
            ["enter", path] => done(libc::chdir(c_path(path).as_ptr())),
            _ => panic!("{words:?} is no call of the table"),
        }
    }
}

impl World for OnHost<'_> {
    fn begin(&mut self, number: usize) {
        self.notes.clear();
        if number.is_multiple_of(64) {
            self.host.clear();
        }
        let directory = format!("/case{number}");
        // SAFETY: the mask is the thread's own; paths end with NUL.
        unsafe {
            libc::close(HELD);
            libc::umask(0);
        }
        for words in [
            &["mkdir", &directory, "777"][..],
            &["enter", &directory],
            &["open", "f", "wc", "644"],
            &["chown", "f", "1001", "1001"],
        ] {
            call(words).unwrap();
        }
        // SAFETY: as above.
        unsafe { libc::umask(0o022) };
    }

    fn call(&mut self, user: usize, words: &[&str]) -> Outcome {
        if let Some(calls) = helper(words) {
            for words in calls {
                self.call(user, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
            return Ok(String::new());
        }
        match *words {
            ["umask", mask] => {
                // SAFETY: the mask is the thread's own.
                unsafe { libc::umask(octal(mask)) };
            }
            ["note", path] => {
                let times = times_of(path)?;
                self.notes.insert(path.into(), times);
                wait_for_a_tick();
            }
            ["moved", path] => return times_of(path).map(|times| moved(self.notes[path], times)),
            ["movedfrom", old, path] => return times_of(path).map(|times| moved(self.notes[old], times)),
            _ => return on_behalf_of(user, || call(words)),
        }
        Ok(String::new())
    }
}
