//! Who runs a process, and how far its end has come: what its heir looks at (`lives.rs`).

use sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How far the end of a process has come.
pub(crate) const RUNS: u32 = 0;
pub(crate) const EMPTIED: u32 = 1;
pub(crate) const TOLD: u32 = 2;

/// Who runs a process, and how far its end has come.
pub(crate) struct Life {
    /// Immutable: its place in the table.
    pub(crate) place: u64,
    /// Atomic: the number of the owner that runs it.
    pub(crate) runner: AtomicU64,
    /// Atomic: whether it was handed over to that owner, which has not received it.
    pub(crate) on_its_way: AtomicU32,
    /// Written by who ends the process.
    pub(crate) stage: AtomicU32,
}

impl Life {
    /// Who runs the process.
    #[cfg(feature = "std")]
    pub(crate) fn runner(&self) -> Option<percpu::OwnerId> {
        percpu::OwnerId::new(self.runner.load(Ordering::Acquire))
    }

    /// Whether the end has come so far.
    pub(crate) fn is(&self, stage: u32) -> bool {
        self.stage.load(Ordering::Acquire) == stage
    }

    /// For an heir: all that was done before has been done.
    pub(crate) fn enter(&self, stage: u32) {
        self.stage.store(stage, Ordering::Release);
    }
}
