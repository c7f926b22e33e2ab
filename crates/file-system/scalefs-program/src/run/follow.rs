//! `run-heir`: waits for the end of a supervisor, and goes on where it has stopped.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::getppid;
use shared_instance::{SharedInstance, watch};

use super::heir::Heir;
use super::supervisor;
use super::tree::Tree;

/// The process that a heir follows, and where the tree is copied in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Follows {
    pub(crate) process: i32,
    pub(crate) to: Option<PathBuf>,
}

/// `run-heir`.
pub(crate) fn follow(follows: &Follows) -> Result<ExitCode, String> {
    // What the terminal sends is not for us.
    let (signals, _) = supervisor::hear()?;
    let wrong = |error: std::io::Error| format!("following a supervisor: {error}");
    let memory = std::io::stdin().as_fd().try_clone_to_owned().map_err(wrong)?;
    let listener = UnixListener::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(wrong)?);
    wait_for(follows.process).map_err(|errno| format!("following a supervisor: {}", errno.desc()))?;
    let instance = SharedInstance::attach(memory).map_err(|error| error.to_string())?;
    let tree = Tree { instance, listener, to: follows.to.clone() };
    let mut heir = Heir::start(&tree);
    supervisor::supervise(&tree, &signals, &mut heir)
}

/// Waits for the end of the process of which this one is a child.
fn wait_for(process: i32) -> Result<(), Errno> {
    let ended = match watch(process) {
        Ok(ended) => ended,
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => return Ok(()),
        Err(error) => return Err(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
    };
    // Another one may have its number by now.
    if getppid().as_raw() != process {
        return Ok(());
    }
    loop {
        match poll(&mut [PollFd::new(ended.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            outcome => return outcome.map(drop),
        }
    }
}
