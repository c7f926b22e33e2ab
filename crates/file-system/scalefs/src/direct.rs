//! The verbs in memory that all cores share, as far as they concern one object or the caller; those on names are in
//! `direct_names`.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::convert::Infallible;

use commit::{Anyone, Owner, Waiting};
use epoch::Guard;
use hashdir::HashDir;
use percpu::Core;
use posix_calls::{Attributes, Credentials, Errno, Fields, Kind, PermissionChange, Permissions, TimesRight};
use sync::mutant::planted;

use crate::context::Context;
use crate::file::Access;
use crate::host::Host;
use crate::inode::{Inode, Symlink, stamp_of, time_of};
use crate::inode_ref::InodeRef;
use crate::instance::{ScaleFs, Stamp, WORKING_OBJECTS};

/// Why an operation in shared memory changed nothing.
pub(crate) type OperationError = posix_calls::OperationError<Infallible>;

/// One call of one core on behalf of one process.
pub struct Direct<'c, H> {
    pub(crate) fs: &'c ScaleFs,
    pub(crate) context: &'c Context,
    /// Those of the context, or of a thread that acts as somebody else.
    credentials: &'c Credentials,
    pub(crate) guard: Guard<'c>,
    pub(crate) host: &'c H,
    /// [`WORKS`], [`HEEDS_NO_CLAIM`].
    state: Cell<u8>,
}

/// The call has noted what it works on.
const WORKS: u8 = 1;
/// It waits for no claim, any more or at all.
const HEEDS_NO_CLAIM: u8 = 2;

impl<H> Drop for Direct<'_, H> {
    #[inline]
    fn drop(&mut self) {
        // Who has waited for a claim has nearly always noted something, too.
        if self.state.get() != 0 {
            self.fs.working_ended(self.guard.core());
        }
    }
}

impl ScaleFs {
    /// Begins a call of this core on behalf of the process of `context`.
    ///
    /// # Panics
    /// If the context or the core is of another instance.
    #[inline]
    pub fn begin<'c, H: Host>(&'c self, core: &'c Core<'_>, context: &'c Context, host: &'c H) -> Direct<'c, H> {
        context.assert_of(self);
        Direct::new(self, core, context, host)
    }
}

impl<'c, H: Host> Direct<'c, H> {
    #[inline]
    pub(crate) fn new(fs: &'c ScaleFs, core: &'c Core<'_>, context: &'c Context, host: &'c H) -> Direct<'c, H> {
        let credentials = context.credentials();
        Direct { fs, context, credentials, guard: fs.epochs().pin(core), host, state: Cell::new(0) }
    }

    /// Makes the call with these credentials.
    #[inline]
    pub(crate) fn act_as(&mut self, credentials: &'c Credentials) {
        self.credentials = credentials;
    }

    /// As whom the call is made.
    #[inline]
    pub(crate) fn caller(&self) -> &'c Credentials {
        self.credentials
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core<'c> {
        self.guard.core()
    }

