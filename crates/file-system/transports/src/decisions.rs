//! Where operations on several owners are decided, in a pool: lines that one domain writes and all read.

use domains::{Decisions, LINES, OperationNumber};
use messages::DomainNumber;
use pool::{Fault, LINE_BYTES, Memory, Use};
use std::cell::Cell;
use sync::mutant::planted;

/// The decision lines of all domains, as one of them sees them. Each has one word, which no cache tears.
#[derive(Debug)]
pub struct DecisionLines<M> {
    memory: M,
    at: usize,
    domain_count: usize,
    own: DomainNumber,
    fault: Cell<Option<Fault>>,
}

impl<M: Memory> DecisionLines<M> {
    /// Bytes of the lines of this number of domains. They must be zero.
    pub const fn bytes(domain_count: usize) -> usize {
        domain_count * LINES as usize * LINE_BYTES
    }

    /// The lines from `at`, at the beginning of a line, for domain `own`.
    ///
    /// # Errors
    /// Memory that is too small.
    pub fn new(memory: M, at: usize, domain_count: usize, own: DomainNumber) -> Result<DecisionLines<M>, Fault> {
        for writer in 0..domain_count {
            let length = usize::from(LINES) * LINE_BYTES;
            memory.declare(at + writer * length, length, Use::Register { writer })?;
        }
        Ok(DecisionLines { memory, at, domain_count, own, fault: Cell::new(None) })
    }

    /// Why nothing can be decided any more, if that is so.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    fn place(&self, operation: OperationNumber) -> Option<usize> {
        let domain = operation.coordinator.index();
        // A peer may name any line.
        let is_there = domain < self.domain_count && operation.line < LINES;
        is_there.then(|| self.at + (domain * usize::from(LINES) + usize::from(operation.line)) * LINE_BYTES)
    }

    fn write(&self, at: usize, number: u64) -> Result<(), Fault> {
        self.memory.write_version(at, &number.to_le_bytes(), number)?;
        if !planted("transports: a decision is not written back") {
            self.memory.write_back(at, 8)?;
        }
        if !planted("transports: a decision is not drained") {
            self.memory.drain()?;
        }
        self.memory.promise();
        Ok(())
    }

    fn read(&self, at: usize, operation: OperationNumber) -> Result<bool, Fault> {
        if operation.coordinator != self.own && !planted("transports: a decision is not invalidated") {
            self.memory.invalidate(at, 8)?;
        }
        let mut bytes = [0; 8];
        self.memory.read(at, &mut bytes)?;
        let is_committed = u64::from_le_bytes(bytes) == operation.number;
        if is_committed {
            self.memory.accept(at, 8, operation.number);
        }
        Ok(is_committed)
    }
}

impl<M: Memory> Decisions for DecisionLines<M> {
    fn commit(&self, operation: OperationNumber) {
        let Some(at) = self.place(operation) else { return };
        if let Err(fault) = self.write(at, operation.number) {
            self.fault.set(Some(fault));
        }
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        let Some(at) = self.place(operation) else { return false };
        self.read(at, operation).inspect_err(|fault| self.fault.set(Some(*fault))).unwrap_or(false)
    }
}
