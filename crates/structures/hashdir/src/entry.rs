//! One name: two lines, the first with all that lookups of existence need, the second with the value.

use core::mem::offset_of;
use core::ptr::{self, NonNull};

use commit::{Anyone, Decisions, Observed, Tag, Viewer};
use epoch::Retired;
use percpu::{ArenaObject, Core, ObjectKind, OutOfMemory, SizeClass, object_kind};
use sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use crate::key::{Key, MAX_NAME_BYTES, position};

/// Names up to this length are kept in the entry.
const INLINE_BYTES: usize = 24;

/// Bit of a value that lookups of existence learn without reading the value, at least since it was first set: a name
/// that leads to a symbolic link, for a file system.
pub const MARK: u64 = 1;

/// States of an entry; for the last two, the tag stands above the two bits.
const DEAD: u64 = 0;
const PRESENT: u64 = 1;
const INSERTING: u64 = 2;
const REMOVING: u64 = 3;
const KIND_MASK: u64 = 3;

/// Bytes of the name, or where they are.
union NameStore {
    inline: [u8; INLINE_BYTES],
    long: NonNull<LongName>,
}

/// The bytes of a name that has no room in its entry.
pub(crate) struct LongName([u8; MAX_NAME_BYTES]);

/// The first line: everything but `next` and `state` is immutable.
#[repr(C, align(64))]
struct NameLine {
    /// Guarded by the bucket's lock, read by anybody; which of the two, the table says.
    next: [AtomicPtr<Entry>; 2],
    /// As `next`.
    state: AtomicU64,
    hash: u64,
    name: NameStore,
    name_bytes: u8,
    tie: u8,
    /// Atomic: 1 once a value with [`MARK`] was stored or prepared; never cleared.
    marked: AtomicU32,
}

/// The second line.
#[repr(C, align(64))]
struct ValueLine {
    /// Guarded by the bucket's lock, read by anybody.
    value: AtomicU64,
    /// The value if the operation `tag` has committed.
    value_to_be: AtomicU64,
    tag: AtomicU64,
    /// Counts replacements.
    version: AtomicU64,
    retired: Retired,
}

/// A directory entry.
#[repr(C)]
pub(crate) struct Entry {
    first: NameLine,
    second: ValueLine,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == 128 && offset_of!(Entry, second) == 64);

/// Size class of entries, for `Core::will_allocate`.
pub const ENTRY_CLASS: SizeClass = Entry::CLASS;
/// What tools call an entry's parts.
pub const ENTRY: ObjectKind = object_kind!(1, Entry as "directory entry" {
    "next" = first.next,
    "state" = first.state,
    "hash" = first.hash,
    "name" = first.name,
    "marked" = first.marked,
    "value" = second.value,
    "value_to_be" = second.value_to_be,
    "tag" = second.tag,
    "version" = second.version,
    "retired" = second.retired,
});

// SAFETY: a kind of its own; a name that lies apart is given back before its entry is.
unsafe impl ArenaObject for Entry {
    const KIND: ObjectKind = ENTRY;
}

/// What tools call the bytes of a long name.
pub const LONG_NAME: ObjectKind = object_kind!(17, LongName as "long name" { "bytes" = 0 });

// SAFETY: a kind of its own, of bytes.
unsafe impl ArenaObject for LongName {
    const KIND: ObjectKind = LONG_NAME;
}

