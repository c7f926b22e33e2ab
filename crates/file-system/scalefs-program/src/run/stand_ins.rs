//! Where the kernel has what stands in it for pipes and sockets that have names in a tree: a directory of the host's, by the numbers of
//! inodes, which goes with the tree. It belongs to who runs the tree, and no one else may enter it.
//!
//! Each process of the tree has it open, with a lock. Where all that would remove it were killed, the next tree of the same user does so
//! once it finds no lock on it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{geteuid, mkdtemp};
use shared_instance::{Control, Lock, lock};

/// How it is called: this, and letters that differ.
const NAME: &str = "scalefs.";
const LETTERS: &str = "XXXXXX";

/// Makes the directory: where the system wants such of a session, or where files for a time go. What is returned keeps it.
pub(super) fn make(control: &Control) -> Result<OwnedFd, String> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = session.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")]);
    let mut why = String::new();
    for place in places.filter(|place| place.is_absolute()) {
        remove_left(&place);
        match make_locked(&place) {
            Ok((made, kept)) if control.set_stand_ins(made.as_os_str().as_bytes()) => return Ok(kept),
            // Too long for the address of a socket.
            Ok((made, _)) => drop(fs::remove_dir(made)),
            Err(error) => why = format!("{}: {error}", place.display()),
        }
    }
    Err(format!("a directory for pipes and sockets: {why}"))
}

/// A new directory, with the lock by which others know that it is used.
fn make_locked(place: &Path) -> std::io::Result<(PathBuf, OwnedFd)> {
    loop {
        let made = mkdtemp(&place.join(format!("{NAME}{LETTERS}")))?;
        let opened = File::open(&made).and_then(|file| Ok((lock(file.as_fd(), Lock::Shared)?, file)));
        match opened {
            // Another one has not found it without a lock just before.
            Ok((true, file)) if fs::metadata(&made).is_ok_and(|found| is_same(&file, &found)) => {
                return Ok((made, file.into()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let _ = fs::remove_dir(made);
                return Err(error);
            }
        }
    }
}

fn is_same(file: &File, found: &fs::Metadata) -> bool {
    file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
}

/// Removes the directories of trees that no one runs any more. One that has other things in it only has such a name.
fn remove_left(place: &Path) {
    let Ok(all) = fs::read_dir(place) else { return };
    for path in all.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_named = name.strip_prefix(NAME.as_bytes()).is_some_and(|rest| rest.len() == LETTERS.len());
        if is_named {
            remove_if_left(&path, has_stand_ins_alone);
        }
    }
}

/// Removes a directory if no one has it, and it is what it seems to be. Locked until it is gone: who has made it just now and comes
/// second finds that out.
fn remove_if_left(path: &Path, is_one: impl FnOnce(&Path) -> bool) {
    if let Some(_locked) = lock_left(path)
        && is_one(path)
    {
        let _ = fs::remove_dir_all(path);
    }
}

/// Locks a directory that is ours, and that no one has.
fn lock_left(path: &Path) -> Option<File> {
    let is_ours =
        |found: &fs::Metadata| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o777 == 0o700;
    let found = fs::symlink_metadata(path).ok().filter(is_ours)?;
    let file = File::open(path).ok()?;
    (is_same(&file, &found) && lock(file.as_fd(), Lock::Exclusive).unwrap_or(false)).then_some(file)
}

/// Whether all that is in a directory can be what stands in the kernel for a pipe or a socket, by a number, or the name of a socket.
fn has_stand_ins_alone(path: &Path) -> bool {
    let is_stand_in = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let digits = name.as_bytes().strip_suffix(b"n").unwrap_or(name.as_bytes());
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        is_number && entry.file_type().is_ok_and(|kind| kind.is_fifo() || kind.is_socket() || kind.is_symlink())
    };
    fs::read_dir(path).is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(is_stand_in)))
}

/// Removes it, with what is in it.
pub(super) fn remove(control: &Control) {
    let mut buffer = [0; 80];
    let directory = Path::new(OsStr::from_bytes(control.stand_ins(&mut buffer)));
    if directory.is_absolute() {
        // Who has killed all may have removed it, too.
        let _ = fs::remove_dir_all(directory);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn place() -> PathBuf {
        mkdtemp(&std::env::temp_dir().join("stand-ins-test-XXXXXX")).expect("there is room")
    }

    #[test]
    fn what_only_has_such_a_name_stays() {
        let place = place();
        let made = |name: &str| {
            let path = place.join(name);
            fs::create_dir(&path).expect("it is new");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("ours");
            path
        };
        let (left, backup, numbers) = (made("scalefs.aB1xyz"), made("scalefs.backup"), made("scalefs.000000"));
        mkfifo(&left.join("512"), Mode::S_IRWXU).expect("it is new");
        drop(UnixListener::bind(left.join("768")).expect("it is new"));
        symlink("/some/name", left.join("768n")).expect("it is new");
        fs::write(backup.join("words"), "words").expect("there is room");
        fs::write(numbers.join("1"), "words").expect("there is room");
        remove_left(&place);
        assert!(!left.exists());
        assert!(backup.join("words").exists() && numbers.join("1").exists());
        fs::remove_dir_all(place).expect("ours");
    }

    /// Two trees begin at once: what one has made and not locked yet the other may remove, but not once it is locked.
    #[test]
    fn who_removes_one_has_its_lock_and_who_has_that_keeps_it() {
        let place = place();
        let mut was_free = None;
        let (made, kept) = make_locked(&place).expect("there is room");
        remove_if_left(&made, |_| unreachable!("it is used"));
        drop(kept);
        remove_if_left(&made, |path| {
            let other = File::open(path).expect("ours");
            was_free = Some(lock(other.as_fd(), Lock::Shared).expect("a directory can be locked"));
            true
        });
        assert_eq!(was_free, Some(false));
        assert!(!made.exists());
        fs::remove_dir_all(place).expect("ours");
    }
}
