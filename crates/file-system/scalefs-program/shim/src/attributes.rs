//! The calls on attributes: stat, statx, access, chmod, chown, utimensat, statfs.

use core::sync::atomic::Ordering;

use scalefs::attributes::{self, Access, NewTime};
use scalefs::{
    Attributes, DataOperations, Errno, Fields, Follow, InProcess, Kind, Need, Node, ObjectOperations, data, handles,
};

use crate::constants::*;
use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::instance::{self, Here};
use crate::names::{on_tree, with_path};
use crate::paths::{From, WORKING_DIRECTORY};
use crate::stand_ins;
use crate::threads::Thread;

/// The number of the device that files of the tree are on: of the kind that Linux gives to what has no device.
const DEVICE_MINOR: u32 = 0x5ca1e;
const DEVICE: u64 = ((DEVICE_MINOR as u64 & 0xff) | (DEVICE_MINOR as u64 & !0xff) << 12) & 0xffff_ffff_ffff;
const BLOCK_BYTES: u64 = 4096;
const NS: i64 = 1_000_000_000;
const MAX_NAME_BYTES: u64 = 255;
/// `struct statfs` says of which kind a file system is; that of tmpfs, since programs know it.
const TMPFS_MAGIC: u64 = 0x0102_1994;

fn split(time_ns: i64) -> [u64; 2] {
    [time_ns.div_euclid(NS) as u64, time_ns.rem_euclid(NS) as u64]
}

/// `struct stat`.
fn stat_words(status: &Attributes, device: u64) -> [u64; 18] {
    let [accessed, modified, changed] = [status.accessed_ns, status.modified_ns, status.changed_ns].map(split);
    let mode = u64::from(status.mode | status.kind.mode_bits());
    [
        DEVICE,
        status.number.0,
        u64::from(status.link_count),
        mode | u64::from(status.user) << 32,
        u64::from(status.group),
        device,
        status.size_bytes,
        BLOCK_BYTES,
        status.size_bytes.div_ceil(512),
        accessed[0],
        accessed[1],
        modified[0],
        modified[1],
        changed[0],
        changed[1],
        0,
        0,
        0,
    ]
}

/// `struct statx`.
fn statx_words(status: &Attributes, device: u64) -> [u64; 32] {
    const ALL: u64 = 0x7ff;
    let mut words = [0_u64; 32];
    words[0] = ALL | BLOCK_BYTES << 32;
    words[2] = u64::from(status.link_count) | u64::from(status.user) << 32;
    words[3] = u64::from(status.group) | u64::from(status.mode | status.kind.mode_bits()) << 32;
    words[4] = status.number.0;
    words[5] = status.size_bytes;
    words[6] = status.size_bytes.div_ceil(512);
    let times = [status.accessed_ns, status.changed_ns, status.changed_ns, status.modified_ns];
    for (index, time_ns) in times.into_iter().enumerate() {
        let [seconds, nanoseconds] = split(time_ns);
        words[8 + 2 * index] = seconds;
        words[9 + 2 * index] = nanoseconds;
    }
    let (major, minor) = (device >> 8 & 0xfff | device >> 32 & !0xfff, device & 0xff | device >> 12 & !0xff);
    words[16] = major | minor << 32;
    words[17] = u64::from(DEVICE_MINOR) << 32;
    words
}

fn look<T>(
    thread: &Thread,
    (from, path): (From, &[u8]),
    follow: Follow,
    mut give: impl FnMut(&Attributes, u64) -> Result<T, Errno>,
) -> Result<T, Errno> {
    if let From::Itself(number) = from {
        return of_number(thread, number, give);
    }
    let (status, device) = on_tree(thread, from, |call, start| {
        attributes::stat_with_device(call.objects(), start, path, follow, Fields::ALL)
    })?;
    give(&status, device)
}

fn of_number<T>(
    thread: &Thread,
    number: u32,
    mut give: impl FnMut(&Attributes, u64) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let (status, device) = instance::call(thread, |call| {
        let node = data::node(call, number)?;
        let device = if call.objects().kind(node).is_device() { call.objects().device(node)? } else { 0 };
        Ok((data::stat(call, number, Fields::ALL)?, device))
    })?;
    give(&status, device)
}

/// What a call is about whose path may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithoutPath {
    /// What a number of ours leads to.
    Ours(u32),
    /// What one of the kernel's leads to, or its working directory.
    Kernels,
    /// The working directory, in the tree.
    WorkingDirectory,
    /// Nothing that the program has open.
    Closed,
}

