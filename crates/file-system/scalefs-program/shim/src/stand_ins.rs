//! Pipes and sockets that have names in the tree: names and rights are the tree's, the rest is the kernel's.
//!
//! ```text
//! open of a pipe     the tree says which inode it is, and whether it may be opened │ a pipe of this number in a directory of the host's
//! bind of a socket   a socket's name in the tree │ the kernel's, by its number     │ the address that was asked for, for getsockname
//! connect, sendto    the tree says which inode, and whether it may be written      │ the kernel's, by its number
//! ```
//! So they wait, poll and end as the kernel has it. Who asks for the status of an open pipe is shown the tree's: the process keeps a
//! descriptor that only stands for it, above all numbers that programs have.

use scalefs::attributes::{self, Access};
use scalefs::data::DescriptorOptions;
use scalefs::{
    DataOperations, Errno, Fields, Follow, Kind, NumberChoice, ObjectOperations, OnExec, OpenFlags, StatusFlags, data,
    handles, names as tree_names,
};

use crate::attributes as shown;
use crate::constants::*;
use crate::decimal::Decimal;
use crate::dispatch::{After, Answer};
use crate::entry::TRACKED;
use crate::guarded;
use crate::instance;
use crate::names::{on_tree, with_path};
use crate::paths::{self, Buffer, From, Place, WORKING_DIRECTORY};
use crate::system::{self, number};
use crate::threads::Thread;

const AF_UNIX: u16 = 1;
/// `struct sockaddr_un`: the family, and room for a path.
const ADDRESS_BYTES: usize = 110;
const PATH_AT: usize = 2;
const BIND: u64 = 49;
const MKNOD: u64 = 133;
const SYMLINK: u64 = 88;
const OPENAT: u64 = 257;
/// Descriptors that stand for open pipes have numbers from here on, and as many at most: one a pipe, whoever opens it how often.
const FIRST_HANDLE: u32 = TRACKED as u32;
const MOST_HANDLES: u32 = 64;
/// Of the number, and a letter behind it.
const MOST_DIGITS: usize = 21;

/// The path of what stands in the kernel for an inode, with a zero byte; the letters behind its number are given. Its length without.
fn path_of(inode: u64, behind: &[u8], path: &mut [u8; ADDRESS_BYTES]) -> Result<usize, Errno> {
    let mut buffer = [0; 80];
    let directory = instance::control().stand_ins(&mut buffer);
    let mut length = directory.len();
    if length == 0 || length + 2 + MOST_DIGITS > ADDRESS_BYTES - PATH_AT {
        return Err(Errno::ENXIO);
    }
    path[..length].copy_from_slice(directory);
    path[length] = b'/';
    for byte in [Decimal::of(inode).digits(), behind].into_iter().flatten() {
        length += 1;
        path[length] = *byte;
    }
    length += 1;
    path[length] = 0;
    Ok(length)
}

/// What a path leads to in the tree: its kind and number.
pub(crate) fn look(thread: &Thread, from: From, path: &[u8], follow: Follow) -> Result<(Kind, u64), Errno> {
    on_tree(thread, from, |call, start| {
        let fields = Fields::IDENTITY;
        let status = attributes::stat(call.objects(), start, path, follow, fields)?;
        Ok((status.kind, status.number.0))
    })
}

/// open of what is outside of the tree though its name is inside: a pipe is the kernel's. The tree has said that it may be opened.
pub(crate) fn open(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize), flags: u64) -> Answer {
    let follow = if flags & O_NOFOLLOW != 0 { Follow::Nothing } else { Follow::Symlinks };
    let mut found = None;
    let looked = with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        let (kind, inode) = look(thread, from, path, follow)?;
        if kind == Kind::NamedPipe {
            keep_handle(thread, from, path, follow, inode)?;
        }
        found = Some((kind, inode));
        Ok(0)
    });
    let Some((Kind::NamedPipe, inode)) = found else {
        return if found.is_some() { Answer::error(Errno::ENXIO) } else { looked };
    };
    let mut path = [0; ADDRESS_BYTES];
    let length = match path_of(inode, b"", &mut path) {
        Ok(length) => length,
        Err(errno) => return Answer::error(errno),
    };
    system::call(MKNOD, [path.as_ptr() as u64, S_IFIFO | 0o600, 0, 0, 0, 0]);
    // It may wait for who opens the other end.
    let place = paths::for_kernel(thread.kept_room(), &path[..length]);
    let flags = flags & !(O_CREAT | O_EXCL | O_TRUNC);
    Answer::issue(thread, OPENAT, [WORKING_DIRECTORY, place, flags, 0, 0, 0], After::NewNumber)
}

