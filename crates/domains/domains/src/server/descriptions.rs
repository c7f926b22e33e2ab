//! Open file descriptions that several domains share: their offsets and flags lie with the owner of what is open.
//!
//! ```text
//! opened                        its domain has offset and flags: no message
//!   │ a descriptor of it goes to a process of another domain (Share)
//!   ▼
//! shared                        the owner has them: a read, a write or an lseek is one message
//!   │ all domains but one have closed it; the last asks for something, hears "alone", takes it back (TakeBack)
//!   ▼
//! its domain has them again
//! ```
//! One that moves an offset in several steps locks it. No one waits here: what is locked is answered with "busy".

use messages::DomainNumber;
use posix_calls::{Errno, PipeEnd, StatusFlags, Whence, data};
use sync::mutant::planted;

use super::description::SharedDescription;
use super::object::Body;
use super::{STAGED_BYTES, Served, Server};
use crate::identity::ObjectNumber;
use crate::wire::{Bytes, Caller, DescriptionState, Obstacle, Refusal, Reply};

impl Server {
    /// The asker shares what was its own: with one other, for the time being.
    pub(super) fn share(&mut self, file: ObjectNumber, end: Option<PipeEnd>, state: DescriptionState) -> Served {
        if !self.objects.contains_key(&file) {
            return Err(Refusal::Stale);
        }
        let number = self.next_number();
        self.descriptions.insert(number, SharedDescription { file, end, state, holders: 2, locked_by: None });
        Ok(Reply::Made { number })
    }

    pub(super) fn join(&mut self, number: ObjectNumber) -> Served {
        self.descriptions.get_mut(&number).ok_or(Refusal::Stale)?.holders += 1;
        Ok(Reply::Done {})
    }

    pub(super) fn leave(&mut self, number: ObjectNumber) -> Served {
        let description = self.descriptions.get_mut(&number).ok_or(Refusal::Stale)?;
        description.holders -= 1;
        if description.holders == 0 {
            let SharedDescription { file, end, .. } = *description;
            self.descriptions.remove(&number);
            return self.release(file, end);
        }
        Ok(Reply::Done {})
    }

    /// The asker, which shares it with no one any more, has it as its own.
    pub(super) fn take_back(&mut self, number: ObjectNumber) -> Served {
        match self.descriptions.get(&number).ok_or(Refusal::Stale)?.holders {
            1 => {}
            _ => return Err(Refusal::Changed),
        }
        let SharedDescription { state, .. } = self.descriptions.remove(&number).ok_or(Refusal::Stale)?;
        Ok(Reply::Description { state })
    }

    /// A description that the asker may use now.
    fn usable(&mut self, number: ObjectNumber) -> Result<&mut SharedDescription, Refusal> {
        let locked_by = self.descriptions.get(&number).ok_or(Refusal::Stale)?.locked_by;
        if let Some(by) = locked_by.filter(|_| !planted("domains: an offset moves that another domain has locked")) {
            return Err(self.busy(Obstacle::Offset { by }));
        }
        let description = self.descriptions.get_mut(&number).ok_or(Refusal::Stale)?;
        if description.holders == 1 { Err(Refusal::Alone) } else { Ok(description) }
    }

    pub(super) fn description_state(&mut self, from: DomainNumber, number: ObjectNumber, locks: bool) -> Served {
        let description = self.usable(number)?;
        if locks {
            description.locked_by = Some(from);
        }
        Ok(Reply::Description { state: description.state })
    }

    /// Who has locked an offset moves it, or leaves it.
    pub(super) fn unlock(&mut self, from: DomainNumber, number: ObjectNumber, offset: Option<u64>) -> Served {
        let description = self.descriptions.get_mut(&number).ok_or(Refusal::Stale)?;
        if description.locked_by == Some(from) {
            description.locked_by = None;
            if let Some(offset) = offset {
                description.state.move_to(offset);
            }
        }
        Ok(Reply::Done {})
    }

    pub(super) fn set_status(&mut self, number: ObjectNumber, status: u32) -> Served {
        self.usable(number)?.state.status = status;
        Ok(Reply::Done {})
    }

    pub(super) fn read_shared(&mut self, number: ObjectNumber, length_bytes: u32) -> Served {
        let SharedDescription { file, state, .. } = *self.usable(number)?;
        let length = match data::check_range(state.offset as i64, length_bytes as usize) {
            Ok((_, length)) => length,
            Err(errno) => return Ok(Reply::Failed { errno }),
        };
        let bytes = self.file(file)?.read(state.offset, length.min(STAGED_BYTES) as u64);
        self.usable(number)?.state.move_to(state.offset + bytes.len() as u64);
        Ok(Reply::Bytes { bytes: Bytes(bytes) })
    }

    pub(super) fn write_shared(
        &mut self,
        from: DomainNumber,
        number: ObjectNumber,
        (bytes, more): (Vec<u8>, bool),
        caller: &Caller,
    ) -> Served {
        let Some(bytes) = self.stage((from, number), bytes, more)? else { return Ok(Reply::Done {}) };
        let SharedDescription { file, state, .. } = *self.usable(number)?;
        let offset = if state.status().contains(StatusFlags::APPEND) { None } else { Some(state.offset) };
        if let Err(errno) = data::check_range(state.offset as i64, bytes.len()) {
            return Ok(Reply::Failed { errno });
        }
        let written = self.write_by(file, offset, &bytes, caller)?;
        if let Reply::Written { offset, length } = written
            && length > 0
        {
            self.usable(number)?.state.move_to(offset + length);
        }
        Ok(written)
    }

    pub(super) fn seek_shared(&mut self, number: ObjectNumber, offset: i64, whence: Whence) -> Served {
        let SharedDescription { file, state, .. } = *self.usable(number)?;
        let size = match &self.objects.get(&file).ok_or(Refusal::Stale)?.body {
            Body::File(file) => Some(file.size_bytes),
            _ => None,
        };
        match data::sought(state.offset, (offset, whence), || size.ok_or(Errno::EINVAL)) {
            Ok(target) if target == state.offset => Ok(Reply::Number { number: target }),
            Ok(target) => {
                self.usable(number)?.state.move_to(target);
                Ok(Reply::Number { number: target })
            }
            Err(errno) => Ok(Reply::Failed { errno }),
        }
    }
}
