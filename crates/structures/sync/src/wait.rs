//! Waiting through a trait: the structures never decide by themselves how a thread spends its time.
//!
//! In a library the caller yields to the operating system, in a kernel it may halt, under the tracer it executes
//! `pause`, and in a model it must tell the scheduler that another thread has to run.

use crate::atomic::AtomicU32;

/// What a waiter waits for: told to [`Wait::wait`], so that a caller can choose how, and a debugger can say why.
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

    /// Sleeps as long as no one has moved a word on from this value and [woken](Wait::wake) those who sleep at it, or for a
    /// while. Who cannot sleep waits.
    fn sleep(&self, word: &AtomicU32, value: u32, round: u32) {
        let _ = (word, value);
        self.wait(WaitReason::Answer, round);
    }

    /// Wakes those who sleep at a word. It was moved on before.
    fn wake(&self, word: &AtomicU32) {
        let _ = word;
    }
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
