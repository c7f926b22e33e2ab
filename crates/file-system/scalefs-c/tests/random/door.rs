//! Calls as values, made by the C library.

use std::ffi::{CString, c_char, c_int, c_void};

use call_language::{Answer, DataOperation, Operation, Outcome, WINDOW_BYTES, bytes};
use scalefs_c::*;

use crate::more::{ATTRIBUTES, More, Target};

/// What a call goes by: a thread's handle, and the process on whose behalf it is.
#[derive(Clone, Copy)]
pub struct Caller {
    pub thread: *mut scalefs_thread,
    pub process: *mut scalefs_process,
    /// Which of two calls that do the same is made: from a directory's descriptor, by a callback, on several buffers.
    pub is_other_way: bool,
}

fn outcome(returned: i64) -> Result<i64, i32> {
    if returned < 0 { Err(i32::try_from(-returned).unwrap()) } else { Ok(returned) }
}

fn int(returned: c_int) -> Result<i64, i32> {
    outcome(i64::from(returned))
}

fn done(returned: c_int) -> Outcome {
    assert!(returned <= 0, "a call that tells nothing returned {returned}");
    int(returned).map(|_| Answer::Done)
}

fn text(path: &str) -> CString {
    CString::new(path).expect("paths are drawn without NUL")
}

fn status() -> scalefs_status {
    scalefs_status { struct_size: size_of::<scalefs_status>() as u32, ..Default::default() }
}

/// A kind that has a name, as `posix_calls::Kind` numbers them.
fn kind(mode: u32) -> u8 {
    match mode & 0o170_000 {
        0o100_000 => 0,
        0o120_000 => 1,
        0o040_000 => 2,
        0o010_000 => 6,
        0o140_000 => 10,
        0o020_000 => 12,
        0o060_000 => 14,
        other => panic!("a kind of mode {other:o}"),
    }
}

fn told(status: &scalefs_status) -> Answer {
    let kind = kind(status.mode);
    let of_file = |value: u64| if kind == 2 { 0 } else { value };
    Answer::Status {
        file: status.number,
        kind,
        mode: status.mode & 0o7777,
        user: status.user,
        group: status.group,
        links: of_file(status.link_count.into()) as u32,
        size: of_file(status.size_bytes),
    }
}

unsafe extern "C" fn count(_: *const c_char, _: usize, _: u64, names: *mut c_void) -> c_int {
    // SAFETY: the argument is a number.
    unsafe { *names.cast::<usize>() += 1 };
    1
}

const CWD: c_int = SCALEFS_AT_CWD;
const PATH_BYTES: usize = 4097;

