//! Changes: lock a bucket or two, prepare, and finish once the operation is decided.

use core::ptr::{self, NonNull};

use commit::{Observed, Tag};
use epoch::Guard;
use percpu::{CoreLockGuard, OutOfMemory};
use sync::atomic::{Ordering, fence};
use sync::{Wait, WaitReason};

use crate::dir::{ALIVE, DEAD, HashDir, KILLING, find_in_chain};
use crate::entry::Entry;
use crate::key::{Key, TIE_BITS, position};
#[cfg(debug_assertions)]
use crate::table::Table;
use crate::table::{Bucket, KIND_ENTRY, RANK_BUCKET};

/// A chain with this many entries makes the directory ask for growth.
const CROWDED_ENTRIES: usize = if cfg!(loom) { 4 } else { 6 };
/// Ties 0 to 3 are left for what a listing shows before all names.
pub(crate) const FIRST_TIE: u8 = 4;

/// Why a name cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The directory was removed.
    Dead,
    /// The directory is being removed: drop the lock, call [`HashDir::wait_for_kill`], and start again.
    Killing,
    /// No memory, or no place left among names of equal hash.
    OutOfMemory,
}

impl From<OutOfMemory> for InsertError {
    fn from(_: OutOfMemory) -> InsertError {
        InsertError::OutOfMemory
    }
}

/// A bucket's chain. All that changes it asks for the bucket's lock to be held.
#[derive(Clone, Copy)]
pub(crate) struct Chain<'g> {
    pub(crate) dir: &'g HashDir,
    pub(crate) bucket: &'g Bucket,
    parity: usize,
    guard: &'g Guard<'g>,
    #[cfg(debug_assertions)]
    table: &'g Table,
}

/// A bucket that the core has locked.
pub struct Locked<'g> {
    chain: Chain<'g>,
    _lock: CoreLockGuard<'g>,
}

/// Two buckets that the core has locked, or one if both names are in it.
pub struct LockedPair<'g> {
    first: Locked<'g>,
    second: Option<Locked<'g>>,
}

/// A name in a bucket that the core has locked, with its value. What it is changed by consumes it.
pub struct LockedEntry<'l> {
    chain: Chain<'l>,
    entry: &'l Entry,
    value: u64,
}

/// What was done to an entry on condition that an operation commits. Dropping it asks the operation, which, if it can be
/// revoked, then is.
#[must_use = "a prepared change must be finished"]
pub struct Prepared<'l> {
    chain: Chain<'l>,
    entry: NonNull<Entry>,
    change: Change,
}

/// What is prepared of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Remove,
    Replace,
}

impl HashDir {
    /// Locks the bucket of a name.
    #[inline]
    pub fn lock<'g>(&'g self, guard: &'g Guard<'g>, key: &Key<'_>, wait: &impl Wait) -> Locked<'g> {
        loop {
            let chain = Chain::of(self, guard, key);
            let lock = chain.lock(wait);
            // The chain may have moved before we had the lock.
            if !chain.has_moved() {
                return Locked { chain, _lock: lock };
            }
        }
    }

    /// Asks for the line of the lock that [`HashDir::lock`] will take, so that it comes while the caller does other work.
    #[inline]
    pub fn prefetch_lock(&self, guard: &Guard<'_>, key: &Key<'_>) {
        percpu::prefetch_for_writing(ptr::from_ref(&self.locate(guard, key.hash).1.lock).cast(), 1);
    }

    /// Waits until a kill that an insertion met has ended either way. Holds no lock.
    pub fn wait_for_kill(&self, wait: &impl Wait) {
        let mut round = 0;
        while self.status.load(Ordering::Acquire) == KILLING {
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }
}

/// Locks the buckets of two names, of one directory or of two, in the order of their addresses.
#[inline]
pub fn lock_two<'g>(
    guard: &'g Guard<'g>,
    first: (&'g HashDir, &Key<'_>),
    second: (&'g HashDir, &Key<'_>),
    wait: &impl Wait,
) -> LockedPair<'g> {
    loop {
        let (first_chain, second_chain) = (Chain::of(first.0, guard, first.1), Chain::of(second.0, guard, second.1));
        let (first_lock, second_lock) = if ptr::eq(first_chain.bucket, second_chain.bucket) {
            (first_chain.lock(wait), None)
        } else if first_chain.order() < second_chain.order() {
            let first_lock = first_chain.lock(wait);
            (first_lock, Some(second_chain.lock(wait)))
        } else {
            let second_lock = second_chain.lock(wait);
            (first_chain.lock(wait), Some(second_lock))
        };
        if first_chain.has_moved() || second_chain.has_moved() {
            continue;
        }
        return LockedPair {
            first: Locked { chain: first_chain, _lock: first_lock },
            second: second_lock.map(|lock| Locked { chain: second_chain, _lock: lock }),
        };
    }
}

impl<'g> LockedPair<'g> {
    /// The bucket of the first name.
    #[inline]
    pub fn first(&self) -> &Locked<'g> {
        &self.first
    }

    /// The bucket of the second name.
    #[inline]
    pub fn second(&self) -> &Locked<'g> {
        self.second.as_ref().unwrap_or(&self.first)
    }
}

