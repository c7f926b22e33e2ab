//! What is asked of pipes.

use messages::DomainNumber;
use posix_calls::{Errno, Kind, Permissions, PipeEnd};
use sync::mutant::planted;

use super::object::{Body, Object};
use super::pipe::Pipe;
use super::{Served, Server};
use crate::identity::{ObjectNumber, Target};
use crate::wire::{Bytes, Refusal, Reply};

impl Server {
    /// Makes a pipe here that a description of each end will keep.
    pub(crate) fn make_pipe(&mut self, permissions: Permissions) -> Target {
        let mut object = Object::new(Body::Pipe(Pipe::default()), permissions, self.now_ns());
        (object.links, object.references) = (0, 2);
        let number = self.next_number();
        self.objects.insert(number, object);
        Target { number, kind: Kind::Pipe }
    }

    fn pipe(&mut self, number: ObjectNumber) -> Result<&mut Pipe, Refusal> {
        match &mut self.objects.get_mut(&number).ok_or(Refusal::Stale)?.body {
            Body::Pipe(pipe) => Ok(pipe),
            _ => Err(Refusal::Garbled),
        }
    }

    /// One more description leads to an end.
    pub(super) fn open_end(&mut self, pipe: ObjectNumber, end: PipeEnd) -> Served {
        self.pipe(pipe)?.ends[end as usize] += 1;
        Ok(Reply::Done {})
    }

    /// One description fewer does.
    pub(super) fn close_end(&mut self, pipe: ObjectNumber, end: PipeEnd) -> Result<(), Refusal> {
        if planted("domains: an end of a pipe stays open") {
            return Ok(());
        }
        let count = &mut self.pipe(pipe)?.ends[end as usize];
        *count = count.saturating_sub(1);
        Ok(())
    }

    pub(super) fn read_pipe(&mut self, pipe: ObjectNumber, length_bytes: u32) -> Served {
        let pipe = self.pipe(pipe)?;
        let bytes = pipe.take(length_bytes as usize);
        if bytes.is_empty() && length_bytes > 0 && pipe.ends[PipeEnd::Write as usize] > 0 {
            return Ok(Reply::Failed { errno: Errno::EAGAIN });
        }
        Ok(Reply::Bytes { bytes: Bytes(bytes) })
    }

    pub(super) fn peek_pipe(&mut self, pipe: ObjectNumber, skip_bytes: u32, length_bytes: u32) -> Served {
        let waiting = self.pipe(pipe)?.bytes.iter().skip(skip_bytes as usize).take(length_bytes as usize);
        Ok(Reply::Bytes { bytes: Bytes(waiting.copied().collect()) })
    }

    pub(super) fn write_pipe(
        &mut self,
        from: DomainNumber,
        number: ObjectNumber,
        bytes: Vec<u8>,
        more: bool,
    ) -> Served {
        let Some(bytes) = self.stage((from, number), bytes, more)? else { return Ok(Reply::Done {}) };
        let now_ns = self.now_ns();
        let pipe = self.pipe(number)?;
        if pipe.ends[PipeEnd::Read as usize] == 0 {
            return Ok(Reply::Failed { errno: Errno::EPIPE });
        }
        let length = pipe.put(&bytes);
        if length == 0 {
            return Ok(Reply::Failed { errno: Errno::EAGAIN });
        }
        self.note_change_of_data(number, now_ns);
        Ok(Reply::Written { offset: 0, length: length as u64 })
    }

    pub(super) fn pipe_state(&mut self, pipe: ObjectNumber, end: PipeEnd) -> Served {
        let pipe = self.pipe(pipe)?;
        let other_end_gone = pipe.ends[end.other() as usize] == 0;
        let is_ready = match end {
            PipeEnd::Read => !pipe.bytes.is_empty(),
            PipeEnd::Write => !pipe.is_full(),
        };
        Ok(Reply::PipeState { is_ready, other_end_gone })
    }
}
