//! The one place where the concurrent structures get their atomics, their way to wait, and their planted faults.
//!
//! **Idea.** A structure that is written against this crate runs unchanged in four worlds: ordinary builds (`core`'s
//! atomics, `no_std`), model checking (`--cfg loom`: loom's atomics, all executions of a few accesses), random schedules
//! (`--cfg shuttle`: one thread at a time, one execution of as many accesses as one likes, the same from the same seed),
//! and sanitizers. A fuzzer (`--cfg fuzzing`) has `core`'s atomics, and faults that it can plant.
//!
//! **ThreadSanitizer** knows nothing of fences, and would report what they order as races. Under `--cfg tsan` a fence is
//! a read-modify-write of one word: it orders more than a fence does, so that of the races that only a wrong fence makes
//! none is found there. That is what the models are for.
//!
//! **Planted faults.** A model that cannot fail proves nothing. A structure asks [`mutant::planted`] at the places
//! where a fence, a recheck or an ordering is essential; the answer is the constant `false` in ordinary builds; in
//! the others a test switches one fault on and must then fail.
//!
//! **Deaths.** Under `--cfg shuttle` a process can be ended before each of its accesses to atomics, and before each of its
//! stores to words of its own ([`OwnWord`]), so that what an heir finds there can be tested.
//!
//! **Virtual cores.** Under `--cfg virtual_cores` the cores that a measurement needs are coroutines of one thread, which hand over
//! to each other before accesses to atomics.
//!
//! Models ([`model`]) are explored whole by `RUSTFLAGS="--cfg loom" cargo test -p CRATE --release --test models`; under
//! `--cfg shuttle` a thousand executions of each are drawn.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(any(loom, shuttle, fuzzing, virtual_cores)), no_std)]
#![forbid(unsafe_code)]

#[cfg(any(shuttle, virtual_cores))]
mod interposed;
mod own;
mod wait;

#[cfg(any(loom, shuttle))]
pub mod model;
#[cfg(shuttle)]
mod overtaking;
#[cfg(any(loom, shuttle, fuzzing))]
mod planted;
#[cfg(shuttle)]
pub mod preemptions;
#[cfg(shuttle)]
pub mod scheduled;
#[cfg(virtual_cores)]
pub mod turns;

pub use own::{OwnWord, Word};
pub use wait::{Spin, Wait, WaitReason};

/// Atomic types and fences: `core`'s, or loom's in a model.
pub mod atomic {
    #[cfg(any(shuttle, virtual_cores))]
    pub use crate::interposed::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    #[cfg(tsan)]
    pub use crate::tsan_fence::fence;
    #[cfg(not(any(loom, shuttle, tsan, virtual_cores)))]
    pub use core::sync::atomic::fence;
    #[cfg(not(any(loom, shuttle, virtual_cores)))]
    pub use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}

#[cfg(tsan)]
mod tsan_fence {
    use core::sync::atomic::{AtomicU64, Ordering};

    static FENCES: AtomicU64 = AtomicU64::new(0);

    /// A fence, as ThreadSanitizer sees it.
    pub fn fence(_: Ordering) {
        FENCES.fetch_add(1, Ordering::SeqCst);
    }
}

/// Faults that tests plant to prove that they would be caught.
pub mod mutant {
    /// Whether the fault `name` is planted: never in ordinary builds.
    #[cfg(not(any(loom, shuttle, fuzzing)))]
    #[inline(always)]
    pub const fn planted(_name: &str) -> bool {
        false
    }

    #[cfg(any(loom, shuttle, fuzzing))]
    pub use crate::planted::{must_be_caught, plant, planted};
}
