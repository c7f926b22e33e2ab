//! A call inside a transaction: the operations on objects, over the layer and the log.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefMut;
use core::fmt;
use core::marker::PhantomData;

use posix_calls::{
    AttributeChange, Attributes, Credentials, Errno, Existence, Failed, Fields, InodeNumber, Item, Kind, NameChanges,
    NamedNode, Need, NewObject, ObjectOperations, OperationError, ParentLink, PermissionChange, Permissions, Space,
    TargetName, TimesRight,
};

use sync::mutant::planted;

use crate::base::{Base, FaultIn, HandleIn};
use crate::layer::{OWN_COOKIES, OwnObject};
use crate::name::{Name, NameKey};
use crate::own::{Made, Modified};
use crate::question::{About, FIRST_COOKIE, Object, Origin, Question, Reply, Rule, meet, number};
use crate::transaction::{Fault, State, Told, Transaction, Within, from_base, keep};

/// A call of a transaction. Between two calls of it others may make theirs.
pub struct Call<'t, P: Base> {
    pub(crate) base: P,
    pub(crate) transaction: &'t Transaction<HandleIn<P>>,
}

impl<P: Base> fmt::Debug for Call<'_, P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Call").field("answers", &self.transaction.answers()).finish_non_exhaustive()
    }
}

/// An object during a call.
#[derive(Clone, Copy, Debug)]
pub struct Node<'v> {
    pub(crate) number: InodeNumber,
    pub(crate) kind: Kind,
    pub(crate) call: PhantomData<&'v ()>,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Node<'_>) -> bool {
        self.number == other.number
    }
}

/// An object that is kept over calls: until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenNode {
    pub(crate) number: InodeNumber,
    pub(crate) kind: Kind,
}

type Changed<T, B> = Result<T, OperationError<Fault<<B as ObjectOperations>::Fault>>>;

impl<'t, P: Base> Call<'t, P> {
    /// Begins a call of a transaction, by means of a call of the base.
    pub fn new(base: P, transaction: &'t Transaction<HandleIn<P>>) -> Call<'t, P> {
        transaction.state().note_call(&base);
        Call { base, transaction }
    }

    /// An object that was kept before the transaction began.
    ///
    /// # Errors
    /// What ends the transaction, or the base's fault.
    pub fn kept(&self, handle: &HandleIn<P>) -> Within<Node<'_>, P::Objects> {
        let mut state = self.state()?;
        let (number, met) =
            meet(self.objects_of_base(), &state.objects, self.objects_of_base().held(handle)).map_err(from_base)?;
        keep(&mut state.objects, met);
        drop(state);
        Ok(self.lend(number))
    }

    /// The call of the base by which it was begun.
    pub fn into_base(self) -> P {
        self.base
    }

    /// Looks at something for who passes it on to somebody that will ask again before he acts on it: answers that are new are not
    /// kept, and so the transaction does not rest on them.
    pub fn in_passing<T>(&self, look: impl FnOnce(&Self) -> T) -> T {
        let before = core::mem::replace(&mut self.transaction.state().keeps, false);
        let seen = look(self);
        self.transaction.state().keeps = before;
        seen
    }

    pub(crate) fn objects_of_base(&self) -> &P::Objects {
        self.base.objects()
    }

