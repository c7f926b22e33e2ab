//! Changes of several owners: prepared at all of them, decided by one line.
//!
//! ```text
//! prepare at all owners at once ─ all yes ─► write the line: committed ─► return ok; tell the owners, wait for no one
//!                               └ a no    ─► tell those who said yes: aborted; return why
//!                               └ busy    ─► the same; then prepare again, one owner after the other in their order,
//!                                            and wait at each for what is in the way
//! ```
//! **Why it ends.** Who waits holds marks only at owners before the one at which it waits. Of all who wait, one waits at the
//! last owner at which anybody does: what is in its way there is held by somebody who does not wait.

use std::collections::BTreeMap;

use messages::{Class, DomainNumber, Step, Transport};
use sync::mutant::planted;

use super::domain::Domain;
use super::names::Learned;
use super::waits::Wait;
use crate::identity::ObjectNumber;
use crate::wire::{OperationNumber, Part, Refusal, Reply, Request};

/// Parts by owner.
type Parts = BTreeMap<DomainNumber, Vec<Part>>;

impl<T: Transport> Domain<T> {
    /// Who does a part.
    fn owner_of_part(&self, part: &Part) -> DomainNumber {
        match part {
            Part::Insert { directory, name, .. }
            | Part::Remove { directory, name, .. }
            | Part::Replace { directory, name, .. }
            | Part::Hold { directory, name, .. } => self.owner_of_name(*directory, &name.0),
            Part::AddLink { object } | Part::DropLink { object } | Part::Touch { object } => object.home(),
            Part::Move { directory, .. } | Part::Keep { directory } | Part::Close { directory, .. } => directory.home(),
        }
    }

