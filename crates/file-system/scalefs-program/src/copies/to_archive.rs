//! A file system's last state as an archive of tar.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use scalefs::{Attributes, FileSystem, Kind};
use tar::{Builder, EntryType, Header};

use super::Copied;
use super::save::{Target, copy_all, said};

struct Archive {
    place: PathBuf,
    builder: Builder<BufWriter<File>>,
}

pub(super) fn save(files: (&FileSystem, &[u8]), place: &Path) -> Result<Copied, String> {
    // Who may read what is inside is said there.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place).map_err(said(place))?;
    copy_all(files, Archive { place: place.to_path_buf(), builder: Builder::new(BufWriter::new(file)) })
}

fn header(kind: EntryType, status: &Attributes) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(status.mode & 0o7777);
    header.set_uid(status.user.into());
    header.set_gid(status.group.into());
    header.set_mtime(u64::try_from(status.modified_ns / 1_000_000_000).unwrap_or(0));
    header.set_size(0);
    header
}

/// Archives name their top so.
fn name(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(if path.is_empty() { b"./" } else { path }))
}

impl Target for Archive {
    // What is half in an archive spoils the rest.
    const GOES_ON: bool = false;

    fn directory(&mut self, path: &[u8], status: &Attributes) -> Result<(), String> {
        let mut header = header(EntryType::Directory, status);
        self.builder.append_data(&mut header, name(path), std::io::empty()).map_err(said(&self.place))
    }

    fn file(&mut self, path: &[u8], status: &Attributes, data: &mut dyn Read) -> Result<(), String> {
        let mut header = header(EntryType::Regular, status);
        header.set_size(status.size_bytes);
        self.builder.append_data(&mut header, name(path), data).map_err(said(&self.place))
    }

    fn symlink(&mut self, path: &[u8], target: &[u8], status: &Attributes) -> Result<(), String> {
        let mut header = header(EntryType::Symlink, status);
        self.builder.append_link(&mut header, name(path), name(target)).map_err(said(&self.place))
    }

    fn node(&mut self, path: &[u8], device: u64, status: &Attributes) -> Result<bool, String> {
        let kind = match status.kind {
            Kind::NamedPipe => EntryType::Fifo,
            Kind::CharacterDevice => EntryType::Char,
            Kind::BlockDevice => EntryType::Block,
            // An archive has no word for sockets.
            _ => return Ok(false),
        };
        let mut header = header(kind, status);
        let wrong = said(&self.place);
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        header.set_device_major(number(major(device))).map_err(&wrong)?;
        header.set_device_minor(number(minor(device))).map_err(&wrong)?;
        self.builder.append_data(&mut header, name(path), std::io::empty()).map_err(wrong)?;
        Ok(true)
    }

    fn link(&mut self, path: &[u8], first: &[u8]) -> Result<(), String> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Link);
        header.set_size(0);
        self.builder.append_link(&mut header, name(path), name(first)).map_err(said(&self.place))
    }

    fn finish(self) -> Result<(), String> {
        let wrong = said(&self.place);
        let mut file = self.builder.into_inner().map_err(&wrong)?;
        file.flush().map_err(&wrong)
    }
}
