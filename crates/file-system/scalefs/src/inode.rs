//! Inodes: what a name leads to. A header of four lines, and behind it what the kind needs.
//!
//! ```text
//! Inode   │ number, kind │ sequence, mode, user, group, access time      64 │ links 128 │ stamps 192 │ references 256 │
//! Directory = Inode + names + parent          Symlink = Inode + target
//! ```
//! The header stays while the inode lives. What a call changes of it stands on a line that no other kind of change
//! touches: permissions on the first, the link count and the times in caches per core.
//!
//! **Permissions** change under a sequence lock in one word: the low bits name the core that writes, the rest counts.
//! A core that dies in a write leaves its number there; `ScaleFs::repair_taken_over` ends the write. A change that depends
//! on an operation (crate `commit`) is a write that goes on: the new permissions stand beside the old ones, and whoever
//! reads asks the operation of the core which of them are so.
#![allow(unsafe_code)]

use core::mem::offset_of;
use core::ptr::NonNull;

use commit::{Decisions, Observed, Viewer};
use maxima::Maximum;
use percpu::{CacheLine, Core, CoreIndex};
use refcache::{Counted, CountedKind, Noted};
use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::{Wait, WaitReason};

use posix_calls::{InodeNumber, Kind, Permissions};

/// Kind of the count of names, for the callback of `RefCache::maintain`.
pub(crate) const KIND_LINKS: CountedKind = CountedKind(1);
/// Kind of the count of references. Late, since maintenance leaves times in caches that were raised since the last one.
pub(crate) const KIND_REFERENCES: CountedKind = CountedKind(2 | CountedKind::LATE);

// The number of a kind stands in the low bits of names' values, in which directories tell symbolic links.
const _: () = assert!(Kind::Symlink as u64 == hashdir::MARK);

/// The first line: who the inode is, never changed, and permissions, changed under the sequence.
#[repr(C)]
pub(crate) struct Header {
    /// Immutable.
    number: InodeNumber,
    /// Atomic: changes of permissions so far above the low bits, which hold 1 + the core that writes.
    sequence: AtomicU64,
    /// Guarded by `sequence`; `accessed` is an `i64` in nanoseconds since 1970.
    accessed: AtomicU64,
    mode: AtomicU32,
    user: AtomicU32,
    group: AtomicU32,
    /// Atomic: 1 once it has had a name.
    named: AtomicU32,
    /// Guarded by `sequence`: what permissions and access time will be if the operation of the core commits that has marked
    /// the sequence.
    next_mode: AtomicU32,
    /// Immutable.
    kind: Kind,
    /// As `next_mode`.
    next_accessed: AtomicU64,
    next_user: AtomicU32,
    next_group: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() <= 64);

const CORE_BITS: u32 = 8;
const _: () = assert!(percpu::MAX_CORES == 1 << CORE_BITS);

/// The number of the inode that is made by a core as so many-th: no other core makes it.
pub(crate) fn number_made_by(core: CoreIndex, made: u64) -> InodeNumber {
    InodeNumber(made << CORE_BITS | core.get() as u64)
}

impl Header {
    // Where its words begin, for `inode_kind!`.
    pub(crate) const SEQUENCE: usize = offset_of!(Header, sequence);
    pub(crate) const ACCESSED: usize = offset_of!(Header, accessed);
    pub(crate) const MODE: usize = offset_of!(Header, mode);
    pub(crate) const USER: usize = offset_of!(Header, user);
    pub(crate) const GROUP: usize = offset_of!(Header, group);
    pub(crate) const NAMED: usize = offset_of!(Header, named);
    pub(crate) const NEXT: usize = offset_of!(Header, next_mode);
    pub(crate) const KIND: usize = offset_of!(Header, kind);
    pub(crate) const NEXT_ACCESSED: usize = offset_of!(Header, next_accessed);
}

/// Where the address of the annex lies, for `inode_kind!`.
pub(crate) const ANNEX: usize = offset_of!(References, annex);

