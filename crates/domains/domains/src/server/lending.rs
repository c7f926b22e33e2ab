//! Names of split directories that are lent to who owns what they lead to.
//!
//! ```text
//! owner by hash        own ── it makes or looks up the name ─► lent ── another asks ─► recalled ── given back ─► own
//! owner of the object       ─► borrowed: it decides on the name, without a message ──► gives it back
//! ```
//! One that asks for a name that is lent is refused as "busy" until it has come back; what is under way with it is
//! decided first. A listing has what both say of such a name, and is made again where the name is on its way. A
//! directory is not closed before all its names have come back.

use messages::DomainNumber;
use sync::mutant::planted;

use super::shard::Authority;
use super::{Served, Server};
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::wire::{Bytes, Obstacle, Refusal, Reply, Request};

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

    /// Asks for a name back that is lent; until it comes, one that wants it is refused, and it is asked for again: who
    /// borrows a name can be asked for it before he has read the answer that lends it, and then does not know what is
    /// meant.
    pub(super) fn claim(&mut self, directory: ObjectNumber, name: &[u8]) -> Result<(), Refusal> {
        let Authority::Lent { to } = self.authority(directory, name) else { return Ok(()) };
        self.outgoing.posts.push((to, Request::Recall { directory, name: Bytes(name.to_vec()) }));
        if planted("domains: a name that is lent is looked up as it was") {
            return Ok(());
        }
        // What one that has ended has made of it, no one knows.
        if self.ended.contains(&to) { Err(Refusal::Garbled) } else { Err(self.busy(Obstacle::Lent { to })) }
    }

    /// Lends a name of a split directory to a domain that owns, or makes, what it leads to. No one else keeps it, and
    /// nothing is under way with it.
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
        shard.put(name, (None, stamp), Authority::Lent { to });
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use posix_calls::Kind;

    use super::super::Limits;
    use super::super::shard::Shard;
    use super::*;
    use crate::decisions::OwnLines;

    /// What goes out to a domain is served there.
    fn deliver(from: &mut Server, to: &mut Server) {
        for (number, request) in std::mem::take(&mut from.outgoing.posts) {
            assert_eq!(number, to.own);
            to.serve(from.own, request);
        }
    }

    /// The owner lends a name and recalls it, and the borrower looks for replies, then for requests: both came in between.
    #[test]
    fn a_name_that_is_recalled_before_it_is_known_to_be_lent_comes_back() {
        let [mut owner, mut borrower] = [0, 1]
            .map(|number| Server::new(DomainNumber(number), 2, Rc::new(OwnLines::new(2)), || 0, Limits::default()));
        // Of a directory that domain 1 has split.
        let directory = ObjectNumber::new(DomainNumber(1), 5);
        owner.shards.insert(directory, Shard::new(directory, 2));
        borrower.shards.insert(directory, Shard::new(directory, 2));
        let names = (0..100_u8).map(|number| vec![number]);
        let name = names.into_iter().find(|name| owner.hash_owner(directory, name) == owner.own).unwrap();
        let target = Target { number: ObjectNumber::new(DomainNumber(1), 6), kind: Kind::Regular };
        let Some(Reply::Lent { stamp, .. }) = owner.lend(DomainNumber(1), (directory, &name), target) else {
            panic!("it is lent");
        };
        assert_eq!(owner.claim(directory, &name), Err(Refusal::Busy));
        deliver(&mut owner, &mut borrower);
        borrower.borrow(directory, &name, target, stamp);
        let look_up = Request::LookUp { directory, name: Bytes(name.clone()), keeps: false, borrows: false };
        let busy = Reply::Refused { why: Refusal::Busy };
        assert_eq!(owner.serve(owner.own, look_up), busy);
        let in_the_way = Reply::InTheWay { obstacle: Some(Obstacle::Lent { to: borrower.own }) };
        for _ in 0..2 {
            assert_eq!(owner.serve(owner.own, Request::InTheWay {}), in_the_way, "asking changes nothing");
        }
        // A request that is answered was in no one's way.
        let list = Request::List { directory, from: 0, most_bytes: 4096, is_split: true };
        assert!(matches!(owner.serve(owner.own, list), Reply::Names { .. }));
        assert_eq!(owner.serve(owner.own, Request::InTheWay {}), Reply::InTheWay { obstacle: None });
        deliver(&mut owner, &mut borrower);
        deliver(&mut borrower, &mut owner);
        assert_eq!(owner.claim(directory, &name), Ok(()));
    }
}
