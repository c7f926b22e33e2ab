//! Names: looked up, made, listed.

use messages::DomainNumber;
use sync::mutant::planted;

use super::{NewParts, Place, Served, Server};
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Bytes, Listed, NoticeKind, Refusal, Reply};

/// Bytes that a name in a listing takes in addition to itself, at most.
const LISTED_BYTES: usize = 24;

impl Server {
    /// Lets what was committed of a name take effect.
    pub(super) fn settle_name(&mut self, directory: ObjectNumber, name: &[u8]) {
        let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)) else { return };
        let mark = entry.mark;
        if !entry.held_by.is_empty() {
            let mut held_by = std::mem::take(&mut entry.held_by);
            held_by.retain(|operation| !self.is_committed(*operation));
            if let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)) {
                entry.held_by = held_by;
            }
        }
        let Some(mark) = mark else { return };
        if self.is_committed(mark.operation) && !planted("domains: a mark is not looked up where it is decided") {
            self.unmark_name(directory, name, true, mark.at_ns);
        }
    }

    /// Takes a mark away from a name, with or without effect.
    pub(super) fn unmark_name(&mut self, directory: ObjectNumber, name: &[u8], commit: bool, at_ns: i64) {
        let Some(shard) = self.shards.get_mut(&directory) else { return };
        let Some(mark) = shard.entry(name).and_then(|entry| entry.mark.take()) else { return };
        shard.marked -= 1;
        if commit {
            shard.set(name, mark.after, mark.stamp);
            self.note_change_of_names(directory, at_ns);
        }
        if let Some(shard) = self.shards.get_mut(&directory) {
            shard.tidy(name);
        }
    }

    /// A directory's names have changed: its times, where it is at home.
    pub(super) fn note_change_of_names(&mut self, directory: ObjectNumber, at_ns: i64) {
        if let Some(object) = self.objects.get_mut(&directory) {
            (object.modified_ns, object.changed_ns) = (at_ns, at_ns);
        }
    }

    /// Lets those know who keep what a name leads to, but the one who changes it and knows.
    pub(super) fn notify_readers(&mut self, directory: ObjectNumber, name: &[u8], changer: DomainNumber) {
        if planted("domains: who keeps a name hears of no change") {
            return;
        }
        let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)) else { return };
        for reader in entry.readers.take().filter(|reader| *reader != changer) {
            let notice = NoticeKind::Name { directory, name: Bytes(name.to_vec()) };
            self.outgoing.notices.push((reader, notice));
        }
    }

    pub(super) fn look_up(
        &mut self,
        from: DomainNumber,
        (directory, name): (ObjectNumber, &[u8]),
        keeps: bool,
        borrows: bool,
    ) -> Served {
        self.settle_name(directory, name);
        let own = self.own;
        let shard = self.shard_of(directory, name)?;
        let keeps = keeps && from != own;
        let may_note_absence = shard.may_note_absence() && !shard.is_closed;
        match shard.entry(name) {
            Some(entry) => {
                let nobody_else = entry.is_quiet() && entry.readers.has_nobody_but(from);
                if let Some(target) = entry.target.filter(|target| target.number.home() == from)
                    && borrows
                    && nobody_else
                    && let Some(lent) = self.lend(from, (directory, name), target)
                {
                    return Ok(lent);
                }
                let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)) else {
                    return Err(Refusal::Elsewhere);
                };
                let may_keep = keeps && (entry.mark.is_none() || planted("domains: a name is kept while it changes"));
                if may_keep {
                    entry.readers.add(from);
                }
                Ok(Reply::Name { target: entry.target, stamp: entry.stamp, may_keep })
            }
            None => {
                let may_keep = keeps && may_note_absence;
                if may_keep {
                    shard.entry_or_absent(name, 0).readers.add(from);
                }
                Ok(Reply::Name { target: None, stamp: 0, may_keep })
            }
        }
    }

    /// Whether a name can be made.
    pub(super) fn check_insertion(&mut self, directory: ObjectNumber, name: &[u8]) -> Result<(), Refusal> {
        self.settle_closing(directory);
        self.settle_name(directory, name);
        let shard = self.shard_of(directory, name)?;
        if shard.is_closed {
            return Err(Refusal::Dead);
        }
        if let Some(operation) = shard.closing
            && !planted("domains: names are made in a directory that is being removed")
        {
            return Err(self.undecided(operation));
        }
        if shard.is_draining {
            return Err(self.until_quiet(directory));
        }
        match shard.entry(name).map(|entry| (entry.mark, entry.target)) {
            Some((Some(mark), _)) => Err(self.undecided(mark.operation)),
            Some((None, Some(_))) => Err(Refusal::Exists),
            _ => Ok(()),
        }
    }

    /// Lets a name lead elsewhere, at once. The changer may keep what it leads to now.
    pub(super) fn set_name(
        &mut self,
        changer: DomainNumber,
        directory: ObjectNumber,
        name: &[u8],
        target: Option<Target>,
    ) -> Reply {
        self.notify_readers(directory, name, changer);
        let stamp = self.next_stamp();
        let now_ns = self.now_ns();
        let own = self.own;
        let mut may_keep = false;
        if let Some(shard) = self.shards.get_mut(&directory) {
            shard.set(name, target, stamp);
            shard.changes_by_others += u64::from(changer != own);
            if changer != own && (target.is_some() || shard.may_note_absence()) {
                may_keep = true;
                shard.entry_or_absent(name, stamp).readers.add(changer);
            }
            shard.tidy(name);
        }
        self.note_change_of_names(directory, now_ns);
        Reply::Name { target, stamp, may_keep }
    }

    pub(super) fn create(
        &mut self,
        from: DomainNumber,
        directory: ObjectNumber,
        name: &[u8],
        parts: NewParts,
        retain: bool,
    ) -> Served {
        self.check_insertion(directory, name)?;
        let made = self.make(directory, parts).ok_or(Refusal::NoSpace)?;
        if retain && let Some(object) = self.objects.get_mut(&made.number) {
            object.references += 1;
        }
        let reply = self.set_name(from, directory, name, Some(made));
        self.split_if_large(directory);
        Ok(reply)
    }

    pub(super) fn list(&mut self, directory: ObjectNumber, from: u64, most_bytes: u32, is_split: bool) -> Served {
        if self.is_split_here(directory).is_some_and(|here| here != is_split) {
            return Err(Refusal::Elsewhere);
        }
        let marked = self.shards.get(&directory).ok_or(Refusal::Elsewhere)?.marked_names();
        for name in marked {
            self.settle_name(directory, &name);
        }
        let shard = self.shards.get(&directory).ok_or(Refusal::Elsewhere)?;
        let (mut names, mut bytes) = (Vec::new(), 0);
        for (cookie, name, state) in shard.list(from) {
            bytes += name.len() + LISTED_BYTES;
            if bytes > most_bytes as usize && !names.is_empty() {
                return Ok(Reply::Names { names, has_more: true });
            }
            names.push(Listed { name: Bytes(name.to_vec()), state, cookie });
        }
        Ok(Reply::Names { names, has_more: false })
    }

    /// Lets the end of a directory take effect if it was committed.
    pub(super) fn settle_closing(&mut self, directory: ObjectNumber) {
        let closing = self.shards.get(&directory).and_then(|shard| shard.closing);
        if closing.is_some_and(|operation| self.is_committed(operation)) {
            self.close(directory);
        }
    }

    /// A directory, or its part here, takes no names any more. Its home forgets it when nothing keeps it.
    pub(super) fn close(&mut self, directory: ObjectNumber) {
        let now_ns = self.now_ns();
        if let Some(shard) = self.shards.get_mut(&directory) {
            (shard.closing, shard.is_closed) = (None, true);
        }
        match self.objects.get_mut(&directory) {
            Some(object) => {
                (object.links, object.changed_ns) = (0, now_ns);
                self.forget_unused(directory, true);
            }
            None => {
                self.shards.remove(&directory);
            }
        }
    }

    pub(super) fn places_of(&mut self, operation: crate::wire::OperationNumber) -> &mut Vec<Place> {
        self.marks.entry(operation).or_default()
    }
}