/// As `object_kind!`, for a type that begins with an [`Inode`]: its words come first.
macro_rules! inode_kind {
    ($number:literal, $type:ty as $name:literal { $($fields:tt)* }) => {
        ::percpu::object_kind!($number, $type as $name {
            "number" = inode.header,
            "sequence of permissions" = inode.header + $crate::inode::Header::SEQUENCE,
            "access time" = inode.header + $crate::inode::Header::ACCESSED,
            "mode" = inode.header + $crate::inode::Header::MODE,
            "owner" = inode.header + $crate::inode::Header::USER,
            "group" = inode.header + $crate::inode::Header::GROUP,
            "whether it had a name" = inode.header + $crate::inode::Header::NAMED,
            "next mode" = inode.header + $crate::inode::Header::NEXT,
            "kind" = inode.header + $crate::inode::Header::KIND,
            "next access time and owner" = inode.header + $crate::inode::Header::NEXT_ACCESSED,
            "links" = inode.links,
            "times" = inode.stamps,
            "references" = inode.references,
            "where its annex is" = inode.references + $crate::inode::ANNEX,
            $($fields)*
        })
    };
}
pub(crate) use inode_kind;

/// Whether a new inode has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Its maker inserts it.
    AtOnce,
    /// Perhaps later.
    NotYet,
}

const HOLDER_BITS: u32 = 16;
const HOLDER_MASK: u64 = (1 << HOLDER_BITS) - 1;
/// Beside the holder: what changes depends on its operation.
const MARKED: u64 = 1 << (HOLDER_BITS - 1);

/// The core that writes, of a sequence in which there is one.
fn holder(sequence: u64) -> u16 {
    (sequence & HOLDER_MASK & !MARKED).wrapping_sub(1) as u16
}

impl Header {
    #[inline]
    pub(crate) fn number(&self) -> InodeNumber {
        self.number
    }

    /// The core that has made it.
    #[inline]
    pub(crate) fn maker(&self) -> Option<CoreIndex> {
        CoreIndex::new(self.number.0 as usize % percpu::MAX_CORES)
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has had a name.
    pub(crate) fn is_named(&self) -> bool {
        self.named.load(Ordering::Acquire) != 0
    }

    /// Says that it gets its first name; false if it has had one.
    pub(crate) fn get_first_name(&self) -> bool {
        // Look without writing first.
        !self.is_named() && self.named.swap(1, Ordering::AcqRel) == 0
    }

    /// Says that it does not get its first name after all.
    pub(crate) fn stay_unnamed(&self) {
        self.named.store(0, Ordering::Release);
    }

    /// The core that writes, or has marked a change.
    #[cfg(feature = "std")]
    pub(crate) fn writer(&self) -> Option<CoreIndex> {
        let sequence = self.sequence.load(Ordering::Acquire);
        (sequence & HOLDER_MASK != 0).then(|| CoreIndex::new(usize::from(holder(sequence)))).flatten()
    }

    /// Permissions and access time as they were at one moment.
    #[inline]
    pub(crate) fn read(&self, decisions: &Decisions, viewer: impl Viewer, wait: &impl Wait) -> (Permissions, i64) {
        // Acquire pairs with the release at the end of `write`.
        let before = self.sequence.load(Ordering::Acquire);
        let seen = self.peek();
        // Pairs with the release fence in `write`: having seen a word of a writer, we see its sequence.
        fence(Ordering::Acquire);
        let is_whole = before & HOLDER_MASK == 0 && self.sequence.load(Ordering::Relaxed) == before;
        if is_whole || sync::mutant::planted("scalefs: permissions are read word by word") {
            return seen;
        }
        self.read_beside_writer(decisions, viewer, wait)
    }

    #[cold]
    fn read_beside_writer(&self, decisions: &Decisions, viewer: impl Viewer, wait: &impl Wait) -> (Permissions, i64) {
        let mut round = 0;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let writer = holder(before);
            let is_marked = before & MARKED != 0;
            let core = CoreIndex::new(usize::from(writer)).filter(|_| is_marked);
            let decision = || core.map(|core| decisions.observe_last(core, viewer));
            let decided = decision();
            let seen = if decided == Some(Observed::Committed) { self.peek_next() } else { self.peek() };
            fence(Ordering::Acquire);
            // What is undecided still has not begun to become the new.
            let is_whole = match decided {
                None => before & HOLDER_MASK == 0,
                Some(decided) => decided != Observed::Over && decision() == Some(decided),
            };
            if is_whole && self.sequence.load(Ordering::Relaxed) == before {
                return seen;
            }
            wait.wait(WaitReason::Lock { holder: writer }, round);
            round = round.saturating_add(1);
        }
    }