    /// Does parts, all or none. A directory that is removed is closed at all who have names of it.
    pub(super) fn change(&self, parts: &[Part]) -> Result<(), Refusal> {
        loop {
            parts.iter().for_each(|part| self.forget_changed(part));
            let (by_owner, first) = self.by_owner(parts);
            let outcome = match self.change_at(&by_owner, first) {
                // Who waits holds marks in the order of owners, and so has nothing that another owner is asked for.
                Err(Refusal::Busy) => {
                    parts.iter().for_each(|part| self.give_back_name(part));
                    self.prepare_in_order(&self.by_owner(parts).0)
                }
                outcome => outcome,
            };
            match outcome {
                Err(Refusal::Elsewhere) => {
                    if let Some(why) = self.learn_of_parts(parts) {
                        return Err(why);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// The parts by owner, and who is to be asked before all others, if somebody is.
    fn by_owner(&self, parts: &[Part]) -> (Parts, Option<DomainNumber>) {
        let (mut by_owner, mut first) = (Parts::new(), None);
        for part in parts {
            match part {
                Part::Close { directory, .. } if self.cache.borrow().is_split(*directory) => {
                    // Its home first: of two who remove it one learns it there.
                    first = Some(directory.home());
                    for number in 0..self.domain_count() {
                        let part = Part::Close { directory: *directory, is_split: true };
                        by_owner.entry(DomainNumber(number as u16)).or_default().push(part);
                    }
                }
                part => by_owner.entry(self.owner_of_part(part)).or_default().push(part.clone()),
            }
        }
        (by_owner, first)
    }

    /// A name of a part that was borrowed goes back.
    fn give_back_name(&self, part: &Part) {
        if let Part::Insert { directory, name, .. }
        | Part::Remove { directory, name, .. }
        | Part::Replace { directory, name, .. }
        | Part::Hold { directory, name, .. } = part
            && self.has_borrowed(*directory, &name.0)
        {
            self.with_server(|server| server.give_back(*directory, &name.0));
        }
    }

    /// What is kept of what a part changes is not so any more, or no one will say when it is not.
    fn forget_changed(&self, part: &Part) {
        let mut cache = self.cache.borrow_mut();
        match part {
            Part::Insert { directory, name, .. }
            | Part::Remove { directory, name, .. }
            | Part::Replace { directory, name, .. } => cache.forget_name(*directory, &name.0),
            Part::Move { directory, .. } | Part::Close { directory, .. } => cache.forget_object(*directory),
            _ => {}
        }
    }

    /// Learns where the names are that were not where they were looked for; why the change cannot be made, if it cannot.
    fn learn_of_parts(&self, parts: &[Part]) -> Option<Refusal> {
        let mut has_learned = false;
        for part in parts {
            let (directory, why): (ObjectNumber, Refusal) = match part {
                Part::Insert { directory, .. } => (*directory, Refusal::Dead),
                Part::Remove { directory, .. }
                | Part::Replace { directory, .. }
                | Part::Hold { directory, .. }
                | Part::Close { directory, .. } => (*directory, Refusal::Changed),
                _ => continue,
            };
            match self.learn(directory) {
                Learned::Removed => return Some(why),
                Learned::Lost => return Some(Refusal::Garbled),
                Learned::Split => has_learned = true,
                Learned::Nothing => {}
            }
        }
        if !has_learned {
            self.pause();
        }
        None
    }

    fn change_at(&self, by_owner: &Parts, first: Option<DomainNumber>) -> Result<(), Refusal> {
        let mut owners = by_owner.iter();
        if let (Some((owner, parts)), None) = (owners.next(), owners.next()) {
            let mut wait = Wait::default();
            let (forgotten, reply) = loop {
                let forgotten = self.cache.borrow().forgotten(*owner);
                match self.ask(*owner, Request::Apply { parts: parts.clone(), borrows: false }) {
                    Reply::Refused { why: Refusal::Busy } => self.pause_at(&mut wait, *owner),
                    reply => break (forgotten, reply),
                }
            };
            let stamps = match reply {
                Reply::Refused { why } => return Err(why),
                Reply::Stamps { stamps } => stamps,
                Reply::Name { stamp, may_keep, .. } => vec![if may_keep { stamp } else { 0 }],
                Reply::Done {} => Vec::new(),
                _ => return Err(Refusal::Garbled),
            };
            self.keep_changed(parts, &stamps, (*owner, forgotten));
            return Ok(());
        }
        self.prepare_at_once(by_owner, first)
    }

    /// Keeps what names lead to that were changed: their owners tell when that is not so any more.
    fn keep_changed(&self, parts: &[Part], stamps: &[u64], from: (DomainNumber, u64)) {
        let after = parts.iter().filter_map(|part| match part {
            Part::Insert { directory, name, target } | Part::Replace { directory, name, target, .. } => {
                Some((*directory, name, Some(*target)))
            }
            Part::Remove { directory, name, .. } => Some((*directory, name, None)),
            _ => None,
        });
        let keeps = self.techniques.get().caches && from.0 != self.own();
        for ((directory, name, target), stamp) in after.zip(stamps) {
            self.keep_name(directory, &name.0, (target, *stamp, keeps && *stamp != 0), from);
        }
    }

    /// Prepares at all owners at once, or, if one is to be asked before, at the others then.
    fn prepare_at_once(&self, by_owner: &Parts, first: Option<DomainNumber>) -> Result<(), Refusal> {
        let operation = self.take_line()?;
        let question = |(owner, parts): (&DomainNumber, &Vec<Part>)| {
            (*owner, Request::Prepare { operation, parts: parts.clone() })
        };
        let (early, late): (Vec<_>, Vec<_>) =
            by_owner.iter().map(question).partition(|(owner, _)| Some(*owner) == first);
        let mut prepared = Prepared::default();
        for questions in [early, late] {
            if prepared.refusal.is_some() || questions.is_empty() {
                continue;
            }
            let forgotten = |owner| (owner, self.cache.borrow().forgotten(owner));
            let owners: Vec<_> = questions.iter().map(|(owner, _)| forgotten(*owner)).collect();
            for (owner, reply) in owners.into_iter().zip(self.ask_all(Class::Prepares, questions)) {
                prepared.note(owner, reply);
            }
        }
        self.decide(operation, by_owner, prepared)
    }

    /// Prepares at one owner after the other, and waits at each.
    fn prepare_in_order(&self, by_owner: &Parts) -> Result<(), Refusal> {
        let operation = self.take_line()?;
        let mut prepared = Prepared::default();
        for (owner, parts) in by_owner {
            let from = (*owner, self.cache.borrow().forgotten(*owner));
            let mut wait = Wait::default();
            let reply = loop {
                let question = (*owner, Request::Prepare { operation, parts: parts.clone() });
                match self.ask_all(Class::Prepares, vec![question]).pop() {
                    Some(Reply::Refused { why: Refusal::Busy }) => self.pause_at(&mut wait, *owner),
                    reply => break reply.unwrap_or(Reply::Refused { why: Refusal::Garbled }),
                }
            };
            prepared.note(from, reply);
            if prepared.refusal.is_some() {
                break;
            }
        }
        self.decide(operation, by_owner, prepared)
    }

    fn take_line(&self) -> Result<OperationNumber, Refusal> {
        let mut wait = Wait::default();
        loop {
            let has_come = |ticket| self.reply(ticket).is_some() || self.is_in_vain(ticket);
            let line = self.lines.borrow_mut().take(self.own(), has_come);
            match line {
                Ok(operation) => return Ok(operation),
                Err(_) if self.transport().has_ended() => return Err(Refusal::Garbled),
                Err(answer) => self.wait_longer(&mut wait, answer),
            }
        }
    }

    /// Commits unless somebody has refused, and tells those who have prepared.
    fn decide(&self, operation: OperationNumber, by_owner: &Parts, prepared: Prepared) -> Result<(), Refusal> {
        let commit = prepared.refusal.is_none();
        if commit && !planted("domains: the decision is not written") {
            if !self.decisions.commit(operation) {
                // No one knows what stands there: what was prepared stays so.
                return Err(Refusal::Garbled);
            }
            self.transport().spend(Step::PoolWrite(1));
        }
        let request = Request::Decide { operation, commit };
        let mut answers = Vec::new();
        for (from, stamps) in prepared.owners {
            let owner = from.0;
            if owner == self.own() {
                self.with_server(|server| server.serve(owner, request.clone()));
                continue;
            }
            answers.extend(self.send(owner, Class::Prepares, &request));
            if let Some(parts) = by_owner.get(&owner).filter(|_| commit) {
                self.keep_changed(parts, &stamps, from);
            }
        }
        self.lines.borrow_mut().expect(operation, answers);
        prepared.refusal.map_or(Ok(()), Err)
    }
}

/// What owners have said to an operation.
#[derive(Debug, Default)]
struct Prepared {
    /// Who has prepared, and what of its answers had been forgotten before; the stamps of its names.
    owners: Vec<((DomainNumber, u64), Vec<u64>)>,
    /// Why it cannot be done: what is so, before what is in the way.
    refusal: Option<Refusal>,
}

impl Prepared {
    fn note(&mut self, owner: (DomainNumber, u64), reply: Reply) {
        let why = match reply {
            Reply::Stamps { stamps } => return self.owners.push((owner, stamps)),
            Reply::Refused { why } => why,
            _ => Refusal::Garbled,
        };
        if self.refusal.is_none_or(|first| first == Refusal::Busy) {
            self.refusal = Some(why);
        }
    }
}