impl<'g> Chain<'g> {
    /// The chain in which a name is, or would be.
    #[inline]
    pub(crate) fn of(dir: &'g HashDir, guard: &'g Guard<'g>, key: &Key<'_>) -> Chain<'g> {
        let (table, bucket) = dir.locate(guard, key.hash);
        Chain {
            dir,
            bucket,
            parity: table.parity,
            guard,
            #[cfg(debug_assertions)]
            table,
        }
    }

    /// In debug builds: growth would put a name of another bucket where no one looks for it, or where no bucket is.
    #[inline]
    fn assert_is_of(&self, key: &Key<'_>) {
        #[cfg(debug_assertions)]
        assert!(ptr::eq(self.table.bucket(key.hash as usize), self.bucket), "a bucket is asked for its own names");
        #[cfg(not(debug_assertions))]
        let _ = key;
    }

    #[inline]
    pub(crate) fn lock(&self, wait: &impl Wait) -> CoreLockGuard<'g> {
        self.bucket.lock.lock(self.guard.core(), RANK_BUCKET, wait)
    }

    /// Whether the names are in another table by now.
    #[inline]
    pub(crate) fn has_moved(&self) -> bool {
        self.bucket.head().1
    }

    /// By what buckets are locked in order.
    #[inline]
    pub(crate) fn order(&self) -> *const Bucket {
        self.bucket
    }

    /// The entry of a name, whatever its state.
    #[inline]
    pub(crate) fn find(&self, key: &Key<'_>) -> Option<&'g Entry> {
        self.assert_is_of(key);
        let (head, _) = self.bucket.head();
        if !self.bucket.may_hold(key.hash) {
            return None;
        }
        // SAFETY: the chain is ours while we hold the lock; entries live as long as the guard.
        unsafe { find_in_chain(head, self.parity, key) }
    }

    fn check_status(&self) -> Result<(), InsertError> {
        if sync::mutant::planted("hashdir: insertion ignores a kill") {
            return Ok(());
        }
        match self.dir.status.load(Ordering::Acquire) {
            ALIVE => Ok(()),
            DEAD => Err(InsertError::Dead),
            _ => Err(InsertError::Killing),
        }
    }

    pub(crate) fn push(&self, key: &Key<'_>, value: u64, tag: Option<Tag>) -> Result<NonNull<Entry>, InsertError> {
        self.check_status()?;
        self.assert_is_of(key);
        let (head, _) = self.bucket.head();
        let mut chain_entries = 0;
        let mut tie = FIRST_TIE;
        // Only entries with our bit can have our position, and a chain with few bits is not crowded.
        let must_walk = self.bucket.may_hold(key.hash) || self.bucket.filter_bits() >= CROWDED_ENTRIES;
        let mut walk = if must_walk { head } else { ptr::null_mut() };
        // SAFETY: the chain is ours while we hold the lock.
        while let Some(entry) = unsafe { walk.as_ref() } {
            chain_entries += 1;
            if position(entry.hash()) == position(key.hash) {
                let taken = (entry.cookie() & ((1 << TIE_BITS) - 1)) as u8;
                // Ties are not reused below the highest: a cookie of the past must not name a later entry.
                tie = tie.max(taken.checked_add(1).ok_or(InsertError::OutOfMemory)?);
            }
            walk = entry.next(self.parity).load(Ordering::Relaxed);
        }
        let entry = Entry::allocate(self.guard.core(), key, tie, value, tag)?;
        self.bucket.will_hold(key.hash);
        // SAFETY: allocated just now, and alive while the lock is held; published by `set_head` with a release.
        unsafe { entry.as_ref() }.next(self.parity).store(head, Ordering::Relaxed);
        self.bucket.set_head(entry.as_ptr());
        let crowded = &self.dir.upkeep.crowded;
        if chain_entries >= CROWDED_ENTRIES && crowded.load(Ordering::Relaxed) == 0 {
            crowded.store(1, Ordering::Relaxed);
        }
        Ok(entry)
    }

    /// Takes an entry out of its chain, in which it is, and retires it. With the lock held.
    fn unlink(&self, entry: NonNull<Entry>) {
        // SAFETY: the chain is ours while we hold the lock. The entry is in it: it was found there or put there under this lock,
        // and only one change takes it out, since it was present or being inserted when that began. So it is retired once.
        unsafe {
            let next = entry.as_ref().next(self.parity).load(Ordering::Relaxed);
            let (head, _) = self.bucket.head();
            if head == entry.as_ptr() {
                self.bucket.set_head(next);
                if next.is_null() {
                    self.bucket.holds_nothing();
                }
            } else {
                let mut before = &*head;
                loop {
                    let link = before.next(self.parity);
                    let after = link.load(Ordering::Relaxed);
                    if after == entry.as_ptr() {
                        link.store(next, Ordering::Release);
                        break;
                    }
                    before = &*after;
                }
            }
            if sync::mutant::planted("hashdir: unlinked entries lose their link") {
                entry.as_ref().next(self.parity).store(ptr::null_mut(), Ordering::Release);
            }
            self.guard.retire(Entry::link(entry), KIND_ENTRY);
        }
    }

    /// Ends what was prepared of an entry of this chain. With the lock held since.
    pub(crate) fn end(&self, entry: NonNull<Entry>, change: Change, happened: bool) {
        // SAFETY: found or made in this call, whose guard the chain keeps: even an entry that was taken out since lives on.
        let at = unsafe { entry.as_ref() };
        match (change, happened) {
            (Change::Insert, true) | (Change::Remove, false) => at.set_present(),
            (Change::Insert, false) | (Change::Remove, true) => {
                at.set_dead();
                self.unlink(entry);
            }
            (Change::Replace, happened) => at.finish_replace(happened),
        }
    }

    /// Whether the operation has happened on which what was prepared of an entry depends.
    pub(crate) fn has_happened(&self, entry: NonNull<Entry>, change: Change) -> bool {
        // SAFETY: as in `end`.
        let (state_tag, _, value_tag) = unsafe { entry.as_ref() }.tags();
        let tag = if change == Change::Replace { value_tag } else { state_tag };
        tag.is_some_and(|tag| self.dir.decisions().observe(tag) == Observed::Committed)
    }
}

