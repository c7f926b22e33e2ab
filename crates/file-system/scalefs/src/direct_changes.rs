//! Many names that change at one moment in shared memory.
//!
//! In this order, so that no two who do this wait for each other: marks of directories that come to other parents, then
//! directories that go closed to new names, then all buckets by address, then counts, then permissions by address, and at
//! the decision times by address. What lies beyond the locks, a count that another operation has claimed, is not waited for
//! while anything of that kind is held.
//!
//! **Death of a process** in between: all objects are noted first, and the decision says what becomes of them. Beside what
//! the operations on one name can lose, an object that was made and not named stays.
#![allow(unsafe_code)]

use commit::Operation;
use hashdir::{InsertError, Killing, LockedName, LockedNames, NotEmpty, lock_all};
use maxima::Reset;
use percpu::{CoreLockGuard, OutOfMemory};
use posix_calls::{
    Answer, AttributeChange, AttributeChanges, Claim, Claimed, Decision, Errno, InodeNumber, Kind, Moment, NameChange,
    NameChanges, NewObject, Outcome, Permissions, Precedence, Touched, Urgency,
};
use refcache::Pending;
use sync::WaitReason;

use crate::claims::LOOKS;
use crate::direct::{Direct, OperationError};
use crate::file::{FileRoom, PageRoom};
use crate::host::{Host, Owning};
use crate::inode::{Inode, Named, stamp_of};
use crate::inode_ref::InodeRef;
use crate::instance::Stamp;
use crate::moves::MovedTogether;
use crate::node::{Node, OpenNode};

type Change<'p, 'v> = NameChange<'p, Node<'v>, hashdir::Key<'p>>;

/// Room for a change of a name; see [`NameChanges::prepare`].
pub type ChangeRoom<'v> = LockedName<'v, Beside<'v>>;

/// What is kept of a change beside its name.
#[derive(Default)]
pub struct Beside<'v> {
    /// Which of the changes.
    index: usize,
    /// The directory that comes to another parent with it, and that parent.
    moves: Option<(InodeRef, InodeRef)>,
    /// Bits of the directory that goes with it, or zero.
    goes: u64,
    /// Of the directory that moves.
    mark: Option<CoreLockGuard<'v>>,
    /// Of the directory that goes.
    killing: Option<Killing<'v>>,
    /// The object gets its first name by this.
    is_first: bool,
}

/// Room for changes of one object's attributes; see [`NameChanges::prepare_attributes`].
#[derive(Default)]
pub struct AttributeRoom<'v> {
    /// Which of the changes.
    index: usize,
    /// The object, once it is marked.
    node: Option<InodeRef>,
    modified_ns: Option<i64>,
    /// While it is decided: of the times, and that of the change before.
    reset: Option<(Reset<'v, 2>, u64)>,
}

/// Changes of names that are prepared; see [`NameChanges`].
#[must_use = "what is dropped does not happen"]
pub struct PreparedChanges<'p, 'v, H: Host> {
    direct: &'v Direct<'v, H>,
    changes: &'p [Change<'p, 'v>],
    moment: Moment<'p, Node<'v>>,
    names: LockedNames<'p, 'v, Beside<'v>>,
    attributes: &'p mut [AttributeRoom<'v>],
    files: &'p mut [FileRoom<'v>],
    pages: &'p mut [PageRoom<'v>],
    operation: Operation<'v>,
    /// Whether it has happened, once that is certain.
    decided: Option<bool>,
    is_over: bool,
}

/// Lets a directory take names: one without a name, which nobody else finds, does not.
fn set_takes_names(node: InodeRef, takes: bool) {
    if node.kind() == Kind::Directory {
        node.directory().names.take_names(takes);
    }
}

