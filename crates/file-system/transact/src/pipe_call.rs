//! Pipes of the base inside a transaction: bytes are taken and put by the commit, which has both ends locked.

use posix_calls::{AnswerOf, DataChanges, Errno, Failed, PAGE_BYTES, PipeEnd, PipeState};

use crate::base::{FaultIn, WithData};
use crate::call::{Call, Node};
use crate::decided::Decided;
use crate::pipe::{OwnPipe, UNCHANGED};
use crate::question::{About, AboutData, Reply};
use crate::transaction::{Fault, Within};

/// Bytes that wait in a pipe for a read.
struct Waiting {
    of_base: usize,
    own: usize,
}

impl<D: DataChanges<Objects: Decided>> Call<'_, WithData<D>> {
    /// What has become of a pipe, as far as it is asked for.
    fn own_pipe<T>(&self, pipe: Node<'_>, get: impl Fn(&OwnPipe) -> T) -> T {
        self.own_object(pipe, |own| get(&own.pipe)).unwrap_or_else(|| get(&UNCHANGED))
    }

    fn about_pipe(&self, pipe: Node<'_>, about: AboutData) -> Within<Reply, D::Objects> {
        self.known(pipe.number, About::Data(about))
    }

    /// Refuses a pipe of which the transaction has closed a descriptor: whether that was the last one only the base knows.
    fn check_ends(&self, pipe: Node<'_>) -> Within<(), D::Objects> {
        let state = self.state()?;
        if state.has_let_go(pipe.number) { Err(Failed(Fault::NotTransactional)) } else { Ok(()) }
    }

    /// Whether the last descriptor of the other end was closed.
    fn is_alone(&self, pipe: Node<'_>, end: PipeEnd) -> Within<bool, D::Objects> {
        Ok(self.about_pipe(pipe, AboutData::PipeIsAlone(end))?.truth())
    }

    /// Copies what a read would get.
    fn look_into(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Within<Waiting, D::Objects> {
        let taken_bytes = self.own_pipe(pipe, |own| own.taken_bytes);
        let seen = self.about_pipe(pipe, AboutData::PipeBytes(taken_bytes + bytes.len()))?.bytes();
        let of_base = seen.len().saturating_sub(taken_bytes);
        bytes[..of_base].copy_from_slice(&seen[taken_bytes..]);
        let state = self.state()?;
        let put = state.layer.object(pipe.number).map_or(&[][..], |own| &own.pipe.put);
        let own = put.len().min(bytes.len() - of_base);
        bytes[of_base..of_base + own].copy_from_slice(&put[..own]);
        drop(state);
        Ok(Waiting { of_base, own })
    }

    pub(crate) fn peek_base_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Within<usize, D::Objects> {
        self.check_ends(pipe)?;
        let Waiting { of_base, own } = self.look_into(pipe, bytes)?;
        Ok(of_base + own)
    }

    pub(crate) fn read_base_pipe(&self, pipe: Node<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.check_ends(pipe)?;
        let Waiting { of_base, own } = self.look_into(pipe, bytes)?;
        if of_base + own == 0 {
            return if self.is_alone(pipe, PipeEnd::Read)? { Ok(0) } else { Err(Errno::EAGAIN) };
        }
        let mut state = self.state()?;
        let pipe = state.layer.pipe_mut(pipe.number);
        pipe.taken_bytes += of_base;
        pipe.put.drain(..own);
        Ok(of_base + own)
    }

    pub(crate) fn base_pipe_state(&self, pipe: Node<'_>, end: PipeEnd) -> AnswerOf<PipeState, Self> {
        self.check_ends(pipe)?;
        let other_end_gone = self.is_alone(pipe, end)?;
        let is_ready = match end {
            PipeEnd::Read => self.peek_base_pipe(pipe, &mut [0])? > 0,
            PipeEnd::Write => {
                let (taken_bytes, put_bytes) = self.own_pipe(pipe, |own| (own.taken_bytes, own.put.len()));
                let pages = put_bytes.next_multiple_of(PAGE_BYTES as usize);
                let has_room = self.about_pipe(pipe, AboutData::PipeRoom(pages + 1))?.count() as usize > pages;
                if !has_room && (taken_bytes > 0 || pages != put_bytes) {
                    return Err(Failed(Fault::NotTransactional));
                }
                has_room
            }
        };
        Ok(PipeState { is_ready, other_end_gone })
    }

    /// Room for a write of so many bytes, in whole pages behind what was put before.
    fn room_for(&self, pipe: Node<'_>, length: usize) -> Within<usize, D::Objects> {
        let put = self.own_pipe(pipe, |own| own.put.len());
        let room = self.about_pipe(pipe, AboutData::PipeRoom(put + length))?.count() as usize;
        Ok(room.saturating_sub(put))
    }

    pub(crate) fn write_base_pipe(&self, pipe: Node<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.check_ends(pipe)?;
        if self.is_alone(pipe, PipeEnd::Write)? {
            return Err(Errno::EPIPE);
        }
        let room = self.room_for(pipe, bytes.len())?;
        if room < bytes.len() {
            // What is no whole page may find room beside others, and what is taken in the same transaction makes some: only the
            // base could tell.
            let is_plain =
                bytes.len().is_multiple_of(PAGE_BYTES as usize) && self.own_pipe(pipe, |own| *own == UNCHANGED);
            return match room {
                _ if !is_plain => Err(Fault::<FaultIn<WithData<D>>>::NotTransactional.into()),
                0 => Err(Errno::EAGAIN),
                _ => self.write_base_pipe(pipe, &bytes[..room]),
            };
        }
        let mut state = self.state()?;
        state.layer.pipe_mut(pipe.number).put.extend_from_slice(bytes);
        state.layer.mark_data(pipe.number);
        Ok(bytes.len())
    }
}
