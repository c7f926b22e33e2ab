//! Many names that change at one moment: tried on a copy when they are prepared, done when they are decided.

use std::collections::BTreeMap;
use std::convert::Infallible;

use posix_calls::{
    Answer, AttributeChange, AttributeChanges, DataChanges, Decision, FileChanges, Kind, Moment, NameChange,
    NameChanges, NewObject, ObjectOperations as _, OperationError, Outcome, Permissions, ReservedPages, Touched,
    Urgency,
};

use crate::call::{Call, Node, Unreachable};
use crate::data::Description;
use crate::object::{Number, Object, OpenNode};
use crate::state::{ROOT, State};

/// What becomes of a name.
#[derive(Clone, Debug)]
struct Change {
    directory: Number,
    name: Vec<u8>,
    before: Option<Number>,
    after: Option<Number>,
}

/// Changes that are prepared.
#[derive(Clone, Debug)]
#[must_use = "what is dropped does not happen"]
pub struct PreparedChanges {
    now_ns: i64,
    touched: Vec<(Number, Touched)>,
    names: Vec<Change>,
    attributes: Vec<(Number, Vec<AttributeChange>)>,
    files: Vec<ChangedFile>,
    has_happened: bool,
}

/// What becomes of a file.
#[derive(Clone, Debug)]
struct ChangedFile {
    number: Number,
    cut_to: Option<u64>,
    writes: Vec<(u64, Vec<u8>)>,
    size_bytes: Option<u64>,
}

impl State {
    /// Whether a directory would be above itself, were these the parents.
    fn closes_loop(&self, parents: &BTreeMap<Number, Number>, moved: Number) -> bool {
        let mut current = moved;
        // Who has not come to the root after so many steps goes round.
        for _ in 0..=self.objects.len() {
            if current == ROOT {
                return false;
            }
            current = parents.get(&current).copied().unwrap_or_else(|| self.directory(current).parent);
        }
        true
    }

    /// Lets times of an object be this one, unless they are later.
    fn touch(&mut self, number: Number, touched: Touched, now_ns: i64) {
        let object = self.get_mut(number);
        object.changed_ns = object.changed_ns.max(now_ns);
        if touched == Touched::Data {
            object.modified_ns = object.modified_ns.max(now_ns);
        }
    }

    fn is_directory(&self, number: Number) -> bool {
        self.get(number).body.kind() == Kind::Directory
    }

    /// Changes all names or, if it refuses, leaves behind what nobody may see.
    fn change_names(&mut self, changes: &[Change]) -> Result<(), OperationError<Unreachable>> {
        let mut parents = BTreeMap::new();
        for change in changes {
            if self.look_up(change.directory, &change.name) != change.before {
                return Err(if change.before.is_none() { OperationError::Exists } else { OperationError::Changed });
            }
            let Some(after) = change.after else { continue };
            let Object { links, is_named, .. } = *self.get(after);
            if is_named && links == 0 {
                return Err(OperationError::Changed);
            }
            if self.is_directory(after) {
                if is_named && !changes.iter().any(|other| other.before == Some(after)) {
                    return Err(OperationError::Changed);
                }
                if parents.insert(after, change.directory).is_some() {
                    return Err(OperationError::Changed);
                }
            }
        }
        if parents.keys().any(|moved| self.closes_loop(&parents, *moved)) {
            return Err(OperationError::Changed);
        }
        let changed = || changes.iter().filter(|change| change.before != change.after);
        for change in changed() {
            if let Some(after) = change.after {
                self.insert(change.directory, &change.name, after);
                let object = self.get_mut(after);
                (object.links, object.is_named) = (object.links + 1, true);
            } else {
                self.directory_mut(change.directory).names.remove(&change.name);
            }
        }
        for (moved, parent) in parents {
            self.move_to(moved, parent);
        }
        for change in changed() {
            if change.before.is_none() && self.is_unnamed_after(change.directory, changes) {
                return Err(OperationError::Dead);
            }
            if let Some(before) = change.before.filter(|before| self.is_unnamed_after(*before, changes)) {
                self.check_empty(before)?;
            }
        }
        for before in changed().filter_map(|change| change.before) {
            self.unlink(before);
        }
        Ok(())
    }

