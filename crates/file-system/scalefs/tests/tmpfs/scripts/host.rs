//! The calls of scripts on the host: each process is a thread with a working directory, a mask, descriptors and a user of its own.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use super::operations::{bytes, flags, mode, number, status, text};
use super::read::{Line, Script};
use super::{Outcome, Run, who};
use crate::host::c_path;

/// A thread that makes one call after the other.
struct HostProcess {
    asks: Sender<Line>,
    answers: Receiver<Outcome>,
}

fn checked(result: i64) -> Result<i64, i32> {
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error().raw_os_error().unwrap()) }
}

/// Becomes a process of its own, in a directory that is the root.
fn begin(root: &CStr, (user, group, groups): &(u32, u32, Vec<u32>)) {
    // SAFETY: plain calls, which concern this thread alone once it shares nothing.
    unsafe {
        assert_eq!(libc::unshare(libc::CLONE_FS | libc::CLONE_FILES), 0);
        assert_eq!(libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0), 0);
        assert_eq!(libc::chroot(root.as_ptr()), 0);
        assert_eq!(libc::chdir(c"/".as_ptr()), 0);
        libc::umask(0o022);
        assert_eq!(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()), 0);
        assert_eq!(libc::syscall(libc::SYS_setresgid, *group, *group, *group), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, *user, *user, *user), 0);
    }
}

fn start<'s>(scope: &'s Scope<'s, '_>, root: &CStr, who: (u32, u32, Vec<u32>)) -> HostProcess {
    let ((asks, asked), (answer, answers)) = (channel::<Line>(), channel());
    let root = root.to_owned();
    scope.spawn(move || {
        begin(&root, &who);
        let mut directories = BTreeMap::new();
        for line in asked {
            answer.send(call(&mut directories, &line)).unwrap();
        }
    });
    HostProcess { asks, answers }
}

/// Open directories by the number of their handle, which counts them.
type Directories = BTreeMap<i64, *mut libc::DIR>;

fn told(status_of: &libc::stat) -> String {
    let kind = match status_of.st_mode & libc::S_IFMT {
        libc::S_IFREG => 'f',
        libc::S_IFDIR => 'd',
        libc::S_IFLNK => 'l',
        _ => '?',
    };
    let owner = (status_of.st_uid, status_of.st_gid);
    status(kind, status_of.st_mode & 0o7777, owner, (status_of.st_nlink, status_of.st_size as u64))
}

