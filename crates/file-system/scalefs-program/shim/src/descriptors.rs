//! The calls on descriptors: close, dup and its kin, fcntl, close_range. Numbers are the kernel's and ours together.

use scalefs::{
    AccessMode, DataOperations, Errno, Fields, Kind, NumberChoice, ObjectOperations, OnExec, StatusFlags, Whence,
    allocation, data,
};

use crate::constants::*;
use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::home::Home;
use crate::instance;
use crate::locks;
use crate::numbers;
use crate::owners;
use crate::system::{self, number};
use crate::threads::Thread;

const FD_CLOEXEC: u64 = 1;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const CLOSE_RANGE_UNSHARE: u64 = 2;

const F_DUPFD: u64 = 0;
const F_GETFD: u64 = 1;
const F_SETFD: u64 = 2;
const F_GETFL: u64 = 3;
const F_SETFL: u64 = 4;
const F_DUPFD_CLOEXEC: u64 = 1030;
const F_SETPIPE_SZ: u64 = 1031;
const F_GETPIPE_SZ: u64 = 1032;

fn is_hidden(argument: u64) -> bool {
    instance::control().descriptors.contains(argument as u32)
}

fn on_exec(closes: bool) -> OnExec {
    if closes { OnExec::Close } else { OnExec::Keep }
}

/// Closes a number of ours; its placeholder stays.
fn close_ours(thread: &Thread, number: u32) -> Result<u64, Errno> {
    let home = thread.home();
    instance::call(thread, |call| data::close(call, number))?;
    instance::pause_if_planted(&numbers::SLOWLY);
    home.numbers.free(number);
    Ok(0)
}

/// close.
pub(crate) fn close(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let (home, number) = (thread.home(), call.1[0]);
    if home.numbers.is_ours(number) {
        return Answer::of(close_ours(thread, number as u32));
    }
    if home.numbers.is_closed(number) {
        return Answer::error(Errno::EBADF);
    }
    home.numbers.note_closed(u64::from(number as u32));
    Answer::issue(thread, call.0, call.1, After::Nothing)
}

/// Another number for one of ours, the lowest from one on.
fn duplicate(thread: &Thread, number: u32, lowest: u64, closes: bool) -> Result<u64, Errno> {
    let home = thread.home();
    let lowest = u32::try_from(lowest).ok().filter(|lowest| numbers::is_allowed(home, *lowest)).ok_or(Errno::EINVAL)?;
    let reserved = numbers::reserve(home, lowest)?;
    let choice = NumberChoice::LowestFrom(reserved.number);
    let given = instance::call(thread, |call| data::duplicate(call, number, choice, on_exec(closes)))?;
    assert_eq!(given, reserved.number, "a number that is free in the kernel is free in the instance");
    Ok(u64::from(reserved.keep()))
}

/// dup.
pub(crate) fn dup(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let number = call.1[0];
    match () {
        () if thread.home().numbers.is_ours(number) => Answer::of(duplicate(thread, number as u32, 0, false)),
        () => {
            numbers::make_room(thread.home(), (0, 1));
            Answer::issue(thread, call.0, call.1, After::Duplicated)
        }
    }
}

/// dup2, dup3.
pub(crate) fn dup_to(thread: &mut Thread, call: (u64, [u64; 6]), is_dup3: bool) -> Answer {
    let home = thread.home();
    let [old, new, flags, ..] = call.1;
    let closes = is_dup3 && flags & O_CLOEXEC != 0;
    if is_dup3 && (flags & !O_CLOEXEC != 0 || old as u32 == new as u32) {
        return Answer::error(Errno::EINVAL);
    }
    if is_hidden(new) {
        return Answer::error(Errno::EBADF);
    }
    if home.numbers.is_ours(old) {
        let (old, new) = (old as u32, new as u32);
        if old == new {
            return Answer::of(data_is_open(thread, old).map(|()| u64::from(new)));
        }
        if !numbers::is_allowed(home, new) {
            return Answer::error(Errno::EBADF);
        }
        return Answer::of(duplicate_to(thread, (old, new), on_exec(closes)));
    }
    // The kernel's: what was ours at the new number is closed once it has.
    match numbers::replace(home, call) {
        Some(Ok(given)) => {
            replaced(thread, given);
            Answer::Done(given as i64)
        }
        Some(Err(errno)) => Answer::number(errno),
        None => Answer::issue(thread, call.0, call.1, After::Replaced),
    }
}

