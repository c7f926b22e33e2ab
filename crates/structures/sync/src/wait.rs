//! Waiting through a trait: the structures never decide by themselves how a thread spends its time.
//!
//! In a library the caller yields to the operating system, in a kernel it may halt, under the tracer it executes
//! `pause`, and in a model it must tell the scheduler that another thread has to run.

use crate::atomic::AtomicU32;

/// What a waiter waits for: given to [`Wait::wait`], so that a caller can choose how, and a debugger can say why.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A lock held by the core with this index.
    Lock {
        /// Index of the core that held the lock when it was looked at.
        holder: u16,
    },
    /// Bytes in a pipe, or room for some. The core is not in a call: it may maintain.
    Pipe,
    /// The end of a lock of a file. The core is not in a call.
    FileLock,
    /// The end of a claim of somebody who has lost again and again: for a bounded time.
    Claim,
    /// An operation of another core that is past its point of no return, or about to be undone.
    Operation,
    /// Another answer than one that somebody has got. It may never come.
    Answer,
}

/// How a caller waits for another core.
///
/// `round` counts from 0 within one wait, so that an implementation can spin first and yield or sleep later. Returning
/// is always right: the structure looks again.
pub trait Wait {
    /// Spends a little time, so that the other core gets on.
    fn wait(&self, reason: WaitReason, round: u32);

    /// Spends time, at best until [`Wait::wake`] is called for this word, and none if the word is not `seen` any more. A host
    /// without a way to sleep on a word waits as always.
    fn wait_while(&self, _word: &AtomicU32, _seen: u32, reason: WaitReason, round: u32) {
        self.wait(reason, round);
    }

    /// Ends all waits for a word that has changed, also those of other processes that share its memory.
    fn wake(&self, _word: &AtomicU32) {}
}

/// Spins with the processor's hint; in a model, yields to the other threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Wait for Spin {
    #[inline]
    fn wait(&self, _reason: WaitReason, _round: u32) {
        #[cfg(not(any(loom, shuttle, virtual_cores)))]
        core::hint::spin_loop();
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(shuttle)]
        crate::scheduled::yield_now();
        #[cfg(virtual_cores)]
        crate::turns::wait();
    }
}
