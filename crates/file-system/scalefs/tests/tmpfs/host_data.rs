//! The calls on descriptors and data on the host. The thread has a table of descriptors of its own, whose numbers start
//! behind those that the process came with.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;

use call_language::{Answer, DataOperation, Outcome, PLANTED, WINDOW_BYTES, bytes};
use scalefs::data::Whence;

use crate::host::{answer_status, c_path, checked, linux_flags};

/// Numbers that the process came with: standard input, output, errors.
const RESERVED: u32 = 3;

fn host_number(fd: u32) -> libc::c_int {
    (fd + RESERVED) as libc::c_int
}

/// Parts this thread's table from that of the process, and closes all that the calls did not come with.
pub fn part_descriptors() {
    // SAFETY: the thread's own table from here on, of which it uses nothing yet.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0, "{}", io::Error::last_os_error());
    close_all();
}

/// Closes what the calls have opened.
pub fn close_all() {
    // SAFETY: the descriptors of this thread's table are the calls'.
    assert_eq!(unsafe { libc::close_range(RESERVED, libc::c_uint::MAX, 0) }, 0);
}

fn numbered(result: impl Into<i64>) -> Outcome {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error().raw_os_error().unwrap()) } else { Ok(Answer::Number(result)) }
}

fn descriptor(result: libc::c_int) -> Outcome {
    match numbered(result)? {
        Answer::Number(number) => Ok(Answer::Number(number - i64::from(RESERVED))),
        answer => Ok(answer),
    }
}

/// What a read into a buffer of so many bytes gives.
fn bytes_read(length: usize, read: impl FnOnce(*mut libc::c_void) -> libc::ssize_t) -> Outcome {
    let mut buffer = vec![0xee; length];
    let Answer::Number(count) = numbered(read(buffer.as_mut_ptr().cast()) as i64)? else { unreachable!() };
    buffer.truncate(count as usize);
    Ok(Answer::Text(buffer))
}

fn contents(path: &CString, offset: i64) -> Outcome {
    // SAFETY: a path that ends with NUL; a buffer of the length that is given; a descriptor of ours.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY);
        checked(fd)?;
        let outcome = bytes_read(WINDOW_BYTES, |buffer| libc::pread(fd, buffer, WINDOW_BYTES, offset));
        libc::close(fd);
        outcome
    }
}

pub fn make(operation: &DataOperation) -> Outcome {
    // SAFETY: paths end with NUL, buffers have room for the lengths that are given with them, and descriptors belong to
    // this thread's table.
    unsafe {
        match operation {
            DataOperation::Open(path, flags, mode, append) => {
                let append = if *append { libc::O_APPEND } else { 0 };
                let flags = linux_flags(*flags) | libc::O_NONBLOCK | append;
                descriptor(libc::open(c_path(path).as_ptr(), flags, *mode))
            }
            DataOperation::Pipe => {
                let mut ends = [0; 2];
                checked(libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK))?;
                Ok(Answer::Two(ends.map(|end| end as u32 - RESERVED)))
            }
            DataOperation::Close(fd) => checked(libc::close(host_number(*fd))),
            DataOperation::Duplicate(fd, lowest) => {
                descriptor(libc::fcntl(host_number(*fd), libc::F_DUPFD, host_number(*lowest)))
            }
            DataOperation::DuplicateTo(fd, target) => descriptor(libc::dup2(host_number(*fd), host_number(*target))),
            DataOperation::Read(fd, length) => {
                bytes_read(*length, |buffer| libc::read(host_number(*fd), buffer, *length))
            }
            DataOperation::ReadAt(fd, length, offset) => {
                bytes_read(*length, |buffer| libc::pread(host_number(*fd), buffer, *length, *offset))
            }
            DataOperation::Write(fd, length, fill) => {
                numbered(libc::write(host_number(*fd), bytes(*length, *fill).as_ptr().cast(), *length) as i64)
            }
            DataOperation::WriteAt(fd, length, fill, offset) => {
                let bytes = bytes(*length, if *fill == PLANTED { 0 } else { *fill });
                numbered(libc::pwrite(host_number(*fd), bytes.as_ptr().cast(), *length, *offset) as i64)
            }
            DataOperation::Seek(fd, offset, whence) => {
                let whence = match whence {
                    Whence::Start => libc::SEEK_SET,
                    Whence::Current => libc::SEEK_CUR,
                    Whence::End => libc::SEEK_END,
                };
                numbered(libc::lseek(host_number(*fd), *offset, whence))
            }
            DataOperation::Resize(fd, size) => checked(libc::ftruncate(host_number(*fd), *size)),
            DataOperation::ResizePath(path, size) => checked(libc::truncate(c_path(path).as_ptr(), *size)),
            DataOperation::Flags(fd) => {
                let flags = libc::fcntl(host_number(*fd), libc::F_GETFL);
                checked(flags)?;
                let access = flags & libc::O_ACCMODE;
                Ok(Answer::Flags {
                    read: access != libc::O_WRONLY,
                    write: access != libc::O_RDONLY,
                    append: flags & libc::O_APPEND != 0,
                })
            }
            DataOperation::SetAppend(fd, append) => {
                let append = if *append { libc::O_APPEND } else { 0 };
                checked(libc::fcntl(host_number(*fd), libc::F_SETFL, libc::O_NONBLOCK | append))
            }
            DataOperation::Stat(fd) => {
                let mut status = MaybeUninit::<libc::stat>::uninit();
                checked(libc::fstat(host_number(*fd), status.as_mut_ptr()))?;
                Ok(answer_status(&status.assume_init()))
            }
            DataOperation::ChangeMode(fd, mode) => checked(libc::fchmod(host_number(*fd), *mode)),
            DataOperation::Contents(path, offset) => contents(&c_path(path), *offset),
        }
    }
}
