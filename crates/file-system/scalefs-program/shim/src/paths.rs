//! Where a path of a program leads: into the tree, or past it to the kernel.
//!
//! The instance holds its tree under the same absolute path at which programs see it, so that a path that leads into the tree is the
//! instance's as it stands. Names before it, and `..`, are compared as text:
//!
//! ```text
//! /mnt/build/a         in the tree                      /mnt/../mnt/build/./a    made plain first
//! a, working inside    in the tree                      ../../../etc             climbs above the tree: the kernel's, as /etc
//! build/a in /mnt      in the tree: `/mnt` is an ancestor of it
//! a symbolic link in the tree to /etc: the kernel's, found when the instance has nothing there
//! ```

use core::sync::atomic::Ordering;

use scalefs::{
    DataOperations, Errno, Fields, Follow, InProcess, Kind, Node, ObjectOperations, Start, attributes, data, names,
};

use crate::decimal::Decimal;
use crate::entry::TRACKED;
use crate::guarded;
use crate::instance::{self, Here};
use crate::system::{self, number};
use crate::threads::Thread;

/// Of paths and their buffers.
pub(crate) const MAX_PATH_BYTES: usize = 4096;
/// The argument that stands for the working directory.
pub(crate) const WORKING_DIRECTORY: u64 = -100_i64 as u64;
/// Most symbolic links on one path.
const MAX_SYMLINKS: usize = 40;

/// The number under which a program of the tree is kept that was executed by a descriptor, and the path that its process has for it.
pub(crate) const PROGRAM_NUMBER: u32 = 70_000;
pub(crate) const PROGRAM_PATH: &[u8] = b"/proc/self/fd/70000";
const _: () =
    assert!(PROGRAM_NUMBER as usize > TRACKED + 64, "behind all that programs have, and what stands for pipes");

/// A buffer for a path.
pub(crate) type Buffer = [u8; MAX_PATH_BYTES];

/// From where a path in the tree starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The working directory, or the root.
    Working,
    /// The top of the tree.
    Top,
    /// What one of our descriptors leads to.
    Number(u32),
    /// The same, and that is where the path, which is empty, leads: `/proc/self/fd/N`.
    Itself(u32),
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'p> {
    /// Into the tree.
    Tree(From, &'p [u8]),
    /// Past it, as it stands.
    Kernel,
    /// Past it: the same as this absolute path.
    KernelAt(&'p [u8]),
}

/// The start of a path in a call.
pub(crate) fn start<'v>(call: &'v InProcess<'_, Here>, from: From) -> Result<Start<Node<'v>>, Errno> {
    match from {
        From::Working => Ok(Start::WorkingDirectory),
        From::Top => Ok(Start::Handle(call.objects().held(instance::top()))),
        From::Number(number) | From::Itself(number) => Ok(Start::Handle(data::node(call, number)?)),
    }
}

/// What lies below the directory of the tree on an absolute path, if it leads there as it stands.
fn below<'p>(path: &'p [u8], top: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(top)?;
    matches!(rest.first(), None | Some(b'/')).then_some(rest)
}

/// A path in the tree whose part below the top is this.
fn from_top(rest: &[u8]) -> Place<'_> {
    let start = rest.iter().position(|byte| *byte != b'/');
    match start {
        Some(start) => Place::Tree(From::Top, &rest[start..]),
        None => Place::Tree(From::Top, b"."),
    }
}

/// Whether a path has components that must be looked at one by one: empty ones, `.` and `..`.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    let mut before = b'a';
    path.iter().all(|byte| {
        let is_odd = before == b'/' && matches!(byte, b'/' | b'.');
        before = *byte;
        !is_odd
    })
}

