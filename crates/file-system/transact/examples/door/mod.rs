//! Calls by paths, in a transaction or each alone, so that the examples run the same code both ways.
#![allow(dead_code, reason = "each example makes some of the calls")]

use std::borrow::Borrow;
use std::cell::Cell;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use posix_calls::{Fields, Kind};
use scalefs::{Dir, FileSystem, OpenOptions, OwnedConfig};
use transact::PathCalls;

/// Calls whose paths begin at the root.
pub trait Door {
    /// Whether a name exists, whatever it leads to.
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// What a name leads to, a symbolic link not followed.
    fn kind(&self, path: &str) -> io::Result<Kind>;
    fn read_link(&self, path: &str) -> io::Result<String>;
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Makes the file, or empties it.
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()>;
    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()>;
    fn write_at(&self, path: &str, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn create_dir(&self, path: &str) -> io::Result<()>;
    fn remove_file(&self, path: &str) -> io::Result<()>;
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn hard_link(&self, original: &str, link: &str) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn names(&self, path: &str) -> io::Result<Vec<String>>;
}

impl<F: Borrow<FileSystem>> Door for PathCalls<F> {
    fn exists(&self, path: &str) -> io::Result<bool> {
        self.exists(path)
    }
    fn kind(&self, path: &str) -> io::Result<Kind> {
        Ok(self.metadata(path, Fields::IDENTITY)?.kind)
    }
    fn read_link(&self, path: &str) -> io::Result<String> {
        Ok(self.read_link(path)?.to_string_lossy().into_owned())
    }
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.read(path)
    }
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.write(path, bytes)
    }
    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.append(path, bytes)
    }
    fn write_at(&self, path: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(path, bytes, offset)
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.create_dir(path)
    }
    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.remove_file(path)
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.remove_dir(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, to)
    }
    fn hard_link(&self, original: &str, link: &str) -> io::Result<()> {
        self.hard_link(original, link)
    }
    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let names = self.names(path)?.into_iter().map(|name| name.to_string_lossy().into_owned());
        Ok(sorted(names))
    }
}

impl Door for Dir {
    fn exists(&self, path: &str) -> io::Result<bool> {
        match self.symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    fn kind(&self, path: &str) -> io::Result<Kind> {
        Ok(self.symlink_metadata(path)?.kind)
    }
    fn read_link(&self, path: &str) -> io::Result<String> {
        Ok(self.read_link(path)?.to_string_lossy().into_owned())
    }
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.create(path)?.write_all(bytes)
    }
    fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.open_with(path, OpenOptions::new().append(true))?.write_all(bytes)
    }
    fn write_at(&self, path: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = self.open_with(path, OpenOptions::new().write(true))?.write_at(bytes, offset)?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.create_dir(path)
    }
    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.remove_file(path)
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.remove_dir(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, to)
    }
    fn hard_link(&self, original: &str, link: &str) -> io::Result<()> {
        self.hard_link(original, link)
    }
    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = self.open_dir(path)?.entries()?.into_iter();
        Ok(sorted(entries.map(|entry| entry.name.to_string_lossy().into_owned())))
    }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// Who looks lets who changes come in between, so that what may go wrong does, however busy the machine is.
#[derive(Default)]
pub struct Between {
    looks: AtomicU64,
    changes: AtomicU64,
    is_done: AtomicBool,
}

impl Between {
    /// Makes the changes once the first look is under way.
    pub fn change(&self, mut numbers: Range<u64>, mut make: impl FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        while self.looks.load(Relaxed) == 0 {
            thread::yield_now();
        }
        let made = numbers.try_for_each(|number| {
            make(number)?;
            self.changes.fetch_add(1, Relaxed);
            thread::yield_now();
            Ok(())
        });
        self.is_done.store(true, Relaxed);
        made
    }

    /// Looks until all changes are made, once at least.
    pub fn look(&self, mut look: impl FnMut(&dyn Fn()) -> io::Result<()>) -> io::Result<()> {
        loop {
            // The first time of each look: who is disturbed in a transaction looks again, and goes on.
            let is_first = Cell::new(true);
            let looked = look(&|| {
                if is_first.replace(false) {
                    self.wait();
                }
            });
            if looked.is_err() || self.is_done.load(Relaxed) {
                self.looks.fetch_add(1, Relaxed);
                return looked;
            }
        }
    }

    fn wait(&self) {
        let before = self.changes.load(Relaxed);
        self.looks.fetch_add(1, Relaxed);
        // The next may have begun before the look did.
        while self.changes.load(Relaxed) < before + 2 && !self.is_done.load(Relaxed) {
            thread::yield_now();
        }
    }
}

/// An empty file system for some threads.
pub fn files() -> io::Result<FileSystem> {
    FileSystem::create(OwnedConfig { core_count: 4, ..OwnedConfig::default() })
}

/// How many rounds the command line asks for.
pub fn rounds(usual: u64) -> u64 {
    std::env::args().nth(1).map_or(usual, |text| text.parse().expect("expected how many rounds, as a number"))
}
