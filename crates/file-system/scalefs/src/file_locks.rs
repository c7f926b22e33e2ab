//! The locks of one file in shared memory: a part of its annex.
//!
//! ```text
//! lock, awaited, current │ halves: a list, and the room for the next one
//! change:  lock;  the next list into the half that is not current;  current;  unlock;  who waits is woken
//! ```
//! **Death of a process**: the list is the old one or the new one, since one word says which half is current. Anyone who takes a
//! core over unlocks, and wakes all who wait; what the dead owner was about to give up is given up then ([`LockNote`]).
//!
//! **Room.** Both halves hold at least as many locks as there are, so that to give locks up needs no memory.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::NonNull;

use percpu::{Core, CoreLock, LockRank, OutOfMemory, SizeClass};
use posix_calls::{ForeignLock, LockMode, LockRange};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::mutant::planted;

use crate::lock_list::{HeldLock, LockOwner, MOST_ADDED, changed};

/// After all that a call locks; nothing is locked under it.
const RANK_FILE_LOCKS: LockRank = LockRank(251);
const LINE_BYTES: usize = 64;

/// See the module's head.
#[repr(C)]
pub(crate) struct FileLocks {
    lock: CoreLock,
    /// Guarded by `lock`: somebody waits for a lock of the file to go.
    awaited: AtomicU32,
    /// Guarded by `lock`: how many locks there are, times two, and which half has them.
    current: AtomicU64,
    /// Guarded by `lock`: addresses of arrays of locks, with the logarithm of their lines in the low bits; or zero.
    halves: [AtomicU64; 2],
}

/// An array of locks.
#[derive(Clone, Copy)]
struct Half(u64);

impl Half {
    const EXPONENT_MASK: u64 = LINE_BYTES as u64 - 1;

    fn class_of(exponent: u64) -> Option<SizeClass> {
        SizeClass::of(Layout::from_size_align(LINE_BYTES.checked_shl(exponent as u32)?, LINE_BYTES).ok()?)
    }

    fn with_room_for(core: &Core<'_>, count: usize) -> Result<Half, OutOfMemory> {
        let lines = (count * size_of::<HeldLock>()).div_ceil(LINE_BYTES).next_power_of_two();
        let exponent = u64::from(lines.trailing_zeros());
        let place = core.allocate(Half::class_of(exponent).ok_or(OutOfMemory)?)?;
        Ok(Half(place.as_ptr() as usize as u64 | exponent))
    }

    fn capacity(self) -> usize {
        if self.0 == 0 { 0 } else { (LINE_BYTES << (self.0 & Half::EXPONENT_MASK)) / size_of::<HeldLock>() }
    }

    fn place(self) -> *mut HeldLock {
        (self.0 & !Half::EXPONENT_MASK) as usize as *mut HeldLock
    }

    /// # Safety
    /// No one uses it any more.
    unsafe fn free(self, core: &Core<'_>) {
        if let (Some(place), Some(class)) = (NonNull::new(self.place()), Half::class_of(self.0 & Half::EXPONENT_MASK)) {
            // SAFETY: the caller's promise; allocated with this class.
            unsafe { core.free(place.cast(), class) };
        }
    }
}

/// What came of a request.
pub(crate) enum Asked {
    /// It is so now.
    Done,
    /// This lock is in the way.
    Foreign(HeldLock),
}

/// What changes the locks of files has in common: the core, how it waits, and where others wait.
pub(crate) struct Locking<'a, W> {
    pub(crate) core: &'a Core<'a>,
    pub(crate) wait: &'a W,
    /// Changes when a lock that is waited for goes.
    pub(crate) word: &'a AtomicU32,
}

impl<W: Wait> Locking<'_, W> {
    /// Lets all who wait look again.
    fn wake(&self) {
        if !planted("scalefs: who unlocks a file wakes no one") {
            self.word.fetch_add(1, Ordering::AcqRel);
            self.wait.wake(self.word);
        }
    }
}

