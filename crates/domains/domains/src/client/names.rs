//! What names lead to: asked, and kept.

use messages::{DomainNumber, Step, Transport};
use sync::mutant::planted;

use super::cache::KnownName;
use super::domain::Domain;
use super::waits::Wait;
use crate::identity::{ObjectNumber, Target, domain_of_name, name_hash};
use crate::wire::{Bytes, Refusal, Reply, Request};

/// What was learned of a directory whose names are not where they were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It was removed.
    Removed,
    /// It is split, which was not known.
    Split,
    /// Nothing new: its names are on their way.
    Nothing,
    /// Its home says nothing any more.
    Lost,
}

impl<T: Transport> Domain<T> {
    /// Who has a name, as far as is known here.
    pub(super) fn owner_of_name(&self, directory: ObjectNumber, name: &[u8]) -> DomainNumber {
        if !self.cache.borrow().is_split(directory) {
            directory.home()
        } else if self.has_borrowed(directory, name) {
            self.own()
        } else {
            domain_of_name(name_hash(directory, name), self.domain_count())
        }
    }

    /// Asks a directory's home where its names are.
    pub(super) fn learn(&self, directory: ObjectNumber) -> Learned {
        match self.ask(directory.home(), Request::State { directory, keeps: false }) {
            Reply::State { is_removed: true, .. } | Reply::Refused { why: Refusal::Stale } => Learned::Removed,
            Reply::State { is_split: true, .. } if self.cache.borrow_mut().keep_split(directory) => Learned::Split,
            Reply::Refused { why: Refusal::Garbled } => Learned::Lost,
            _ => Learned::Nothing,
        }
    }

    /// What a name leads to, and since which stamp.
    pub(super) fn look_up(&self, directory: ObjectNumber, name: &[u8]) -> Result<(Option<Target>, u64), Refusal> {
        let (keeps, borrows) = (self.techniques.get().caches, self.techniques.get().lending);
        let mut wait = Wait::default();
        loop {
            if let Some(known) = self.known(directory, name) {
                return Ok((known.target, known.stamp));
            }
            let owner = self.owner_of_name(directory, name);
            let forgotten = self.cache.borrow().forgotten(owner);
            match self.ask(owner, Request::LookUp { directory, name: Bytes(name.to_vec()), keeps, borrows }) {
                Reply::Lent { target, stamp } => {
                    self.borrow(directory, name, (target, stamp));
                    return Ok((Some(target), stamp));
                }
                Reply::Name { target, stamp, may_keep } => {
                    self.keep_name(directory, name, (target, stamp, may_keep), (owner, forgotten));
                    return Ok((target, stamp));
                }
                Reply::Refused { why: Refusal::Elsewhere } => match self.learn(directory) {
                    Learned::Removed => return Ok((None, 0)),
                    Learned::Lost => return Err(Refusal::Garbled),
                    Learned::Split => {}
                    Learned::Nothing => self.pause(),
                },
                // It is lent, and comes back.
                Reply::Refused { why: Refusal::Busy } => self.pause_at(&mut wait, owner),
                Reply::Refused { why } => return Err(why),
                _ => return Err(Refusal::Garbled),
            }
        }
    }

    /// A name was lent to this domain: so its directory is split.
    pub(super) fn borrow(&self, directory: ObjectNumber, name: &[u8], (target, stamp): (Target, u64)) {
        self.cache.borrow_mut().keep_split(directory);
        self.with_server(|server| server.borrow(directory, name, target, stamp));
    }

    /// What is kept of a name, if it is still so.
    fn known(&self, directory: ObjectNumber, name: &[u8]) -> Option<KnownName> {
        let known = self.cache.borrow().name(directory, name)?;
        if !planted("domains: what is kept is used without a look at notices") {
            self.heed_notices(known.owner);
        }
        self.transport().spend(Step::Own);
        self.cache.borrow().name(directory, name)
    }

    /// Keeps what an owner has answered, unless something of it was forgotten since it was asked. The name of an own object in a
    /// directory that is split is rather looked up, since it is lent then.
    pub(super) fn keep_name(
        &self,
        directory: ObjectNumber,
        name: &[u8],
        (target, stamp, may_keep): (Option<Target>, u64, bool),
        (owner, forgotten): (DomainNumber, u64),
    ) {
        let mut cache = self.cache.borrow_mut();
        let is_own = target.is_some_and(|target| target.number.home() == self.own());
        let is_lent = self.techniques.get().lending && is_own && cache.is_split(directory);
        if may_keep && !is_lent && cache.forgotten(owner) == forgotten {
            cache.keep_name(directory, name, KnownName { target, stamp, owner });
        }
    }
}
