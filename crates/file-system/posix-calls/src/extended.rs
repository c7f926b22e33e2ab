//! Extended attributes: names with values of an object, in three namespaces, with Linux's rules.
//!
//! ```text
//! namespace    of                       read by                       changed by
//! user.        files and directories    who may read the object       who may write it; in a sticky directory's case its owner
//! trusted.     all                      the superuser                 the superuser
//! security.    all                      everybody                     the superuser
//! ```
//! Others are EOPNOTSUPP, and so is `security.capability`: nothing here is executed with what it says. All attributes of an object take
//! at most 64 KiB together ([`MOST_BYTES`]); Linux's tmpfs has room for more.
//!
//! **Order of checks** as in Linux's `setxattr` and its kin: the flags, the name, the value, and then the path. So whoever makes a call
//! says how the object is found, and not which it is.

use sync::mutant::planted;

use crate::data::description;
use crate::data_operations::{DataOperations, NodeOf};
use crate::errno::Errno;
use crate::handles::node_to_change;
use crate::kind::{Kind, STICKY};
use crate::object_operations::{Answer, ObjectOperations};
use crate::rights::Need;
use crate::walk::{Follow, Start, check_permission, resolve};

/// The longest name (`XATTR_NAME_MAX`).
pub const MOST_NAME_BYTES: usize = 255;
/// The longest value that is looked at (`XATTR_SIZE_MAX`).
pub const MOST_VALUE_BYTES: usize = 65_536;
/// What the attributes of an object take at most, with their names and a little more for each.
pub const MOST_BYTES: usize = 65_000;
/// What each attribute takes beside its name and its value.
pub const OVERHEAD_BYTES: usize = 8;
/// A flag of [`set`]: the attribute must not be there yet (XATTR_CREATE).
pub const MUST_BE_NEW: u32 = 1;
/// A flag of [`set`]: the attribute must be there (XATTR_REPLACE).
pub const MUST_EXIST: u32 = 2;

const CAPABILITY: &[u8] = b"security.capability";

/// What a change of an attribute rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// It must not be there.
    pub is_new: bool,
    /// It must be there.
    pub exists: bool,
}

impl Expected {
    /// Whether a change may be made, by whether the attribute is there.
    ///
    /// # Errors
    /// EEXIST, ENODATA.
    pub fn check(self, is_there: bool) -> Result<(), Errno> {
        match is_there {
            true if self.is_new => Err(Errno::EEXIST),
            false if self.exists => Err(Errno::ENODATA),
            _ => Ok(()),
        }
    }
}

/// What one call does to extended attributes.
pub trait ExtendedOperations: ObjectOperations {
    /// Shows `see` the value of an attribute; false if there is none.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn extended_attribute(&self, node: Self::Node<'_>, name: &[u8], see: &mut dyn FnMut(&[u8])) -> Answer<bool, Self>;

    /// Tells `each` the names of all attributes at one moment, by their bytes in rising order.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn extended_attributes(&self, node: Self::Node<'_>, each: &mut dyn FnMut(&[u8])) -> Answer<(), Self>;

    /// Sets an attribute, or removes it, in one step with the look whether it is there; marks the time of the change.
    ///
    /// # Errors
    /// Those of [`Expected::check`]; ENOSPC without memory, or where all would take more than [`MOST_BYTES`].
    fn set_extended_attribute(
        &self,
        node: Self::Node<'_>,
        name: &[u8],
        value: Option<&[u8]>,
        expected: Expected,
    ) -> Result<(), Errno>;
}

/// What a path leads to, for the calls here.
///
/// # Errors
/// Those of walking a path, as [`attributes::stat`](crate::attributes::stat).
pub fn at<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    follow: Follow,
) -> Result<V::Node<'v>, Errno> {
    Ok(resolve(objects, start, path, follow)?.node)
}

/// What a descriptor leads to, for the calls here.
///
/// # Errors
/// EBADF if the descriptor is not open, or only stands for its object.
pub fn of<'v, D: DataOperations>(process: &'v D, fd: u32) -> Result<NodeOf<'v, D>, Errno> {
    description(process, fd)?;
    node_to_change(process, fd)
}

/// Linux `import_xattr_name`.
fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.is_empty() || name.len() > MOST_NAME_BYTES { Err(Errno::ERANGE) } else { Ok(()) }
}

/// Whether the caller has the right to an attribute (Linux: `xattr_permission`, `cap_inode_setxattr`), and there may be one of this name
/// (`xattr_resolve_name`).
fn check_right<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    name: &[u8],
    need: Need,
) -> Result<(), Errno> {
    let writes = need == Need::WRITE;
    let is_privileged = objects.credentials().is_superuser() || planted("calls: anyone has trusted attributes");
    let denied = || Err(if writes { Errno::EPERM } else { Errno::ENODATA });
    let kind = objects.kind(node);
    let rest = if let Some(rest) = name.strip_prefix(b"security.") {
        if writes && !is_privileged {
            return Err(Errno::EPERM);
        }
        Some(rest)
    } else if let Some(rest) = name.strip_prefix(b"trusted.") {
        if !is_privileged {
            return denied();
        }
        Some(rest)
    } else if name.starts_with(b"system.") {
        None
    } else {
        let rest = name.strip_prefix(b"user.");
        if rest.is_some() && !matches!(kind, Kind::Regular | Kind::Directory) {
            return denied();
        }
        let caller = objects.credentials();
        if rest.is_some() && writes && kind == Kind::Directory && !caller.is_superuser() {
            let permissions = objects.permissions(node)?;
            if permissions.mode & STICKY != 0 && permissions.user != caller.user {
                return Err(Errno::EPERM);
            }
        }
        if !planted("calls: attributes ask for no right") {
            check_permission(objects, node, need)?;
        }
        rest
    };
    // What has no name is of no file system that has attributes.
    let rest = rest.filter(|_| !matches!(kind, Kind::Pipe | Kind::Socket));
    match rest {
        None => Err(Errno::EOPNOTSUPP),
        Some([]) => Err(Errno::EINVAL),
        Some(_) => Ok(()),
    }
}

