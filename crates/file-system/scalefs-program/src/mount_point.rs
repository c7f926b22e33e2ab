//! Where a ScaleFS may be mounted.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::mounts;

/// The true path of a directory at which a ScaleFS can be mounted, or why it cannot.
pub(crate) fn check(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let known = canonical(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{shown} does not exist: make it first, mkdir {shown}"),
        _ => format!("{shown}: {error}"),
    })?;
    if let Some(outer) = mounts::around(&known)? {
        let at = outer.mount_point.display();
        if std::fs::metadata(&outer.mount_point).is_err_and(|error| is_of_dead_server(&error)) {
            return Err(format!("the server of the ScaleFS at {at} has died: scalefs unmount {at}"));
        }
        return Err(format!("{shown} lies in the ScaleFS that is mounted at {at}: take a directory elsewhere"));
    }
    let metadata = std::fs::metadata(&known).map_err(|error| format!("{shown}: {error}"))?;
    if !metadata.is_dir() {
        return Err(format!("{shown} is no directory: a ScaleFS is mounted at an empty directory"));
    }
    let mut names = std::fs::read_dir(&known).map_err(|error| format!("{shown}: {error}"))?;
    if names.next().is_some() {
        return Err(format!("{shown} is not empty, and what is in it would be hidden: take an empty directory"));
    }
    Ok(known)
}

/// The true path of what may be the mount point of a server that has died.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if is_of_dead_server(&error) => Ok(parent.canonicalize()?.join(name)),
        (known, ..) => known,
    }
}

fn is_of_dead_server(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOTCONN as i32)
}

/// Whether the system lets us mount, as far as can be told before.
pub(crate) fn check_system() -> Result<(), String> {
    let device = "/dev/fuse";
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open(device) {
        return Err(match error.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{device} does not exist: load it (modprobe fuse), or give it to the container (--device {device})"
                )
            }
            _ => format!("{device}: {error}"),
        });
    }
    if !nix::unistd::geteuid().is_root() && fusermount().is_none() {
        return Err("expected root, or the program fusermount3 for other users: install the package fuse3".to_owned());
    }
    Ok(())
}

/// The program by which a user without rights mounts and unmounts.
pub(crate) fn fusermount() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(["/bin".into(), "/usr/bin".into()]).collect();
    let candidates = folders.iter().flat_map(|folder| ["fusermount3", "fusermount"].map(|name| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}
