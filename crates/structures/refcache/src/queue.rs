//! The queue on which objects wait for their review whose count a core saw become zero.

use core::ptr::{self, NonNull};

use sync::OwnWord;

use crate::counted::Counted;

/// Objects of which this core saw the count become zero, oldest first. An object on a queue is not freed: only its review
/// frees it, for which it is taken out; and it is on one queue at most, since its word says that it is queued.
pub(crate) struct Queue {
    head: OwnWord<*mut Counted>,
    tail: OwnWord<*mut Counted>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { head: OwnWord::new(ptr::null_mut()), tail: OwnWord::new(ptr::null_mut()) }
    }

    pub(crate) fn push(&self, object: NonNull<Counted>, epoch: u64) {
        // SAFETY: it is alive, since its review is still to come. Its queue cells are ours: our exchange of its word queued it.
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
        // After the link: one that takes the core over goes on to the end.
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
    pub(crate) fn pop_due(&self, epoch: u64, grace: u64) -> Option<NonNull<Counted>> {
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

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.get().is_null()
    }
}
