//! The calls of scripts on an implementation of the operations.

use std::collections::BTreeMap;

use scalefs::data::{self, DescriptorOptions, Whence};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Attributes, DataOperations, Errno, Fields, Follow, Kind, OpenFlags, Sought, Start, StatusFlags, attributes,
    directories,
};

use super::Outcome;
use super::read::{Line, Word};

/// The directories that a process has opened, by the number of the handle: a descriptor.
#[derive(Default)]
pub struct Held {
    pub directories: BTreeMap<i64, u32>,
    pub count: i64,
}

/// What a flag is for us and for the host, if it is known.
pub fn flag(name: &str) -> Option<(OpenFlags, i32)> {
    Some(match name {
        // Linux has neither of the last two, and no bit for any.
        "O_RDONLY" | "O_EXEC" | "O_SEARCH" => (OpenFlags::NONE, libc::O_RDONLY),
        "O_WRONLY" => (OpenFlags::NONE, libc::O_WRONLY),
        "O_RDWR" => (OpenFlags::NONE, libc::O_RDWR),
        "O_CREAT" => (OpenFlags::CREATE, libc::O_CREAT),
        "O_EXCL" => (OpenFlags::EXCLUSIVE, libc::O_EXCL),
        "O_TRUNC" => (OpenFlags::TRUNCATE, libc::O_TRUNC),
        "O_DIRECTORY" => (OpenFlags::DIRECTORY, libc::O_DIRECTORY),
        "O_NOFOLLOW" => (OpenFlags::NO_FOLLOW, libc::O_NOFOLLOW),
        "O_APPEND" => (OpenFlags::NONE, libc::O_APPEND),
        // Of no consequence in memory, and where nothing waits.
        "O_NONBLOCK" => (OpenFlags::NONE, libc::O_NONBLOCK),
        "O_CLOEXEC" => (OpenFlags::NONE, libc::O_CLOEXEC),
        "O_SYNC" | "O_RSYNC" => (OpenFlags::NONE, libc::O_SYNC),
        "O_DSYNC" => (OpenFlags::NONE, libc::O_DSYNC),
        "O_NOCTTY" | "O_TTY_INIT" => (OpenFlags::NONE, libc::O_NOCTTY),
        _ => return None,
    })
}

pub fn text(line: &Line, place: usize) -> &str {
    match line.words.get(place) {
        Some(Word::Text(text)) => text,
        _ => "",
    }
}

pub fn number(line: &Line, place: usize) -> i64 {
    match line.words.get(place) {
        Some(Word::Number(number) | Word::Numbered(_, number)) => *number,
        _ => 0,
    }
}

pub fn mode(line: &Line, place: usize) -> u32 {
    number(line, place) as u32
}

/// The bytes that a line writes: so many of its text.
pub fn bytes(line: &Line) -> Vec<u8> {
    let all = text(line, 1).as_bytes();
    let count = usize::try_from(number(line, 2)).unwrap_or(0);
    all.iter().copied().cycle().take(if all.is_empty() { 0 } else { count }).collect()
}

/// What is open by the access mode of Linux's flags; `None` for that which lets neither read nor write.
pub fn access(flags: i32) -> Option<OpenFlags> {
    match flags & libc::O_ACCMODE {
        libc::O_RDONLY => Some(OpenFlags::READ),
        libc::O_WRONLY => Some(OpenFlags::WRITE),
        libc::O_RDWR => Some(OpenFlags::READ | OpenFlags::WRITE),
        _ => None,
    }
}

/// The flags of a line, ours and Linux's, and its permission bits.
pub fn flags(line: &Line) -> (OpenFlags, i32, u32) {
    let (mut ours, mut theirs) = (OpenFlags::NONE, 0);
    if let Some(Word::Flags(names)) = line.words.get(1) {
        for (flags, number) in names.iter().filter_map(|name| flag(name)) {
            (ours, theirs) = (ours | flags, theirs | number);
        }
    }
    (ours | access(theirs).unwrap_or(OpenFlags::NONE), theirs, mode(line, 2) & 0o7777)
}

