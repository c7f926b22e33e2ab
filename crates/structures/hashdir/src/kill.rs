//! Removing a directory: nothing can be inserted any more, once it has been seen to be empty.

use core::ptr;

use commit::{Anyone, Tag, Waiting};
use epoch::Guard;
use percpu::{Core, CoreLockGuard};
use sync::Wait;
use sync::atomic::{Ordering, fence};

use crate::dir::{ALIVE, DEAD, HashDir, KILLING};
use crate::entry::Entry;
use crate::table::{Bucket, RANK_BUCKET, RANK_GROW, Table};

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
        !self.has_entry(guard, |entry| entry.exists(self.decisions()))
    }

    /// Whether there is such an entry, looked at bucket by bucket: a chain that moves in the meantime is found in its table or, later,
    /// in the next one.
    fn has_entry(&self, _guard: &Guard<'_>, is_such: impl Fn(&Entry) -> bool) -> bool {
        let mut table = self.table.load(Ordering::Acquire);
        // SAFETY: tables and entries live as long as the guard.
        unsafe {
            while let Some(current) = table.as_ref() {
                let has_such = |bucket: &Bucket| {
                    let (head, moved) = bucket.head();
                    let mut walk = if moved { ptr::null_mut() } else { head };
                    while let Some(entry) = walk.as_ref() {
                        if is_such(entry) {
                            return true;
                        }
                        walk = entry.next(current.parity).load(Ordering::Acquire);
                    }
                    false
                };
                if current.made_buckets().any(has_such) {
                    return true;
                }
                table = current.next.load(Ordering::Acquire);
            }
        }
        false
    }

    /// Whether the directory was killed, for the core whose operation may be about to do so; none while another core is
    /// about to.
    pub fn is_dead_beside_own(&self, core: &Core<'_>) -> Option<bool> {
        match self.status.load(Ordering::Acquire) {
            KILLING => (self.upkeep.lock.holder() == Some(core.index())).then_some(false),
            status => Some(status == DEAD),
        }
    }

    /// Lets a directory that no one else knows take names, or none, as if it were dead.
    pub fn take_names(&self, takes: bool) {
        self.status.store(if takes { ALIVE } else { DEAD }, Ordering::Release);
    }

    /// Begins the removal of an empty directory. Callers ask [`HashDir::is_empty`] first, which writes nothing.
    /// Must be called without holding a bucket's lock.
    ///
    /// # Errors
    /// If it has names, or is dead already.
    pub fn begin_kill<'d>(&'d self, guard: &'d Guard<'d>, wait: &impl Wait) -> Result<Killing<'d>, NotEmpty> {
        let killing = self.close(guard, wait)?;
        if killing.pass_buckets(guard, wait) { Ok(killing) } else { Err(NotEmpty::HasNames) }
    }

    /// Begins the removal of a directory whose last names the same operation removes: no others come from now on.
    /// [`Killing::is_left_by`] tells, once these are marked, whether it is empty without them. Must be called without
    /// holding a bucket's lock; of several directories in the order of their addresses.
    ///
    /// # Errors
    /// If it is dead already.
    pub fn begin_kill_with_names<'d>(
        &'d self,
        guard: &'d Guard<'d>,
        wait: &impl Wait,
    ) -> Result<Killing<'d>, NotEmpty> {
        let killing = self.close(guard, wait)?;
        killing.pass_buckets(guard, wait);
        Ok(killing)
    }

    fn close<'d>(&'d self, guard: &'d Guard<'d>, wait: &impl Wait) -> Result<Killing<'d>, NotEmpty> {
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
        Ok(Killing { dir: self, _lock: lock })
    }
}

impl Killing<'_> {
    /// Takes a turn with each bucket's lock; whether none has a name.
    fn pass_buckets(&self, guard: &Guard<'_>, wait: &impl Wait) -> bool {
        // SAFETY: tables live as long as the guard; `close` has taken the lock of growth, so this one stays the directory's.
        let table = unsafe { &*self.dir.table.load(Ordering::Acquire) };
        table_is_empty(table, guard.core(), wait)
    }

    /// Whether all names that exist are about to be removed by this operation.
    pub fn is_left_by(&self, guard: &Guard<'_>, tag: Tag, wait: &impl Wait) -> bool {
        let (decisions, viewer) = (self.dir.decisions(), Waiting(Anyone, wait));
        // Growth is kept away.
        !self.dir.has_entry(guard, |entry| !entry.is_removed_by(tag) && entry.exists_for(decisions, viewer))
    }

    /// Makes the end final: the directory is dead.
    pub fn finish(self) {
        self.dir.status.store(DEAD, Ordering::Release);
    }
}

fn table_is_empty(table: &Table, core: &Core<'_>, wait: &impl Wait) -> bool {
    let next = table.next.load(Ordering::Acquire);
    // SAFETY: the caller keeps growth away, so the next table is not retired. A growth that has begun leaves two tables.
    let next_is_empty = unsafe { next.as_ref() }.is_none_or(|next| table_is_empty(next, core, wait));
    table.made_buckets().fold(next_is_empty, |is_empty, bucket| {
        let _lock = (!sync::mutant::planted("hashdir: kill without bucket locks"))
            .then(|| bucket.lock.lock(core, RANK_BUCKET, wait));
        let (head, moved) = bucket.head();
        is_empty & (moved || head.is_null())
    })
}

impl Drop for Killing<'_> {
    fn drop(&mut self) {
        if self.dir.status.load(Ordering::Relaxed) == KILLING {
            self.dir.status.store(ALIVE, Ordering::Release);
        }
    }
}