/// Appends components to a plain absolute path in a buffer, going up for `..`; returns the length, or ENAMETOOLONG.
fn append(buffer: &mut Buffer, mut length: usize, path: &[u8]) -> Result<usize, Errno> {
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => length = buffer[..length].iter().rposition(|byte| *byte == b'/').unwrap_or(0),
            name => {
                let end = length + 1 + name.len();
                if end >= MAX_PATH_BYTES {
                    return Err(Errno::ENAMETOOLONG);
                }
                buffer[length] = b'/';
                buffer[length + 1..end].copy_from_slice(name);
                length = end;
            }
        }
    }
    Ok(length)
}

/// A path without `.`, `..` and empty components, which is not empty itself; a slash at the end stays.
fn made_plain<'b>(buffer: &'b mut Buffer, before: usize, path: &[u8]) -> Result<&'b [u8], Errno> {
    let mut length = append(buffer, before, path)?;
    if length == 0 || path.ends_with(b"/") && length + 1 < MAX_PATH_BYTES {
        buffer[length] = b'/';
        length += 1;
    }
    Ok(&buffer[..length])
}

/// How many directories lie between a directory of the instance and the top of the tree; `None` above that.
fn depth(call: &InProcess<'_, Here>, node: Node<'_>) -> Result<Option<usize>, Errno> {
    let (objects, mut current, mut depth) = (call.objects(), node, 0_usize);
    while current != objects.root() {
        current = objects.parent(current)?;
        depth += 1;
    }
    let top = instance::control().mount_point().iter().filter(|byte| **byte == b'/').count();
    Ok(depth.checked_sub(top))
}

/// How far a relative path climbs above its start at most.
fn climbs(path: &[u8]) -> usize {
    let (mut level, mut lowest) = (0_isize, 0_isize);
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => level -= 1,
            _ => level += 1,
        }
        lowest = lowest.min(level);
    }
    lowest.unsigned_abs()
}

/// Where a path leads that starts at `directory` (an argument of `openat` and its like). The thread's room is used for what is not
/// the path as it stands.
pub(crate) fn place<'p>(thread: &mut Thread, directory: u64, path: &'p [u8]) -> Result<Place<'p>, Errno> {
    let top = instance::control().mount_point();
    if path.first() == Some(&b'/') {
        if let Some((number, rest)) = through_number(path) {
            let home = thread.home();
            let is_program = number == PROGRAM_NUMBER && home.program() == PROGRAM_PATH;
            return match rest {
                _ if home.numbers.is_closed(number.into()) => Err(Errno::ENOENT),
                _ if !is_program && !home.numbers.is_ours(number.into()) => Ok(Place::Kernel),
                None => Ok(Place::Tree(From::Itself(number), &[])),
                Some(_) if is_program => Err(Errno::ENOTDIR),
                Some(rest) => place(thread, number.into(), rest),
            };
        }
        if is_plain(path) {
            return Ok(match below(path, top) {
                Some(rest) => from_top(rest),
                None => Place::Kernel,
            });
        }
        // As it stands, if the tree is not left on its way.
        if let Some(rest) = below(path, top)
            && climbs(rest) == 0
        {
            return Ok(from_top(rest));
        }
        let plain = made_plain(thread.room(), 0, path)?;
        return Ok(match below(plain, top) {
            Some(rest) => from_top(rest),
            None => Place::Kernel,
        });
    }
    let home = thread.home();
    let from = match directory as u32 as i32 {
        -100 if home.works_inside.load(Ordering::Relaxed) => From::Working,
        -100 => return outside(thread, None, path),
        number if home.numbers.is_ours(directory) => From::Number(number as u32),
        _ if home.numbers.is_closed(directory) => {
            return Err(if path.is_empty() { Errno::ENOENT } else { Errno::EBADF });
        }
        _ => return outside(thread, Some(directory), path),
    };
    let climbed = climbs(path);
    if climbed == 0 || instance::planted("shim: no one climbs out of the tree") {
        return Ok(Place::Tree(from, path));
    }
    let depth = instance::call(thread, |call| {
        let node = match from {
            From::Working => call.objects().working_directory(),
            From::Top => call.objects().held(instance::top()),
            From::Number(number) | From::Itself(number) => data::node(call, number)?,
        };
        if call.objects().kind(node) == Kind::Directory { depth(call, node) } else { Err(Errno::ENOTDIR) }
    })?;
    match depth {
        Some(depth) if climbed <= depth => Ok(Place::Tree(from, path)),
        depth => {
            // The names that are left are not known, and not needed: each is gone up from.
            let room = thread.room();
            let mut length = append(room, 0, top)?;
            for _ in 0..depth.unwrap_or(0) {
                length = append(room, length, b"x")?;
            }
            let plain = made_plain(room, length, path)?;
            Ok(match below(plain, top) {
                Some(rest) => from_top(rest),
                None => Place::KernelAt(plain),
            })
        }
    }
}

