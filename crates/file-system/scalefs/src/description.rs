//! Open file descriptions: what descriptors lead to (POSIX.1-2017, 3.258), and what of them is shared when.
//!
//! ```text
//! │ node, access, flags, upkeep   64 │ references, reach, word 128 │ offset, moves, lock 192 │
//! ```
//! Calls that do not use the offset read the first line only. A call takes no reference: it found the description in a
//! table, whose reference counts, and a description is freed only after every core has maintained, which none does in a
//! call. So another thread may close the descriptor in the middle of a call.
//!
//! **The reach** is a page, or the least power of two that the offset is not above. An `lseek` to before the beginning looks at it
//! alone, and shares nothing with moves of the offset that do not pass such a bound. Whoever moves the offset raises it
//! before anybody can see what goes with the move, and lowers it after the move.
//!
//! ```text
//! move:  lock;  reach rises, fence;  bytes are read or written;  offset, moves;  reach falls;  unlock
//! ```
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ptr::NonNull;

use pages::PAGE_BYTES;
#[cfg(feature = "std")]
use percpu::CoreIndex;
use percpu::{ArenaObject, CacheLine, Core, CoreLock, CoreLockGuard, LockRank, ObjectKind, OutOfMemory, object_kind};
use posix_calls::{AccessMode, Kind, LockKind, Offset, PipeEnd, StatusFlags};
use refcache::{Counted, CountedKind};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::mutant::planted;

use crate::file_locks::Leaving;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::lock_list::LockOwner;

/// Kind of the count of descriptors, for the callback of `RefCache::maintain`.
pub(crate) const KIND_DESCRIPTION: CountedKind = CountedKind(3);
/// Before everything that a call changes while it moves an offset: transactions hold it during their commits.
const RANK_OFFSET: LockRank = LockRank(2);
pub(crate) const DESCRIPTION: ObjectKind = object_kind!(5, Description as "open file description" {
    "node" = opened.0.node,
    "mode" = opened.0.mode,
    "status" = opened.0.status,
    "upkeep" = opened.0.upkeep,
    "references" = references.0.counted,
    "reach of the offset" = references.0.reach,
    "word of the caller's" = references.0.word,
    "offset" = position.0.offset,
    "moves of the offset" = position.0.moves,
    "offset's lock" = position.0.lock,
});

/// An open file description in the arena.
#[repr(C)]
pub(crate) struct Description {
    pub(crate) opened: CacheLine<OpenedFile>,
    references: CacheLine<References>,
    position: CacheLine<Position>,
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Description {
    const KIND: ObjectKind = DESCRIPTION;
}

pub(crate) struct OpenedFile {
    /// Immutable; the description holds a reference to it.
    pub(crate) node: InodeRef,
    /// Immutable.
    pub(crate) mode: AccessMode,
    /// Atomic.
    status: AtomicU32,
    /// Atomic, never less: what must be done when a descriptor that leads here is closed ([`ENDS`], [`LOCKS`]).
    upkeep: AtomicU32,
}

/// It is an end that is counted by its descriptors.
const ENDS: u32 = 1;
/// It has had locks, or has waited for one.
const LOCKS: u32 = 2;

/// What is written seldom. The count comes first: see [`DescriptionPtr::of_references`].
#[repr(C)]
struct References {
    /// Of descriptors that lead here.
    counted: Counted,
    /// Guarded by the offset's lock, read by anybody: what the offset is not above. See the module's head.
    reach: AtomicU64,
    /// Atomic: what the caller keeps there.
    word: AtomicU64,
}

struct Position {
    /// Guarded by `lock`, read by anybody.
    offset: AtomicU64,
    /// As `offset`: how often that has changed. Changed after it.
    moves: AtomicU64,
    lock: CoreLock,
}

/// An offset that nobody else moves, until this is dropped.
pub(crate) struct LockedOffset<'d> {
    position: &'d Position,
    reach: &'d AtomicU64,
    _lock: CoreLockGuard<'d>,
}

/// The bound that an offset is not above.
#[inline]
fn bound(bytes: u64) -> u64 {
    bytes.max(PAGE_BYTES as u64).checked_next_power_of_two().unwrap_or(u64::MAX)
}

impl LockedOffset<'_> {
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.position.offset.load(Ordering::Relaxed)
    }

    /// Says how far the offset may move, before anything is done from which others can know that it will.
    #[inline]
    pub(crate) fn will_reach(&self, most_bytes: u64) {
        if self.reach.load(Ordering::Relaxed) < most_bytes
            && !planted("scalefs: an offset's reach is announced after the move")
        {
            self.reach.store(bound(most_bytes), Ordering::Relaxed);
            // Pairs with the one that each call begins with: who has changed what we read finds the reach.
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn move_to(self, bytes: u64) {
        let Position { offset, moves, .. } = self.position;
        if bytes != self.bytes() {
            self.will_reach(bytes);
            offset.store(bytes, Ordering::Release);
            moves.store(moves.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
    }
}

impl Drop for LockedOffset<'_> {
    /// Lets the reach be what it is of the offset, before others may move that.
    fn drop(&mut self) {
        let bound = bound(self.bytes());
        if self.reach.load(Ordering::Relaxed) != bound {
            // Release pairs with the acquire in `may_reach`: whoever sees the lower bound finds the offset below it.
            self.reach.store(bound, Ordering::Release);
        }
    }
}

/// A pointer to a description, as tables hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionPtr(NonNull<Description>);

/// A description during a call.
#[derive(Clone, Copy)]
pub struct DescriptionRef<'v>(&'v Description);

impl<'v> DescriptionRef<'v> {
    #[inline]
    pub(crate) fn get(self) -> &'v Description {
        self.0
    }

    pub(crate) fn address(self) -> u64 {
        core::ptr::from_ref(self.0).addr() as u64
    }
}

