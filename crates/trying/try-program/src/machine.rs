//! What this machine lets a user do, and one line for each thing that it does not.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use rustix::thread::CapabilitySet;

/// By which right mounts are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Root of the machine.
    Root,
    /// A user, in a user namespace of the run's own.
    User,
}

impl Right {
    /// The name of an overlay's own attributes in its layer.
    pub(crate) fn overlay_prefix(self) -> &'static str {
        match self {
            Right::Root => "trusted.overlay.",
            Right::User => "user.overlay.",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Root => "root",
            Right::User => "user",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Right> {
        [Right::Root, Right::User].into_iter().find(|right| right.name() == name)
    }
}

/// The right that this process has.
pub(crate) fn right() -> Right {
    let may_mount = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN | CapabilitySet::MKNOD));
    // Root in a container's user namespace may mount, but keeps no attributes of the machine's root.
    let is_of_machine =
        fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    if may_mount && is_of_machine { Right::Root } else { Right::User }
}

/// Whether all is there that a run needs, as far as it can be known before; the error is one line with what to do.
pub(crate) fn check(right: Right) -> Result<(), String> {
    if !Path::new("/proc/self").exists() {
        return Err("/proc is not mounted, by which a run finds itself: mount -t proc proc /proc".to_owned());
    }
    match File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(
                "/dev/fuse does not exist, by which looks are recorded: load it (modprobe fuse), or give it to the \
                        container (--device /dev/fuse) or the chroot (mount --rbind /dev, from outside)"
                    .to_owned(),
            );
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(
                "this user may not open /dev/fuse, by which looks are recorded: run as root, or have root chmod 666 it"
                    .to_owned(),
            );
        }
        Err(error) => {
            return Err(format!("/dev/fuse, by which looks are recorded: {}", crate::failure::reason(&error)));
        }
    }
    if !has_file_system("overlay") {
        return Err("this kernel has no overlayfs, which keeps the changes: load it (modprobe overlay)".to_owned());
    }
    if right == Right::User && !namespaces_are_allowed() {
        return Err("user namespaces are not allowed to this user here (see /proc/sys/user/max_user_namespaces and \
                    /proc/sys/kernel/unprivileged_userns_clone): run as root"
            .to_owned());
    }
    Ok(())
}

/// Whether the kernel knows a file system; a module that is not loaded yet is tried when it is mounted.
fn has_file_system(name: &str) -> bool {
    let Ok(known) = fs::read_to_string("/proc/filesystems") else { return true };
    known.lines().any(|line| line.split_whitespace().last() == Some(name)) || fs::metadata("/proc/modules").is_ok()
}

fn namespaces_are_allowed() -> bool {
    let is_zero = |path: &str| fs::read_to_string(path).is_ok_and(|value| value.trim() == "0");
    !is_zero("/proc/sys/user/max_user_namespaces") && !is_zero("/proc/sys/kernel/unprivileged_userns_clone")
}
