//! Flushing, its reports, and reviews of objects whose count was seen to be zero.

use core::ptr::NonNull;

use percpu::Core;
use rounds::Report;

use crate::cache::RefCache;
use crate::counted::{Counted, Verdict};

/// What one call of [`RefCache::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Objects found dead and given to the callback.
    pub freed: usize,
    /// Whether the epoch moved.
    pub advanced: bool,
    /// Whether objects still wait for their review on this core.
    pub pending: bool,
}

impl RefCache {
    /// Flushes the core's deltas, reports that, and reviews what is due; the epoch advances when all cores have. `free`
    /// gets each object that is dead; it may count other objects.
    ///
    /// # Safety
    /// Called between the calls of the core: it holds no pointer to an object that it has not counted.
    pub unsafe fn maintain(&self, core: &Core<'_>, free: impl FnMut(&Core<'_>, NonNull<Counted>)) -> Maintained {
        self.flush(core);
        // SAFETY: flushed just now; the rest is the caller's promise.
        unsafe {
            let report = self.report(core);
            self.review(core, report, free)
        }
    }

    /// The second part of [`RefCache::maintain`], after [`RefCache::flush`], for a core that reports to several at one
    /// moment.
    ///
    /// # Safety
    /// The core has changed no count since it has flushed; the rest as there.
    pub unsafe fn report(&self, core: &Core<'_>) -> Report {
        let own = self.own.get(core);
        // No one can tell for another core that it has flushed.
        let report = self.rounds.report(core, &own.reporter, None);
        if sync::mutant::planted("refcache: epochs do not wait for flushes") {
            // Until it waits for no one.
            for _ in 0..2 {
                self.rounds.report(core, &own.reporter, Some(&|_, _| true));
            }
        }
        own.next_flush.set(report.round + 1);
        report
    }

    /// The third part, with what came of the second.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn review(
        &self,
        core: &Core<'_>,
        report: Report,
        mut free: impl FnMut(&Core<'_>, NonNull<Counted>),
    ) -> Maintained {
        let own = self.own.get(core);
        let mut outcome = Maintained { advanced: report.advanced, ..Maintained::default() };
        let grace = if sync::mutant::planted("refcache: review an epoch early") { 1 } else { 2 };
        for (queue, grace) in own.queues.iter().zip([grace, grace + 1]) {
            while let Some(object) = queue.pop_due(report.round, grace) {
                // SAFETY: objects on the queue are not freed.
                let counted = unsafe { object.as_ref() };
                match counted.review() {
                    Verdict::Dead => {
                        free(core, object);
                        outcome.freed += 1;
                    }
                    Verdict::ZeroButDirty => self.queue(own, object, counted),
                    Verdict::Alive | Verdict::BecameZero => {}
                }
            }
        }
        outcome.pending = self.has_pending(core);
        outcome
    }

    fn has_pending(&self, core: &Core<'_>) -> bool {
        self.own.get(core).queues.iter().any(|queue| !queue.is_empty())
    }
}
