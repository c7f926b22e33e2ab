//! Claims: who makes a snapshot in vain again and again keeps the others, for a bounded time, from changing anything.
//!
//! Nothing but progress rests on it. A thread that is about to change something looks at one word, which is zero nearly
//! always and read by all alike. If it is not, it waits until the claim has ended, or until it has waited long enough:
//! then it ends the claim itself, since the claimant may have stopped.

use percpu::CacheLine;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Wait, WaitReason};

/// So long a change waits for a claim.
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
const PATIENCE: core::time::Duration = core::time::Duration::from_millis(100);
/// The clock is looked at once in this number of rounds.
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
const ROUNDS_BETWEEN_LOOKS: u32 = 16;
/// Without a clock: rounds, 100 ms where one takes 100 ns, as a pause does at most on all common processors.
#[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
const PATIENCE_ROUNDS: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 1_000_000 };

/// Says after each round whether a wait that begins now may go on.
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
fn patience() -> impl FnMut(u32) -> bool {
    let began = std::time::Instant::now();
    move |round| !round.is_multiple_of(ROUNDS_BETWEEN_LOOKS) || began.elapsed() < PATIENCE
}

#[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
fn patience() -> impl FnMut(u32) -> bool {
    |round| round < PATIENCE_ROUNDS
}

/// The claim of a domain, if there is one. Claimants are known by a number, from 1.
pub(crate) struct Claims {
    /// Atomic: the claimant; zero if there is none.
    claimant: CacheLine<AtomicU64>,
}

/// Keeps others from changing anything, until it is dropped.
pub(crate) struct Claim<'c> {
    claims: &'c Claims,
    own: u64,
}

impl Claims {
    pub(crate) fn new() -> Claims {
        Claims { claimant: CacheLine(AtomicU64::new(0)) }
    }

    /// Claims the domain. If somebody else has done so, that one's claim helps as well.
    pub(crate) fn claim(&self, own: u64) -> Claim<'_> {
        self.replace(0, own);
        Claim { claims: self, own }
    }

    /// Lets a claimant go first, if there is one and it is not the caller.
    #[inline]
    pub(crate) fn wait(&self, own: u64, host: &dyn Wait) {
        let claimant = self.seen();
        if claimant != 0 && claimant != own {
            self.wait_for(claimant, host);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for(&self, claimant: u64, host: &dyn Wait) {
        let (mut may_go_on, mut round) = (patience(), 0);
        // Once another one has claimed, this change has waited once.
        while self.seen() == claimant && may_go_on(round) {
            host.wait(WaitReason::Claim, round);
            round += 1;
        }
        self.replace(claimant, 0);
    }

    #[inline]
    fn seen(&self) -> u64 {
        // Relaxed, here and below: a claim orders nothing.
        self.claimant.0.load(Ordering::Relaxed)
    }

    fn replace(&self, old: u64, new: u64) {
        // If somebody else was quicker, all is well, too.
        let _ = self.claimant.0.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.replace(self.own, 0);
    }
}