/// What a call is about; none if it has a path.
pub(crate) fn without_path(thread: &Thread, directory: u64, path: u64, flags: u64) -> Option<WithoutPath> {
    if !has_no_path(path, flags) {
        return None;
    }
    let home = thread.home();
    Some(match () {
        () if home.numbers.is_ours(directory) => WithoutPath::Ours(directory as u32),
        () if home.numbers.is_closed(directory) => WithoutPath::Closed,
        () if directory as u32 == WORKING_DIRECTORY as u32 && home.works_inside.load(Ordering::Relaxed) => {
            WithoutPath::WorkingDirectory
        }
        () => WithoutPath::Kernels,
    })
}

/// Whether a descriptor stands for itself, without a path.
fn has_no_path(path: u64, flags: u64) -> bool {
    let is_empty = || path == 0 || guarded::read_value::<u8>(path).is_ok_and(|first| first == 0);
    flags & AT_EMPTY_PATH != 0 && is_empty()
}

/// stat, lstat, newfstatat.
pub(crate) fn stat(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize), follow: Follow, to: u64) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        let words = look(thread, (from, path), follow, |status, device| Ok(stat_words(status, device)))?;
        guarded::write_value(to, words).map(|()| 0)
    })
}

/// fstat.
pub(crate) fn stat_number(thread: &mut Thread, number: u32, to: u64) -> Result<u64, Errno> {
    let words = of_number(thread, number, |status, device| Ok(stat_words(status, device)))?;
    guarded::write_value(to, words).map(|()| 0)
}

/// statx.
pub(crate) fn statx(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize), follow: Follow, to: u64) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        let words = look(thread, (from, path), follow, |status, device| Ok(statx_words(status, device)))?;
        guarded::write_value(to, words).map(|()| 0)
    })
}

/// The status of the working directory.
pub(crate) fn stat_here(thread: &mut Thread, to: u64) -> Result<u64, Errno> {
    let here = (From::Working, b".".as_slice());
    let words = look(thread, here, Follow::Symlinks, |status, device| Ok(stat_words(status, device)))?;
    guarded::write_value(to, words).map(|()| 0)
}

/// As [`stat_here`], as statx has it.
pub(crate) fn statx_here(thread: &mut Thread, to: u64) -> Result<u64, Errno> {
    let here = (From::Working, b".".as_slice());
    let words = look(thread, here, Follow::Symlinks, |status, device| Ok(statx_words(status, device)))?;
    guarded::write_value(to, words).map(|()| 0)
}

/// statx of a descriptor.
pub(crate) fn statx_number(thread: &mut Thread, number: u32, to: u64) -> Result<u64, Errno> {
    let words = of_number(thread, number, |status, device| Ok(statx_words(status, device)))?;
    guarded::write_value(to, words).map(|()| 0)
}

/// access, faccessat, faccessat2.
pub(crate) fn access(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    at: (u64, usize),
    mode: u64,
    follow: Follow,
) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        if mode & !7 != 0 {
            return Err(Errno::EINVAL);
        }
        let wanted = Access { read: mode & 4 != 0, write: mode & 2 != 0, execute: mode & 1 != 0 };
        if let From::Itself(number) = from {
            return may(thread, number, wanted);
        }
        on_tree(thread, from, |call, start| attributes::access(call.objects(), start, path, follow, wanted)).map(|()| 0)
    })
}

/// A call on what a descriptor leads to, for which it need not be open for anything.
fn on_node(
    thread: &Thread,
    number: u32,
    mut body: impl for<'v> FnMut(&'v InProcess<'_, Here>, Node<'v>) -> Result<(), Errno>,
) -> Result<u64, Errno> {
    instance::call(thread, |call| body(call, data::node(call, number)?)).map(|()| 0)
}

/// Whether an object lets who calls do this.
fn permits(call: &InProcess<'_, Here>, node: Node<'_>, wanted: Access) -> Result<(), Errno> {
    let objects = call.objects();
    let needs = [(wanted.read, Need::READ), (wanted.write, Need::WRITE), (wanted.execute, Need::SEARCH)];
    let permissions = objects.permissions(node)?;
    needs
        .into_iter()
        .filter(|(is_wanted, _)| *is_wanted)
        .try_for_each(|(_, need)| need.check(objects.credentials(), objects.kind(node), permissions))
}