impl DescriptionPtr {
    /// A new description with one reference, which takes over the caller's reference to the node.
    pub(crate) fn make(
        core: &Core<'_>,
        node: InodeRef,
        mode: AccessMode,
        status: StatusFlags,
    ) -> Result<DescriptionPtr, OutOfMemory> {
        let upkeep = AtomicU32::new(if node.kind().is_seekable() { 0 } else { ENDS });
        let opened = OpenedFile { node, mode, status: AtomicU32::new(status.bits()), upkeep };
        let position = Position { offset: AtomicU64::new(0), moves: AtomicU64::new(0), lock: CoreLock::new() };
        let references = References {
            counted: Counted::new(1, KIND_DESCRIPTION),
            reach: AtomicU64::new(PAGE_BYTES as u64),
            word: AtomicU64::new(0),
        };
        core.allocate_object(Description {
            opened: CacheLine(opened),
            references: CacheLine(references),
            position: CacheLine(position),
        })
        .map(DescriptionPtr)
    }

    /// The description that an address leads to.
    pub(crate) fn from_address(address: u64) -> DescriptionPtr {
        // SAFETY: addresses come from `address`, so they are not zero; tables add bits below the alignment, which are taken off.
        DescriptionPtr(unsafe { NonNull::new_unchecked(address as usize as *mut Description) })
    }

    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    #[inline]
    pub(crate) fn get<'d>(self) -> &'d Description {
        // SAFETY: found in this call, where a descriptor led to it; see the module's head.
        unsafe { self.0.as_ref() }
    }

    /// What is lent of it to the call in which it was found.
    #[inline]
    pub(crate) fn lent<'d>(self) -> DescriptionRef<'d> {
        DescriptionRef(self.get())
    }

    /// Whether the last descriptor that is closed is told so at once.
    #[inline]
    pub(crate) fn counts_descriptors(self) -> bool {
        self.get().opened.upkeep.load(Ordering::Acquire) != 0
    }

    /// From now on the last descriptor that is closed is told so at once: it gives up locks.
    pub(crate) fn will_have_locks(self) {
        let upkeep = &self.get().opened.upkeep;
        // Look without writing first.
        if upkeep.load(Ordering::Relaxed) & LOCKS == 0 {
            upkeep.fetch_or(LOCKS, Ordering::SeqCst);
        }
    }

    /// One descriptor more: the first one, or one that is counted while another one is open.
    pub(crate) fn open_end(self, fs: &ScaleFs, core: &Core<'_>) {
        let node = self.get().opened.node;
        match self.pipe_end() {
            Some(end) => node.pipe().open_end(fs, core, end),
            None if node.kind() == Kind::Socket => node.socket().open_end(fs, core),
            None => {}
        }
    }

    /// One descriptor less.
    pub(crate) fn close_end(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let node = self.get().opened.node;
        match self.pipe_end() {
            Some(end) => node.pipe().close_end(fs, core, end, wait),
            None if node.kind() == Kind::Socket => node.socket().close_end(fs, core, wait),
            None => {}
        }
    }

    /// A dead core was about to make them one less, or had done so.
    pub(crate) fn end_closed(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let node = self.get().opened.node;
        match self.pipe_end() {
            Some(end) => node.pipe().end_closed(fs, end, wait),
            None if node.kind() == Kind::Socket => node.socket().end_closed(fs, core, wait),
            None => {}
        }
    }

    /// One descriptor more leads where this one does, which is not closed meanwhile: it is in the core's hand.
    pub(crate) fn duplicate(self, fs: &ScaleFs, core: &Core<'_>) {
        self.get().change_references(fs, core, 1);
        self.open_end(fs, core);
        fs.hand(core).take(self.address());
    }

    /// Closes a descriptor that is in no table any more: the core's hand is empty then.
    #[inline]
    pub(crate) fn release(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        if self.counts_descriptors() {
            return self.release_counted(fs, core, wait);
        }
        fs.hand(core).empty();
        self.get().change_references(fs, core, -1);
        // It has got locks since, by another descriptor, whose own close may have come before this one was counted.
        if self.counts_descriptors() {
            self.give_up_locks(fs, core, wait);
        }
    }

