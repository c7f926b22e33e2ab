//! The calls on names: open, mkdir, unlink, rename, link, symlink, readlink, chdir.

use core::sync::atomic::Ordering;

use scalefs::data::DescriptorOptions;
use scalefs::names::RenameMode;
use scalefs::{
    DataOperations, Errno, Follow, InProcess, Kind, NumberChoice, ObjectOperations, OnExec, OpenFlags, StatusFlags,
    data, directories, handles, names,
};

use crate::attributes::{self, WithoutPath};
use crate::constants::*;
use crate::decimal::Decimal;
use crate::dispatch::{After, Answer};
use crate::guarded;
use crate::instance::{self, Here};
use crate::numbers;
use crate::paths::{self, Buffer, From, MAX_PATH_BYTES, Place};
use crate::running;
use crate::stand_ins;
use crate::system::{self, number};
use crate::threads::Thread;

/// A call with one path: in the tree by `ours`; elsewhere by the kernel, with the argument at `index` replaced where the path is not
/// the kernel's as it stands.
pub(crate) fn with_path(
    thread: &mut Thread,
    (number, arguments): (u64, [u64; 6]),
    (directory, index): (u64, usize),
    follow: Follow,
    after: After,
    mut ours: impl FnMut(&mut Thread, From, &[u8]) -> Result<u64, Errno>,
) -> Answer {
    let mut buffer: Buffer = [0; MAX_PATH_BYTES];
    let path = match paths::read(&mut buffer, arguments[index]) {
        Ok(path) => path,
        // The kernel says what is wrong with it.
        Err(_) => return Answer::issue(thread, number, arguments, after),
    };
    match paths::place(thread, directory, path) {
        Err(errno) => Answer::error(errno),
        Ok(Place::Kernel) => Answer::issue(thread, number, arguments, after),
        Ok(Place::KernelAt(elsewhere)) => at_kernel(thread, (number, arguments), index, elsewhere, after),
        Ok(Place::Tree(from, path)) => match ours(thread, from, path) {
            Err(errno @ (Errno::ENOENT | Errno::ENOTDIR)) => match paths::way_out(thread, from, path, follow) {
                Ok(Some(elsewhere)) => at_kernel(thread, (number, arguments), index, elsewhere, after),
                Ok(None) => Answer::error(errno),
                Err(errno) => Answer::error(errno),
            },
            outcome => Answer::of(outcome),
        },
    }
}

fn at_kernel(
    thread: &mut Thread,
    (number, mut arguments): (u64, [u64; 6]),
    index: usize,
    path: &[u8],
    after: After,
) -> Answer {
    // To open a pipe can take as long as until someone opens its other end.
    let room = if is_open(after) { thread.kept_room() } else { thread.room() };
    arguments[index] = paths::for_kernel(room, path);
    Answer::issue(thread, number, arguments, after)
}

/// Whether a call is one of those that open.
fn is_open(after: After) -> bool {
    after == After::NewNumber
}

/// A call on objects in the tree.
pub(crate) fn on_tree<T>(
    thread: &Thread,
    from: From,
    mut body: impl for<'v> FnMut(&'v InProcess<'_, Here>, scalefs::Start<scalefs::Node<'v>>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    instance::call(thread, |call| body(call, paths::start(call, from)?))
}

fn open_flags(flags: u64) -> OpenFlags {
    let mut wanted = match flags & O_ACCMODE {
        O_RDONLY => OpenFlags::READ,
        O_WRONLY => OpenFlags::WRITE,
        _ => OpenFlags::READ | OpenFlags::WRITE,
    };
    for (bit, flag) in [
        (O_CREAT, OpenFlags::CREATE),
        (O_EXCL, OpenFlags::EXCLUSIVE),
        (O_TRUNC, OpenFlags::TRUNCATE),
        (O_DIRECTORY, OpenFlags::DIRECTORY),
        (O_NOFOLLOW, OpenFlags::NO_FOLLOW),
    ] {
        if flags & bit == bit {
            wanted |= flag;
        }
    }
    wanted
}

