//! Flushing, epochs, and the queues on which objects wait whose count was seen to be zero.

use core::ptr::{self, NonNull};

use percpu::Core;
use sync::OwnWord;
use sync::atomic::{Ordering, fence};

use crate::cache::RefCache;
use crate::counted::{Counted, Verdict};

/// Objects of which this core saw the count become zero, oldest first.
pub(crate) struct Queue {
    head: OwnWord<*mut Counted>,
    tail: OwnWord<*mut Counted>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { head: OwnWord::new(ptr::null_mut()), tail: OwnWord::new(ptr::null_mut()) }
    }

    pub(crate) fn push(&self, object: NonNull<Counted>, epoch: u64) {
        // SAFETY: whoever queues an object owns its queue cells; it is alive.
        let counted = unsafe { object.as_ref() };
        counted.next.set(ptr::null_mut());
        counted.queued_in.set(epoch);
        let is_late = sync::mutant::planted("refcache: the tail comes before the link");
        let last = NonNull::new(self.tail.get());
        if is_late {
            self.tail.set(object.as_ptr());
        }
        match last {
            // SAFETY: objects on the queue are not freed.
            Some(last) => unsafe { last.as_ref() }.next.set(object.as_ptr()),
            None => self.head.set(object.as_ptr()),
        }
        // Behind the link: whoever takes the core over goes on to the end.
        self.tail.set(object.as_ptr());
    }

    /// Brings the tail of a core whose owner died to the end of the queue.
    pub(crate) fn repair_taken_over(&self) {
        let mut tail = if self.head.get().is_null() { ptr::null_mut() } else { self.tail.get() };
        if tail.is_null() {
            tail = self.head.get();
        }
        // SAFETY: objects on the queue are not freed.
        while let Some(next) = unsafe { tail.as_ref() }.and_then(|last| NonNull::new(last.next.get())) {
            tail = next.as_ptr();
        }
        self.tail.set(tail);
    }

    /// Takes the oldest object if it was queued at least `grace` epochs before `epoch`.
    fn pop_due(&self, epoch: u64, grace: u64) -> Option<NonNull<Counted>> {
        let object = NonNull::new(self.head.get())?;
        // SAFETY: objects on the queue are not freed.
        let counted = unsafe { object.as_ref() };
        if counted.queued_in.get() + grace > epoch {
            return None;
        }
        self.head.set(counted.next.get());
        if self.head.get().is_null() {
            self.tail.set(ptr::null_mut());
        }
        Some(object)
    }
}

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
        !self.own.get(core).queue.head.get().is_null()
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
