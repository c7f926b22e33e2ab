//! Pipes, wherever they are: bytes go there in pieces that a message holds.

use messages::{Class, Transport};
use posix_calls::{Errno, PipeEnd, PipeState};

use super::domain::Domain;
use crate::identity::ObjectNumber;
use crate::server::{PAGE_BYTES, most_that_fits};
use crate::wire::{Bytes, Refusal, Reply, Request};

/// Why nothing came of a call on a pipe.
pub(super) enum PipeError {
    Call(Errno),
    Refused(Refusal),
}

impl From<Reply> for PipeError {
    fn from(reply: Reply) -> PipeError {
        match reply {
            Reply::Failed { errno } => PipeError::Call(errno),
            Reply::Refused { why } => PipeError::Refused(why),
            _ => PipeError::Refused(Refusal::Garbled),
        }
    }
}

impl<T: Transport> Domain<T> {
    /// Asks for bytes in pieces: what came before the first piece that is not whole, and, if nothing did, why. Pieces that come
    /// after it have what was put in in the meantime.
    fn collect(
        &self,
        pipe: ObjectNumber,
        bytes: &mut [u8],
        request: impl Fn(u32, u32) -> Request,
    ) -> Result<usize, PipeError> {
        let piece = if pipe.home() == self.own() { bytes.len().max(1) } else { PAGE_BYTES as usize };
        let questions = (0..bytes.len())
            .step_by(piece)
            .map(|start| (pipe.home(), request(start as u32, piece.min(bytes.len() - start) as u32)));
        let (mut done, mut refused) = (0, None);
        for reply in self.ask_all(Class::Requests, questions.collect()) {
            match reply {
                Reply::Bytes { bytes: Bytes(came) } => {
                    let count = came.len().min(bytes.len() - done);
                    bytes[done..done + count].copy_from_slice(&came[..count]);
                    done += count;
                }
                reply => refused = refused.or(Some(reply)),
            }
        }
        match refused {
            Some(reply) if done == 0 => Err(reply.into()),
            _ => Ok(done),
        }
    }

    pub(super) fn read_pipe(&self, pipe: ObjectNumber, bytes: &mut [u8]) -> Result<usize, PipeError> {
        self.collect(pipe, bytes, |_, length| Request::ReadPipe { pipe, length })
    }

    pub(super) fn peek_pipe(&self, pipe: ObjectNumber, bytes: &mut [u8]) -> Result<usize, PipeError> {
        self.collect(pipe, bytes, |skip, length| Request::PeekPipe { pipe, skip, length })
    }

    /// Puts bytes into a pipe, at once as far as they fit.
    pub(super) fn write_pipe(&self, pipe: ObjectNumber, bytes: &[u8]) -> Result<usize, PipeError> {
        let bytes = &bytes[..most_that_fits(bytes.len())];
        let home = pipe.home();
        let questions = self.in_parts(home, bytes, |bytes, more| Request::WritePipe { pipe, bytes, more });
        let questions = questions.into_iter().map(|question| (home, question)).collect();
        match self.ask_all(Class::Requests, questions).pop() {
            Some(Reply::Written { length, .. }) => Ok(length as usize),
            Some(reply) => Err(reply.into()),
            None => Ok(0),
        }
    }

    pub(super) fn pipe_state(&self, pipe: ObjectNumber, end: PipeEnd) -> Result<PipeState, Refusal> {
        match self.ask(pipe.home(), Request::PipeState { pipe, end }) {
            Reply::PipeState { is_ready, other_end_gone } => Ok(PipeState { is_ready, other_end_gone }),
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }
}
