//! Calls on descriptors that share open file descriptions, on their flags, and on the length of files: `posix`.

use posix_calls::data::{self, Ready};
use posix_calls::{AccessMode, DataOperations, Errno, OnExec, StatusFlags};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::calls;
use crate::values::PAGE_BYTES;

/// Such a call.
#[derive(Debug, Clone, Copy)]
pub enum FileCall {
    /// Of the file at the path.
    Truncate(i64),
    SetLength {
        fd: u32,
        size_bytes: i64,
    },
    Duplicate(u32),
    DuplicateTo {
        fd: u32,
        target: u32,
    },
    OnExec(u32),
    SetOnExec {
        fd: u32,
        on_exec: OnExec,
    },
    Status(u32),
    SetStatus {
        fd: u32,
        status: StatusFlags,
    },
    Poll(u32),
    Synchronize(u32),
}

const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const AT_OFFSET: u64 = 4;

/// What `poll` tells, each a bit.
const READY: [&str; 4] = ["input", "output", "hangup", "error"];

impl FileCall {
    /// Makes the call; returns a descriptor, flags as a number, or nothing.
    ///
    /// # Errors
    /// Those of the call.
    pub fn perform<D: DataOperations>(self, process: &D, path: &[u8]) -> Result<Option<u64>, Errno> {
        let done = |()| None;
        match self {
            Self::Truncate(size_bytes) => calls::truncate(process, path, size_bytes).map(done),
            Self::SetLength { fd, size_bytes } => calls::ftruncate(process, fd, size_bytes).map(done),
            Self::Duplicate(fd) => calls::dup(process, fd).map(|fd| Some(fd.into())),
            Self::DuplicateTo { fd, target } => calls::dup2(process, fd, target).map(|fd| Some(fd.into())),
            Self::OnExec(fd) => calls::getfd(process, fd).map(|on_exec| Some((on_exec == OnExec::Keep).into())),
            Self::SetOnExec { fd, on_exec } => calls::setfd(process, fd, on_exec).map(done),
            Self::Status(fd) => calls::getfl(process, fd).map(|(mode, status)| Some(flags(mode, status))),
            Self::SetStatus { fd, status } => calls::setfl(process, fd, status).map(done),
            Self::Poll(fd) => calls::poll(process, fd).map(|ready| Some(bits(ready))),
            Self::Synchronize(fd) => calls::fsync(process, fd).map(done),
        }
    }

    /// What the number that came back means to the test.
    pub fn value(self, number: u64) -> Value<'static> {
        match self {
            Self::OnExec(_) => Value::Bool(number != 0),
            Self::Status(_) => Value::Struct(
                [("readable", READABLE), ("writable", WRITABLE), ("at_offset", AT_OFFSET)]
                    .map(|(name, flag)| (name.into(), Value::Bool(number & flag != 0)))
                    .into(),
            ),
            Self::Poll(_) => {
                let told = |(bit, name): (usize, &&'static str)| ((*name).into(), Value::Bool(number >> bit & 1 != 0));
                Value::Struct(READY.iter().enumerate().map(told).collect())
            }
            _ => Value::Int(number.cast_signed()),
        }
    }
}

fn bits(Ready { input, output, hang_up, error }: Ready) -> u64 {
    let told = [input, output, hang_up, error].into_iter().enumerate();
    told.fold(0, |all, (bit, is_so)| all | u64::from(is_so) << bit)
}

fn flags(mode: AccessMode, status: StatusFlags) -> u64 {
    let at_offset = !status.contains(StatusFlags::APPEND);
    [(mode.read, READABLE), (mode.write, WRITABLE), (at_offset, AT_OFFSET)]
        .into_iter()
        .fold(0, |all, (holds, flag)| if holds { all | flag } else { all })
}

/// What a call is; None for any other. The path of `truncate` is its caller's matter.
///
/// # Errors
/// An argument is not of the kind that the call takes.
pub fn prepare(name: &str, arguments: &Arguments<'_>) -> Result<Option<FileCall>, String> {
    let fd = |parameter| crate::values::small(arguments, parameter);
    let length = |parameter| {
        let pages = arguments.number(parameter)?;
        pages.checked_mul(PAGE_BYTES as i64).ok_or_else(|| format!("{pages} pages are more than a file can have"))
    };
    Ok(Some(match name {
        "truncate" => FileCall::Truncate(length(3)?),
        "ftruncate" => FileCall::SetLength { fd: fd(0)?, size_bytes: length(1)? },
        "dup" => FileCall::Duplicate(fd(0)?),
        "dup2" => FileCall::DuplicateTo { fd: fd(0)?, target: fd(1)? },
        "getfd" => FileCall::OnExec(fd(0)?),
        "setfd" => {
            let on_exec = if arguments.flag(1)? { OnExec::Keep } else { OnExec::Close };
            FileCall::SetOnExec { fd: fd(0)?, on_exec }
        }
        "getfl" => FileCall::Status(fd(0)?),
        "setfl" => FileCall::SetStatus { fd: fd(0)?, status: status(arguments.flag(1)?) },
        "poll" => FileCall::Poll(fd(0)?),
        "fsync" => FileCall::Synchronize(fd(0)?),
        _ => return Ok(None),
    }))
}

/// The flags of a description whose writes go where its offset is, or to the end. O_NONBLOCK says nothing of files.
pub fn status(at_offset: bool) -> StatusFlags {
    if at_offset { StatusFlags::NONBLOCK } else { StatusFlags::NONBLOCK | StatusFlags::APPEND }
}

/// The offset, in pages, that the first descriptor is given.
const FIRST_OFFSET: u32 = 64;

/// Gives every open descriptor that tests can name an offset of its own, and then tells the flags and the offset of each.
///
/// # Errors
/// Those of the calls.
pub fn peek_slots<D: DataOperations>(process: &D, open: &[u32]) -> Result<Value<'static>, Errno> {
    for &fd in open {
        let offset = i64::from(FIRST_OFFSET + fd) * PAGE_BYTES as i64;
        match data::seek(process, fd, offset, data::Whence::Start) {
            Ok(_) | Err(Errno::ESPIPE) => {}
            Err(error) => return Err(error),
        }
    }
    let mut views = Vec::new();
    for &fd in open {
        let (_, status) = data::status(process, fd)?;
        let offset = match data::seek(process, fd, 0, data::Whence::Current) {
            Err(Errno::ESPIPE) => 0,
            found => found?,
        };
        views.push(Value::Struct(vec![
            ("fd".into(), Value::Int(fd.into())),
            ("survives_exec".into(), Value::Bool(data::on_exec(process, fd)? == OnExec::Keep)),
            ("at_offset".into(), Value::Bool(!status.contains(StatusFlags::APPEND))),
            ("offset".into(), crate::values::pages_of(offset)),
        ]));
    }
    Ok(Value::Seq(views))
}