impl<'v> Beside<'v> {
    fn of(index: usize, changes: &[Change<'_, 'v>]) -> Result<Beside<'v>, OperationError> {
        let directory = |node: &Node<'_>| node.kind() == Kind::Directory;
        let change = &changes[index];
        let mut beside = Beside { index, ..Beside::default() };
        // A directory has one name; and no core waits for itself.
        let is_twice = |node: Option<Node<'v>>, of: fn(&Change<'_, 'v>) -> Option<Node<'v>>| {
            node.is_some_and(|node| directory(&node)) && changes[..index].iter().any(|other| of(other) == node)
        };
        if is_twice(change.before, |other| other.before) || is_twice(change.after, |other| other.after) {
            return Err(OperationError::Changed);
        }
        if let Some(before) = change.before.filter(directory)
            && !changes.iter().any(|other| other.after == Some(before))
        {
            beside.goes = before.at.to_bits();
        }
        if let Some(after) = change.after.filter(directory) {
            let from = match changes.iter().find(|other| other.before == Some(after)) {
                Some(other) => other.directory.at,
                // Nobody else finds it.
                None if !after.at.inode().header.is_named() => after.at.directory().place.unnamed_parent(),
                None => return Err(OperationError::Changed),
            };
            beside.moves = (from != change.directory.at).then_some((after.at, change.directory.at));
        }
        Ok(beside)
    }
}

impl MovedTogether for [ChangeRoom<'_>] {
    fn count(&self) -> usize {
        self.iter().filter(|place| place.beside.moves.is_some()).count()
    }

    fn parent_of(&self, directory: InodeRef) -> Option<InodeRef> {
        self.iter()
            .filter_map(|place| place.beside.moves)
            .find(|(node, _)| *node == directory)
            .map(|(_, parent)| parent)
    }
}

impl<'c, H: Host> Direct<'c, H> {
    /// Marks the directories that come to other parents, and closes those that go.
    fn mark_directories<'v>(
        &'v self,
        changes: &[Change<'_, 'v>],
        room: &mut [ChangeRoom<'v>],
    ) -> Result<(), OperationError> {
        for (index, place) in room.iter_mut().enumerate() {
            place.beside = Beside::of(index, changes)?;
        }
        let mut is_first = true;
        for index in 0..room.len() {
            let Some((node, parent)) = room[index].beside.moves else { continue };
            let mark = match is_first {
                true => self.begin_move(node, parent, &self.guard, &*room)?,
                false => match self.begin_another_move(node, parent, &self.guard, &*room) {
                    Ok(mark) => mark,
                    Err(refusal) => {
                        room.iter_mut().for_each(|place| place.beside.mark = None);
                        return Err(self.start_again(refusal));
                    }
                },
            };
            room[index].beside.mark = Some(mark);
            is_first = false;
        }
        room.sort_unstable_by_key(|place| place.beside.goes);
        for place in room.iter_mut().filter(|place| place.beside.goes != 0) {
            let names = &InodeRef::from_bits(place.beside.goes).directory().names;
            place.beside.killing =
                Some(names.begin_kill_with_names(&self.guard, self.host).map_err(|error| match error {
                    NotEmpty::HasNames => OperationError::NotEmpty,
                    NotEmpty::Dead => OperationError::Changed,
                })?);
        }
        Ok(())
    }
}

impl<'c, H: Host> NameChanges for Direct<'c, H> {
    type Room<'v>
        = ChangeRoom<'v>
    where
        Self: 'v;
    type Prepared<'p, 'v>
        = PreparedChanges<'p, 'v, H>
    where
        Self: 'v,
        'v: 'p;
    type AttributeRoom<'v>
        = AttributeRoom<'v>
    where
        Self: 'v;
    type Operation<'o> = &'o Operation<'o>;
    type Looks<'v>
        = Direct<'v, Owning<H>>
    where
        Self: 'v;

    fn claim(&self, claim: &Claim<'_>) -> Option<Claimed> {
        let claimed = self.fs.claims.make(claim, self.host.now_ns())?;
        // A call that has not seen the claim may change something yet. One that waits for another claim stays where it is.
        self.fs.epochs().wait_for_guards(self.core(), |round| {
            self.host.wait(WaitReason::Claim, round);
            round < LOOKS
        });
        Some(claimed)
    }

    fn end_claim(&self, claimed: Claimed) {
        self.fs.claims.end(claimed);
    }