impl Caller {
    /// Makes a call.
    pub fn make(self, operation: &Operation) -> Outcome {
        let Caller { thread, process, is_other_way } = self;
        // SAFETY: handles are in use by this thread alone, as the test's threads take turns; strings end with NUL and buffers
        // have the room that is said.
        unsafe {
            match operation {
                Operation::Open(path, flags, mode) => {
                    let fd = self.open(path, flags.bits(), *mode)?;
                    done(scalefs_close(thread, process, fd))
                }
                Operation::MakeDirectory(path, mode) => done(match is_other_way {
                    true => scalefs_mkdirat(thread, process, CWD, text(path).as_ptr(), *mode),
                    false => scalefs_mkdir(thread, process, text(path).as_ptr(), *mode),
                }),
                Operation::RemoveDirectory(path) => done(match is_other_way {
                    true => scalefs_unlinkat(thread, process, CWD, text(path).as_ptr(), SCALEFS_REMOVE_DIRECTORY),
                    false => scalefs_rmdir(thread, process, text(path).as_ptr()),
                }),
                Operation::Symlink(target, path) => done(match is_other_way {
                    true => scalefs_symlinkat(thread, process, text(target).as_ptr(), CWD, text(path).as_ptr()),
                    false => scalefs_symlink(thread, process, text(target).as_ptr(), text(path).as_ptr()),
                }),
                Operation::ReadLink(path) => {
                    let mut target = vec![0_u8; PATH_BYTES];
                    let (path, into) = (text(path), target.as_mut_ptr().cast());
                    let length = outcome(match is_other_way {
                        true => scalefs_readlinkat(thread, process, CWD, path.as_ptr(), into, PATH_BYTES),
                        false => scalefs_readlink(thread, process, path.as_ptr(), into, PATH_BYTES),
                    })?;
                    target.truncate(length as usize);
                    Ok(Answer::Text(target))
                }
                Operation::Link(old, new, follows) => {
                    let (old, new) = (text(old), text(new));
                    done(match !follows && !is_other_way {
                        true => scalefs_link(thread, process, old.as_ptr(), new.as_ptr()),
                        false => {
                            scalefs_linkat(thread, process, CWD, old.as_ptr(), CWD, new.as_ptr(), c_int::from(*follows))
                        }
                    })
                }
                Operation::Unlink(path) => done(match is_other_way {
                    true => scalefs_unlinkat(thread, process, CWD, text(path).as_ptr(), 0),
                    false => scalefs_unlink(thread, process, text(path).as_ptr()),
                }),
                Operation::Rename(old, new, mode) => {
                    let (old, new, mode) = (text(old), text(new), *mode as u32);
                    done(match is_other_way {
                        true => scalefs_renameat(thread, process, CWD, old.as_ptr(), CWD, new.as_ptr(), mode),
                        false => scalefs_rename(thread, process, old.as_ptr(), new.as_ptr(), mode),
                    })
                }
                Operation::Stat(path, follows) => {
                    let (path, follows, mut status) = (text(path), c_int::from(*follows), status());
                    done(match is_other_way {
                        true => scalefs_statat(thread, process, CWD, path.as_ptr(), follows, SCALEFS_ALL, &mut status),
                        false => scalefs_stat(thread, process, path.as_ptr(), follows, SCALEFS_ALL, &mut status),
                    })?;
                    Ok(told(&status))
                }
                Operation::Access(path, bits) => done(match is_other_way {
                    true => scalefs_accessat(thread, process, CWD, text(path).as_ptr(), 1, *bits),
                    false => scalefs_access(thread, process, text(path).as_ptr(), *bits),
                }),
                Operation::ChangeMode(path, mode) => done(match is_other_way {
                    true => scalefs_chmodat(thread, process, CWD, text(path).as_ptr(), *mode),
                    false => scalefs_chmod(thread, process, text(path).as_ptr(), *mode),
                }),
                Operation::ChangeOwner(path, follows, user, group) => {
                    let (path, given) = (text(path), |id: &Option<u32>| id.unwrap_or(SCALEFS_SAME_ID));
                    let (user, group) = (given(user), given(group));
                    done(scalefs_chownat(thread, process, CWD, path.as_ptr(), c_int::from(*follows), user, group))
                }
                Operation::ChangeDirectory(path) => done(scalefs_chdir(thread, process, text(path).as_ptr())),
                Operation::WorkingDirectory => {
                    let mut path = vec![0_u8; PATH_BYTES];
                    let length = outcome(scalefs_getcwd(thread, process, path.as_mut_ptr().cast(), PATH_BYTES))?;
                    assert_eq!(path[length as usize - 1], 0);
                    path.truncate(length as usize - 1);
                    Ok(Answer::Text(path))
                }
                Operation::List(path) => {
                    let fd = self.open(path, SCALEFS_READ | SCALEFS_DIRECTORY, 0)?;
                    let names = self.list(fd);
                    assert_eq!(scalefs_close(thread, process, fd), 0);
                    let (mut cookie, mut counted) = (0, 0_usize);
                    let (path, argument) = (text(path), (&raw mut counted).cast());
                    let listed = scalefs_list(thread, process, path.as_ptr(), &mut cookie, Some(count), argument);
                    let names = names?;
                    assert_eq!((listed, counted), (0, names.len()), "a listing by path has as many names");
                    Ok(without_dots(names))
                }
                Operation::Data(operation) => self.data(operation),
                Operation::DirectoryLinks(_) => unreachable!("never drawn"),
            }
        }
    }