/// dup2 of one of ours. What is ours at the new number leads nowhere else in between, and is never nothing.
fn duplicate_to(thread: &Thread, (old, new): (u32, u32), on_exec: OnExec) -> Result<u64, Errno> {
    let home = thread.home();
    let mut round = 0;
    loop {
        if numbers::take_over(home, new)? {
            instance::pause_if_planted(&["shim: dup2 is slow", numbers::TAKEN_LATER]);
            let done = instance::call(thread, |call| data::duplicate_to(call, old, new, on_exec));
            match done {
                Ok(_) if instance::planted(numbers::TAKEN_LATER) => home.numbers.set_ours(new),
                Ok(_) => {}
                Err(_) => home.numbers.free(new),
            }
            return done.map(u64::from);
        }
        if instance::call(thread, |call| call.duplicate_over(old, new, on_exec))? {
            return Ok(u64::from(new));
        }
        numbers::wait(&mut round);
    }
}

fn data_is_open(thread: &Thread, number: u32) -> Result<(), Errno> {
    instance::call(thread, |call| data::status(call, number)).map(|_| ())
}

/// The kernel has put something at a number that may have been ours.
pub(crate) fn replaced(thread: &Thread, number: u64) {
    let (home, number) = (thread.home(), u64::from(number as u32));
    let mut round = 0;
    numbers::stay(home, number);
    while home.numbers.is_ours(number) && !instance::planted("shim: what dup2 replaces stays") {
        if close_ours(thread, number as u32).is_err() {
            numbers::wait(&mut round);
        }
        numbers::stay(home, number);
    }
}

/// fcntl.
pub(crate) fn control(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [argument, command, value, ..] = call.1;
    let home = thread.home();
    if !home.numbers.is_ours(argument) {
        let after = match command {
            F_DUPFD | F_DUPFD_CLOEXEC => {
                numbers::make_room(home, (value, 1));
                After::Duplicated
            }
            _ => After::Nothing,
        };
        return Answer::issue(thread, call.0, call.1, after);
    }
    let number = argument as u32;
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => Answer::of(duplicate(thread, number, value, command == F_DUPFD_CLOEXEC)),
        F_GETFD => {
            let found = instance::call(thread, |call| data::on_exec(call, number));
            Answer::of(found.map(crate::data::closes_on_exec))
        }
        F_SETFD => {
            let wanted = on_exec(value & FD_CLOEXEC != 0);
            Answer::of(instance::call(thread, |call| data::set_on_exec(call, number, wanted)).map(|()| 0))
        }
        F_GETFL => {
            let found = instance::call(thread, |call| data::status(call, number));
            Answer::of(found.map(|(mode, status)| flags_of(mode, status)))
        }
        F_SETFL => {
            let mut status = StatusFlags::NONE;
            if value & O_APPEND != 0 {
                status |= StatusFlags::APPEND;
            }
            if value & O_NONBLOCK != 0 {
                status |= StatusFlags::NONBLOCK;
            }
            Answer::of(instance::call(thread, |call| data::set_status(call, number, status)).map(|()| 0))
        }
        locks::F_GETLK
        | locks::F_SETLK
        | locks::F_SETLKW
        | locks::F_OFD_GETLK
        | locks::F_OFD_SETLK
        | locks::F_OFD_SETLKW => locks::control(thread, number, command, value),
        owners::F_SETOWN
        | owners::F_GETOWN
        | owners::F_SETSIG
        | owners::F_GETSIG
        | owners::F_SETOWN_EX
        | owners::F_GETOWN_EX => owners::control(thread, number, command, value),
        F_GETPIPE_SZ | F_SETPIPE_SZ => Answer::error(Errno::EBADF),
        // Leases, seals, notifications.
        _ => Answer::error(Errno::EINVAL),
    }
}

fn flags_of(mode: AccessMode, status: StatusFlags) -> u64 {
    if status.contains(StatusFlags::HANDLE) {
        return O_PATH;
    }
    let access = match (mode.read, mode.write) {
        (true, true) => O_RDWR,
        (false, true) => O_WRONLY,
        _ => O_RDONLY,
    };
    let append = if status.contains(StatusFlags::APPEND) { O_APPEND } else { 0 };
    let nonblock = if status.contains(StatusFlags::NONBLOCK) { O_NONBLOCK } else { 0 };
    access | append | nonblock | O_LARGEFILE
}

/// ioctl of one of ours.
pub(crate) fn device_control(thread: &Thread, number: u32, command: u64, at: u64) -> Answer {
    match answer_device(thread, number, command & 0xffff_ffff, at) {
        Ok(Some(())) => Answer::Done(0),
        Ok(None) => Answer::number(ENOTTY),
        Err(errno) => Answer::error(errno),
    }
}

