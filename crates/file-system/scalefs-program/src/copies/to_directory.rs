//! A file system's last state as a directory of the system.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use nix::fcntl::{AT_FDCWD, OFlag};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, mknod, utimensat};
use nix::sys::time::TimeSpec;
use scalefs::{Attributes, FileSystem};

use super::save::{Target, copy_all, said};
use super::{Copied, PIECE_BYTES, runs_of_data};

struct Directory {
    top: PathBuf,
    /// Owners are root's to give.
    sets_owners: bool,
    /// Their modes and times are set when nothing comes into them any more.
    directories: Vec<(PathBuf, Attributes)>,
}

pub(super) fn save(files: (&FileSystem, &[u8]), top: &Path) -> Result<Copied, String> {
    let sets_owners = nix::unistd::geteuid().is_root();
    copy_all(files, Directory { top: top.to_path_buf(), sets_owners, directories: Vec::new() })
}

impl Directory {
    fn place(&self, path: &[u8]) -> PathBuf {
        self.top.join(OsStr::from_bytes(path))
    }

    /// Owner, times and mode, by the open object: another may have its name by now.
    fn set_status(&self, file: &File, status: &Attributes) -> io::Result<()> {
        if self.sets_owners {
            fchown(file, Some(status.user), Some(status.group))?;
        }
        let since = Duration::from_nanos(status.modified_ns.unsigned_abs());
        let modified = if status.modified_ns < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
        file.set_times(FileTimes::new().set_accessed(modified).set_modified(modified))?;
        // Without its owner, what a set-id bit says is something else.
        let bits = if self.sets_owners { 0o7777 } else { 0o1777 };
        file.set_permissions(Permissions::from_mode(status.mode & bits))
    }
}

/// Copies data; pages of zeros become holes.
fn copy(data: &mut dyn Read, file: &File, size_bytes: u64) -> io::Result<()> {
    let (mut buffer, mut offset) = (vec![0; PIECE_BYTES], 0_u64);
    loop {
        let length = data.read(&mut buffer)?;
        if length == 0 {
            return file.set_len(size_bytes);
        }
        for run in runs_of_data(&buffer[..length]) {
            file.write_all_at(&buffer[run.clone()], offset + run.start as u64)?;
        }
        offset += length as u64;
    }
}

impl Target for Directory {
    const GOES_ON: bool = true;

    fn directory(&mut self, path: &[u8], status: &Attributes) -> Result<(), String> {
        let place = self.place(path);
        let wrong = said(&place);
        // For nobody else until all is in it.
        if !path.is_empty() || !place.is_dir() {
            DirBuilder::new().mode(0o700).create(&place).map_err(&wrong)?;
        } else {
            fs::set_permissions(&place, Permissions::from_mode(0o700)).map_err(&wrong)?;
        }
        self.directories.push((place.clone(), *status));
        Ok(())
    }

    fn file(&mut self, path: &[u8], status: &Attributes, data: &mut dyn Read) -> Result<(), String> {
        let place = self.place(path);
        let wrong = said(&place);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place).map_err(&wrong)?;
        copy(data, &file, status.size_bytes).and_then(|()| self.set_status(&file, status)).map_err(wrong)
    }

    fn symlink(&mut self, path: &[u8], target: &[u8], status: &Attributes) -> Result<(), String> {
        let place = self.place(path);
        let wrong = said(&place);
        symlink(OsStr::from_bytes(target), &place).map_err(&wrong)?;
        match self.sets_owners {
            true => lchown(&place, Some(status.user), Some(status.group)).map_err(wrong),
            false => Ok(()),
        }
    }

    fn node(&mut self, path: &[u8], device: u64, status: &Attributes) -> Result<bool, String> {
        let place = self.place(path);
        let wrong = said(&place);
        match mknod(&place, SFlag::from_bits_truncate(status.kind.mode_bits()), Mode::empty(), device) {
            Ok(()) => {}
            Err(nix::Error::EPERM) => return Ok(false),
            Err(error) => return Err(wrong(error.into())),
        }
        // By name, since to open a device does something: its directory is for nobody else yet.
        if self.sets_owners {
            lchown(&place, Some(status.user), Some(status.group)).map_err(&wrong)?;
        }
        let time = TimeSpec::from_duration(Duration::from_nanos(status.modified_ns.max(0).unsigned_abs()));
        utimensat(AT_FDCWD, &place, &time, &time, UtimensatFlags::NoFollowSymlink)
            .map_err(|error| wrong(error.into()))?;
        let bits = if self.sets_owners { 0o7777 } else { 0o1777 };
        fs::set_permissions(&place, Permissions::from_mode(status.mode & bits)).map_err(wrong)?;
        Ok(true)
    }

    fn link(&mut self, path: &[u8], first: &[u8]) -> Result<(), String> {
        let place = self.place(path);
        fs::hard_link(self.place(first), &place).map_err(said(&place))
    }

    fn finish(self) -> Result<(), String> {
        for (place, status) in self.directories.iter().rev() {
            let flags = (OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY).bits();
            let opened = OpenOptions::new().read(true).custom_flags(flags).open(place);
            opened.and_then(|directory| self.set_status(&directory, status)).map_err(said(place))?;
        }
        Ok(())
    }
}