/// Takes the three numbers that programs have from the start.
pub fn occupy<D: DataOperations>(calls: &D) {
    for _ in 0..3 {
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        data::open(calls, Start::WorkingDirectory, b"/", flags, 0, DescriptorOptions::PLAIN).unwrap();
    }
}

/// What can be compared of an object.
pub fn status(kind: char, mode: u32, (user, group): (u32, u32), (links, size): (u64, u64)) -> String {
    match kind {
        'd' => format!("{kind} {mode:o} {user} {group}"),
        _ => format!("{kind} {mode:o} {user} {group} {links} {size}"),
    }
}

fn told(attributes: &Attributes) -> String {
    let kind = match attributes.kind {
        Kind::Regular => 'f',
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        _ => '?',
    };
    let Attributes { mode, user, group, link_count, size_bytes, .. } = *attributes;
    status(kind, mode, (user, group), (u64::from(link_count), size_bytes))
}

/// Makes a line's call.
pub fn call<D: DataOperations>(calls: &D, held: &mut Held, line: &Line) -> Outcome {
    let made = make(calls, held, line);
    made.map_err(Errno::number)
}

fn make<D: DataOperations>(calls: &D, held: &mut Held, line: &Line) -> Result<String, Errno> {
    let (objects, at) = (calls.objects(), Start::WorkingDirectory);
    let path = text(line, 0).as_bytes();
    let fd = u32::try_from(number(line, 0)).unwrap_or(u32::MAX >> 1);
    let done = |()| String::new();
    match line.call.as_str() {
        "mkdir" => directories::make_directory(objects, at, path, mode(line, 1)).map(done),
        "rmdir" => directories::remove_directory(objects, at, path).map(done),
        "unlink" => names::unlink(objects, at, path).map(done),
        "link" => names::link(objects, (at, path), (at, text(line, 1).as_bytes()), Follow::Nothing).map(done),
        "symlink" => names::symlink(objects, path, at, text(line, 1).as_bytes()).map(done),
        "readlink" => {
            names::read_link(objects, at, path).map(|target| String::from_utf8_lossy(target.as_ref()).into_owned())
        }
        "rename" => {
            let to = (at, text(line, 1).as_bytes());
            names::rename(objects, (at, path), to, RenameMode::Replace).map(done)
        }
        "stat" => attributes::stat(objects, at, path, Follow::Symlinks, Fields::ALL).map(|seen| told(&seen)),
        "lstat" => attributes::stat(objects, at, path, Follow::Nothing, Fields::ALL).map(|seen| told(&seen)),
        "chmod" => attributes::change_mode(objects, at, path, mode(line, 1)).map(done),
        "chown" => {
            let owner = (Some(mode(line, 1)), Some(mode(line, 2)));
            attributes::change_owner(objects, at, path, Follow::Symlinks, owner).map(done)
        }
        "truncate" => data::truncate_path(calls, at, path, number(line, 1)).map(done),
        "chdir" => directories::change_directory(objects, at, path).map(done),
        "open" | "open_close" => {
            let (flags, theirs, mode) = flags(line);
            let status = if theirs & libc::O_APPEND != 0 { StatusFlags::APPEND } else { StatusFlags::NONE };
            let options = DescriptorOptions { status, ..DescriptorOptions::PLAIN };
            let fd = data::open(calls, at, path, flags, mode, options)?;
            if line.call == "open_close" {
                data::close(calls, fd)?;
            }
            Ok(fd.to_string())
        }
        "close" => data::close(calls, fd).map(done),
        "write" | "write!" => data::write(calls, fd, &bytes(line)).map(|count| count.to_string()),
        "pwrite" | "pwrite!" => data::write_at(calls, fd, &bytes(line), number(line, 3)).map(|count| count.to_string()),
        "read" | "read!" | "pread" | "pread!" => {
            let mut into = vec![0; usize::try_from(number(line, 1)).unwrap_or(0)];
            let count = match line.call.starts_with('p') {
                true => data::read_at(calls, fd, &mut into, number(line, 2))?,
                false => data::read(calls, fd, &mut into)?,
            };
            Ok(String::from_utf8_lossy(&into[..count]).into_owned())
        }
        "lseek" => {
            let offset = number(line, 1);
            let sought = match text(line, 2) {
                "SEEK_SET" => data::seek(calls, fd, offset, Whence::Start),
                "SEEK_CUR" => data::seek(calls, fd, offset, Whence::Current),
                "SEEK_END" => data::seek(calls, fd, offset, Whence::End),
                "SEEK_DATA" => data::seek_for(calls, fd, offset, Sought::Data),
                "SEEK_HOLE" => data::seek_for(calls, fd, offset, Sought::Hole),
                _ => Err(Errno::EINVAL),
            };
            sought.map(|offset| offset.to_string())
        }
        "opendir" => {
            let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
            let fd = data::open(calls, at, path, flags, 0, DescriptorOptions::PLAIN)?;
            held.count += 1;
            held.directories.insert(held.count, fd);
            Ok(held.count.to_string())
        }
        "readdir" | "rewinddir" | "closedir" => {
            let Some(fd) = held.directories.get(&number(line, 0)).copied() else { return Err(Errno::EBADF) };
            match line.call.as_str() {
                // Names come in an order of each system's own.
                "readdir" => {
                    let mut is_first = true;
                    let count = data::read_directory(calls, fd, |_| std::mem::take(&mut is_first))?;
                    Ok(if count > 0 { "a name".into() } else { "the end".into() })
                }
                "rewinddir" => data::seek(calls, fd, 0, Whence::Start).map(|_| String::new()),
                _ => {
                    held.directories.remove(&number(line, 0));
                    data::close(calls, fd).map(done)
                }
            }
        }
        // All is compared in the end.
        "dump" | "destroy" => Ok(String::new()),
        other => Ok(format!("{other}: no such call")),
    }
}

