//! Removing a directory: nothing can be inserted any more, once it has been seen to be empty.

use epoch::Guard;
use percpu::{Core, CoreLockGuard};
use sync::Wait;
use sync::atomic::{Ordering, fence};

use crate::dir::{ALIVE, DEAD, HashDir, KILLING};
use crate::table::{RANK_BUCKET, RANK_GROW, Table};

/// The directory has names in it, or is dead already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEmpty {
    /// It has names.
    HasNames,
    /// Somebody else has removed it.
    Dead,
}

/// An empty directory that takes no names. Dropping it lets the directory live on.
pub struct Killing<'d> {
    dir: &'d HashDir,
    _lock: CoreLockGuard<'d>,
}

impl HashDir {
    /// Whether no name exists, looked at bucket by bucket without writing.
    pub fn is_empty(&self, guard: &Guard<'_>) -> bool {
        let mut empty = true;
        self.list(guard, crate::FIRST_COOKIE, |_| {
            empty = false;
            false
        });
        empty
    }

    /// Begins the removal of an empty directory. Callers ask [`HashDir::is_empty`] first, which writes nothing.
    /// Must be called without holding a bucket's lock.
    pub fn begin_kill<'d>(&'d self, guard: &'d Guard<'d>, wait: &impl Wait) -> Result<Killing<'d>, NotEmpty> {
        let core: &'d Core<'d> = guard.core();
        // Keeps growth and other kills away.
        let lock = self.upkeep.lock.lock(core, RANK_GROW, wait);
        if self.status.load(Ordering::Relaxed) == DEAD {
            return Err(NotEmpty::Dead);
        }
        self.status.store(KILLING, Ordering::Relaxed);
        // An insertion looks at the status under its bucket's lock: before our turn with that lock, and we see what it
        // inserted; or after, and it sees the status.
        fence(Ordering::SeqCst);
        let killing = Killing { dir: self, _lock: lock };
        // SAFETY: tables live as long as the guard; growth is kept away.
        let table = unsafe { &*self.table.load(Ordering::Acquire) };
        if self.table_is_empty(table, core, wait) { Ok(killing) } else { Err(NotEmpty::HasNames) }
    }

    fn table_is_empty(&self, table: &Table, core: &Core<'_>, wait: &impl Wait) -> bool {
        let next = table.next.load(Ordering::Acquire);
        // SAFETY: as in `begin_kill`. A growth that has begun leaves two tables.
        let next_is_empty = unsafe { next.as_ref() }.is_none_or(|next| self.table_is_empty(next, core, wait));
        next_is_empty
            && table.made_buckets().all(|bucket| {
                let _lock = (!sync::mutant::planted("hashdir: kill without bucket locks"))
                    .then(|| bucket.lock.lock(core, RANK_BUCKET, wait));
                let (head, moved) = bucket.head();
                moved || head.is_null()
            })
    }
}

impl Killing<'_> {
    /// Makes the end final: the directory is dead.
    pub fn finish(self) {
        self.dir.status.store(DEAD, Ordering::Release);
    }
}

impl Drop for Killing<'_> {
    fn drop(&mut self) {
        if self.dir.status.load(Ordering::Relaxed) == KILLING {
            self.dir.status.store(ALIVE, Ordering::Release);
        }
    }
}
