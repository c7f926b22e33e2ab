//! A file system's last state as a directory of the system.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use scalefs::{Attributes, FileSystem};

use super::Copied;
use super::save::{Target, copy_all, said};

struct Directory {
    top: PathBuf,
    /// Owners are root's to give.
    sets_owners: bool,
    /// Their modes and times are set when nothing comes into them any more.
    directories: Vec<(PathBuf, Attributes)>,
}

pub(super) fn save(files: &FileSystem, top: &Path) -> Result<Copied, String> {
    let sets_owners = nix::unistd::geteuid().is_root();
    copy_all(files, Directory { top: top.to_path_buf(), sets_owners, directories: Vec::new() })
}

impl Directory {
    fn place(&self, path: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(path))
    }

    fn set_owner(&self, place: &Path, status: &Attributes) -> Result<(), String> {
        match self.sets_owners {
            true => lchown(place, Some(status.user), Some(status.group)).map_err(said(place)),
            false => Ok(()),
        }
    }

    fn set_status(&self, place: &Path, status: &Attributes) -> Result<(), String> {
        self.set_owner(place, status)?;
        let since = Duration::from_nanos(status.modified_ns.unsigned_abs());
        let modified = if status.modified_ns < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
        let file = File::open(place).map_err(said(place))?;
        file.set_times(FileTimes::new().set_accessed(modified).set_modified(modified)).map_err(said(place))?;
        file.set_permissions(Permissions::from_mode(status.mode & 0o7777)).map_err(said(place))
    }
}

impl Target for Directory {
    fn directory(&mut self, path: &[u8], status: &Attributes) -> Result<(), String> {
        let place = self.place(path);
        if !path.is_empty() || !place.is_dir() {
            fs::create_dir(&place).map_err(said(&place))?;
        }
        self.directories.push((place, *status));
        Ok(())
    }

    fn file(&mut self, path: &[u8], status: &Attributes, data: &mut dyn Read) -> Result<(), String> {
        let place = self.place(path);
        let mut file = File::create_new(&place).map_err(said(&place))?;
        std::io::copy(data, &mut file).map_err(said(&place))?;
        self.set_status(&place, status)
    }

    fn symlink(&mut self, path: &[u8], target: &[u8], status: &Attributes) -> Result<(), String> {
        let place = self.place(path);
        symlink(OsStr::from_bytes(target), &place).map_err(said(&place))?;
        self.set_owner(&place, status)
    }

    fn link(&mut self, path: &[u8], first: &[u8]) -> Result<(), String> {
        let place = self.place(path);
        fs::hard_link(self.place(first), &place).map_err(said(&place))
    }

    fn finish(self) -> Result<(), String> {
        self.directories.iter().rev().try_for_each(|(place, status)| self.set_status(place, status))
    }
}
