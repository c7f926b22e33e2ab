//! Who takes the place of a supervisor that is killed: a process that waits for that, and then goes on where the other one stopped.
//!
//! ```text
//! scalefs run ── run-heir: waits for its end │ killed: takes a seat, buries it and all others that die, has an heir of its own
//!                                            └ ended by itself: it has ended its heir before
//! ```
//! It has the memory and the name of the tree from the one that it follows: they are its standard input and output.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, getppid};
use shared_instance::{SharedInstance, watch};

use super::supervisor::{self, Tree};
use super::{Failure, finish};

/// What the program is called as for this.
pub(crate) const HEIR: &str = "run-heir";
/// An heir that ends sooner is not followed by another: something is wrong that would be wrong again.
const SHORTEST_LIFE: Duration = Duration::from_millis(100);

/// The heir of this process, ended with this.
pub(super) struct Heir {
    child: Option<(Child, Instant)>,
}

/// This program once more, with the memory of a tree and something else for its standard input and output.
pub(super) fn role(memory: &SharedInstance, output: OwnedFd, name: &str) -> Result<Command, String> {
    let memory =
        memory.memory().try_clone_to_owned().map_err(|error| format!("the memory of the instance: {error}"))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(name).stdin(Stdio::from(memory)).stdout(Stdio::from(output));
    Ok(command)
}

impl Heir {
    /// Starts one. Where that fails, there is none, and the tree is looked after as before.
    pub(super) fn start(tree: &Tree) -> Heir {
        let child = || {
            let listener = tree.listener.as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
            let mut command = role(&tree.instance, listener, HEIR)?;
            command.arg(std::process::id().to_string()).arg("--");
            command.args(tree.to.iter()).spawn().map_err(|error| error.to_string())
        };
        let started = child();
        if let Err(why) = &started {
            eprintln!("scalefs: nobody will follow if this process is killed: {why}");
        }
        Heir { child: started.ok().map(|child| (child, Instant::now())) }
    }

    /// A child of this process has ended: if it was the heir, another one takes its place.
    pub(super) fn note_end(&mut self, process: Pid, tree: &Tree) {
        let Some((child, started)) = &self.child else { return };
        if child.id().cast_signed() != process.as_raw() {
            return;
        }
        let lived = started.elapsed();
        self.child = None;
        if lived >= SHORTEST_LIFE {
            *self = Heir::start(tree);
        }
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The process that a heir follows, and where the tree is copied in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Follows {
    pub(crate) process: i32,
    pub(crate) to: Option<PathBuf>,
}

/// `run-heir`.
pub(crate) fn follow(follows: &Follows) -> Result<ExitCode, Failure> {
    // What the terminal sends is not for us.
    let (signals, _) = supervisor::hear()?;
    let wrong = |error: std::io::Error| format!("following a supervisor: {error}");
    let memory = std::io::stdin().as_fd().try_clone_to_owned().map_err(wrong)?;
    let listener = UnixListener::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(wrong)?);
    wait_for(follows.process).map_err(|errno| format!("following a supervisor: {}", errno.desc()))?;
    let instance = SharedInstance::attach(memory).map_err(|error| error.to_string())?;
    let tree = Tree { instance, listener, to: follows.to.clone() };
    let mut heir = Heir::start(&tree);
    let ended = supervisor::supervise(&tree, &signals, &mut heir)?;
    finish(&tree)?;
    Ok(ended)
}

/// Waits for the end of the process of which this one is a child.
fn wait_for(process: i32) -> Result<(), Errno> {
    let Ok(ended) = watch(process) else { return Ok(()) };
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
