//! One program of a benchmark: the calls that it makes are counted by their kind.

use std::cell::{Cell, RefCell};

use posix_calls::Errno;

use crate::system::{How, System};

/// Kinds of calls, as they are printed.
pub const KINDS: [&str; 13] =
    ["open", "close", "read", "write", "stat", "unlink", "rename", "mkdir", "rmdir", "list", "chmod", "link", "pipe"];

/// How many calls of each kind.
pub type Calls = [u64; KINDS.len()];

/// A program, of which each of some runs in a domain of its own.
pub struct Client<'s, S> {
    system: &'s S,
    /// Its number.
    pub own: usize,
    /// How many there are.
    pub count: usize,
    /// What is added to the sizes: see [`Client::times`].
    pub percent: usize,
    /// The directory that holds all that this run makes.
    pub base: String,
    calls: Cell<Calls>,
    random: Cell<u64>,
    meet: &'s dyn Fn(),
    buffer: RefCell<Vec<u8>>,
}

/// The base of programs that work in the root, as Hare's do.
pub const ROOT: &str = ".";

/// The longest read or write, in bytes.
const LONGEST_BYTES: usize = 64 * 1024;

impl<'s, S: System> Client<'s, S> {
    /// `meet` waits until all have called it.
    pub fn new(
        system: &'s S,
        (own, count): (usize, usize),
        percent: usize,
        base: &str,
        meet: &'s dyn Fn(),
    ) -> Client<'s, S> {
        Client {
            system,
            own,
            count,
            percent,
            base: base.into(),
            calls: Cell::default(),
            random: Cell::new(own as u64 + 1),
            meet,
            buffer: RefCell::new(vec![7; LONGEST_BYTES]),
        }
    }

    /// Calls so far.
    pub fn calls(&self) -> Calls {
        self.calls.get()
    }

    /// A number of rounds as large as this run asks for; at least 1.
    pub fn times(&self, usual: usize) -> usize {
        (usual * self.percent / 100).max(1)
    }

    /// Waits until all programs have come to this place.
    pub fn meet(&self) {
        (self.meet)();
    }

    /// A number below `below`, of a sequence that each program has for itself (splitmix64).
    pub fn draw(&self, below: usize) -> usize {
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % below.max(1) as u64) as usize
    }

    /// A path below the base.
    pub fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.base)
    }

    /// Makes the base, if it is not there from the beginning.
    pub fn make_base(&self) -> Result<(), Errno> {
        if self.base == ROOT { Ok(()) } else { self.make_directory(&self.base) }
    }

    fn counted<R>(&self, kind: usize, outcome: R) -> R {
        let mut calls = self.calls.get();
        calls[kind] += 1;
        self.calls.set(calls);
        outcome
    }

    pub fn open(&self, path: &str, how: How) -> Result<u32, Errno> {
        self.counted(0, self.system.open(path, how))
    }

    pub fn close(&self, fd: u32) -> Result<(), Errno> {
        self.counted(1, self.system.close(fd))
    }

    /// One read; how many bytes came.
    pub fn read(&self, fd: u32, bytes: usize) -> Result<usize, Errno> {
        let mut buffer = self.buffer.borrow_mut();
        self.counted(2, self.system.read(fd, &mut buffer[..bytes]))
    }

    /// One write of all bytes.
    pub fn write(&self, fd: u32, bytes: usize) -> Result<(), Errno> {
        let written = self.counted(3, self.system.write(fd, &self.buffer.borrow()[..bytes]))?;
        if written == bytes { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    pub fn stat(&self, path: &str) -> Result<u64, Errno> {
        self.counted(4, self.system.stat(path))
    }

    pub fn stat_open(&self, fd: u32) -> Result<u64, Errno> {
        self.counted(4, self.system.stat_open(fd))
    }

    pub fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.counted(5, self.system.unlink(path))
    }

    pub fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        self.counted(6, self.system.rename(old, new))
    }

    pub fn make_directory(&self, path: &str) -> Result<(), Errno> {
        self.counted(7, self.system.make_directory(path))
    }

    pub fn remove_directory(&self, path: &str) -> Result<(), Errno> {
        self.counted(8, self.system.remove_directory(path))
    }

    pub fn change_mode(&self, path: &str, mode: u32) -> Result<(), Errno> {
        self.counted(10, self.system.change_mode(path, mode))
    }

    pub fn symlink(&self, target: &str, path: &str) -> Result<(), Errno> {
        self.counted(11, self.system.symlink(target, path))
    }

    pub fn read_link(&self, path: &str) -> Result<(), Errno> {
        self.counted(11, self.system.read_link(path))
    }

    pub fn pipe(&self) -> Result<(u32, u32), Errno> {
        self.counted(12, self.system.pipe())
    }

    /// Opens a directory, lists it, and closes it: its names, each with whether it is a directory's.
    pub fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Errno> {
        let fd = self.open(path, How::Read)?;
        let mut names = Vec::new();
        while self.counted(9, self.system.list(fd, &mut names))? {}
        self.close(fd)?;
        Ok(names)
    }

    /// Reads a file from its beginning to its end, in pieces.
    pub fn read_all(&self, path: &str, piece_bytes: usize) -> Result<(), Errno> {
        let fd = self.open(path, How::Read)?;
        while self.read(fd, piece_bytes)? > 0 {}
        self.close(fd)
    }

    /// Makes a file of this many bytes, written in pieces.
    pub fn write_new(&self, path: &str, bytes: usize, piece_bytes: usize) -> Result<(), Errno> {
        let fd = self.open(path, How::CreateNew)?;
        for start in (0..bytes).step_by(piece_bytes) {
            self.write(fd, piece_bytes.min(bytes - start))?;
        }
        self.close(fd)
    }

    /// Removes a directory and all that is in it.
    pub fn remove_all(&self, path: &str) -> Result<(), Errno> {
        for (name, is_directory) in self.list(path)? {
            let path = format!("{path}/{name}");
            if is_directory { self.remove_all(&path)? } else { self.unlink(&path)? }
        }
        self.remove_directory(path)
    }
}