/// Where a path leads that starts outside: into the tree only from an ancestor of it.
fn outside<'p>(thread: &mut Thread, directory: Option<u64>, path: &'p [u8]) -> Result<Place<'p>, Errno> {
    let top = instance::control().mount_point();
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    let may_enter = matches!(first, b"." | b"..") || top.split(|byte| *byte == b'/').any(|name| name == first);
    if !may_enter || first.is_empty() {
        return Ok(Place::Kernel);
    }
    let room = thread.room();
    let length = match directory {
        None => match system::try_call(number::GETCWD, [room.as_mut_ptr() as u64, MAX_PATH_BYTES as u64, 0, 0, 0, 0]) {
            // With the zero at the end.
            Ok(length) => length as usize - 1,
            Err(_) => return Ok(Place::Kernel),
        },
        Some(number) => match path_of_number(number, room) {
            Some(length) => length,
            None => return Ok(Place::Kernel),
        },
    };
    let before = if length == 1 { 0 } else { length };
    let plain = made_plain(room, before, path)?;
    Ok(match below(plain, top) {
        Some(_) => Place::Tree(From::Working, plain),
        None => Place::Kernel,
    })
}

/// Writes `/proc/self/fd/NUMBER` with a zero byte.
pub(crate) fn name_of_number(number: u64, text: &mut [u8; 40]) {
    const BEFORE: &[u8] = b"/proc/self/fd/";
    text[..BEFORE.len()].copy_from_slice(BEFORE);
    let decimal = Decimal::of(u64::from(number as u32));
    let end = BEFORE.len() + decimal.digits().len();
    text[BEFORE.len()..end].copy_from_slice(decimal.digits());
    text[end] = 0;
}

fn path_of_number(number: u64, room: &mut Buffer) -> Option<usize> {
    let mut text = [0; 40];
    name_of_number(number, &mut text);
    let arguments = [text.as_ptr() as u64, room.as_mut_ptr() as u64, MAX_PATH_BYTES as u64, 0, 0, 0];
    let length = system::try_call(number::READLINK, arguments).ok()? as usize;
    (room[0] == b'/' && length < MAX_PATH_BYTES).then_some(length)
}