    /// Makes a call that only C and this test know.
    pub fn make_more(self, operation: &More) -> Outcome {
        let Caller { thread, process, .. } = self;
        let number = |returned| int(returned).map(Answer::Number);
        // SAFETY: as in `make`.
        unsafe {
            match *operation {
                More::Mask(mask) => number(scalefs_umask(thread, process, mask)),
                More::EnterDescriptor(fd) => done(scalefs_fchdir(thread, process, fd as c_int)),
                More::ChangeOwnerOf(fd, user) => {
                    done(scalefs_fchown(thread, process, fd as c_int, user, SCALEFS_SAME_ID))
                }
                More::SetTimes(fd, time_ns) => {
                    let which = SCALEFS_SET_ACCESSED | SCALEFS_SET_MODIFIED;
                    done(scalefs_futimens(thread, process, fd as c_int, time_ns, time_ns + 1, which))
                }
                More::Times(fd) => {
                    let mut status = status();
                    done(scalefs_fstatx(thread, process, fd as c_int, SCALEFS_ALL, &mut status))?;
                    Ok(Answer::Text(format!("{} {}", status.accessed_ns, status.modified_ns).into_bytes()))
                }
                More::SetCloses(fd, closes) => {
                    done(scalefs_fcntl(thread, process, fd as c_int, SCALEFS_SET_ON_EXEC, closes.into()))
                }
                More::Closes(fd) => number(scalefs_fcntl(thread, process, fd as c_int, SCALEFS_GET_ON_EXEC, 0)),
                More::ListDescriptor(fd) => {
                    outcome(scalefs_seek(thread, process, fd as c_int, 0, 0))?;
                    self.list(fd as c_int).map(without_dots)
                }
                More::MakeNode(ref path, mode, device) => {
                    done(scalefs_mknodat(thread, process, CWD, text(path).as_ptr(), mode, device))
                }
                More::Device(ref path) => {
                    let mut status = status();
                    done(scalefs_stat(thread, process, text(path).as_ptr(), 1, 0, &mut status))?;
                    Ok(Answer::Number(status.device as i64))
                }
                More::OpenHandle(ref path, follows) => {
                    let flags = SCALEFS_HANDLE | if follows { 0 } else { SCALEFS_NO_FOLLOW };
                    self.open(path, flags, 0).map(|fd| Answer::Number(fd.into()))
                }
                More::OpenTemporary(ref path, mode) => {
                    let flags = SCALEFS_TEMPORARY | SCALEFS_READ | SCALEFS_WRITE | SCALEFS_NONBLOCK;
                    self.open(path, flags, mode).map(|fd| Answer::Number(fd.into()))
                }
                More::LinkObject(fd, ref path) => {
                    let path = text(path);
                    let how = SCALEFS_EMPTY_PATH;
                    done(scalefs_linkat(thread, process, fd as c_int, std::ptr::null(), CWD, path.as_ptr(), how))
                }
                More::SetAttribute(ref target, name, size, flags) => {
                    let ((directory, path, follow), value) = (of(target), vec![7_u8; size]);
                    let (name, value) = (text(ATTRIBUTES[name]), value.as_ptr().cast());
                    let (path, name) = (path.as_ptr(), name.as_ptr());
                    done(scalefs_setxattrat(thread, process, directory, path, follow, name, value, size, flags))
                }
                More::Attribute(ref target, name, room) => {
                    let ((directory, path, follow), mut value) = (of(target), vec![0_u8; room]);
                    let (name, start) = (text(ATTRIBUTES[name]), value.as_mut_ptr().cast());
                    let (path, name) = (path.as_ptr(), name.as_ptr());
                    let read = scalefs_getxattrat(thread, process, directory, path, follow, name, start, room);
                    outcome(read).map(|read| super::more::told(value, read as usize))
                }
                More::Attributes(ref target, room) => {
                    let ((directory, path, follow), mut names) = (of(target), vec![0_u8; room]);
                    let start = names.as_mut_ptr().cast();
                    let read = scalefs_listxattrat(thread, process, directory, path.as_ptr(), follow, start, room);
                    outcome(read).map(|read| super::more::told(names, read as usize))
                }
                More::RemoveAttribute(ref target, name) => {
                    let (directory, path, follow) = of(target);
                    let name = text(ATTRIBUTES[name]);
                    done(scalefs_removexattrat(thread, process, directory, path.as_ptr(), follow, name.as_ptr()))
                }
                More::Allocate(fd, mode, offset, length) => {
                    done(scalefs_fallocate(thread, process, fd as c_int, mode, offset, length))
                }
                More::Exec => done(scalefs_exec(thread, process)),
            }
        }
    }

