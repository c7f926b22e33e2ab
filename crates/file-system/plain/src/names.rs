//! The operations on objects. One call at a time: whatever a call has seen is so until it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use posix_calls::{
    Answer, Attributes, Credentials, Errno, Existence, Fields, InodeNumber, Item, Kind, NamedNode, Need, NewObject,
    ObjectOperations, OperationError, Outcome, ParentLink, PermissionChange, Permissions, Space, TargetName,
    TimesRight,
};

use crate::call::{Call, Node, Unreachable};
use crate::object::{Body, Directory, Entry, File, Number, OpenNode};
use crate::state::{ROOT, State};

/// Longest name in bytes (`NAME_MAX` of Linux).
const MAX_NAME_BYTES: usize = 255;

/// A name that was found: which, and the object.
type Found<'v> = Node<'v>;

impl State {
    fn entry(&self, directory: Number, name: &[u8]) -> Option<Entry> {
        self.directory(directory).names.get(name).copied()
    }

    /// What a name leads to.
    pub(crate) fn look_up(&self, directory: Number, name: &[u8]) -> Option<Number> {
        self.entry(directory, name).map(|entry| entry.number)
    }

    pub(crate) fn insert(&mut self, directory: Number, name: &[u8], number: Number) {
        let cookie = self.entry(directory, name).map_or_else(|| self.cookie(), |entry| entry.cookie);
        self.directory_mut(directory).names.insert(name.to_vec(), Entry { number, cookie });
    }

    /// Marks that data or names change now.
    pub(crate) fn mark_data(&mut self, number: Number, now_ns: i64) {
        let object = self.get_mut(number);
        (object.modified_ns, object.changed_ns) = (now_ns, now_ns);
    }

    /// Whether an object is a directory or one above it.
    fn is_above(&self, number: Number, mut directory: Number) -> bool {
        while directory != number && directory != ROOT {
            directory = self.directory(directory).parent;
        }
        directory == number
    }

    /// Lets a directory that has come into another one know that.
    pub(crate) fn move_to(&mut self, moved: Number, parent: Number) {
        if let Body::Directory(directory) = &mut self.get_mut(moved).body
            && directory.parent != parent
        {
            let old = std::mem::replace(&mut directory.parent, parent);
            directory.moves += 1;
            self.get_mut(parent).references += 1;
            self.release(old);
        }
    }

    /// Whether an object that is to lose a name may: directories are empty.
    pub(crate) fn check_empty(&self, number: Number) -> Result<(), OperationError<Unreachable>> {
        match &self.get(number).body {
            Body::Directory(directory) if !directory.names.is_empty() => Err(OperationError::NotEmpty),
            _ => Ok(()),
        }
    }

    fn check_alive(&self, directory: Number) -> Result<(), OperationError<Unreachable>> {
        if self.get(directory).links == 0 { Err(OperationError::Dead) } else { Ok(()) }
    }
}

impl Call<'_> {
    /// What a new object in a directory consists of.
    pub(crate) fn body(parent: Number, object: NewObject<'_>) -> Body {
        match object {
            NewObject::File => Body::File(File::default()),
            NewObject::Directory => Body::Directory(Directory { names: BTreeMap::new(), parent, moves: 0 }),
            NewObject::Symlink(target) => Body::Symlink(target.into()),
            NewObject::Outside(kind, device) => Body::Outside(kind, device),
        }
    }

    /// Whether a directory may be searched by the caller.
    fn may(&self, state: &State, node: Node<'_>, need: Need) -> bool {
        need.check(self.credentials(), node.kind, state.get(node.number).permissions).is_ok()
    }
}

