//! A directory of the system as the beginning of a file system.

use std::collections::HashMap;
use std::fs::{self, Metadata, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use super::load::Loader;
use super::{Status, kind_of};

fn status_of(metadata: &Metadata) -> Status {
    Status {
        mode: metadata.mode() & 0o7777,
        user: metadata.uid(),
        group: metadata.gid(),
        modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
    }
}

pub(super) fn load(loader: &mut Loader<'_>, top: &Path) -> Result<(), String> {
    let mut first_names: HashMap<(u64, u64), Vec<u8>> = HashMap::new();
    let mut pending = vec![(top.to_path_buf(), b"/".to_vec())];
    while let Some((source, path)) = pending.pop() {
        let wrong = |error| format!("{}: {error}", source.display());
        loader.directory(&path, status_of(&fs::metadata(&source).map_err(wrong)?))?;
        for entry in fs::read_dir(&source).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let source = entry.path();
            let wrong = |error| format!("{}: {error}", source.display());
            let mut path = path.clone();
            if !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(entry.file_name().as_bytes());
            let metadata = fs::symlink_metadata(&source).map_err(wrong)?;
            let (kind, status) = (metadata.file_type(), status_of(&metadata));
            let object = (metadata.dev(), metadata.ino());
            if let Some(first) = first_names.get(&object) {
                loader.link(&path, first)?;
                continue;
            }
            if metadata.nlink() > 1 && !kind.is_dir() {
                first_names.insert(object, path.clone());
            }
            if kind.is_dir() {
                pending.push((source, path));
            } else if kind.is_file() {
                // What is opened may be something else by now: it is not followed, not waited for, and looked at once more.
                let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
                let mut file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&source).map_err(wrong)?;
                let opened = file.metadata().map_err(wrong)?;
                if (opened.dev(), opened.ino()) != object {
                    return Err(format!("{}: somebody else changes it", source.display()));
                }
                loader.file(&path, status, &mut file)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&source).map_err(wrong)?;
                loader.symlink(&path, target.as_os_str().as_bytes(), status)?;
            } else if let Some(kind) = kind_of(metadata.mode()) {
                loader.node(&path, (kind, metadata.rdev()), status)?;
            } else {
                first_names.remove(&object);
                loader.leave_out();
            }
        }
    }
    Ok(())
}