/// The path that one of the tree's symbolic links on the way leads to outside, if one does: asked for where the instance finds
/// nothing, and links that lead out have been made.
pub(crate) fn way_out(
    thread: &mut Thread,
    from: From,
    path: &[u8],
    follow: Follow,
) -> Result<Option<&'static [u8]>, Errno> {
    if !instance::control().links_lead_out() || instance::planted("shim: links that lead out end in the tree") {
        return Ok(None);
    }
    let top = instance::control().mount_point();
    // What is left to go, and where we are, both as text.
    let (mut rest, mut here): (Buffer, Buffer) = ([0; MAX_PATH_BYTES], [0; MAX_PATH_BYTES]);
    let (mut rest_length, mut at) = (path.len().min(MAX_PATH_BYTES - 1), 0);
    rest[..rest_length].copy_from_slice(&path[..rest_length]);
    if from == From::Top {
        at = append(&mut here, 0, top)?;
    } else if path.first() != Some(&b'/') {
        if from != From::Working {
            return Ok(None);
        }
        at = instance::call(thread, |call| {
            scalefs::directories::working_directory_path(call.objects(), &mut here).map(<[u8]>::len)
        })?;
        // It stands at the end of the buffer.
        let start = here.len() - at;
        here.copy_within(start.., 0);
        if at == 1 {
            at = 0;
        }
    }
    for _ in 0..MAX_SYMLINKS {
        let mut found = None;
        let (mut done, mut start) = (at, 0);
        while start < rest_length {
            let end =
                rest[start..rest_length].iter().position(|byte| *byte == b'/').map_or(rest_length, |at| start + at);
            let component = start..end;
            start = end + 1;
            if component.is_empty() {
                continue;
            }
            let before = done;
            let mut name = [0_u8; 256];
            let length = component.len().min(255);
            name[..length].copy_from_slice(&rest[component][..length]);
            done = append(&mut here, done, &name[..length])?;
            let is_last = rest[end..rest_length].iter().all(|byte| *byte == b'/');
            if is_last && follow == Follow::Nothing {
                return Ok(None);
            }
            if below(&here[..done], top).is_none() {
                continue;
            }
            let mut target = [0_u8; MAX_PATH_BYTES];
            let seen = instance::call(thread, |call| {
                let path = &here[..done];
                let (objects, start) = (call.objects(), Start::WorkingDirectory);
                match attributes::stat(objects, start, path, Follow::Nothing, Fields::IDENTITY)?.kind {
                    Kind::Symlink => {
                        let link = names::read_link(objects, start, path)?;
                        target[..link.len()].copy_from_slice(link);
                        Ok(Some(link.len()))
                    }
                    _ => Ok(None),
                }
            });
            match seen {
                Ok(Some(length)) => {
                    found = Some((before, target, length, end));
                    break;
                }
                Ok(None) => {}
                Err(_) => return Ok(None),
            }
        }
        let Some((before, target, length, end)) = found else { return Ok(None) };
        // The target and what was left.
        let left = rest_length - end.min(rest_length);
        if length + left >= MAX_PATH_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut next = [0_u8; MAX_PATH_BYTES];
        next[..length].copy_from_slice(&target[..length]);
        next[length..length + left].copy_from_slice(&rest[end..rest_length]);
        rest_length = length + left;
        rest = next;
        at = if target[0] == b'/' { 0 } else { before };
        let mut whole = here;
        let plain_length = append(&mut whole, at, &rest[..rest_length])?;
        if below(&whole[..plain_length], top).is_none() {
            let room = thread.room();
            let plain = made_plain(room, 0, &whole[..plain_length])?;
            return Ok(Some(plain));
        }
    }
    Err(Errno::ELOOP)
}

/// A path of a program.
///
/// # Errors
/// EFAULT, ENAMETOOLONG.
#[inline]
pub(crate) fn read(buffer: &mut Buffer, argument: u64) -> Result<&[u8], Errno> {
    guarded::read_text(buffer, argument)
}

/// A path for the kernel: in a room of the thread's, with a zero byte.
pub(crate) fn for_kernel(room: &mut Buffer, path: &[u8]) -> u64 {
    let length = path.len().min(MAX_PATH_BYTES - 1);
    room[..length].copy_from_slice(&path[..length]);
    room[length] = 0;
    room.as_ptr() as u64
}

/// The number in `/proc/self/fd/N` or `/dev/fd/N`.
pub(crate) fn number_in(path: &[u8]) -> Option<u32> {
    through_number(path).filter(|(_, rest)| rest.is_none()).map(|(number, _)| number)
}

/// The same, and what follows its slash if there is one.
fn through_number(path: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let rest = path.strip_prefix(b"/proc/self/fd/").or_else(|| path.strip_prefix(b"/dev/fd/"))?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    // As Linux reads it (`name_to_int`).
    let has_zeros = digits.len() > 1 && digits[0] == b'0';
    if digits.is_empty() || digits.len() > 7 || has_zeros || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    let below = rest.iter().position(|byte| *byte != b'/').map_or(&b"."[..], |start| &rest[start..]);
    Some((number, (!rest.is_empty()).then_some(below)))
}
