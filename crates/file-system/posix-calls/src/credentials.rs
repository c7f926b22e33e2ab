//! Who calls.

/// Most supplementary groups of a caller.
pub const MAX_GROUPS: usize = 32;

/// A caller's user and groups, as permission checks see them (POSIX.1-2017, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user; 0 may do everything.
    pub user: u32,
    /// The group, which new files get.
    pub group: u32,
    groups: [u32; MAX_GROUPS],
    group_count: u8,
}

impl Credentials {
    /// User 0, group 0.
    pub const SUPERUSER: Credentials = Credentials { user: 0, group: 0, groups: [0; MAX_GROUPS], group_count: 0 };

    /// A user with a group and supplementary groups; `None` if there are more than [`MAX_GROUPS`].
    pub fn new(user: u32, group: u32, supplementary: &[u32]) -> Option<Credentials> {
        let mut groups = [0; MAX_GROUPS];
        groups.get_mut(..supplementary.len())?.copy_from_slice(supplementary);
        Some(Credentials { user, group, groups, group_count: supplementary.len() as u8 })
    }

    /// The supplementary groups.
    pub fn supplementary(&self) -> &[u32] {
        &self.groups[..usize::from(self.group_count)]
    }

    /// Whether permission bits do not bind the caller.
    #[inline]
    pub fn is_superuser(&self) -> bool {
        self.user == 0
    }

    /// Whether the caller is in a group.
    #[inline]
    pub fn is_in_group(&self, group: u32) -> bool {
        self.group == group || self.supplementary().contains(&group)
    }
}
