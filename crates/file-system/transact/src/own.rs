//! What has become of names and objects, as far as it is small: copied where it may have to be undone.

use alloc::boxed::Box;

use posix_calls::{InodeNumber, Kind, NewObject, Permissions};

/// What has become of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnName {
    /// In the base.
    pub(crate) before: Option<InodeNumber>,
    pub(crate) leads_to: Option<InodeNumber>,
    /// Where it stands in listings, unless the base has it, too.
    pub(crate) cookie: u64,
    /// The place of the one of its directory that changed before it.
    pub(crate) previous: Option<u32>,
}

/// What has become of an object that is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Status {
    /// Names that it has got, less those that it has lost.
    pub(crate) links: i64,
    /// Of a directory: the one in which it is now.
    pub(crate) parent: Option<InodeNumber>,
    pub(crate) is_removed: bool,
    /// The place of the name in it that changed last.
    pub(crate) last_name: Option<u32>,
    /// As it was set.
    pub(crate) accessed_ns: Option<i64>,
    pub(crate) modified: Option<Modified>,
    /// Its status has changed, too: at the moment of the transaction.
    pub(crate) is_changed: bool,
}

/// When an object was modified last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modified {
    /// At the moment of the transaction.
    Now,
    /// As it was set.
    At(i64),
}

/// An object that a transaction has made, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// What it is.
    pub kind: Kind,
    /// Its owner and permission bits.
    pub permissions: Permissions,
    /// Of a symbolic link: what it leads to.
    pub target: Box<[u8]>,
    /// Of a name for a device: the device.
    pub device: u64,
}

impl Made {
    pub(crate) fn of(object: NewObject<'_>, permissions: Permissions) -> Made {
        let (target, device): (&[u8], u64) = match object {
            NewObject::Symlink(target) => (target, 0),
            NewObject::Outside(_, device) => (&[], device),
            NewObject::File | NewObject::Directory => (&[], 0),
        };
        Made { kind: object.kind(), permissions, target: target.into(), device }
    }
}