/// Copies bytes to where the caller wants them; only tells how many they are where there is no room at all.
fn copied(bytes: &[u8], place: &mut [u8]) -> Result<usize, Errno> {
    if !place.is_empty() {
        place.get_mut(..bytes.len()).ok_or(Errno::ERANGE)?.copy_from_slice(bytes);
    }
    Ok(bytes.len())
}

/// Reads an attribute; with room for no byte only tells how many there are.
///
/// Linux `getxattr`, `lgetxattr`, `fgetxattr`.
///
/// # Errors
/// ENODATA if there is none, or none that the caller may know of; ERANGE for a name that cannot be, and if the value is longer than the
/// room; EACCES, EOPNOTSUPP for another namespace, EINVAL for a namespace alone; those of `find`.
pub fn get<'v, V: ExtendedOperations>(
    objects: &'v V,
    find: impl FnOnce() -> Result<V::Node<'v>, Errno>,
    name: &[u8],
    value: &mut [u8],
) -> Result<usize, Errno> {
    check_name(name)?;
    let node = find()?;
    check_right(objects, node, name, Need::READ)?;
    let mut read = Err(Errno::ENODATA);
    objects.extended_attribute(node, name, &mut |bytes| read = copied(bytes, value))?;
    read
}

/// Sets an attribute, as the flags say: [`MUST_BE_NEW`], [`MUST_EXIST`].
///
/// Linux `setxattr`, `lsetxattr`, `fsetxattr`.
///
/// # Errors
/// EINVAL for other flags, and for a namespace alone; ERANGE for a name that cannot be; E2BIG for a value above
/// [`MOST_VALUE_BYTES`]; EEXIST, ENODATA as the flags say; EPERM, EACCES; EOPNOTSUPP for another namespace; ENOSPC; those of `find`.
pub fn set<'v, V: ExtendedOperations>(
    objects: &'v V,
    find: impl FnOnce() -> Result<V::Node<'v>, Errno>,
    (name, value): (&[u8], &[u8]),
    flags: u32,
) -> Result<(), Errno> {
    if flags & !(MUST_BE_NEW | MUST_EXIST) != 0 {
        return Err(Errno::EINVAL);
    }
    check_name(name)?;
    if value.len() > MOST_VALUE_BYTES {
        return Err(Errno::E2BIG);
    }
    let node = find()?;
    check_right(objects, node, name, Need::WRITE)?;
    if name == CAPABILITY {
        return Err(Errno::EOPNOTSUPP);
    }
    let expected = Expected { is_new: flags & MUST_BE_NEW != 0, exists: flags & MUST_EXIST != 0 };
    objects.set_extended_attribute(node, name, Some(value), expected)
}

/// Removes an attribute.
///
/// Linux `removexattr`, `lremovexattr`, `fremovexattr`.
///
/// # Errors
/// ENODATA if there is none; the others as [`set`].
pub fn remove<'v, V: ExtendedOperations>(
    objects: &'v V,
    find: impl FnOnce() -> Result<V::Node<'v>, Errno>,
    name: &[u8],
) -> Result<(), Errno> {
    check_name(name)?;
    let node = find()?;
    check_right(objects, node, name, Need::WRITE)?;
    objects.set_extended_attribute(node, name, None, Expected { is_new: false, exists: true })
}

/// Tells the names of all attributes that the caller may know of, each with a byte of zero at its end; with room for no byte only how
/// many bytes that is.
///
/// Linux `listxattr`, `llistxattr`, `flistxattr`.
///
/// # Errors
/// ERANGE if there is not room for all; those of `find`.
pub fn list<'v, V: ExtendedOperations>(
    objects: &'v V,
    find: impl FnOnce() -> Result<V::Node<'v>, Errno>,
    names: &mut [u8],
) -> Result<usize, Errno> {
    let node = find()?;
    let knows_trusted = objects.credentials().is_superuser() || planted("calls: anyone has trusted attributes");
    let (only_tells, mut end, mut fits) = (names.is_empty(), 0, true);
    objects.extended_attributes(node, &mut |name| {
        if !knows_trusted && name.starts_with(b"trusted.") {
            return;
        }
        let start = end;
        end += name.len() + 1;
        if let Some(place) = names.get_mut(start..end) {
            place[..name.len()].copy_from_slice(name);
            place[name.len()] = 0;
        } else {
            fits = false;
        }
    })?;
    if fits || only_tells { Ok(end) } else { Err(Errno::ERANGE) }
}
