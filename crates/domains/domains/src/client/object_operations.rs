//! The operations on objects.

use std::rc::Rc;

use messages::{Class, DomainNumber, Step, Transport};
use posix_calls::{
    Answer, Attributes, Credentials, Errno, Existence, Failed, Fields, InodeNumber, Item, Kind, NamedNode, Need,
    NewObject, ObjectOperations, Outcome, ParentLink, PermissionChange, Permissions, PipeEnd, Space, TargetName,
    TimesRight,
};
use sync::mutant::planted;

use super::call::{Call, Fault, Found, Handle, Key, Node};
use super::domain::Domain;
use crate::identity::Target;
use crate::server;
use crate::wire::{Bytes, Caller, Part, Refusal, Reply, Request};

/// Longest name in bytes (`NAME_MAX` of Linux).
const MAX_NAME_BYTES: usize = 255;

impl<T: Transport> Domain<T> {
    /// Keeps an object no longer.
    pub(super) fn let_go(&self, target: Target) {
        self.release(target, None);
    }

    /// The same, and, of a pipe, closes an end of it.
    pub(super) fn release(&self, target: Target, end: Option<PipeEnd>) {
        if target.kind == Kind::Regular {
            self.let_copy_go(target.number);
        }
        if target != Target::ROOT {
            self.post(target.number.home(), Request::Release { object: target.number, end });
        }
    }
}

/// Bytes of a symbolic link's target.
#[derive(Clone, Debug)]
pub struct TargetBytes(Rc<[u8]>);

impl AsRef<[u8]> for TargetBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'c, T: Transport> ObjectOperations for Call<'c, T> {
    type Fault = Fault;
    type Node<'v>
        = Node<'v>
    where
        Self: 'v;
    type Handle = Handle;
    type Key<'n> = Key<'n>;
    type Present<'v>
        = Found<'v>
    where
        Self: 'v;
    type Found<'v>
        = Found<'v>
    where
        Self: 'v;
    type LinkTarget<'v>
        = TargetBytes
    where
        Self: 'v;

    fn credentials(&self) -> &Credentials {
        &self.process.credentials
    }

    fn umask(&self) -> u32 {
        self.process.umask.get()
    }

