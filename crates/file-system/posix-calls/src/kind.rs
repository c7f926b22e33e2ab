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
    /// A name for a pipe that lies outside (POSIX FIFO).
    NamedPipe = 6,
    /// A name for a socket that lies outside.
    NamedSocket = 10,
    /// A name for a character device.
    CharacterDevice = 12,
    /// A name for a block device.
    BlockDevice = 14,
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
            6 => Kind::NamedPipe,
            10 => Kind::NamedSocket,
            12 => Kind::CharacterDevice,
            14 => Kind::BlockDevice,
            _ => Kind::Regular,
        }
    }

    /// Whether descriptors of such an object have an offset.
    #[inline]
    pub fn is_seekable(self) -> bool {
        // Regular files, symbolic links and directories have the lowest numbers.
        (self as u8) < Kind::Pipe as u8
    }

    /// Whether it is a name for something that lies outside of the file system: whoever opens it there knows what it is.
    #[inline]
    pub fn is_outside(self) -> bool {
        matches!(self, Kind::NamedPipe | Kind::NamedSocket | Kind::CharacterDevice | Kind::BlockDevice)
    }

    /// Whether it has a number of a device.
    #[inline]
    pub fn is_device(self) -> bool {
        matches!(self, Kind::CharacterDevice | Kind::BlockDevice)
    }

    /// The bits of `st_mode` that tell the kind (`S_IFMT` of Linux).
    pub fn mode_bits(self) -> u32 {
        match self {
            Kind::Regular => 0o100_000,
            Kind::Symlink => 0o120_000,
            Kind::Directory => 0o040_000,
            Kind::Pipe | Kind::NamedPipe => 0o010_000,
            Kind::Socket | Kind::NamedSocket => 0o140_000,
            Kind::CharacterDevice => 0o020_000,
            Kind::BlockDevice => 0o060_000,
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