/// The number of the descriptor that stands for a pipe, or the first that is free.
fn handle_of(thread: &Thread, inode: u64) -> Result<u32, Option<u32>> {
    for number in FIRST_HANDLE..FIRST_HANDLE + MOST_HANDLES {
        let found = instance::call(thread, |call| Ok(call.objects().number(data::node(call, number)?)?.0));
        match found {
            Ok(found) if found == inode => return Ok(number),
            Ok(_) => {}
            Err(_) => return Err(Some(number)),
        }
    }
    Err(None)
}

/// Keeps a descriptor that stands for a pipe, in the place of another one if there are many.
fn keep_handle(thread: &Thread, from: From, path: &[u8], follow: Follow, inode: u64) -> Result<(), Errno> {
    let number = match handle_of(thread, inode) {
        Ok(_) => return Ok(()),
        Err(Some(free)) => free,
        Err(None) => {
            let number = FIRST_HANDLE + (inode % u64::from(MOST_HANDLES)) as u32;
            let _ = instance::call(thread, |call| data::close(call, number));
            number
        }
    };
    let options = DescriptorOptions {
        status: StatusFlags::NONE,
        number: NumberChoice::LowestFrom(number),
        on_exec: OnExec::Keep,
    };
    let flags = if follow == Follow::Nothing { OpenFlags::NO_FOLLOW } else { OpenFlags::NONE };
    on_tree(thread, from, |call, start| handles::open_handle(call, start, path, flags, options)).map(drop)
}

/// The inode of the tree for which stands what a number of the kernel's leads to.
pub(crate) fn inode_behind(number: u64) -> Option<u64> {
    let (mut name, mut path) = ([0; 40], [0_u8; ADDRESS_BYTES]);
    paths::name_of_number(number, &mut name);
    let arguments = [name.as_ptr() as u64, path.as_mut_ptr() as u64, ADDRESS_BYTES as u64, 0, 0, 0];
    let length = system::try_call(number::READLINK, arguments).ok()? as usize;
    let mut buffer = [0; 80];
    let directory = instance::control().stand_ins(&mut buffer);
    let digits = path[..length].strip_prefix(directory)?.strip_prefix(b"/")?;
    let is_number = !directory.is_empty() && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0_u64, |number, digit| number.wrapping_mul(10) + u64::from(digit - b'0')))
}

/// The descriptor that stands for the pipe of the tree to which a number of the kernel's leads.
pub(crate) fn handle_behind(thread: &Thread, number: u64) -> Option<u32> {
    // Where the first place is free no pipe was ever opened.
    instance::call(thread, |call| data::node(call, FIRST_HANDLE).map(|_| ())).ok()?;
    if instance::planted("shim: who changes an open pipe changes what stands for it") {
        return None;
    }
    inode_behind(number).and_then(|inode| handle_of(thread, inode).ok())
}

/// The kernel has written the status of what a number leads to: where that stands for a pipe of the tree, it becomes the pipe's.
pub(crate) fn show_status(thread: &mut Thread, call: u64, arguments: [u64; 6]) {
    const STATX: u64 = 332;
    /// Where `struct stat` and `struct statx` have the mode.
    const MODE_AT: u64 = 24;
    const MODE_AT_IN_STATX: u64 = 28;
    let of = arguments[0];
    let (to, mode_at) = match call {
        number::FSTAT => (arguments[1], MODE_AT),
        STATX => (arguments[4], MODE_AT_IN_STATX),
        _ => (arguments[2], MODE_AT),
    };
    let is_pipe = guarded::read_value::<u16>(to + mode_at).is_ok_and(|mode| u64::from(mode) & S_IFMT == S_IFIFO);
    let is_shown = instance::planted("shim: an open pipe has the status of what stands for it");
    if !is_pipe || is_shown {
        return;
    }
    if let Some(Ok(handle)) = inode_behind(of).map(|inode| handle_of(thread, inode)) {
        let _ = match call {
            STATX => shown::statx_number(thread, handle, to),
            _ => shown::stat_number(thread, handle, to),
        };
    }
}

/// The path in an address of a socket, if it is one.
fn path_in(buffer: &mut [u8; ADDRESS_BYTES], at: u64, length: u64) -> Option<usize> {
    let length = (length as u32 as usize).min(ADDRESS_BYTES);
    if at == 0 || length <= PATH_AT || guarded::read_bytes(&mut buffer[..length], at).is_err() {
        return None;
    }
    let is_path = u16::from_le_bytes([buffer[0], buffer[1]]) == AF_UNIX && buffer[PATH_AT] != 0;
    let path = &buffer[PATH_AT..length];
    is_path.then(|| path.iter().position(|byte| *byte == 0).unwrap_or(path.len()))
}

