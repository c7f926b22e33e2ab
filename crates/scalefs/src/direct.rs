//! The verbs in memory that all cores share: lookups write nothing, a change locks the buckets of its names.
#![allow(unsafe_code)]

use core::ptr::NonNull;

use epoch::Guard;
use hashdir::{Found, HashDir, InsertError, Key, Present, lock_two};
use percpu::Core;

use crate::host::Host;
use crate::inode::{Attributes, Directory, Inode, Kind};
use crate::instance::{INODE_CLASS, ScaleFs};
use crate::verbs::{FieldChoice, Refusal, Verbs};

/// One call of one core.
pub struct Direct<'c, H> {
    fs: &'c ScaleFs,
    guard: Guard<'c>,
    host: &'c H,
}

/// An inode during a call. Not dereferenced later: the core maintains between calls only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(NonNull<Inode>);

impl<'c, H: Host> Direct<'c, H> {
    #[inline]
    pub(crate) fn new(fs: &'c ScaleFs, core: &'c Core<'_>, host: &'c H) -> Direct<'c, H> {
        Direct { fs, guard: fs.epochs().pin(core), host }
    }

    fn core(&self) -> &Core<'c> {
        self.guard.core()
    }

    #[inline]
    fn inode(&self, node: Node) -> &Inode {
        // SAFETY: nodes come from names and references that existed in this call; see `refcache` on why they live on.
        unsafe { node.0.as_ref() }
    }

    #[inline]
    fn names(&self, directory: Node) -> &HashDir {
        debug_assert_eq!(self.inode(directory).identity.kind, Kind::Directory);
        // SAFETY: an inode of that kind is the first field of a `Directory`.
        unsafe { &directory.0.cast::<Directory>().as_ref().names }
    }

    #[inline]
    fn node_of(found: &Found<'_>) -> Node {
        // SAFETY: values of names are addresses of inodes.
        Node(unsafe { NonNull::new_unchecked(found.value() as usize as *mut Inode) })
    }

    fn value_of(node: Node) -> u64 {
        node.0.as_ptr() as usize as u64
    }

    /// Turns what prevents an insertion into a refusal, after waiting for a removal that is under way.
    fn refusal(&self, directory: Node, error: InsertError) -> Refusal {
        match error {
            InsertError::Dead => Refusal::Dead,
            InsertError::OutOfMemory => Refusal::NoSpace,
            InsertError::Killing => {
                self.names(directory).wait_for_kill(self.host);
                Refusal::Changed
            }
        }
    }
}

impl<'c, H: Host> Verbs for Direct<'c, H> {
    type Node = Node;
    type Present<'v>
        = Present<'v>
    where
        Self: 'v;
    type Found<'v>
        = Found<'v>
    where
        Self: 'v;

    #[inline]
    fn root(&self) -> Node {
        Node(self.fs.root.cast())
    }

    #[inline]
    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>> {
        Key::new(name, self.fs.hash_seed)
    }

    #[inline]
    fn exists(&self, directory: Node, key: &Key<'_>) -> bool {
        self.names(directory).exists(&self.guard, key)
    }

    #[inline]
    fn present<'v>(&'v self, directory: Node, key: &Key<'_>) -> Option<Present<'v>> {
        self.names(directory).present(&self.guard, key)
    }

    #[inline]
    fn still_present(&self, present: &Present<'_>) -> bool {
        present.still_present()
    }

    #[inline]
    fn look_up<'v>(&'v self, directory: Node, key: &Key<'_>) -> Option<Found<'v>> {
        self.names(directory).lookup(&self.guard, key)
    }

    #[inline]
    fn node(&self, found: &Found<'_>) -> Node {
        Self::node_of(found)
    }

    #[inline]
    fn still_same(&self, found: &Found<'_>) -> bool {
        found.still_same()
    }

    fn create_file(&self, directory: Node, key: &Key<'_>, mode: u32) -> Result<Node, Refusal> {
        let core = self.core();
        let outcome = {
            let locked = self.names(directory).lock(&self.guard, key, self.host);
            if locked.lookup(key).is_some() {
                return Err(Refusal::Exists);
            }
            let inode = Inode::new(self.fs.next_number(core), Kind::Regular, mode);
            let node = Node(core.allocate_value(inode).map_err(|_| Refusal::NoSpace)?);
            locked.insert(key, Self::value_of(node)).map(|()| node).inspect_err(|_| {
                // SAFETY: allocated just now; no name leads to it.
                unsafe { core.free(node.0.cast(), INODE_CLASS) };
            })
        };
        outcome.map_err(|error| self.refusal(directory, error))
    }

