//! The calls on data: read, write and their kin, lseek, truncate, directories' entries.

use scalefs::{
    DataOperations, Errno, Fields, InProcess, Kind, ObjectOperations, OnExec, Sought, StatusFlags, Whence, data,
};

use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::instance::{self, Here, planted};
use crate::names::{on_tree, with_path};
use crate::running;
use crate::threads::Thread;

/// The most bytes of a program that are looked at before they are read or written.
const PIECE_BYTES: usize = 256 << 10;
/// Buffers of one call (Linux: `UIO_MAXIOV`).
const MAX_BUFFERS: u64 = 1024;
const LARGEST_TRANSFER_BYTES: usize = 0x7fff_f000;

/// Where a call reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At the descriptor's offset.
    Offset,
    /// At this one.
    Given(i64),
}

impl At {
    fn after(self, bytes: usize) -> At {
        match self {
            At::Offset => At::Offset,
            At::Given(offset) => At::Given(offset.wrapping_add(bytes as i64)),
        }
    }
}

fn read_piece(thread: &Thread, number: u32, at: At, to: u64, length: usize) -> Result<usize, Errno> {
    let length = guarded::room_at(to, length)?;
    // SAFETY: there is memory, as was seen just now; who takes it away at the same time ends the process by SIGSEGV.
    let bytes = unsafe { core::slice::from_raw_parts_mut(to as *mut u8, length) };
    instance::call(thread, |call| match at {
        At::Offset => data::read(call, number, bytes),
        At::Given(offset) => data::read_at(call, number, bytes, offset),
    })
}

/// Memory past the end of what is read is not looked at: a program may have more room than there is.
fn likely_length(thread: &Thread, number: u32, length: usize) -> usize {
    if length <= PIECE_BYTES / 4 {
        return length;
    }
    let size = instance::call(thread, |call| Ok(data::stat(call, number, Fields::SIZE)?.size_bytes));
    size.map_or(length, |size| length.min((size as usize).max(1)))
}

/// read, pread64.
pub(crate) fn read(thread: &Thread, number: u32, at: At, to: u64, length: u64) -> Result<u64, Errno> {
    let length = (length as usize).min(LARGEST_TRANSFER_BYTES);
    if length == 0 {
        return instance::call(thread, |call| match at {
            At::Offset => data::read(call, number, &mut []),
            At::Given(offset) => data::read_at(call, number, &mut [], offset),
        })
        .map(|_| 0);
    }
    let length = likely_length(thread, number, length);
    pieces(length, Short::IsTheEnd, |done, piece| read_piece(thread, number, at.after(done), to + done as u64, piece))
}

/// What it says that less was moved than asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    /// There is no more.
    IsTheEnd,
    /// Space has run out. Who asks for the rest is told so, or finds some: what was given up is looked for then ([`instance::call`]).
    AsksAgain,
}

