//! A directory that grows large is split over all domains, by the hashes of its names.
//!
//! Its home sends each other domain that domain's part in one or more messages and keeps its own. No one waits for them
//! to arrive: a domain that has not all of its part yet says that it has none
//! ([`Refusal::Elsewhere`](crate::wire::Refusal::Elsewhere)), and who asks tries again. Names are invalid nowhere, as
//! all who keep one are informed before.

use messages::DomainNumber;

use super::{Served, Server};
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::server::shard::Shard;
use crate::wire::{Bytes, Reply, Request};

/// Bytes of names that one message takes along, at most: it fits into a ring of 64 lines.
const MESSAGE_BYTES: usize = 2048;
/// Bytes that a name takes in addition to itself.
const NAME_BYTES: usize = 16;

impl Server {
    /// Lets a directory that is here and large, or that others change often, be split: now, or when all that is under way in it
    /// was decided.
    pub(super) fn split_if_large(&mut self, directory: ObjectNumber) {
        if self.is_to_be_split(directory) {
            self.outgoing.splits.push(directory);
        }
    }

    fn is_to_be_split(&mut self, directory: ObjectNumber) -> bool {
        let (count, limits) = (self.domain_count, self.limits);
        // A part of one that has ended would be lost.
        if count < 2 || !self.ended.is_empty() || self.is_split_here(directory) != Some(false) {
            return false;
        }
        let Some(shard) = self.shards.get_mut(&directory) else { return false };
        let is_due = shard.name_count() > limits.split_above || shard.changes_by_others > limits.split_after;
        // Once begun it is done, so that those who wait for it go on.
        if shard.is_closed || !is_due && !shard.is_draining {
            return false;
        }
        shard.is_draining = true;
        shard.is_quiet()
    }

    /// Splits a directory, if that is still due: who has found that a domain has ended has let it be.
    pub(crate) fn split(&mut self, directory: ObjectNumber) {
        if !self.is_to_be_split(directory) {
            return;
        }
        let (own, count) = (self.own, self.domain_count);
        if let Some(shard) = self.shards.get_mut(&directory) {
            shard.is_draining = false;
        }
        if let Some(it) = self.objects.get_mut(&directory).and_then(|object| object.directory_mut()) {
            it.is_split = true;
        }
        let mut parts: Vec<Vec<(Bytes, Target)>> = vec![Vec::new(); count];
        for name in self.shards.get(&directory).map(Shard::all_names).unwrap_or_default() {
            // All who keep it learn it, the one who asks too: it goes elsewhere, or can be lent.
            self.notify_readers(directory, &name, own);
            let domain = domain_of_name(name_hash(directory, &name), count);
            if domain == own {
                continue;
            }
            let Some(shard) = self.shards.get_mut(&directory) else { return };
            if let Some(target) = shard.entry(&name).and_then(|entry| entry.target) {
                shard.set(&name, None, 0);
                parts[domain.index()].push((Bytes(name.clone()), target));
            }
            shard.tidy(&name);
        }
        for (domain, names) in parts.into_iter().enumerate().filter(|(domain, _)| *domain != own.index()) {
            self.send_part(directory, DomainNumber(domain as u16), names);
        }
    }

    fn send_part(&mut self, directory: ObjectNumber, to: DomainNumber, names: Vec<(Bytes, Target)>) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (name, target) in names {
            bytes += name.0.len() + NAME_BYTES;
            if bytes > MESSAGE_BYTES && !batch.is_empty() {
                let names = std::mem::take(&mut batch);
                self.outgoing.posts.push((to, Request::TakePart { directory, names, is_last: false }));
                bytes = name.0.len() + NAME_BYTES;
            }
            batch.push((name, target));
        }
        self.outgoing.posts.push((to, Request::TakePart { directory, names: batch, is_last: true }));
    }

    pub(super) fn take_part(&mut self, directory: ObjectNumber, names: Vec<(Bytes, Target)>, is_last: bool) -> Served {
        let arrived = self.arriving.entry(directory).or_default();
        arrived.extend(names.into_iter().map(|(name, target)| (name.0, target)));
        if is_last {
            let mut shard = Shard::new(directory, self.domain_count);
            for (name, target) in self.arriving.remove(&directory).unwrap_or_default() {
                let stamp = self.next_stamp();
                shard.set(&name, Some(target), stamp);
            }
            self.shards.insert(directory, shard);
        }
        Ok(Reply::Done {})
    }
}
