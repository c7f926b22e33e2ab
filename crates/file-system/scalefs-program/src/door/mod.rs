//! The door by FUSE: the kernel's requests become calls of ScaleFS.
//!
//! ```text
//! program ─ system call ─► kernel: paths, rights, descriptors, cached pages, names and attributes
//!                             │ /dev/fuse: what it does not have
//!                          worker ─► Door ─► posix-calls ─► ScaleFS          a lease of a core for each request
//! ```
//! **Whose view.** A door shows the instance as it is, or as a transaction sees it ([`view`], [`in_transaction`]): the calls are the
//! same, on other objects.
//!
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
mod in_transaction;
mod listing;
mod nodes;
mod requests;
mod view;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{FileAttr, INodeNo, Notifier};
use scalefs::{Errno, FileSystem, ObjectOperations};

use self::attributes::file_attributes;
use self::nodes::Nodes;
use self::view::{Look, NodeOf, View, Who};

pub(crate) use self::in_transaction::{Ending, InTransaction};
pub(crate) use self::view::AsItIs;

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

/// What a door and who serves it tell each other once the kernel has sent its greeting.
#[derive(Default)]
pub(crate) struct Greeting {
    /// Tells the kernel what it does not see; set before the first request.
    pub(crate) notifier: OnceLock<Notifier>,
    /// Set if each read and write is a request, of mapped files, too.
    pub(crate) is_direct: OnceLock<()>,
}

/// Answers the kernel's requests.
pub(crate) struct Door<V: View> {
    files: FileSystem,
    view: Arc<V>,
    nodes: Nodes<V>,
    caching: Caching,
    /// Whether the kernel need not say that it opens and closes.
    has_no_opens: bool,
    greeting: Arc<Greeting>,
}

impl<V: View> Door<V> {
    pub(crate) fn new(files: &FileSystem, view: Arc<V>, caching: Caching, greeting: Arc<Greeting>) -> Door<V> {
        Door { files: files.clone(), nodes: Nodes::new(&view), view, caching, has_no_opens: false, greeting }
    }

    fn believed(&self) -> Duration {
        match self.caching {
            Caching::Full => BELIEVED,
            Caching::Nothing => Duration::ZERO,
        }
    }

    /// Makes a call for the kernel itself.
    fn call_for_kernel<T>(&self, call: impl for<'c> FnMut(&V::Calls<'c>) -> Result<T, Errno>) -> Result<T, Errno> {
        self.view.call(Who::Kernel, call)
    }

    /// The attributes of what a name leads to, of which the kernel is told.
    fn look_up<'v, 'c>(
        &self,
        objects: &'v V::Objects<'c>,
        directory: (INodeNo, NodeOf<'v, 'c, V>),
        name: &[u8],
    ) -> Result<FileAttr, Errno> {
        let key = objects.key(name).ok_or(Errno::ENAMETOOLONG)?;
        loop {
            let found = objects.look_up(directory.1, &key)?.ok_or(Errno::ENOENT)?;
            let node = objects.node(&found);
            let attributes = file_attributes::<V>(objects, node, Look::InPassing)?;
            if V::KEEPS_ANSWERS || objects.still_same(&found)? {
                self.nodes.tell(objects, node, attributes.ino.0)?;
                self.view.found(directory.0.0, name, attributes.ino.0);
                return Ok(attributes);
            }
        }
    }

    /// Tells the kernel that attributes of an object are not what it believes.
    fn forget_attributes(&self, number: u64) {
        if let Some(notifier) = self.greeting.notifier.get() {
            // A kernel that does not know the object believes nothing of it.
            let _ = notifier.inval_inode(INodeNo(number), -1, 0);
        }
    }
}

fn bytes(name: &OsStr) -> &[u8] {
    name.as_bytes()
}

fn name_of(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
