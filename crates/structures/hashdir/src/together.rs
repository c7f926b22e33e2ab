//! Many names that one operation changes: all their buckets locked in one order, then marked, then finished.
//!
//! ```text
//! names = lock_all(guard, [(d, k), (e, l), ...], room)     sorted by bucket; a bucket of several names is locked once
//! for name in names:  name.value(), then name.prepare_insert │ prepare_remove │ prepare_replace
//! operation.commit()                                       crate `commit`
//! names.finish(happened); names.unlock()                   marks replaced, locks freed
//! ```
//! What is kept of each name lies in the caller's room, so that nothing is allocated but entries.

use core::ptr::NonNull;

use commit::Tag;
use epoch::Guard;
use percpu::CoreLockGuard;
use sync::Wait;

use crate::change::{Chain, Change, InsertError};
use crate::dir::HashDir;
use crate::entry::Entry;
use crate::key::Key;

/// Room for one of many names, with what the caller keeps with it.
#[derive(Default)]
pub struct LockedName<'g, T> {
    /// The caller's.
    pub beside: T,
    chain: Option<Chain<'g>>,
    /// Of the first name of each bucket.
    lock: Option<CoreLockGuard<'g>>,
    entry: Option<NonNull<Entry>>,
    prepared: Option<Change>,
}

/// Names whose buckets are locked. Dropping them asks the operation that they are marked with, and frees the locks.
#[must_use = "names are locked until this is finished or dropped"]
pub struct LockedNames<'r, 'g, T> {
    room: &'r mut [LockedName<'g, T>],
}

/// Locks the buckets of many names, all of one or of several directories, in the order of their addresses, in which `room`
/// comes to be; `name` tells the directory and the name of each.
pub fn lock_all<'r, 'g, 'k, T>(
    guard: &'g Guard<'g>,
    room: &'r mut [LockedName<'g, T>],
    name: impl Fn(&T) -> (&'g HashDir, &'k Key<'k>),
    wait: &impl Wait,
) -> LockedNames<'r, 'g, T> {
    loop {
        for place in room.iter_mut() {
            let (dir, key) = name(&place.beside);
            place.chain = Some(Chain::of(dir, guard, key));
            // Who forgot names that were marked leaves that here: it is no mark of these.
            place.prepared = None;
        }
        room.sort_unstable_by_key(|place| place.chain.as_ref().map(Chain::order));
        let mut last = None;
        for place in room.iter_mut() {
            let chain = place.chain.expect("found above");
            if last.replace(chain.order()) != Some(chain.order()) {
                place.lock = Some(chain.lock(wait));
            }
        }
        // Chains may have moved before we had their locks.
        let has_moved = room.iter().any(|place| place.chain.is_some_and(|chain| chain.has_moved()));
        if !has_moved || sync::mutant::planted("hashdir: chains of many names are not found again") {
            break;
        }
        room.iter_mut().for_each(|place| place.lock = None);
    }
    let names = LockedNames { room };
    for place in names.room.iter_mut() {
        let entry = place.chain.and_then(|chain| chain.find(name(&place.beside).1));
        place.entry = entry.map(NonNull::from);
    }
    names
}

impl<'g, T> LockedNames<'_, 'g, T> {
    /// The names, in the order of their buckets.
    pub fn iter(&self) -> impl Iterator<Item = &LockedName<'g, T>> {
        self.room.iter()
    }

    /// The names, to be prepared.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut LockedName<'g, T>> {
        self.room.iter_mut()
    }

    /// Replaces the marks by what has become of them: the operation has committed (`happened`) or never will. The names
    /// stay locked.
    pub fn finish(&mut self, happened: bool) {
        for place in self.room.iter_mut() {
            place.end(happened);
        }
    }

    /// Frees the locks, once the marks are finished; as dropping it does.
    ///
    /// # Panics
    /// If a name is marked.
    pub fn unlock(&mut self) {
        assert!(self.room.iter().all(|place| place.prepared.is_none()), "marks are finished under their locks");
        for place in self.room.iter_mut() {
            (place.lock, place.chain, place.entry) = (None, None, None);
        }
    }
}

impl<T> Drop for LockedNames<'_, '_, T> {
    fn drop(&mut self) {
        for place in self.room.iter_mut() {
            // A panic between the decision and the end must not undo what others have seen.
            let happened = place.chain.zip(place.entry).zip(place.prepared);
            place.end(happened.is_some_and(|((chain, entry), change)| chain.has_happened(entry, change)));
        }
        self.unlock();
    }
}

impl<T> LockedName<'_, T> {
    fn end(&mut self, happened: bool) {
        if let (Some(chain), Some(entry), Some(change)) = (self.chain, self.entry, self.prepared.take()) {
            chain.end(entry, change, happened);
        }
    }

    fn chain(&self) -> Chain<'_> {
        self.chain.expect("names are prepared while they are locked")
    }

    fn entry(&self) -> &Entry {
        let entry = self.entry.expect("only a name that exists can be changed");
        // SAFETY: found in the call whose guard the chain keeps, so it lives. That the bucket is still locked is the promise to
        // `HashDir::new` about room: a lock stands next to the first name of its bucket only.
        let entry = unsafe { entry.as_ref() };
        assert!(self.prepared.is_none() && entry.is_present(), "a name is changed once");
        entry
    }

    /// What the name leads to, if it exists; it stays so until the lock is freed.
    ///
    /// # Panics
    /// Once the name is prepared, by this or by another place in the room.
    pub fn value(&self) -> Option<u64> {
        assert!(self.prepared.is_none(), "a name is looked at before it is prepared");
        self.entry.map(|_| self.entry().value(self.chain().dir.decisions()).0)
    }

    /// Inserts the name, which does not exist, on condition that the operation commits.
    ///
    /// # Errors
    /// As [`Locked::insert`](crate::Locked::insert).
    ///
    /// # Panics
    /// If the name exists, or another place in the room has inserted it.
    pub fn prepare_insert(&mut self, key: &Key<'_>, value: u64, tag: Tag) -> Result<(), InsertError> {
        assert!(self.chain().find(key).is_none(), "a name is inserted once");
        let entry = self.chain().push(key, value, Some(tag))?;
        (self.entry, self.prepared) = (Some(entry), Some(Change::Insert));
        Ok(())
    }

    /// Removes the name on condition that the operation commits.
    ///
    /// # Panics
    /// If it does not exist, or is prepared already.
    pub fn prepare_remove(&mut self, tag: Tag) {
        self.entry().mark_removing(tag);
        self.prepared = Some(Change::Remove);
    }

    /// Replaces the value of the name on condition that the operation commits.
    ///
    /// # Panics
    /// As [`LockedName::prepare_remove`].
    pub fn prepare_replace(&mut self, value: u64, tag: Tag) {
        self.entry().prepare_replace(value, tag);
        self.prepared = Some(Change::Replace);
        if sync::mutant::planted("hashdir: many names change one by one") {
            self.end(true);
        }
    }
}
