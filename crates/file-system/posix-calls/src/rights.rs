//! Who may do what: checks of permissions, and changes of permissions and times as data.
//!
//! A change rests on what it replaces. So the call layer hands over *what* is to become of permissions
//! ([`PermissionChange`]) and *who* may set times ([`TimesRight`]); whoever holds the object evaluates that where nobody
//! else can change it: under its lock, or at its owner.

use sync::mutant::planted;

use crate::credentials::Credentials;
use crate::errno::Errno;
use crate::kind::{Kind, Permissions, SET_GROUP, SET_USER};

/// A permission that a call needs, with the bit of the lowest class of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need(pub(crate) u32);

impl Need {
    /// To execute a file, or to look a name up in a directory.
    pub const SEARCH: Need = Need(1);
    /// To change data.
    pub const WRITE: Need = Need(2);
    /// To change a directory's names.
    pub const CHANGE_NAMES: Need = Need(3);
    /// To read.
    pub const READ: Need = Need(4);

    /// These permissions and others.
    #[inline]
    pub const fn with(self, other: Need) -> Need {
        Need(self.0 | other.0)
    }

    /// The permissions as bits, for messages.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The permissions of these bits.
    #[inline]
    pub const fn from_bits(bits: u32) -> Need {
        Need(bits & 7)
    }

    /// Whether a caller has the permissions for an object (Linux: `generic_permission`).
    ///
    /// # Errors
    /// EACCES.
    pub fn check(self, credentials: &Credentials, kind: Kind, permissions: Permissions) -> Result<(), Errno> {
        if credentials.is_superuser() {
            return self.check_superuser(kind, || Ok(permissions.mode));
        }
        check_user(credentials, permissions, self)
    }

    /// The same for the superuser, to whom everything is allowed but to execute what nobody may: mostly the mode has not to
    /// be read.
    #[inline]
    pub(crate) fn check_superuser(self, kind: Kind, mode: impl FnOnce() -> Result<u32, Errno>) -> Result<(), Errno> {
        let is_allowed = self.0 & 1 == 0 || kind == Kind::Directory || mode()? & 0o111 != 0;
        if is_allowed { Ok(()) } else { Err(Errno::EACCES) }
    }
}

/// Whether these permissions let a caller who is not the superuser do what it needs.
#[inline]
pub(crate) fn check_user(
    credentials: &Credentials,
    Permissions { mode, user, group }: Permissions,
    need: Need,
) -> Result<(), Errno> {
    let class = if credentials.user == user {
        mode >> 6
    } else if credentials.group == group
        || credentials.is_in_group(group) && !planted("calls: other groups than the first give no right")
    {
        mode >> 3
    } else {
        mode
    };
    if class & need.0 == need.0 { Ok(()) } else { Err(Errno::EACCES) }
}

fn check_owner(credentials: &Credentials, owner: u32) -> Result<(), Errno> {
    if credentials.is_superuser() || credentials.user == owner { Ok(()) } else { Err(Errno::EPERM) }
}

/// What is to become of an object's permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermissionChange {
    /// Permission, set-id and sticky bits (POSIX `chmod`; Linux `chmod_common`, `setattr_prepare`): the set-group-id bit goes
    /// unless the caller is in the group.
    Mode(u32),
    /// Owner and group, each if given (POSIX `chown`; Linux `chown_common`, `setattr_prepare`); set-id bits of what is no
    /// directory are cleared.
    Owner {
        /// The owner to be.
        user: Option<u32>,
        /// The group to be.
        group: Option<u32>,
    },
    /// Set-id bits of a file go whose data a user changes (POSIX `write`; Linux `setattr_should_drop_suidgid`).
    DropSetIds,
}

impl PermissionChange {
    /// The permissions of an object after the change, or why the caller may not make it.
    ///
    /// # Errors
    /// EPERM.
    pub fn of(self, credentials: &Credentials, kind: Kind, old: Permissions) -> Result<Permissions, Errno> {
        let is_privileged = credentials.is_superuser();
        match self {
            PermissionChange::Mode(mode) => {
                check_owner(credentials, old.user)?;
                let keeps_group = is_privileged
                    || credentials.is_in_group(old.group)
                    || planted("calls: chmod by a stranger to the group sets its id");
                let mode = mode & 0o7777 & !if keeps_group { 0 } else { SET_GROUP };
                Ok(Permissions { mode, ..old })
            }
            PermissionChange::Owner { user, group } => {
                let mut new = Permissions { user: user.unwrap_or(old.user), group: group.unwrap_or(old.group), ..old };
                if kind != Kind::Directory && !planted("calls: chown keeps set-id bits") {
                    new.mode &= !SET_USER;
                    if new.mode & 0o010 != 0 || !is_privileged && !credentials.is_in_group(old.group) {
                        new.mode &= !SET_GROUP;
                    }
                }
                if !is_privileged {
                    let is_owner = credentials.user == old.user;
                    let keeps_user = user.is_none_or(|user| is_owner && user == old.user);
                    let may_give = |group| {
                        let is_any = planted("calls: an owner gives files to any group");
                        group == old.group || credentials.is_in_group(group) || is_any
                    };
                    let keeps_group = group.is_none_or(|group| is_owner && may_give(group));
                    if !keeps_user || !keeps_group || (new.mode != old.mode && !is_owner) {
                        return Err(Errno::EPERM);
                    }
                }
                Ok(new)
            }
            PermissionChange::DropSetIds if planted("calls: changes of data keep set-id bits") => Ok(old),
            PermissionChange::DropSetIds => {
                let drops_group = old.mode & 0o010 != 0 || !credentials.is_in_group(old.group);
                let dropped = SET_USER | if drops_group { SET_GROUP } else { 0 };
                Ok(Permissions { mode: old.mode & !dropped, ..old })
            }
        }
    }
}

/// Who may set the times of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimesRight {
    /// Its owner.
    Owner,
    /// Its owner, and who may write: both times become the present.
    Writer,
}

impl TimesRight {
    /// Whether the caller may.
    ///
    /// # Errors
    /// EPERM, or EACCES where the right to write would do.
    pub fn check(self, credentials: &Credentials, permissions: Permissions) -> Result<(), Errno> {
        match (self, check_owner(credentials, permissions.user)) {
            (TimesRight::Writer, Err(_)) => check_user(credentials, permissions, Need::WRITE),
            (_, checked) => checked,
        }
    }
}