    fn open(self, path: &str, flags: u32, mode: u32) -> Result<c_int, i32> {
        let Caller { thread, process, is_other_way } = self;
        // SAFETY: as in `make`.
        let opened = unsafe {
            match is_other_way {
                true => scalefs_openat(thread, process, CWD, text(path).as_ptr(), flags, mode),
                false => scalefs_open(thread, process, text(path).as_ptr(), flags, mode),
            }
        };
        int(opened).map(|fd| fd as c_int)
    }

    /// All names from where a descriptor is, with their kinds.
    fn list(self, fd: c_int) -> Result<Vec<(String, u8)>, i32> {
        let mut names = Vec::new();
        // Room for one long name, or for several short ones.
        let mut buffer = [0_u64; 40];
        loop {
            let room = size_of_val(&buffer);
            // SAFETY: as in `make`.
            let got =
                outcome(unsafe { scalefs_getdents(self.thread, self.process, fd, buffer.as_mut_ptr().cast(), room) })?;
            if got == 0 {
                return Ok(names);
            }
            let mut at = 0;
            while at < got as usize {
                // SAFETY: a record begins here, whose name ends with NUL within the buffer.
                let (entry, name) = unsafe {
                    let start = buffer.as_ptr().cast::<u8>().add(at);
                    let name = start.add(std::mem::offset_of!(scalefs_entry, name));
                    (start.cast::<scalefs_entry>().read_unaligned(), std::ffi::CStr::from_ptr(name.cast()))
                };
                names.push((name.to_str().unwrap().to_owned(), kind(u32::from(entry.kind) << 12)));
                at += usize::from(entry.record_size);
            }
        }
    }

    fn read(self, fd: c_int, length: usize, offset: Option<i64>) -> Outcome {
        let Caller { thread, process, is_other_way } = self;
        let mut buffer = vec![0xee_u8; length];
        let half = length / 2;
        let start: *mut c_void = buffer.as_mut_ptr().cast();
        // SAFETY: as in `make`; the buffers are two parts of one.
        let count = outcome(unsafe {
            let parts = [(0, half), (half, length - half)];
            let parts = parts.map(|(at, size)| scalefs_buffer { start: start.byte_add(at), size });
            match (is_other_way, offset) {
                (false, None) => scalefs_read(thread, process, fd, start, length),
                (false, Some(offset)) => scalefs_pread(thread, process, fd, start, length, offset),
                (true, None) => scalefs_readv(thread, process, fd, parts.as_ptr(), 2),
                (true, Some(offset)) => scalefs_preadv(thread, process, fd, parts.as_ptr(), 2, offset),
            }
        })?;
        buffer.truncate(count as usize);
        Ok(Answer::Text(buffer))
    }

    fn write(self, fd: c_int, written: &[u8], offset: Option<i64>) -> Outcome {
        let Caller { thread, process, is_other_way } = self;
        let (start, length) = (written.as_ptr().cast::<c_void>(), written.len());
        // SAFETY: as in `read`.
        outcome(unsafe {
            let parts = [(0, length / 2), (length / 2, length - length / 2)];
            let parts = parts.map(|(at, size)| scalefs_buffer { start: start.byte_add(at).cast_mut(), size });
            match (is_other_way, offset) {
                (false, None) => scalefs_write(thread, process, fd, start, length),
                (false, Some(offset)) => scalefs_pwrite(thread, process, fd, start, length, offset),
                (true, None) => scalefs_writev(thread, process, fd, parts.as_ptr(), 2),
                (true, Some(offset)) => scalefs_pwritev(thread, process, fd, parts.as_ptr(), 2, offset),
            }
        })
        .map(Answer::Number)
    }

