//! Decisions by which other stores decide, too: one operation then changes things in all of them.
#![allow(unsafe_code, reason = "what others rely on for their memory is promised by an `unsafe impl`")]

use crate::Decisions;

/// What keeps decisions for stores of others.
///
/// # Safety
/// `decisions` gives the same ones each time; they are there as long as the value is, wherever it was moved.
pub unsafe trait Keeper: Send + Sync {
    /// The decisions.
    fn decisions(&self) -> &Decisions;

    /// Spends a little time, so that another thread decides its operation; `round` counts from 0.
    fn wait(&self, round: u32);
}
