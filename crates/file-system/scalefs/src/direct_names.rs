//! The verbs on names in shared memory: lookups write nothing, a change locks the buckets of its names.
//!
//! **Death of a process** in a verb: what the verb works on is noted on the core's own line first ([`ScaleFs::working_on`]),
//! so that `ScaleFs::repair_taken_over` knows where locks and marks may be left. A change of names has one decision (crate
//! `commit`) and is completed or undone by it. Beside that, a death can lose an object that no name leads to yet
//! (creation), and, after the decision, the reference of a moved directory to its new parent or the mark of the time.
#![allow(unsafe_code)]

use epoch::Guard;
use hashdir::{Found, InsertError, Key, Killing, NotEmpty, Present, lock_two};

use crate::context::Credentials;
use crate::direct::{Direct, Node};
use crate::errno::Errno;
use crate::fields::{Attributes, Fields};
use crate::host::Host;
use crate::inode::{Kind, Permissions};
use crate::instance::Stamp;
use crate::moves::Marks;
use crate::verbs::{Existence, Expected, Item, NewObject, Refusal, Space, Standing, Verbs};

impl<'c, H: Host> Direct<'c, H> {
    /// Turns what prevents an insertion into a refusal, after waiting for a removal that is under way. No lock is held.
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

    /// Closes a directory that is to go: no name can be inserted until the value is dropped, or ever once it is finished.
    fn close<'d>(&self, directory: Node, guard: &'d Guard<'d>) -> Result<Killing<'d>, Refusal> {
        let names = &directory.directory().names;
        // Look without writing first.
        if !names.is_empty(guard) {
            return Err(Refusal::NotEmpty);
        }
        names.begin_kill(guard, self.host).map_err(|error| match error {
            NotEmpty::HasNames => Refusal::NotEmpty,
            NotEmpty::Dead => Refusal::Changed,
        })
    }
}

