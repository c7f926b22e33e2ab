//! What the operations on objects have in common: asking owners, places of directories, and what a change consists of.

use messages::{Step, Transport};
use posix_calls::{Answer, Errno, Failed, Kind, NewObject, Outcome, Permissions};
use sync::mutant::planted;

use super::call::{Call, Found, Node};
use super::waits::Wait;
use crate::identity::{ObjectNumber, Target};
use crate::server::NewParts;
use crate::wire::{Caller, Part, Refusal, Reply, Request};

/// How long one who moves a directory waits while another does, before it asks again.
const MOVES_PAUSES: u32 = 4;

impl<'c, T: Transport> Call<'c, T> {
    /// Asks an object's owner.
    pub(super) fn ask_owner(&self, object: ObjectNumber, request: Request) -> Reply {
        self.domain.ask(object.home(), request)
    }

    /// The same about a file of which there may be a copy here: the owner knows what was written here when it answers, and what it
    /// tells is read here from then on.
    pub(super) fn ask_about(&self, object: ObjectNumber, request: Request) -> Reply {
        match self.domain.ask_about(object, vec![request]) {
            Ok(mut replies) => replies.pop().unwrap_or(Reply::Refused { why: Refusal::Garbled }),
            Err(reply) => reply,
        }
    }

    /// What was written here was written before what comes next: data that are let known later change times and set-id bits.
    pub(super) fn let_data_be_known(&self, object: ObjectNumber) -> Result<(), Errno> {
        if self.domain.has_copy(object) {
            self.domain.release_written(object).map_err(|why| self.fault(why))?;
        }
        Ok(())
    }

    /// Has an object kept by its owner, if these permissions are there; a file of another domain is read as it is now.
    pub(super) fn keep(&self, target: Target, need: Option<(u32, Caller)>) -> Reply {
        if self.domain.keeps_copies_of(target) {
            return self.domain.acquire(target.number, Some(need)).map_or_else(|reply| reply, |()| Reply::Done {});
        }
        self.ask_owner(target.number, Request::Retain { object: target.number, need })
    }

    pub(super) fn find<'v>(&'v self, directory: Node<'v>, name: &[u8]) -> Answer<Option<Found<'v>>, Self> {
        let directory = directory.target.number;
        let (target, stamp) = self.domain.look_up(directory, name).map_err(|why| Failed(self.fault(why)))?;
        Ok(target.map(|target| {
            let place = self.note_name(directory, name);
            Found { target, stamp, place, call: std::marker::PhantomData }
        }))
    }

    /// What a new object consists of.
    pub(super) fn parts(object: NewObject<'_>, permissions: Permissions) -> NewParts {
        let (target, device) = match object {
            NewObject::Symlink(target) => (target.to_vec(), 0),
            NewObject::Outside(_, device) => (Vec::new(), device),
            NewObject::File | NewObject::Directory => (Vec::new(), 0),
        };
        NewParts { kind: object.kind(), target, device, permissions }
    }

    /// What becomes of an object that loses a name.
    pub(super) fn parts_of_loss(lost: Target, directory: ObjectNumber, parts: &mut Vec<Part>) {
        if lost.kind != Kind::Directory {
            parts.push(Part::DropLink { object: lost.number });
            return;
        }
        // Who still works in it can go up.
        if directory != ObjectNumber::ROOT {
            parts.push(Part::Keep { directory });
        }
        parts.push(Part::Close { directory: lost.number, is_split: false });
    }

    /// What becomes of an object whose name comes to a directory.
    pub(super) fn part_of_move(moved: Target, from: ObjectNumber, to: ObjectNumber) -> Part {
        if moved.kind == Kind::Directory && from != to {
            Part::Move { directory: moved.number, parent: to }
        } else {
            Part::Touch { object: moved.number }
        }
    }

    /// Makes a change in which directories come to other parents: one domain does at a time, and looks before it does that
    /// none comes below itself. `moves`: which directory, and to what parent.
    pub(super) fn change_places(&self, moves: &[(Target, ObjectNumber)], parts: &[Part]) -> Result<(), Refusal> {
        let (mover, mut wait) = (ObjectNumber::ROOT.home(), Wait::default());
        while let Reply::Refused { why } = self.domain.ask(mover, Request::TakeMoves {}) {
            if why != Refusal::Busy {
                return Err(why);
            }
            for _ in 0..MOVES_PAUSES {
                self.domain.pause_at(&mut wait, mover);
            }
        }
        let mut outcome = Ok(());
        for (moved, parent) in moves {
            match self.is_below(*parent, moved.number) {
                Ok(false) => {}
                Ok(true) if planted("domains: a directory may come below itself") => {}
                Ok(true) => outcome = Err(Refusal::Changed),
                Err(why) => outcome = Err(why),
            }
        }
        let outcome = outcome.and_then(|()| self.domain.change(parts));
        self.domain.post(mover, Request::GiveMoves {});
        outcome
    }

    /// Whether a directory is another one, or below it.
    pub(super) fn is_below(&self, mut directory: ObjectNumber, other: ObjectNumber) -> Result<bool, Refusal> {
        while directory != other {
            if directory == ObjectNumber::ROOT {
                return Ok(false);
            }
            (directory, ..) = self.place(directory)?;
        }
        Ok(true)
    }

    /// Where a directory stands: its parent, how often it has come to another; and whether it was removed.
    pub(super) fn place(&self, directory: ObjectNumber) -> Result<(ObjectNumber, u64, bool), Refusal> {
        if directory == ObjectNumber::ROOT {
            // It is always there.
            return Ok((ObjectNumber::ROOT, 0, false));
        }
        let owner = directory.home();
        let keeps = self.domain.techniques.get().caches;
        if self.domain.cache.borrow().place(directory).is_some() {
            self.domain.heed_notices(owner);
            if let Some((parent, moves)) = self.domain.cache.borrow().place(directory) {
                self.domain.transport().spend(Step::Own);
                return Ok((parent, moves, false));
            }
        }
        let forgotten = self.domain.cache.borrow().forgotten(owner);
        match self.ask_owner(directory, Request::State { directory, keeps }) {
            Reply::State { parent, moves, is_removed, may_keep, .. } => {
                let mut cache = self.domain.cache.borrow_mut();
                if may_keep && cache.forgotten(owner) == forgotten {
                    cache.keep_place(directory, (parent, moves));
                }
                Ok((parent, moves, is_removed))
            }
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }

    pub(super) fn changed(&self, outcome: Result<(), Refusal>) -> Outcome<(), Self> {
        outcome.map_err(|why| self.outcome(why))
    }

    /// What an owner said of a change that it may refuse to a caller.
    pub(super) fn permitted(&self, reply: &Reply) -> Result<(), Errno> {
        match reply {
            Reply::Done {} => Ok(()),
            Reply::Failed { errno } => Err(*errno),
            reply => Err(self.failed(reply).into()),
        }
    }
}
