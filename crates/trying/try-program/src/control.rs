//! What the process outside and the first process of the run say to each other, over a socket.
//!
//! ```text
//! inside                                outside
//! MOUNTED + the view's descriptor, ──►  answers the kernel from now on
//!           and /proc's if there is one
//!                                  ◄──  GO
//! STARTED                          ──►  the command runs
//! or FAILED + a line               ──►
//! ```

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::workspace::random_name;

const MOUNTED: u8 = b'M';
const GO: u8 = b'G';
const STARTED: u8 = b'S';
const FAILED: u8 = b'F';
/// A line about a failure is shorter.
const LONGEST_LINE_BYTES: u64 = 1 << 16;

/// The end outside, before the run has called.
#[derive(Debug)]
pub(crate) struct Listener {
    listener: UnixListener,
    /// What the process inside calls.
    pub(crate) name: String,
}

/// What the run says.
#[derive(Debug)]
pub(crate) enum Said {
    Mounted {
        device: OwnedFd,
        /// `/proc` of the run.
        processes: Option<OwnedFd>,
    },
    Started,
    Failed(String),
    /// It has ended without a word.
    Nothing,
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("commutant-try-{name}"))
}

impl Listener {
    pub(crate) fn new() -> io::Result<Listener> {
        let name = format!("{}{}", random_name(), random_name());
        Ok(Listener { listener: UnixListener::bind_addr(&address(&name)?)?, name })
    }

    /// Waits for a process of this user to call; `None` after a time without one.
    pub(crate) fn accept(&self, timeout_ms: u16) -> io::Result<Option<UnixStream>> {
        let mut polled = [rustix::event::PollFd::new(&self.listener, rustix::event::PollFlags::IN)];
        let timeout = rustix::event::Timespec {
            tv_sec: i64::from(timeout_ms / 1000),
            tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
        };
        if rustix::event::poll(&mut polled, Some(&timeout))? == 0 {
            return Ok(None);
        }
        let (stream, _) = self.listener.accept()?;
        let caller = rustix::net::sockopt::socket_peercred(&stream)?;
        if caller.uid != rustix::process::geteuid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user has called"));
        }
        Ok(Some(stream))
    }
}

/// Calls the process outside.
pub(crate) fn call(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&address(name)?)
}

/// Hands the descriptors of the view and of `/proc` out, and waits until the view is answered.
pub(crate) fn hand_over(stream: &mut UnixStream, device: impl AsFd, processes: Option<&OwnedFd>) -> io::Result<()> {
    let descriptors: Vec<_> = [device.as_fd()].into_iter().chain(processes.map(AsFd::as_fd)).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(&*stream, &[IoSlice::new(&[MOUNTED])], &mut control, SendFlags::NOSIGNAL)?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer[0] == GO { Ok(()) } else { Err(io::Error::other("the process outside does not answer")) }
}

pub(crate) fn say_go(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(&[GO])
}

pub(crate) fn say_started(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(&[STARTED])
}

/// Says why the command cannot be started.
pub(crate) fn say_failed(stream: &mut UnixStream, line: &str) {
    let _ = stream.write_all(&[&[FAILED], line.as_bytes()].concat());
}

/// Waits for what the run says next.
pub(crate) fn hear(stream: &mut UnixStream) -> io::Result<Said> {
    let mut first = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length =
        rustix::net::recvmsg(&*stream, &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::CMSG_CLOEXEC)?
            .bytes;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut descriptors = descriptors.next().into_iter().flatten();
    Ok(match (length, first[0], descriptors.next()) {
        (1, MOUNTED, Some(device)) => Said::Mounted { device, processes: descriptors.next() },
        (1, STARTED, _) => Said::Started,
        (1, FAILED, _) => {
            let mut line = Vec::new();
            stream.take(LONGEST_LINE_BYTES).read_to_end(&mut line)?;
            Said::Failed(String::from_utf8_lossy(&line).into_owned())
        }
        _ => Said::Nothing,
    })
}
