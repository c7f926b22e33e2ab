//! Memory of processes, which is their domain's.

use std::ops::Range;

use messages::Transport;
use posix_calls::{
    AccessError, AnswerOf, Errno, Growth, MemoryOperations, OperationError, Outcome, Place, Protection, Source,
};

use super::call::{Call, Fault, Node};
use crate::server::FilePage;

impl<T: Transport> Call<'_, T> {
    /// The process's memory, which it has from its first call of this kind on.
    fn space(&self) -> u64 {
        if let Some(space) = self.process.space.get() {
            return space;
        }
        let space = self.domain.with_server(|server| server.new_space());
        self.process.space.set(Some(space));
        space
    }

    /// The pages of the process that are mapped, in order.
    pub fn mapped_pages(&self) -> Vec<u64> {
        let space = self.space();
        self.domain.with_server(|server| server.mapped_pages(space))
    }
}

impl<T: Transport> MemoryOperations for Call<'_, T> {
    fn map(&self, place: Place, pages: u64, protection: Protection, source: Source<Node<'_>>) -> Outcome<u64, Self> {
        let from = match source {
            Source::Anonymous => None,
            Source::File { node, page, sharing, may_write } => {
                let file = node.target.number;
                if file.home() != self.domain.own() {
                    self.domain.note_refused_mapping();
                    return Err(OperationError::Fault(Fault::OtherDomain));
                }
                Some(FilePage { file, page, sharing, may_write })
            }
        };
        let space = self.space();
        self.domain.with_server(|server| server.map(space, (place, pages), protection, from))
    }

    fn unmap(&self, pages: Range<u64>) -> Outcome<(), Self> {
        let space = self.space();
        self.domain.with_server(|server| server.unmap(space, pages));
        Ok(())
    }

    fn protect(&self, pages: Range<u64>, protection: Protection) -> Result<(), Errno> {
        let space = self.space();
        self.domain.with_server(|server| server.protect(space, pages, protection))
    }

    fn is_mapped(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        let space = self.space();
        Ok(self.domain.with_server(|server| server.is_mapped(space, pages)))
    }

    fn is_free(&self, pages: Range<u64>) -> AnswerOf<bool, Self> {
        let space = self.space();
        Ok(self.domain.with_server(|server| server.is_free(space, pages)))
    }

    fn discard(&self, pages: Range<u64>) -> Outcome<(), Self> {
        let space = self.space();
        self.domain.with_server(|server| server.discard(space, pages));
        Ok(())
    }

    fn grow(&self, pages: Range<u64>, more: u64) -> Result<Growth, Errno> {
        let space = self.space();
        self.domain.with_server(|server| server.grow(space, pages, more))
    }

    fn relocate(&self, pages: Range<u64>, first: Option<u64>, new_pages: u64) -> Result<u64, Errno> {
        let space = self.space();
        self.domain.with_server(|server| server.relocate(space, pages, first, new_pages))
    }

    fn load(&self, address: u64, bytes: &mut [u8]) -> Result<(), AccessError<Fault>> {
        let space = self.space();
        self.domain.with_server(|server| server.load(space, address, bytes))
    }

    fn store(&self, address: u64, bytes: &[u8]) -> Result<(), AccessError<Fault>> {
        let space = self.space();
        self.domain.with_server(|server| server.store(space, address, bytes))
    }
}