    /// How calls on data reach files.
    #[inline]
    pub(crate) fn access(&self) -> Access<'_, H> {
        Access { fs: self.fs, guard: &self.guard, wait: self.host }
    }

    /// See [`ScaleFs::working_on`]. Comes before all locks on these objects, and waits while one of them is claimed.
    #[inline]
    pub(crate) fn working_on(&self, nodes: &[InodeRef]) {
        if self.fs.claims.are_made() {
            // By value, so that nothing lies in memory where there are no claims.
            self.heed_claims_on(core::array::from_fn(|index| nodes.get(index).copied()));
        }
        self.state.set(self.state.get() | WORKS);
        self.fs.working_on(self.core(), nodes);
    }

    /// Lets the call wait for no claim from now on.
    pub(crate) fn set_heeds_no_claim(&self) {
        self.state.set(self.state.get() | HEEDS_NO_CLAIM);
    }

    #[cold]
    fn heed_claims_on(&self, nodes: [Option<InodeRef>; WORKING_OBJECTS]) {
        if self.state.get() & HEEDS_NO_CLAIM == 0 && nodes[0].is_some() {
            let concerns = |number| nodes.iter().flatten().any(|node| node.inode().header.number() == number);
            self.fs.claims.heed(None, self.host, &concerns);
            // Once in a call: so the wait of a call is bounded.
            self.set_heeds_no_claim();
        }
    }

    /// In debug builds: an object that a call of another arena has lent is not ours to look at, or to count.
    #[inline]
    fn assert_is_here(&self, node: InodeRef) {
        #[cfg(debug_assertions)]
        {
            let arena = self.core().arena();
            let offset = node.address().addr().get().wrapping_sub(core::ptr::from_ref(arena).addr());
            assert!(offset < arena.size_bytes(), "an object of another file system");
        }
        #[cfg(not(debug_assertions))]
        let _ = node;
    }

    #[inline]
    pub(crate) fn names(&self, directory: InodeRef) -> &HashDir {
        self.assert_is_here(directory);
        &directory.directory().names
    }

    #[inline]
    pub(crate) fn take_reference(&self, node: InodeRef) {
        self.assert_is_here(node);
        // SAFETY: a name or a reference has led to the inode in this call.
        unsafe { self.fs.counts().change(self.core(), &node.inode().references.counted, 1) };
    }

    #[inline]
    pub(crate) fn drop_reference(&self, node: InodeRef) {
        // SAFETY: the caller's reference, which is given up here, has kept the inode until now.
        unsafe { self.fs.counts().change(self.core(), &node.inode().references.counted, -1) };
    }

    pub(crate) fn swap_working_directory(&self, directory: InodeRef) {
        self.take_reference(directory);
        self.drop_reference(self.context.replace_working_directory(directory));
    }

    pub(crate) fn target_of(&self, symlink: InodeRef) -> &[u8] {
        assert_eq!(symlink.kind(), Kind::Symlink, "only symbolic links have targets");
        self.bytes_behind(symlink)
    }

    /// The number of the device that a name is for.
    pub(crate) fn device_of(&self, node: InodeRef) -> u64 {
        assert!(node.kind().is_outside(), "only names for what lies outside have such a number");
        u64::from_ne_bytes(self.bytes_behind(node).try_into().expect("made with as many bytes"))
    }

    /// The bytes behind an inode that was made with some.
    fn bytes_behind(&self, node: InodeRef) -> &[u8] {
        let place = node.address().cast::<Symlink>();
        // SAFETY: the callers have seen that an inode of that kind is the first field of a `Symlink`, whose bytes follow it,
        // immutable; it lives during the call.
        unsafe { core::slice::from_raw_parts(place.add(1).cast().as_ptr(), usize::from(place.as_ref().target_bytes)) }
    }

    /// The caller as one who looks at marks, and waits as its host likes to.
    #[inline(always)]
    pub(crate) fn anyone(&self) -> Waiting<'_, Anyone, H> {
        Waiting(Anyone, self.host)
    }

    /// As [`Direct::anyone`], in an open operation of its own.
    #[inline(always)]
    pub(crate) fn owner(&self) -> Waiting<'_, Owner, H> {
        Waiting(Owner(self.core().index()), self.host)
    }

    /// Permissions and access time.
    #[inline]
    pub(crate) fn read_header(&self, node: InodeRef) -> (Permissions, i64) {
        let (header, decisions) = (&node.inode().header, self.fs.decisions());
        match H::SEES_THROUGH_OWN_MARKS {
            false => header.read(decisions, self.anyone(), self.host),
            true => header.read(decisions, self.owner(), self.host),
        }
    }

    /// For calls that have changed nothing since they were pinned.
    pub(crate) fn read_attributes(&self, node: InodeRef, fields: Fields) -> Attributes {
        let inode = node.inode();
        let mut attributes = Attributes::identity(inode.header.number(), node.kind());
        if fields.contains(Fields::PERMISSIONS) {
            let (permissions, accessed_ns) = self.read_header(node);
            let Permissions { mode, user, group } = permissions;
            attributes = Attributes { mode, user, group, accessed_ns, ..attributes };
        }
        if fields.contains(Fields::LINK_COUNT) {
            // SAFETY: the node is of this call: a name or a counted reference led to it since the core was pinned, or a reference
            // keeps it; so it is not freed before the call ends.
            let count = unsafe {
                match H::SEES_THROUGH_OWN_MARKS {
                    false => self.fs.counts().exact_after_fence(self.core(), &inode.links, self.host),
                    true => self.fs.counts().exact_for(&inode.links, self.owner(), self.host),
                }
            };
            attributes.link_count = u32::try_from(count).unwrap_or(0);
        }
        if fields.contains(Fields::SIZE) {
            attributes.size_bytes = match node.kind() {
                Kind::Symlink => self.target_of(node).len() as u64,
                Kind::Regular => node.file().size_after_fence(self.access()),
                _ => 0,
            };
        }
        if fields.contains(Fields::TIMES) {
            let stamps = self.fs.stamps_of(node);
            // SAFETY: as above; it is freed later than its count is.
            let read = unsafe { stamps.read_after_fence(self.core(), &inode.stamps, self.host) };
            let [modified, changed] = read;
            attributes = Attributes { modified_ns: time_of(modified), changed_ns: time_of(changed), ..attributes };
        }
        attributes
    }

    pub(crate) fn replace_permissions(&self, node: InodeRef, change: PermissionChange) -> Result<(), Errno> {
        let header = &node.inode().header;
        let change = |old| change.of(self.credentials, node.kind(), old);
        // Look without writing first.
        change(self.read_header(node).0)?;
        self.working_on(&[node]);
        header.write(self.core(), self.host, |permissions, accessed| {
            change(permissions).map(|permissions| (permissions, accessed))
        })
    }

    /// Marks that an object changes now.
    #[inline]
    pub(crate) fn mark(&self, node: InodeRef, stamp: Stamp) {
        self.fs.stamp(self.core(), node, stamp, self.host.now_ns(), self.host);
    }

    /// Sets the times of access and modification that are given, if the caller has the right, while permissions and times are nobody else's
    /// to change. Marks the time of the change too if that of the modification is given.
    pub(crate) fn replace_times(
        &self,
        node: InodeRef,
        right: TimesRight,
        (accessed, modified): (Option<i64>, Option<i64>),
    ) -> Result<(), Errno> {
        let Inode { header, stamps, .. } = node.inode();
        let check = |permissions| right.check(self.credentials, permissions);
        // Look without writing first.
        check(self.read_header(node).0)?;
        self.working_on(&[node]);
        let set_modified = || {
            let Some(modified_ns) = modified else { return };
            let (reset, [_, changed]) = self.fs.stamps_of(node).reset(self.core(), stamps, self.host);
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
            Ok::<_, Errno>((permissions, accessed.unwrap_or(old)))
        })?;
        if one_by_one {
            set_modified();
        }
        Ok(())
    }
}