    /// Changes a file's data or, without space, leaves behind what nobody may see.
    fn change_file(&mut self, changed: &ChangedFile) -> Result<(), OperationError<Unreachable>> {
        let number = changed.number;
        let resize = |state: &mut State, size: u64| {
            let (data, used, _) = state.file_mut(number);
            *used -= data.resize(size) as u64;
            state.drop_copies(number, size);
        };
        if let Some(size) = changed.cut_to.filter(|size| *size < self.file_mut(number).0.size_bytes) {
            resize(self, size);
        }
        for (offset, bytes) in &changed.writes {
            let (data, used, limit) = self.file_mut(number);
            if data.write(*offset, bytes, || State::take_pages(used, limit)) < bytes.len() {
                return Err(OperationError::NoSpace);
            }
        }
        if let Some(size) = changed.size_bytes {
            resize(self, size);
        }
        Ok(())
    }

    /// Whether no name will lead to an object once the names before these changes are gone.
    fn is_unnamed_after(&self, number: Number, changes: &[Change]) -> bool {
        let lost = changes.iter().filter(|change| change.before != change.after && change.before == Some(number));
        self.get(number).links as usize == lost.count()
    }
}

impl Call<'_> {
    /// Makes the changes of one object's attributes, or refuses.
    fn change_attributes(
        &self,
        state: &mut State,
        number: Number,
        changes: &[AttributeChange],
    ) -> Result<(), OperationError<Unreachable>> {
        let object = state.get_mut(number);
        for change in changes {
            match *change {
                AttributeChange::Permissions(change) => {
                    let new = change.of(self.credentials(), object.body.kind(), object.permissions);
                    object.permissions = new.map_err(|_| OperationError::Changed)?;
                }
                AttributeChange::Times(right, (accessed, modified)) => {
                    right.check(self.credentials(), object.permissions).map_err(|_| OperationError::Changed)?;
                    object.accessed_ns = accessed.unwrap_or(object.accessed_ns);
                    object.modified_ns = modified.unwrap_or(object.modified_ns);
                }
            }
        }
        Ok(())
    }
}

impl NameChanges for Call<'_> {
    type Room<'v>
        = ()
    where
        Self: 'v;
    type Prepared<'p, 'v>
        = PreparedChanges
    where
        Self: 'v,
        'v: 'p;
    type AttributeRoom<'v>
        = ()
    where
        Self: 'v;
    type Operation<'o> = Infallible;
    type Looks<'v>
        = Call<'v>
    where
        Self: 'v;

    fn name_version(&self, _: Node<'_>, _: &&[u8], _: bool) -> u64 {
        // One thread looks at all at one moment.
        0
    }

    fn is_locked(&self, _: Node<'_>, _: &&[u8]) -> bool {
        true
    }

    fn make(&self, directory: Node<'_>, object: NewObject<'_>, permissions: Permissions) -> Outcome<OpenNode, Self> {
        let mut state = self.change()?;
        let body = Call::body(directory.number, object);
        let made = self.file_system.object(body, permissions);
        let made = Object { links: 0, is_named: false, references: 1, ..made };
        Ok(OpenNode(state.add(made).ok_or(OperationError::NoSpace)?))
    }

    fn set_times_of_made(&self, node: Node<'_>, times: [i64; 3]) -> Answer<(), Self> {
        let mut state = self.change()?;
        let object = state.get_mut(node.number);
        [object.accessed_ns, object.modified_ns, object.changed_ns] = times;
        Ok(())
    }

    fn prepare<'p, 'v, 'n: 'p>(
        &'v self,
        changes: &'p [NameChange<'p, Node<'v>, &'n [u8]>],
        moment: Moment<'p, Node<'v>>,
        room: &'p mut [()],
    ) -> Result<PreparedChanges, OperationError<Unreachable>>
    where
        'v: 'p,
    {
        assert!(room.len() >= changes.len(), "there is room for each change");
        let number = |node: Option<Node<'_>>| node.map(|node| node.number);
        let changes: Vec<Change> = changes
            .iter()
            .map(|NameChange { directory, key, before, after }| Change {
                directory: directory.number,
                name: key.to_vec(),
                before: number(*before),
                after: number(*after),
            })
            .collect();
        self.ask()?.clone().change_names(&changes)?;
        Ok(PreparedChanges {
            now_ns: moment.now_ns as i64,
            touched: moment.touched.iter().map(|(node, touched)| (node.number, *touched)).collect(),
            names: changes,
            attributes: Vec::new(),
            files: Vec::new(),
            has_happened: false,
        })
    }

    fn prepare_attributes<'p, 'v>(
        &'v self,
        prepared: &mut PreparedChanges,
        changes: &[AttributeChanges<'_, Node<'v>>],
        room: &'p mut [()],
    ) -> Outcome<(), Self>
    where
        'v: 'p,
    {
        assert!(room.len() >= changes.len(), "there is room for each change");
        let mut state = self.ask()?.clone();
        for AttributeChanges { node, changes } in changes {
            self.change_attributes(&mut state, node.number, changes)?;
            prepared.attributes.push((node.number, changes.to_vec()));
        }
        Ok(())
    }

    fn open<'v>(&'v self, _: &mut PreparedChanges, _: Urgency) -> Call<'v> {
        Call { file_system: self.file_system, process: self.process }
    }

    fn decide(&self, prepared: &mut PreparedChanges) -> Answer<bool, Self> {
        let mut state = self.change()?;
        for (number, touched) in &prepared.touched {
            state.touch(*number, *touched, prepared.now_ns);
        }
        let done = state.change_names(&prepared.names);
        assert_eq!(done, Ok(()), "nothing else changes what is prepared");
        for (number, changes) in &prepared.attributes {
            let done = self.change_attributes(&mut state, *number, changes);
            assert_eq!(done, Ok(()), "nothing else changes what is prepared");
        }
        for changed in &prepared.files {
            let done = state.change_file(changed);
            assert_eq!(done, Ok(()), "nothing else changes what is prepared");
        }
        prepared.has_happened = true;
        Ok(true)
    }

    fn finish(&self, mut prepared: PreparedChanges, decision: Decision) -> Answer<(), Self> {
        if decision == Decision::Commit && !prepared.has_happened {
            self.decide(&mut prepared)?;
        }
        Ok(())
    }
}

