//! The verbs in memory that all cores share, as far as they concern one object or the caller; those on names are in
//! `direct_names`.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use epoch::Guard;
use hashdir::{Found, HashDir};
use percpu::Core;
use sync::mutant::planted;

use crate::context::Context;
use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::file::File;
use crate::host::Host;
use crate::inode::{Directory, Inode, Kind, Permissions, Symlink, stamp_of, time_of};
use crate::instance::{ScaleFs, Stamp};
use crate::pipe::Pipe;

/// One call of one core on behalf of one process.
pub struct Direct<'c, H> {
    pub(crate) fs: &'c ScaleFs,
    pub(crate) context: &'c Context,
    pub(crate) guard: Guard<'c>,
    pub(crate) host: &'c H,
    /// Whether the call has noted what it works on.
    is_working: Cell<bool>,
}

impl<H> Drop for Direct<'_, H> {
    #[inline]
    fn drop(&mut self) {
        if self.is_working.get() {
            self.fs.working_ended(self.guard.core());
        }
    }
}

/// An inode during a call: its address, with its kind in the low bits, as names have it. Not dereferenced later, unless
/// a reference was taken: the core maintains between calls only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(u64);

const KIND_MASK: u64 = 63;

impl Node {
    pub(crate) fn new(inode: NonNull<Inode>, kind: Kind) -> Node {
        Node(inode.as_ptr() as usize as u64 | kind as u64)
    }

    /// The node with bits that [`Node::to_bits`] gave.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Node {
        Node(bits)
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn of(found: &Found<'_>) -> Node {
        Node(found.value())
    }

    /// What it is; inodes do not change their kind.
    #[inline]
    pub fn kind(self) -> Kind {
        Kind::from_number((self.0 & KIND_MASK) as u8)
    }

    #[inline]
    pub(crate) fn address(self) -> NonNull<Inode> {
        // SAFETY: nodes are made from addresses of inodes.
        unsafe { NonNull::new_unchecked((self.0 & !KIND_MASK) as usize as *mut Inode) }
    }

    /// The inode, for the time of the call in which the node was found, or while a reference is held.
    #[inline]
    pub(crate) fn inode<'i>(self) -> &'i Inode {
        // SAFETY: whoever has a node found it in this call, where a name or a counted reference led to it, or holds a
        // reference himself; see `refcache` on why it lives on.
        unsafe { self.address().as_ref() }
    }

    /// The inode as a directory.
    #[inline]
    pub(crate) fn directory<'i>(self) -> &'i Directory {
        assert_eq!(self.kind(), Kind::Directory, "only directories have names");
        // SAFETY: as in `inode`; an inode of that kind is the first field of a `Directory`.
        unsafe { self.address().cast::<Directory>().as_ref() }
    }
}

