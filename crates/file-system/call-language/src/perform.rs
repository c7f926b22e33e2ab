//! The calls on an implementation of the border.

use posix_calls::attributes::{self, Access};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::{
    Attributes, DataOperations, Errno, Fields, Follow, Kind, NumberChoice, ObjectOperations, OnExec, OpenFlags, Start,
    StatusFlags,
};
use posix_calls::{directories, handles, names};

use crate::calls::{Answer, Operation};
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

fn follow(follow: bool) -> Follow {
    if follow { Follow::Symlinks } else { Follow::Nothing }
}

/// Makes a call.
///
/// # Errors
/// Those of the call.
pub fn perform<D: DataOperations>(call: &D, operation: &Operation) -> Result<Answer, Errno> {
    let verbs = call.objects();
    let at = Start::WorkingDirectory;
    let done = |()| Answer::Done;
    match operation {
        Operation::Open(path, flags, mode) => {
            let fd = data::open(call, at, path.as_bytes(), *flags, *mode, DescriptorOptions::PLAIN)?;
            data::close(call, fd).map(done)
        }
        Operation::MakeDirectory(path, mode) => {
            directories::make_directory(verbs, at, path.as_bytes(), *mode).map(done)
        }
        Operation::RemoveDirectory(path) => directories::remove_directory(verbs, at, path.as_bytes()).map(done),
        Operation::Symlink(target, path) => names::symlink(verbs, target.as_bytes(), at, path.as_bytes()).map(done),
        Operation::ReadLink(path) => {
            names::read_link(verbs, at, path.as_bytes()).map(|target| Answer::Text(target.as_ref().to_vec()))
        }
        Operation::Link(old, new, follows) => {
            names::link(verbs, (at, old.as_bytes()), (at, new.as_bytes()), follow(*follows)).map(done)
        }
        Operation::Unlink(path) => names::unlink(verbs, at, path.as_bytes()).map(done),
        Operation::Rename(old, new, mode) => {
            names::rename(verbs, (at, old.as_bytes()), (at, new.as_bytes()), *mode).map(done)
        }
        Operation::Stat(path, follows) => {
            let status = attributes::stat(verbs, at, path.as_bytes(), follow(*follows), Fields::ALL)?;
            Ok(answer_status(&status))
        }
        Operation::Access(path, bits) => {
            let wanted = Access { read: bits & 4 != 0, write: bits & 2 != 0, execute: bits & 1 != 0 };
            attributes::access(verbs, at, path.as_bytes(), Follow::Symlinks, wanted).map(done)
        }
        Operation::ChangeMode(path, mode) => attributes::change_mode(verbs, at, path.as_bytes(), *mode).map(done),
        Operation::ChangeOwner(path, follows, user, group) => {
            attributes::change_owner(verbs, at, path.as_bytes(), follow(*follows), (*user, *group)).map(done)
        }
        Operation::ChangeDirectory(path) => {
            directories::change_directory(verbs, at, path.as_bytes())?;
            Ok(Answer::Done)
        }
        Operation::WorkingDirectory => {
            let mut buffer = [0; 4096];
            directories::working_directory_path(verbs, &mut buffer).map(|path| Answer::Text(path.to_vec()))
        }
        Operation::List(path) => {
            let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
            let node = names::open(verbs, at, path.as_bytes(), flags, 0)?.handle;
            let mut listed = Vec::new();
            directories::read_directory(verbs, verbs.held(&node), 0, |entry| {
                listed.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.kind as u8));
                true
            })?;
            names::close(verbs, node);
            listed.retain(|(name, _)| name != "." && name != "..");
            listed.sort();
            Ok(Answer::Names(listed))
        }
        Operation::Data(operation) => perform_data(call, operation),
        Operation::DirectoryLinks(path) => {
            let status = attributes::stat(verbs, at, path.as_bytes(), Follow::Symlinks, Fields::LINK_COUNT)?;
            Ok(Answer::Text(status.link_count.to_string().into_bytes()))
        }
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

fn perform_data<D: DataOperations>(verbs: &D, operation: &DataOperation) -> Result<Answer, Errno> {
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
            attributes::change_mode_of(verbs.objects(), handles::node_to_change(verbs, *fd)?, *mode).map(done)
        }
        DataOperation::Contents(path, offset) => {
            let fd = data::open(verbs, at, path.as_bytes(), OpenFlags::READ, 0, options)?;
            let outcome = bytes_read(WINDOW_BYTES, |buffer| data::read_at(verbs, fd, buffer, *offset));
            data::close(verbs, fd)?;
            outcome
        }
    }
}