/// As access, of what a descriptor leads to.
fn may(thread: &Thread, number: u32, wanted: Access) -> Result<u64, Errno> {
    on_node(thread, number, |call, node| permits(call, node, wanted))
}

/// A call on the object that it is about without a path, for which nothing need be open for anything. Of what the kernel has, pipes of
/// the tree are the tree's.
fn without_a_path(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    what: WithoutPath,
    mut body: impl for<'v> FnMut(&'v InProcess<'_, Here>, Node<'v>) -> Result<(), Errno>,
) -> Answer {
    let number = match what {
        WithoutPath::Ours(number) => number,
        WithoutPath::Closed => return Answer::error(Errno::EBADF),
        WithoutPath::Kernels => match stand_ins::handle_behind(thread, call.1[0]) {
            Some(handle) => handle,
            None => return Answer::issue(thread, call.0, call.1, After::Nothing),
        },
        WithoutPath::WorkingDirectory => {
            let done = instance::call(thread, |call| body(call, call.objects().working_directory()));
            return Answer::of(done.map(|()| 0));
        }
    };
    Answer::of(on_node(thread, number, body))
}

/// A call on a descriptor that is open for something (`fchmod` and its like); the kernel's may lead to a pipe of the tree.
fn of_open_one(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    mut body: impl for<'v> FnMut(&'v InProcess<'_, Here>, Node<'v>) -> Result<(), Errno>,
) -> Answer {
    if !thread.home().numbers.is_ours(call.1[0]) {
        return without_a_path(thread, call, WithoutPath::Kernels, body);
    }
    let number = call.1[0] as u32;
    let done = instance::call(thread, |call| body(call, handles::node_to_change(call, number)?));
    Answer::of(done.map(|()| 0))
}

/// faccessat2 of an object.
pub(crate) fn may_without_path(thread: &mut Thread, call: (u64, [u64; 6]), what: WithoutPath, mode: u64) -> Answer {
    let wanted = Access { read: mode & 4 != 0, write: mode & 2 != 0, execute: mode & 1 != 0 };
    without_a_path(thread, call, what, |call, node| permits(call, node, wanted))
}

/// fchmodat2 of an object.
pub(crate) fn change_mode_without_path(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    what: WithoutPath,
    mode: u64,
) -> Answer {
    without_a_path(thread, call, what, |call, node| match call.objects().kind(node) {
        Kind::Symlink => Err(Errno::EOPNOTSUPP),
        _ => attributes::change_mode_of(call.objects(), node, mode as u32),
    })
}

/// fchownat of an object.
pub(crate) fn change_owner_without_path(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    what: WithoutPath,
    (user, group): (u64, u64),
) -> Answer {
    without_a_path(thread, call, what, |call, node| {
        attributes::change_owner_of(call.objects(), node, owner(user, group))
    })
}

/// utimensat of an object.
pub(crate) fn set_times_without_path(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    what: WithoutPath,
    times: u64,
) -> Answer {
    without_a_path(thread, call, what, |call, node| {
        attributes::set_times_of(call.objects(), node, new_times(times, TimesIn::Nanoseconds)?)
    })
}

/// chmod, fchmodat, fchmodat2.
pub(crate) fn change_mode(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    at: (u64, usize),
    follow: Follow,
    mode: u64,
) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        if let From::Itself(number) = from {
            return on_node(thread, number, |call, node| attributes::change_mode_of(call.objects(), node, mode as u32));
        }
        on_tree(thread, from, |call, start| match follow {
            Follow::Symlinks => attributes::change_mode(call.objects(), start, path, mode as u32),
            Follow::Nothing => attributes::change_mode_unless_link(call.objects(), start, path, mode as u32),
        })
        .map(|()| 0)
    })
}

/// fchmod.
pub(crate) fn change_mode_of(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let mode = call.1[1] as u32;
    of_open_one(thread, call, |call, node| attributes::change_mode_of(call.objects(), node, mode))
}

fn owner(user: u64, group: u64) -> (Option<u32>, Option<u32>) {
    let given = |argument: u64| Some(argument as u32).filter(|number| *number != u32::MAX);
    (given(user), given(group))
}