impl FileLocks {
    // Where its words begin, for the annex.
    pub(crate) const LOCK: usize = offset_of!(FileLocks, lock);
    pub(crate) const AWAITED: usize = offset_of!(FileLocks, awaited);
    pub(crate) const CURRENT: usize = offset_of!(FileLocks, current);
    pub(crate) const HALVES: usize = offset_of!(FileLocks, halves);

    pub(crate) fn new() -> FileLocks {
        FileLocks {
            lock: CoreLock::new(),
            awaited: AtomicU32::new(0),
            current: AtomicU64::new(0),
            halves: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Gives the lists back.
    ///
    /// # Safety
    /// No one uses the inode any more.
    pub(crate) unsafe fn destroy(&self, core: &Core<'_>) {
        for half in &self.halves {
            // SAFETY: the caller's promise.
            unsafe { Half(half.load(Ordering::Relaxed)).free(core) };
        }
    }

    fn half(&self, which: u64) -> Half {
        Half(self.halves[which as usize].load(Ordering::Relaxed))
    }

    /// The locks. The caller has `lock`.
    fn held_locked(&self) -> &[HeldLock] {
        let current = self.current.load(Ordering::Relaxed);
        match current >> 1 {
            0 => &[],
            // SAFETY: that many were written there; who changes a half has the lock, and that half is not current.
            count => unsafe { core::slice::from_raw_parts(self.half(current & 1).place(), count as usize) },
        }
    }

    /// Makes a list current. It fits into either half. The caller has `lock`.
    fn put_locked(&self, each: impl FnOnce(&mut dyn FnMut(HeldLock))) {
        let which = self.current.load(Ordering::Relaxed) & 1 ^ 1;
        let half = self.half(which);
        let mut count = 0;
        each(&mut |lock| {
            assert!(count < half.capacity(), "halves have room for all locks");
            // SAFETY: there is room, and no one looks at a half that is not current.
            unsafe { half.place().add(count).write(lock) };
            count += 1;
        });
        // Release: an heir finds the list whole.
        self.current.store((count as u64) << 1 | which, Ordering::Release);
    }

    /// Lets either half have room for that many. The caller has `lock`.
    fn make_room_locked(&self, core: &Core<'_>, count: usize) -> Result<(), OutOfMemory> {
        for _ in 0..2 {
            let spare = self.current.load(Ordering::Relaxed) & 1 ^ 1;
            let old = self.half(spare);
            if old.capacity() < count {
                let room = Half::with_room_for(core, count)?;
                self.halves[spare as usize].store(room.0, Ordering::Release);
                // SAFETY: no one looks at a half that is not current.
                unsafe { old.free(core) };
            }
            if self.half(spare ^ 1).capacity() < count {
                self.put_locked(|put| self.held_locked().iter().copied().for_each(put));
            }
        }
        Ok(())
    }

    /// Lets a range of an owner be locked so, or unlocked, if no other's lock is in the way; `none` is called under the lock if one
    /// is and the caller waits.
    pub(crate) fn set<W: Wait>(
        &self,
        locking: &Locking<'_, W>,
        (owner, range, mode): (LockOwner, LockRange, Option<LockMode>),
        seen_as: u64,
        (gives_up_first, waits): (bool, &mut dyn FnMut()),
    ) -> Result<Asked, OutOfMemory> {
        let lock = self.lock.lock(locking.core, RANK_FILE_LOCKS, locking.wait);
        let is_own = |lock: &&HeldLock| lock.owner == owner && lock.range.meets(range);
        let mut gives_up =
            self.held_locked().iter().any(|lock| is_own(&lock) && mode.is_none_or(|mode| mode < lock.mode));
        if gives_up_first && self.held_locked().iter().any(|lock| is_own(&lock) && Some(lock.mode) != mode) {
            self.put_locked(|put| changed(self.held_locked(), (owner, range, None), seen_as, put));
            gives_up = true;
        }
        let foreign = mode
            .and_then(|mode| self.held_locked().iter().find(|lock| lock.is_in_the_way(owner, range, mode)).copied());
        let outcome = match foreign {
            Some(foreign) => {
                waits();
                Ok(Asked::Foreign(foreign))
            }
            None => self.make_room_locked(locking.core, self.held_locked().len() + MOST_ADDED).map(|()| {
                self.put_locked(|put| changed(self.held_locked(), (owner, range, mode), seen_as, put));
                Asked::Done
            }),
        };
        let wakes = gives_up && self.stop_being_awaited_locked();
        drop(lock);
        if wakes {
            locking.wake();
        }
        outcome
    }

    /// Notes that somebody waits. The caller has `lock`.
    pub(crate) fn be_awaited_locked(&self) {
        self.awaited.store(1, Ordering::Relaxed);
    }

    /// Whether somebody waits, who is about to be woken. The caller has `lock`.
    fn stop_being_awaited_locked(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) != 0 && {
            self.awaited.store(0, Ordering::Relaxed);
            true
        }
    }

    /// The first lock that is in the way.
    pub(crate) fn foreign<W: Wait>(
        &self,
        locking: &Locking<'_, W>,
        (owner, range, mode): (LockOwner, LockRange, LockMode),
    ) -> Option<ForeignLock> {
        let _lock = self.lock.lock(locking.core, RANK_FILE_LOCKS, locking.wait);
        self.held_locked().iter().find(|lock| lock.is_in_the_way(owner, range, mode)).map(HeldLock::seen)
    }

    /// Gives up all locks of an owner, of a description those of either kind. Anyone who waits looks again.
    pub(crate) fn give_up<W: Wait>(&self, locking: &Locking<'_, W>, owns: impl Fn(LockOwner) -> bool) {
        let lock = self.lock.lock(locking.core, RANK_FILE_LOCKS, locking.wait);
        if self.held_locked().iter().any(|lock| owns(lock.owner)) {
            self.put_locked(|put| self.held_locked().iter().filter(|lock| !owns(lock.owner)).copied().for_each(put));
        }
        // Who waits by a descriptor that was closed hears of it, too.
        let wakes = self.stop_being_awaited_locked();
        drop(lock);
        if wakes {
            locking.wake();
        }
    }

    /// Unlocks what a dead owner was changing, and lets all who wait look again.
    ///
    /// # Safety
    /// The core was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over<W: Wait>(&self, locking: &Locking<'_, W>) {
        // SAFETY: the list is whole at each moment; the rest is the caller's promise.
        unsafe { self.lock.release_taken_over(locking.core) };
        locking.wake();
    }
}

