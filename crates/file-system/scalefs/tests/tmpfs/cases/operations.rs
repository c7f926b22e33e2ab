//! The calls of a case on an implementation of the operations.

use std::collections::HashMap;

use scalefs::attributes::{Access, NewTime};
use scalefs::data::{self, DescriptorOptions};
use scalefs::names::{self, RenameMode};
use scalefs::{
    Attributes, DataOperations, Errno, Fields, Follow, Kind, OnExec, OpenFlags, Start, StatusFlags, allocation,
    attributes, directories, handles,
};

use super::{Outcome, World};

/// The descriptor that `hold` opens.
const HELD: u32 = 700;
/// The number of the devices that are made.
pub const DEVICE: u64 = 0x103;

/// An implementation, as whoever begins a call of a user there, and sets a user's mask.
pub struct Ours<B, M, R> {
    begin: B,
    set_umask: M,
    maintain: R,
    notes: HashMap<String, [i64; 3]>,
}

impl<B, M, R> Ours<B, M, R> {
    pub fn new(begin: B, set_umask: M, maintain: R) -> Ours<B, M, R> {
        Ours { begin, set_umask, maintain, notes: HashMap::new() }
    }
}

/// What a mode is in the table.
pub fn octal(mode: &str) -> u32 {
    u32::from_str_radix(mode, 8).unwrap_or_else(|_| panic!("{mode} is no mode"))
}

/// An owner that is to be; none for -1.
pub fn owner(number: &str) -> Option<u32> {
    (number != "-1").then(|| number.parse().unwrap())
}

pub fn kind_of(name: &str) -> Kind {
    match name {
        "file" => Kind::Regular,
        "fifo" => Kind::NamedPipe,
        "sock" => Kind::NamedSocket,
        "char" => Kind::CharacterDevice,
        "block" => Kind::BlockDevice,
        other => panic!("{other} is no kind that is made by mknod"),
    }
}

/// Which of three times have moved, by letters.
pub fn moved(before: [i64; 3], after: [i64; 3]) -> String {
    let letters: String =
        "amc".chars().zip(before.iter().zip(&after)).filter(|(_, (a, b))| a != b).map(|(l, _)| l).collect();
    if letters.is_empty() { "-".into() } else { letters }
}

/// Bytes as the table has them: zeros are digits.
pub fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if *byte == 0 { '0' } else { char::from(*byte) }).collect()
}

fn flags_of(letters: &str) -> (OpenFlags, StatusFlags) {
    let mut flags = OpenFlags::NONE;
    for (letter, flag) in [
        ('r', OpenFlags::READ),
        ('w', OpenFlags::WRITE),
        ('c', OpenFlags::CREATE),
        ('x', OpenFlags::EXCLUSIVE),
        ('t', OpenFlags::TRUNCATE),
        ('d', OpenFlags::DIRECTORY),
        ('n', OpenFlags::NO_FOLLOW),
    ] {
        flags.set(flag, letters.contains(letter));
    }
    (flags, if letters.contains('a') { StatusFlags::APPEND } else { StatusFlags::NONE })
}

fn told(seen: &Attributes, field: &str) -> String {
    match field {
        "there" => "yes".into(),
        "kind" => match seen.kind {
            Kind::Regular => "file",
            Kind::Directory => "dir",
            Kind::Symlink => "link",
            Kind::NamedPipe => "fifo",
            Kind::NamedSocket => "sock",
            Kind::CharacterDevice => "char",
            Kind::BlockDevice => "block",
            _ => "other",
        }
        .into(),
        "mode" => format!("{:o}", seen.mode & 0o7777),
        "uid" => seen.user.to_string(),
        "gid" => seen.group.to_string(),
        "size" => seen.size_bytes.to_string(),
        "links" => seen.link_count.to_string(),
        "atime" => seen.accessed_ns.to_string(),
        "mtime" => seen.modified_ns.to_string(),
        other => panic!("{other} is nothing that is told"),
    }
}

fn time(text: &str) -> NewTime {
    match text {
        "now" => NewTime::Now,
        "same" => NewTime::Same,
        time => NewTime::At(time.parse().unwrap()),
    }
}

fn times_of<D: DataOperations>(calls: &D, path: &str) -> Result<[i64; 3], Errno> {
    let seen = attributes::stat(calls.objects(), HERE.get(), path.as_bytes(), Follow::Nothing, Fields::ALL)?;
    Ok([seen.accessed_ns, seen.modified_ns, seen.changed_ns])
}

