//! Taking a mount away.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};

use crate::copies::failure_of;
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
    let (server, target) = (Server::of(mounted.server), target_of(mounted.server));
    take_away(&known, in_use).map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY) => {
            format!("{shown} is in use: close what is open there, leave the directory, or say --lazy")
        }
        Some(Errno::EPERM) => format!("{shown}: only root and who has mounted it may unmount it"),
        _ => format!("{shown}: {error}"),
    })?;
    while !options.is_lazy && server.as_ref().is_some_and(Server::lives) {
        std::thread::sleep(LOOK);
    }
    match target.map(|target| failure_of(&target)).filter(|failure| failure.exists()) {
        Some(failure) if !options.is_lazy => {
            let why = std::fs::read_to_string(&failure).unwrap_or_default();
            Err(format!("the copy was not made, {} says why: {}", failure.display(), why.trim()))
        }
        _ => Ok(()),
    }
}

/// A process, which is no other one that has got its number later.
struct Server {
    process: i32,
    started: String,
}

impl Server {
    fn of(process: i32) -> Option<Server> {
        started(process).map(|started| Server { process, started })
    }

    fn lives(&self) -> bool {
        started(self.process).is_some_and(|started| started == self.started)
    }
}

/// When a process has started, if it has not ended (`proc(5)`: fields 3 and 22 of `stat`).
fn started(process: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    let has_ended = matches!(fields.next(), Some("Z" | "X"));
    if has_ended { None } else { fields.nth(18).map(str::to_owned) }
}

/// Where a server was told to copy all in the end.
fn target_of(server: i32) -> Option<PathBuf> {
    let command = std::fs::read(format!("/proc/{server}/cmdline")).ok()?;
    let mut arguments = command.split(|byte| *byte == 0).take_while(|argument| *argument != b"--");
    arguments.find(|argument| *argument == b"--to")?;
    arguments.next().map(|target| PathBuf::from(OsStr::from_bytes(target)))
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
