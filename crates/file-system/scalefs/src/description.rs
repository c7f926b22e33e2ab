//! Open file descriptions: what descriptors lead to (POSIX.1-2017, 3.258), and what of them is shared when.
//!
//! ```text
//! │ node, access, flags   64 │ references 128 │ offset, moves, lock 192 │
//! ```
//! Calls that do not use the offset read the first line only. A call takes no reference: it found the description in a
//! table, whose reference counts, and a description is freed only after every core has maintained, which none does in a
//! call. So another thread may close the descriptor in the middle of a call.
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ptr::NonNull;

use percpu::{CacheLine, Core, CoreLock, LockRank, ObjectKind, OutOfMemory, SizeClass, object_kind};
use refcache::{Counted, CountedKind};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::mutant::planted;

use crate::direct::Node;
use crate::inode::Kind;
use crate::instance::ScaleFs;
use crate::pipe::PipeEnd;

/// Kind of the count of descriptors, for the callback of `RefCache::maintain`.
pub(crate) const KIND_DESCRIPTION: CountedKind = CountedKind(3);
const RANK_OFFSET: LockRank = LockRank(190);
pub(crate) const DESCRIPTION_CLASS: SizeClass = SizeClass::of_type::<Description>().of_kind(&DESCRIPTION);
pub(crate) const DESCRIPTION: ObjectKind = object_kind!(5, Description as "open file description" {
    "node" = opened.0.node,
    "mode" = opened.0.mode,
    "status" = opened.0.status,
    "references" = references,
    "offset" = position.0.offset,
    "moves of the offset" = position.0.moves,
    "offset's lock" = position.0.lock,
});

/// What a description is open for; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessMode {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
}

/// For what a call looks a descriptor up; see the marks of [`crate::Process`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To read at its offset or out of a pipe: it must be open for reading.
    Read,
    /// To read at an offset: it must be open for reading, or be a pipe, which is refused with another error.
    ReadAt,
    /// To write at its offset or into a pipe.
    Write,
    /// To write at an offset.
    WriteAt,
}

/// Flags of a description that `fcntl(F_SETFL)` can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StatusFlags(u32);

impl StatusFlags {
    /// None.
    pub const NONE: StatusFlags = StatusFlags(0);
    /// `O_APPEND`: every write goes to the end.
    pub const APPEND: StatusFlags = StatusFlags(1);
    /// `O_NONBLOCK`: calls on pipes fail with EAGAIN instead of waiting.
    pub const NONBLOCK: StatusFlags = StatusFlags(2);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn contains(self, flags: StatusFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl core::ops::BitOr for StatusFlags {
    type Output = StatusFlags;

    fn bitor(self, other: StatusFlags) -> StatusFlags {
        StatusFlags(self.0 | other.0)
    }
}

/// An open file description in the arena.
#[repr(C)]
pub(crate) struct Description {
    pub(crate) opened: CacheLine<OpenedFile>,
    /// Descriptors that lead here.
    references: CacheLine<Counted>,
    position: CacheLine<Position>,
}

pub(crate) struct OpenedFile {
    /// Immutable; the description holds a reference to it.
    pub(crate) node: Node,
    /// Immutable.
    pub(crate) mode: AccessMode,
    /// Atomic.
    status: AtomicU32,
}

struct Position {
    /// Guarded by `lock`, read by anybody.
    offset: AtomicU64,
    /// As `offset`: how often that has changed. Changed after it.
    moves: AtomicU64,
    lock: CoreLock,
}

/// An offset at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The offset in bytes.
    pub bytes: u64,
    /// How often it has changed.
    moves: u64,
}

/// A description during a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DescriptionRef(NonNull<Description>);

impl DescriptionRef {
    /// A new description with one reference, which takes over the caller's reference to the node.
    pub(crate) fn make(
        core: &Core<'_>,
        node: Node,
        mode: AccessMode,
        status: StatusFlags,
    ) -> Result<DescriptionRef, OutOfMemory> {
        let opened = OpenedFile { node, mode, status: AtomicU32::new(status.0) };
        let position = Position { offset: AtomicU64::new(0), moves: AtomicU64::new(0), lock: CoreLock::new() };
        core.allocate_in(
            DESCRIPTION_CLASS,
            Description {
                opened: CacheLine(opened),
                references: CacheLine(Counted::new(1, KIND_DESCRIPTION)),
                position: CacheLine(position),
            },
        )
        .map(DescriptionRef)
    }

    /// The description that an address leads to.
    pub(crate) fn from_address(address: u64) -> DescriptionRef {
        // SAFETY: addresses come from `address`.
        DescriptionRef(unsafe { NonNull::new_unchecked(address as usize as *mut Description) })
    }

    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as usize as u64
    }

    #[inline]
    pub(crate) fn get<'d>(self) -> &'d Description {
        // SAFETY: found in this call, where a descriptor led to it; see the module's head.
        unsafe { self.0.as_ref() }
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
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> DescriptionRef {
        // SAFETY: the caller's promise.
        DescriptionRef(unsafe { counted.byte_sub(offset_of!(Description, references)).cast() })
    }

    /// Gives the memory back; the reference to the node is the caller's.
    ///
    /// # Safety
    /// Nobody uses the description any more.
    pub(crate) unsafe fn free(self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe { core.free(self.0.cast(), DESCRIPTION_CLASS) };
    }
}

impl Description {
    #[inline]
    pub(crate) fn status(&self) -> StatusFlags {
        StatusFlags(self.opened.status.load(Ordering::Relaxed))
    }

    pub(crate) fn set_status(&self, status: StatusFlags) {
        self.opened.status.store(status.0, Ordering::Relaxed);
    }

    pub(crate) fn change_references(&self, fs: &ScaleFs, core: &Core<'_>, change: i64) {
        // SAFETY: a descriptor leads here, or did in this call.
        unsafe { fs.counts().change(core, &self.references, change) };
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

    /// Lets `change` turn the offset into another while no other call on the description does.
    pub(crate) fn move_offset<R>(&self, core: &Core<'_>, wait: &impl Wait, change: impl FnOnce(u64) -> (u64, R)) -> R {
        let _lock = self.position.lock.lock(core, RANK_OFFSET, wait);
        let Position { offset, moves, .. } = &*self.position;
        let before = offset.load(Ordering::Relaxed);
        let (after, result) = change(before);
        if after != before {
            offset.store(after, Ordering::Release);
            moves.store(moves.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        result
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
