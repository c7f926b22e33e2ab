//! Taking a mount away.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::mount_point::{canonical, fusermount};
use crate::mounts;
use crate::options::UnmountOptions;

/// How long `unmount` waits between two looks at the server.
const LOOK: Duration = Duration::from_millis(5);

/// What becomes of a mount that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InUse {
    /// It stays.
    Refuse,
    /// Its name goes; it ends with its last user.
    Detach,
}

/// `scalefs unmount`.
pub(crate) fn unmount(options: &UnmountOptions) -> Result<(), String> {
    let shown = options.mount_point.display();
    let known = canonical(&options.mount_point).map_err(|error| format!("{shown}: {error}"))?;
    let Some(mounted) = mounts::at(&known)? else {
        let others: Vec<_> = mounts::ours()?.iter().map(|other| other.mount_point.display().to_string()).collect();
        let others =
            if others.is_empty() { "none is mounted".to_owned() } else { format!("mounted: {}", others.join(", ")) };
        return Err(format!("{shown} is no ScaleFS; {others}"));
    };
    let in_use = if options.is_lazy { InUse::Detach } else { InUse::Refuse };
    take_away(&known, in_use).map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY) => {
            format!("{shown} is in use: close what is open there, leave the directory, or say --lazy")
        }
        Some(Errno::EPERM) => format!("{shown}: only root and who has mounted it may unmount it"),
        _ => format!("{shown}: {error}"),
    })?;
    while !options.is_lazy && lives(mounted.server) {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn lives(process: i32) -> bool {
    kill(Pid::from_raw(process), None) != Err(Errno::ESRCH)
}

/// Unmounts, by the program for users if we are one.
pub(crate) fn take_away(mount_point: &Path, in_use: InUse) -> io::Result<()> {
    let flags = match in_use {
        InUse::Refuse => MntFlags::UMOUNT_NOFOLLOW,
        InUse::Detach => MntFlags::UMOUNT_NOFOLLOW | MntFlags::MNT_DETACH,
    };
    match (umount2(mount_point, flags), fusermount()) {
        (Err(Errno::EPERM), Some(program)) => {
            let mut command = Command::new(program);
            command.arg("-u").args((in_use == InUse::Detach).then_some("-z")).arg("--").arg(mount_point);
            let output = command.stdin(Stdio::null()).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.success() {
                true => Ok(()),
                false if said.contains("busy") => Err(Errno::EBUSY.into()),
                false => Err(io::Error::other(said.trim().to_owned())),
            }
        }
        (outcome, _) => Ok(outcome?),
    }
}