fn call(directories: &mut Directories, line: &Line) -> Outcome {
    let path = c_path(text(line, 0));
    let second = || CString::new(text(line, 1)).unwrap();
    let (path, fd) = (path.as_ptr(), number(line, 0) as libc::c_int);
    let nothing = |result: libc::c_int| checked(result.into()).map(|_| String::new());
    // SAFETY: paths that end with NUL, and buffers that live during the calls.
    unsafe {
        match line.call.as_str() {
            "mkdir" => nothing(libc::mkdir(path, mode(line, 1))),
            "rmdir" => nothing(libc::rmdir(path)),
            "unlink" => nothing(libc::unlink(path)),
            "link" => nothing(libc::link(path, second().as_ptr())),
            "symlink" => nothing(libc::symlink(path, second().as_ptr())),
            "rename" => nothing(libc::rename(path, second().as_ptr())),
            "chmod" => nothing(libc::chmod(path, mode(line, 1))),
            "chown" => nothing(libc::chown(path, mode(line, 1), mode(line, 2))),
            "truncate" => nothing(libc::truncate(path, number(line, 1))),
            "chdir" => nothing(libc::chdir(path)),
            "umask" => Ok(libc::umask(mode(line, 0)).to_string()),
            "close" => nothing(libc::close(fd)),
            "readlink" => {
                let mut into = [0_u8; 4096];
                let count = checked(libc::readlink(path, into.as_mut_ptr().cast(), into.len()) as i64)?;
                Ok(String::from_utf8_lossy(&into[..count as usize]).into_owned())
            }
            "stat" | "lstat" => {
                let mut found: libc::stat = std::mem::zeroed();
                let look = if line.call == "stat" { libc::stat } else { libc::lstat };
                checked(look(path, &raw mut found).into())?;
                Ok(told(&found))
            }
            "open" | "open_close" => {
                let (_, flags, mode) = flags(line);
                let fd = checked(libc::open(path, flags, mode).into())?;
                if line.call == "open_close" {
                    checked(libc::close(fd as libc::c_int).into())?;
                }
                Ok(fd.to_string())
            }
            "write" | "write!" | "pwrite" | "pwrite!" => {
                let bytes = bytes(line);
                let (from, count) = (bytes.as_ptr().cast(), bytes.len());
                let written = match line.call.starts_with('p') {
                    true => libc::pwrite(fd, from, count, number(line, 3)),
                    false => libc::write(fd, from, count),
                };
                checked(written as i64).map(|count| count.to_string())
            }
            "read" | "read!" | "pread" | "pread!" => {
                let mut into = vec![0_u8; usize::try_from(number(line, 1)).unwrap_or(0)];
                let (to, count) = (into.as_mut_ptr().cast(), into.len());
                let read = match line.call.starts_with('p') {
                    true => libc::pread(fd, to, count, number(line, 2)),
                    false => libc::read(fd, to, count),
                };
                let count = checked(read as i64)? as usize;
                Ok(String::from_utf8_lossy(&into[..count]).into_owned())
            }
            "lseek" => {
                let whence = match text(line, 2) {
                    "SEEK_SET" => libc::SEEK_SET,
                    "SEEK_CUR" => libc::SEEK_CUR,
                    "SEEK_END" => libc::SEEK_END,
                    "SEEK_DATA" => libc::SEEK_DATA,
                    "SEEK_HOLE" => libc::SEEK_HOLE,
                    _ => return Err(libc::EINVAL),
                };
                checked(libc::lseek(fd, number(line, 1), whence)).map(|offset| offset.to_string())
            }
            "opendir" => {
                let opened = libc::opendir(path);
                checked(if opened.is_null() { -1 } else { 0 })?;
                let handle = directories.len() as i64 + 1;
                directories.insert(handle, opened);
                Ok(handle.to_string())
            }
            "readdir" | "rewinddir" | "closedir" => {
                let held = directories.get_mut(&number(line, 0)).filter(|directory| !directory.is_null());
                let Some(directory) = held else { return Err(libc::EBADF) };
                match line.call.as_str() {
                    "readdir" => {
                        *libc::__errno_location() = 0;
                        match (libc::readdir(*directory).is_null(), *libc::__errno_location()) {
                            (false, _) => Ok("a name".into()),
                            (true, 0) => Ok("the end".into()),
                            (true, errno) => Err(errno),
                        }
                    }
                    "rewinddir" => {
                        libc::rewinddir(*directory);
                        Ok(String::new())
                    }
                    _ => nothing(libc::closedir(std::mem::replace(directory, std::ptr::null_mut()))),
                }
            }
            "dump" | "destroy" => Ok(String::new()),
            other => Ok(format!("{other}: the host says nothing")),
        }
    }
}

/// All that there is below a directory, as `operations::tree` tells it.
fn tree(root: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut ahead = vec![String::new()];
    while let Some(path) = ahead.pop() {
        let whole = format!("{root}{path}");
        let found = std::fs::symlink_metadata(&whole).unwrap();
        let (kind, mut more) = ('f', String::new());
        let kind = if found.is_dir() {
            for entry in std::fs::read_dir(&whole).unwrap() {
                ahead.push(format!("{path}/{}", entry.unwrap().file_name().to_string_lossy()));
            }
            'd'
        } else if found.is_symlink() {
            more = format!(" {}", std::fs::read_link(&whole).unwrap().display());
            'l'
        } else {
            more = format!(" {}", String::from_utf8_lossy(&std::fs::read(&whole).unwrap()));
            kind
        };
        let owner = (found.uid(), found.gid());
        let status = status(kind, found.permissions().mode() & 0o7777, owner, (found.nlink(), found.len()));
        entries.push(format!("{path} {status}{more}"));
    }
    entries.sort();
    entries
}

/// Runs a script in a directory of its own, which goes afterwards.
pub fn run(script: &Script) -> Run {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let name = format!("/script{}", RUNS.fetch_add(1, Ordering::Relaxed));
    std::fs::create_dir(&name).unwrap();
    std::fs::set_permissions(&name, PermissionsExt::from_mode(0o755)).unwrap();
    let root = c_path(&name);
    let outcomes = thread::scope(|scope| {
        let mut processes = BTreeMap::from([(1, start(scope, &root, (0, 0, Vec::new())))]);
        let outcomes = script.lines.iter().map(|line| {
            if line.call == "create" {
                processes.insert(line.process, start(scope, &root, who(script, line)));
                return Ok(String::new());
            }
            let Some(process) = processes.get(&line.process) else { return Ok("no process".into()) };
            process.asks.send(line.clone()).unwrap();
            process.answers.recv().unwrap()
        });
        outcomes.collect()
    });
    let tree = tree(&name);
    std::fs::remove_dir_all(&name).unwrap();
    (outcomes, tree)
}
