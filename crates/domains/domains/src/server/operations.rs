//! Operations: parts that are done at once, or prepared and decided.

use messages::DomainNumber;
use sync::mutant::planted;

use super::object::Effect;
use super::{Place, Served, Server};
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Bytes, Obstacle, OperationNumber, Part, Refusal, Reply};

use super::shard::Mark;

impl Server {
    /// Lets what was committed of an object take effect.
    pub(super) fn settle_object(&mut self, number: ObjectNumber) {
        let now_ns = self.now_ns();
        let Some(object) = self.objects.get_mut(&number) else { return };
        if object.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut object.pending);
        let (done, open): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|(operation, _)| self.is_committed(*operation));
        let Some(object) = self.objects.get_mut(&number) else { return };
        object.pending = open;
        for (_, effect) in done {
            object.take_effect(effect, now_ns);
        }
        self.forget_unused(number, true);
    }

    /// Whether a part can be done.
    fn check(&mut self, part: &Part) -> Result<(), Refusal> {
        match part {
            Part::Insert { directory, name, .. } => self.check_insertion(*directory, &name.0),
            Part::Remove { directory, name, expected } | Part::Replace { directory, name, expected, .. } => {
                self.settle_name(*directory, &name.0);
                let shard = self.shard_of(*directory, &name.0)?;
                if shard.is_draining {
                    return Err(self.until_quiet(*directory));
                }
                let entry = shard.entry(&name.0).ok_or(Refusal::Changed)?;
                if let Some(Mark { operation, .. }) = entry.mark {
                    return Err(self.undecided(operation));
                }
                if let Some(operation) = entry.held_by.first().copied()
                    && !planted("domains: a name goes that a link rests on")
                {
                    return Err(self.undecided(operation));
                }
                let is_same = entry.target.is_some_and(|target| target.number == *expected);
                if is_same
                    || entry.target.is_some() && planted("domains: a name is not looked at again when it changes")
                {
                    Ok(())
                } else {
                    Err(Refusal::Changed)
                }
            }
            Part::Hold { directory, name, stamp } => {
                self.settle_name(*directory, &name.0);
                let shard = self.shard_of(*directory, &name.0)?;
                if shard.is_draining {
                    return Err(self.until_quiet(*directory));
                }
                let entry = shard.entry(&name.0).ok_or(Refusal::Changed)?;
                match entry.mark {
                    Some(Mark { operation, .. }) => Err(self.undecided(operation)),
                    None if entry.target.is_some() && entry.stamp == *stamp => Ok(()),
                    None if planted("domains: a link does not look at its source again") => Ok(()),
                    None => Err(Refusal::Changed),
                }
            }
            Part::AddLink { object } | Part::DropLink { object } | Part::Touch { object } => self.check_object(*object),
            Part::Move { directory, .. } | Part::Keep { directory } => self.check_object(*directory),
            Part::Close { directory, is_split } => self.check_closing(*directory, *is_split),
        }
    }

    fn check_object(&mut self, number: ObjectNumber) -> Result<(), Refusal> {
        self.settle_object(number);
        if self.objects.contains_key(&number) { Ok(()) } else { Err(Refusal::Changed) }
    }

    fn check_closing(&mut self, directory: ObjectNumber, is_split: bool) -> Result<(), Refusal> {
        self.settle_closing(directory);
        self.claim_all(directory)?;
        let marked = self.shards.get(&directory).ok_or(Refusal::Elsewhere)?.marked_names();
        for name in marked {
            self.settle_name(directory, &name);
        }
        if self.is_split_here(directory).is_some_and(|here| here != is_split) {
            return Err(Refusal::Elsewhere);
        }
        let shard = self.shards.get(&directory).ok_or(Refusal::Elsewhere)?;
        if shard.is_closed {
            Err(Refusal::Changed)
        } else if shard.closing.is_some() || shard.is_draining {
            Err(self.until_quiet(directory))
        } else if shard.name_count() > 0 && !planted("domains: a directory goes with its names") {
            Err(Refusal::NotEmpty)
        } else if shard.marked > 0 && !planted("domains: a directory goes while a name is made in it") {
            Err(self.until_quiet(directory))
        } else {
            Ok(())
        }
    }

    pub(super) fn apply(&mut self, from: DomainNumber, parts: Vec<Part>, borrows: bool) -> Served {
        for part in &parts {
            self.check(part)?;
        }
        if borrows
            && let [Part::Insert { directory, name, target }] = &parts[..]
            && let Some(lent) = self.lend(from, (*directory, &name.0), *target)
        {
            return Ok(lent);
        }
        let (mut stamps, is_one) = (Vec::new(), parts.len() == 1);
        for part in parts {
            match self.apply_part(from, part) {
                reply if is_one => return Ok(reply),
                Reply::Name { stamp, may_keep, .. } => stamps.push(if may_keep { stamp } else { 0 }),
                _ => {}
            }
        }
        Ok(Reply::Stamps { stamps })
    }

    fn apply_part(&mut self, from: DomainNumber, part: Part) -> Reply {
        match part {
            Part::Insert { directory, name: Bytes(name), target } => {
                let reply = self.set_name(from, directory, &name, Some(target));
                self.split_if_large(directory);
                return reply;
            }
            Part::Replace { directory, name: Bytes(name), target, .. } => {
                return self.set_name(from, directory, &name, Some(target));
            }
            Part::Remove { directory, name: Bytes(name), .. } => {
                return self.set_name(from, directory, &name, None);
            }
            Part::Hold { .. } => {}
            Part::AddLink { object } => self.take_effect(object, Effect::AddLink),
            Part::DropLink { object } => self.take_effect(object, Effect::DropLink),
            Part::Touch { object } => self.take_effect(object, Effect::Touch),
            Part::Move { directory, parent } => {
                self.notify_readers_of_directory(directory, from);
                self.take_effect(directory, Effect::Move(parent));
            }
            Part::Keep { directory } => self.take_effect(directory, Effect::Keep),
            Part::Close { directory, .. } => {
                self.notify_readers_of_directory(directory, from);
                self.close(directory);
            }
        }
        Reply::Done {}
    }

    fn take_effect(&mut self, number: ObjectNumber, effect: Effect) {
        let now_ns = self.now_ns();
        if let Some(object) = self.objects.get_mut(&number) {
            object.take_effect(effect, now_ns);
            self.forget_unused(number, true);
        }
    }

    pub(super) fn prepare(&mut self, from: DomainNumber, operation: OperationNumber, parts: Vec<Part>) -> Served {
        if operation.coordinator != from {
            return Err(Refusal::Garbled);
        }
        for part in &parts {
            self.check(part)?;
        }
        let stamps = parts.into_iter().filter_map(|part| self.mark(from, operation, part)).collect();
        Ok(Reply::Stamps { stamps })
    }

    /// Leaves the mark of a part; the stamp of a name that changes.
    fn mark(&mut self, from: DomainNumber, operation: OperationNumber, part: Part) -> Option<u64> {
        let mut stamp = None;
        let place = match part {
            Part::Insert { directory, name, target } | Part::Replace { directory, name, target, .. } => {
                stamp = Some(self.mark_name(from, operation, (directory, &name.0), Some(target)));
                Place::Name(directory, name.0)
            }
            Part::Remove { directory, name, .. } => {
                stamp = Some(self.mark_name(from, operation, (directory, &name.0), None));
                Place::Name(directory, name.0)
            }
            Part::Hold { directory, name, .. } => {
                if let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(&name.0)) {
                    entry.held_by.push(operation);
                }
                Place::Held(directory, name.0)
            }
            Part::AddLink { object } => self.mark_object(operation, object, Effect::AddLink),
            Part::DropLink { object } => self.mark_object(operation, object, Effect::DropLink),
            Part::Touch { object } => self.mark_object(operation, object, Effect::Touch),
            Part::Move { directory, parent } => {
                self.notify_readers_of_directory(directory, from);
                self.mark_object(operation, directory, Effect::Move(parent))
            }
            Part::Keep { directory } => self.mark_object(operation, directory, Effect::Keep),
            Part::Close { directory, .. } => {
                self.notify_readers_of_directory(directory, from);
                if let Some(shard) = self.shards.get_mut(&directory) {
                    shard.closing = Some(operation);
                }
                Place::Closing(directory)
            }
        };
        self.places_of(operation).push(place);
        stamp
    }

    fn mark_name(
        &mut self,
        from: DomainNumber,
        operation: OperationNumber,
        (directory, name): (ObjectNumber, &[u8]),
        after: Option<Target>,
    ) -> u64 {
        // From now on no one keeps it, so no one need be informed when it is decided; but who decides knows, and is
        // informed of what comes later.
        self.notify_readers(directory, name, from);
        let (at_ns, own, stamp) = (self.now_ns(), self.own, self.next_stamp());
        let mut may_keep = false;
        if let Some(shard) = self.shards.get_mut(&directory) {
            may_keep = from != own && (after.is_some() || shard.may_note_absence());
            let entry = shard.entry_or_absent(name, 0);
            entry.mark = Some(Mark { operation, after, at_ns, stamp });
            if may_keep {
                entry.readers.add(from);
            }
            shard.marked += 1;
            shard.changes_by_others += u64::from(from != own);
        }
        if may_keep { stamp } else { 0 }
    }

    fn mark_object(&mut self, operation: OperationNumber, number: ObjectNumber, effect: Effect) -> Place {
        if let Some(object) = self.objects.get_mut(&number) {
            object.pending.push((operation, effect));
        }
        Place::Object(number)
    }

    pub(super) fn decide(&mut self, from: DomainNumber, operation: OperationNumber, commit: bool) -> Served {
        if operation.coordinator != from {
            return Err(Refusal::Garbled);
        }
        for place in self.marks.remove(&operation).unwrap_or_default() {
            let directory = match &place {
                Place::Name(directory, _) | Place::Held(directory, _) | Place::Closing(directory) => Some(*directory),
                Place::Object(_) => None,
            };
            match place {
                Place::Name(directory, name) => {
                    self.decide_name(operation, (directory, &name), commit);
                    self.answer_recall(directory, &name);
                }
                Place::Held(directory, name) => {
                    if let Some(shard) = self.shards.get_mut(&directory) {
                        if let Some(entry) = shard.entry(&name) {
                            entry.held_by.retain(|other| *other != operation);
                        }
                        shard.tidy(&name);
                    }
                    self.answer_recall(directory, &name);
                }
                Place::Object(number) => self.decide_object(operation, number, commit),
                Place::Closing(directory) => {
                    if let Some(shard) = self.shards.get_mut(&directory)
                        && shard.closing == Some(operation)
                    {
                        shard.closing = None;
                        if commit {
                            self.close(directory);
                        }
                    }
                }
            }
            if let Some(directory) = directory {
                self.split_if_large(directory);
            }
        }
        Ok(Reply::Done {})
    }

    fn decide_name(&mut self, operation: OperationNumber, (directory, name): (ObjectNumber, &[u8]), commit: bool) {
        let mark = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)?.mark);
        if let Some(mark) = mark.filter(|mark| mark.operation == operation) {
            self.unmark_name(directory, name, commit, mark.at_ns);
        }
    }

    fn decide_object(&mut self, operation: OperationNumber, number: ObjectNumber, commit: bool) {
        let now_ns = self.now_ns();
        let Some(object) = self.objects.get_mut(&number) else { return };
        let (mine, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut object.pending).into_iter().partition(|(other, _)| *other == operation);
        object.pending = others;
        for (_, effect) in mine {
            if commit {
                object.take_effect(effect, now_ns);
            }
        }
        self.forget_unused(number, true);
    }

    pub(super) fn take_moves(&mut self, from: DomainNumber) -> Served {
        match self.mover {
            Some(by) if by != from && !planted("domains: two move directories at a time") => {
                Err(self.busy(Obstacle::Moves { by }))
            }
            _ => {
                self.mover = Some(from);
                Ok(Reply::Done {})
            }
        }
    }

    pub(super) fn give_moves(&mut self, from: DomainNumber) -> Served {
        if self.mover == Some(from) {
            self.mover = None;
        }
        Ok(Reply::Done {})
    }
}
