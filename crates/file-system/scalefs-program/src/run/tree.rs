//! What a supervisor looks after.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use shared_instance::SharedInstance;

use crate::copies;

/// See the module's head.
pub(super) struct Tree {
    pub(super) instance: SharedInstance,
    /// Under the tree's name.
    pub(super) listener: UnixListener,
    /// Where all is copied in the end.
    pub(super) to: Option<PathBuf>,
}

impl Tree {
    /// Copies it out, once no one is there any more.
    pub(super) fn finish(&self) -> Result<(), String> {
        let Some(to) = &self.to else { return Ok(()) };
        let copied = copies::save(self.instance.files(), self.instance.control().mount_point(), to)?;
        eprintln!("scalefs: copied to {}: {copied}", to.display());
        Ok(())
    }
}

/// This program once more, with the memory of a tree and something else for its standard input and output.
pub(super) fn role(memory: &SharedInstance, output: OwnedFd, name: &str) -> Result<Command, String> {
    let memory =
        memory.memory().try_clone_to_owned().map_err(|error| format!("the memory of the instance: {error}"))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(name).stdin(Stdio::from(memory)).stdout(Stdio::from(output));
    Ok(command)
}