    #[inline]
    fn heed_claims(&self, precedence: Precedence, concerns: &dyn Fn(InodeNumber) -> bool) {
        if self.fs.claims.are_made() {
            self.fs.claims.heed(Some(precedence), self.host, concerns);
        }
    }

    fn heed_no_claim(&self) {
        self.set_heeds_no_claim();
    }

    #[inline]
    fn name_version(&self, directory: Node<'_>, key: &hashdir::Key<'_>, with_value: bool) -> u64 {
        let names = self.names(directory.at);
        if with_value { names.value_version(&self.guard, key) } else { names.version(&self.guard, key) }
    }

    fn is_locked(&self, directory: Node<'_>, key: &hashdir::Key<'_>) -> bool {
        self.names(directory.at).is_locked(&self.guard, key)
    }

    fn make(&self, directory: Node<'_>, object: NewObject<'_>, permissions: Permissions) -> Outcome<OpenNode, Self> {
        let now_ns = self.host.now_ns();
        let made = self.fs.make(self.core(), object, permissions, directory.at, now_ns, Named::NotYet);
        let made = made.map_err(|OutOfMemory| OperationError::NoSpace)?;
        set_takes_names(made, false);
        Ok(OpenNode::new(self.fs, made))
    }

    fn set_times_of_made(&self, node: Node<'_>, [accessed, modified, changed]: [i64; 3]) -> Answer<(), Self> {
        let Inode { header, stamps, .. } = node.at.inode();
        header.set_accessed_of_made(accessed);
        stamps.set_unshared([stamp_of(modified), stamp_of(changed)]);
        Ok(())
    }

