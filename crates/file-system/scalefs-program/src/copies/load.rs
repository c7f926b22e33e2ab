//! What is put into an empty file system, path by path.

use std::io::{self, Read};

use scalefs::attributes::NewTime;
use scalefs::{Errno, FileSystem, Follow, OpenFlags, Start, WriteAt, attributes, directories, names, path_data};

use super::{Copied, PIECE_BYTES, Status};

/// Puts objects into a file system, whose root is at `/`. Directories come before what is in them.
pub(super) struct Loader<'f> {
    files: &'f FileSystem,
    copied: Copied,
    /// Directories, whose times are set when nothing comes into them any more.
    directories: Vec<(Vec<u8>, Status)>,
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
    pub(super) fn new(files: &'f FileSystem) -> Loader<'f> {
        Loader { files, copied: Copied::default(), directories: Vec::new() }
    }

    /// A directory, which may be there.
    pub(super) fn directory(&mut self, path: &[u8], status: Status) -> Result<(), String> {
        let made = self.files.act(|calls| match directories::make_directory(&*calls, at_root(), path, 0o700) {
            Err(Errno::EEXIST) => Ok(()),
            made => made,
        });
        made.map_err(|error| in_words(path, &error))?;
        self.directories.push((path.to_vec(), status));
        self.copied.names += 1;
        Ok(())
    }

    pub(super) fn file(&mut self, path: &[u8], status: Status, data: &mut dyn Read) -> Result<(), String> {
        let (mut buffer, mut offset) = (vec![0; PIECE_BYTES], 0_u64);
        loop {
            let length = data.read(&mut buffer).map_err(|error| said(path, &error))?;
            let mut done = 0;
            // Once for an empty file, too.
            while done < length || offset == 0 && done == 0 {
                let piece = &buffer[done..length];
                let (at, flags) = (WriteAt::Offset(offset), (OpenFlags::CREATE, 0o600));
                let written = self.files.act(|calls| path_data::write_path(&calls, at_root(), path, flags, at, piece));
                let written = written.map_err(|error| in_words(path, &error))?;
                done += written;
                offset += written as u64;
                if length == 0 {
                    break;
                }
            }
            if length == 0 {
                break;
            }
        }
        self.copied.names += 1;
        self.copied.bytes += offset;
        self.set_status(path, status, Follow::Symlinks)
    }

    pub(super) fn symlink(&mut self, path: &[u8], target: &[u8], status: Status) -> Result<(), String> {
        let made = self.files.act(|calls| names::symlink(&*calls, target, at_root(), path));
        made.map_err(|error| in_words(path, &error))?;
        self.copied.names += 1;
        self.set_status(path, status, Follow::Nothing)
    }

    /// Another name of a file.
    pub(super) fn link(&mut self, path: &[u8], old: &[u8]) -> Result<(), String> {
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
            let owner = (Some(status.user), Some(status.group));
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
        for (path, status) in self.directories.iter().rev() {
            self.set_status(path, *status, Follow::Symlinks)?;
        }
        Ok(self.copied)
    }
}

/// Paths are absolute, whatever they start at.
fn at_root<N>() -> Start<N> {
    Start::WorkingDirectory
}