/// A start that is generic over nodes.
struct Here;
const HERE: Here = Here;

impl Here {
    fn get<N>(self) -> Start<N> {
        Start::WorkingDirectory
    }
}

fn call<D>(calls: &D, words: &[&str]) -> Result<String, Errno>
where
    D: allocation::AllocationOperations,
{
    let objects = calls.objects();
    let plain = DescriptorOptions::PLAIN;
    let opened = |path: &str, letters: &str, mode: u32| {
        let (flags, status) = flags_of(letters);
        data::open(calls, HERE.get(), path.as_bytes(), flags, mode, DescriptorOptions { status, ..plain })
    };
    let done = |()| String::new();
    let stat = |path: &str, follow, field: &str| {
        attributes::stat(objects, HERE.get(), path.as_bytes(), follow, Fields::ALL).map(|seen| told(&seen, field))
    };
    let chown = |path: &str, follow, user: &str, group: &str| {
        attributes::change_owner(objects, HERE.get(), path.as_bytes(), follow, (owner(user), owner(group))).map(done)
    };
    let utimens = |path: &str, follow, accessed: &str, modified: &str| {
        attributes::set_times(objects, HERE.get(), path.as_bytes(), follow, (time(accessed), time(modified))).map(done)
    };
    let make_node = |path: &str, kind: &str, mode: &str| {
        let device = if matches!(kind, "char" | "block") { DEVICE } else { 0 };
        names::make_node(objects, HERE.get(), path.as_bytes(), (kind_of(kind), device), octal(mode)).map(done)
    };
    match *words {
        ["open", path, letters] => data::close(calls, opened(path, letters, 0)?).map(done),
        ["open", path, letters, mode] => data::close(calls, opened(path, letters, octal(mode))?).map(done),
        ["hold", path, letters] => {
            let fd = opened(path, letters, 0)?;
            data::duplicate_to(calls, fd, HELD, OnExec::Keep)?;
            data::close(calls, fd).map(done)
        }
        ["drop"] => data::close(calls, HELD).map(done),
        ["write", text] => data::write(calls, HELD, text.as_bytes()).map(|_| String::new()),
        ["readat", offset, length] => {
            let mut bytes = vec![0; length.parse().unwrap()];
            let count = data::read_at(calls, HELD, &mut bytes, offset.parse().unwrap())?;
            Ok(shown(&bytes[..count]))
        }
        ["fstat", field] => data::stat(calls, HELD, Fields::ALL).map(|seen| told(&seen, field)),
        ["ftruncate", size] => data::truncate(calls, HELD, size.parse().unwrap()).map(done),
        ["fchmod", mode] => {
            attributes::change_mode_of(objects, handles::node_to_change(calls, HELD)?, octal(mode)).map(done)
        }
        ["fchown", user, group] => {
            let node = handles::node_to_change(calls, HELD)?;
            attributes::change_owner_of(objects, node, (owner(user), owner(group))).map(done)
        }
        ["allocate", mode, offset, length] => {
            let range = (offset.parse().unwrap(), length.parse().unwrap());
            allocation::change(calls, HELD, mode.parse().unwrap(), range).map(done)
        }
        ["mkdir", path, mode] => {
            directories::make_directory(objects, HERE.get(), path.as_bytes(), octal(mode)).map(done)
        }
        ["mkfifo", path, mode] => make_node(path, "fifo", mode),
        ["mknod", path, kind, mode] => make_node(path, kind, mode),
        ["symlink", target, path] => names::symlink(objects, target.as_bytes(), HERE.get(), path.as_bytes()).map(done),
        ["link", old, new] => {
            let (old, new) = ((HERE.get(), old.as_bytes()), (HERE.get(), new.as_bytes()));
            names::link(objects, old, new, Follow::Nothing).map(done)
        }
        ["rename", old, new] => {
            let (old, new) = ((HERE.get(), old.as_bytes()), (HERE.get(), new.as_bytes()));
            names::rename(objects, old, new, RenameMode::Replace).map(done)
        }
        ["unlink", path] => names::unlink(objects, HERE.get(), path.as_bytes()).map(done),
        ["rmdir", path] => directories::remove_directory(objects, HERE.get(), path.as_bytes()).map(done),
        ["chmod", path, mode] => attributes::change_mode(objects, HERE.get(), path.as_bytes(), octal(mode)).map(done),
        ["chown", path, user, group] => chown(path, Follow::Symlinks, user, group),
        ["lchown", path, user, group] => chown(path, Follow::Nothing, user, group),
        ["truncate", path, size] => {
            data::truncate_path(calls, HERE.get(), path.as_bytes(), size.parse().unwrap()).map(done)
        }
        ["utimens", path, accessed, modified] => utimens(path, Follow::Symlinks, accessed, modified),
        ["lutimens", path, accessed, modified] => utimens(path, Follow::Nothing, accessed, modified),
        ["access", path, _] => {
            attributes::access(objects, HERE.get(), path.as_bytes(), Follow::Symlinks, Access::EXISTS).map(done)
        }
        ["readlink", path] => {
            let target = names::read_link(objects, HERE.get(), path.as_bytes())?;
            Ok(String::from_utf8(target.as_ref().to_vec()).unwrap())
        }
        ["stat", path, field] => stat(path, Follow::Symlinks, field),
        ["lstat", path, field] => stat(path, Follow::Nothing, field),
        ["same", one, other] => {
            let number = |path: &str| {
                attributes::stat(objects, HERE.get(), path.as_bytes(), Follow::Nothing, Fields::ALL)
                    .map(|seen| seen.number)
            };
            Ok(if number(one)? == number(other)? { "yes" } else { "no" }.into())
        }
        ["list", path] => data::close(calls, opened(path, "rd", 0)?).map(done),
        ["enter", path] => directories::change_directory(objects, HERE.get(), path.as_bytes()).map(done),
        _ => panic!("{words:?} is no call of the table"),
    }
}

