//! An inode as what it is the first field of.
#![allow(unsafe_code)]

use posix_calls::Kind;

use crate::directory::Directory;
use crate::file::File;
use crate::inode_ref::InodeRef;
use crate::pipe::Pipe;
use crate::socket::SocketInode;

impl InodeRef {
    /// The inode as a directory.
    #[inline]
    pub(crate) fn directory<'i>(self) -> &'i Directory {
        assert_eq!(self.kind(), Kind::Directory, "only directories have names");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `Directory`.
        unsafe { self.address().cast::<Directory>().as_ref() }
    }

    /// The inode as a regular file.
    #[inline]
    pub(crate) fn file<'i>(self) -> &'i File {
        assert_eq!(self.kind(), Kind::Regular, "only regular files have data");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `File`.
        unsafe { self.address().cast::<File>().as_ref() }
    }

    /// The inode as a pipe.
    #[inline]
    pub(crate) fn pipe<'i>(self) -> &'i Pipe {
        assert_eq!(self.kind(), Kind::Pipe, "only pipes have ends");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `Pipe`.
        unsafe { self.address().cast::<Pipe>().as_ref() }
    }

    /// The inode as a socket's.
    #[inline]
    pub(crate) fn socket<'i>(self) -> &'i SocketInode {
        assert_eq!(self.kind(), Kind::Socket, "only sockets have messages");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `SocketInode`.
        unsafe { self.address().cast::<SocketInode>().as_ref() }
    }
}
