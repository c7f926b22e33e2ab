//! What an object is, and who may do what with it.

/// The number of an inode, never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeNumber(pub u64);

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A regular file.
    Regular = 0,
    /// A symbolic link.
    Symlink = 1,
    /// A directory.
    Directory = 2,
    /// A pipe; no name leads to one.
    Pipe = 4,
    /// A local datagram socket; no name in a directory leads to one.
    Socket = 8,
}

impl Kind {
    /// The kind with this number; regular for any other.
    #[inline]
    pub fn from_number(number: u8) -> Kind {
        match number {
            1 => Kind::Symlink,
            2 => Kind::Directory,
            4 => Kind::Pipe,
            8 => Kind::Socket,
            _ => Kind::Regular,
        }
    }

    /// Whether descriptors of such an object have an offset.
    #[inline]
    pub fn is_seekable(self) -> bool {
        !matches!(self, Kind::Pipe | Kind::Socket)
    }

    /// The bits of `st_mode` that tell the kind (`S_IFMT` of Linux).
    pub fn mode_bits(self) -> u32 {
        match self {
            Kind::Regular => 0o100_000,
            Kind::Symlink => 0o120_000,
            Kind::Directory => 0o040_000,
            Kind::Pipe => 0o010_000,
            Kind::Socket => 0o140_000,
        }
    }
}

/// Owner and permission bits, read and written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions {
    /// Permission, set-id and sticky bits: 0 to 0o7777.
    pub mode: u32,
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// `S_ISUID`: what is executed acts as the file's owner.
pub const SET_USER: u32 = 0o4000;
/// `S_ISGID`: what is executed acts as the file's group; what is made in a directory gets its group.
pub const SET_GROUP: u32 = 0o2000;
/// `S_ISVTX`: names in a directory are removed by their owners alone.
pub const STICKY: u32 = 0o1000;
