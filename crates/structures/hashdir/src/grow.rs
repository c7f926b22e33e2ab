//! Growth, bucket by bucket, run by maintenance; see the crate's head.

use core::ptr::{self, NonNull};

use commit::Tag;
use epoch::{Epochs, Guard};
use percpu::Core;
use sync::Wait;
use sync::atomic::Ordering;

use crate::dir::{ALIVE, DEAD, HashDir, KILLING, NOT_SETTLED};
use crate::entry::Entry;
use crate::table::{Bucket, KIND_TABLE, MAX_BUCKETS, RANK_BUCKET, RANK_GROW, Table};

/// By how much a table grows.
const GROWTH_FACTOR: usize = 4;

/// What a call of [`HashDir::grow`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Nothing asks for growth, or another core is at it, or it must wait for readers or memory.
    Idle,
    /// Buckets were moved, and more are left.
    Moving,
    /// The last bucket was moved.
    Done,
}

impl HashDir {
    /// Whether insertions met long chains, or growth is under way.
    #[inline]
    pub fn wants_growth(&self) -> bool {
        self.upkeep.crowded.load(Ordering::Relaxed) != 0
    }

    /// Moves up to `budget_buckets` buckets to a larger table. Never fails: without memory the chains stay long.
    pub fn grow<'g>(
        &'g self,
        epochs: &Epochs,
        guard: &'g Guard<'g>,
        wait: &impl Wait,
        budget_buckets: usize,
    ) -> Growth {
        if !self.wants_growth() {
            return Growth::Idle;
        }
        let Some(_lock) = self.upkeep.lock.try_lock(guard.core(), RANK_GROW) else {
            return Growth::Idle;
        };
        let table_pointer = self.table.load(Ordering::Acquire);
        // SAFETY: tables live as long as the guard; only we, with the lock, replace them.
        let table = unsafe { &*table_pointer };
        let Some(next) = self.next_table(table, epochs, guard.core()) else {
            return Growth::Idle;
        };
        // SAFETY: the next table is reached from this one, and becomes the directory's by us alone: it is not retired
        // in the meantime.
        let next = unsafe { next.as_ref() };
        let from = self.upkeep.moved.get();
        let to = table.bucket_count().min(from.saturating_add(budget_buckets.max(1)));
        for index in from..to {
            for target in (index..next.bucket_count()).step_by(table.bucket_count()) {
                // SAFETY: we hold the growth lock, so no one else makes segments; the target is below the next table's
                // number of buckets. Others learn of the buckets when this one is marked as moved.
                if unsafe { Table::ensure_segment(NonNull::from(next), guard.core(), target) }.is_err() {
                    self.upkeep.moved.set(index);
                    return Growth::Idle;
                }
            }
            let bucket = table.bucket(index);
            let _lock = bucket.lock.lock(guard.core(), RANK_BUCKET, wait);
            // The one that was at it before may have died: after the mark, or in the middle of the chain.
            if !bucket.head().1 {
                for target in (index..next.bucket_count()).step_by(table.bucket_count()) {
                    next.bucket(target).set_head(ptr::null_mut());
                    next.bucket(target).holds_nothing();
                }
                move_chain(bucket, table.parity, next);
            }
        }
        self.upkeep.moved.set(to);
        if to < table.bucket_count() {
            return Growth::Moving;
        }
        // A core that dies from here on leaves it to the heir to say since when readers find the new table.
        self.upkeep.settled_in.set(NOT_SETTLED);
        self.table.store(ptr::from_ref(next).cast_mut(), Ordering::Release);
        self.upkeep.settled_in.set(epochs.stamp());
        self.upkeep.crowded.store(0, Ordering::Relaxed);
        // SAFETY: new readers do not find the old table any more; its entries are in the new one. It is retired once, since the
        // directory's table is replaced once by each, under the growth lock.
        unsafe { guard.retire(Table::link(NonNull::from(table)), KIND_TABLE) };
        Growth::Done
    }

    fn next_table(&self, table: &Table, epochs: &Epochs, core: &Core<'_>) -> Option<NonNull<Table>> {
        if let Some(next) = NonNull::new(table.next.load(Ordering::Acquire)) {
            return Some(next);
        }
        // Readers in chains of the table before last would be led astray by new links of their parity.
        let readers_left = epochs.has_passed(self.upkeep.settled_in.get())
            || sync::mutant::planted("hashdir: growth does not wait for readers");
        if !readers_left || table.bucket_count() >= MAX_BUCKETS {
            return None;
        }
        let bucket_count = (table.bucket_count() * GROWTH_FACTOR).min(MAX_BUCKETS);
        let next = Table::allocate(core, bucket_count, 1 - table.parity).ok()?;
        self.upkeep.moved.set(0);
        table.next.store(next.as_ptr(), Ordering::Release);
        Some(next)
    }

    /// Finishes what a dead process left in this directory: entries that carry one of its tags are completed or undone,
    /// and bucket locks that name its core are freed.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner; `last` is what `Decisions::last` says of it; `removed`,
    /// whether the directory has lost its name for good.
    pub unsafe fn repair_taken_over<'g>(
        &'g self,
        epochs: &Epochs,
        guard: &'g Guard<'g>,
        last: (Tag, bool),
        removed: bool,
    ) {
        let core = guard.core();
        let mut table = self.table.load(Ordering::Acquire);
        // SAFETY: tables and entries live as long as the guard; chains whose lock names our core are ours.
        unsafe {
            while let Some(current) = table.as_ref() {
                for bucket in current.made_buckets() {
                    if bucket.lock.holder() == Some(core.index()) {
                        repair_chain(guard, bucket, current.parity, last);
                        bucket.lock.release_taken_over(core);
                    }
                }
                table = current.next.load(Ordering::Acquire);
            }
            let keeps = sync::mutant::planted("hashdir: an heir keeps the lock of growth");
            if self.upkeep.lock.holder() == Some(core.index()) && !keeps {
                // A removal that was not finished is undone unless it has happened; a growth goes on where it stood.
                let (from, to) = (KILLING, if removed { DEAD } else { ALIVE });
                let status = &self.status;
                status.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).ok();
                let is_settled = sync::mutant::planted("hashdir: an heir takes growth as settled");
                if self.upkeep.settled_in.get() == NOT_SETTLED && !is_settled {
                    self.upkeep.settled_in.set(epochs.stamp());
                }
                self.upkeep.lock.release_taken_over(core);
            }
        }
    }
}