impl<H: Host> Direct<'_, H> {
    /// Marks times once a change has happened, without its locks: whoever sees the time sees the change.
    fn mark_all<const COUNT: usize>(&self, marks: [(Node, Stamp); COUNT]) {
        let now_ns = self.host.now_ns();
        for (node, stamp) in marks {
            self.fs.stamp(self.core(), node, stamp, now_ns, self.host);
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
    fn credentials(&self) -> &Credentials {
        self.context.credentials()
    }

    #[inline]
    fn umask(&self) -> u32 {
        self.context.umask()
    }

    #[inline]
    fn working_directory(&self) -> Node {
        self.context.working_directory()
    }

    fn set_working_directory(&self, directory: Node) {
        self.swap_working_directory(directory);
    }

    #[inline]
    fn root(&self) -> Node {
        self.fs.root_node()
    }

    #[inline]
    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>> {
        Key::new(name, self.fs.hash_seed)
    }

    #[inline]
    fn existence(&self, directory: Node, key: &Key<'_>) -> Existence {
        match self.names(directory).present(&self.guard, key) {
            None => Existence::Absent,
            Some(present) if present.may_be_marked() => Existence::MaybeSymlink,
            Some(_) => Existence::Plain,
        }
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
        Node::of(found)
    }

    #[inline]
    fn still_same(&self, found: &Found<'_>) -> bool {
        found.still_same()
    }

    fn trace(&self, found: &Found<'_>) -> u64 {
        found.trace()
    }

    fn list(&self, directory: Node, from: u64, each: &mut dyn FnMut(Item<'_, Node>) -> bool) -> Option<u64> {
        self.names(directory).list(&self.guard, from.max(hashdir::FIRST_COOKIE), |listed| {
            each(Item { name: listed.name, node: Node::from_bits(listed.value), next_cookie: listed.next_cookie })
        })
    }

    fn create(
        &self,
        directory: Node,
        key: &Key<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Result<Node, Refusal> {
        let names = self.names(directory);
        self.working_on(&[directory]);
        names.prefetch_lock(&self.guard, key);
        let made = self.fs.make(self.core(), object, permissions, directory, self.host.now_ns());
        // In a removed directory nobody finds a place for a name, with memory or without.
        let node = made.map_err(|_| if self.is_removed(directory) { Refusal::Dead } else { Refusal::NoSpace })?;
        let outcome = {
            let locked = names.lock(&self.guard, key, self.host);
            let exists = locked.lookup(key).is_some();
            if exists { Ok(false) } else { locked.insert(key, node.to_bits()).map(|()| true) }
        };
        if outcome != Ok(true) {
            // SAFETY: made just now; no name leads to it.
            unsafe { self.fs.unmake(self.core(), node) };
        }
        if !outcome.map_err(|error| self.refusal(directory, error))? {
            return Err(Refusal::Exists);
        }
        self.mark_all([(directory, Stamp::Data)]);
        self.fs.note_growth(self.core(), directory);
        Ok(node)
    }

    fn add_link(&self, directory: Node, key: &Key<'_>, source: &Found<'_>) -> Result<(), Refusal> {
        let (core, decisions, counts) = (self.core(), self.fs.decisions(), self.fs.counts());
        let links = &Node::of(source).inode().links;
        self.working_on(&[directory]);
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
        outcome.map_err(|error| self.refusal(directory, error))?;
        self.mark_all([(directory, Stamp::Data), (Node::of(source), Stamp::Status)]);
        self.fs.note_growth(core, directory);
        Ok(())
    }

    fn remove(&self, (directory, key, expected): Expected<'_, Node>) -> Result<(), Refusal> {
        let (core, counts) = (self.core(), self.fs.counts());
        self.working_on(&[directory, expected]);
        let closed = match expected.kind() {
            Kind::Directory => Some(self.close(expected, &self.guard)?),
            _ => None,
        };
        {
            let locked = self.names(directory).lock(&self.guard, key, self.host);
            let found = locked.lookup(key).filter(|found| Node::of(found) == expected).ok_or(Refusal::Changed)?;
            let links = &expected.inode().links;
            let operation = self.fs.decisions().begin_firm(core);
            let prepared = locked.prepare_remove(&found, operation.tag());
            // SAFETY: the name leads to the inode; the count is settled before the next one.
            unsafe { counts.prepare(core, links, -1, operation.tag()) };
            let happened = operation.commit().is_ok();
            // SAFETY: as above.
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
        (source_directory, source_key, expected): Expected<'_, Node>,
        (target_directory, target_key, replaced): (Node, &Key<'_>, Option<Node>),
    ) -> Result<(), Refusal> {
        let (core, counts) = (self.core(), self.fs.counts());
        let is_move = expected.kind() == Kind::Directory && source_directory != target_directory;
        let nodes = [source_directory, target_directory, expected, replaced.unwrap_or(source_directory)];
        self.working_on(if replaced.is_some() { &nodes } else { &nodes[..3] });
        let outcome = {
            let _mark = match is_move {
                true => Some(self.begin_move(expected, target_directory, &self.guard, Marks::First)?),
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
            let source = source.filter(|found| Node::of(found) == expected).ok_or(Refusal::Changed)?;
            let target = pair.second().lookup(target_key);
            if target.as_ref().map(Node::of) != replaced {
                return Err(Refusal::Changed);
            }
            let operation = self.fs.decisions().begin_firm(core);
            self.fs.working_under(core, operation.tag());
            let place = is_move.then(|| &expected.directory().place);
            if let Some(place) = place {
                place.announce(target_directory, operation.tag());
            }
            let put = match &target {
                Some(old) => Ok(pair.second().prepare_replace(old, source.value(), operation.tag())),
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
                    let gone = pair.first().prepare_remove(&source, operation.tag());
                    let links = replaced.map(|node| &node.inode().links);
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
        outcome.map_err(|error| self.refusal(target_directory, error))?;
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
        (first_directory, first_key, first): Expected<'_, Node>,
        (second_directory, second_key, second): Expected<'_, Node>,
    ) -> Result<(), Refusal> {
        let core = self.core();
        let moves = |node: Node| node.kind() == Kind::Directory && first_directory != second_directory;
        self.working_on(&[first_directory, second_directory, first, second]);
        let _first_mark = match moves(first) {
            true => Some(self.begin_move(first, second_directory, &self.guard, Marks::First)?),
            false => None,
        };
        let _second_mark = match moves(second) {
            true => {
                let marks = if moves(first) { Marks::Second } else { Marks::First };
                Some(self.begin_move(second, first_directory, &self.guard, marks)?)
            }
            false => None,
        };
        let pair = lock_two(
            &self.guard,
            (self.names(first_directory), first_key),
            (self.names(second_directory), second_key),
            self.host,
        );
        let entries = (pair.first().lookup(first_key), pair.second().lookup(second_key));
        let (Some(first_entry), Some(second_entry)) = entries else {
            return Err(Refusal::Changed);
        };
        if Node::of(&first_entry) != first || Node::of(&second_entry) != second {
            return Err(Refusal::Changed);
        }
        let operation = self.fs.decisions().begin_firm(core);
        self.fs.working_under(core, operation.tag());
        for (node, to) in [(first, second_directory), (second, first_directory)] {
            if moves(node) {
                node.directory().place.announce(to, operation.tag());
            }
        }
        let there = pair.first().prepare_replace(&first_entry, second.to_bits(), operation.tag());
        let here = pair.second().prepare_replace(&second_entry, first.to_bits(), operation.tag());
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
    fn kind(&self, node: Node) -> Kind {
        node.kind()
    }

    fn standing(&self, directory: Node) -> Standing<Node> {
        directory.directory().place.standing(self.fs.decisions())
    }

    fn is_removed(&self, directory: Node) -> bool {
        let names = self.names(directory);
        names.wait_for_kill(self.host);
        names.is_dead()
    }

    fn link_target(&self, symlink: Node) -> &[u8] {
        self.target_of(symlink)
    }

    fn permissions(&self, node: Node) -> Permissions {
        node.inode().header.read(self.host).0
    }

    fn change_permissions(
        &self,
        node: Node,
        change: &dyn Fn(Permissions) -> Result<Permissions, Errno>,
    ) -> Result<(), Errno> {
        self.replace_permissions(node, change)?;
        self.mark_all([(node, Stamp::Status)]);
        Ok(())
    }

    fn attributes(&self, node: Node, fields: Fields) -> Attributes {
        self.read_attributes(node, fields)
    }

    fn set_times(
        &self,
        node: Node,
        check: &dyn Fn(Permissions) -> Result<(), Errno>,
        times: (Option<i64>, Option<i64>),
    ) -> Result<(), Errno> {
        self.replace_times(node, check, times)?;
        if times.1.is_none() {
            self.mark(node, Stamp::Status);
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    #[inline]
    fn take(&self, node: Node) {
        self.take_reference(node);
    }

    #[inline]
    fn give_up(&self, node: Node) {
        self.drop_reference(node);
    }

    fn space(&self) -> Space {
        self.fs.space()
    }
}