/// Opens what a path in the tree leads to.
fn open_in_tree(thread: &mut Thread, from: From, path: &[u8], flags: u64, mode: u32) -> Result<u64, Errno> {
    let home = thread.home();
    let is_written = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0;
    if is_written && flags & O_PATH == 0 && flags & (O_CREAT | O_EXCL) != O_CREAT | O_EXCL {
        running::check(thread, from, path, if flags & O_NOFOLLOW != 0 { Follow::Nothing } else { Follow::Symlinks })?;
    }
    let reserved = numbers::reserve(home, 0)?;
    let status = if flags & O_APPEND != 0 { StatusFlags::APPEND } else { StatusFlags::NONE };
    let status = if flags & O_NONBLOCK != 0 { status | StatusFlags::NONBLOCK } else { status };
    let options = DescriptorOptions {
        status,
        number: NumberChoice::LowestFrom(reserved.number),
        on_exec: if flags & O_CLOEXEC != 0 { OnExec::Close } else { OnExec::Keep },
    };
    let wanted = open_flags(flags);
    instance::pause_if_planted(&numbers::SLOWLY);
    let opened = on_tree(thread, from, |call, start| match () {
        () if flags & O_PATH != 0 => {
            let kept = wanted & (OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW);
            handles::open_handle(call, start, path, kept, options)
        }
        () if flags & O_TMPFILE == O_TMPFILE => {
            handles::open_temporary(call, start, path, wanted.difference(OpenFlags::EXCLUSIVE), mode, options)
        }
        () => data::open(call, start, path, wanted, mode, options),
    })?;
    assert_eq!(opened, reserved.number, "a number that is free in the kernel is free in the instance");
    Ok(u64::from(reserved.keep()))
}

/// open, openat, creat.
pub(crate) fn open(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    directory: u64,
    index: usize,
    (flags, mode): (u64, u64),
) -> Answer {
    let follow = if flags & O_NOFOLLOW != 0 { Follow::Nothing } else { Follow::Symlinks };
    let mut buffer: Buffer = [0; MAX_PATH_BYTES];
    if let Ok(path) = paths::read(&mut buffer, call.1[index])
        && let Some(answer) = open_of_process(thread, path, call, index, flags)
    {
        return answer;
    }
    let answer = with_path(thread, call, (directory, index), follow, After::NewNumber, |thread, from, path| {
        open_in_tree(thread, from, path, flags, mode as u32)
    });
    if answer == Answer::error(Errno::ENXIO) {
        return stand_ins::open(thread, call, (directory, index), flags);
    }
    answer
}

/// Paths of `/proc` that speak of what we keep: the program, and numbers that are ours.
fn open_of_process(
    thread: &mut Thread,
    path: &[u8],
    (number, mut arguments): (u64, [u64; 6]),
    index: usize,
    flags: u64,
) -> Option<Answer> {
    let home = thread.home();
    if path == b"/proc/self/exe" {
        let program = home.program();
        if paths::place(thread, paths::WORKING_DIRECTORY, program) == Ok(Place::Kernel) {
            arguments[index] = paths::for_kernel(thread.room(), program);
            return Some(Answer::issue(thread, number, arguments, After::NewNumber));
        }
        if program != paths::PROGRAM_PATH {
            return Some(Answer::of(open_in_tree(thread, From::Working, program, flags, 0)));
        }
    }
    if matches!(path, b"/proc/self/fd" | b"/proc/self/fd/" | b"/dev/fd" | b"/dev/fd/") {
        return Some(Answer::issue(thread, number, arguments, After::NewList));
    }
    let ours = match path {
        b"/proc/self/exe" => paths::PROGRAM_NUMBER,
        _ => paths::number_in(path).filter(|number| home.numbers.is_ours(u64::from(*number)))?,
    };
    let reopened = numbers::reserve(home, 0).and_then(|reserved| {
        let status = if flags & O_APPEND != 0 { StatusFlags::APPEND } else { StatusFlags::NONE };
        let on_exec = if flags & O_CLOEXEC != 0 { OnExec::Close } else { OnExec::Keep };
        let options = DescriptorOptions { status, number: NumberChoice::LowestFrom(reserved.number), on_exec };
        instance::call(thread, |call| data::reopen(call, (call, ours), options))?;
        Ok(u64::from(reserved.keep()))
    });
    Some(Answer::of(reopened))
}

/// mkdir, mkdirat.
pub(crate) fn make_directory(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize), mode: u64) -> Answer {
    with_path(thread, call, at, Follow::Symlinks, After::Nothing, |thread, from, path| {
        on_tree(thread, from, |call, start| directories::make_directory(call.objects(), start, path, mode as u32))
            .map(|()| 0)
    })
}

