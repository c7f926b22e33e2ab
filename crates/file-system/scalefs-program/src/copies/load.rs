//! What is put into an empty file system, path by path.

use std::collections::BTreeMap;
use std::io::{self, Read};

use scalefs::attributes::NewTime;
use scalefs::{
    Errno, FileSystem, Follow, Kind, OpenFlags, Start, WriteAt, attributes, data, directories, names, path_data,
};

use super::{Copied, PIECE_BYTES, Status, runs_of_data};

/// Puts objects into a directory of a file system, to which all paths lead as to a root. Directories come before what is in them.
pub(super) struct Loader<'f> {
    files: &'f FileSystem,
    top: &'f [u8],
    copied: Copied,
    /// Directories, whose modes and times are set when nothing comes into them any more.
    directories: BTreeMap<Vec<u8>, Status>,
    /// To whom all belongs if not to those of the source: owners are root's to give.
    owner: Option<(u32, u32)>,
}

fn said(path: &[u8], error: &impl std::fmt::Display) -> String {
    format!("{}: {error}", String::from_utf8_lossy(path))
}

/// A call's error in words.
fn in_words(path: &[u8], error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) if number == Errno::ENOSPC.number() => said(path, &"no room is left: give more by --size"),
        _ => said(path, error),
    }
}

impl<'f> Loader<'f> {
    pub(super) fn new(files: &'f FileSystem, top: &'f [u8]) -> Loader<'f> {
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let owner = (!user.is_root()).then(|| (user.as_raw(), group.as_raw()));
        Loader { files, top, copied: Copied::default(), directories: BTreeMap::new(), owner }
    }

    /// Where a path leads in the file system.
    fn at(&self, path: &[u8]) -> Vec<u8> {
        [self.top, path].concat()
    }

    /// A directory, which may be there.
    pub(super) fn directory(&mut self, path: &[u8], status: Status) -> Result<(), String> {
        let path = &self.at(path);
        let made = self.files.act(|calls| match directories::make_directory(&*calls, at_root(), path, 0o700) {
            Err(Errno::EEXIST) => Ok(()),
            made => made,
        });
        made.map_err(|error| in_words(path, &error))?;
        self.directories.insert(path.to_vec(), status);
        self.copied.names += 1;
        Ok(())
    }

    /// A file. Pages of zeros become holes.
    pub(super) fn file(&mut self, path: &[u8], status: Status, source: &mut dyn Read) -> Result<(), String> {
        let path = &self.at(path);
        self.make_way(path)?;
        let (mut buffer, mut size) = (vec![0; PIECE_BYTES], 0_u64);
        loop {
            let length = fill(source, &mut buffer).map_err(|error| said(path, &error))?;
            for run in runs_of_data(&buffer[..length]) {
                self.write(path, size + run.start as u64, &buffer[run])?;
            }
            size += length as u64;
            if length < buffer.len() {
                break;
            }
        }
        // A file of nothing but holes has not been made yet.
        self.write(path, 0, &[])?;
        let size_bytes = i64::try_from(size).map_err(|_| said(path, &"it is too large"))?;
        let cut = self.files.act(|calls| data::truncate_path(&calls, at_root(), path, size_bytes));
        cut.map_err(|error| in_words(path, &error))?;
        self.copied.names += 1;
        self.copied.bytes += size;
        self.set_status(path, status, Follow::Symlinks)
    }

    fn write(&self, path: &[u8], offset: u64, bytes: &[u8]) -> Result<(), String> {
        let mut done = 0;
        loop {
            let (at, flags) = (WriteAt::Offset(offset + done as u64), (OpenFlags::CREATE, 0o600));
            let written =
                self.files.act(|calls| path_data::write_path(&calls, at_root(), path, flags, at, &bytes[done..]));
            done += written.map_err(|error| in_words(path, &error))?;
            if done == bytes.len() {
                return Ok(());
            }
        }
    }

    /// Removes what an archive has put there before: its later entries count.
    fn make_way(&self, path: &[u8]) -> Result<(), String> {
        match self.files.act(|calls| names::unlink(&*calls, at_root(), path)) {
            Err(error) if error.raw_os_error() != Some(Errno::ENOENT.number()) => Err(in_words(path, &error)),
            _ => Ok(()),
        }
    }

    pub(super) fn symlink(&mut self, path: &[u8], target: &[u8], status: Status) -> Result<(), String> {
        let path = &self.at(path);
        self.make_way(path)?;
        let made = self.files.act(|calls| names::symlink(&*calls, target, at_root(), path));
        made.map_err(|error| in_words(path, &error))?;
        self.copied.names += 1;
        self.set_status(path, status, Follow::Nothing)
    }

    /// A name for a pipe, a socket or a device, with a device's number.
    pub(super) fn node(&mut self, path: &[u8], object: (Kind, u64), status: Status) -> Result<(), String> {
        let path = &self.at(path);
        self.make_way(path)?;
        let made = self.files.act(|calls| names::make_node(&*calls, at_root(), path, object, 0o600));
        made.map_err(|error| in_words(path, &error))?;
        self.copied.names += 1;
        self.set_status(path, status, Follow::Symlinks)
    }

    /// Another name of a file.
    pub(super) fn link(&mut self, path: &[u8], old: &[u8]) -> Result<(), String> {
        let path = &self.at(path);
        let old = &self.at(old);
        self.make_way(path)?;
        let made = self.files.act(|calls| names::link(&*calls, (at_root(), old), (at_root(), path), Follow::Nothing));
        made.map_err(|error| in_words(path, &error))?;
        self.copied.names += 1;
        Ok(())
    }

    /// Something for which there is no object.
    pub(super) fn leave_out(&mut self) {
        self.copied.left_out += 1;
    }

    fn set_status(&self, path: &[u8], status: Status, follow: Follow) -> Result<(), String> {
        let set = self.files.act(|calls| {
            let (user, group) = self.owner.unwrap_or((status.user, status.group));
            let owner = (Some(user), Some(group));
            attributes::change_owner(&*calls, at_root(), path, follow, owner)?;
            if follow == Follow::Symlinks {
                attributes::change_mode(&*calls, at_root(), path, status.mode)?;
            }
            let modified = NewTime::At(status.modified_ns);
            attributes::set_times(&*calls, at_root(), path, follow, (modified, modified))
        });
        set.map_err(|error| in_words(path, &error))
    }

    /// Sets what waits for the end.
    pub(super) fn finish(self) -> Result<Copied, String> {
        for (path, status) in &self.directories {
            self.set_status(path, *status, Follow::Symlinks)?;
        }
        Ok(self.copied)
    }
}

/// Reads until the buffer is full, or to the end.
fn fill(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match source.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// Paths are absolute, whatever they start at.
fn at_root<N>() -> Start<N> {
    Start::WorkingDirectory
}