    pub(crate) fn state(&self) -> Within<RefMut<'_, State<HandleIn<P>>>, P::Objects> {
        let state = self.transaction.state();
        state.open::<P::Objects>()?;
        Ok(state)
    }

    pub(crate) fn lend(&self, number: InodeNumber) -> Node<'_> {
        Node { number, kind: self.transaction.state().kind(number), call: PhantomData }
    }

    pub(crate) fn known(&self, subject: InodeNumber, about: About) -> Within<Reply, P::Objects> {
        self.state()?.known(&self.base, Question { subject, about })
    }

    /// The answer to a question that has not been asked.
    fn learn(&self, subject: InodeNumber, about: About) -> Within<Reply, P::Objects> {
        self.state()?.learn(&self.base, Question { subject, about })
    }

    pub(crate) fn is_made(&self, node: Node<'_>) -> bool {
        self.transaction.state().is_made(node.number)
    }

    /// The answer to a question about a name of which this was told before.
    fn learn_of_name(&self, directory: Node<'_>, about: About, told: &Told) -> Within<Reply, P::Objects> {
        self.state()?.learn_of_name(&self.base, Question { subject: directory.number, about }, told)
    }

    /// What times say of the transaction's own changes.
    fn moment_ns(&self) -> u64 {
        self.transaction.state().see_moment(self.objects_of_base())
    }

    /// What has become of a name by the transaction itself: nothing if it has not changed it.
    fn own_name(&self, directory: Node<'_>, name: &Name) -> Within<Option<Option<InodeNumber>>, P::Objects> {
        let state = self.state()?;
        let own = state.layer.name(directory.number, name).map(|own| own.leads_to);
        // What the transaction has made has no other names.
        Ok(own.or(state.is_made(directory.number).then_some(None)))
    }

    fn leads_to(&self, directory: Node<'_>, name: &Name) -> Within<Option<InodeNumber>, P::Objects> {
        if let Some(own) = self.own_name(directory, name)? {
            return Ok(own);
        }
        let told = self.transaction.state().told_of_name(directory.number, name);
        match told {
            Told { leads_to: Some(leads_to), .. } => Ok(leads_to),
            Told { existence: Some(Existence::Absent), .. } | Told { exists: Some(false), .. } => Ok(None),
            told => Ok(self.learn_of_name(directory, About::LeadsTo(name.clone()), &told)?.node()),
        }
    }

    fn has_name(&self, directory: Node<'_>, name: &Name) -> Within<bool, P::Objects> {
        if let Some(own) = self.own_name(directory, name)? {
            return Ok(own.is_some());
        }
        let told = self.transaction.state().told_of_name(directory.number, name);
        match told {
            Told { leads_to: Some(leads_to), .. } => Ok(leads_to.is_some()),
            Told { existence: Some(existence), .. } => Ok(existence != Existence::Absent),
            Told { exists: Some(exists), .. } => Ok(exists),
            _ if planted("transact: that a name exists is kept as what it leads to") => {
                Ok(self.leads_to(directory, name)?.is_some())
            }
            _ => Ok(self.learn(directory.number, About::Exists(name.clone()))?.truth()),
        }
    }

    pub(crate) fn own_object<T>(&self, node: Node<'_>, get: impl FnOnce(&OwnObject) -> T) -> Option<T> {
        self.transaction.state().layer.object(node.number).map(get)
    }

    /// What follows from an object's permissions, as the transaction has changed them.
    fn rule(&self, node: Node<'_>, rule: Rule) -> Within<Reply, P::Objects> {
        let permissions = |change: &AttributeChange| match change {
            AttributeChange::Permissions(change) => Some(*change),
            AttributeChange::Times(..) => None,
        };
        let changes = self.own_object(node, |own| own.attributes.iter().filter_map(permissions).collect());
        let changes: Vec<_> = changes.unwrap_or_default();
        if planted("transact: a check is kept as all permissions") {
            self.known(node.number, About::Permissions(changes.clone(), Rule::All))?;
        }
        self.known(node.number, About::Permissions(changes, rule))
    }

    fn change_attributes(&self, node: Node<'_>, change: AttributeChange) -> Result<(), Errno> {
        self.state()?.layer.change_attributes(node.number, change);
        Ok(())
    }

    /// The size of an object, as the transaction has changed it.
    pub(crate) fn size_of(&self, node: Node<'_>) -> Within<u64, P::Objects> {
        let own = self.own_object(node, |own| (own.data.exact_size(), own.data.least_size()));
        let (exact, least) = own.unwrap_or_default();
        match exact.or_else(|| (self.is_made(node) && node.kind == Kind::Regular).then_some(least)) {
            Some(size) => Ok(size),
            None => Ok(self.known(node.number, About::SizeBytes)?.count().max(least)),
        }
    }

    /// Whether names may be made in a directory, and this one does not exist.
    fn check_free(&self, directory: Node<'_>, name: &Name) -> Changed<(), P::Objects> {
        if self.is_removed(directory)? {
            return Err(OperationError::Dead);
        }
        if self.has_name(directory, name)? { Err(OperationError::Exists) } else { Ok(()) }
    }

    /// Whether an object that is to lose a name may: directories are empty.
    fn check_empty(&self, node: Node<'_>) -> Changed<(), P::Objects> {
        if node.kind != Kind::Directory {
            return Ok(());
        }
        let state = self.state()?;
        let mut gone = Vec::new();
        for (name, own) in state.layer.names_of(node.number) {
            if own.leads_to.is_some() {
                return Err(OperationError::NotEmpty);
            }
            gone.push(name.clone());
        }
        gone.sort_unstable();
        let is_made = state.is_made(node.number);
        drop(state);
        if !is_made && self.known(node.number, About::HasBeside(gone))?.truth() {
            return Err(OperationError::NotEmpty);
        }
        Ok(())
    }

    fn set_name(
        &self,
        directory: Node<'_>,
        name: &Name,
        change: (Option<InodeNumber>, Option<InodeNumber>),
    ) -> Within<(), P::Objects> {
        self.state()?.layer.set_name((directory.number, name), change);
        Ok(())
    }

    /// Lets a directory that has come into another one stand there.
    fn move_to(&self, moved: Node<'_>, (from, to): (Node<'_>, Node<'_>)) -> Within<(), P::Objects> {
        if moved.kind == Kind::Directory && from != to {
            self.state()?.layer.move_to(moved.number, to.number);
        }
        Ok(())
    }

    fn end_if_directory(&self, node: Node<'_>) -> Within<(), P::Objects> {
        if node.kind == Kind::Directory {
            self.state()?.layer.status_mut(node.number).is_removed = true;
        }
        Ok(())
    }

    fn check_leads(&self, directory: Node<'_>, name: &Name, expected: Option<Node<'_>>) -> Changed<(), P::Objects> {
        let expected = expected.map(|node| node.number);
        if self.leads_to(directory, name)? == expected { Ok(()) } else { Err(OperationError::Changed) }
    }

    /// Whether a directory would become its own descendant.
    fn check_place(&self, moved: Node<'_>, from: Node<'_>, to: Node<'_>) -> Changed<(), P::Objects> {
        let is_loop = from != to && moved.kind == Kind::Directory && self.is_above(moved, to)?;
        if is_loop { Err(OperationError::Changed) } else { Ok(()) }
    }

    /// Answers that a call looks at twice: all must still be so.
    fn all_still_so(&self) -> Within<(), P::Objects> {
        self.state()?.recheck(&self.base)
    }
}