impl ObjectOperations for Call<'_> {
    type Fault = Unreachable;
    type Node<'v>
        = Node<'v>
    where
        Self: 'v;
    type Handle = OpenNode;
    type Key<'n> = &'n [u8];
    type Present<'v>
        = ()
    where
        Self: 'v;
    type Found<'v>
        = Found<'v>
    where
        Self: 'v;
    type LinkTarget<'v>
        = Arc<[u8]>
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
        let mut state = self.change()?;
        state.get_mut(directory.number).references += 1;
        state.release(self.process.working_directory.replace(directory.number));
        Ok(())
    }

    fn root(&self) -> Node<'_> {
        self.lend(ROOT)
    }

    fn key<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        (1..=MAX_NAME_BYTES).contains(&name.len()).then_some(name)
    }

    fn existence(&self, directory: Node<'_>, key: &&[u8]) -> Answer<Existence, Self> {
        let state = self.ask()?;
        Ok(match state.look_up(directory.number, key).map(|number| state.get(number).body.kind()) {
            None => Existence::Absent,
            Some(Kind::Symlink) => Existence::MaybeSymlink,
            Some(_) => Existence::Plain,
        })
    }

    fn present<'v>(&'v self, directory: Node<'v>, key: &&[u8]) -> Answer<Option<()>, Self> {
        Ok(self.ask()?.look_up(directory.number, key).map(|_| ()))
    }

    fn still_present(&self, (): &()) -> Answer<bool, Self> {
        Ok(true)
    }

    fn look_up<'v>(&'v self, directory: Node<'v>, key: &&[u8]) -> Answer<Option<Found<'v>>, Self> {
        Ok(self.ask()?.look_up(directory.number, key).map(|number| self.lend(number)))
    }

    fn node<'v>(&'v self, found: &Found<'v>) -> Node<'v> {
        *found
    }

    fn still_same(&self, _: &Found<'_>) -> Answer<bool, Self> {
        Ok(true)
    }

    fn fingerprint(&self, found: &Found<'_>) -> u64 {
        found.number
    }

    fn list<'v>(
        &'v self,
        directory: Node<'v>,
        from: u64,
        each: &mut dyn FnMut(Item<'_, Node<'v>>) -> bool,
    ) -> Answer<Option<u64>, Self> {
        let names = self.ask()?.directory(directory.number).names.clone();
        let by_cookie: BTreeMap<u64, (&Vec<u8>, Number)> =
            names.iter().map(|(name, entry)| (entry.cookie, (name, entry.number))).collect();
        for (cookie, (name, number)) in by_cookie.range(from..) {
            if !each(Item { name, node: self.lend(*number), next_cookie: cookie + 1 }) {
                return Ok(Some(cookie + 1));
            }
        }
        Ok(None)
    }

    fn create<'v>(
        &'v self,
        directory: Node<'v>,
        key: &&[u8],
        object: NewObject<'_>,
        permissions: Permissions,
    ) -> Outcome<Node<'v>, Self> {
        let body = Call::body(directory.number, object);
        let mut state = self.change()?;
        state.check_alive(directory.number)?;
        if state.look_up(directory.number, key).is_some() {
            return Err(OperationError::Exists);
        }
        let made = state.add(self.file_system.object(body, permissions)).ok_or(OperationError::NoSpace)?;
        state.insert(directory.number, key, made);
        state.mark_data(directory.number, self.now_ns());
        drop(state);
        Ok(self.lend(made))
    }

    fn add_link(&self, directory: Node<'_>, key: &&[u8], source: &Found<'_>) -> Outcome<(), Self> {
        let mut state = self.change()?;
        state.check_alive(directory.number)?;
        if state.look_up(directory.number, key).is_some() {
            return Err(OperationError::Exists);
        }
        let now_ns = self.now_ns();
        let object = state.get_mut(source.number);
        object.links += 1;
        object.changed_ns = now_ns;
        state.insert(directory.number, key, source.number);
        state.mark_data(directory.number, now_ns);
        Ok(())
    }

    fn remove(&self, name: NamedNode<'_, Node<'_>, &[u8]>) -> Outcome<(), Self> {
        let mut state = self.change()?;
        if state.look_up(name.directory.number, name.key) != Some(name.node.number) {
            return Err(OperationError::Changed);
        }
        state.check_empty(name.node.number)?;
        state.directory_mut(name.directory.number).names.remove(*name.key);
        state.mark_data(name.directory.number, self.now_ns());
        state.get_mut(name.node.number).changed_ns = self.now_ns();
        state.unlink(name.node.number);
        Ok(())
    }

    fn rename(
        &self,
        source: NamedNode<'_, Node<'_>, &[u8]>,
        target: TargetName<'_, Node<'_>, &[u8]>,
    ) -> Outcome<(), Self> {
        let mut state = self.change()?;
        let (moved, replaced) = (source.node.number, target.replaced.map(|node| node.number));
        if state.look_up(source.directory.number, source.key) != Some(moved)
            || state.look_up(target.directory.number, target.key) != replaced
            || source.node.kind == Kind::Directory && state.is_above(moved, target.directory.number)
        {
            return Err(OperationError::Changed);
        }
        state.check_alive(target.directory.number)?;
        replaced.map_or(Ok(()), |replaced| state.check_empty(replaced))?;
        let now_ns = self.now_ns();
        state.directory_mut(source.directory.number).names.remove(*source.key);
        state.insert(target.directory.number, target.key, moved);
        state.mark_data(target.directory.number, now_ns);
        state.mark_data(source.directory.number, now_ns);
        state.get_mut(moved).changed_ns = now_ns;
        state.move_to(moved, target.directory.number);
        if let Some(replaced) = replaced {
            state.get_mut(replaced).changed_ns = now_ns;
            state.unlink(replaced);
        }
        Ok(())
    }

    fn exchange(
        &self,
        first: NamedNode<'_, Node<'_>, &[u8]>,
        second: NamedNode<'_, Node<'_>, &[u8]>,
    ) -> Outcome<(), Self> {
        let mut state = self.change()?;
        for (name, other) in [(first, second), (second, first)] {
            if state.look_up(name.directory.number, name.key) != Some(name.node.number)
                || name.node.kind == Kind::Directory && state.is_above(name.node.number, other.directory.number)
            {
                return Err(OperationError::Changed);
            }
        }
        let now_ns = self.now_ns();
        for (name, other) in [(first, second), (second, first)] {
            state.insert(name.directory.number, name.key, other.node.number);
            state.mark_data(name.directory.number, now_ns);
            state.get_mut(name.node.number).changed_ns = now_ns;
        }
        state.move_to(first.node.number, second.directory.number);
        state.move_to(second.node.number, first.directory.number);
        Ok(())
    }

    fn kind(&self, node: Node<'_>) -> Kind {
        node.kind
    }

    fn parent_link<'v>(&'v self, directory: Node<'v>) -> Answer<ParentLink<Node<'v>>, Self> {
        let state = self.ask()?;
        let Directory { parent, moves, .. } = state.directory(directory.number);
        Ok(ParentLink { parent: self.lend(*parent), moves: *moves })
    }

    fn is_removed(&self, directory: Node<'_>) -> Answer<bool, Self> {
        Ok(self.ask()?.get(directory.number).links == 0)
    }

    fn link_target<'v>(&'v self, symlink: Node<'v>) -> Answer<Arc<[u8]>, Self> {
        match &self.ask()?.get(symlink.number).body {
            Body::Symlink(target) => Ok(target.clone()),
            other => panic!("only symbolic links have targets, and this is {:?}", other.kind()),
        }
    }

    fn device(&self, node: Node<'_>) -> Answer<u64, Self> {
        match self.ask()?.get(node.number).body {
            Body::Outside(_, device) => Ok(device),
            ref other => panic!("only names for what lies outside have such a number, and this is {:?}", other.kind()),
        }
    }

    fn permissions(&self, node: Node<'_>) -> Answer<Permissions, Self> {
        Ok(self.ask()?.get(node.number).permissions)
    }

    fn change_permissions(&self, node: Node<'_>, change: PermissionChange) -> Result<(), Errno> {
        let mut state = self.change()?;
        let object = state.get_mut(node.number);
        object.permissions = change.of(self.credentials(), node.kind, object.permissions)?;
        object.changed_ns = self.now_ns();
        Ok(())
    }

    fn attributes(&self, node: Node<'_>, fields: Fields) -> Answer<Attributes, Self> {
        let state = self.ask()?;
        let object = state.get(node.number);
        let Permissions { mode, user, group } = object.permissions;
        let mut attributes = Attributes::identity(InodeNumber(node.number), node.kind);
        if fields.contains(Fields::PERMISSIONS) {
            attributes = Attributes { mode, user, group, accessed_ns: object.accessed_ns, ..attributes };
        }
        if fields.contains(Fields::LINK_COUNT) {
            attributes.link_count = if matches!(node.kind, Kind::Pipe | Kind::Socket) { 1 } else { object.links };
        }
        if fields.contains(Fields::SIZE) {
            attributes.size_bytes = match &object.body {
                Body::File(file) => file.size_bytes,
                Body::Symlink(target) => target.len() as u64,
                _ => 0,
            };
        }
        if fields.contains(Fields::TIMES) {
            let (modified_ns, changed_ns) = (object.modified_ns, object.changed_ns);
            attributes = Attributes { modified_ns, changed_ns, ..attributes };
        }
        Ok(attributes)
    }

    fn set_times(
        &self,
        node: Node<'_>,
        right: TimesRight,
        (accessed, modified): (Option<i64>, Option<i64>),
    ) -> Result<(), Errno> {
        let mut state = self.change()?;
        let object = state.get_mut(node.number);
        right.check(self.credentials(), object.permissions)?;
        object.accessed_ns = accessed.unwrap_or(object.accessed_ns);
        object.modified_ns = modified.unwrap_or(object.modified_ns);
        object.changed_ns = self.now_ns();
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.file_system.now_ns()
    }

    fn retain(&self, node: Node<'_>) -> Answer<OpenNode, Self> {
        self.change()?.get_mut(node.number).references += 1;
        Ok(OpenNode(node.number))
    }

    fn held<'v>(&'v self, handle: &'v OpenNode) -> Node<'v> {
        self.lend(handle.0)
    }

    fn release(&self, handle: OpenNode) {
        self.file_system.state.borrow_mut().release(handle.0);
    }

    fn space(&self) -> Answer<Space, Self> {
        Ok(self.ask()?.space())
    }

    fn walk_ahead<'v>(&'v self, directory: Node<'v>, path: &[u8]) -> Answer<(Node<'v>, usize), Self> {
        let (mut current, mut passed) = (directory, 0);
        if !self.file_system.takes_shortcuts.get() {
            return Ok((current, passed));
        }
        let state = self.ask()?;
        loop {
            let rest = &path[passed..];
            let Some(end) = rest.iter().position(|byte| *byte == b'/') else { break };
            let Some(next) = rest[end..].iter().position(|byte| *byte != b'/') else { break };
            let Some(name) = self.key(&rest[..end]).filter(|name| *name != b"." && *name != b"..") else { break };
            if !self.may(&state, current, Need::SEARCH) {
                break;
            }
            let found = state.look_up(current.number, name).map(|number| self.lend(number));
            let Some(below) = found.filter(|found| found.kind == Kind::Directory) else { break };
            (current, passed) = (below, passed + end + next);
        }
        Ok((current, passed))
    }

    fn open_node(&self, node: Node<'_>, need: Need) -> Option<Result<OpenNode, Errno>> {
        self.file_system.takes_shortcuts.get().then(|| {
            let mut state = self.change()?;
            let object = state.get_mut(node.number);
            need.check(self.credentials(), node.kind, object.permissions)?;
            object.references += 1;
            Ok(OpenNode(node.number))
        })
    }
}
