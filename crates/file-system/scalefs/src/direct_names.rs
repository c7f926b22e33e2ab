//! The verbs on names in shared memory: lookups write nothing, a change locks the buckets of its names.
//!
//! **Death of a process** in a verb: what the verb works on is noted on the core's own line first ([`ScaleFs::working_on`]),
//! so that `ScaleFs::repair_taken_over` knows where locks and marks may be left. A change of names has one decision (crate
//! `commit`) and is completed or undone by it. Beside that, a death can lose an object that no name leads to yet
//! (creation), and, after the decision, the reference of a moved directory to its new parent or the mark of the time.
#![allow(unsafe_code)]

use core::convert::Infallible;

use epoch::Guard;
use hashdir::{Found, InsertError, Key, Killing, NotEmpty, Present, lock_two};
use posix_calls::{
    Answer, Attributes, Credentials, Errno, Existence, Fields, InodeNumber, Item, Kind, NamedNode, NewObject,
    ObjectOperations, ParentLink, PermissionChange, Permissions, Space, TargetName, TimesRight,
};
use sync::WaitReason;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;

use crate::direct::{Direct, OperationError};
use crate::host::Host;
use crate::inode::Named;
use crate::inode_ref::InodeRef;
use crate::instance::Stamp;
use crate::moves::Alone;
use crate::node::{Node, OpenNode};
use crate::space::space;

/// So often a commit looks whether another core is still about to remove a directory, before it takes it for removed.
const LOOKS_AT_REMOVAL: u32 = 100;

impl<'c, H: Host> Direct<'c, H> {
    /// Turns what prevents an insertion into a refusal, after waiting for a removal that is under way. No lock is held.
    pub(crate) fn operation_error(&self, directory: InodeRef, error: InsertError) -> OperationError {
        match error {
            InsertError::Dead => OperationError::Dead,
            InsertError::OutOfMemory => OperationError::NoSpace,
            InsertError::Killing => {
                self.names(directory).wait_for_kill(self.host);
                OperationError::Changed
            }
        }
    }

    /// Whether a directory was removed, once a removal that is under way has ended.
    pub(crate) fn was_removed(&self, directory: InodeRef) -> bool {
        let names = self.names(directory);
        if H::SEES_THROUGH_OWN_MARKS {
            // Who is about to remove it may wait for us.
            let looks = (0..LOOKS_AT_REMOVAL).find_map(|round| {
                let told = names.is_dead_beside_own(self.core());
                told.is_none().then(|| self.host.wait(WaitReason::Operation, round));
                told
            });
            return looks.unwrap_or(true);
        }
        names.wait_for_kill(self.host);
        names.is_dead()
    }

    /// Closes a directory that is to go: no name can be inserted until the value is dropped, or ever once it is finished.
    fn close<'d>(&self, directory: InodeRef, guard: &'d Guard<'d>) -> Result<Killing<'d>, OperationError> {
        let names = &directory.directory().names;
        // Look without writing first.
        if !names.is_empty(guard) {
            return Err(OperationError::NotEmpty);
        }
        names.begin_kill(guard, self.host).map_err(|error| match error {
            NotEmpty::HasNames => OperationError::NotEmpty,
            NotEmpty::Dead => OperationError::Changed,
        })
    }
}

impl<H: Host> Direct<'_, H> {
    /// Marks times once a change has happened, without its locks: whoever sees the time sees the change.
    pub(crate) fn mark_all<const COUNT: usize>(&self, marks: [(InodeRef, Stamp); COUNT]) {
        let now_ns = self.host.now_ns();
        for (node, stamp) in marks {
            self.fs.stamp(self.core(), node, stamp, now_ns, self.host);
        }
    }
}

impl<'c, H: Host> ObjectOperations for Direct<'c, H> {
    type Fault = Infallible;
    type Node<'v>
        = Node<'v>
    where
        Self: 'v;
    type Handle = OpenNode;
    type Key<'n> = Key<'n>;
    type Present<'v>
        = Present<'v>
    where
        Self: 'v;
    type Found<'v>
        = Found<'v>
    where
        Self: 'v;
    type LinkTarget<'v>
        = &'v [u8]
    where
        Self: 'v;

    #[inline]
    fn credentials(&self) -> &Credentials {
        self.caller()
    }

