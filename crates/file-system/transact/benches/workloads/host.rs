//! The same calls on the host's tmpfs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use posix_calls::Kind;

use crate::door::Door;

/// A directory on tmpfs, which goes with the value.
pub struct Host(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Host {
    pub fn new() -> io::Result<Host> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = PathBuf::from(format!("/dev/shm/transact-workloads-{}-{number}", std::process::id()));
        fs::create_dir(&directory)?;
        Ok(Host(directory))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Door for Host {
    fn exists(&self, path: &str) -> io::Result<bool> {
        match fs::symlink_metadata(self.at(path)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    fn kind(&self, path: &str) -> io::Result<Kind> {
        let kind = fs::symlink_metadata(self.at(path))?.file_type();
        Ok(if kind.is_dir() {
            Kind::Directory
        } else if kind.is_symlink() {
            Kind::Symlink
        } else {
            Kind::Regular
        })
    }
    fn read_link(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_link(self.at(path))?.to_string_lossy().into_owned())
    }
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.at(path))
    }
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        fs::write(self.at(path), bytes)
    }
    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(self.at(path))?.write_all(bytes)
    }
    fn write_at(&self, path: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.at(path))?.write_all_at(bytes, offset)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.at(path))
    }
    fn remove_file(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }
    fn hard_link(&self, original: &str, link: &str) -> io::Result<()> {
        fs::hard_link(self.at(original), self.at(link))
    }
    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.at(path))?;
        let mut names: Vec<_> = entries
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort_unstable();
        Ok(names)
    }
}