/// Where an address leads.
enum Address {
    /// Past the tree, as it stands.
    Kernel,
    /// Past it, to another path.
    KernelAt([u8; ADDRESS_BYTES], usize),
    /// Into the tree.
    Tree(From, [u8; ADDRESS_BYTES], usize),
}

fn place(thread: &mut Thread, at: u64, length: u64) -> Result<Address, Errno> {
    let mut buffer = [0; ADDRESS_BYTES];
    let Some(length) = path_in(&mut buffer, at, length) else { return Ok(Address::Kernel) };
    let mut copy = [0; ADDRESS_BYTES];
    let take = |path: &[u8], copy: &mut [u8; ADDRESS_BYTES]| {
        copy.get_mut(..path.len()).ok_or(Errno::ENAMETOOLONG)?.copy_from_slice(path);
        Ok::<_, Errno>(path.len())
    };
    match paths::place(thread, WORKING_DIRECTORY, &buffer[PATH_AT..PATH_AT + length])? {
        Place::Kernel => Ok(Address::Kernel),
        Place::KernelAt(path) => take(path, &mut copy).map(|length| Address::KernelAt(copy, length)),
        Place::Tree(from, path) => take(path, &mut copy).map(|length| Address::Tree(from, copy, length)),
    }
}

/// An address for the kernel, with this path, in room of the thread's; returns its length.
fn address_for_kernel(room: &mut Buffer, path: &[u8]) -> Result<u64, Errno> {
    if path.len() >= ADDRESS_BYTES - PATH_AT {
        return Err(Errno::ENAMETOOLONG);
    }
    room[..PATH_AT].copy_from_slice(&AF_UNIX.to_le_bytes());
    room[PATH_AT..PATH_AT + path.len()].copy_from_slice(path);
    room[PATH_AT + path.len()] = 0;
    Ok((PATH_AT + path.len() + 1) as u64)
}

/// bind.
pub(crate) fn bind(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    const EADDRINUSE: i32 = 98;
    let [socket, at, length, ..] = call.1;
    match place(thread, at, length) {
        Err(errno) => Answer::error(errno),
        Ok(Address::Kernel) => Answer::issue(thread, call.0, call.1, After::Nothing),
        Ok(Address::KernelAt(path, length)) => at_kernel(thread, call, (1, 2), &path[..length]),
        Ok(Address::Tree(from, path, bytes)) => {
            match bind_in_tree(thread, socket, (at, length), (from, &path[..bytes])) {
                Err(errno) if errno == Errno::EEXIST.number() => Answer::number(EADDRINUSE),
                Err(errno) => Answer::number(errno),
                Ok(()) => Answer::Done(0),
            }
        }
    }
}

fn bind_in_tree(thread: &mut Thread, socket: u64, asked: (u64, u64), (from, path): (From, &[u8])) -> Result<(), i32> {
    let object = (Kind::NamedSocket, 0);
    on_tree(thread, from, |call, start| tree_names::make_node(call.objects(), start, path, object, 0o777))
        .map_err(Errno::number)?;
    let bound = look(thread, from, path, Follow::Nothing).map_err(Errno::number).and_then(|(_, inode)| {
        let mut place = [0; ADDRESS_BYTES];
        let length = path_of(inode, b"", &mut place).map_err(Errno::number)?;
        let room = thread.room();
        let bytes = address_for_kernel(room, &place[..length]).map_err(Errno::number)?;
        system::try_call(BIND, [socket, room.as_ptr() as u64, bytes, 0, 0, 0])?;
        // For who asks for the address.
        let mut address = [0; ADDRESS_BYTES];
        let mut name = [0; ADDRESS_BYTES];
        if let Some(length) = path_in(&mut address, asked.0, asked.1)
            && path_of(inode, b"n", &mut name).is_ok()
        {
            let mut text = [0; ADDRESS_BYTES];
            text[..length].copy_from_slice(&address[PATH_AT..PATH_AT + length]);
            system::call(SYMLINK, [text.as_ptr() as u64, name.as_ptr() as u64, 0, 0, 0, 0]);
        }
        Ok(())
    });
    if bound.is_err() {
        let _ = on_tree(thread, from, |call, start| tree_names::unlink(call.objects(), start, path));
    }
    bound
}

