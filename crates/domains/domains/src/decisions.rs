//! Where operations on several owners are decided: lines in memory that all domains reach, each written by one.
//!
//! A domain has [`LINES`] lines. On each stands the number of the last operation that it has decided to commit, so an
//! operation is committed from the moment at which its number can be read there. A line is used again only when all
//! owners have answered that they were informed, so a number on it is never larger than that of an operation somebody
//! still asks for.

use std::cell::Cell;

use messages::DomainNumber;

use crate::wire::OperationNumber;

/// Lines of each domain: this many operations of it can wait for its owners' answers.
pub const LINES: u16 = 64;

/// The lines.
///
/// **What it must give.** When [`Decisions::commit`] has returned, [`Decisions::is_committed`] of any domain that begins later
/// says so: the line was written, written back, and has arrived; and the one that asks drops what its caches hold of
/// it.
pub trait Decisions {
    /// Decides that an operation of the own domain is committed; false if the line cannot be written, and then this domain
    /// decides nothing any more.
    fn commit(&self, operation: OperationNumber) -> bool;

    /// Whether an operation was committed; false while it is not decided.
    fn is_committed(&self, operation: OperationNumber) -> bool;
}

/// Lines in the memory of one thread that plays all domains.
#[derive(Debug)]
pub struct OwnLines {
    lines: Vec<Cell<u64>>,
}

impl OwnLines {
    /// Of this many domains.
    #[must_use]
    pub fn new(domain_count: usize) -> OwnLines {
        OwnLines { lines: vec![Cell::new(0); domain_count * usize::from(LINES)] }
    }

    fn line(&self, operation: OperationNumber) -> Option<&Cell<u64>> {
        let OperationNumber { coordinator: DomainNumber(domain), line, .. } = operation;
        // A peer may name any line.
        (line < LINES).then(|| self.lines.get(usize::from(domain) * usize::from(LINES) + usize::from(line)))?
    }
}

impl Decisions for OwnLines {
    fn commit(&self, operation: OperationNumber) -> bool {
        let line = self.line(operation);
        line.inspect(|line| line.set(operation.number)).is_some()
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        self.line(operation).is_some_and(|line| line.get() == operation.number)
    }
}
