//! Flushing, epochs, and reviews of objects whose count was seen to be zero.

use core::ptr::NonNull;

use percpu::Core;
use sync::atomic::{Ordering, fence};

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
    /// Flushes the core's deltas, reviews what is due, and advances the epoch if all cores have flushed in it. `free`
    /// gets each object that is dead; it may count other objects.
    ///
    /// # Safety
    /// Called between the calls of the core: it holds no pointer to an object that it has not counted.
    pub unsafe fn maintain(&self, core: &Core<'_>, mut free: impl FnMut(&Core<'_>, NonNull<Counted>)) -> Maintained {
        let mut outcome = Maintained::default();
        // Acquire pairs with the release in `advance`: flushes of the epochs before are visible.
        let epoch = self.epoch.load(Ordering::Acquire);
        self.flush(core);
        // Release pairs with the acquire fence in `advance`. The epoch was read before the flush began.
        self.shared.get(core).flushed.store(epoch, Ordering::Release);
        let own = self.own.get(core);
        let grace = if sync::mutant::planted("refcache: review an epoch early") { 1 } else { 2 };
        while let Some(object) = own.queue.pop_due(epoch, grace) {
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
        outcome.advanced = self.advance();
        outcome.pending = self.has_pending(core);
        outcome
    }

    fn has_pending(&self, core: &Core<'_>) -> bool {
        !self.own.get(core).queue.is_empty()
    }

    fn advance(&self) -> bool {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Before the look at all cores: a core that came on-line meanwhile is seen, or sees all that was removed before.
        fence(Ordering::SeqCst);
        let all_flushed = self.shared.all().all(|(_, shared)| shared.flushed.load(Ordering::Relaxed) >= epoch);
        if !all_flushed && !sync::mutant::planted("refcache: epochs do not wait for flushes") {
            return false;
        }
        fence(Ordering::Acquire);
        self.epoch.compare_exchange(epoch, epoch + 1, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