    fn add_link(&self, directory: Node, key: &Key<'_>, source: &Found<'_>) -> Result<(), Refusal> {
        let (core, decisions, counts) = (self.core(), self.fs.decisions(), self.fs.counts());
        let links = &self.inode(Self::node_of(source)).links;
        let outcome = {
            let locked = self.names(directory).lock(&self.guard, key, self.host);
            if locked.lookup(key).is_some() {
                return Err(Refusal::Exists);
            }
            let mut operation = decisions.begin_revocable(core);
            match locked.prepare_insert(key, source.value(), operation.tag()) {
                Err(error) => {
                    operation.abort();
                    Err(error)
                }
                Ok(prepared) => loop {
                    // SAFETY: a name has led to the inode in this call; the count is settled before the next one.
                    unsafe { counts.prepare(core, links, 1, operation.tag()) };
                    // The source's bucket is not locked, so that link writes nothing of it: check it again, now that
                    // all who look at the new name or at the count revoke us first.
                    operation.fence_before_check();
                    let happened = source.still_same() && operation.commit().is_ok();
                    let changed = !happened && !source.still_same();
                    if changed {
                        operation.abort();
                    }
                    // SAFETY: as above.
                    unsafe { counts.settle(core, links, happened) };
                    if happened || changed {
                        prepared.finish(happened);
                        break if happened { Ok(()) } else { return Err(Refusal::Changed) };
                    }
                    operation = decisions.begin_revocable(core);
                    prepared.retag(operation.tag());
                },
            }
        };
        outcome.map_err(|error| self.refusal(directory, error))
    }

    fn remove(&self, directory: Node, key: &Key<'_>, expected: Node) -> Result<(), Refusal> {
        let (core, counts) = (self.core(), self.fs.counts());
        let locked = self.names(directory).lock(&self.guard, key, self.host);
        let found = locked.lookup(key).filter(|found| Self::node_of(found) == expected).ok_or(Refusal::Changed)?;
        let links = &self.inode(expected).links;
        let operation = self.fs.decisions().begin_firm(core);
        let prepared = locked.prepare_remove(&found, operation.tag());
        // SAFETY: the name leads to the inode; the count is settled before the next one.
        unsafe { counts.prepare(core, links, -1, operation.tag()) };
        let happened = operation.commit().is_ok();
        // SAFETY: as above.
        unsafe { counts.settle(core, links, happened) };
        prepared.finish(happened);
        Ok(())
    }

    fn rename(
        &self,
        (source_directory, source_key, expected): (Node, &Key<'_>, Node),
        (target_directory, target_key, replaced): (Node, &Key<'_>, Option<Node>),
    ) -> Result<(), Refusal> {
        let (core, counts) = (self.core(), self.fs.counts());
        let outcome = {
            let pair = lock_two(
                &self.guard,
                (self.names(source_directory), source_key),
                (self.names(target_directory), target_key),
                self.host,
            );
            let source = pair.first().lookup(source_key);
            let source = source.filter(|found| Self::node_of(found) == expected).ok_or(Refusal::Changed)?;
            let target = pair.second().lookup(target_key);
            if target.as_ref().map(Self::node_of) != replaced {
                return Err(Refusal::Changed);
            }
            let operation = self.fs.decisions().begin_firm(core);
            let put = match &target {
                Some(old) => Ok(pair.second().prepare_replace(old, source.value(), operation.tag())),
                None => pair.second().prepare_insert(target_key, source.value(), operation.tag()),
            };
            match put {
                Err(error) => {
                    operation.abort();
                    Err(error)
                }
                Ok(put) => {
                    let gone = pair.first().prepare_remove(&source, operation.tag());
                    let links = replaced.map(|node| &self.inode(node).links);
                    if let Some(links) = links {
                        // SAFETY: the name leads to the inode; the count is settled before the next one.
                        unsafe { counts.prepare(core, links, -1, operation.tag()) };
                    }
                    let happened = operation.commit().is_ok();
                    if let Some(links) = links {
                        // SAFETY: as above.
                        unsafe { counts.settle(core, links, happened) };
                    }
                    put.finish(happened);
                    gone.finish(happened);
                    Ok(())
                }
            }
        };
        outcome.map_err(|error| self.refusal(target_directory, error))
    }

    fn attributes(&self, node: Node, fields: FieldChoice) -> Attributes {
        let inode = self.inode(node);
        let link_count = (fields == FieldChoice::All).then(|| {
            // SAFETY: nodes live during the call.
            let count = unsafe { self.fs.counts().exact(&inode.links, self.host) };
            u32::try_from(count).unwrap_or(0)
        });
        let identity = &inode.identity;
        Attributes { number: identity.number, kind: identity.kind, mode: identity.mode, link_count, size_bytes: 0 }
    }

    #[inline]
    fn take(&self, node: Node) {
        // SAFETY: a name or a reference has led to the inode in this call.
        unsafe { self.fs.counts().change(self.core(), &self.inode(node).references, 1) };
    }

    #[inline]
    fn give_up(&self, node: Node) {
        // SAFETY: the caller's reference keeps the inode.
        unsafe { self.fs.counts().change(self.core(), &self.inode(node).references, -1) };
    }
}
