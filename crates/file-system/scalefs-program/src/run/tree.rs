//! What a supervisor looks after.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use scalefs::FileSystem;
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
    /// Copies it out, once no one is there any more, and does something else again and again until that is done.
    pub(super) fn finish(&self, pause: Duration, mut besides: impl FnMut()) -> Result<(), String> {
        let Some(to) = &self.to else { return Ok(()) };
        let (files, top) = (self.instance.files(), self.instance.control().mount_point());
        let copied = thread::scope(|scope| {
            let copying = scope.spawn(|| copy_out(files, top, to));
            while !copying.is_finished() {
                besides();
                thread::park_timeout(pause);
            }
            copying.join()
        });
        besides();
        copied.map_err(|_| "copying the tree out has failed".to_owned())?
    }
}

fn copy_out(files: &FileSystem, top: &[u8], to: &Path) -> Result<(), String> {
    let copied = copies::save(files, top, to)?;
    eprintln!("scalefs: copied to {}: {copied}", to.display());
    Ok(())
}

/// This program once more, with the memory of a tree and something else for its standard input and output. It has no environment: a
/// library that the user puts before others (`LD_PRELOAD`) is for programs. With one that has a `getppid`, an heir took its
/// predecessor for dead and had an heir at once, which did the same.
pub(super) fn role(memory: &SharedInstance, output: OwnedFd, name: &str) -> Result<Command, String> {
    let memory =
        memory.memory().try_clone_to_owned().map_err(|error| format!("the memory of the instance: {error}"))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(name).env_clear().stdin(Stdio::from(memory)).stdout(Stdio::from(output));
    Ok(command)
}
