//! Extended attributes, and room for data. A transaction has neither.

use std::io;

use scalefs::{DataOperations, Errno, FileSystem, Follow, NodeOf, Start, allocation, extended};

use crate::door::Door;
use crate::errors::Refusal;

/// A value or a list that has no more is read at once; a longer one again, with room for the longest.
const SHORT_BYTES: usize = 256;

/// What an attribute is of.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// What a path leads to; whether a symbolic link at its end is followed.
    Path(&'a [u8], bool),
    /// What a descriptor leads to.
    Descriptor(u32),
}

impl Target<'_> {
    fn find<'v, D: DataOperations>(self, calls: &'v D) -> Result<NodeOf<'v, D>, Errno> {
        match self {
            Target::Descriptor(fd) => extended::of(calls, fd),
            Target::Path(path, follows) => {
                let follow = if follows { Follow::Symlinks } else { Follow::Nothing };
                extended::at(calls.objects(), Start::WorkingDirectory, path, follow)
            }
        }
    }
}

/// Refuses what a transaction has not; the file system of a door that is in none.
fn outside(door: &Door) -> Result<FileSystem, Refusal> {
    match door.transaction {
        Some(_) => Err(Refusal::Failed(io::Error::from(Errno::EOPNOTSUPP))),
        None => door.files(),
    }
}

/// Reads into short room, and into the longest where that is not enough.
fn read_whole(mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; SHORT_BYTES];
    let count = match read(&mut bytes) {
        Err(Errno::ERANGE) => {
            bytes.resize(extended::MOST_VALUE_BYTES, 0);
            read(&mut bytes)?
        }
        read => read?,
    };
    bytes.truncate(count);
    Ok(bytes)
}

pub fn get(door: &Door, target: Target<'_>, name: &[u8]) -> Result<Vec<u8>, Refusal> {
    let value = outside(door)?
        .act(|calls| read_whole(|place| extended::get(calls.objects(), || target.find(&calls), name, place)));
    Ok(value?)
}

pub fn set(door: &Door, target: Target<'_>, given: (&[u8], &[u8]), flags: u32) -> Result<(), Refusal> {
    let set = outside(door)?.act(|calls| extended::set(calls.objects(), || target.find(&calls), given, flags));
    Ok(set?)
}

pub fn remove(door: &Door, target: Target<'_>, name: &[u8]) -> Result<(), Refusal> {
    let removed = outside(door)?.act(|calls| extended::remove(calls.objects(), || target.find(&calls), name));
    Ok(removed?)
}

/// The names, each without the zero at its end.
pub fn list(door: &Door, target: Target<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
    let names =
        outside(door)?.act(|calls| read_whole(|place| extended::list(calls.objects(), || target.find(&calls), place)));
    Ok(names?.split_inclusive(|byte| *byte == 0).map(|name| name[..name.len() - 1].to_vec()).collect())
}

pub fn allocate(door: &Door, fd: u32, mode: u32, range: (i64, i64)) -> Result<(), Refusal> {
    Ok(outside(door)?.act(|calls| allocation::change(&calls, fd, mode, range))?)
}