impl<P: Base> ObjectOperations for Call<'_, P> {
    type Fault = Fault<FaultIn<P>>;
    type Node<'v>
        = Node<'v>
    where
        Self: 'v;
    type Handle = OpenNode;
    type Key<'n> = NameKey<'n>;
    type Present<'v>
        = ()
    where
        Self: 'v;
    type Found<'v>
        = Node<'v>
    where
        Self: 'v;
    type LinkTarget<'v>
        = Box<[u8]>
    where
        Self: 'v;

    fn credentials(&self) -> &Credentials {
        self.objects_of_base().credentials()
    }

    fn umask(&self) -> u32 {
        self.objects_of_base().umask()
    }

    fn working_directory(&self) -> Node<'_> {
        let mut state = self.transaction.state();
        let number = state.layer.scalars.working_directory.unwrap_or_else(|| state.working_directory());
        drop(state);
        self.lend(number)
    }

    fn set_working_directory(&self, directory: Node<'_>) -> Within<(), P::Objects> {
        self.state()?.layer.scalars.working_directory = Some(directory.number);
        Ok(())
    }

    fn root(&self) -> Node<'_> {
        Node { number: self.transaction.state().root, kind: Kind::Directory, call: PhantomData }
    }

    fn key<'n>(&self, name: &'n [u8]) -> Option<NameKey<'n>> {
        let base = self.objects_of_base();
        base.key(name).map(|key| NameKey { name, hash: base.key_hash(&key) })
    }

    fn existence(&self, directory: Node<'_>, key: &NameKey<'_>) -> Within<Existence, P::Objects> {
        let name = &key.kept();
        let kind_of = |number: Option<InodeNumber>| match number.map(|number| self.lend(number).kind) {
            None => Existence::Absent,
            Some(Kind::Symlink) => Existence::MaybeSymlink,
            Some(_) => Existence::Plain,
        };
        if let Some(own) = self.own_name(directory, name)? {
            return Ok(kind_of(own));
        }
        let told = self.transaction.state().told_of_name(directory.number, name);
        match told {
            Told { leads_to: Some(leads_to), .. } => Ok(kind_of(leads_to)),
            Told { existence: Some(existence), .. } => Ok(existence),
            Told { exists: Some(false), .. } => Ok(Existence::Absent),
            told => Ok(self.learn_of_name(directory, About::Existence(name.clone()), &told)?.existence()),
        }
    }

    fn exists(&self, directory: Node<'_>, key: &NameKey<'_>) -> Within<bool, P::Objects> {
        self.has_name(directory, &key.kept())
    }

    fn present<'v>(&'v self, directory: Node<'v>, name: &NameKey<'_>) -> Within<Option<()>, P::Objects> {
        Ok(self.exists(directory, name)?.then_some(()))
    }

    fn still_present(&self, (): &()) -> Within<bool, P::Objects> {
        self.all_still_so().map(|()| true)
    }

    fn look_up<'v>(&'v self, directory: Node<'v>, key: &NameKey<'_>) -> Within<Option<Node<'v>>, P::Objects> {
        Ok(self.leads_to(directory, &key.kept())?.map(|number| self.lend(number)))
    }

    fn node<'v>(&'v self, found: &Node<'v>) -> Node<'v> {
        *found
    }

    fn still_same(&self, _: &Node<'_>) -> Within<bool, P::Objects> {
        self.all_still_so().map(|()| true)
    }

    fn fingerprint(&self, found: &Node<'_>) -> u64 {
        found.number.0
    }

    fn list<'v>(
        &'v self,
        directory: Node<'v>,
        from: u64,
        each: &mut dyn FnMut(Item<'_, Node<'v>>) -> bool,
    ) -> Within<Option<u64>, P::Objects> {
        let mut cookie = from.max(FIRST_COOKIE);
        while cookie < OWN_COOKIES && !self.is_made(directory) {
            let Some(listed) = self.known(directory.number, About::Next(cookie))?.next() else { break };
            cookie = listed.next_cookie;
            if cookie >= OWN_COOKIES {
                return Err(Failed(Fault::NotTransactional));
            }
            let own = self.state()?.layer.name(directory.number, &listed.name);
            let leads_to = own.map_or(Some(listed.number), |own| own.leads_to);
            let Some(number) = leads_to else { continue };
            if !each(Item { name: &listed.name, node: self.lend(number), next_cookie: cookie }) {
                return Ok(Some(cookie));
            }
        }
        let state = self.state()?;
        let mut own: Vec<_> = state
            .layer
            .names_of(directory.number)
            .filter(|(_, own)| own.cookie >= from && own.before.is_none())
            .filter_map(|(name, own)| Some((own.cookie, name.clone(), own.leads_to?)))
            .collect();
        drop(state);
        own.sort_unstable_by_key(|(cookie, _, _)| *cookie);
        for (cookie, name, number) in own {
            if !each(Item { name: &name, node: self.lend(number), next_cookie: cookie + 1 }) {
                return Ok(Some(cookie + 1));
            }
        }
        Ok(None)
    }

    fn create<'v>(
        &'v self,
        directory: Node<'v>,
        key: &NameKey<'_>,
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Changed<Node<'v>, P::Objects> {
        let name = &key.kept();
        self.check_free(directory, name)?;
        let kind = object.kind();
        let mut state = self.state()?;
        let base_directory = self.objects_of_base().held(&state.objects[&directory.number].handle);
        let handle =
            self.objects_of_base().make(base_directory, object, permissions).map_err(|refusal| match refusal {
                OperationError::Exists => OperationError::Exists,
                OperationError::Changed => OperationError::Changed,
                OperationError::Dead => OperationError::Dead,
                OperationError::NotEmpty => OperationError::NotEmpty,
                OperationError::NoSpace => OperationError::NoSpace,
                OperationError::Fault(fault) => OperationError::Fault(Fault::Base(fault)),
            })?;
        let made = match number(self.objects_of_base(), self.objects_of_base().held(&handle)) {
            Ok(made) => made,
            Err(failed) => {
                self.objects_of_base().release(handle);
                return Err(from_base(failed).into());
            }
        };
        state.objects.push(made, Object { handle, kind, origin: Origin::Made });
        state.layer.note_made(made, Made::of(object, permissions));
        drop(state);
        self.set_name(directory, name, (None, Some(made)))?;
        Ok(self.lend(made))
    }

    fn add_link(&self, directory: Node<'_>, key: &NameKey<'_>, source: &Node<'_>) -> Changed<(), P::Objects> {
        let name = &key.kept();
        self.check_free(directory, name)?;
        Ok(self.set_name(directory, name, (None, Some(source.number)))?)
    }

    fn remove(
        &self,
        NamedNode { directory, key, node }: NamedNode<'_, Node<'_>, NameKey<'_>>,
    ) -> Changed<(), P::Objects> {
        let key = &key.kept();
        self.check_leads(directory, key, Some(node))?;
        self.check_empty(node)?;
        self.set_name(directory, key, (Some(node.number), None))?;
        Ok(self.end_if_directory(node)?)
    }

    fn rename(
        &self,
        source: NamedNode<'_, Node<'_>, NameKey<'_>>,
        target: TargetName<'_, Node<'_>, NameKey<'_>>,
    ) -> Changed<(), P::Objects> {
        let moved = source.node;
        let (source_name, target_name) = (&source.key.kept(), &target.key.kept());
        self.check_leads(source.directory, source_name, Some(moved))?;
        match target.replaced {
            Some(_) => self.check_leads(target.directory, target_name, target.replaced)?,
            None => self.check_free(target.directory, target_name).map_err(|refusal| match refusal {
                OperationError::Exists => OperationError::Changed,
                other => other,
            })?,
        }
        self.check_place(moved, source.directory, target.directory)?;
        target.replaced.map_or(Ok(()), |replaced| self.check_empty(replaced))?;
        self.move_to(moved, (source.directory, target.directory))?;
        self.set_name(source.directory, source_name, (Some(moved.number), None))?;
        let replaced = target.replaced.map(|node| node.number);
        self.set_name(target.directory, target_name, (replaced, Some(moved.number)))?;
        target.replaced.map_or(Ok(()), |replaced| Ok(self.end_if_directory(replaced)?))
    }

    fn exchange(
        &self,
        first: NamedNode<'_, Node<'_>, NameKey<'_>>,
        second: NamedNode<'_, Node<'_>, NameKey<'_>>,
    ) -> Changed<(), P::Objects> {
        for (name, other) in [(first, second), (second, first)] {
            self.check_leads(name.directory, &name.key.kept(), Some(name.node))?;
            self.check_place(name.node, name.directory, other.directory)?;
        }
        for (name, other) in [(first, second), (second, first)] {
            self.move_to(name.node, (name.directory, other.directory))?;
            self.set_name(name.directory, &name.key.kept(), (Some(name.node.number), Some(other.node.number)))?;
        }
        Ok(())
    }

    fn kind(&self, node: Node<'_>) -> Kind {
        node.kind
    }

    fn parent_link<'v>(&'v self, directory: Node<'v>) -> Within<ParentLink<Node<'v>>, P::Objects> {
        // Moves are counted for calls that look twice; here, what was seen stays so.
        self.all_still_so()?;
        Ok(ParentLink { parent: self.parent(directory)?, moves: 0 })
    }

    fn parent<'v>(&'v self, directory: Node<'v>) -> Within<Node<'v>, P::Objects> {
        let parent = match self.own_object(directory, |own| own.status.parent).flatten() {
            Some(parent) => parent,
            None => {
                let parent = self.known(directory.number, About::Parent)?.node();
                // Who goes up and up must not go round.
                self.all_still_so()?;
                parent.expect("every directory has one")
            }
        };
        Ok(self.lend(parent))
    }

    fn is_above<'v>(&'v self, node: Node<'v>, directory: Node<'v>) -> Within<bool, P::Objects> {
        if node.kind != Kind::Directory {
            return Ok(false);
        }
        let has_moves = self.state()?.layer.scalars.has_moves;
        let root = self.root();
        let mut current = directory;
        // What nobody has moved is as the base says, from the first directory on that the base has.
        while current != node && current != root && (has_moves || self.is_made(current)) {
            current = self.parent(current)?;
        }
        if current == node || current == root || self.is_made(node) {
            return Ok(current == node);
        }
        Ok(self.known(current.number, About::IsUnder(node.number))?.truth())
    }

    fn fingerprint_of_ancestors(&self, _: Node<'_>) -> Within<u64, P::Objects> {
        // What was seen stays so.
        self.all_still_so().map(|()| 0)
    }

    fn is_removed(&self, directory: Node<'_>) -> Within<bool, P::Objects> {
        let is_own = self.own_object(directory, |own| own.status.is_removed).unwrap_or(false);
        Ok(is_own || !self.is_made(directory) && self.known(directory.number, About::IsRemoved)?.truth())
    }

    fn link_target<'v>(&'v self, symlink: Node<'v>) -> Within<Box<[u8]>, P::Objects> {
        let state = self.state()?;
        let target =
            self.objects_of_base().link_target(self.objects_of_base().held(&state.objects[&symlink.number].handle));
        Ok(target.map_err(from_base)?.as_ref().into())
    }

    fn device(&self, node: Node<'_>) -> Within<u64, P::Objects> {
        let (state, base) = (self.state()?, self.objects_of_base());
        base.device(base.held(&state.objects[&node.number].handle)).map_err(from_base)
    }

    fn permissions(&self, node: Node<'_>) -> Within<Permissions, P::Objects> {
        Ok(self.rule(node, Rule::All)?.permissions())
    }

    fn permits(&self, node: Node<'_>, need: Need) -> Within<bool, P::Objects> {
        Ok(self.rule(node, Rule::Permits(need))?.truth())
    }

    fn inherited_group(&self, directory: Node<'_>) -> Within<Option<u32>, P::Objects> {
        Ok(self.rule(directory, Rule::InheritedGroup)?.group())
    }

    fn keeps_names(&self, directory: Node<'_>) -> Within<bool, P::Objects> {
        Ok(self.rule(directory, Rule::KeepsNames)?.truth())
    }

    fn change_permissions(&self, node: Node<'_>, change: PermissionChange) -> Result<(), Errno> {
        self.rule(node, Rule::Refuses(change))?.error().map_or(Ok(()), Err)?;
        self.change_attributes(node, AttributeChange::Permissions(change))
    }

    fn attributes(&self, node: Node<'_>, fields: Fields) -> Within<Attributes, P::Objects> {
        let Node { number, kind, .. } = node;
        let status = |own: &OwnObject| {
            if planted("transact: a look copies what was written") {
                drop(own.data.clone());
            }
            own.status
        };
        let own = self.own_object(node, status).unwrap_or_default();
        let (mut mode, mut user, mut group, mut link_count, mut size_bytes) = (0, 0, 0, 0, 0);
        let (mut accessed_ns, mut modified_ns, mut changed_ns) = (0, 0, 0);
        if fields.contains(Fields::PERMISSIONS) {
            Permissions { mode, user, group } = self.permissions(node)?;
            accessed_ns = match own.accessed_ns {
                Some(accessed_ns) => accessed_ns,
                None if self.is_made(node) => self.moment_ns() as i64,
                None => self.known(number, About::AccessedNs)?.times().0,
            };
        }
        if fields.contains(Fields::LINK_COUNT) {
            // A pipe counts itself as a name, which it never gets.
            let has_none = self.is_made(node) && kind != Kind::Pipe;
            let base = if has_none { 0 } else { self.known(number, About::LinkCount)?.count() };
            link_count = base.saturating_add_signed(own.links) as u32;
        }
        if fields.contains(Fields::SIZE) {
            size_bytes = self.size_of(node)?;
        }
        if fields.contains(Fields::TIMES) {
            // What the transaction has made has no times before its moment, and others keep a later one.
            if !self.is_made(node) {
                (modified_ns, changed_ns) = self.known(number, About::ChangedNs)?.times();
            }
            if self.is_made(node) || own.is_changed {
                let moment_ns = self.moment_ns() as i64;
                changed_ns = moment_ns.max(changed_ns);
                modified_ns = match own.modified {
                    Some(Modified::At(time_ns)) => time_ns,
                    None if !self.is_made(node) => modified_ns,
                    _ => moment_ns.max(modified_ns),
                };
            }
        }
        Ok(Attributes { number, kind, mode, user, group, link_count, size_bytes, accessed_ns, modified_ns, changed_ns })
    }

    fn set_times(&self, node: Node<'_>, right: TimesRight, times: (Option<i64>, Option<i64>)) -> Result<(), Errno> {
        self.rule(node, Rule::RefusesTimes(right))?.error().map_or(Ok(()), Err)?;
        self.change_attributes(node, AttributeChange::Times(right, times))
    }

    fn now_ns(&self) -> u64 {
        self.moment_ns()
    }

    fn retain(&self, node: Node<'_>) -> Within<OpenNode, P::Objects> {
        Ok(OpenNode { number: node.number, kind: node.kind })
    }

    fn held<'v>(&'v self, handle: &'v OpenNode) -> Node<'v> {
        let OpenNode { number, kind } = *handle;
        let is_known = self.transaction.state().objects.contains(&number);
        assert!(is_known, "a handle belongs to the transaction in which it was made");
        Node { number, kind, call: PhantomData }
    }

    fn release(&self, _: OpenNode) {}

    fn space(&self) -> Within<Space, P::Objects> {
        self.objects_of_base().space().map_err(from_base)
    }
}
