//! What is copied out of a file system that nobody changes any more.

use std::collections::HashMap;
use std::io::{self, Read};

use scalefs::{
    Attributes, DataOperations, Errno, Fields, FileSystem, Follow, Kind, ObjectOperations, Start, attributes,
    directories, names, path_data,
};

use super::Copied;

/// Where it goes. Paths are relative; that of the top is empty.
pub(super) trait Target {
    /// Whether what cannot be copied is passed over, and said in the end.
    const GOES_ON: bool;
    fn directory(&mut self, path: &[u8], status: &Attributes) -> Result<(), String>;
    fn file(&mut self, path: &[u8], status: &Attributes, data: &mut dyn Read) -> Result<(), String>;
    fn symlink(&mut self, path: &[u8], target: &[u8], status: &Attributes) -> Result<(), String>;
    /// A name for a pipe, a socket or a device with this number; whether it could be made there.
    fn node(&mut self, path: &[u8], device: u64, status: &Attributes) -> Result<bool, String>;
    fn link(&mut self, path: &[u8], first: &[u8]) -> Result<(), String>;
    fn finish(self) -> Result<(), String>;
}

/// The bytes of a file.
struct Data<'f> {
    files: &'f FileSystem,
    path: &'f [u8],
    offset: u64,
}

impl Read for Data<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self
            .files
            .act(|calls| path_data::read_path(&calls, Start::WorkingDirectory, self.path, self.offset, bytes))?;
        self.offset += length as u64;
        Ok(length)
    }
}

/// The absolute path of a relative one below a directory.
fn absolute(top: &[u8], path: &[u8]) -> Vec<u8> {
    [top, b"/", path].concat()
}

/// The names in a directory.
fn names_in(files: &FileSystem, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    files.act(|calls| {
        let opened = names::open(&*calls, Start::WorkingDirectory, path, scalefs::OpenFlags::READ, 0)?.handle;
        let mut found = Vec::new();
        let listed = directories::read_directory(calls.objects(), calls.objects().held(&opened), 0, |entry| {
            if !matches!(entry.name, b"." | b"..") {
                found.push(entry.name.to_vec());
            }
            true
        });
        names::close(&*calls, opened);
        listed.map(|_| found)
    })
}

/// Copies all.
pub(super) fn copy_all<T: Target>((files, top): (&FileSystem, &[u8]), mut target: T) -> Result<Copied, String> {
    let mut copy =
        Copy { files, top, copied: Copied::default(), first_names: HashMap::new(), pending: vec![Vec::new()] };
    let (mut failures, mut first) = (0_u64, None);
    while let Some(path) = copy.pending.pop() {
        match copy.one(&mut target, path) {
            Err(why) if !T::GOES_ON => return Err(why),
            Err(why) => {
                failures += 1;
                first.get_or_insert(why);
            }
            Ok(()) => {}
        }
    }
    target.finish()?;
    match first {
        None => Ok(copy.copied),
        Some(first) => Err(format!("{failures} names could not be copied; the first: {first}")),
    }
}

/// A copy that is being made.
struct Copy<'f> {
    files: &'f FileSystem,
    top: &'f [u8],
    copied: Copied,
    first_names: HashMap<u64, Vec<u8>>,
    /// Paths that are still to be copied, the next one last.
    pending: Vec<Vec<u8>>,
}

impl Copy<'_> {
    fn one(&mut self, target: &mut impl Target, path: Vec<u8>) -> Result<(), String> {
        let (files, from) = (self.files, absolute(self.top, &path));
        let wrong = |error: io::Error| format!("{}: {error}", String::from_utf8_lossy(&from));
        let seen = files.act(|calls| {
            attributes::stat_with_device(&*calls, Start::WorkingDirectory, &from, Follow::Nothing, Fields::ALL)
        });
        let (status, device) = seen.map_err(wrong)?;
        self.copied.names += 1;
        if status.link_count > 1 && status.kind != Kind::Directory {
            if let Some(first) = self.first_names.get(&status.number.0) {
                return target.link(&path, first);
            }
            self.first_names.insert(status.number.0, path.clone());
        }
        match status.kind {
            Kind::Directory => {
                target.directory(&path, &status)?;
                let mut names = names_in(files, &from).map_err(wrong)?;
                names.sort_unstable();
                let below = |name: &Vec<u8>| match path.is_empty() {
                    true => name.clone(),
                    false => [path.as_slice(), name].join(&b'/'),
                };
                self.pending.extend(names.iter().rev().map(below));
                Ok(())
            }
            Kind::Regular => {
                self.copied.bytes += status.size_bytes;
                target.file(&path, &status, &mut Data { files, path: &from, offset: 0 })
            }
            Kind::Symlink => {
                let link = files
                    .act(|calls| names::read_link(&*calls, Start::WorkingDirectory, &from).map(|link| link.to_vec()));
                target.symlink(&path, &link.map_err(wrong)?, &status)
            }
            _ => {
                if !target.node(&path, device, &status)? {
                    self.first_names.remove(&status.number.0);
                    self.copied.left_out += 1;
                }
                Ok(())
            }
        }
    }
}

/// An error of the system, with the path.
pub(super) fn said(path: &std::path::Path) -> impl Fn(io::Error) -> String + '_ {
    |error| match error.raw_os_error() {
        Some(number) if number == Errno::ENOSPC.number() => format!("{}: no room is left there", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}
