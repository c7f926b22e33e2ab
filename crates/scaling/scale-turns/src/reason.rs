//! What threads wait for, and its words.

use std::fmt;

/// What a thread waits for; locks and the like by their address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The first operations of all cores.
    AllCores,
    /// A mutex.
    Mutex(usize),
    /// A lock for readers and writers.
    ReadWriteLock(usize),
    /// A spin lock.
    SpinLock(usize),
    /// A condition variable.
    Condition(usize),
    /// A barrier.
    Barrier(usize),
    /// A semaphore.
    Semaphore(usize),
    /// A word of memory (futex).
    Word(usize),
    /// The end of the thread in this place.
    Thread(usize),
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, address) = match self {
            Reason::AllCores => return formatter.write_str("the first operations of all cores"),
            Reason::Thread(place) => return write!(formatter, "the end of thread {place}"),
            Reason::Mutex(address) => ("mutex", address),
            Reason::ReadWriteLock(address) => ("lock of readers and writers", address),
            Reason::SpinLock(address) => ("spin lock", address),
            Reason::Condition(address) => ("condition variable", address),
            Reason::Barrier(address) => ("barrier", address),
            Reason::Semaphore(address) => ("semaphore", address),
            Reason::Word(address) => ("futex", address),
        };
        write!(formatter, "the {what} at {address:#x}")
    }
}
