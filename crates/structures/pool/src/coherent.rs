//! Memory of a coherent machine: write-backs and invalidations are nothing, and all else is as it was.
//!
//! Chosen on memory that is not coherent, it returns old data: [`crate::coherence`] finds that out.

use core::sync::atomic::{Ordering, fence};

use crate::memory::{Fault, Memory, Use, in_bounds};

/// Memory below which the machine keeps caches coherent.
#[derive(Clone, Debug)]
pub struct Coherent<M>(M);

impl<M: Memory> Coherent<M> {
    /// Over this memory, which the caller takes for coherent.
    pub fn new(memory: M) -> Coherent<M> {
        Coherent(memory)
    }

    /// The memory with its write-backs and invalidations.
    pub fn inner(&self) -> &M {
        &self.0
    }
}

impl<M: Memory> Memory for Coherent<M> {
    fn size_bytes(&self) -> usize {
        self.0.size_bytes()
    }

    #[track_caller]
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.0.read(at, into)
    }

    #[track_caller]
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.0.write(at, bytes)
    }

    fn write_back(&self, at: usize, length: usize) -> Result<(), Fault> {
        in_bounds(at, length, self.size_bytes())
    }

    fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault> {
        // What was read before stays before what is read after; pairs with the fence in `drain` of the writer.
        fence(Ordering::Acquire);
        in_bounds(at, length, self.size_bytes())
    }

    fn drain(&self) -> Result<(), Fault> {
        // What was written before is seen before what is written after; pairs with the fence in `invalidate` of the reader.
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn declare(&self, at: usize, length: usize, used: Use) -> Result<(), Fault> {
        self.0.declare(at, length, used)
    }

    #[track_caller]
    fn write_version(&self, at: usize, bytes: &[u8], version: u64) -> Result<(), Fault> {
        self.0.write_version(at, bytes, version)
    }

    #[track_caller]
    fn accept(&self, at: usize, length: usize, version: u64) {
        self.0.accept(at, length, version);
    }

    #[track_caller]
    fn promise(&self) {
        self.0.promise();
    }

    fn sent(&self, channel: u64, number: u64) {
        self.0.sent(channel, number);
    }

    fn received(&self, channel: u64, number: u64) {
        self.0.received(channel, number);
    }
}
