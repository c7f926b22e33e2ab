//! The door by FUSE: the kernel's requests become calls of ScaleFS.
//!
//! ```text
//! program ─ system call ─► kernel: paths, rights, descriptors, cached pages, names and attributes
//!                             │ /dev/fuse: what it does not have
//!                          worker ─► Door ─► posix-calls ─► ScaleFS          a lease of a core for each request
//! ```
//! **Who checks what.** The kernel walks paths and checks rights by the attributes that it was told (`default_permissions`), as
//! on every file system; it knows capabilities and groups best. What changes names, owners and modes is checked once more by
//! the call itself, as the caller ([`callers`]). Sizes, times and data are the kernel's: it writes back what it has cached on
//! behalf of others.
//!
//! **What is cached.** Nobody but the kernel changes the tree, so what it was told stays true until it changes it; it also
//! remembers names that are not there. The one change that it does not see, set-id bits that a write has cleared, it is told of.
//!
//! **No open files.** The kernel need not say that it opens: what is open it does not forget ([`nodes`]).

mod attributes;
mod callers;
mod changes;
mod data;
mod listing;
mod nodes;
mod requests;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{FileAttr, INodeNo, Notifier};
use scalefs::{DataOperations, Errno, FileSystem, InProcess, Node, ObjectOperations, Outside, Process};

use self::attributes::file_attributes;
use self::callers::Callers;
use self::nodes::Nodes;

/// For how long the kernel believes what nobody else changes.
const BELIEVED: Duration = Duration::from_secs(1 << 30);

/// Whether the kernel caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Names, attributes and data, and it writes data back later.
    Full,
    /// Nothing but pages that are mapped: every call is a request.
    Nothing,
}

/// Answers the kernel's requests.
pub(crate) struct Door {
    files: FileSystem,
    nodes: Nodes,
    callers: Callers,
    caching: Caching,
    /// Whether the kernel need not say that it opens and closes.
    has_no_opens: bool,
    /// Tells the kernel what it does not see; set before the first request.
    notifier: Arc<OnceLock<Notifier>>,
}

impl Door {
    pub(crate) fn new(files: &FileSystem, caching: Caching, notifier: Arc<OnceLock<Notifier>>) -> Result<Door, Errno> {
        Ok(Door {
            files: files.clone(),
            nodes: Nodes::new(files),
            callers: Callers::new(files)?,
            caching,
            has_no_opens: false,
            notifier,
        })
    }

    fn believed(&self) -> Duration {
        match self.caching {
            Caching::Full => BELIEVED,
            Caching::Nothing => Duration::ZERO,
        }
    }

    /// Makes a call as a process; again if it finds no space and some may become free.
    fn call<T>(
        &self,
        process: &Process,
        mut call: impl FnMut(&InProcess<'_, Outside>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut lease = self.files.begin().map_err(|_| Errno::EIO)?;
        loop {
            let outcome = call(&lease.calls_of(process));
            if !matches!(outcome, Err(Errno::ENOSPC)) || !lease.make_room() {
                return outcome;
            }
        }
    }

    /// Makes a call for the kernel itself.
    fn call_for_kernel<T>(&self, call: impl FnMut(&InProcess<'_, Outside>) -> Result<T, Errno>) -> Result<T, Errno> {
        self.call(self.callers.kernel().process(), call)
    }

    /// The attributes of what a name leads to, of which the kernel is told.
    fn look_up(&self, calls: &InProcess<'_, Outside>, directory: Node<'_>, name: &[u8]) -> Result<FileAttr, Errno> {
        let objects = calls.objects();
        let key = objects.key(name).ok_or(Errno::ENAMETOOLONG)?;
        loop {
            let found = objects.look_up(directory, &key)?.ok_or(Errno::ENOENT)?;
            let node = objects.node(&found);
            let attributes = file_attributes(objects, node)?;
            if objects.still_same(&found)? {
                self.nodes.tell(objects, node, attributes.ino.0)?;
                return Ok(attributes);
            }
        }
    }

    /// Tells the kernel that attributes of an object are not what it believes.
    fn forget_attributes(&self, number: u64) {
        if let Some(notifier) = self.notifier.get() {
            // A kernel that does not know the object believes nothing of it.
            let _ = notifier.inval_inode(INodeNo(number), -1, 0);
        }
    }
}

fn bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}