/// rmdir, unlinkat with AT_REMOVEDIR.
pub(crate) fn remove_directory(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize)) -> Answer {
    with_path(thread, call, at, Follow::Nothing, After::Nothing, |thread, from, path| {
        if from == From::Top && path == b"." {
            return Err(Errno::EBUSY);
        }
        on_tree(thread, from, |call, start| directories::remove_directory(call.objects(), start, path)).map(|()| 0)
    })
}

/// unlink, unlinkat.
pub(crate) fn unlink(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize)) -> Answer {
    with_path(thread, call, at, Follow::Nothing, After::Nothing, |thread, from, path| {
        on_tree(thread, from, |call, start| names::unlink(call.objects(), start, path)).map(|()| 0)
    })
}

/// mknod, mknodat.
pub(crate) fn make_node(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    at: (u64, usize),
    mode: u64,
    device: u64,
) -> Answer {
    let kind = match mode & S_IFMT {
        0 | S_IFREG => Ok(Kind::Regular),
        S_IFIFO => Ok(Kind::NamedPipe),
        S_IFSOCK => Ok(Kind::NamedSocket),
        S_IFCHR => Ok(Kind::CharacterDevice),
        S_IFBLK => Ok(Kind::BlockDevice),
        S_IFDIR => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    };
    with_path(thread, call, at, Follow::Nothing, After::Nothing, |thread, from, path| {
        let object = (kind?, device);
        on_tree(thread, from, |call, start| names::make_node(call.objects(), start, path, object, mode as u32))
            .map(|()| 0)
    })
}

/// symlink, symlinkat. What the link leads to is not looked at, but for whether it is outside.
pub(crate) fn symlink(thread: &mut Thread, call: (u64, [u64; 6]), target: u64, at: (u64, usize)) -> Answer {
    with_path(thread, call, at, Follow::Nothing, After::Nothing, |thread, from, path| {
        let mut buffer: Buffer = [0; MAX_PATH_BYTES];
        let target = guarded::read_text(&mut buffer, target)?;
        let is_inside = target.first() != Some(&b'/') && !target.starts_with(b"..")
            || target.starts_with(instance::control().mount_point());
        if !is_inside {
            instance::control().note_link_out();
        }
        on_tree(thread, from, |call, start| names::symlink(call.objects(), target, start, path)).map(|()| 0)
    })
}

/// readlink, readlinkat.
pub(crate) fn read_link(thread: &mut Thread, call: (u64, [u64; 6]), at: (u64, usize), room: (u64, u64)) -> Answer {
    let mut buffer: Buffer = [0; MAX_PATH_BYTES];
    if let Ok(path) = paths::read(&mut buffer, call.1[at.1])
        && let Some(answer) = read_link_of_process(thread, path, room)
    {
        return answer;
    }
    with_path(thread, call, at, Follow::Nothing, After::Nothing, |thread, from, path| {
        let mut copy: Buffer = [0; MAX_PATH_BYTES];
        let length = on_tree(thread, from, |call, start| {
            if path.is_empty()
                && let From::Number(number) | From::Itself(number) = from
            {
                let target = handles::read_link_of(call, number)?;
                copy[..target.len()].copy_from_slice(target);
                return Ok(target.len());
            }
            let target = names::read_link(call.objects(), start, path)?;
            copy[..target.len()].copy_from_slice(target);
            Ok(target.len())
        })?;
        give(&copy[..length], room)
    })
}

/// Gives bytes to a program, as many as it has room for.
fn give(bytes: &[u8], (to, room): (u64, u64)) -> Result<u64, Errno> {
    if room as i64 <= 0 {
        return Err(Errno::EINVAL);
    }
    let length = bytes.len().min(room as usize);
    guarded::write_bytes(to, &bytes[..length])?;
    Ok(length as u64)
}

/// What `/proc/self` says of the program, the working directory, and numbers that are ours.
fn read_link_of_process(thread: &mut Thread, path: &[u8], room: (u64, u64)) -> Option<Answer> {
    let home = thread.home();
    if path == b"/proc/self/exe" || is_exe_of_this_process(path) {
        if home.program() == paths::PROGRAM_PATH {
            return Some(Answer::of(describe(thread, paths::PROGRAM_NUMBER, room)));
        }
        return Some(Answer::of(give(home.program(), room)));
    }
    if path == b"/proc/self/cwd" && home.works_inside.load(Ordering::Relaxed) {
        let mut buffer: Buffer = [0; MAX_PATH_BYTES];
        return Some(Answer::of(working_directory(thread, &mut buffer).and_then(|path| give(path, room))));
    }
    let number = paths::number_in(path)?;
    if home.numbers.is_ours(u64::from(number)) {
        return Some(Answer::of(describe(thread, number, room)));
    }
    let inode = stand_ins::inode_behind(u64::from(number))?;
    Some(Answer::of(give_description(inode, room)))
}

