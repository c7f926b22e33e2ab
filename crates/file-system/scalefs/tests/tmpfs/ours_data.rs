//! The calls on descriptors and data on ScaleFS.

use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Attributes, DataOperations, Errno, Fields, Kind, NumberChoice, OnExec, OpenFlags, Start, StatusFlags, attributes,
};

use crate::calls::Answer;
use crate::data::{DataOperation, WINDOW_BYTES, bytes};

/// What `stat` tells; for directories without link count and size.
pub fn answer_status(status: &Attributes) -> Answer {
    let is_directory = status.kind == Kind::Directory;
    Answer::Status {
        file: status.number.0,
        kind: status.kind as u8,
        mode: status.mode,
        user: status.user,
        group: status.group,
        links: if is_directory { 0 } else { status.link_count },
        size: if is_directory { 0 } else { status.size_bytes },
    }
}

fn status_flags(append: bool) -> StatusFlags {
    if append { StatusFlags::APPEND | StatusFlags::NONBLOCK } else { StatusFlags::NONBLOCK }
}

/// What a read into a buffer of so many bytes gives.
fn bytes_read(length: usize, read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> Result<Answer, Errno> {
    let mut buffer = vec![0xee; length];
    let count = read(&mut buffer)?;
    buffer.truncate(count);
    Ok(Answer::Text(buffer))
}

pub fn make<D: DataOperations>(verbs: &D, operation: &DataOperation) -> Result<Answer, Errno> {
    let at = Start::WorkingDirectory;
    let done = |()| Answer::Done;
    let number = |number: u32| Answer::Number(number.into());
    let options = DescriptorOptions { status: StatusFlags::NONBLOCK, ..DescriptorOptions::PLAIN };
    match operation {
        DataOperation::Open(path, flags, mode, append) => {
            let options = DescriptorOptions { status: status_flags(*append), ..options };
            data::open(verbs, at, path.as_bytes(), *flags, *mode, options).map(number)
        }
        DataOperation::Pipe => data::pipe(verbs, options).map(|(read, write)| Answer::Two([read, write])),
        DataOperation::Close(fd) => data::close(verbs, *fd).map(done),
        DataOperation::Duplicate(fd, lowest) => {
            data::duplicate(verbs, *fd, NumberChoice::LowestFrom(*lowest), OnExec::Keep).map(number)
        }
        DataOperation::DuplicateTo(fd, target) => data::duplicate_to(verbs, *fd, *target, OnExec::Keep).map(number),
        DataOperation::Read(fd, length) => bytes_read(*length, |buffer| data::read(verbs, *fd, buffer)),
        DataOperation::ReadAt(fd, length, offset) => {
            bytes_read(*length, |buffer| data::read_at(verbs, *fd, buffer, *offset))
        }
        DataOperation::Write(fd, length, fill) => {
            data::write(verbs, *fd, &bytes(*length, *fill)).map(|count| Answer::Number(count as i64))
        }
        DataOperation::WriteAt(fd, length, fill, offset) => {
            let written = data::write_at(verbs, *fd, &bytes(*length, *fill), *offset);
            written.map(|count| Answer::Number(count as i64))
        }
        DataOperation::Seek(fd, offset, whence) => {
            data::seek(verbs, *fd, *offset, *whence).map(|offset| Answer::Number(offset as i64))
        }
        DataOperation::Resize(fd, size) => data::truncate(verbs, *fd, *size).map(done),
        DataOperation::ResizePath(path, size) => data::truncate_path(verbs, at, path.as_bytes(), *size).map(done),
        DataOperation::Flags(fd) => {
            let (mode, status) = data::status(verbs, *fd)?;
            let append = status.contains(StatusFlags::APPEND);
            Ok(Answer::Flags { read: mode.read, write: mode.write, append })
        }
        DataOperation::SetAppend(fd, append) => data::set_status(verbs, *fd, status_flags(*append)).map(done),
        DataOperation::Stat(fd) => data::stat(verbs, *fd, Fields::ALL).map(|status| answer_status(&status)),
        DataOperation::ChangeMode(fd, mode) => {
            attributes::change_mode_of(verbs.objects(), data::node(verbs, *fd)?, *mode).map(done)
        }
        DataOperation::Contents(path, offset) => {
            let fd = data::open(verbs, at, path.as_bytes(), OpenFlags::READ, 0, options)?;
            let outcome = bytes_read(WINDOW_BYTES, |buffer| data::read_at(verbs, fd, buffer, *offset));
            data::close(verbs, fd)?;
            outcome
        }
    }
}