    fn peek_next(&self) -> (Permissions, i64) {
        let permissions = Permissions {
            mode: self.next_mode.load(Ordering::Relaxed),
            user: self.next_user.load(Ordering::Relaxed),
            group: self.next_group.load(Ordering::Relaxed),
        };
        (permissions, self.next_accessed.load(Ordering::Relaxed) as i64)
    }

    fn peek(&self) -> (Permissions, i64) {
        let permissions = Permissions {
            mode: self.mode.load(Ordering::Relaxed),
            user: self.user.load(Ordering::Relaxed),
            group: self.group.load(Ordering::Relaxed),
        };
        (permissions, self.accessed.load(Ordering::Relaxed) as i64)
    }

    /// Waits until nobody else writes, and keeps others from it. Returns the sequence before.
    fn lock(&self, core: &Core<'_>, wait: &impl Wait) -> u64 {
        let mut round = 0;
        let before = loop {
            let seen = self.sequence.load(Ordering::Relaxed);
            if seen & HOLDER_MASK == 0 {
                let locked = seen | (core.index().get() as u64 + 1);
                // Acquire pairs with the release of the writer before.
                if self.sequence.compare_exchange(seen, locked, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    break seen;
                }
            }
            wait.wait(WaitReason::Lock { holder: holder(seen) }, round);
            round = round.saturating_add(1);
        };
        fence(Ordering::Release);
        before
    }