/// Tells of what a number of ours leads to. A description does not know its name: as Linux shows what has none.
fn describe(thread: &Thread, number: u32, room: (u64, u64)) -> Result<u64, Errno> {
    let inode = instance::call(thread, |call| Ok(call.objects().number(data::node(call, number)?)?.0))?;
    give_description(inode, room)
}

fn give_description(inode: u64, room: (u64, u64)) -> Result<u64, Errno> {
    let mut buffer: Buffer = [0; MAX_PATH_BYTES];
    let length = described(&mut buffer, instance::control().mount_point(), inode);
    give(&buffer[..length], room)
}

/// `TOP/#NUMBER (deleted)`.
fn described(buffer: &mut Buffer, top: &[u8], inode: u64) -> usize {
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        let end = (length + bytes.len()).min(MAX_PATH_BYTES);
        buffer[length..end].copy_from_slice(&bytes[..end - length]);
        length = end;
    };
    put(top);
    put(b"/#");
    put(Decimal::of(inode).digits());
    put(b" (deleted)");
    length
}

fn is_exe_of_this_process(path: &[u8]) -> bool {
    let Some(digits) = path.strip_prefix(b"/proc/").and_then(|rest| rest.strip_suffix(b"/exe")) else { return false };
    let is_number = !digits.is_empty() && digits.len() < 9 && digits.iter().all(u8::is_ascii_digit);
    let number = digits.iter().fold(0, |number: i64, digit| number * 10 + i64::from(digit.wrapping_sub(b'0')));
    is_number && number == system::call(number::GETPID, [0; 6])
}

fn working_directory<'b>(thread: &Thread, buffer: &'b mut Buffer) -> Result<&'b [u8], Errno> {
    let length =
        instance::call(thread, |call| directories::working_directory_path(call.objects(), buffer).map(<[u8]>::len))?;
    // It stands at the end.
    Ok(&buffer[MAX_PATH_BYTES - length..])
}

/// getcwd.
pub(crate) fn current_directory(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    if !thread.home().works_inside.load(Ordering::Relaxed) {
        return Answer::issue(thread, call.0, call.1, After::Nothing);
    }
    let (to, room) = (call.1[0], call.1[1]);
    let mut buffer: Buffer = [0; MAX_PATH_BYTES];
    Answer::of(working_directory(thread, &mut buffer).and_then(|path| {
        if path.len() as u64 + 1 > room {
            return Err(Errno::ERANGE);
        }
        guarded::write_bytes(to, path)?;
        guarded::write_bytes(to + path.len() as u64, &[0])?;
        Ok(path.len() as u64 + 1)
    }))
}

/// The kernel's working directory of who works in the tree is the directory that the tree hides.
fn work_inside(thread: &mut Thread) {
    let home = thread.home();
    if !home.works_inside.swap(true, Ordering::Relaxed) {
        let top = paths::for_kernel(thread.room(), instance::control().mount_point());
        system::call(number::CHDIR, [top, 0, 0, 0, 0, 0]);
    }
}

/// chdir.
pub(crate) fn change_directory(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    let at = (paths::WORKING_DIRECTORY, 0);
    with_path(thread, call, at, Follow::Symlinks, After::WorksOutside, |thread, from, path| {
        on_tree(thread, from, |call, start| directories::change_directory(call.objects(), start, path))?;
        work_inside(thread);
        Ok(0)
    })
}

/// fchdir.
pub(crate) fn change_directory_to(thread: &mut Thread, call: (u64, [u64; 6])) -> Answer {
    if !thread.home().numbers.is_ours(call.1[0]) {
        return Answer::issue(thread, call.0, call.1, After::WorksOutside);
    }
    let number = call.1[0] as u32;
    let changed = instance::call(thread, |call| {
        let node = data::node(call, number)?;
        directories::change_directory_to(call.objects(), node)
    });
    Answer::of(changed.map(|()| {
        work_inside(thread);
        0
    }))
}