/// All that there is, in order: paths with their attributes, targets and contents.
pub fn tree<D: DataOperations>(calls: &D) -> Vec<String> {
    let mut entries = Vec::new();
    let mut ahead = vec![String::new()];
    while let Some(path) = ahead.pop() {
        let (objects, at) = (calls.objects(), Start::WorkingDirectory);
        let whole = if path.is_empty() { "/".as_bytes() } else { path.as_bytes() };
        let attributes = attributes::stat(objects, at, whole, Follow::Nothing, Fields::ALL).unwrap();
        let mut entry = format!("{path} {}", told(&attributes));
        let open = |flags| data::open(calls, at, whole, flags, 0, DescriptorOptions::PLAIN).unwrap();
        match attributes.kind {
            Kind::Directory => {
                let fd = open(OpenFlags::READ | OpenFlags::DIRECTORY);
                data::read_directory(calls, fd, |entry| {
                    if entry.name != b"." && entry.name != b".." {
                        ahead.push(format!("{path}/{}", String::from_utf8_lossy(entry.name)));
                    }
                    true
                })
                .unwrap();
                data::close(calls, fd).unwrap();
            }
            Kind::Symlink => {
                entry +=
                    &format!(" {}", String::from_utf8_lossy(names::read_link(objects, at, whole).unwrap().as_ref()));
            }
            _ => {
                let fd = open(OpenFlags::READ);
                let mut bytes = vec![0; 1 << 12];
                let count = data::read(calls, fd, &mut bytes).unwrap();
                entry += &format!(" {}", String::from_utf8_lossy(&bytes[..count]));
                data::close(calls, fd).unwrap();
            }
        }
        entries.push(entry);
    }
    entries.sort();
    entries
}