/// With the bucket's lock held: links its entries into the next table, then marks it as moved.
fn move_chain(bucket: &Bucket, parity: usize, next: &Table) {
    let (mut head, _) = bucket.head();
    if sync::mutant::planted("hashdir: moved before it is linked") {
        bucket.mark_moved();
    }
    // SAFETY: the chain is ours, under its lock. Its entries' hashes lead to this bucket (the promise to `HashDir::new`), and so
    // to new buckets that the caller has made, which no one else uses before this one is marked.
    while let Some(entry) = unsafe { head.as_ref() } {
        let target = next.bucket(entry.hash() as usize);
        let (target_head, _) = target.head();
        entry.next(next.parity).store(target_head, Ordering::Relaxed);
        target.will_hold(entry.hash());
        target.set_head(head);
        head = entry.next(parity).load(Ordering::Relaxed);
    }
    bucket.mark_moved();
}

/// # Safety
/// The chain is the caller's.
unsafe fn repair_chain(guard: &Guard<'_>, bucket: &Bucket, parity: usize, (last, happened): (Tag, bool)) {
    let (head, _) = bucket.head();
    let mut before: Option<&Entry> = None;
    let mut walk = head;
    // SAFETY: the caller's promise.
    while let Some(entry) = unsafe { walk.as_ref() } {
        let next = entry.next(parity).load(Ordering::Relaxed);
        let (state_tag, inserting, value_tag) = entry.tags();
        if value_tag == Some(last) {
            entry.finish_replace(happened);
        }
        // Dead, but not unlinked; or marked by the last operation.
        let gone = match state_tag {
            None => !entry.is_present(),
            Some(tag) => tag == last && inserting != happened,
        };
        if gone {
            entry.set_dead();
            match before {
                Some(before) => before.next(parity).store(next, Ordering::Release),
                None => bucket.set_head(next),
            }
            // SAFETY: unlinked just now; it was linked, so it had not been retired.
            unsafe { guard.retire(Entry::link(NonNull::from(entry)), crate::KIND_ENTRY) };
        } else {
            if state_tag == Some(last) {
                entry.set_present();
            }
            before = Some(entry);
        }
        walk = next;
    }
}
