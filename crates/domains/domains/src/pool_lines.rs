//! Lines of decisions in a pool: memory that domains share without coherence.
//!
//! A line of memory for each, so that no two domains write one. Its first eight bytes are the number, which are read and written
//! whole.

use std::cell::Cell;

use messages::DomainNumber;
use pool::{Fault, LINE_BYTES, Memory, Use};
use sync::mutant::planted;

use crate::decisions::{Decisions, LINES};
use crate::wire::OperationNumber;

/// Bytes of a number.
const NUMBER_BYTES: usize = 8;

/// The lines of all domains, as one domain sees them.
#[derive(Debug)]
pub struct PoolLines<M> {
    memory: M,
    at: usize,
    domain_count: usize,
    fault: Cell<Option<Fault>>,
}

impl<M: Memory> PoolLines<M> {
    /// Bytes that the lines of this number of domains take.
    #[must_use]
    pub fn size_bytes(domain_count: usize) -> usize {
        domain_count * usize::from(LINES) * LINE_BYTES
    }

    /// In memory that begins with zeros, from `at`, at the beginning of a line.
    ///
    /// # Errors
    /// A [`Fault`], among others that the memory is too small.
    pub fn new(memory: M, at: usize, domain_count: usize) -> Result<PoolLines<M>, Fault> {
        let lines = PoolLines { memory, at, domain_count, fault: Cell::new(None) };
        let bytes_of_domain = usize::from(LINES) * LINE_BYTES;
        for writer in 0..domain_count {
            lines.memory.declare(at + writer * bytes_of_domain, bytes_of_domain, Use::Register { writer })?;
        }
        Ok(lines)
    }

    /// Why nothing can be decided any more, if that is so.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    /// Where the line of an operation is; a peer may name any.
    fn place(&self, operation: OperationNumber) -> Option<usize> {
        let OperationNumber { coordinator: DomainNumber(domain), line, .. } = operation;
        let is_one = usize::from(domain) < self.domain_count && line < LINES;
        is_one.then(|| self.at + (usize::from(domain) * usize::from(LINES) + usize::from(line)) * LINE_BYTES)
    }

    fn write(&self, place: usize, number: u64) -> Result<(), Fault> {
        self.memory.write_version(place, &number.to_le_bytes(), number)?;
        if !planted("domains: a decision is not written back") {
            self.memory.write_back(place, NUMBER_BYTES)?;
        }
        if !planted("domains: a decision is not drained") {
            self.memory.drain()?;
        }
        // One that hears of the call's end may read it from now on.
        self.memory.promise();
        Ok(())
    }

    fn read(&self, place: usize) -> Result<u64, Fault> {
        if !planted("domains: a line is read from an old copy") {
            self.memory.invalidate(place, NUMBER_BYTES)?;
        }
        let mut bytes = [0; NUMBER_BYTES];
        self.memory.read(place, &mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number > 0 {
            self.memory.accept(place, NUMBER_BYTES, number);
        }
        Ok(number)
    }
}

impl<M> PoolLines<M> {
    /// What came of an access, where there was one; a fault is kept.
    fn noted<T>(&self, outcome: Option<Result<T, Fault>>) -> Option<T> {
        outcome?.inspect_err(|fault| self.fault.set(Some(*fault))).ok()
    }
}

impl<M: Memory> Decisions for PoolLines<M> {
    fn commit(&self, operation: OperationNumber) -> bool {
        let written = self.place(operation).map(|place| self.write(place, operation.number));
        self.noted(written).is_some()
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        let read = self.place(operation).map(|place| self.read(place));
        self.noted(read) == Some(operation.number)
    }
}