    fn prepare<'p, 'v, 'n: 'p>(
        &'v self,
        changes: &'p [NameChange<'p, Node<'v>, hashdir::Key<'n>>],
        moment: Moment<'p, Node<'v>>,
        room: &'p mut [ChangeRoom<'v>],
    ) -> Result<PreparedChanges<'p, 'v, H>, OperationError>
    where
        'v: 'p,
    {
        assert!(room.len() >= changes.len(), "there is room for each change");
        let room = &mut room[..changes.len()];
        self.working_on(&[]);
        let nodes = changes.iter().flat_map(|change| [Some(change.directory), change.before, change.after]);
        let nodes = nodes.flatten().map(|node| node.at.to_bits());
        if !sync::mutant::planted("scalefs: changes of many names are not noted") {
            self.fs.noted(self.core()).add(self.core(), nodes).map_err(|OutOfMemory| OperationError::NoSpace)?;
        }
        if let Err(refusal) = self.mark_directories(changes, room) {
            room.iter_mut().for_each(|place| place.beside = Beside::default());
            self.fs.noted(self.core()).forget(self.core());
            return Err(refusal);
        }
        let name = |beside: &Beside<'v>| {
            let change = &changes[beside.index];
            (&change.directory.at.directory().names, change.key)
        };
        let names = lock_all(&self.guard, room, name, self.host);
        let operation = self.fs.decisions().begin_firm(self.guard.core());
        self.fs.working_under(self.core(), operation.tag());
        let mut prepared = PreparedChanges {
            direct: self,
            changes,
            moment,
            names,
            attributes: &mut [],
            files: &mut [],
            pages: &mut [],
            operation,
            decided: None,
            is_over: false,
        };
        match prepared.prepare_all() {
            Ok(()) => Ok(prepared),
            Err(obstacle) => {
                let killed =
                    |directory: InodeRef| prepared.names.iter().any(|place| place.beside.goes == directory.to_bits());
                let obstacle = match obstacle {
                    Obstacle::Insertion(directory, InsertError::Killing) if killed(directory) => {
                        Obstacle::OperationError(OperationError::Dead)
                    }
                    other => other,
                };
                drop(prepared);
                Err(match obstacle {
                    Obstacle::OperationError(refusal) => refusal,
                    Obstacle::Insertion(directory, error) => self.operation_error(directory, error),
                })
            }
        }
    }

    fn prepare_attributes<'p, 'v>(
        &'v self,
        prepared: &mut PreparedChanges<'p, 'v, H>,
        changes: &[AttributeChanges<'_, Node<'v>>],
        room: &'p mut [AttributeRoom<'v>],
    ) -> Result<(), OperationError>
    where
        'v: 'p,
    {
        assert!(room.len() >= changes.len(), "there is room for each change");
        let nodes = changes.iter().map(|change| change.node.at.to_bits());
        self.fs.noted(self.core()).add_more(self.core(), nodes).map_err(|OutOfMemory| OperationError::NoSpace)?;
        prepared.attributes = &mut room[..changes.len()];
        // The objects by address, so that no two wait for each other.
        for (index, place) in prepared.attributes.iter_mut().enumerate() {
            place.index = index;
        }
        prepared.attributes.sort_unstable_by_key(|place| changes[place.index].node.at.to_bits());
        for place in prepared.attributes.iter_mut() {
            let change = &changes[place.index];
            place.modified_ns = self.mark_attributes(change)?;
            place.node = Some(change.node.at);
        }
        Ok(())
    }

    fn operation<'o>(&self, prepared: &'o PreparedChanges<'_, '_, H>) -> Option<&'o Operation<'o>> {
        Some(prepared.operation())
    }

    fn open<'v>(&'v self, prepared: &mut PreparedChanges<'_, 'v, H>, urgency: Urgency) -> Direct<'v, Owning<H>> {
        let Urgency { precedence, stance } = urgency;
        let stance = match stance {
            posix_calls::Stance::Yields => commit::Stance::Yields,
            posix_calls::Stance::Insists => commit::Stance::Insists,
        };
        prepared.operation.open(commit::Precedence(precedence.0), stance);
        Direct::new(self.fs, self.guard.core(), self.context, Owning::of(self.host))
    }

    fn decide(&self, prepared: &mut PreparedChanges<'_, '_, H>) -> Answer<bool, Self> {
        Ok(prepared.decide())
    }

    fn finish(&self, mut prepared: PreparedChanges<'_, '_, H>, decision: Decision) -> Answer<(), Self> {
        if sync::mutant::planted("scalefs: names change before it is decided") && decision == Decision::Commit {
            prepared.names.finish(true);
        }
        if decision == Decision::Commit && prepared.decided.is_none() {
            prepared.decide();
        }
        let happens = prepared.end();
        let (changes, moment) = (prepared.changes, prepared.moment);
        drop(prepared);
        if happens {
            // Without locks: whoever sees the time sees the change.
            for (node, touched) in moment.touched {
                let stamp = match touched {
                    Touched::Status => Stamp::Status,
                    Touched::Data => Stamp::Data,
                };
                self.fs.stamp(self.core(), node.at, stamp, moment.now_ns, self.host);
            }
            for change in changes.iter().filter(|change| change.before.is_none() && change.after.is_some()) {
                self.fs.note_growth(self.core(), change.directory.at);
            }
        }
        Ok(())
    }
}

/// Why not all can be prepared.
enum Obstacle {
    OperationError(OperationError),
    /// Of a name in this directory.
    Insertion(InodeRef, InsertError),
}

impl From<OperationError> for Obstacle {
    fn from(refusal: OperationError) -> Obstacle {
        Obstacle::OperationError(refusal)
    }
}

