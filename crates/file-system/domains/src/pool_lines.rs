//! Lines of decisions in a pool: memory that domains share without coherence.
//!
//! A line of memory for each, so that no two domains write one. Its first eight bytes are the number, which are read and written
//! whole.

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
    domain_count: usize,
}

impl<M: Memory> PoolLines<M> {
    /// Bytes that the lines of so many domains take, from the pool's beginning.
    #[must_use]
    pub fn size_bytes(domain_count: usize) -> usize {
        domain_count * usize::from(LINES) * LINE_BYTES
    }

    /// In memory that begins with zeros.
    ///
    /// # Errors
    /// A [`Fault`], among others that the memory is too small.
    pub fn new(memory: M, domain_count: usize) -> Result<PoolLines<M>, Fault> {
        let lines = PoolLines { memory, domain_count };
        let bytes_of_domain = usize::from(LINES) * LINE_BYTES;
        for writer in 0..domain_count {
            lines.memory.declare(writer * bytes_of_domain, bytes_of_domain, Use::Register { writer })?;
        }
        Ok(lines)
    }

    /// Where the line of an operation is; a peer may name any.
    fn place(&self, operation: OperationNumber) -> Option<usize> {
        let OperationNumber { coordinator: DomainNumber(domain), line, .. } = operation;
        let is_one = usize::from(domain) < self.domain_count && line < LINES;
        is_one.then(|| (usize::from(domain) * usize::from(LINES) + usize::from(line)) * LINE_BYTES)
    }

    fn write(&self, place: usize, number: u64) -> Result<(), Fault> {
        self.memory.write_version(place, &number.to_le_bytes(), number)?;
        if !planted("domains: a decision is not written back") {
            self.memory.write_back(place, NUMBER_BYTES)?;
        }
        if !planted("domains: a decision is not drained") {
            self.memory.drain()?;
        }
        // Whoever hears of the call's end may read it from now on.
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

impl<M: Memory> Decisions for PoolLines<M> {
    fn commit(&self, operation: OperationNumber) -> bool {
        self.place(operation).is_some_and(|place| self.write(place, operation.number).is_ok())
    }

    fn is_committed(&self, operation: OperationNumber) -> bool {
        self.place(operation).is_some_and(|place| self.read(place) == Ok(operation.number))
    }
}
