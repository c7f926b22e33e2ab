//! Claims: who makes a snapshot in vain again and again keeps the others, for a bounded time, from changing anything.
//!
//! Nothing but progress rests on it. Whoever is about to change something looks at one word, which is zero nearly always and
//! read by all alike. If it is not, it waits until the claim has ended, or until it has waited long enough: then it ends the
//! claim itself, since the claimant may have stopped.

use percpu::CacheLine;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Spin, Wait, WaitReason};

use crate::domain::Here;

/// So many pauses a change waits for a claim: at most 100 ms where one takes 100 ns or less, as on all common processors.
const PATIENCE: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 1_000_000 };

/// The claim of a domain, if there is one.
pub(crate) struct Claims {
    /// Atomic: the claimant's number, from 1; zero if there is none.
    claimant: CacheLine<AtomicU64>,
}

impl Claims {
    pub(crate) fn new() -> Claims {
        Claims { claimant: CacheLine(AtomicU64::new(0)) }
    }
}

/// Keeps others from changing anything, until it is dropped.
pub(crate) struct Claim<'h, 'd>(&'h Here<'d>);

impl<'d> Here<'d> {
    fn claimant(&self) -> u64 {
        self.number() as u64 + 1
    }

    /// Claims the domain. If somebody else has done so, that one's claim helps as well.
    pub(crate) fn claim(&self) -> Claim<'_, 'd> {
        let word = &self.domain.claims.claimant.0;
        // Relaxed, here and below: a claim orders nothing.
        let _ = word.compare_exchange(0, self.claimant(), Ordering::Relaxed, Ordering::Relaxed);
        Claim(self)
    }

    /// Lets a claimant go first.
    #[inline]
    pub(crate) fn wait_for_claims(&self) {
        if self.domain.claims.claimant.0.load(Ordering::Relaxed) != 0 {
            self.wait_for_a_claim();
        }
    }

    #[cold]
    fn wait_for_a_claim(&self) {
        let word = &self.domain.claims.claimant.0;
        let claimant = word.load(Ordering::Relaxed);
        for round in 0..PATIENCE {
            // Another one has claimed since: this change has waited once.
            if word.load(Ordering::Relaxed) != claimant || claimant == self.claimant() {
                return;
            }
            Spin.wait(WaitReason::Claim, round);
        }
        let _ = word.compare_exchange(claimant, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Claim<'_, '_> {
    fn drop(&mut self) {
        let word = &self.0.domain.claims.claimant.0;
        let _ = word.compare_exchange(self.0.claimant(), 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}