/// The calls that a helper of the table stands for.
pub fn helper(words: &[&str]) -> Option<Vec<Vec<String>>> {
    let calls = match *words {
        ["make", "file", path] => vec![format!("open {path} wc 644")],
        ["make", "dir", path] => vec![format!("mkdir {path} 755")],
        ["make", "link", path] => vec![format!("symlink f {path}")],
        ["make", kind, path] => vec![format!("mknod {path} {kind} 644")],
        ["links", count, path] => {
            let count: usize = count.parse().unwrap();
            let name = |place: usize| if place == count { path.to_string() } else { format!("l{place}") };
            let target = |place: usize| if place == 1 { "f".into() } else { name(place - 1) };
            (1..=count).map(|place| format!("symlink {} {}", target(place), name(place))).collect()
        }
        _ => return None,
    };
    Some(calls.into_iter().map(|call| call.split(' ').map(str::to_string).collect()).collect())
}

impl<D, B, M, R> World for Ours<B, M, R>
where
    D: allocation::AllocationOperations,
    B: Fn(usize) -> D,
    M: Fn(usize, u32),
    R: Fn(),
{
    fn begin(&mut self, number: usize) {
        (self.maintain)();
        self.notes.clear();
        let directory = format!("/case{number}");
        (0..3).for_each(|user| (self.set_umask)(user, 0));
        let by = |words: &[&str]| call(&(self.begin)(0), words).unwrap();
        by(&["mkdir", &directory, "777"]);
        for user in 0..3 {
            call(&(self.begin)(user), &["enter", &directory]).unwrap();
        }
        by(&["open", "f", "wc", "644"]);
        by(&["chown", "f", "1001", "1001"]);
        (0..3).for_each(|user| (self.set_umask)(user, 0o022));
    }

    fn call(&mut self, user: usize, words: &[&str]) -> Outcome {
        if let Some(calls) = helper(words) {
            for words in calls {
                self.call(user, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
            }
            return Ok(String::new());
        }
        let name = |errno: Errno| format!("{errno:?}");
        match *words {
            ["umask", mask] => (0..3).for_each(|user| (self.set_umask)(user, octal(mask))),
            ["note", path] => {
                let times = times_of(&(self.begin)(0), path).map_err(name)?;
                self.notes.insert(path.into(), times);
            }
            ["moved", path] => {
                return times_of(&(self.begin)(0), path).map(|times| moved(self.notes[path], times)).map_err(name);
            }
            ["movedfrom", old, path] => {
                return times_of(&(self.begin)(0), path).map(|times| moved(self.notes[old], times)).map_err(name);
            }
            _ => return call(&(self.begin)(user), words).map_err(name),
        }
        Ok(String::new())
    }
}
