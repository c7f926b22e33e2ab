//! The calls on attributes: stat, access, chmod, chown, utimensat, statfs.
//!
//! Changes of permissions and times are handed over as data, with the right that they need: whoever holds the object checks
//! that where nobody else changes it, so that a check rests on what is replaced.

use sync::mutant::planted;

use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::kind::{Kind, Permissions};
use crate::object_operations::{Answer, Existence, ObjectOperations, Space};
use crate::rights::{Need, PermissionChange, TimesRight};
use crate::walk::{Follow, Last, Start, Walk, check_permission, key_in, resolve};

/// The attributes of what a path leads to; with fewer than all fields, the paper's `fstatx` (section 4).
///
/// POSIX `stat`, `lstat`, `fstatat`.
///
/// # Errors
/// Those of walking a path: ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG.
pub fn stat<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
    fields: Fields,
) -> Result<Attributes, Errno> {
    look_at(objects, (start, path, follow), |node| Ok(objects.attributes(node, fields)?))
}

/// As [`stat`], with the number of the device that it is a name for, or 0.
///
/// # Errors
/// As there.
pub fn stat_with_device<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
    fields: Fields,
) -> Result<(Attributes, u64), Errno> {
    look_at(objects, (start, path, follow), |node| {
        let device = if objects.kind(node).is_device() { objects.device(node)? } else { 0 };
        Ok((objects.attributes(node, fields)?, device))
    })
}

/// What is seen of what a path leads to, while its last name does: looks again as often as others change that.
///
/// # Errors
/// Those of [`stat`], and those of `look`.
pub fn look_at<'v, V: ObjectOperations, T>(
    objects: &'v V,
    (start, path, follow): (Start<V::Node<'v>>, &[u8], Follow),
    look: impl Fn(V::Node<'v>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        let resolved = resolve(objects, start, path, follow)?;
        let seen = look(resolved.node);
        // If the name still leads there, it did when we looked; else that may be what came after an unlink. What `.` and `..`
        // lead to has no name here.
        let forgets = planted("scalefs: who looks at a file forgets the name");
        if forgets || resolved.found.map_or(Ok(true), |found| objects.still_same(&found))? {
            return seen;
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
///
/// # Errors
/// EACCES where the caller may not; those of walking a path, as [`stat`].
pub fn access<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
    wanted: Access,
) -> Result<(), Errno> {
    let bit = |wanted: bool, bit: u32| if wanted { bit } else { 0 };
    let need = Need(bit(wanted.read, 4) | bit(wanted.write, 2) | bit(wanted.execute, 1));
    if need.0 != 0 {
        return look_at(objects, (start, path, follow), |node| check_permission(objects, node, need));
    }
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    if let (Access::EXISTS, Last::Name(name), false) = (wanted, walk.last, walk.has_slash) {
        let key = key_in(objects, walk.directory, name)?;
        match objects.existence(walk.directory, &key)? {
            Existence::Absent => return Err(Errno::ENOENT),
            Existence::Plain => return Ok(()),
            Existence::MaybeSymlink => {}
        }
    }
    walk.resolve(follow).map(drop)
}

/// Sets the permission bits of what a path leads to.
///
/// POSIX `chmod`; Linux `chmod_common`, `setattr_prepare`.
///
/// # Errors
/// EPERM unless the object is the caller's; those of walking a path, as [`stat`].
pub fn change_mode<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    mode: u32,
) -> Result<(), Errno> {
    change_mode_of(objects, resolve(objects, start, path, Follow::Symlinks)?.node, mode)
}

/// Sets the permission bits of what has a name, unless it is a symbolic link (Linux `fchmodat2` with AT_SYMLINK_NOFOLLOW; POSIX
/// `fchmodat`).
///
/// # Errors
/// EOPNOTSUPP for a symbolic link, whose bits cannot be changed (`notify_change`); else as [`change_mode`].
pub fn change_mode_unless_link<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    mode: u32,
) -> Result<(), Errno> {
    let node = resolve(objects, start, path, Follow::Nothing)?.node;
    if objects.kind(node) == Kind::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    change_mode_of(objects, node, mode)
}

/// Sets the permission bits of an object (POSIX `fchmod`).
///
/// # Errors
/// EPERM unless the object is the caller's.
pub fn change_mode_of<'v, V: ObjectOperations>(objects: &'v V, node: V::Node<'v>, mode: u32) -> Result<(), Errno> {
    objects.change_permissions(node, PermissionChange::Mode(mode))
}

/// Sets owner and group of what a path leads to, each if given; set-id bits of what is no directory are cleared.
///
/// POSIX `chown`, `lchown`; Linux `chown_common`, `setattr_prepare`.
///
/// # Errors
/// EPERM where the caller may not give it away; those of walking a path, as [`stat`].
pub fn change_owner<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
    (user, group): (Option<u32>, Option<u32>),
) -> Result<(), Errno> {
    change_owner_of(objects, resolve(objects, start, path, follow)?.node, (user, group))
}

/// Sets owner and group of an object (POSIX `fchown`).
///
/// # Errors
/// EPERM where the caller may not give it away.
pub fn change_owner_of<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    (user, group): (Option<u32>, Option<u32>),
) -> Result<(), Errno> {
    objects.change_permissions(node, PermissionChange::Owner { user, group })
}

/// Clears the set-id bits of a file whose data a user changes, if `seen`, its permissions, have any that go; the superuser's
/// changes leave them.
///
/// POSIX `write`; Linux `dentry_needs_remove_privs`, `setattr_should_drop_suidgid`.
pub(crate) fn drop_set_ids<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    seen: impl FnOnce() -> Answer<Permissions, V>,
) -> Result<(), Errno> {
    if objects.credentials().is_superuser() || objects.kind(node) != Kind::Regular {
        return Ok(());
    }
    let (old, change) = (seen()?, PermissionChange::DropSetIds);
    if change.of(objects.credentials(), Kind::Regular, old)? == old {
        return Ok(());
    }
    objects.change_permissions(node, change)
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
///
/// # Errors
/// EPERM or EACCES where the caller may not; those of walking a path, as [`stat`].
pub fn set_times<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
    times: (NewTime, NewTime),
) -> Result<(), Errno> {
    if times == (NewTime::Same, NewTime::Same) {
        return Ok(());
    }
    set_times_of(objects, resolve(objects, start, path, follow)?.node, times)
}

/// Sets the times of an object (POSIX `futimens`).
///
/// # Errors
/// EPERM, or EACCES for the present time, where the caller may not.
pub fn set_times_of<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    (accessed, modified): (NewTime, NewTime),
) -> Result<(), Errno> {
    let right = match (accessed, modified) {
        (NewTime::Now, NewTime::Now) => TimesRight::Writer,
        _ => TimesRight::Owner,
    };
    // Asked for once, and only if it is wanted: in a transaction it is told what the time is.
    let is_now = accessed == NewTime::Now || modified == NewTime::Now;
    let now = is_now.then(|| i64::try_from(objects.now_ns()).unwrap_or(i64::MAX));
    let time = |new| match new {
        NewTime::Now => now,
        NewTime::At(time) => Some(time),
        NewTime::Same => None,
    };
    objects.set_times(node, right, (time(accessed), time(modified)))
}

/// Free and used space (POSIX `statvfs`).
///
/// # Errors
/// The implementation's fault alone.
pub fn space<V: ObjectOperations>(objects: &V) -> Result<Space, Errno> {
    Ok(objects.space()?)
}