impl<'p, 'v, H: Host> PreparedChanges<'p, 'v, H> {
    /// The operation on which all depends: firm until it is decided.
    pub fn operation(&self) -> &Operation<'v> {
        &self.operation
    }

    /// Lets what is prepared in these rooms end with the rest.
    pub(crate) fn attach(
        &mut self,
        files: &'p mut [FileRoom<'v>],
        pages: &'p mut [PageRoom<'v>],
    ) -> (&mut [FileRoom<'v>], &mut [PageRoom<'v>]) {
        (self.files, self.pages) = (files, pages);
        (self.files, self.pages)
    }

    fn prepare_all(&mut self) -> Result<(), Obstacle> {
        let (direct, changes, tag) = (self.direct, self.changes, self.operation.tag());
        for place in self.names.iter_mut() {
            let change = &changes[place.beside.index];
            let found = place.value().map(InodeRef::from_bits);
            if found != change.before.map(|node| node.at) {
                return Err(
                    if change.before.is_none() { OperationError::Exists } else { OperationError::Changed }.into()
                );
            }
            if let Some((node, parent)) = place.beside.moves {
                node.directory().place.announce(parent, tag);
            }
            // Before anything waits for the decision in the core's cache of counts.
            let gets_first_name = |after: &Node<'_>| after.at.inode().header.get_first_name();
            if let Some(after) = change.after.filter(gets_first_name) {
                place.beside.is_first = true;
                direct.take_reference(after.at);
                set_takes_names(after.at, true);
            }
        }
        for place in self.names.iter_mut() {
            let change = &changes[place.beside.index];
            match (change.before, change.after) {
                (before, after) if before == after => {}
                (None, Some(after)) => place
                    .prepare_insert(change.key, after.at.to_bits(), tag)
                    .map_err(|error| Obstacle::Insertion(change.directory.at, error))?,
                (Some(_), None) => place.prepare_remove(tag),
                (Some(_), Some(after)) => place.prepare_replace(after.at.to_bits(), tag),
                (None, None) => {}
            }
        }
        let mut has_claimed = false;
        for place in self.names.iter() {
            let change = &changes[place.beside.index];
            if change.before == change.after {
                continue;
            }
            if let Some(before) = change.before {
                self.count(before.at, -1, &mut has_claimed)?;
            }
            if let Some(after) = change.after {
                self.count(after.at, 1, &mut has_claimed)?;
                let inode = after.at.inode();
                // SAFETY: it is not freed in the call in which it was found.
                let links = || unsafe { direct.fs.counts().exact(&inode.links, direct.host) };
                // What was found to have a name in this call is not forgotten before it ends, and then has this one.
                if !place.beside.is_first && inode.header.is_named() && links() == 0 && !self.is_first_name_of(after) {
                    return Err(OperationError::Changed.into());
                }
            }
        }
        let is_left = |killing: &Killing<'_>| killing.is_left_by(&direct.guard, tag, direct.host);
        if !self.names.iter().filter_map(|place| place.beside.killing.as_ref()).all(is_left) {
            return Err(OperationError::NotEmpty.into());
        }
        Ok(())
    }

    /// Whether an object without a name gets several.
    fn is_first_name_of(&self, node: Node<'_>) -> bool {
        self.names.iter().any(|place| place.beside.is_first && self.changes[place.beside.index].after == Some(node))
    }

    /// Lets a link count wait for the decision. Waits for another operation only while no count is claimed.
    fn count(&self, node: InodeRef, delta: i64, has_claimed: &mut bool) -> Result<(), OperationError> {
        let direct = self.direct;
        let (core, counts, links) = (direct.core(), direct.fs.counts(), &node.inode().links);
        let mut round = 0;
        loop {
            // SAFETY: the object was found in this call, or is kept by a handle; settled in `end`.
            match unsafe { counts.prepare_one_of_many(core, links, delta, self.operation.tag()) } {
                Ok(place) => {
                    *has_claimed |= place == Pending::InObject;
                    return Ok(());
                }
                Err(_) if *has_claimed => return Err(OperationError::Changed),
                Err(holder) => {
                    let holder = holder.core().map_or(0, |core| core.get() as u16);
                    direct.host.wait(WaitReason::Lock { holder }, round);
                    round = round.saturating_add(1);
                }
            }
        }
    }

    /// From now on who reads the times that are set waits for [`Self::end`]; we wait for nobody but those who do the same
    /// behind us.
    fn close_times(&mut self) {
        let direct = self.direct;
        for place in self.attributes.iter_mut().filter(|place| place.modified_ns.is_some()) {
            let node = place.node.expect("marked");
            let stamps = &node.inode().stamps;
            let (reset, [_, changed]) = direct.fs.stamps_of(node).reset(direct.core(), stamps, direct.host);
            place.reset = Some((reset, changed));
        }
    }

    /// Lets it happen, unless it was revoked; then false.
    fn decide(&mut self) -> bool {
        let is_late = sync::mutant::planted("scalefs: times that are set are closed after the decision");
        if !is_late {
            self.close_times();
        }
        let happens = self.operation.commit().is_ok();
        if is_late && happens {
            self.close_times();
        }
        if happens {
            self.decided = Some(true);
        } else {
            self.attributes.iter_mut().for_each(|place| place.reset = None);
        }
        happens
    }

    /// Replaces all marks by what has become of them; an operation that is not decided never happens. Returns whether it has.
    fn end(&mut self) -> bool {
        let happened = *self.decided.get_or_insert_with(|| {
            self.operation.abort();
            false
        });
        self.is_over = true;
        let now = stamp_of(self.moment.now_ns as i64);
        for place in self.attributes.iter_mut() {
            if let Some((reset, changed)) = place.reset.take()
                && let Some(modified_ns) = place.modified_ns.filter(|_| happened)
            {
                reset.finish([stamp_of(modified_ns), changed.max(now)]);
            }
            if let Some(node) = place.node {
                node.inode().header.end_mark(happened);
            }
        }
        let (direct, tag) = (self.direct, self.operation.tag());
        let core = direct.core();
        let mut from = 0;
        for place in self.files.iter_mut() {
            let end = from + place.page_count();
            place.finish(direct.access(), &mut self.pages[from..end], happened);
            from = end;
        }
        for change in self.changes {
            for node in [change.before, change.after].into_iter().flatten() {
                // SAFETY: found in this call, or kept by a handle, as when it was counted.
                unsafe { direct.fs.counts().settle_one_of_many(core, &node.at.inode().links, tag, happened) };
            }
        }
        self.names.finish(happened);
        for place in self.names.iter_mut() {
            let beside = core::mem::take(&mut place.beside);
            if let Some((node, parent)) = beside.moves.filter(|_| beside.mark.is_some()) {
                if happened {
                    direct.fs.end_move(core, node, parent);
                } else {
                    node.directory().place.withdraw();
                }
            }
            if let Some(killing) = beside.killing.filter(|_| happened) {
                killing.finish();
            }
            let after = self.changes[beside.index].after.filter(|_| beside.is_first);
            if let Some(after) = after.filter(|_| happened) {
                // SAFETY: kept by the handle of whoever has made it; what waited for the decision was settled above.
                unsafe { direct.fs.counts().apply_first(core, &after.at.inode().links) };
            }
            if let Some(after) = after.filter(|_| !happened) {
                set_takes_names(after.at, false);
                direct.drop_reference(after.at);
                after.at.inode().header.stay_unnamed();
            }
        }
        self.names.unlock();
        happened
    }
}

