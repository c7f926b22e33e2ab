//! Names of split directories that are lent to who owns what they lead to.
//!
//! ```text
//! owner by hash        own ── it makes or looks up the name ─► lent ── another asks ─► recalled ── given back ─► own
//! owner of the object       ─► borrowed: it decides on the name, without a message ──► gives it back
//! ```
//! Whoever asks for a name that is lent is refused as "busy" until it has come back; what is under way with it is decided first.
//! A listing has what both say of such a name, and is made again where the name is on its way. A directory is not closed
//! before all its names have come back.

use messages::DomainNumber;
use sync::mutant::planted;

use super::shard::Authority;
use super::{Served, Server};
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::wire::{Bytes, Refusal, Reply, Request};

impl Server {
    fn hash_owner(&self, directory: ObjectNumber, name: &[u8]) -> DomainNumber {
        domain_of_name(name_hash(directory, name), self.domain_count)
    }

    fn authority(&self, directory: ObjectNumber, name: &[u8]) -> Authority {
        self.shards.get(&directory).and_then(|shard| shard.peek(name)).map_or(Authority::Own, |entry| entry.authority)
    }

    /// Whether this domain decides on a name that another has lent it, and was not asked for it yet.
    pub(crate) fn has_borrowed(&self, directory: ObjectNumber, name: &[u8]) -> bool {
        matches!(self.authority(directory, name), Authority::Borrowed { .. })
    }

    /// Asks for a name back that is lent; until it comes, whoever wants it is refused.
    pub(super) fn claim(&mut self, directory: ObjectNumber, name: &[u8]) -> Result<(), Refusal> {
        let Authority::Lent { to, is_recalled } = self.authority(directory, name) else { return Ok(()) };
        if !is_recalled {
            if let Some(entry) = self.shards.get_mut(&directory).and_then(|shard| shard.entry(name)) {
                entry.authority = Authority::Lent { to, is_recalled: true };
            }
            self.outgoing.posts.push((to, Request::Recall { directory, name: Bytes(name.to_vec()) }));
        }
        if planted("domains: a name that is lent is looked up as it was") { Ok(()) } else { Err(Refusal::Busy) }
    }

    /// Lends a name of a split directory to a domain that owns, or makes, what it leads to. Nobody else keeps it, and nothing is
    /// under way with it.
    pub(super) fn lend(
        &mut self,
        to: DomainNumber,
        (directory, name): (ObjectNumber, &[u8]),
        target: Target,
    ) -> Option<Reply> {
        let is_split = self.is_split_here(directory).unwrap_or(directory.home() != self.own);
        let shard = self.shards.get_mut(&directory)?;
        let may_lend =
            is_split && to != self.own && shard.may_note_absence() && !shard.is_closed && shard.closing.is_none();
        // What is borrowed is not lent again.
        if !may_lend || shard.peek(name).is_some_and(|entry| entry.authority != Authority::Own) {
            return None;
        }
        let is_there = shard.peek(name).filter(|entry| entry.target.is_some()).map(|entry| entry.stamp);
        self.notify_readers(directory, name, to);
        let stamp = match is_there {
            Some(stamp) => stamp,
            None => {
                let now_ns = self.now_ns();
                self.note_change_of_names(directory, now_ns);
                self.next_stamp()
            }
        };
        let shard = self.shards.get_mut(&directory)?;
        shard.put(name, (None, stamp), Authority::Lent { to, is_recalled: false });
        Some(Reply::Lent { target, stamp })
    }

    /// This domain has borrowed a name. It gives it back at once if it has no names of the directory yet, or too
    /// many that lead to nothing.
    pub(crate) fn borrow(&mut self, directory: ObjectNumber, name: &[u8], target: Target, stamp: u64) {
        match self.shards.get_mut(&directory) {
            Some(shard) if shard.may_note_absence() => {
                shard.put(name, (Some(target), stamp), Authority::Borrowed { is_recalled: false });
            }
            _ => self.post_back(directory, name, (Some(target), stamp)),
        }
    }

    fn post_back(&mut self, directory: ObjectNumber, name: &[u8], (target, stamp): (Option<Target>, u64)) {
        let request = Request::GiveBack { directory, name: Bytes(name.to_vec()), target, stamp };
        self.outgoing.posts.push((self.hash_owner(directory, name), request));
    }

    /// Gives a name back that was borrowed, now or when what is under way with it is decided.
    pub(crate) fn give_back(&mut self, directory: ObjectNumber, name: &[u8]) {
        if !self.has_borrowed(directory, name) {
            return;
        }
        let Some(shard) = self.shards.get_mut(&directory) else { return };
        let Some(entry) = shard.entry(name) else { return };
        if !entry.is_quiet() {
            entry.authority = Authority::Borrowed { is_recalled: true };
            return;
        }
        let state = (entry.target, entry.stamp);
        // Who does not know that the directory is split may have asked here.
        self.notify_readers(directory, name, self.own);
        let Some(shard) = self.shards.get_mut(&directory) else { return };
        shard.put(name, (None, state.1), Authority::Own);
        shard.tidy(name);
        self.post_back(directory, name, state);
    }

    /// What was under way with a name was decided.
    pub(super) fn answer_recall(&mut self, directory: ObjectNumber, name: &[u8]) {
        if self.authority(directory, name) == (Authority::Borrowed { is_recalled: true }) {
            self.give_back(directory, name);
        }
    }

    pub(super) fn recall(&mut self, from: DomainNumber, directory: ObjectNumber, name: &[u8]) -> Served {
        if self.hash_owner(directory, name) == from {
            self.give_back(directory, name);
        }
        Ok(Reply::Done {})
    }

    pub(super) fn take_name_back(
        &mut self,
        from: DomainNumber,
        directory: ObjectNumber,
        name: &[u8],
        state: (Option<Target>, u64),
    ) -> Served {
        match self.authority(directory, name) {
            Authority::Lent { to, .. } if to == from => {
                let shard = self.shards.get_mut(&directory).ok_or(Refusal::Stale)?;
                shard.put(name, state, Authority::Own);
                shard.tidy(name);
                Ok(Reply::Done {})
            }
            _ => Err(Refusal::Garbled),
        }
    }

    /// Asks for all names of a directory back; refused while some are lent.
    pub(super) fn claim_all(&mut self, directory: ObjectNumber) -> Result<(), Refusal> {
        let lent = self.shards.get(&directory).ok_or(Refusal::Elsewhere)?.lent_names();
        if planted("domains: a directory is closed while names of it are lent") {
            return Ok(());
        }
        lent.iter().map(|name| self.claim(directory, name)).fold(Ok(()), Result::and)
    }
}
