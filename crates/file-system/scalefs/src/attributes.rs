//! The calls on attributes: stat, access, chmod, chown, utimensat, statfs.
//!
//! Changes of permissions and times check and write under the inode's sequence, so that a check rests on what is replaced.

use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::inode::{Kind, Permissions};
use crate::names::{SET_GROUP, SET_USER};
use crate::verbs::{Existence, Space, Verbs};
use crate::walk::{Follow, Last, Need, Start, Walk, check_permission, check_user, key_in, resolve};

/// The attributes of what a path leads to; with fewer than all fields, the paper's `fstatx` (section 4).
///
/// POSIX `stat`, `lstat`, `fstatat`.
pub fn stat<V: Verbs>(
    verbs: &V,
    start: Start<V::Node>,
    path: &[u8],
    follow: Follow,
    fields: Fields,
) -> Result<Attributes, Errno> {
    loop {
        let resolved = resolve(verbs, start, path, follow)?;
        let attributes = verbs.attributes(resolved.node, fields);
        // If the name still leads there, it did when the link count was read; else that may have been after an unlink.
        let is_whole = !fields.contains(Fields::LINK_COUNT);
        if is_whole || resolved.found.is_none_or(|found| verbs.still_same(&found)) {
            return Ok(attributes);
        }
    }
}

/// What `access` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// `R_OK`.
    pub read: bool,
    /// `W_OK`.
    pub write: bool,
    /// `X_OK`.
    pub execute: bool,
}

impl Access {
    /// `F_OK`: whether it exists.
    pub const EXISTS: Access = Access { read: false, write: false, execute: false };
}

/// Whether a path leads to something, and the caller may do with it what is asked. For [`Access::EXISTS`], what the name
/// leads to is not read, unless it may be a symbolic link.
///
/// POSIX `access`; Linux `do_faccessat`.
pub fn access<V: Verbs>(
    verbs: &V,
    start: Start<V::Node>,
    path: &[u8],
    follow: Follow,
    wanted: Access,
) -> Result<(), Errno> {
    let mut walk = Walk::new(verbs);
    walk.go_to_last(start, path)?;
    if let (Access::EXISTS, Last::Name(name), false) = (wanted, walk.last, walk.has_slash) {
        let key = key_in(verbs, walk.directory, name)?;
        match verbs.existence(walk.directory, &key) {
            Existence::Absent => return Err(Errno::ENOENT),
            Existence::Plain => return Ok(()),
            Existence::MaybeSymlink => {}
        }
    }
    let node = walk.resolve(follow)?.node;
    let bit = |wanted: bool, bit: u32| if wanted { bit } else { 0 };
    let need = Need(bit(wanted.read, 4) | bit(wanted.write, 2) | bit(wanted.execute, 1));
    if need.0 == 0 { Ok(()) } else { check_permission(verbs, node, need) }
}

fn may_change<V: Verbs>(verbs: &V, owner: u32) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    if credentials.is_superuser() || credentials.user == owner { Ok(()) } else { Err(Errno::EPERM) }
}

/// Sets the permission bits of what a path leads to.
///
/// POSIX `chmod`; Linux `chmod_common`, `setattr_prepare`.
pub fn change_mode<V: Verbs>(verbs: &V, start: Start<V::Node>, path: &[u8], mode: u32) -> Result<(), Errno> {
    change_mode_of(verbs, resolve(verbs, start, path, Follow::Symlinks)?.node, mode)
}

/// Sets the permission bits of an object (POSIX `fchmod`).
pub fn change_mode_of<V: Verbs>(verbs: &V, node: V::Node, mode: u32) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    verbs.change_permissions(node, &|old| {
        may_change(verbs, old.user)?;
        let mut mode = mode & 0o7777;
        if !credentials.is_superuser() && !credentials.is_in_group(old.group) {
            mode &= !SET_GROUP;
        }
        Ok(Permissions { mode, ..old })
    })
}