impl Entry {
    /// Allocates an entry that is present, or, with a tag, will be once the operation commits.
    pub(crate) fn allocate(
        core: &Core<'_>,
        key: &Key<'_>,
        tie: u8,
        value: u64,
        tag: Option<Tag>,
    ) -> Result<NonNull<Entry>, OutOfMemory> {
        let name = if key.name.len() <= INLINE_BYTES {
            let mut inline = [0; INLINE_BYTES];
            inline[..key.name.len()].copy_from_slice(key.name);
            NameStore { inline }
        } else {
            let long = core.allocate_place::<LongName>()?;
            // SAFETY: fresh memory for 255 bytes.
            unsafe { ptr::copy_nonoverlapping(key.name.as_ptr(), long.as_ptr().cast(), key.name.len()) };
            NameStore { long }
        };
        let entry = Entry {
            first: NameLine {
                next: [AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut())],
                state: AtomicU64::new(tag.map_or(PRESENT, |tag| tag.to_bits() << 2 | INSERTING)),
                hash: key.hash,
                name,
                name_bytes: key.name.len() as u8,
                tie,
                marked: AtomicU32::new((value & MARK) as u32),
            },
            second: ValueLine {
                value: AtomicU64::new(value),
                value_to_be: AtomicU64::new(0),
                tag: AtomicU64::new(0),
                version: AtomicU64::new(0),
                retired: Retired::new(),
            },
        };
        let place = core.allocate_place::<Entry>().inspect_err(|_| {
            if key.name.len() > INLINE_BYTES {
                // SAFETY: allocated above, for nothing but the entry that cannot be had; the length says it is `long`.
                unsafe { core.free_object(entry.first.name.long) };
            }
        })?;
        // SAFETY: fresh memory of the entry's class.
        unsafe { place.write(entry) };
        Ok(place)
    }

    /// Gives an entry's memory back.
    ///
    /// # Safety
    /// The entry came from `allocate` and no one uses it any more.
    pub(crate) unsafe fn free(core: &Core<'_>, entry: NonNull<Entry>) {
        // SAFETY: the caller's promise; the union's field follows from the length.
        unsafe {
            let first = &entry.as_ref().first;
            if usize::from(first.name_bytes) > INLINE_BYTES {
                core.free_object(first.name.long);
            }
            core.free_object(entry);
        }
    }

    /// The link for retirement, and back.
    pub(crate) fn link(entry: NonNull<Entry>) -> NonNull<Retired> {
        // SAFETY: the field lies in the entry.
        unsafe { entry.byte_add(offset_of!(Entry, second) + offset_of!(ValueLine, retired)).cast() }
    }

    /// # Safety
    /// `link` is that of an entry.
    pub(crate) unsafe fn of_link(link: NonNull<Retired>) -> NonNull<Entry> {
        // SAFETY: the caller's promise.
        unsafe { link.byte_sub(offset_of!(Entry, second) + offset_of!(ValueLine, retired)).cast() }
    }

    #[inline]
    pub(crate) fn next(&self, parity: usize) -> &AtomicPtr<Entry> {
        &self.first.next[parity]
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.first.hash
    }

    /// Where the entry stands in listings.
    #[inline]
    pub(crate) fn cookie(&self) -> u64 {
        position(self.first.hash) | u64::from(self.first.tie)
    }

    #[inline]
    pub(crate) fn name(&self) -> &[u8] {
        let length = usize::from(self.first.name_bytes);
        // SAFETY: the length says which field of the union was written, and both are immutable and as long as the entry.
        unsafe {
            if length <= INLINE_BYTES {
                self.first.name.inline.get_unchecked(..length)
            } else {
                core::slice::from_raw_parts(self.first.name.long.as_ptr().cast(), length)
            }
        }
    }

    #[inline]
    pub(crate) fn matches(&self, key: &Key<'_>) -> bool {
        self.first.hash == key.hash && self.name() == key.name
    }

    /// Whether the name exists now, undecided operations counted as not having happened (and revoked if revocable).
    #[inline]
    pub(crate) fn exists(&self, decisions: &Decisions) -> bool {
        self.exists_for(decisions, Anyone)
    }

    /// [`Entry::exists`] for a viewer.
    #[inline]
    pub(crate) fn exists_for(&self, decisions: &Decisions, viewer: impl Viewer) -> bool {
        // Acquire pairs with the releases of those who change the state.
        let state = self.first.state.load(Ordering::Acquire);
        state == PRESENT || state != DEAD && self.exists_by_mark(decisions, viewer)
    }

    /// [`Entry::exists_for`] where an operation decides.
    #[cold]
    fn exists_by_mark(&self, decisions: &Decisions, viewer: impl Viewer) -> bool {
        let mut round = 0;
        loop {
            // Acquire: as above.
            let state = self.first.state.load(Ordering::Acquire);
            let observed = match (state & KIND_MASK, Tag::from_bits(state >> 2)) {
                (PRESENT, _) => return true,
                (_, None) => return false,
                (_, Some(tag)) => decisions.observe_by(tag, viewer),
            };
            match observed {
                Observed::Committed => return state & KIND_MASK == INSERTING,
                Observed::NotCommitted => return state & KIND_MASK == REMOVING,
                // Its core replaces the mark, or has done so.
                Observed::Over => viewer.wait(round),
            }
            round = round.saturating_add(1);
        }
    }

    /// The value and the number of its version.
    #[inline]
    pub(crate) fn value(&self, decisions: &Decisions) -> (u64, u64) {
        self.value_for(decisions, Anyone)
    }

    /// [`Entry::value`] for a viewer.
    #[inline]
    pub(crate) fn value_for(&self, decisions: &Decisions, viewer: impl Viewer) -> (u64, u64) {
        let second = &self.second;
        let version = second.version.load(Ordering::Acquire);
        // Acquire pairs with the releases in `prepare_replace` and `finish_replace`.
        if second.tag.load(Ordering::Acquire) == 0 {
            let value = second.value.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            let is_same = second.tag.load(Ordering::Relaxed) == 0 && second.version.load(Ordering::Relaxed) == version;
            if is_same || sync::mutant::planted("hashdir: value without recheck") {
                return (value, version);
            }
        }
        self.value_by_mark(decisions, viewer)
    }

    /// [`Entry::value_for`] where an operation decides, or the value has just changed.
    #[cold]
    fn value_by_mark(&self, decisions: &Decisions, viewer: impl Viewer) -> (u64, u64) {
        let second = &self.second;
        let mut round = 0;
        loop {
            let version = second.version.load(Ordering::Acquire);
            let tag_bits = second.tag.load(Ordering::Acquire);
            let (old, new) = (second.value.load(Ordering::Relaxed), second.value_to_be.load(Ordering::Relaxed));
            let observed = Tag::from_bits(tag_bits).map(|tag| decisions.observe_by(tag, viewer));
            // What was read belongs together if neither tag nor version has changed.
            fence(Ordering::Acquire);
            let is_same =
                second.tag.load(Ordering::Relaxed) == tag_bits && second.version.load(Ordering::Relaxed) == version;
            let is_taken = is_same || sync::mutant::planted("hashdir: value without recheck");
            match observed {
                None | Some(Observed::NotCommitted) if is_taken => return (old, version),
                Some(Observed::Committed) if is_taken => return (new, version),
                _ => viewer.wait(round),
            }
            round = round.saturating_add(1);
        }
    }

    /// How often the value has changed.
    #[inline]
    pub(crate) fn value_version(&self) -> u64 {
        self.second.version.load(Ordering::Acquire)
    }

    // The following are called with the bucket's lock held.

    pub(crate) fn mark_inserting(&self, tag: Tag) {
        self.first.state.store(tag.to_bits() << 2 | INSERTING, Ordering::Release);
    }

    pub(crate) fn mark_removing(&self, tag: Tag) {
        if sync::mutant::planted("hashdir: removal ignores the tag") {
            return;
        }
        self.first.state.store(tag.to_bits() << 2 | REMOVING, Ordering::Release);
    }

    pub(crate) fn set_present(&self) {
        self.first.state.store(PRESENT, Ordering::Release);
    }

    pub(crate) fn set_dead(&self) {
        self.first.state.store(DEAD, Ordering::Release);
    }

    pub(crate) fn prepare_replace(&self, value: u64, tag: Tag) {
        if !sync::mutant::planted("hashdir: mark after the value") {
            self.mark(value);
        }
        if !sync::mutant::planted("hashdir: replacement without fence") {
            // Who reads the new `value_to_be` under the tag before then finds that tag gone, and reads again.
            fence(Ordering::Release);
        }
        self.second.value_to_be.store(value, Ordering::Relaxed);
        self.second.tag.store(tag.to_bits(), Ordering::Release);
    }

    /// Ends a replacement that was prepared. A reader that mixes words of before and after finds version or tag changed.
    pub(crate) fn finish_replace(&self, happened: bool) {
        if happened {
            let version = self.second.version.load(Ordering::Relaxed);
            self.second.version.store(version + 1, Ordering::Relaxed);
            fence(Ordering::Release);
            self.second.value.store(self.second.value_to_be.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.second.tag.store(0, Ordering::Release);
    }

    /// Replaces the value by itself.
    pub(crate) fn replace(&self, value: u64) {
        self.mark(value);
        let version = self.second.version.load(Ordering::Relaxed);
        self.second.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.second.value.store(value, Ordering::Release);
    }

    /// Before a value with the mark can be seen: who then finds the entry unmarked has done so while the old value was.
    fn mark(&self, value: u64) {
        if value & MARK != 0 && self.first.marked.load(Ordering::Relaxed) == 0 {
            // Release pairs with the acquire in `is_marked`; what makes the value true comes later.
            self.first.marked.store(1, Ordering::Release);
        }
    }

    /// Whether the value has, or had, or is about to have the mark.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.first.marked.load(Ordering::Acquire) != 0
    }

    /// Whether the entry is plainly present, without a tag.
    pub(crate) fn is_present(&self) -> bool {
        self.first.state.load(Ordering::Relaxed) == PRESENT
    }

    /// Whether the operation is about to remove the name.
    pub(crate) fn is_removed_by(&self, tag: Tag) -> bool {
        self.first.state.load(Ordering::Acquire) == tag.to_bits() << 2 | REMOVING
    }

    /// The tags that the entry carries: in its state, and of its value.
    pub(crate) fn tags(&self) -> (Option<Tag>, bool, Option<Tag>) {
        let state = self.first.state.load(Ordering::Relaxed);
        let tag = Tag::from_bits(state >> 2);
        (tag, state & KIND_MASK == INSERTING, Tag::from_bits(self.second.tag.load(Ordering::Relaxed)))
    }
}
