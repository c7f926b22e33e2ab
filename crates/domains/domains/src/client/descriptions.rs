//! What a domain asks of descriptions that it shares with others, and how it comes to share one or has it again alone.

use messages::{Class, Transport};
use posix_calls::AccessMode;

use super::domain::Domain;
use super::open_files::{OpenFile, Place};
use super::waits::Wait;
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Refusal, Reply, Request};

impl<T: Transport> Domain<T> {
    /// A description has no descriptor of this domain any more.
    pub(super) fn let_go_of_file(&self, file: OpenFile) {
        match file.place {
            Place::Own(_) => self.release(file.target, file.end()),
            Place::Shared(description) => self.post(description.home(), Request::Leave { description }),
        }
    }

    /// What the owner of a shared description says to requests, the last of them; nothing if the description is the domain's own,
    /// or has come to be.
    pub(super) fn ask_shared(
        &self,
        number: u64,
        requests: impl Fn(ObjectNumber) -> Vec<Request>,
    ) -> Result<Option<Reply>, Refusal> {
        let mut wait = Wait::default();
        loop {
            let file = self.open_files.borrow().get(number).ok_or(Refusal::Stale)?;
            let Place::Shared(description) = file.place else { return Ok(None) };
            let owner = description.home();
            let questions = requests(description).into_iter().map(|request| (owner, request)).collect();
            match self.ask_all(Class::Requests, questions).pop() {
                Some(Reply::Refused { why: Refusal::Busy }) => self.pause_at(&mut wait, owner),
                Some(Reply::Refused { why: Refusal::Alone }) => self.take_back(number, description)?,
                Some(Reply::Refused { why }) => return Err(why),
                Some(reply) => return Ok(Some(reply)),
                None => return Err(Refusal::Garbled),
            }
        }
    }

    fn take_back(&self, number: u64, description: ObjectNumber) -> Result<(), Refusal> {
        match self.ask(description.home(), Request::TakeBack { description }) {
            Reply::Description { state } => {
                self.open_files.borrow_mut().place_at(number, Place::Own(state));
                Ok(())
            }
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }

    /// Shares a description with one domain more; its number at the owner.
    pub(super) fn share(&self, number: u64) -> Result<ObjectNumber, Refusal> {
        let file = self.open_files.borrow().get(number).ok_or(Refusal::Stale)?;
        let object = file.target.number;
        // Who shares it reads what was written here.
        self.release_written(object)?;
        match file.place {
            Place::Shared(description) => match self.ask(description.home(), Request::Join { description }) {
                Reply::Done {} => Ok(description),
                Reply::Refused { why } => Err(why),
                _ => Err(Refusal::Garbled),
            },
            Place::Own(state) => {
                // From now on data go through the owner.
                self.let_copy_go(object);
                let request = Request::Share { file: object, end: file.end(), state };
                match self.ask(object.home(), request) {
                    Reply::Made { number: description } => {
                        self.open_files.borrow_mut().place_at(number, Place::Shared(description));
                        Ok(description)
                    }
                    Reply::Refused { why } => Err(why),
                    _ => Err(Refusal::Garbled),
                }
            }
        }
    }

    /// A description that another domain has shared with this one.
    pub(super) fn take_in(&self, description: ObjectNumber, target: Target, mode: AccessMode) -> u64 {
        let known = self.open_files.borrow().of_shared(description);
        match known {
            Some(number) => {
                // A domain counts once.
                self.post(description.home(), Request::Leave { description });
                number
            }
            None => {
                let place = Place::Shared(description);
                self.open_files.borrow_mut().add(OpenFile { target, mode, place, descriptors: 0 })
            }
        }
    }
}