/// Two paths of a call, each with its directory: both in the tree by `ours`, both elsewhere by the kernel.
fn with_two_paths(
    thread: &mut Thread,
    (number, mut arguments): (u64, [u64; 6]),
    (old_at, new_at): ((u64, usize), (u64, usize)),
    mut ours: impl FnMut(&mut Thread, (From, &[u8]), (From, &[u8])) -> Result<u64, Errno>,
) -> Answer {
    let (mut first, mut second): (Buffer, Buffer) = ([0; MAX_PATH_BYTES], [0; MAX_PATH_BYTES]);
    let (old, new) = (paths::read(&mut first, arguments[old_at.1]), paths::read(&mut second, arguments[new_at.1]));
    // The kernel would look for the one that can be read first, and not in the tree.
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(errno), _) | (_, Err(errno)) => return Answer::error(errno),
    };
    let places = paths::place(thread, old_at.0, old).and_then(|old| Ok((old, paths::place(thread, new_at.0, new)?)));
    match places {
        Err(errno) => Answer::error(errno),
        Ok((Place::Tree(old_from, old), Place::Tree(new_from, new))) => {
            Answer::of(ours(thread, (old_from, old), (new_from, new)))
        }
        Ok((Place::Tree(from, old), _)) => {
            let exists = on_tree(thread, from, |call, start| {
                let nothing = scalefs::attributes::Access::EXISTS;
                scalefs::attributes::access(call.objects(), start, old, Follow::Nothing, nothing)
            });
            Answer::error(exists.err().unwrap_or(Errno::EXDEV))
        }
        Ok((_, Place::Tree(..))) => Answer::error(Errno::EXDEV),
        Ok((old, new)) => {
            for (place, index) in [(old, old_at.1), (new, new_at.1)] {
                if let Place::KernelAt(path) = place {
                    arguments[index] = paths::for_kernel(thread.room(), path);
                }
            }
            Answer::issue(thread, number, arguments, After::Nothing)
        }
    }
}

/// rename, renameat, renameat2.
pub(crate) fn rename(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    places: ((u64, usize), (u64, usize)),
    flags: u64,
) -> Answer {
    with_two_paths(thread, call, places, |thread, (old_from, old), (new_from, new)| {
        let mode = match flags {
            0 => RenameMode::Replace,
            1 => RenameMode::NoReplace,
            2 => RenameMode::Exchange,
            _ => return Err(Errno::EINVAL),
        };
        instance::call(thread, |call| {
            let (old_start, new_start) = (paths::start(call, old_from)?, paths::start(call, new_from)?);
            names::rename(call.objects(), (old_start, old), (new_start, new), mode)
        })
        .map(|()| 0)
    })
}

/// link, linkat.
pub(crate) fn link(
    thread: &mut Thread,
    call: (u64, [u64; 6]),
    places: ((u64, usize), (u64, usize)),
    flags: u64,
) -> Answer {
    let (old, new) = places;
    if flags & AT_EMPTY_PATH != 0
        && attributes::without_path(thread, old.0, call.1[old.1], flags) == Some(WithoutPath::Kernels)
        && let Some(handle) = stand_ins::handle_behind(thread, old.0)
    {
        // A pipe of the tree.
        return with_path(thread, call, new, Follow::Nothing, After::Nothing, |thread, from, path| {
            on_tree(thread, from, |call, start| {
                handles::link_object(call.objects(), data::node(call, handle)?, (start, path))
            })
            .map(|()| 0)
        });
    }
    with_two_paths(thread, call, places, |thread, (old_from, old), (new_from, new)| {
        let follow = if flags & AT_SYMLINK_FOLLOW != 0 { Follow::Symlinks } else { Follow::Nothing };
        let of_number = match old_from {
            From::Itself(number) => Some(number),
            From::Number(number) if old.is_empty() && flags & AT_EMPTY_PATH != 0 => Some(number),
            _ => None,
        };
        instance::call(thread, |call| {
            let new_start = paths::start(call, new_from)?;
            match of_number {
                Some(number) => handles::link_object(call.objects(), data::node(call, number)?, (new_start, new)),
                None => {
                    let old_start = paths::start(call, old_from)?;
                    names::link(call.objects(), (old_start, old), (new_start, new), follow)
                }
            }
        })
        .map(|()| 0)
    })
}
