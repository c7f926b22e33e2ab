//! The calls on the host's tmpfs, by a thread with a root, a working directory and a user of its own.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use call_language::{Answer, Call, GROUPS, Operation, Outcome, USERS};
use scalefs::names::RenameMode;
use scalefs::{Credentials, Kind, OpenFlags};

use crate::host_data;

/// A directory of tmpfs in which the thread works. If the thread may, the directory is its root, and it acts as any user;
/// else it acts only as the first of [`USERS`], who then is no superuser but the one that runs the tests.
pub struct Host {
    root: PathBuf,
    can_use_root: bool,
    first_user: Credentials,
}

/// Runs `test` in a thread of its own, whose root, working directory, mask and descriptors are not those of the process.
/// With a limit, the directory is a tmpfs of so many bytes that only the thread sees; `None` if the thread may not mount.
pub fn with_host<T: Send>(limit_bytes: Option<usize>, test: impl FnOnce(&Host) -> T + Send) -> Option<T> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    // Where there is no tmpfs (other systems, some containers) the temporary directory has to do.
    let base = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let path = base.join(format!("scalefs-fuzz-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&path).unwrap();
    let outcome = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                // SAFETY: parts this thread's root, working directory and mask from those of the process.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0, "{}", io::Error::last_os_error());
                host_data::part_descriptors();
                if limit_bytes.is_some_and(|limit_bytes| !mount_limited(&path, limit_bytes)) {
                    return None;
                }
                std::env::set_current_dir(&path).unwrap();
                // SAFETY: plain calls; the mask and root are the thread's own.
                let can_use_root = unsafe {
                    libc::umask(0o022);
                    libc::geteuid() == 0 && libc::chroot(c".".as_ptr()) == 0
                };
                let root = if can_use_root { PathBuf::from("/") } else { path.clone() };
                let first_user = if can_use_root { Credentials::SUPERUSER } else { own_credentials() };
                Some(test(&Host { root, can_use_root, first_user }))
            })
            .join()
    });
    remove_below(&path);
    fs::remove_dir(&path).unwrap();
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Mounts a small tmpfs where only this thread sees it; false if it may not. It goes with the thread.
fn mount_limited(path: &Path, limit_bytes: usize) -> bool {
    let path = c_path(path.to_str().unwrap());
    let options = c_path(&format!("size={limit_bytes},huge=never"));
    let (none, tmpfs) = (std::ptr::null(), c"tmpfs".as_ptr());
    // SAFETY: strings that end with NUL; the first mount keeps the second from being seen elsewhere.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
            && libc::mount(tmpfs, path.as_ptr(), tmpfs, 0, options.as_ptr().cast()) == 0
    }
}

/// Calls with one of [`USERS`] as the effective user of this thread, who has that user's groups and capabilities. The thread is one of
/// [`with_host`] whose real user is 0.
pub fn on_behalf_of<T>(user: usize, call: impl FnOnce() -> T) -> T {
    become_effective(user);
    let outcome = call();
    become_effective(0);
    outcome
}

fn become_effective(user: usize) {
    // SAFETY: the raw calls concern this thread only; the real user stays 0, so that the way back is open.
    unsafe {
        let same = -1 as libc::c_long;
        assert_eq!(libc::syscall(libc::SYS_setresuid, same, 0, same), 0);
        assert_eq!(libc::syscall(libc::SYS_setgroups, GROUPS[user].len(), GROUPS[user].as_ptr()), 0);
        assert_eq!(libc::syscall(libc::SYS_setresgid, same, USERS[user], same), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, same, USERS[user], same), 0);
    }
}

/// Who runs the tests.
fn own_credentials() -> Credentials {
    let mut groups = [0; scalefs::MAX_GROUPS];
    // SAFETY: at most as many groups as there is room for; -1 if there are more.
    let (user, group, count) = unsafe {
        (libc::geteuid(), libc::getegid(), libc::getgroups(groups.len() as libc::c_int, groups.as_mut_ptr()))
    };
    let count = usize::try_from(count).expect("as few groups as ScaleFS takes");
    Credentials::new(user, group, &groups[..count]).unwrap()
}

