//! Who takes the place of a supervisor that is killed: a process that waits for that, and then goes on where the other one stopped.
//!
//! ```text
//! scalefs run ── run-heir: waits for its end │ killed: takes a seat, buries it and all others that die, has an heir of its own
//!                                            └ ended by itself: it has ended its heir before
//! ```
//! It has the memory and the name of the tree from the one that it follows: they are its standard input and output.

use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::tree::{Tree, role};

/// What the program is called as for this.
pub(crate) const HEIR: &str = "run-heir";
/// An heir that ends sooner is not followed by another: something is wrong that would be wrong again.
const SHORTEST_LIFE: Duration = Duration::from_millis(100);

/// The heir of this process, ended with this.
pub(super) struct Heir {
    child: Option<(Child, Instant)>,
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
            eprintln!("scalefs: no one will follow if this process is killed: {why}");
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