impl<H: Host> Drop for PreparedChanges<'_, '_, H> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
        }
        let core = self.direct.core();
        self.direct.fs.noted(core).forget(core);
    }
}

impl<H: Host> Direct<'_, H> {
    /// Marks what permissions and access time of an object are to be; returns the time of modification, if that changes.
    fn mark_attributes(
        &self,
        AttributeChanges { node, changes }: &AttributeChanges<'_, Node<'_>>,
    ) -> Result<Option<i64>, OperationError> {
        let (credentials, kind) = (self.caller(), node.kind());
        let mut modified_ns = None;
        let all = |permissions, accessed_ns| {
            changes.iter().try_fold((permissions, accessed_ns), |(permissions, accessed_ns), change| match *change {
                AttributeChange::Permissions(change) => Ok((change.of(credentials, kind, permissions)?, accessed_ns)),
                AttributeChange::Times(right, (accessed, modified)) => {
                    right.check(credentials, permissions)?;
                    modified_ns = modified.or(modified_ns);
                    Ok((permissions, accessed.unwrap_or(accessed_ns)))
                }
            })
        };
        let marked: Result<(), Errno> = node.at.inode().header.mark(self.core(), self.host, all);
        marked.map(|()| modified_ns).map_err(|_| OperationError::Changed)
    }
}