impl DataChanges for Call<'_> {
    type FileRoom<'v>
        = ()
    where
        Self: 'v;
    type PageRoom<'v>
        = ()
    where
        Self: 'v;

    fn reserve_page(&self) -> Answer<Option<u64>, Self> {
        let mut state = self.change()?;
        let limit = state.limits.pages;
        Ok(State::take_pages(&mut state.used.pages, limit).then_some(0))
    }

    fn give_page_back(&self, _: u64) -> Answer<(), Self> {
        self.change()?.used.pages -= 1;
        Ok(())
    }

    fn pipe_room(&self, pipe: Node<'_>, at_most: usize) -> Answer<usize, Self> {
        Ok(self.change()?.pipe_mut(pipe.number).room().min(at_most))
    }

    type PipeLock<'v>
        = Number
    where
        Self: 'v;

    fn pipe_place(&self, pipe: Node<'_>) -> u64 {
        pipe.number
    }

    fn lock_pipe<'v>(&'v self, pipe: Node<'v>, _: usize) -> Outcome<Number, Self> {
        Ok(pipe.number)
    }

    fn finish_pipe(&self, pipe: Number, taken_bytes: usize, put: &[u8]) -> Answer<(), Self> {
        let mut state = self.change()?;
        let pipe = state.pipe_mut(pipe);
        let taken = pipe.read(&mut vec![0; taken_bytes]);
        let written = pipe.write(put);
        assert_eq!((taken, written), (taken_bytes, put.len()), "it was asked whether they are there, and room");
        Ok(())
    }

    fn identity(&self, description: Description<'_>) -> u64 {
        description.number
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedChanges,
        changes: &'p [FileChanges<'p, Node<'v>>],
        reserved: &ReservedPages<'_>,
        (room, _): (&'p mut [()], &'p mut [()]),
    ) -> Outcome<(), Self>
    where
        'v: 'p,
    {
        assert!(room.len() >= changes.len(), "there is room for each file");
        // What is written takes its space itself.
        while let Some(page) = reserved.take() {
            self.give_page_back(page)?;
        }
        let mut state = self.ask()?.clone();
        for change in changes {
            let changed = ChangedFile {
                number: change.file.number,
                cut_to: change.cut_to,
                writes: change.writes.iter().map(|write| (write.offset, write.bytes.to_vec())).collect(),
                size_bytes: change.size_bytes,
            };
            state.change_file(&changed)?;
            prepared.files.push(changed);
        }
        Ok(())
    }
}