/// chown, lchown, fchownat.
pub(crate) fn change_owner(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    at: (u64, usize),
    follow: Follow,
    (user, group): (u64, u64),
) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        let new = owner(user, group);
        if let From::Itself(number) = from {
            return on_node(thread, number, |call, node| attributes::change_owner_of(call.objects(), node, new));
        }
        on_tree(thread, from, |call, start| attributes::change_owner(call.objects(), start, path, follow, new))
            .map(|()| 0)
    })
}

/// fchown.
pub(crate) fn change_owner_of(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let new = owner(call.1[1], call.1[2]);
    of_open_one(thread, call, |call, node| attributes::change_owner_of(call.objects(), node, new))
}

/// In what a call tells times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimesIn {
    /// Seconds (`utime`).
    Seconds,
    /// Microseconds (`utimes`, `futimesat`).
    Microseconds,
    /// Nanoseconds, and words for now and for none (`utimensat`).
    Nanoseconds,
}

fn new_times(times: u64, told: TimesIn) -> Result<(NewTime, NewTime), Errno> {
    const UTIME_NOW: i64 = 0x3fff_ffff;
    const UTIME_OMIT: i64 = 0x3fff_fffe;
    if times == 0 {
        return Ok((NewTime::Now, NewTime::Now));
    }
    if told == TimesIn::Seconds {
        let [accessed, modified] = guarded::read_value::<[i64; 2]>(times)?;
        return Ok((NewTime::At(accessed.saturating_mul(NS)), NewTime::At(modified.saturating_mul(NS))));
    }
    let [accessed, accessed_part, modified, modified_part] = guarded::read_value::<[i64; 4]>(times)?;
    let time = |seconds: i64, part: i64| match (told, part) {
        (TimesIn::Nanoseconds, UTIME_NOW) => Ok(NewTime::Now),
        (TimesIn::Nanoseconds, UTIME_OMIT) => Ok(NewTime::Same),
        (TimesIn::Nanoseconds, 0..NS) => Ok(NewTime::At(seconds.saturating_mul(NS).saturating_add(part))),
        (TimesIn::Microseconds, 0..1_000_000) => {
            Ok(NewTime::At(seconds.saturating_mul(NS).saturating_add(part * 1000)))
        }
        _ => Err(Errno::EINVAL),
    };
    Ok((time(accessed, accessed_part)?, time(modified, modified_part)?))
}

/// utime, utimes, futimesat, utimensat.
pub(crate) fn set_times(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    at: (u64, usize),
    follow: Follow,
    (times, told): (u64, TimesIn),
) -> Answer {
    with_path(thread, call, at, follow, After::Nothing, |thread, from, path| {
        let new = new_times(times, told)?;
        if let From::Itself(number) = from {
            return on_node(thread, number, |call, node| attributes::set_times_of(call.objects(), node, new));
        }
        on_tree(thread, from, |call, start| attributes::set_times(call.objects(), start, path, follow, new)).map(|()| 0)
    })
}

/// utimensat of a descriptor.
pub(crate) fn set_times_of(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let [_, _, times, flags, ..] = call.1;
    if flags as u32 != 0 {
        return Answer::error(Errno::EINVAL);
    }
    if thread.home().numbers.is_closed(call.1[0]) {
        return Answer::error(Errno::EBADF);
    }
    of_open_one(thread, call, |call, node| {
        attributes::set_times_of(call.objects(), node, new_times(times, TimesIn::Nanoseconds)?)
    })
}

/// `struct statfs` of the tree.
pub(crate) fn space(thread: &Thread, to: u64) -> Result<u64, Errno> {
    let space = instance::call(thread, |call| attributes::space(call.objects()))?;
    let words: [u64; 15] = [
        TMPFS_MAGIC,
        space.block_bytes,
        space.blocks,
        space.free_blocks,
        space.free_blocks,
        space.inodes,
        space.free_inodes,
        DEVICE,
        MAX_NAME_BYTES,
        space.block_bytes,
        0,
        0,
        0,
        0,
        0,
    ];
    guarded::write_value(to, words).map(|()| 0)
}

/// statfs.
pub(crate) fn space_at(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let at = (crate::paths::WORKING_DIRECTORY, 0);
    with_path(thread, call, at, Follow::Symlinks, After::Nothing, |thread, from, path| {
        on_tree(thread, from, |call, start| {
            attributes::stat(call.objects(), start, path, Follow::Symlinks, Fields::IDENTITY)
        })?;
        space(thread, call.1[1])
    })
}