fn at_kernel(thread: &mut Thread, call: (u64, [u64; 6]), (at, length): (usize, usize), path: &[u8]) -> Answer {
    let mut arguments = call.1;
    // To connect can take as long as until there is room.
    let room = thread.kept_room();
    match address_for_kernel(room, path) {
        Ok(bytes) => {
            arguments[at] = room.as_ptr() as u64;
            arguments[length] = bytes;
            Answer::issue(thread, call.0, arguments, After::Given)
        }
        Err(errno) => Answer::error(errno),
    }
}

/// connect, sendto: of their arguments these are the address and its length.
pub(crate) fn reach(thread: &mut Thread, call: (u64, [u64; 6]), (at, length): (usize, usize)) -> Answer {
    const ECONNREFUSED: i32 = 111;
    match place(thread, call.1[at], call.1[length]) {
        Err(errno) => Answer::error(errno),
        Ok(Address::Kernel) => Answer::issue(thread, call.0, call.1, After::Nothing),
        Ok(Address::KernelAt(path, bytes)) => at_kernel(thread, call, (at, length), &path[..bytes]),
        Ok(Address::Tree(from, path, bytes)) => {
            let path = &path[..bytes];
            let write = Access { read: false, write: true, execute: false };
            let seen = look(thread, from, path, Follow::Symlinks).and_then(|found| {
                on_tree(thread, from, |call, start| {
                    attributes::access(call.objects(), start, path, Follow::Symlinks, write)
                })?;
                Ok(found)
            });
            let inode = match seen {
                Ok((Kind::NamedSocket, inode)) => inode,
                Ok(_) => return Answer::number(ECONNREFUSED),
                Err(errno) => return Answer::error(errno),
            };
            let mut place = [0; ADDRESS_BYTES];
            let Ok(bytes) = path_of(inode, b"", &mut place) else { return Answer::number(ECONNREFUSED) };
            let is_there = system::call(number::FACCESSAT, [WORKING_DIRECTORY, place.as_ptr() as u64, 0, 0, 0, 0]) == 0;
            // A name that no one has bound.
            if !is_there {
                return Answer::number(ECONNREFUSED);
            }
            at_kernel(thread, call, (at, length), &place[..bytes])
        }
    }
}

/// getsockname, getpeername: an address of a stand-in becomes the one that was asked for.
pub(crate) fn tell_address(number: u64, [socket, at, length_at, ..]: [u64; 6]) -> Answer {
    /// Of any family (`struct sockaddr_storage`).
    const MOST_BYTES: usize = 128;
    let (mut address, mut length) = ([0_u8; MOST_BYTES], MOST_BYTES as u32);
    let arguments = [socket, address.as_mut_ptr() as u64, (&raw mut length) as u64, 0, 0, 0];
    if let Err(errno) = system::try_call(number, arguments) {
        return Answer::number(errno);
    }
    let bytes = asked_address(&mut address, (length as usize).min(MOST_BYTES));
    let told = guarded::read_value::<i32>(length_at).and_then(|room| {
        let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
        // As many as there is room for; and how many there are.
        if room.min(bytes) > 0 {
            guarded::write_bytes(at, &address[..room.min(bytes)])?;
        }
        guarded::write_value(length_at, bytes as u32)
    });
    match told {
        Ok(()) => Answer::Done(0),
        Err(errno) => Answer::error(errno),
    }
}

/// Puts the address that was asked for in the place of a stand-in's; returns its length.
fn asked_address(address: &mut [u8; 128], length: usize) -> usize {
    let mut buffer = [0; 80];
    let directory = instance::control().stand_ins(&mut buffer);
    let is_path = length > PATH_AT && u16::from_le_bytes([address[0], address[1]]) == AF_UNIX;
    let path = address[..length].get(PATH_AT..).unwrap_or(&[]);
    let path = &path[..path.iter().position(|byte| *byte == 0).unwrap_or(path.len())];
    let is_ours = path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'));
    if !is_path || !is_ours || directory.is_empty() || path.len() + 2 > ADDRESS_BYTES {
        return length;
    }
    let mut name = [0_u8; ADDRESS_BYTES + 1];
    name[..path.len()].copy_from_slice(path);
    name[path.len()] = b'n';
    let mut told = [0_u8; ADDRESS_BYTES - PATH_AT];
    let arguments = [name.as_ptr() as u64, told.as_mut_ptr() as u64, told.len() as u64, 0, 0, 0];
    let Ok(bytes) = system::try_call(number::READLINK, arguments) else { return length };
    let bytes = bytes as usize;
    address[PATH_AT..PATH_AT + bytes].copy_from_slice(&told[..bytes]);
    // With a zero byte behind it, also where there is no room for one (Linux: `unix_mkname`).
    address[PATH_AT + bytes] = 0;
    PATH_AT + bytes + 1
}