impl<'g> Locked<'g> {
    /// A name and its value, if it exists; both stay so until the lock is dropped.
    #[inline]
    pub fn lookup<'l>(&'l self, key: &Key<'_>) -> Option<LockedEntry<'l>>
    where
        'g: 'l,
    {
        let entry = self.chain.find(key)?;
        let decisions = self.chain.dir.decisions();
        entry.exists(decisions).then(|| LockedEntry { chain: self.chain, entry, value: entry.value(decisions).0 })
    }

    /// Inserts a name that does not exist. It exists when the call returns.
    ///
    /// # Errors
    /// [`InsertError`], and nothing has happened.
    #[inline]
    pub fn insert(&self, key: &Key<'_>, value: u64) -> Result<(), InsertError> {
        debug_assert!(self.lookup(key).is_none(), "the caller has looked");
        self.chain.push(key, value, None)?;
        // As after a commit: our next call must not read anything older than this.
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Inserts a name that does not exist, on condition that the operation commits.
    ///
    /// # Errors
    /// [`InsertError`], and nothing has happened.
    #[inline]
    pub fn prepare_insert<'l>(&'l self, key: &Key<'_>, value: u64, tag: Tag) -> Result<Prepared<'l>, InsertError>
    where
        'g: 'l,
    {
        debug_assert!(self.lookup(key).is_none(), "the caller has looked");
        let entry = self.chain.push(key, value, Some(tag))?;
        Ok(Prepared { chain: self.chain, entry, change: Change::Insert })
    }
}

impl<'l> LockedEntry<'l> {
    /// The value when it was looked up, which no one else changes.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Another look-up of the same name may have removed it, or be about to.
    #[inline]
    fn assert_present(&self) {
        assert!(self.entry.is_present(), "a name is removed once");
    }

    /// Removes the name.
    ///
    /// # Panics
    /// If it is removed already, or about to be, by another look-up under the same lock.
    #[inline]
    pub fn remove(self) {
        self.assert_present();
        self.entry.set_dead();
        self.chain.unlink(NonNull::from(self.entry));
        fence(Ordering::SeqCst);
    }

    /// Replaces the value of the name.
    #[inline]
    pub fn replace(self, value: u64) {
        self.entry.replace(value);
        fence(Ordering::SeqCst);
    }

    /// Removes the name on condition that the operation commits.
    ///
    /// # Panics
    /// As [`LockedEntry::remove`].
    #[inline]
    pub fn prepare_remove(self, tag: Tag) -> Prepared<'l> {
        self.assert_present();
        self.entry.mark_removing(tag);
        Prepared { chain: self.chain, entry: NonNull::from(self.entry), change: Change::Remove }
    }

    /// Replaces the value of the name on condition that the operation commits.
    #[inline]
    pub fn prepare_replace(self, value: u64, tag: Tag) -> Prepared<'l> {
        self.entry.prepare_replace(value, tag);
        Prepared { chain: self.chain, entry: NonNull::from(self.entry), change: Change::Replace }
    }
}

impl Prepared<'_> {
    /// Puts a prepared insertion under a new operation, after the first was revoked.
    #[inline]
    pub fn retag(&self, tag: Tag) {
        debug_assert!(self.change == Change::Insert, "only insertions are prepared without all locks");
        // SAFETY: found or made in this call, whose guard the chain keeps.
        unsafe { self.entry.as_ref() }.mark_inserting(tag);
    }

    /// Replaces the mark by what has become of it: the operation has committed (`happened`) or never will.
    #[inline]
    pub fn finish(self, happened: bool) {
        self.chain.end(self.entry, self.change, happened);
        core::mem::forget(self);
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // A panic between the decision and the end must not undo what others have seen.
        let happened = self.chain.has_happened(self.entry, self.change)
            && !sync::mutant::planted("hashdir: what is dropped is undone");
        self.chain.end(self.entry, self.change, happened);
    }
}