    fn unlock(&self, before: u64) {
        self.sequence.store(before + (1 << HOLDER_BITS), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn set(&self, new: Permissions, accessed: i64) {
        // The mode first: a death in between must not leave a new owner with the old one's set-id bits.
        self.mode.store(new.mode, Ordering::Relaxed);
        self.user.store(new.user, Ordering::Release);
        self.group.store(new.group, Ordering::Release);
        self.accessed.store(accessed as u64, Ordering::Relaxed);
    }

    /// Lets `change` turn permissions and access time into new ones, or refuse; others wait meanwhile.
    pub(crate) fn write<E>(
        &self,
        core: &Core<'_>,
        wait: &impl Wait,
        change: impl FnOnce(Permissions, i64) -> Result<(Permissions, i64), E>,
    ) -> Result<(), E> {
        let before = self.lock(core, wait);
        let (permissions, accessed) = self.peek();
        let outcome = change(permissions, accessed).map(|(new, accessed)| self.set(new, accessed));
        self.unlock(before);
        outcome
    }

    /// Sets the access time of what nobody else knows.
    pub(crate) fn set_accessed_of_made(&self, accessed: i64) {
        self.accessed.store(accessed as u64, Ordering::Relaxed);
    }

    /// Lets `change` say what permissions and access time are to be if the operation commits that the core has begun, or
    /// refuse. Until [`Header::end_mark`] others may read, and wait to write.
    pub(crate) fn mark<E>(
        &self,
        core: &Core<'_>,
        wait: &impl Wait,
        change: impl FnOnce(Permissions, i64) -> Result<(Permissions, i64), E>,
    ) -> Result<(), E> {
        let before = self.lock(core, wait);
        let (permissions, accessed) = self.peek();
        let (new, accessed) = change(permissions, accessed).inspect_err(|_| self.unlock(before))?;
        self.next_mode.store(new.mode, Ordering::Relaxed);
        self.next_user.store(new.user, Ordering::Relaxed);
        self.next_group.store(new.group, Ordering::Relaxed);
        self.next_accessed.store(accessed as u64, Ordering::Relaxed);
        let locked = self.sequence.load(Ordering::Relaxed);
        // Release: who sees the mark sees what will be.
        self.sequence.store(locked | MARKED, Ordering::Release);
        Ok(())
    }

    /// Ends what [`Header::mark`] began, once the operation has committed (`happened`) or never will.
    pub(crate) fn end_mark(&self, happened: bool) {
        let locked = self.sequence.load(Ordering::Relaxed);
        if happened {
            // Who peeks at one of these finds the operation committed. Pairs with the acquire fence of readers.
            fence(Ordering::Release);
            let (new, accessed) = self.peek_next();
            self.set(new, accessed);
        }
        self.unlock(locked & !HOLDER_MASK);
    }

    /// Ends the write in whose middle the owner of `core` died; its operation has committed (`happened`) or never will.
    pub(crate) fn repair_taken_over(&self, core: &Core<'_>, happened: bool) {
        let seen = self.sequence.load(Ordering::Acquire);
        if seen & HOLDER_MASK & !MARKED == core.index().get() as u64 + 1 {
            let is_lost = sync::mutant::planted("scalefs: an heir forgets permissions that were decided");
            self.end_mark(seen & MARKED != 0 && happened && !is_lost);
        }
    }
}

/// An inode in the arena: the header of everything that has a number.
#[repr(C)]
pub(crate) struct Inode {
    /// See there.
    pub(crate) header: CacheLine<Header>,
    /// The names that lead here. Zero is final.
    pub(crate) links: CacheLine<Noted>,
    /// Times of the last modification and of the last change, as [`stamp_of`] has them.
    pub(crate) stamps: Maximum<2>,
    /// Open descriptions, children and working processes that keep the inode, plus one while it has names. What is made
    /// without a name begins with its maker's.
    pub(crate) references: CacheLine<References>,
}

/// References, and what is looked at as seldom. The count comes first: see [`Inode::of_references`].
#[repr(C)]
pub(crate) struct References {
    pub(crate) counted: Counted,
    /// Atomic: the address of the inode's annex, once it has one; or zero.
    pub(crate) annex: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Inode>() <= 256);

/// A time in nanoseconds since 1970 as an unsigned word of the same order.
#[inline]
pub(crate) fn stamp_of(time_ns: i64) -> u64 {
    time_ns as u64 ^ 1 << 63
}

/// The time of a word of [`stamp_of`].
#[inline]
pub(crate) fn time_of(stamp: u64) -> i64 {
    (stamp ^ 1 << 63) as i64
}

impl Inode {
    #[inline]
    pub(crate) fn new(number: InodeNumber, kind: Kind, permissions: Permissions, now_ns: u64, named: Named) -> Inode {
        let links = u32::from(named == Named::AtOnce);
        let Permissions { mode, user, group } = permissions;
        Inode {
            header: CacheLine(Header {
                number,
                sequence: AtomicU64::new(0),
                accessed: AtomicU64::new(now_ns),
                mode: AtomicU32::new(mode),
                user: AtomicU32::new(user),
                group: AtomicU32::new(group),
                named: AtomicU32::new(links),
                next_mode: AtomicU32::new(0),
                next_accessed: AtomicU64::new(0),
                next_user: AtomicU32::new(0),
                next_group: AtomicU32::new(0),
                kind,
            }),
            links: CacheLine(Noted::new(links.into(), KIND_LINKS)),
            stamps: Maximum::new([stamp_of(now_ns as i64); 2]),
            references: CacheLine(References { counted: Counted::new(1, KIND_REFERENCES), annex: AtomicU64::new(0) }),
        }
    }

    /// The inode whose `links` this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_links(counted: NonNull<Counted>) -> NonNull<Inode> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Inode, links)).cast() }
    }

    /// The inode whose `references` this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> NonNull<Inode> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Inode, references)).cast() }
    }
}

/// A symbolic link: an inode with a target, whose bytes follow. Or a name for something outside: the bytes are the number of the
/// device.
#[repr(C)]
pub(crate) struct Symlink {
    pub(crate) inode: Inode,
    /// Immutable.
    pub(crate) target_bytes: u16,
}