/// What an `ioctl` of a file does; none if it is for something else.
fn answer_device(thread: &Thread, number: u32, command: u64, at: u64) -> Result<Option<()>, Errno> {
    const FIOCLEX: u64 = 0x5451;
    const FIONCLEX: u64 = 0x5450;
    const FIONBIO: u64 = 0x5421;
    const FIONREAD: u64 = 0x541b;
    const FIOQSIZE: u64 = 0x5460;
    const FIGETBSZ: u64 = 2;
    const FICLONE: u64 = 0x4004_9409;
    const BLOCK_BYTES: u32 = 4096;
    crate::data::is_open(thread, number)?;
    let (kind, size) = instance::call(thread, |call| {
        let kind = call.objects().kind(data::node(call, number)?);
        Ok((kind, data::stat(call, number, Fields::SIZE)?.size_bytes))
    })?;
    match command {
        FIOCLEX | FIONCLEX => {
            let wanted = on_exec(command == FIOCLEX);
            instance::call(thread, |call| data::set_on_exec(call, number, wanted))?;
        }
        FIONBIO => {
            let is_wanted = guarded::read_value::<i32>(at)? != 0;
            instance::call(thread, |call| {
                let (_, status) = data::status(call, number)?;
                let others = status.difference(StatusFlags::NONBLOCK);
                data::set_status(call, number, if is_wanted { others | StatusFlags::NONBLOCK } else { others })
            })?;
        }
        FIGETBSZ => guarded::write_value(at, BLOCK_BYTES)?,
        // Room, and not the size (Linux: `inode_get_bytes`).
        FIOQSIZE => {
            let room = instance::call(thread, |call| allocation::occupied_bytes(call, data::node(call, number)?))?;
            guarded::write_value(at, room)?;
        }
        FIONREAD if kind == Kind::Regular => {
            let offset = instance::call(thread, |call| data::seek(call, number, 0, Whence::Current))?;
            guarded::write_value(at, size.wrapping_sub(offset) as u32)?;
        }
        FICLONE => return Err(Errno::EOPNOTSUPP),
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// close_range.
pub(crate) fn close_range(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [first, last, flags, ..] = call.1;
    let (first, last) = (first as u32, last as u32);
    if flags & !(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE) != 0 || first > last {
        return Answer::error(Errno::EINVAL);
    }
    let home = thread.home();
    let only_marks = flags & CLOSE_RANGE_CLOEXEC != 0;
    for number in home.numbers.all_ours(first, last) {
        if only_marks {
            let _ = instance::call(thread, |call| data::set_on_exec(call, number, OnExec::Close));
        } else {
            let _ = close_ours(thread, number);
        }
    }
    // The kernel's, around those that are hidden. Placeholders go: they are made again.
    let hidden = instance::control().descriptors;
    let mut edges = hidden.all();
    edges.sort_unstable();
    let _lock = home.lock();
    let mut from = first;
    for edge in edges.into_iter().filter(|edge| (first..=last).contains(edge)) {
        if from < edge {
            close_in_kernel(home, (from, edge - 1), flags);
        }
        from = edge.saturating_add(1);
    }
    if from <= last {
        close_in_kernel(home, (from, last), flags);
    }
    Answer::of(Ok(0))
}

/// Those that have become ours since stay, and their placeholders.
fn close_in_kernel(home: &Home, (first, last): (u32, u32), flags: u64) {
    let only_marks = flags & CLOSE_RANGE_CLOEXEC != 0;
    let close = |first: u32, last: u32| {
        let done = system::call(number::CLOSE_RANGE, [u64::from(first), u64::from(last), flags, 0, 0, 0]);
        if done == 0 && !only_marks {
            home.numbers.note_all_closed(first, last);
        }
    };
    let mut from = first;
    for ours in home.numbers.all_ours(first, last).filter(|_| !only_marks) {
        if from < ours {
            close(from, ours - 1);
        }
        from = ours + 1;
    }
    if from <= last {
        close(from, last);
    }
}

/// Takes numbers out of a listing that the kernel has made which a program would not know of; returns how long it is then. A part of
/// the list of which nothing is left is not distinguished from its end: the kernel gives all of it at once.
pub(crate) fn without_hidden(home: &Home, at: u64, length: u64) -> u64 {
    const NAME: u64 = 19;
    let (mut from, mut to) = (0, 0);
    while from < length {
        let mut entry = [0_u8; 320];
        let head = crate::guarded::read_value::<[u8; 18]>(at + from).unwrap_or([0; 18]);
        let bytes = u64::from(u16::from_le_bytes([head[16], head[17]]));
        if bytes <= NAME || bytes > entry.len() as u64 {
            return length;
        }
        let entry = &mut entry[..bytes as usize];
        if crate::guarded::read_bytes(entry, at + from).is_err() {
            return length;
        }
        let name = entry[NAME as usize..].split(|byte| *byte == 0).next().unwrap_or_default();
        let is_number = !name.is_empty() && name.len() < 8 && name.iter().all(u8::is_ascii_digit);
        let number =
            name.iter().fold(0_u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit & 0xf)));
        if !is_number || !home.numbers.is_closed(number.into()) {
            if from != to && crate::guarded::write_bytes(at + to, entry).is_err() {
                return length;
            }
            to += bytes;
        }
        from += bytes;
    }
    to
}