/// What a core notes while it changes the locks of a file, or closes a descriptor of it, for its heir.
pub(crate) struct LockNote {
    file: AtomicU64,
    process: AtomicU64,
    description: AtomicU64,
}

/// Who is giving its locks of a file up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// The number of a process; or zero.
    pub(crate) process: u64,
    /// The address of a description, if no descriptor leads to it any more; or zero.
    pub(crate) description: u64,
}

impl LockNote {
    pub(crate) fn new() -> LockNote {
        LockNote { file: AtomicU64::new(0), process: AtomicU64::new(0), description: AtomicU64::new(0) }
    }

    /// Notes, before anything is changed.
    pub(crate) fn note(&self, file_bits: u64, leaving: Leaving) {
        self.process.store(leaving.process, Ordering::Relaxed);
        self.description.store(leaving.description, Ordering::Relaxed);
        // Release: with the others, for the heir.
        self.file.store(file_bits, Ordering::Release);
        // Before the lock that follows.
        sync::atomic::fence(Ordering::Release);
    }

    /// Nothing is changed any more.
    pub(crate) fn forget(&self) {
        self.file.store(0, Ordering::Release);
    }

    /// For the heir.
    pub(crate) fn left(&self) -> Option<(u64, Leaving)> {
        let file = self.file.load(Ordering::Acquire);
        let (process, description) = (self.process.load(Ordering::Relaxed), self.description.load(Ordering::Relaxed));
        (file != 0).then_some((file, Leaving { process, description }))
    }
}
