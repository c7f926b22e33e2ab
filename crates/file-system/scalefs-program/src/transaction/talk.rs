//! What a program in a transaction and the server of its mount say to each other.
//!
//! ```text
//! ─► the open /dev/fuse of a mount      ◄─ "ready", or "failed" and why
//! ─► "commit" or "abort"                ◄─ "done", "undone", "refused" and by what, or "failed" and why
//! ```
//! A line each, but for the first, which is a byte. Both sides ask the system who the other one is.

use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use scalefs::Decision;

use crate::door::Ending;

const READY: &str = "ready";
const FAILED: &str = "failed ";
const REFUSED: &str = "refused ";
/// A line is shorter.
const LONGEST_LINE_BYTES: u64 = 1 << 16;
/// Comes with the open file.
const MOUNTED: u8 = b'm';

/// Under which name the server that is a process listens.
pub(super) fn address(server: i32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("scalefs-mount/{server}"))
}

/// Hands the open device of a mount over.
pub(super) fn hand_over(stream: &UnixStream, device: impl AsFd) -> io::Result<()> {
    let descriptors = [device.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(stream, &[IoSlice::new(&[MOUNTED])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The open device of a mount that is handed over; nothing if who has called has gone.
pub(super) fn taken_over(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut first = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

fn line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_LINE_BYTES)).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

pub(super) fn say_ready(mut stream: &UnixStream, is_ready: Result<(), String>) -> io::Result<()> {
    match is_ready {
        Ok(()) => writeln!(stream, "{READY}"),
        Err(why) => writeln!(stream, "{FAILED}{why}"),
    }
}

/// Waits until the server answers requests; why it does not.
pub(super) fn hear_ready(stream: &UnixStream) -> io::Result<Result<(), String>> {
    let said = line(stream)?;
    match said.strip_prefix(FAILED) {
        Some(why) => Ok(Err(why.to_owned())),
        None if said == READY => Ok(Ok(())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Commit => "commit",
        Decision::Abort => "abort",
    }
}

/// What is to become of the transaction: what is said, and nothing without a word.
pub(super) fn hear_decision(stream: &UnixStream) -> Decision {
    match line(stream) {
        Ok(said) if said == word(Decision::Commit) => Decision::Commit,
        _ => Decision::Abort,
    }
}

/// Says what is to become of the transaction.
pub(super) fn say_decision(mut stream: &UnixStream, decision: Decision) -> io::Result<()> {
    writeln!(stream, "{}", word(decision))
}

/// Hears what has become of it.
pub(super) fn hear_ending(stream: &UnixStream) -> io::Result<Heard> {
    let said = line(stream)?;
    match (said.as_str(), said.strip_prefix(REFUSED), said.strip_prefix(FAILED)) {
        ("done", ..) => Ok(Heard::Done),
        ("undone", ..) => Ok(Heard::Undone),
        (_, Some(by), _) => Ok(Heard::Refused(by.to_owned())),
        (_, _, Some(why)) => Ok(Heard::Failed(why.to_owned())),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// An [`Ending`], as it is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Done,
    Undone,
    Refused(String),
    Failed(String),
}

pub(super) fn say_ending(mut stream: &UnixStream, ending: &Ending) -> io::Result<()> {
    match ending {
        Ending::Done => writeln!(stream, "done"),
        Ending::Undone => writeln!(stream, "undone"),
        // Names may have line ends.
        Ending::Refused(by) => writeln!(stream, "{REFUSED}{}", by.escape_debug().to_string().replace("\\'", "'")),
        Ending::Failed(errno) => writeln!(stream, "{FAILED}{}", io::Error::from(*errno)),
    }
}