    fn working_directory(&self) -> Node<'_> {
        self.lend(self.process.working_directory.get())
    }

    fn set_working_directory(&self, directory: Node<'_>) -> Answer<(), Self> {
        let kept = self.retain(directory)?;
        self.domain.let_go(self.process.working_directory.replace(kept.0));
        Ok(())
    }

    fn root(&self) -> Node<'_> {
        self.lend(Target::ROOT)
    }

    fn key<'n>(&self, name: &'n [u8]) -> Option<Key<'n>> {
        (1..=MAX_NAME_BYTES).contains(&name.len()).then_some(Key(name))
    }

    fn existence(&self, directory: Node<'_>, key: &Key<'_>) -> Answer<Existence, Self> {
        let found = self.domain.look_up(directory.target.number, key.0);
        let (target, _) = found.map_err(|why| Failed(self.fault(why)))?;
        Ok(match target.map(|target| target.kind) {
            None => Existence::Absent,
            Some(Kind::Symlink) => Existence::MaybeSymlink,
            Some(_) => Existence::Plain,
        })
    }

    fn present<'v>(&'v self, directory: Node<'v>, key: &Key<'_>) -> Answer<Option<Found<'v>>, Self> {
        self.find(directory, key.0)
    }

    fn still_present(&self, present: &Found<'_>) -> Answer<bool, Self> {
        self.still_same(present)
    }

    fn look_up<'v>(&'v self, directory: Node<'v>, key: &Key<'_>) -> Answer<Option<Found<'v>>, Self> {
        self.find(directory, key.0)
    }

    fn node<'v>(&'v self, found: &Found<'v>) -> Node<'v> {
        self.lend(found.target)
    }

    fn still_same(&self, found: &Found<'_>) -> Answer<bool, Self> {
        if planted("domains: what was found is not looked at again") {
            return Ok(true);
        }
        let (directory, name) = self.names.borrow()[found.place].clone();
        let (target, stamp) = self.domain.look_up(directory, &name).map_err(|why| Failed(self.fault(why)))?;
        Ok(target == Some(found.target) && stamp == found.stamp)
    }

    fn fingerprint(&self, found: &Found<'_>) -> u64 {
        Self::fingerprint_of(found)
    }

    fn list<'v>(
        &'v self,
        directory: Node<'v>,
        mut from: u64,
        each: &mut dyn FnMut(Item<'_, Node<'v>>) -> bool,
    ) -> Answer<Option<u64>, Self> {
        loop {
            let listed = self.domain.list(directory.target.number, from);
            let (names, has_more) = listed.map_err(|why| Failed(self.fault(why)))?;
            for (name, target, cookie) in &names {
                from = cookie + 1;
                if !each(Item { name, node: self.lend(*target), next_cookie: from }) {
                    return Ok(Some(from));
                }
            }
            if !has_more {
                return Ok(None);
            }
        }
    }

    fn create<'v>(
        &'v self,
        directory: Node<'v>,
        key: &Key<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Outcome<Node<'v>, Self> {
        let parts = Self::parts(object, permissions);
        let made = self.domain.create(directory.target.number, key.0, &parts, false);
        made.map(|made| self.lend(made)).map_err(|why| self.outcome(why))
    }

    fn add_link(&self, directory: Node<'_>, key: &Key<'_>, source: &Found<'_>) -> Outcome<(), Self> {
        let (source_directory, source_name) = self.names.borrow()[source.place].clone();
        let parts = [
            Part::Hold { directory: source_directory, name: Bytes(source_name), stamp: source.stamp },
            Part::AddLink { object: source.target.number },
            Part::Insert { directory: directory.target.number, name: Bytes(key.0.to_vec()), target: source.target },
        ];
        self.changed(self.domain.change(&parts))
    }

    fn remove(&self, name: NamedNode<'_, Node<'_>, Key<'_>>) -> Outcome<(), Self> {
        let (directory, victim) = (name.directory.target.number, name.node.target);
        let bytes = Bytes(name.key.0.to_vec());
        let mut parts = vec![Part::Remove { directory, name: bytes, expected: victim.number }];
        Self::parts_of_loss(victim, directory, &mut parts);
        self.changed(self.domain.change(&parts))
    }

    fn rename(
        &self,
        source: NamedNode<'_, Node<'_>, Key<'_>>,
        target: TargetName<'_, Node<'_>, Key<'_>>,
    ) -> Outcome<(), Self> {
        let (from, to) = (source.directory.target.number, target.directory.target.number);
        let moved = source.node.target;
        let (old, new) = (Bytes(source.key.0.to_vec()), Bytes(target.key.0.to_vec()));
        let mut parts = vec![Part::Remove { directory: from, name: old, expected: moved.number }];
        match target.replaced.map(|node| node.target) {
            None => parts.push(Part::Insert { directory: to, name: new, target: moved }),
            Some(replaced) => {
                let expected = replaced.number;
                parts.push(Part::Replace { directory: to, name: new, expected, target: moved });
                Self::parts_of_loss(replaced, to, &mut parts);
            }
        }
        parts.push(Self::part_of_move(moved, from, to));
        let moves_directory = moved.kind == Kind::Directory && from != to;
        self.changed(if moves_directory {
            self.change_places(&[(moved, to)], &parts)
        } else {
            self.domain.change(&parts)
        })
    }

    fn exchange(
        &self,
        first: NamedNode<'_, Node<'_>, Key<'_>>,
        second: NamedNode<'_, Node<'_>, Key<'_>>,
    ) -> Outcome<(), Self> {
        let (mut parts, mut moves) = (Vec::new(), Vec::new());
        for (name, other) in [(first, second), (second, first)] {
            let (directory, new_directory) = (name.directory.target.number, other.directory.target.number);
            let (node, new_node) = (name.node.target, other.node.target);
            let bytes = Bytes(name.key.0.to_vec());
            parts.push(Part::Replace { directory, name: bytes, expected: node.number, target: new_node });
            parts.push(Self::part_of_move(node, directory, new_directory));
            if node.kind == Kind::Directory && directory != new_directory {
                moves.push((node, new_directory));
            }
        }
        self.changed(if moves.is_empty() { self.domain.change(&parts) } else { self.change_places(&moves, &parts) })
    }

    fn kind(&self, node: Node<'_>) -> Kind {
        node.target.kind
    }

    fn parent_link<'v>(&'v self, directory: Node<'v>) -> Answer<ParentLink<Node<'v>>, Self> {
        let (parent, moves, _) = self.place(directory.target.number).map_err(|why| Failed(self.fault(why)))?;
        Ok(ParentLink { parent: self.lend(Target { number: parent, kind: Kind::Directory }), moves })
    }

    /// Only directories are above others.
    fn is_above<'v>(&'v self, node: Node<'v>, directory: Node<'v>) -> Answer<bool, Self> {
        if node.target.kind != Kind::Directory {
            return Ok(false);
        }
        self.is_below(directory.target.number, node.target.number).map_err(|why| Failed(self.fault(why)))
    }

    fn is_removed(&self, directory: Node<'_>) -> Answer<bool, Self> {
        match self.place(directory.target.number) {
            Ok((_, _, is_removed)) => Ok(is_removed),
            Err(Refusal::Stale) => Ok(true),
            Err(why) => Err(Failed(self.fault(why))),
        }
    }

    fn link_target<'v>(&'v self, symlink: Node<'v>) -> Answer<TargetBytes, Self> {
        let symlink = symlink.target.number;
        let is_known = self.domain.techniques.get().caches && symlink.home() != self.domain.own();
        if is_known && let Some(target) = self.domain.cache.borrow().link_target(symlink) {
            self.domain.transport().spend(Step::Own);
            return Ok(TargetBytes(target));
        }
        match self.ask_owner(symlink, Request::LinkTarget { object: symlink }) {
            Reply::Bytes { bytes: Bytes(bytes) } => {
                let target: Rc<[u8]> = bytes.into();
                if is_known {
                    self.domain.cache.borrow_mut().keep_link_target(symlink, &target);
                }
                Ok(TargetBytes(target))
            }
            reply => Err(self.failed(&reply)),
        }
    }

    fn device(&self, node: Node<'_>) -> Answer<u64, Self> {
        let object = node.target.number;
        match self.ask_owner(object, Request::Device { object }) {
            Reply::Number { number } => Ok(number),
            reply => Err(self.failed(&reply)),
        }
    }

    fn permissions(&self, node: Node<'_>) -> Answer<Permissions, Self> {
        let object = node.target.number;
        let owner = object.home();
        let keeps = self.domain.techniques.get().caches && node.target.kind == Kind::Directory;
        if keeps && self.domain.cache.borrow().permissions(object).is_some() {
            if !planted("domains: what is kept is used without a look at notices") {
                self.domain.heed_notices(owner);
            }
            if let Some(permissions) = self.domain.cache.borrow().permissions(object) {
                self.domain.transport().spend(Step::Own);
                return Ok(permissions);
            }
        }
        let forgotten = self.domain.cache.borrow().forgotten(owner);
        match self.ask_owner(object, Request::Permissions { object, keeps }) {
            Reply::Permissions { permissions, may_keep } => {
                let mut cache = self.domain.cache.borrow_mut();
                if may_keep && cache.forgotten(owner) == forgotten {
                    cache.keep_permissions(object, permissions);
                }
                Ok(permissions)
            }
            reply => Err(self.failed(&reply)),
        }
    }

    fn change_permissions(&self, node: Node<'_>, change: PermissionChange) -> Result<(), Errno> {
        let object = node.target.number;
        self.domain.cache.borrow_mut().forget_object(object);
        self.let_data_be_known(object)?;
        let caller = Caller(*self.credentials());
        let reply = self.ask_owner(object, Request::ChangePermissions { object, change, caller });
        self.permitted(&reply)
    }

    fn number(&self, node: Node<'_>) -> Answer<InodeNumber, Self> {
        Ok(node.target.number.inode())
    }

    fn attributes(&self, node: Node<'_>, fields: Fields) -> Answer<Attributes, Self> {
        let Target { number, kind } = node.target;
        if fields == Fields::IDENTITY {
            return Ok(Attributes::identity(number.inode(), kind));
        }
        let request = Request::Attributes { object: number, fields: fields.bits() };
        let tells_of_data = fields.intersects(Fields::SIZE | Fields::TIMES);
        let reply = if tells_of_data { self.ask_about(number, request) } else { self.ask_owner(number, request) };
        match reply {
            Reply::Attributes { attributes } => Ok(attributes),
            reply => Err(self.failed(&reply)),
        }
    }

    fn set_times(&self, node: Node<'_>, right: TimesRight, times: (Option<i64>, Option<i64>)) -> Result<(), Errno> {
        let object = node.target.number;
        self.let_data_be_known(object)?;
        let caller = Caller(*self.credentials());
        let reply = self.ask_owner(object, Request::SetTimes { object, right, times, caller });
        self.permitted(&reply)
    }

    fn now_ns(&self) -> u64 {
        self.domain.clock_ns()
    }

    fn retain(&self, node: Node<'_>) -> Answer<Handle, Self> {
        if node.target == Target::ROOT {
            return Ok(Handle(Target::ROOT));
        }
        match self.keep(node.target, None) {
            Reply::Done {} => Ok(Handle(node.target)),
            reply => Err(self.failed(&reply)),
        }
    }

    fn held<'v>(&'v self, handle: &'v Handle) -> Node<'v> {
        self.lend(handle.0)
    }

    fn release(&self, handle: Handle) {
        self.domain.let_go(handle.0);
    }

    fn space(&self) -> Answer<Space, Self> {
        let questions = (0..self.domain.domain_count()).map(|number| (DomainNumber(number as u16), Request::Space {}));
        let mut spaces = Vec::new();
        for reply in self.domain.ask_all(Class::Requests, questions.collect()) {
            match reply {
                Reply::Space { pages, inodes } => spaces.push((pages, inodes)),
                reply => return Err(self.failed(&reply)),
            }
        }
        Ok(server::sum(spaces.into_iter()))
    }

    fn create_open<'v>(
        &'v self,
        directory: Node<'v>,
        key: &Key<'_>,
        permissions: Permissions,
    ) -> Outcome<Handle, Self> {
        let parts = Self::parts(NewObject::File, permissions);
        let made = self.domain.create(directory.target.number, key.0, &parts, true);
        let made = made.map_err(|why| self.outcome(why))?;
        if self.domain.keeps_copies_of(made) {
            // Who has made it has kept it.
            self.domain.acquire_made(made.number);
        }
        Ok(Handle(made))
    }

    fn open_node(&self, node: Node<'_>, need: Need) -> Option<Result<Handle, Errno>> {
        if node.target == Target::ROOT {
            return None;
        }
        let reply = self.keep(node.target, Some((need.bits(), Caller(*self.credentials()))));
        Some(self.permitted(&reply).map(|()| Handle(node.target)))
    }
}