impl Node {
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
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Node({:?} at {:#x})", self.kind(), self.0 & !KIND_MASK)
    }
}

impl<'c, H: Host> Direct<'c, H> {
    #[inline]
    pub(crate) fn new(fs: &'c ScaleFs, core: &'c Core<'_>, context: &'c Context, host: &'c H) -> Direct<'c, H> {
        Direct { fs, context, guard: fs.epochs().pin(core), host, is_working: Cell::new(false) }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core<'c> {
        self.guard.core()
    }

    /// See [`ScaleFs::working_on`].
    #[inline]
    pub(crate) fn working_on(&self, nodes: &[Node]) {
        self.is_working.set(true);
        self.fs.working_on(self.core(), nodes);
    }

    #[inline]
    pub(crate) fn names(&self, directory: Node) -> &HashDir {
        &directory.directory().names
    }

    #[inline]
    pub(crate) fn take_reference(&self, node: Node) {
        // SAFETY: a name or a reference has led to the inode in this call.
        unsafe { self.fs.counts().change(self.core(), &node.inode().references, 1) };
    }

    #[inline]
    pub(crate) fn drop_reference(&self, node: Node) {
        // SAFETY: the caller's reference keeps the inode.
        unsafe { self.fs.counts().change(self.core(), &node.inode().references, -1) };
    }

    pub(crate) fn swap_working_directory(&self, directory: Node) {
        self.take_reference(directory);
        self.drop_reference(self.context.replace_working_directory(directory));
    }

    pub(crate) fn target_of(&self, symlink: Node) -> &[u8] {
        assert_eq!(symlink.kind(), Kind::Symlink, "only symbolic links have targets");
        let place = symlink.address().cast::<Symlink>();
        // SAFETY: an inode of that kind is the first field of a `Symlink`, whose target's bytes follow it, immutable; it
        // lives during the call.
        unsafe { core::slice::from_raw_parts(place.add(1).cast().as_ptr(), usize::from(place.as_ref().target_bytes)) }
    }

    /// For calls that have changed nothing since they were pinned.
    pub(crate) fn read_attributes(&self, node: Node, fields: Fields) -> Attributes {
        let inode = node.inode();
        let mut attributes = Attributes {
            number: inode.header.number(),
            kind: node.kind(),
            mode: 0,
            user: 0,
            group: 0,
            link_count: 0,
            size_bytes: 0,
            accessed_ns: 0,
            modified_ns: 0,
            changed_ns: 0,
        };
        if fields.contains(Fields::PERMISSIONS) {
            let (permissions, accessed_ns) = inode.header.read(self.host);
            let Permissions { mode, user, group } = permissions;
            attributes = Attributes { mode, user, group, accessed_ns, ..attributes };
        }
        if fields.contains(Fields::LINK_COUNT) {
            // SAFETY: nodes live during the call.
            let count = unsafe { self.fs.counts().exact_after_fence(&inode.links, self.host) };
            attributes.link_count = u32::try_from(count).unwrap_or(0);
        }
        if fields.contains(Fields::SIZE) {
            attributes.size_bytes = match node.kind() {
                Kind::Symlink => self.target_of(node).len() as u64,
                Kind::Regular => node.file().size_after_fence(self.fs, self.host),
                Kind::Directory | Kind::Pipe => 0,
            };
        }
        if fields.contains(Fields::TIMES) {
            let [modified, changed] = self.fs.stamps().read_after_fence(&inode.stamps, self.host);
            attributes = Attributes { modified_ns: time_of(modified), changed_ns: time_of(changed), ..attributes };
        }
        attributes
    }

    pub(crate) fn replace_permissions(
        &self,
        node: Node,
        change: &dyn Fn(Permissions) -> Result<Permissions, Errno>,
    ) -> Result<(), Errno> {
        let header = &node.inode().header;
        // Look without writing first.
        change(header.read(self.host).0)?;
        self.working_on(&[node]);
        header.write(self.core(), self.host, |permissions, accessed| {
            change(permissions).map(|permissions| (permissions, accessed))
        })
    }

    /// Marks that an object changes now.
    #[inline]
    pub(crate) fn mark(&self, node: Node, stamp: Stamp) {
        self.fs.stamp(self.core(), node, stamp, self.host.now_ns(), self.host);
    }

    /// Sets the times of access and modification that are given, if `check` lets, while permissions and times are nobody else's
    /// to change. Marks the time of the change too if that of the modification is given.
    pub(crate) fn replace_times(
        &self,
        node: Node,
        check: &dyn Fn(Permissions) -> Result<(), Errno>,
        (accessed, modified): (Option<i64>, Option<i64>),
    ) -> Result<(), Errno> {
        let Inode { header, stamps, .. } = node.inode();
        // Look without writing first.
        check(header.read(self.host).0)?;
        self.working_on(&[node]);
        let set_modified = || {
            let Some(modified_ns) = modified else { return };
            let (reset, [_, changed]) = self.fs.stamps().reset(self.core(), stamps, self.host);
            let now = stamp_of(self.host.now_ns() as i64);
            reset.finish([stamp_of(modified_ns), changed.max(now)]);
        };
        let one_by_one = planted("scalefs: times are set one after the other");
        header.write(self.core(), self.host, |permissions, old| {
            if !planted("scalefs: times are set by who was the owner") {
                check(permissions)?;
            }
            if !one_by_one {
                set_modified();
            }
            Ok((permissions, accessed.unwrap_or(old)))
        })?;
        if one_by_one {
            set_modified();
        }
        Ok(())
    }
}