    #[inline]
    fn umask(&self) -> u32 {
        self.context.umask()
    }

    #[inline]
    fn working_directory(&self) -> Node<'_> {
        Node::lent(self.context.working_directory())
    }

    fn set_working_directory(&self, directory: Node<'_>) -> Answer<(), Self> {
        self.swap_working_directory(directory.at);
        Ok(())
    }

    #[inline]
    fn root(&self) -> Node<'_> {
        Node::lent(self.fs.root_node())
    }

    #[inline]
    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>> {
        Key::new(name, self.fs.hash_seed)
    }

    #[inline]
    fn key_hash(&self, key: &Key<'_>) -> u64 {
        key.hash()
    }

    #[inline]
    fn key_again<'n>(&self, name: &'n [u8], hash: u64) -> Key<'n> {
        Key::again(name, hash)
    }

    #[inline]
    fn number(&self, node: Node<'_>) -> Answer<InodeNumber, Self> {
        Ok(node.at.inode().header.number())
    }

    #[inline]
    fn existence(&self, directory: Node<'_>, key: &Key<'_>) -> Answer<Existence, Self> {
        let names = self.names(directory.at);
        let present = match H::SEES_THROUGH_OWN_MARKS {
            false => names.present_for(&self.guard, key, self.anyone()),
            true => names.present_for(&self.guard, key, self.owner()),
        };
        Ok(match present {
            None => Existence::Absent,
            Some(present) if present.may_be_marked() => Existence::MaybeSymlink,
            Some(_) => Existence::Plain,
        })
    }

    #[inline]
    fn present<'v>(&'v self, directory: Node<'v>, key: &Key<'_>) -> Answer<Option<Present<'v>>, Self> {
        Ok(self.names(directory.at).present_for(&self.guard, key, self.anyone()))
    }

    #[inline]
    fn still_present(&self, present: &Present<'_>) -> Answer<bool, Self> {
        Ok(present.still_present_for(self.anyone()))
    }

    #[inline]
    fn look_up<'v>(&'v self, directory: Node<'v>, key: &Key<'_>) -> Answer<Option<Found<'v>>, Self> {
        let names = self.names(directory.at);
        Ok(match H::SEES_THROUGH_OWN_MARKS {
            false => names.lookup_for(&self.guard, key, self.anyone()),
            true => names.lookup_for(&self.guard, key, self.owner()),
        })
    }

    #[inline]
    fn node<'v>(&'v self, found: &Found<'v>) -> Node<'v> {
        Node::lent(InodeRef::of(found))
    }

    #[inline]
    fn still_same(&self, found: &Found<'_>) -> Answer<bool, Self> {
        Ok(found.still_same_for(self.anyone()))
    }

    fn fingerprint(&self, found: &Found<'_>) -> u64 {
        found.trace()
    }

    #[inline]
    fn list<'v>(
        &'v self,
        directory: Node<'v>,
        from: u64,
        each: &mut dyn FnMut(Item<'_, Node<'v>>) -> bool,
    ) -> Answer<Option<u64>, Self> {
        let (names, from) = (self.names(directory.at), from.max(hashdir::FIRST_COOKIE));
        let each = |listed: hashdir::Listed<'_>| {
            let node = Node::lent(InodeRef::from_bits(listed.value));
            each(Item { name: listed.name, node, next_cookie: listed.next_cookie })
        };
        Ok(match H::SEES_THROUGH_OWN_MARKS {
            false => names.list_for(&self.guard, from, self.anyone(), each),
            true => names.list_for(&self.guard, from, self.owner(), each),
        })
    }

    fn create<'v>(
        &'v self,
        directory: Node<'v>,
        key: &Key<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Result<Node<'v>, OperationError> {
        let directory = directory.at;
        let names = self.names(directory);
        self.working_on(&[directory]);
        names.prefetch_lock(&self.guard, key);
        #[cfg(feature = "planted-causes")]
        crate::planted_causes::make_name(crate::planted_causes::Name {
            core: self.core().index().get(),
            bytes: key.name().len(),
            in_root: directory == self.fs.root_node(),
            by_superuser: self.caller().is_superuser(),
        });
        let made = self.fs.make(self.core(), object, permissions, directory, self.host.now_ns(), Named::AtOnce);
        // In a removed directory nobody finds a place for a name, with memory or without.
        let node =
            made.map_err(|_| if self.was_removed(directory) { OperationError::Dead } else { OperationError::NoSpace })?;
        let outcome = {
            let locked = names.lock(&self.guard, key, self.host);
            let exists = locked.lookup(key).is_some();
            if exists { Ok(false) } else { locked.insert(key, node.to_bits()).map(|()| true) }
        };
        if outcome != Ok(true) {
            // SAFETY: made just now; no name leads to it.
            unsafe { self.fs.unmake(self.core(), node) };
        }
        if !outcome.map_err(|error| self.operation_error(directory, error))? {
            return Err(OperationError::Exists);
        }
        self.mark_all([(directory, Stamp::Data)]);
        self.fs.note_growth(self.core(), directory);
        Ok(Node::lent(node))
    }

    fn add_link(&self, directory: Node<'_>, key: &Key<'_>, source: &Found<'_>) -> Result<(), OperationError> {
        let directory = directory.at;
        let (core, decisions, counts) = (self.core(), self.fs.decisions(), self.fs.counts());
        let links = &InodeRef::of(source).inode().links;
        self.working_on(&[directory]);
        let outcome = {
            let locked = self.names(directory).lock(&self.guard, key, self.host);
            if locked.lookup(key).is_some() {
                return Err(OperationError::Exists);
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
                    let happened = source.still_same_for(self.anyone()) && operation.commit().is_ok();
                    let changed = !happened && !source.still_same_for(self.anyone());
                    if !happened {
                        operation.abort();
                    }
                    // SAFETY: a name led there in this call, which has not ended.
                    unsafe { counts.settle(core, links, happened) };
                    if happened || changed {
                        prepared.finish(happened);
                        break if happened { Ok(()) } else { return Err(OperationError::Changed) };
                    }
                    operation = decisions.begin_revocable(core);
                    prepared.retag(operation.tag());
                },
            }
        };
        outcome.map_err(|error| self.operation_error(directory, error))?;
        self.mark_all([(directory, Stamp::Data), (InodeRef::of(source), Stamp::Status)]);
        self.fs.note_growth(core, directory);
        Ok(())
    }

    fn remove(&self, name: NamedNode<'_, Node<'_>, Key<'_>>) -> Result<(), OperationError> {
        let NamedNode { directory: Node { at: directory, .. }, key, node: Node { at: expected, .. } } = name;
        let (core, counts) = (self.core(), self.fs.counts());
        self.working_on(&[directory, expected]);
        #[cfg(feature = "planted-causes")]
        crate::planted_causes::take_name(core.index().get(), expected.inode().links.applied());
        let closed = match expected.kind() {
            Kind::Directory => Some(self.close(expected, &self.guard)?),
            _ => None,
        };
        {
            let locked = self.names(directory).lock(&self.guard, key, self.host);
            let found = locked
                .lookup(key)
                .filter(|found| found.value() == expected.to_bits())
                .ok_or(OperationError::Changed)?;
            let links = &expected.inode().links;
            let operation = self.fs.decisions().begin_firm(core);
            let prepared = found.prepare_remove(operation.tag());
            // SAFETY: the name leads to the inode; the count is settled before the next one.
            unsafe { counts.prepare(core, links, -1, operation.tag()) };
            let happened = operation.commit().is_ok();
            // SAFETY: the name led there in this call, which has not ended.
            unsafe { counts.settle(core, links, happened) };
            prepared.finish(happened);
        }
        if let Some(closed) = closed {
            closed.finish();
        }
        self.mark_all([(directory, Stamp::Data), (expected, Stamp::Status)]);
        Ok(())
    }

    fn rename(
        &self,
        source: NamedNode<'_, Node<'_>, Key<'_>>,
        target: TargetName<'_, Node<'_>, Key<'_>>,
    ) -> Result<(), OperationError> {
        let (source_directory, source_key, expected) = (source.directory.at, source.key, source.node.at);
        let (target_directory, target_key) = (target.directory.at, target.key);
        let replaced = target.replaced.map(|node| node.at);
        let (core, counts) = (self.core(), self.fs.counts());
        let is_move = expected.kind() == Kind::Directory && source_directory != target_directory;
        let nodes = [source_directory, target_directory, expected, replaced.unwrap_or(source_directory)];
        self.working_on(if replaced.is_some() { &nodes } else { &nodes[..3] });
        let outcome = {
            let _mark = match is_move {
                true => Some(self.begin_move(expected, target_directory, &self.guard, &Alone)?),
                false => None,
            };
            let closed = match replaced {
                Some(replaced) if replaced.kind() == Kind::Directory => Some(self.close(replaced, &self.guard)?),
                _ => None,
            };
            let pair = lock_two(
                &self.guard,
                (self.names(source_directory), source_key),
                (self.names(target_directory), target_key),
                self.host,
            );
            let source = pair.first().lookup(source_key);
            let source = source.filter(|found| found.value() == expected.to_bits()).ok_or(OperationError::Changed)?;
            let target = pair.second().lookup(target_key);
            let there = target.as_ref().map(|found| InodeRef::from_bits(found.value()));
            let is_another =
                there.is_some() != replaced.is_some() || !planted("scalefs: rename replaces whatever is there");
            if there != replaced && is_another {
                return Err(OperationError::Changed);
            }
            let operation = self.fs.decisions().begin_firm(core);
            self.fs.working_under(core, operation.tag());
            let place = is_move.then(|| &expected.directory().place);
            if let Some(place) = place {
                place.announce(target_directory, operation.tag());
            }
            let put = match target {
                Some(old) => Ok(old.prepare_replace(source.value(), operation.tag())),
                None => pair.second().prepare_insert(target_key, source.value(), operation.tag()),
            };
            match put {
                Err(error) => {
                    operation.abort();
                    if let Some(place) = place {
                        place.withdraw();
                    }
                    Err(error)
                }
                Ok(put) => {
                    let gone = source.prepare_remove(operation.tag());
                    let is_forgotten = planted("scalefs: rename forgets a link where names have come and gone")
                        && self.names(target_directory).version(&self.guard, target_key) >> 8 > 3;
                    let links = replaced.filter(|_| !is_forgotten).map(|node| &node.inode().links);
                    if let Some(links) = links {
                        // SAFETY: the name leads to the inode; the count is settled before the next one.
                        unsafe { counts.prepare(core, links, -1, operation.tag()) };
                    }
                    let happened = operation.commit().is_ok();
                    if let Some(links) = links {
                        // SAFETY: the name led there in this call, which has not ended.
                        unsafe { counts.settle(core, links, happened) };
                    }
                    put.finish(happened);
                    gone.finish(happened);
                    if is_move {
                        self.fs.end_move(core, expected, target_directory);
                    }
                    if let Some(closed) = closed {
                        closed.finish();
                    }
                    Ok(())
                }
            }
        };
        outcome.map_err(|error| self.operation_error(target_directory, error))?;
        self.mark_all([(source_directory, Stamp::Data), (expected, Stamp::Status)]);
        if source_directory != target_directory {
            self.mark_all([(target_directory, Stamp::Data)]);
        }
        if let Some(replaced) = replaced {
            self.mark_all([(replaced, Stamp::Status)]);
        }
        self.fs.note_growth(core, target_directory);
        Ok(())
    }

    fn exchange(
        &self,
        first: NamedNode<'_, Node<'_>, Key<'_>>,
        second: NamedNode<'_, Node<'_>, Key<'_>>,
    ) -> Result<(), OperationError> {
        let (first_directory, first_key, first) = (first.directory.at, first.key, first.node.at);
        let (second_directory, second_key, second) = (second.directory.at, second.key, second.node.at);
        let core = self.core();
        let moves = |node: InodeRef| node.kind() == Kind::Directory && first_directory != second_directory;
        self.working_on(&[first_directory, second_directory, first, second]);
        let begin = |moved, target| self.begin_move(moved, target, &self.guard, &Alone);
        let (_first_mark, _second_mark) = match (moves(first), moves(second)) {
            (true, true) => {
                let first_mark = begin(first, second_directory)?;
                match self.begin_another_move(second, first_directory, &self.guard, &Alone) {
                    Ok(mark) => (Some(first_mark), Some(mark)),
                    Err(refusal) => {
                        drop(first_mark);
                        return Err(self.start_again(refusal));
                    }
                }
            }
            (true, false) => (Some(begin(first, second_directory)?), None),
            (false, true) => (None, Some(begin(second, first_directory)?)),
            (false, false) => (None, None),
        };
        let pair = lock_two(
            &self.guard,
            (self.names(first_directory), first_key),
            (self.names(second_directory), second_key),
            self.host,
        );
        let entries = (pair.first().lookup(first_key), pair.second().lookup(second_key));
        let (Some(first_entry), Some(second_entry)) = entries else {
            return Err(OperationError::Changed);
        };
        if first_entry.value() != first.to_bits() || second_entry.value() != second.to_bits() {
            return Err(OperationError::Changed);
        }
        let operation = self.fs.decisions().begin_firm(core);
        self.fs.working_under(core, operation.tag());
        for (node, to) in [(first, second_directory), (second, first_directory)] {
            if moves(node) {
                node.directory().place.announce(to, operation.tag());
            }
        }
        let there = first_entry.prepare_replace(second.to_bits(), operation.tag());
        let here = second_entry.prepare_replace(first.to_bits(), operation.tag());
        let happened = operation.commit().is_ok();
        there.finish(happened);
        here.finish(happened);
        if moves(first) {
            self.fs.end_move(core, first, second_directory);
        }
        if moves(second) {
            self.fs.end_move(core, second, first_directory);
        }
        drop(pair);
        self.mark_all([(first_directory, Stamp::Data), (second_directory, Stamp::Data)]);
        self.mark_all([(first, Stamp::Status), (second, Stamp::Status)]);
        Ok(())
    }

    #[inline]
    fn kind(&self, node: Node<'_>) -> Kind {
        node.kind()
    }

    #[inline]
    fn parent_link<'v>(&'v self, directory: Node<'v>) -> Answer<ParentLink<Node<'v>>, Self> {
        let (place, decisions) = (&directory.at.directory().place, self.fs.decisions());
        let ParentLink { parent, moves } = match H::SEES_THROUGH_OWN_MARKS {
            false => place.parent_link(decisions, self.anyone()),
            true => place.parent_link(decisions, self.owner()),
        };
        Ok(ParentLink { parent: Node::lent(parent), moves })
    }

    #[inline]
    fn is_removed(&self, directory: Node<'_>) -> Answer<bool, Self> {
        Ok(self.was_removed(directory.at))
    }

    #[inline]
    fn link_target<'v>(&'v self, symlink: Node<'v>) -> Answer<&'v [u8], Self> {
        Ok(self.target_of(symlink.at))
    }

    fn device(&self, node: Node<'_>) -> Answer<u64, Self> {
        Ok(self.device_of(node.at))
    }

    #[inline]
    fn permissions(&self, node: Node<'_>) -> Answer<Permissions, Self> {
        Ok(self.read_header(node.at).0)
    }

    fn permissions_after_change(&self, node: Node<'_>) -> Answer<Permissions, Self> {
        // Pairs with the fence at the end of a change of permissions: one of the two sees what the other has done.
        fence(Ordering::SeqCst);
        self.permissions(node)
    }

    fn change_permissions(&self, node: Node<'_>, change: PermissionChange) -> Result<(), Errno> {
        self.replace_permissions(node.at, change)?;
        self.mark_all([(node.at, Stamp::Status)]);
        Ok(())
    }

    #[inline]
    fn attributes(&self, node: Node<'_>, fields: Fields) -> Answer<Attributes, Self> {
        Ok(self.read_attributes(node.at, fields))
    }

    fn set_times(&self, node: Node<'_>, right: TimesRight, times: (Option<i64>, Option<i64>)) -> Result<(), Errno> {
        self.replace_times(node.at, right, times)?;
        if times.1.is_none() {
            self.mark(node.at, Stamp::Status);
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    #[inline]
    fn retain(&self, node: Node<'_>) -> Answer<OpenNode, Self> {
        self.take_reference(node.at);
        Ok(OpenNode::new(self.fs, node.at))
    }

    #[inline]
    fn held<'v>(&'v self, handle: &'v OpenNode) -> Node<'v> {
        Node::lent(handle.of(self.fs))
    }

    #[inline]
    fn release(&self, handle: OpenNode) {
        self.drop_reference(handle.of(self.fs));
    }

    fn space(&self) -> Answer<Space, Self> {
        Ok(space(self.fs, self.core()))
    }
}
