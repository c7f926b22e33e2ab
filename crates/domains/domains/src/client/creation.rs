//! Objects that are made with a name.

use messages::Transport;

use super::domain::Domain;
use super::names::Learned;
use super::waits::Wait;
use crate::identity::{ObjectNumber, Target};
use crate::server::NewParts;
use crate::wire::{Bytes, Part, Refusal, Reply, Request};

impl<T: Transport> Domain<T> {
    /// Makes an object with a name that does not exist, and keeps it if that is wanted.
    ///
    /// With creation affinity it is made here, and its name where names of the directory are. Else all is made there, by one
    /// message if creation is coalesced.
    pub(super) fn create(
        &self,
        directory: ObjectNumber,
        name: &[u8],
        parts: &NewParts,
        retain: bool,
    ) -> Result<Target, Refusal> {
        let mut wait = Wait::default();
        loop {
            let owner = self.owner_of_name(directory, name);
            let is_here = owner == self.own();
            let outcome = if self.techniques.get().affinity && !is_here {
                self.create_here(directory, name, parts, retain)
            } else {
                self.create_there(directory, name, parts, retain)
            };
            match outcome {
                Err(Refusal::Busy) => self.pause_at(&mut wait, owner),
                Err(Refusal::Elsewhere) => match self.learn(directory) {
                    Learned::Removed => return Err(Refusal::Dead),
                    Learned::Lost => return Err(Refusal::Garbled),
                    Learned::Split => {}
                    Learned::Nothing => self.pause(),
                },
                outcome => return outcome,
            }
        }
    }

    fn create_here(
        &self,
        directory: ObjectNumber,
        name: &[u8],
        parts: &NewParts,
        retain: bool,
    ) -> Result<Target, Refusal> {
        let made = self.with_server(|server| server.make(directory, parts.clone())).ok_or(Refusal::NoSpace)?;
        if retain {
            // No one else knows it.
            let _ = self.ask(self.own(), Request::Retain { object: made.number, need: None });
        }
        let part = Part::Insert { directory, name: Bytes(name.to_vec()), target: made };
        let request = Request::Apply { parts: vec![part], borrows: self.techniques.get().lending };
        let named = self.ask_for_name(directory, name, request);
        if named.is_err() {
            self.with_server(|server| server.unmake(made.number));
        }
        named.map(|_| made)
    }

    fn create_there(
        &self,
        directory: ObjectNumber,
        name: &[u8],
        parts: &NewParts,
        retain: bool,
    ) -> Result<Target, Refusal> {
        let coalesced = self.techniques.get().coalesced;
        let request = Request::Create {
            directory,
            name: Bytes(name.to_vec()),
            kind: parts.kind,
            target: Bytes(parts.target.clone()),
            device: parts.device,
            permissions: parts.permissions,
            retain: retain && coalesced,
        };
        let made = self.ask_for_name(directory, name, request)?.ok_or(Refusal::Garbled)?;
        if retain && !coalesced {
            // Its name may have gone already, and it with it: as if that had been after it was opened, but it is not kept.
            match self.ask(made.number.home(), Request::Retain { object: made.number, need: None }) {
                Reply::Done {} => {}
                Reply::Refused { why } => return Err(why),
                _ => return Err(Refusal::Garbled),
            }
        }
        Ok(made)
    }

    /// Asks the owner of a name to change what it leads to; what it leads to then is kept.
    pub(super) fn ask_for_name(
        &self,
        directory: ObjectNumber,
        name: &[u8],
        request: Request,
    ) -> Result<Option<Target>, Refusal> {
        let owner = self.owner_of_name(directory, name);
        self.cache.borrow_mut().forget_name(directory, name);
        let forgotten = self.cache.borrow().forgotten(owner);
        match self.ask(owner, request) {
            Reply::Name { target, stamp, may_keep } => {
                let keeps = may_keep && self.techniques.get().caches;
                self.keep_name(directory, name, (target, stamp, keeps), (owner, forgotten));
                Ok(target)
            }
            Reply::Lent { target, stamp } => {
                self.borrow(directory, name, (target, stamp));
                Ok(Some(target))
            }
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }
}
