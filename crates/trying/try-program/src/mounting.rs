//! Making a mount that nobody sees yet.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use crate::failure::Failure;

/// What the kernel says about a mount that it refuses.
fn refused(file_system: &OwnedFd, what: &str, error: Errno) -> Failure {
    let mut said = [0; 1024];
    let length = rustix::io::read(file_system, &mut said).unwrap_or(0);
    let said = String::from_utf8_lossy(&said[..length]);
    let error: std::io::Error = error.into();
    let reason = crate::failure::reason(&error);
    match said.trim().strip_prefix("e ").unwrap_or(said.trim()) {
        "" => Failure::Run(format!("{what}: {reason}")),
        said => Failure::Run(format!("{what}: {reason} ({said})")),
    }
}

/// A mount of a file system with these options; it is somewhere once it is moved there.
pub(crate) fn made(
    kind: &str,
    strings: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Failure> {
    let what = format!("mounting {kind}");
    let file_system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|error| match error {
        Errno::NODEV => Failure::Run(format!("this kernel has no file system {kind}: load it (modprobe {kind})")),
        error => Failure::calling(&what)(error),
    })?;
    let set = |result: rustix::io::Result<()>| result.map_err(|error| refused(&file_system, &what, error));
    for (key, value) in strings {
        set(fsconfig_set_string(&file_system, *key, *value))?;
    }
    for flag in flags {
        set(fsconfig_set_flag(&file_system, *flag))?;
    }
    set(fsconfig_create(&file_system))?;
    fsmount(&file_system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .map_err(|error| refused(&file_system, &what, error))
}