/// Moves bytes piece by piece, until one is not whole; an error counts if nothing was moved.
fn pieces(
    length: usize,
    short: Short,
    mut one: impl FnMut(usize, usize) -> Result<usize, Errno>,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < length {
        let piece = (length - done).min(PIECE_BYTES);
        match one(done, piece) {
            Ok(moved) => {
                done += moved;
                let asks_again = short == Short::AsksAgain && !planted("shim: a short write is the end");
                if moved == 0 || moved < piece && !asks_again {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done as u64)
}

fn write_piece(thread: &Thread, number: u32, at: At, from: u64, length: usize) -> Result<usize, Errno> {
    let length = guarded::source_at(from, length)?;
    // SAFETY: there is memory, as was seen just now; who takes it away at the same time ends the process by SIGSEGV.
    let bytes = unsafe { core::slice::from_raw_parts(from as *const u8, length) };
    instance::call(thread, |call| match at {
        At::Offset => data::write(call, number, bytes),
        At::Given(offset) => data::write_at(call, number, bytes, offset),
    })
}

/// write, pwrite64.
pub(crate) fn write(thread: &Thread, number: u32, at: At, from: u64, length: u64) -> Result<u64, Errno> {
    let length = (length as usize).min(LARGEST_TRANSFER_BYTES);
    if length == 0 {
        return instance::call(thread, |call| match at {
            At::Offset => data::write(call, number, &[]),
            At::Given(offset) => data::write_at(call, number, &[], offset),
        })
        .map(|_| 0);
    }
    pieces(length, Short::AsksAgain, |done, piece| {
        write_piece(thread, number, at.after(done), from + done as u64, piece)
    })
}

/// readv, writev and their kin: buffer by buffer.
pub(crate) fn vectors(
    at: At,
    (buffers, count): (u64, u64),
    mut one: impl FnMut(At, u64, u64) -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    if count > MAX_BUFFERS {
        return Err(Errno::EINVAL);
    }
    /// No program has addresses from here on.
    const ADDRESSES_END: u64 = 1 << 47;
    // All are looked at before anything is moved (Linux: `import_iovec`).
    for index in 0..count {
        let [start, length] = guarded::read_value::<[u64; 2]>(buffers + 16 * index)?;
        if (length as i64) < 0 {
            return Err(Errno::EINVAL);
        }
        if start.checked_add(length).is_none_or(|end| end > ADDRESSES_END) {
            return Err(Errno::EFAULT);
        }
    }
    let mut done = 0_u64;
    for index in 0..count {
        let moved = guarded::read_value::<[u64; 2]>(buffers + 16 * index).and_then(|[start, length]| {
            if length == 0 { Ok((0, 0)) } else { Ok((one(at.after(done as usize), start, length)?, length)) }
        });
        match moved {
            Ok((moved, length)) => {
                done += moved;
                if moved < length {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// lseek.
pub(crate) fn seek(thread: &Thread, number: u32, offset: i64, whence: u64) -> Result<u64, Errno> {
    is_open(thread, number)?;
    instance::call(thread, |call| match whence {
        0 => data::seek(call, number, offset, Whence::Start),
        1 => data::seek(call, number, offset, Whence::Current),
        2 => data::seek(call, number, offset, Whence::End),
        3 => data::seek_for(call, number, offset, Sought::Data),
        4 => data::seek_for(call, number, offset, Sought::Hole),
        _ => Err(Errno::EINVAL),
    })
}

/// ftruncate.
pub(crate) fn truncate(thread: &Thread, number: u32, size: i64) -> Result<u64, Errno> {
    instance::call(thread, |call| data::truncate(call, number, size)).map(|()| 0)
}

/// truncate.
pub(crate) fn truncate_path(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let at = (crate::paths::WORKING_DIRECTORY, 0);
    with_path(thread, call, at, scalefs::Follow::Symlinks, After::Nothing, |thread, from, path| {
        running::check(thread, from, path, scalefs::Follow::Symlinks)?;
        let size = call.1[1] as i64;
        on_tree(thread, from, |call, start| data::truncate_path(call, start, path, size)).map(|()| 0)
    })
}

/// Whether a number leads to a file that is open, and does not only stand for one (O_PATH): what fsync and its like ask before they
/// find nothing to do.
pub(crate) fn is_open(thread: &Thread, number: u32) -> Result<u64, Errno> {
    let (_, status) = instance::call(thread, |call| data::status(call, number))?;
    if status.contains(StatusFlags::HANDLE) { Err(Errno::EBADF) } else { Ok(0) }
}

/// What a call asks that only advises, or waits for what is written: whether it is one that Linux takes (`generic_fadvise`,
/// `ksys_sync_file_range`, `ksys_readahead`); there is nothing to do.
pub(crate) fn advise(
    thread: &Thread,
    of: u32,
    number: u64,
    [_, offset, length, what, ..]: [u64; 6],
) -> Result<u64, Errno> {
    const FADVISE: u64 = 221;
    const READAHEAD: u64 = 187;
    const SYNC_FILE_RANGE: u64 = 277;
    const LAST_ADVICE: u64 = 5;
    const SYNC_FLAGS: u64 = 7;
    is_open(thread, of)?;
    let (offset, length) = (offset as i64, length as i64);
    match number {
        FADVISE if what as u32 as u64 > LAST_ADVICE || length < 0 => Err(Errno::EINVAL),
        SYNC_FILE_RANGE if what as u32 as u64 & !SYNC_FLAGS != 0 => Err(Errno::EINVAL),
        SYNC_FILE_RANGE if offset < 0 || length < 0 || offset.checked_add(length).is_none() => Err(Errno::EINVAL),
        READAHEAD => instance::call(thread, |call| match data::status(call, of)? {
            (mode, _) if !mode.read => Err(Errno::EBADF),
            _ if call.objects().kind(data::node(call, of)?) != Kind::Regular => Err(Errno::EINVAL),
            _ => Ok(0),
        }),
        _ => Ok(0),
    }
}

/// Flags of preadv2 and pwritev2.
pub(crate) fn check_flags(flags: u64) -> Result<(), Errno> {
    /// RWF_HIPRI, RWF_DSYNC and RWF_SYNC ask for nothing that is not so here. Of others Linux's tmpfs, too, says that it has them not.
    const KNOWN: u64 = 7;
    if flags & !KNOWN == 0 { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

fn kind_in_directory(kind: Kind) -> u8 {
    (kind.mode_bits() >> 12) as u8
}

/// getdents64, getdents.
pub(crate) fn entries(thread: &Thread, number: u32, to: u64, room: u64, is_old: bool) -> Result<u64, Errno> {
    const MOST_BYTES: usize = 32 << 10;
    let mut buffer = [0_u8; MOST_BYTES];
    let room = (room as u32 as usize).min(MOST_BYTES);
    let (mut length, mut is_too_small) = (0, false);
    let taken = instance::call(thread, |call| {
        length = 0;
        data::read_directory(call, number, |entry| {
            // `struct linux_dirent64`: number, next, length, kind, name; the old one has the kind last.
            let bytes = (19 + entry.name.len() + 1).next_multiple_of(8);
            if length + bytes > room {
                is_too_small = length == 0;
                return false;
            }
            let place = &mut buffer[length..length + bytes];
            place.fill(0);
            place[..8].copy_from_slice(&entry.number.0.to_le_bytes());
            place[8..16].copy_from_slice(&entry.next_cookie.to_le_bytes());
            place[16..18].copy_from_slice(&(bytes as u16).to_le_bytes());
            let name = if is_old { 18 } else { 19 };
            place[if is_old { bytes - 1 } else { 18 }] = kind_in_directory(entry.kind);
            place[name..name + entry.name.len()].copy_from_slice(entry.name);
            length += bytes;
            true
        })
    })?;
    if taken == 0 && is_too_small {
        return Err(Errno::EINVAL);
    }
    guarded::write_bytes(to, &buffer[..length])?;
    Ok(length as u64)
}

/// copy_file_range between two of ours.
pub(crate) fn copy_range(thread: &Thread, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [from, from_offset, to, to_offset, length, flags] = arguments;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let place = |pointer: u64| match pointer {
        0 => Ok(At::Offset),
        pointer => guarded::read_value::<i64>(pointer).map(At::Given),
    };
    let (from_at, to_at) = (place(from_offset)?, place(to_offset)?);
    let length = instance::call(thread, |call| check_copy(call, (from as u32, from_at), (to as u32, to_at), length))?;
    let mut buffer = [0_u8; 16 << 10];
    let mut done = 0_usize;
    let wanted = (length as usize).min(LARGEST_TRANSFER_BYTES);
    while done < wanted {
        let piece = (wanted - done).min(buffer.len());
        let moved =
            instance::call(thread, |call| copy_piece(call, (from, from_at), (to, to_at), done, &mut buffer[..piece]));
        match moved {
            Ok(0) => break,
            Ok(moved) => done += moved,
            Err(_) if done > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    for (pointer, at) in [(from_offset, from_at), (to_offset, to_at)] {
        if let At::Given(offset) = at {
            guarded::write_value(pointer, offset + done as i64)?;
        }
    }
    Ok(done as u64)
}

/// What Linux looks at before it copies (`generic_copy_file_checks`); returns how much there is to copy at most.
fn check_copy(
    call: &InProcess<'_, Here>,
    (from, from_at): (u32, At),
    (to, to_at): (u32, At),
    length: u64,
) -> Result<u64, Errno> {
    for number in [from, to] {
        match call.objects().kind(data::node(call, number)?) {
            Kind::Regular => {}
            Kind::Directory => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    }
    let ((from_mode, _), (to_mode, status)) = (data::status(call, from)?, data::status(call, to)?);
    if !from_mode.read || !to_mode.write || status.contains(StatusFlags::APPEND) {
        return Err(Errno::EBADF);
    }
    if data::node(call, from)? != data::node(call, to)? {
        return Ok(length);
    }
    let offset = |number, at| match at {
        At::Given(offset) => Ok(offset as u64),
        At::Offset => data::seek(call, number, 0, Whence::Current),
    };
    let size = data::stat(call, from, Fields::SIZE)?.size_bytes;
    let (from, to) = (offset(from, from_at)?, offset(to, to_at)?);
    // What the copy appends is not copied itself.
    let length = length.min(size.saturating_sub(from));
    let overlaps = from < to.saturating_add(length) && to < from.saturating_add(length);
    if overlaps { Err(Errno::EINVAL) } else { Ok(length) }
}

fn copy_piece(
    call: &InProcess<'_, Here>,
    (from, from_at): (u64, At),
    (to, to_at): (u64, At),
    done: usize,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    for number in [from, to] {
        if call.objects().kind(data::node(call, number as u32)?) != Kind::Regular {
            return Err(Errno::EINVAL);
        }
    }
    let read = match from_at.after(done) {
        At::Offset => data::read(call, from as u32, buffer)?,
        At::Given(offset) => data::read_at(call, from as u32, buffer, offset)?,
    };
    if read == 0 {
        return Ok(0);
    }
    let mut written = 0;
    let outcome = loop {
        let moved = match to_at.after(done + written) {
            At::Offset => data::write(call, to as u32, &buffer[written..read]),
            At::Given(offset) => data::write_at(call, to as u32, &buffer[written..read], offset),
        };
        match moved {
            Ok(moved) => written += moved,
            Err(errno) if written == 0 => break Err(errno),
            Err(_) => break Ok(written),
        }
        if written == read {
            break Ok(read);
        }
    };
    // What found no place is read again.
    if written < read && from_at == At::Offset && !planted("shim: what was copied to no place is passed over") {
        data::seek(call, from as u32, written as i64 - read as i64, Whence::Current)?;
    }
    outcome
}

/// How a number behaves at exec, as a bit.
pub(crate) fn closes_on_exec(on_exec: OnExec) -> u64 {
    u64::from(on_exec == OnExec::Close)
}
