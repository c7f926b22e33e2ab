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
    fn directory(&mut self, path: &[u8], status: &Attributes) -> Result<(), String>;
    fn file(&mut self, path: &[u8], status: &Attributes, data: &mut dyn Read) -> Result<(), String>;
    fn symlink(&mut self, path: &[u8], target: &[u8], status: &Attributes) -> Result<(), String>;
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

fn absolute(path: &[u8]) -> Vec<u8> {
    [b"/", path].concat()
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
pub(super) fn copy_all(files: &FileSystem, mut target: impl Target) -> Result<Copied, String> {
    let mut copied = Copied::default();
    let mut first_names: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let from = absolute(&path);
        let wrong = |error: io::Error| format!("{}: {error}", String::from_utf8_lossy(&from));
        let status =
            files.act(|calls| attributes::stat(&*calls, Start::WorkingDirectory, &from, Follow::Nothing, Fields::ALL));
        let status = status.map_err(wrong)?;
        copied.names += 1;
        if status.link_count > 1 && status.kind != Kind::Directory {
            if let Some(first) = first_names.get(&status.number.0) {
                target.link(&path, first)?;
                continue;
            }
            first_names.insert(status.number.0, path.clone());
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
                pending.extend(names.iter().rev().map(below));
            }
            Kind::Regular => {
                copied.bytes += status.size_bytes;
                target.file(&path, &status, &mut Data { files, path: &from, offset: 0 })?;
            }
            Kind::Symlink => {
                let link = files
                    .act(|calls| names::read_link(&*calls, Start::WorkingDirectory, &from).map(|link| link.to_vec()));
                target.symlink(&path, &link.map_err(wrong)?, &status)?;
            }
            _ => copied.left_out += 1,
        }
    }
    target.finish()?;
    Ok(copied)
}

/// An error of the system, with the path.
pub(super) fn said(path: &std::path::Path) -> impl Fn(io::Error) -> String + '_ {
    |error| match error.raw_os_error() {
        Some(number) if number == Errno::ENOSPC.number() => format!("{}: no room is left there", path.display()),
        _ => format!("{}: {error}", path.display()),
    }
}
