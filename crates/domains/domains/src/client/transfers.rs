//! Data of files that goes through their owner.

use messages::{Class, DomainNumber, Transport};
use posix_calls::{Credentials, Written};

use super::close_to_open::why;
use super::domain::Domain;
use crate::identity::ObjectNumber;
use crate::server::{PAGE_BYTES, STAGED_BYTES};
use crate::wire::{Bytes, Caller, Refusal, Reply, Request};

impl<T: Transport> Domain<T> {
    /// Reads a file page by page; fewer bytes than asked for only at the end.
    pub(super) fn read(&self, file: ObjectNumber, offset: u64, bytes: &mut [u8]) -> Result<usize, Refusal> {
        if self.has_copy(file) {
            return self.read_copy(file, offset, bytes);
        }
        let mut questions = Vec::new();
        let mut at = offset;
        let end = offset.saturating_add(bytes.len() as u64);
        while at < end {
            let length = (PAGE_BYTES - at % PAGE_BYTES).min(end - at);
            questions.push((file.home(), Request::Read { file, offset: at, length: length as u32 }));
            at += length;
        }
        let mut done = 0;
        for reply in self.ask_all(Class::Requests, questions) {
            match reply {
                Reply::Bytes { bytes: Bytes(read) } => {
                    // A page that ends early is the last, unless the file has grown after it: then it has zeros to its
                    // end.
                    let start = done;
                    let room = bytes.len() - start;
                    let count = read.len().min(room);
                    bytes[start..start + count].copy_from_slice(&read[..count]);
                    done += count;
                    let is_whole = (offset + done as u64).is_multiple_of(PAGE_BYTES) || done == bytes.len();
                    if !is_whole {
                        break;
                    }
                }
                Reply::Refused { why } => return Err(why),
                _ => return Err(Refusal::Garbled),
            }
        }
        Ok(done)
    }

    /// Writes a file, at its end without an offset. Bytes of one mebibyte at most are written at once.
    pub(super) fn write(
        &self,
        file: ObjectNumber,
        offset: Option<u64>,
        bytes: &[u8],
        credentials: &Credentials,
    ) -> Result<Written, Refusal> {
        match offset {
            Some(offset) if self.has_copy(file) => return self.write_copy(file, offset, bytes, credentials),
            // The owner must know what was written here, so as to know the end.
            None if self.has_copy(file) => self.release_written(file)?,
            _ => {}
        }
        let written = self.write_through(file, offset, bytes, credentials)?;
        if self.has_copy(file) {
            self.acquire(file, None).map_err(why)?;
        }
        Ok(written)
    }

    /// Writes a file by its owner.
    fn write_through(
        &self,
        file: ObjectNumber,
        offset: Option<u64>,
        bytes: &[u8],
        credentials: &Credentials,
    ) -> Result<Written, Refusal> {
        let mut written = Written { offset: offset.unwrap_or(0), length: 0 };
        let mut at = offset;
        for piece in bytes.chunks(STAGED_BYTES) {
            let Written { offset, length } = self.write_piece((file, at), piece, Caller(*credentials))?;
            if written.length == 0 {
                written.offset = offset;
            }
            written.length += length;
            at = Some(offset + length as u64);
            if length < piece.len() {
                break;
            }
        }
        Ok(written)
    }

    fn write_piece(
        &self,
        (file, offset): (ObjectNumber, Option<u64>),
        bytes: &[u8],
        caller: Caller,
    ) -> Result<Written, Refusal> {
        let home = file.home();
        let questions = self.in_parts(home, bytes, |bytes, more| Request::Write { file, offset, bytes, more, caller });
        let questions = questions.into_iter().map(|question| (home, question)).collect();
        match self.ask_all(Class::Requests, questions).pop() {
            Some(Reply::Written { offset, length }) => Ok(Written { offset, length: length as usize }),
            Some(Reply::Refused { why }) => Err(why),
            None => Ok(Written { offset: offset.unwrap_or(0), length: 0 }),
            Some(_) => Err(Refusal::Garbled),
        }
    }

    /// Requests that together take bytes to their owner: each with a page, or one with all if the owner is here.
    pub(super) fn in_parts(
        &self,
        owner: DomainNumber,
        bytes: &[u8],
        request: impl Fn(Bytes, bool) -> Request,
    ) -> Vec<Request> {
        let part_bytes = if owner == self.own() { bytes.len().max(1) } else { PAGE_BYTES as usize };
        let parts = bytes.chunks(part_bytes);
        let last = parts.len().saturating_sub(1);
        parts.enumerate().map(|(place, part)| request(Bytes(part.to_vec()), place < last)).collect()
    }

    /// What is to be known of a file.
    pub(super) fn size_of(&self, file: ObjectNumber) -> Result<u64, Reply> {
        if let Some(size_bytes) = self.copied_size(file) {
            return Ok(size_bytes);
        }
        let fields = posix_calls::Fields::SIZE.bits();
        match self.ask(file.home(), Request::Attributes { object: file, fields }) {
            Reply::Attributes { attributes } => Ok(attributes.size_bytes),
            reply => Err(reply),
        }
    }
}