    /// As [`DescriptionPtr::release`], of what is counted, or may have locks.
    #[cold]
    fn release_counted(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        fs.hand(core).close(self.address());
        self.close_end(fs, core, wait);
        self.release_reference(fs, core, wait);
    }

    /// The last part of [`DescriptionPtr::release`].
    #[cold]
    pub(crate) fn release_reference(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        let may_have_locks = self.get().opened.upkeep.load(Ordering::Acquire) & LOCKS != 0;
        let note = fs.lock_note(core);
        if may_have_locks {
            let leaving = Leaving { description: self.address(), ..Leaving::default() };
            note.note(self.get().opened.node.to_bits(), leaving);
        }
        fs.hand(core).empty();
        self.get().change_references(fs, core, -1);
        if may_have_locks {
            self.give_up_locks(fs, core, wait);
            note.forget();
        }
    }

    /// Gives up the locks of the description if no descriptor leads to it any more.
    pub(crate) fn give_up_locks(self, fs: &ScaleFs, core: &Core<'_>, wait: &impl Wait) {
        // SAFETY: it is freed only after every core has maintained, which none does in a call.
        let count = unsafe { fs.counts().exact(&self.get().references.counted, wait) };
        // Who dies in a close may leave one descriptor too many counted (`hand.rs`): then its locks stay.
        let is_closed = count == 0;
        if is_closed && !planted("scalefs: locks stay when the last descriptor is closed") {
            let owns = |owner: LockOwner| owner.kind != LockKind::Process && owner.identity == self.address();
            fs.give_up_locks(core, self.get().opened.node, wait, owns);
        }
    }

    /// The pipe's end that its descriptors are.
    #[inline]
    pub(crate) fn pipe_end(self) -> Option<PipeEnd> {
        let opened = &self.get().opened;
        let end = if opened.mode.write { PipeEnd::Write } else { PipeEnd::Read };
        (opened.node.kind() == Kind::Pipe).then_some(end)
    }

    /// The description whose count of references this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> DescriptionPtr {
        // SAFETY: the caller's promise.
        DescriptionPtr(unsafe { counted.byte_sub(offset_of!(Description, references)).cast() })
    }

    /// Gives the memory back; the reference to the node is the caller's.
    ///
    /// # Safety
    /// Nobody uses the description any more.
    pub(crate) unsafe fn free(self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe { core.free_object(self.0) };
    }
}

impl Description {
    #[inline]
    /// The core that moves the offset.
    #[cfg(feature = "std")]
    pub(crate) fn moved_by(&self) -> Option<CoreIndex> {
        self.position.lock.holder()
    }

    pub(crate) fn status(&self) -> StatusFlags {
        StatusFlags::from_bits_truncate(self.opened.status.load(Ordering::Relaxed))
    }

    pub(crate) fn set_status(&self, status: StatusFlags) {
        self.opened.status.store(status.bits(), Ordering::Relaxed);
    }

    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.references.word
    }

    #[inline]
    pub(crate) fn change_references(&self, fs: &ScaleFs, core: &Core<'_>, change: i64) {
        // SAFETY: a descriptor leads here, or did in this call.
        unsafe { fs.counts().change(core, &self.references.counted, change) };
    }

    #[inline]
    pub(crate) fn offset(&self) -> Offset {
        let Position { offset, moves, .. } = &*self.position;
        loop {
            // Before the offset and after it: a change of which we see the offset and not the number is not over, and the next
            // one comes after its number.
            let before = moves.load(Ordering::Acquire);
            let bytes = offset.load(Ordering::Acquire);
            if planted("scalefs: an offset that comes back never went") {
                return Offset { bytes, moves: 0 };
            }
            if moves.load(Ordering::Acquire) == before {
                return Offset { bytes, moves: before };
            }
        }
    }

    /// Whether the offset has stayed since it was looked at, and nobody is about to move it: what a call does there may be seen
    /// before the offset that it leaves.
    #[inline]
    pub(crate) fn stays(&self, offset: Offset) -> bool {
        let is_free = self.position.lock.holder().is_none() || planted("scalefs: an offset that is being moved stays");
        // Pairs with the release of the lock: a move that has ended is seen.
        fence(Ordering::Acquire);
        is_free && self.offset() == offset
    }

    /// Whether the offset may be so many bytes or more.
    #[inline]
    pub(crate) fn may_reach(&self, bytes: u64) -> bool {
        self.references.reach.load(Ordering::Acquire) >= bytes
    }

    /// Waits until nobody else moves the offset, and keeps others from it.
    pub(crate) fn lock_offset<'d>(&'d self, core: &'d Core<'_>, wait: &impl Wait) -> LockedOffset<'d> {
        let lock = self.position.lock.lock(core, RANK_OFFSET, wait);
        LockedOffset { position: &self.position, reach: &self.references.reach, _lock: lock }
    }

    /// Unlocks the offset that a dead process held.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        // SAFETY: the offset is one word; the rest is the caller's promise.
        unsafe { self.position.lock.release_taken_over(core) };
    }
}
