//! Calls on paths of one or two components below the root: `posix`. Their paths lie below what stands for the root of a
//! window's test, where each name has the window's end; what a test has made goes when the window is cleaned.

use posix_calls::{Errno, Fields, Follow, ObjectOperations};

use crate::calls;
use crate::paths::{Named, Path};
use crate::values::PAGE_BYTES;

/// A call of directories and symbolic links.
#[derive(Debug, Clone, Copy)]
pub enum TreeCall {
    MakeDirectory,
    RemoveDirectory,
    /// The first path is where it leads.
    MakeSymlink,
    ReadLink,
    Stat(Follow, Fields),
    Access {
        write: bool,
    },
    ChangeMode(u32),
    ChangeOwner(u32),
    /// Both to the present.
    SetTimes,
}

impl TreeCall {
    /// Makes the call on paths, of which most have one; where a link leads comes into the page.
    ///
    /// # Errors
    /// Those of the call.
    pub fn perform<V: ObjectOperations>(
        self,
        objects: &V,
        paths: &[Path; 2],
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<Named<V::Handle>, Errno> {
        let first = paths[0].bytes();
        let done = |()| Named::Done;
        match self {
            Self::MakeDirectory => calls::mkdir(objects, first).map(done),
            Self::RemoveDirectory => calls::rmdir(objects, first).map(done),
            Self::MakeSymlink => calls::symlink(objects, first, paths[1].bytes()).map(done),
            Self::ReadLink => calls::readlink(objects, first, page).map(Named::Leads),
            Self::Stat(Follow::Symlinks, fields) => calls::stat(objects, first, fields).map(Named::Status),
            Self::Stat(_, fields) => calls::lstat(objects, first, fields).map(Named::Status),
            Self::Access { write: false } => calls::access(objects, first).map(done),
            Self::Access { write: true } => calls::may_write(objects, first).map(done),
            Self::ChangeMode(mode) => calls::chmod(objects, first, mode).map(done),
            Self::ChangeOwner(user) => calls::chown(objects, first, user).map(done),
            Self::SetTimes => calls::utimensat(objects, first).map(done),
        }
    }
}
