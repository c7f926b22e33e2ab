//! Owners as a run sees them.
//!
//! In root's runs they are as they are. A user's run knows one user and one group, and its overlay can keep no other owner: so what
//! belongs to others is shown as the user's own, with just the rights that the user has to it. What the command may do stays what the
//! user may do, and the commit is made with the user's own rights to the real tree.

use crate::attributes::Attributes;
use crate::machine::Right;

/// Who runs, and how owners are shown to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    right: Right,
    user: u32,
    group: u32,
    groups: Vec<u32>,
}

const SET_IDS: u32 = 0o6000;

impl Ownership {
    /// Of this process.
    pub(crate) fn current(right: Right) -> Ownership {
        let groups = nix::unistd::getgroups().unwrap_or_default();
        Ownership {
            right,
            user: nix::unistd::geteuid().as_raw(),
            group: nix::unistd::getegid().as_raw(),
            groups: groups.into_iter().map(nix::unistd::Gid::as_raw).collect(),
        }
    }

    /// Attributes as the run sees them.
    pub(crate) fn shown(&self, real: &Attributes) -> Attributes {
        let mut shown = real.clone();
        if self.right == Right::Root {
            return shown;
        }
        if real.user != self.user {
            let is_of_group = real.group == self.group || self.groups.contains(&real.group);
            let rights = if is_of_group { real.mode >> 3 } else { real.mode } & 0o7;
            shown.user = self.user;
            shown.mode = (real.mode & !0o700 & !SET_IDS) | (rights << 6);
        }
        shown.group = self.group;
        shown
    }

    /// Gives what the run has left as it was shown the owner that it truly has.
    pub(crate) fn restore(&self, object: &mut Attributes, base: &Attributes) {
        let shown = self.shown(base);
        if object.group == shown.group {
            object.group = base.group;
        }
        if object.user == shown.user {
            object.user = base.user;
        }
        if object.mode == shown.mode {
            object.mode = base.mode;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Kind;

    fn attributes(mode: u32, user: u32, group: u32) -> Attributes {
        let none = (0, 0);
        let (device, inode, links, size_bytes, special) = (1, 2, 1, 0, 0);
        let kind = Kind::File;
        Attributes { kind, mode, user, group, device, inode, links, size_bytes, modified: none, changed: none, special }
    }

    #[test]
    fn a_user_has_the_rights_that_it_has() {
        let user = Ownership { right: Right::User, user: 1000, group: 1000, groups: vec![27] };
        let seen = |mode, of_user, of_group| {
            let shown = user.shown(&attributes(mode, of_user, of_group));
            (shown.mode, shown.user, shown.group)
        };
        assert_eq!(seen(0o755, 0, 0), (0o555, 1000, 1000));
        assert_eq!(seen(0o1777, 0, 0), (0o1777, 1000, 1000));
        assert_eq!(seen(0o4755, 0, 0), (0o555, 1000, 1000));
        assert_eq!(seen(0o770, 0, 27), (0o770, 1000, 1000));
        assert_eq!(seen(0o640, 1000, 33), (0o640, 1000, 1000));
        let mut object = user.shown(&attributes(0o664, 1000, 33));
        user.restore(&mut object, &attributes(0o664, 1000, 33));
        assert_eq!(object, attributes(0o664, 1000, 33));
    }
}