    fn data(self, operation: &DataOperation) -> Outcome {
        let Caller { thread, process, is_other_way } = self;
        let flags = |appends: bool| SCALEFS_NONBLOCK | if appends { SCALEFS_APPEND } else { 0 };
        let number = |returned| int(returned).map(Answer::Number);
        // SAFETY: as in `make`.
        unsafe {
            match operation {
                DataOperation::Open(path, open, mode, appends) => {
                    self.open(path, open.bits() | flags(*appends), *mode).map(|fd| Answer::Number(fd.into()))
                }
                DataOperation::Pipe => {
                    let mut ends = [0; 2];
                    done(scalefs_pipe(thread, process, ends.as_mut_ptr(), SCALEFS_NONBLOCK))?;
                    Ok(Answer::Two(ends.map(|end| end as u32)))
                }
                DataOperation::Close(fd) => done(scalefs_close(thread, process, *fd as c_int)),
                DataOperation::Duplicate(fd, 0) if is_other_way => number(scalefs_dup(thread, process, *fd as c_int)),
                DataOperation::Duplicate(fd, lowest) => {
                    number(scalefs_fcntl(thread, process, *fd as c_int, SCALEFS_DUPLICATE, *lowest))
                }
                DataOperation::DuplicateTo(fd, target) => number(match is_other_way && fd != target {
                    true => scalefs_dup3(thread, process, *fd as c_int, *target as c_int, 0),
                    false => scalefs_dup2(thread, process, *fd as c_int, *target as c_int),
                }),
                DataOperation::Read(fd, length) => self.read(*fd as c_int, *length, None),
                DataOperation::ReadAt(fd, length, offset) => self.read(*fd as c_int, *length, Some(*offset)),
                DataOperation::Write(fd, length, fill) => self.write(*fd as c_int, &bytes(*length, *fill), None),
                DataOperation::WriteAt(fd, length, fill, offset) => {
                    self.write(*fd as c_int, &bytes(*length, *fill), Some(*offset))
                }
                DataOperation::Seek(fd, offset, whence) => {
                    let whence = *whence as c_int;
                    outcome(scalefs_seek(thread, process, *fd as c_int, *offset, whence)).map(Answer::Number)
                }
                DataOperation::Resize(fd, size) => done(scalefs_truncate(thread, process, *fd as c_int, *size)),
                DataOperation::ResizePath(path, size) => {
                    done(scalefs_truncateat(thread, process, CWD, text(path).as_ptr(), *size))
                }
                DataOperation::Flags(fd) => {
                    let flags = int(scalefs_fcntl(thread, process, *fd as c_int, SCALEFS_GET_FLAGS, 0))? as u32;
                    let has = |flag: u32| flags & flag != 0;
                    Ok(Answer::Flags {
                        read: has(SCALEFS_READ),
                        write: has(SCALEFS_WRITE),
                        append: has(SCALEFS_APPEND),
                    })
                }
                DataOperation::SetAppend(fd, appends) => {
                    done(scalefs_fcntl(thread, process, *fd as c_int, SCALEFS_SET_FLAGS, flags(*appends)))
                }
                DataOperation::Stat(fd) => {
                    let mut status = status();
                    done(scalefs_fstatx(thread, process, *fd as c_int, SCALEFS_ALL, &mut status))?;
                    let told = told(&status);
                    let flags = int(scalefs_fcntl(thread, process, *fd as c_int, SCALEFS_GET_FLAGS, 0))? as u32;
                    Ok(match told {
                        // A pipe that has no name, unless the descriptor only stands for one that has.
                        Answer::Status { file, kind: 6, mode, user, group, links, size }
                            if flags & SCALEFS_HANDLE == 0 =>
                        {
                            Answer::Status { file, kind: 4, mode, user, group, links, size }
                        }
                        told => told,
                    })
                }
                DataOperation::ChangeMode(fd, mode) => done(scalefs_fchmod(thread, process, *fd as c_int, *mode)),
                DataOperation::Contents(path, offset) => {
                    let fd = self.open(path, SCALEFS_READ, 0)?;
                    let read = self.read(fd, WINDOW_BYTES, Some(*offset));
                    done(scalefs_close(thread, process, fd))?;
                    read
                }
            }
        }
    }
}

/// What an attribute is of, as the library wants it.
fn of(target: &Target) -> (c_int, std::ffi::CString, c_int) {
    match target {
        Ok((path, follows)) => (CWD, text(path), c_int::from(*follows)),
        Err(fd) => (*fd as c_int, text(""), SCALEFS_EMPTY_PATH),
    }
}

fn without_dots(mut names: Vec<(String, u8)>) -> Answer {
    names.retain(|(name, _)| name != "." && name != "..");
    names.sort();
    Answer::Names(names)
}