/// Removes what is in a directory, whatever its owner may do there.
fn remove_below(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            remove_below(&entry.path());
            fs::remove_dir(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

pub fn c_path(path: &str) -> CString {
    CString::new(path).unwrap()
}

pub fn checked(result: libc::c_int) -> Outcome {
    if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(Answer::Done) }
}

impl Host {
    /// Whether paths may lead to the root, and calls be made as other users.
    pub fn can_use_root(&self) -> bool {
        self.can_use_root
    }

    /// Whom the first of [`USERS`] acts as.
    pub fn first_user(&self) -> Credentials {
        self.first_user
    }

    /// Makes the directory empty, lets everybody write it, and works in it.
    pub fn clear(&self) {
        self.become_user(0);
        host_data::close_all();
        std::env::set_current_dir(&self.root).unwrap();
        remove_below(&self.root);
        let root = c_path(self.root.to_str().unwrap());
        // SAFETY: a path that ends with NUL.
        unsafe {
            if self.can_use_root {
                assert_eq!(libc::chown(root.as_ptr(), 0, 0), 0);
            }
        }
    }

    /// For the file system this thread is that one of [`USERS`], in that user's groups.
    fn become_user(&self, index: usize) {
        let (user, groups) = (USERS[index], GROUPS[index]);
        if self.can_use_root {
            // SAFETY: the raw calls concern this thread only; back to 0 always works, since the real user stays 0.
            unsafe {
                libc::syscall(libc::SYS_setfsuid, 0);
                libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr());
                libc::syscall(libc::SYS_setfsgid, user);
                libc::syscall(libc::SYS_setfsuid, user);
            }
        }
    }

    /// Makes a call.
    pub fn call(&self, call: &Call) -> Outcome {
        self.become_user(call.user);
        let outcome = make(&call.operation);
        self.become_user(0);
        outcome
    }
}

/// What a path leads to, a symbolic link not followed: kind, and what the user is to it.
pub fn look(path: &str, user: usize) -> (&'static str, &'static str) {
    let Ok(status) = status(path, false) else { return ("absent", "") };
    let kind = match status.st_mode & libc::S_IFMT {
        libc::S_IFDIR => "directory",
        libc::S_IFLNK => "symbolic link",
        _ => "file",
    };
    let role = match USERS[user] {
        0 => "superuser",
        number if number == status.st_uid => "owner",
        number if number == status.st_gid || GROUPS[user].contains(&status.st_gid) => "group",
        _ => "other",
    };
    (kind, role)
}

fn open(path: &str, flags: libc::c_int, mode: u32) -> Result<libc::c_int, i32> {
    // SAFETY: a path that ends with NUL.
    let descriptor = unsafe { libc::open(c_path(path).as_ptr(), flags | libc::O_NONBLOCK, mode) };
    checked(descriptor).map(|_| descriptor)
}

pub fn linux_flags(flags: OpenFlags) -> libc::c_int {
    let access = match (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE)) {
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
        _ => libc::O_RDONLY,
    };
    let rest = [
        (OpenFlags::CREATE, libc::O_CREAT),
        (OpenFlags::EXCLUSIVE, libc::O_EXCL),
        (OpenFlags::TRUNCATE, libc::O_TRUNC),
        (OpenFlags::DIRECTORY, libc::O_DIRECTORY),
        (OpenFlags::NO_FOLLOW, libc::O_NOFOLLOW),
    ];
    rest.iter().filter(|(flag, _)| flags.contains(*flag)).fold(access, |sum, (_, flag)| sum | flag)
}

fn kind_of(mode: u32) -> u8 {
    let kind = match mode & libc::S_IFMT {
        libc::S_IFDIR => Kind::Directory,
        libc::S_IFLNK => Kind::Symlink,
        libc::S_IFIFO => Kind::Pipe,
        _ => Kind::Regular,
    };
    kind as u8
}

fn status(path: &str, follow: bool) -> Result<libc::stat, i32> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    // SAFETY: a path that ends with NUL, and room for the answer, which is written if the call succeeds.
    unsafe {
        checked(libc::fstatat(libc::AT_FDCWD, c_path(path).as_ptr(), status.as_mut_ptr(), flags))?;
        Ok(status.assume_init())
    }
}

/// What `stat` tells; for directories without link count and size.
pub fn answer_status(status: &libc::stat) -> Answer {
    let is_directory = kind_of(status.st_mode) == Kind::Directory as u8;
    Answer::Status {
        // Pipes are numbered apart from files.
        file: status.st_ino ^ status.st_dev << 48,
        kind: kind_of(status.st_mode),
        mode: status.st_mode & 0o7777,
        user: status.st_uid,
        group: status.st_gid,
        links: if is_directory { 0 } else { status.st_nlink as u32 },
        size: if is_directory { 0 } else { status.st_size as u64 },
    }
}

