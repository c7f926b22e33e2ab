//! The one way to memory that domains share.
//!
//! A **domain** is a set of cores that are coherent with each other. What it writes reaches another domain only if it is
//! written back by the one and invalidated by the other; [`Memory`] has the five steps, and a few declarations that cost
//! nothing on real memory and let the emulator judge.

use core::fmt;

/// What can go wrong with memory itself. All later accesses fail as well once it was not [`Fault::OutOfBounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access beyond the end.
    OutOfBounds {
        /// Offset of its first byte.
        at: usize,
        /// Its bytes.
        length: usize,
        /// Bytes of the memory.
        size_bytes: usize,
    },
    /// The file below the memory was made shorter while it was mapped.
    Truncated,
    /// This domain has crashed (the emulator's doing).
    Crashed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfBounds { at, length, size_bytes } => {
                write!(f, "expected an access within the {size_bytes} bytes of the pool, got {length} bytes at {at}")
            }
            Fault::Truncated => {
                f.write_str("expected the pool's file to keep its size, but it was made shorter: create the pool again")
            }
            Fault::Crashed => f.write_str("this domain has crashed: join again"),
        }
    }
}

impl core::error::Error for Fault {}

/// How domains use lines. What is not declared is [`Use::Data`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// Accesses of different domains are ordered by messages.
    #[default]
    Data,
    /// One domain writes, another reads at any time, takes each version once and says so ([`Memory::accept`]) before the next is
    /// written. Versions validate themselves.
    Messages {
        /// Number of the domain that writes.
        writer: usize,
        /// Number of the domain that reads.
        reader: usize,
    },
    /// One domain writes, all read at any time, and take what is newest. Versions validate themselves.
    Register {
        /// Number of the domain that writes.
        writer: usize,
    },
    /// Nothing is checked: what the self-test of coherence reads is wrong on purpose.
    Unchecked,
}

/// Memory that domains share, as one domain sees it. Offsets and lengths are bytes.
///
/// Every access can fail with [`Fault::OutOfBounds`], and with what has become of the memory.
pub trait Memory {
    /// Its bytes.
    fn size_bytes(&self) -> usize;

    /// Reads through this domain's cache. Pieces of eight aligned bytes are whole, larger ones may mix versions.
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault>;

    /// Writes into this domain's cache: others see it at any time from now on, line by line in any order, or never.
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault>;

    /// Begins to write lines back, in any order; they have reached memory after the next [`Memory::drain`].
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn write_back(&self, at: usize, length: usize) -> Result<(), Fault>;

    /// Forgets lines, so that the next read is of memory as it is then or later. It is over when the call returns. A line that
    /// this domain has written and not written back is written back (users of x86-64 and aarch64 have nothing else), which
    /// undoes what another domain has written there: no domain may do so.
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault>;

    /// Waits until all write-backs of this thread have reached memory.
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn drain(&self) -> Result<(), Fault>;

    /// Says how lines will be used; each of a pool's users says the same.
    ///
    /// # Errors
    /// A [`Fault`].
    fn declare(&self, at: usize, length: usize, used: Use) -> Result<(), Fault> {
        in_bounds(at, length, self.size_bytes())?;
        let _ = used;
        Ok(())
    }

    /// [`Memory::write`] of a version that has a number above 0, which readers must take it for.
    ///
    /// # Errors
    /// A [`Fault`].
    #[track_caller]
    fn write_version(&self, at: usize, bytes: &[u8], version: u64) -> Result<(), Fault> {
        let _ = version;
        self.write(at, bytes)
    }

    /// Says that the caller has validated what it last read of these lines and takes it for this version, whole. From here on
    /// it knows what the writer knew. 0: a version without a number.
    #[track_caller]
    fn accept(&self, at: usize, length: usize, version: u64) {
        let _ = (at, length, version);
    }

    /// Says that others now rely on all that this domain has written for them to read at any time: it is in memory.
    #[track_caller]
    fn promise(&self) {}

    /// Whether a domain is known to have ended: it writes nothing any more, and all that it has written can be read. Memory that
    /// knows of no domains knows of no end.
    fn has_left(&self, domain: usize) -> bool {
        let _ = domain;
        false
    }

    /// Says that this domain sends message `number` of a channel that is not in the memory.
    fn sent(&self, channel: u64, number: u64) {
        let _ = (channel, number);
    }

    /// Says that this domain has received message `number` of a channel that is not in the memory.
    fn received(&self, channel: u64, number: u64) {
        let _ = (channel, number);
    }
}

/// Whether an access lies within memory.
///
/// # Errors
/// [`Fault::OutOfBounds`].
pub fn in_bounds(at: usize, length: usize, size_bytes: usize) -> Result<(), Fault> {
    match at.checked_add(length) {
        Some(end) if end <= size_bytes => Ok(()),
        _ => Err(Fault::OutOfBounds { at, length, size_bytes }),
    }
}

/// What stands for memory is memory.
macro_rules! delegate {
    ($memory:ident: $kind:ty) => {
        impl<$memory: Memory + ?Sized> Memory for $kind {
            fn size_bytes(&self) -> usize {
                (**self).size_bytes()
            }

            #[track_caller]
            fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
                (**self).read(at, into)
            }

            #[track_caller]
            fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
                (**self).write(at, bytes)
            }

            #[track_caller]
            fn write_back(&self, at: usize, length: usize) -> Result<(), Fault> {
                (**self).write_back(at, length)
            }

            #[track_caller]
            fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault> {
                (**self).invalidate(at, length)
            }

            #[track_caller]
            fn drain(&self) -> Result<(), Fault> {
                (**self).drain()
            }

            fn declare(&self, at: usize, length: usize, used: Use) -> Result<(), Fault> {
                (**self).declare(at, length, used)
            }

            #[track_caller]
            fn write_version(&self, at: usize, bytes: &[u8], version: u64) -> Result<(), Fault> {
                (**self).write_version(at, bytes, version)
            }

            #[track_caller]
            fn accept(&self, at: usize, length: usize, version: u64) {
                (**self).accept(at, length, version);
            }

            #[track_caller]
            fn promise(&self) {
                (**self).promise();
            }

            fn has_left(&self, domain: usize) -> bool {
                (**self).has_left(domain)
            }

            fn sent(&self, channel: u64, number: u64) {
                (**self).sent(channel, number);
            }

            fn received(&self, channel: u64, number: u64) {
                (**self).received(channel, number);
            }
        }
    };
}

delegate!(M: &M);
#[cfg(any(feature = "emulated", feature = "files"))]
delegate!(M: std::sync::Arc<M>);