/// Sets owner and group of what a path leads to, each if given; set-id bits of what is no directory are cleared.
///
/// POSIX `chown`, `lchown`; Linux `chown_common`, `setattr_prepare`.
pub fn change_owner<V: Verbs>(
    verbs: &V,
    start: Start<V::Node>,
    path: &[u8],
    follow: Follow,
    (user, group): (Option<u32>, Option<u32>),
) -> Result<(), Errno> {
    change_owner_of(verbs, resolve(verbs, start, path, follow)?.node, (user, group))
}

/// Sets owner and group of an object (POSIX `fchown`).
pub fn change_owner_of<V: Verbs>(
    verbs: &V,
    node: V::Node,
    (user, group): (Option<u32>, Option<u32>),
) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    let is_directory = verbs.kind(node) == Kind::Directory;
    verbs.change_permissions(node, &|old| {
        let mut new = Permissions { user: user.unwrap_or(old.user), group: group.unwrap_or(old.group), ..old };
        if !is_directory {
            new.mode &= !SET_USER;
            if new.mode & 0o010 != 0 || !credentials.is_superuser() && !credentials.is_in_group(old.group) {
                new.mode &= !SET_GROUP;
            }
        }
        if !credentials.is_superuser() {
            let is_owner = credentials.user == old.user;
            let keeps_user = user.is_none_or(|user| is_owner && user == old.user);
            let keeps_group =
                group.is_none_or(|group| is_owner && (group == old.group || credentials.is_in_group(group)));
            if !keeps_user || !keeps_group || (new.mode != old.mode && !is_owner) {
                return Err(Errno::EPERM);
            }
        }
        Ok(new)
    })
}

/// Clears the set-id bits of a file whose data a user changes; the superuser's changes leave them.
///
/// POSIX `write`; Linux `dentry_needs_remove_privs`, `setattr_should_drop_suidgid`.
pub(crate) fn clear_set_ids<V: Verbs>(verbs: &V, node: V::Node) -> Result<(), Errno> {
    let credentials = verbs.credentials();
    let kept = |old: Permissions| {
        let drops_group = old.mode & 0o010 != 0 || !credentials.is_in_group(old.group);
        old.mode & !SET_USER & !if drops_group { SET_GROUP } else { 0 }
    };
    if credentials.is_superuser() || verbs.kind(node) != Kind::Regular {
        return Ok(());
    }
    let old = verbs.permissions(node);
    if kept(old) == old.mode {
        return Ok(());
    }
    verbs.change_permissions(node, &|old| Ok(Permissions { mode: kept(old), ..old }))
}

/// What becomes of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// The present (`UTIME_NOW`).
    Now,
    /// Nanoseconds since 1970.
    At(i64),
    /// It stays (`UTIME_OMIT`).
    Same,
}

/// Sets the times of last access and last modification of what a path leads to.
///
/// POSIX `utimensat`; Linux `do_utimes`, `vfs_utimes`: two times of which none changes end the call before the path is
/// looked at; the present for both may be set by who may write.
pub fn set_times<V: Verbs>(
    verbs: &V,
    start: Start<V::Node>,
    path: &[u8],
    follow: Follow,
    times: (NewTime, NewTime),
) -> Result<(), Errno> {
    if times == (NewTime::Same, NewTime::Same) {
        return Ok(());
    }
    set_times_of(verbs, resolve(verbs, start, path, follow)?.node, times)
}

/// Sets the times of an object (POSIX `futimens`).
pub fn set_times_of<V: Verbs>(verbs: &V, node: V::Node, (accessed, modified): (NewTime, NewTime)) -> Result<(), Errno> {
    let check = |permissions: Permissions| {
        let is_owner = may_change(verbs, permissions.user);
        match (accessed, modified) {
            (NewTime::Now, NewTime::Now) if is_owner.is_err() => check_user(verbs, permissions, Need::WRITE),
            _ => is_owner,
        }
    };
    let now = i64::try_from(verbs.now_ns()).unwrap_or(i64::MAX);
    let time = |new| match new {
        NewTime::Now => Some(now),
        NewTime::At(time) => Some(time),
        NewTime::Same => None,
    };
    verbs.set_times(node, &check, (time(accessed), time(modified)))
}

/// Free and used space (POSIX `statvfs`).
pub fn space<V: Verbs>(verbs: &V) -> Space {
    verbs.space()
}