fn list(path: &str) -> Outcome {
    let descriptor = open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
    let mut listed = Vec::new();
    // SAFETY: the descriptor is a directory's; entries are read before the next call, and the stream closes it.
    unsafe {
        let stream = libc::fdopendir(descriptor);
        assert!(!stream.is_null());
        while let Some(entry) = libc::readdir(stream).as_ref() {
            let name = CStr::from_ptr(entry.d_name.as_ptr()).to_str().unwrap().to_owned();
            listed.push((name, kind_of(u32::from(entry.d_type) << 12)));
        }
        libc::closedir(stream);
    }
    listed.retain(|(name, _)| name != "." && name != "..");
    listed.sort();
    Ok(Answer::Names(listed))
}

fn make(operation: &Operation) -> Outcome {
    let unchanged = u32::MAX;
    let at = libc::AT_FDCWD;
    // SAFETY, of all blocks below: paths end with NUL, buffers have room for the lengths that are given with them.
    match operation {
        Operation::Open(path, flags, mode) => {
            let descriptor = open(path, linux_flags(*flags), *mode)?;
            // SAFETY: a descriptor of ours.
            unsafe { libc::close(descriptor) };
            Ok(Answer::Done)
        }
        // SAFETY: see above.
        Operation::MakeDirectory(path, mode) => checked(unsafe { libc::mkdir(c_path(path).as_ptr(), *mode) }),
        // SAFETY: see above.
        Operation::RemoveDirectory(path) => checked(unsafe { libc::rmdir(c_path(path).as_ptr()) }),
        Operation::Symlink(target, path) => {
            // SAFETY: see above.
            checked(unsafe { libc::symlink(c_path(target).as_ptr(), c_path(path).as_ptr()) })
        }
        Operation::ReadLink(path) => {
            let mut buffer = [0_u8; 4096];
            // SAFETY: see above.
            let length = unsafe { libc::readlink(c_path(path).as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
            checked(length as libc::c_int)?;
            Ok(Answer::Text(buffer[..length as usize].to_vec()))
        }
        Operation::Link(old, new, follow) => {
            let flags = if *follow { libc::AT_SYMLINK_FOLLOW } else { 0 };
            // SAFETY: see above.
            checked(unsafe { libc::linkat(at, c_path(old).as_ptr(), at, c_path(new).as_ptr(), flags) })
        }
        // SAFETY: see above.
        Operation::Unlink(path) => checked(unsafe { libc::unlink(c_path(path).as_ptr()) }),
        Operation::Rename(old, new, mode) => {
            let flags = match mode {
                RenameMode::Replace => 0,
                RenameMode::NoReplace => libc::RENAME_NOREPLACE,
                RenameMode::Exchange => libc::RENAME_EXCHANGE,
            };
            // SAFETY: see above.
            checked(unsafe { libc::renameat2(at, c_path(old).as_ptr(), at, c_path(new).as_ptr(), flags) })
        }
        Operation::Stat(path, follow) => status(path, *follow).map(|status| answer_status(&status)),
        Operation::Access(path, bits) => {
            // glibc's faccessat may emulate the flag with the wrong user: the call itself (AT_EACCESS).
            let path = c_path(path);
            // SAFETY: see above.
            let result = unsafe { libc::syscall(libc::SYS_faccessat2, at, path.as_ptr(), *bits, libc::AT_EACCESS) };
            checked(result as libc::c_int)
        }
        // SAFETY: see above.
        Operation::ChangeMode(path, mode) => checked(unsafe { libc::chmod(c_path(path).as_ptr(), *mode) }),
        Operation::ChangeOwner(path, follow, user, group) => {
            let flags = if *follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
            let (user, group) = (user.unwrap_or(unchanged), group.unwrap_or(unchanged));
            // SAFETY: see above.
            checked(unsafe { libc::fchownat(at, c_path(path).as_ptr(), user, group, flags) })
        }
        // SAFETY: see above.
        Operation::ChangeDirectory(path) => checked(unsafe { libc::chdir(c_path(path).as_ptr()) }),
        Operation::WorkingDirectory => {
            let mut buffer = [0_u8; 4096];
            // SAFETY: see above.
            let path = unsafe { libc::getcwd(buffer.as_mut_ptr().cast(), buffer.len()) };
            checked(if path.is_null() { -1 } else { 0 })?;
            let path = CStr::from_bytes_until_nul(&buffer).unwrap();
            Ok(Answer::Text(path.to_bytes().to_vec()))
        }
        Operation::List(path) => list(path),
        Operation::Data(operation) => host_data::make(operation),
        Operation::DirectoryLinks(path) => {
            status(path, true).map(|status| Answer::Text(status.st_nlink.to_string().into_bytes()))
        }
    }
}
