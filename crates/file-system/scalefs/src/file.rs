//! The data of a regular file: a radix array of pages, and a size that is raised per core.
//!
//! **Where the end is.** A page lies below the end of the file if it, or any page behind it, has a value in the array: a
//! page of the pool, or the mark of a hole. So reading, and asking whether a write extends the file, need the array
//! only, and share nothing with the size (section 6.3, "layer scalability"). Where the end lies at least is in the file's
//! own line (`Maximum::floor`) and is asked first, if it may tell something of the page (`FilePages::may_be_known`). The size itself, in bytes, is a maximum over
//! all cores: writes that extend the file share nothing either, and only who asks for the size, or cuts the file off,
//! looks at all cores.
//!
//! ```text
//! index     0        1       2        3
//! value    page    none    page|P    none      size = 2 * 4096 + 100
//!                  hole    the end   behind the end
//! ```
//!
//! **P, "ask for the size"**, marks a page in which the file may end. A page without it is below the end as a whole.
//! Bytes of a page behind the end are zero.
//!
//! ```text
//! read a page:   value none: a hole if a later index has a value, else the end;  again if this one has got one, or the file was cut
//!                value: copy; with P as far as the size goes; again if the slot has changed meanwhile
//! write a page:  nothing if it holds the bytes already, or is a hole, by the floor, and they are zeros;  lock the slot;  if it has P or no value, and the size is not known to be higher: raise the size
//!                copy in place, or into a new page;  unlock
//! ```
//! Longer and shorter files: [`resizing`].
//!
//! **Atomic** are: each page that is read, each page that is written, the size, an append against other appends and (its
//! first page) against what else moves the end. A read or write over several pages is not (POSIX.1-2017, 2.9.7 asks for
//! it; Linux's file systems do not all give it).
//!
//! **Death of a process**: in a write it leaves a locked slot, and the page may hold a part of the bytes; in a cut the
//! size's generation stays open: it then is taken from the array's end ([`File::end_cut_taken_over`]). Between the size and the
//! page of a longer file, the array does not reach the end: [`File::repair_taken_over`] puts a hole there, and unlocks.
#![allow(unsafe_code)]

mod allocation;
mod changes;
mod cuts;
#[cfg(feature = "std")]
mod inspected;
mod mapped;
mod pages_of_file;
mod resizing;

pub(crate) use changes::Wanted;
pub use changes::{FileRoom, PageRoom};

use core::ops::ControlFlow;

use epoch::Guard;
use maxima::{Floor, Maximum};
use pages::{PAGE_BYTES, PageNumber};
use percpu::{ArenaObject, CacheLine, Core, CoreIndex, CoreLock, LockRank, ObjectKind, OutOfMemory};
use posix_calls::data::MAX_FILE_BYTES;
use posix_calls::{Extent, Sought};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::file::cuts::Cuts;
use crate::file::pages_of_file::FilePages;
use crate::inode::{Inode, inode_kind};
use crate::instance::ScaleFs;
use pages::shared_bytes;

/// Rank of the lock of appends: before the locks of pages and of sizes.
const RANK_APPEND: LockRank = LockRank(200);
const PAGE: u64 = PAGE_BYTES as u64;

/// A regular file: an inode with data.
#[repr(C)]
pub(crate) struct File {
    pub(crate) inode: Inode,
    size: Maximum<1>,
    pages: FilePages,
    /// On a line of its own.
    appending: CacheLine<Appending>,
    cuts: CacheLine<Cuts>,
}

struct Appending {
    /// Held by appends.
    lock: CoreLock,
    /// What becomes of the size, while a change of it is marked: see `changes`.
    next_size: AtomicU64,
}

/// What tools call a file's parts.
pub(crate) const FILE: ObjectKind = inode_kind!(6, File as "file" {
    "size" = size,
    "root of the pages" = pages,
    "lock of appends" = appending.0.lock,
    "next size" = appending.0.next_size,
    "cuts" = cuts,
});

// SAFETY: a kind of its own; what a file has is given back before its memory is.
unsafe impl ArenaObject for File {
    const KIND: ObjectKind = FILE;
}

/// What a slot of the array holds.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The page, or none for a hole.
    page: Option<PageNumber>,
    /// Whether the file may end in it.
    may_end: bool,
}

impl Entry {
    #[inline]
    fn decode(value: u64) -> Entry {
        let page = (value >> 1).checked_sub(1).map(|number| PageNumber::new(number as u32));
        Entry { page, may_end: value & 1 != 0 }
    }

    #[inline]
    fn encode(self) -> u64 {
        self.page.map_or(0, |page| u64::from(page.get()) + 1) << 1 | u64::from(self.may_end)
    }
}

/// Whether a slot's value says that its whole page lies below the end.
#[inline]
fn is_below_end(value: Option<u64>) -> bool {
    value.is_some_and(|value| !Entry::decode(value).may_end)
}

/// What a page is for a writer who has not locked it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The file may end in it, or before.
    MayEnd,
    /// It lies below the end as a whole.
    BelowEnd,
    /// It does, and holds the bytes already: a write would change nothing.
    Same,
}

/// What came of reading a part of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PageRead {
    /// Bytes of the part that are below the end.
    count: usize,
    /// Whether any byte of the page is.
    is_there: bool,
}

/// What a writer of a page has seen before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Nothing,
    /// That the file ends where the bytes go.
    EndHere,
}

/// Why a page was not written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NotWritten {
    OutOfMemory,
    EndMoved,
}

impl From<OutOfMemory> for NotWritten {
    fn from(_: OutOfMemory) -> NotWritten {
        NotWritten::OutOfMemory
    }
}

/// What data calls have in common: the instance, the pinned core, the way to wait.
pub(crate) struct Access<'a, W> {
    pub(crate) fs: &'a ScaleFs,
    pub(crate) guard: &'a Guard<'a>,
    pub(crate) wait: &'a W,
}

impl<W> Clone for Access<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Access<'_, W> {}

impl<W: Wait> Access<'_, W> {
    /// Whether what a core has marked is as it was before.
    #[inline]
    fn is_as_before(&self) -> impl Fn(CoreIndex) -> bool {
        let Access { fs, guard, wait } = *self;
        move |core| fs.decisions().is_as_before(core, guard.core(), wait)
    }
}

/// Lets go of what a slot had before a change that has `happened`, or would have had after it.
fn give_up<W>(access: Access<'_, W>, value: u64, happened: bool) {
    let Access { fs, guard, .. } = access;
    let Some(page) = Entry::decode(value).page else { return };
    // SAFETY: the page was, or was to be, in this slot alone; readers that have found it are pinned.
    unsafe {
        match happened {
            true => fs.pages().retire(guard, page),
            false => fs.pages().free(guard.core(), page),
        }
    }
}

impl File {
    pub(crate) fn new(inode: Inode) -> File {
        File {
            inode,
            size: Maximum::new([0]),
            pages: FilePages::new(),
            appending: CacheLine(Appending { lock: CoreLock::new(), next_size: AtomicU64::new(0) }),
            cuts: CacheLine(Cuts::new()),
        }
    }

    /// Gives all pages back.
    ///
    /// # Safety
    /// Nobody uses the file any more.
    pub(crate) unsafe fn destroy(&self, fs: &ScaleFs, core: &Core<'_>) {
        self.pages.array.for_each(&fs.epochs().pin(core), |range, value| {
            debug_assert_eq!(range.end - range.start, 1, "pages are not folded");
            if let Some(page) = Entry::decode(value).page {
                // SAFETY: the file is the page's only place, and nobody reads it.
                unsafe { fs.pages().free(core, page) };
            }
        });
        // SAFETY: nobody uses the file, and so the array, by the caller's promise.
        unsafe { self.pages.array.destroy(core) };
    }

    /// The size in bytes.
    pub(crate) fn size<W: Wait>(&self, access: Access<'_, W>) -> u64 {
        access.fs.sizes().read_beside_marks(&self.size, access.wait, access.is_as_before())[0]
    }

    /// The size in bytes, for a call that only reads; see [`Maxima::read_after_fence`](maxima::Maxima::read_after_fence).
    #[inline]
    pub(crate) fn size_after_fence<W: Wait>(&self, access: Access<'_, W>) -> u64 {
        let Access { fs, guard, wait } = access;
        // SAFETY: the file is not freed before all cores have maintained.
        unsafe { fs.sizes().read_after_fence_beside_marks(guard.core(), &self.size, wait, access.is_as_before())[0] }
    }

    /// Whether a read at this offset finds the end of the file. Writes nothing.
    pub(crate) fn ends_at<W: Wait>(&self, access: Access<'_, W>, offset: u64) -> bool {
        self.read_page(access, offset / PAGE, (offset % PAGE) as usize, &mut [0]).count == 0
    }

    /// Whether the file has fewer bytes than this. Writes nothing, and looks at no page if the file is known to be longer.
    pub(crate) fn is_shorter_than<W: Wait>(&self, access: Access<'_, W>, length: u64) -> bool {
        let floor = || self.size.floor_beside_marks(access.is_as_before());
        let is_known = || floor().is_some_and(|floor| floor.words[0] >= length);
        let is_longer = length == 0 || (self.pages.may_be_known((length - 1) / PAGE) && is_known());
        !is_longer && self.ends_at(access, length - 1)
    }

    /// What lies at an offset, and how far: pages that are there one after the other, or none up to the next. Zeros that were
    /// written into a hole are a hole. Writes nothing.
    pub(crate) fn extent<W: Wait>(&self, access: Access<'_, W>, offset: u64) -> Extent {
        let first = offset / PAGE;
        let mut end = first;
        let mut kind = Sought::Hole;
        let pages = first..MAX_FILE_BYTES / PAGE + 1;
        let found = self.pages.array.try_for_each_in(access.guard, pages, |range, value| {
            if Entry::decode(value).page.is_none() {
                return ControlFlow::Continue(());
            }
            match (kind, range.start == end) {
                (_, true) => (kind, end) = (Sought::Data, range.end),
                (Sought::Hole, false) => {
                    end = range.start;
                    return ControlFlow::Break(());
                }
                (Sought::Data, false) => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        });
        let is_to_the_end = found.is_continue() && kind == Sought::Hole;
        Extent { kind, end: if is_to_the_end { u64::MAX } else { end * PAGE } }
    }

    /// Reads bytes from an offset on; fewer than asked for only at the end of the file.
    pub(crate) fn read<W: Wait>(&self, access: Access<'_, W>, offset: u64, bytes: &mut [u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let position = offset + done as u64;
            let start = (position % PAGE) as usize;
            let length = (PAGE_BYTES - start).min(bytes.len() - done);
            let read = self.read_page(access, position / PAGE, start, &mut bytes[done..done + length]).count;
            done += read;
            if read < length {
                break;
            }
        }
        done
    }

    /// Whether the file has at least so many bytes, by its own line and by what two cores have raised: this one, and the one
    /// that has made it. So who reads what it has just written asks no other core, and whoever is handed it asks one.
    fn is_known_to_reach<W: Wait>(&self, access: Access<'_, W>, size: u64) -> bool {
        let sizes = access.fs.sizes();
        let cores = || [access.guard.core().index()].into_iter().chain(self.inode.header.maker());
        sizes.floor_of_cores(&self.size, cores()).is_some_and(|floor| floor.words[0] >= size)
    }

    /// Reads a part of one page. Without room for a byte it tells whether the page is there.
    fn read_page<W: Wait>(&self, access: Access<'_, W>, index: u64, start: usize, bytes: &mut [u8]) -> PageRead {
        let Access { fs, guard, wait } = access;
        let mut round = 0;
        loop {
            let shortenings = self.pages.shortenings.now();
            let read = self.pages.array.read_beside_marks(guard, index, wait, access.is_as_before(), |value| {
                let entry = Entry::decode(value?);
                // Whether the page is there asks for one byte of it, too.
                let needed = index * PAGE + (start + bytes.len().max(1)) as u64;
                let end = match entry.may_end {
                    true if self.is_known_to_reach(access, needed) => PAGE_BYTES,
                    true => self.size(access).saturating_sub(index * PAGE).min(PAGE) as usize,
                    false => PAGE_BYTES,
                };
                let target = &mut bytes[..];
                let count = end.saturating_sub(start).min(target.len());
                match entry.page {
                    // SAFETY: the page was in the slot under this guard, and leaves slots by being retired: it is in use at least
                    // until the guard ends. `count` bytes from `start` on lie in it. What others write there meanwhile is
                    // noticed by `RadixArray::read`.
                    Some(page) => unsafe {
                        shared_bytes::load(&mut target[..count], fs.pages().address(page).as_ptr().add(start));
                    },
                    None => target[..count].fill(0),
                }
                Some(PageRead { count, is_there: end > 0 })
            });
            if let Some(read) = read {
                return read;
            }
            // No page: a hole if the file goes on behind it, else the end. Where the floor may tell nothing it is not asked, so that
            // who is behind the end shares nothing with cuts to nothing.
            let looks_once = planted("scalefs: a page without a value is looked at once");
            let is_none = |value: Option<u64>| value.is_none();
            let is_empty = || self.pages.array.read_beside_marks(guard, index, wait, access.is_as_before(), is_none);
            let goes_on_behind = || self.pages.array.any_from(guard, index + 1, wait, access.is_as_before());
            if !self.pages.may_be_known(index)
                && !goes_on_behind()
                && (looks_once || (is_empty() && self.pages.shortenings.is_still(shortenings)))
            {
                return PageRead { count: 0, is_there: false };
            }
            // The floor is asked first, since it shares nothing with those who extend the file.
            let floor = self.size.floor_beside_marks(access.is_as_before());
            let is_known = floor.is_some_and(|floor| floor.words[0] >= (index + 1) * PAGE);
            let goes_on = is_known || goes_on_behind();
            // Values go by cuts only, which end the floor: if it still holds, and there still is none here, there was none
            // when we looked behind it. Not while somebody changes it: who appends here has come before what we saw there.
            let is_same = is_empty() && floor.is_some_and(|floor| self.size.still_has(&floor));
            if is_same || looks_once {
                let count = if goes_on { bytes.len() } else { 0 };
                bytes[..count].fill(0);
                return PageRead { count, is_there: goes_on };
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    /// Writes bytes from an offset on. Returns how many were written: fewer only if space ran out.
    pub(crate) fn write<W: Wait>(&self, access: Access<'_, W>, offset: u64, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let position = offset + done as u64;
            let start = (position % PAGE) as usize;
            let length = (PAGE_BYTES - start).min(bytes.len() - done);
            let part = &bytes[done..done + length];
            if self.write_page(access, (position / PAGE, start), part, Expected::Nothing).is_err() {
                break;
            }
            done += length;
        }
        done
    }

    /// Writes bytes at the end, as far as a file can reach. No other append comes between finding the end and writing, and
    /// nothing else that moves the end or writes there between that and the first page's. Returns where the end was.
    pub(crate) fn append<W: Wait>(&self, access: Access<'_, W>, bytes: &[u8]) -> (u64, usize) {
        let _lock = self.appending.lock.lock(access.guard.core(), RANK_APPEND, access.wait);
        loop {
            let end = self.size(access);
            let room = usize::try_from(MAX_FILE_BYTES - end).unwrap_or(usize::MAX);
            let bytes = &bytes[..bytes.len().min(room)];
            let start = (end % PAGE) as usize;
            let (first, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - start));
            if first.is_empty() {
                return (end, 0);
            }
            match self.write_page(access, (end / PAGE, start), first, Expected::EndHere) {
                Ok(()) => return (end, first.len() + self.write(access, end + first.len() as u64, rest)),
                Err(NotWritten::OutOfMemory) => return (end, 0),
                Err(NotWritten::EndMoved) => {}
            }
        }
    }

    /// Looks at a page before it is written ("precede pessimism with optimism"). As good as free: pages that differ from
    /// what is written mostly do so in their first line.
    fn look<W: Wait>(&self, access: Access<'_, W>, index: u64, start: usize, bytes: &[u8]) -> Look {
        let Access { fs, guard, wait } = access;
        let look_at_hole = || if bytes.iter().all(|byte| *byte == 0) { Look::Same } else { Look::BelowEnd };
        let seen = self.pages.array.read_beside_marks(guard, index, wait, access.is_as_before(), |value| {
            let value = value?;
            if !is_below_end(Some(value)) {
                return Some(Look::MayEnd);
            }
            Some(match Entry::decode(value).page {
                // SAFETY: the page was in the slot under this guard, as in `read_page`; callers stay within a page.
                Some(page) if unsafe { shared_bytes::equals(fs.pages().address(page).as_ptr().add(start), bytes) } => {
                    Look::Same
                }
                Some(_) => Look::BelowEnd,
                None => look_at_hole(),
            })
        });
        seen.unwrap_or_else(|| if self.is_known_hole(access, index) { look_at_hole() } else { Look::MayEnd })
    }

    /// Whether a page has no value and the floor tells that the file goes on behind it. Without a cut meanwhile both were so at one
    /// moment. Where the floor may tell nothing it is not asked.
    fn is_known_hole<W: Wait>(&self, access: Access<'_, W>, index: u64) -> bool {
        let Access { guard, wait, .. } = access;
        if !self.pages.may_be_known(index) {
            return false;
        }
        let floor = self.size.floor_beside_marks(access.is_as_before());
        let Some(floor) = floor.filter(|floor| floor.words[0] >= (index + 1) * PAGE) else { return false };
        let is_none = |value: Option<u64>| value.is_none();
        planted("scalefs: a hole is looked at once")
            || self.pages.array.read_beside_marks(guard, index, wait, access.is_as_before(), is_none)
                && self.size.still_has(&floor)
    }

    /// The floor, for a core that has locked a slot that the end may move to; none while a cut is under way, which may have
    /// gone past the slot: then the lock is to be given up. A cut that begins later comes to the slot, and waits for it.
    fn floor_under_lock(&self) -> Option<Floor<1>> {
        // Pairs with the fence in `Maximum::begin_reset`: the cut sees the lock, or we see the cut.
        fence(Ordering::SeqCst);
        self.size.floor()
    }

    fn write_page<W: Wait>(
        &self,
        access: Access<'_, W>,
        (index, start): (u64, usize),
        bytes: &[u8],
        expected: Expected,
    ) -> Result<(), NotWritten> {
        let Access { fs, guard, wait } = access;
        let core = guard.core();
        let in_page = start + bytes.len();
        let mut round = 0;
        loop {
            let look = self.look(access, index, start, bytes);
            if look == Look::Same && expected == Expected::Nothing {
                return Ok(());
            }
            let may_extend = look == Look::MayEnd;
            if may_extend {
                // SAFETY: the file is not freed before all cores have maintained.
                unsafe { fs.sizes().prepare(core, &self.size, wait) };
            }
            let looks_early = planted("scalefs: who extends looks for cuts before the lock");
            let early = if looks_early { self.size.floor() } else { None };
            let slot = self.pages.array.lock_slot(guard, index, wait)?;
            let value = slot.value();
            let old = value.map_or(Entry { page: None, may_end: true }, Entry::decode);
            let floor = match is_below_end(value) {
                true => None,
                false if looks_early => early,
                false => match self.floor_under_lock() {
                    Some(floor) => Some(floor),
                    None => {
                        drop(slot);
                        wait.wait(WaitReason::Operation, round);
                        round = round.saturating_add(1);
                        continue;
                    }
                },
            };
            let known = floor.map_or(0, |floor| floor.words[0]);
            let is_below = is_below_end(value) || known >= (index + 1) * PAGE;
            if !may_extend && !is_below {
                continue;
            }
            let page = old.page.map_or_else(|| fs.pages().allocate(core), Ok)?;
            let address = fs.pages().address(page).as_ptr();
            let has_moved = || fs.sizes().try_read(&self.size) != Some([index * PAGE + start as u64]);
            let looks_early = planted("scalefs: an append looks at the end before its change");
            let has_moved_before = looks_early && expected == Expected::EndHere && has_moved();
            let written = slot.try_change(|| {
                if has_moved_before {
                    return Err(NotWritten::EndMoved);
                }
                if !looks_early && expected == Expected::EndHere {
                    // With the change begun, so that whoever sees what others do to the end after our look at it waits for
                    // what we write here: they come after us.
                    fence(Ordering::SeqCst);
                    if has_moved() {
                        return Err(NotWritten::EndMoved);
                    }
                }
                // SAFETY: the page is ours to write while we hold the lock; readers notice.
                unsafe {
                    if old.page.is_none() {
                        shared_bytes::clear(address, start);
                        shared_bytes::clear(address.add(in_page), PAGE_BYTES - in_page);
                    }
                    shared_bytes::store(address.add(start), bytes);
                }
                let end = index * PAGE + in_page as u64;
                if let Some(floor) = floor.filter(|floor| !is_below && floor.words[0] < end) {
                    // SAFETY: the file is not freed before all cores have maintained.
                    unsafe { fs.sizes().raise_above(core, &self.size, &floor, [end]) };
                }
                Ok(Some(Entry { page: Some(page), may_end: !is_below && in_page < PAGE_BYTES }.encode()))
            });
            if written.is_err() && old.page.is_none() {
                // SAFETY: allocated just now; the slot does not name it.
                unsafe { fs.pages().free(core, page) };
            }
            return written;
        }
    }

    /// Ends the cut in whose middle a process died, the file ends where the array does; or the marked change, which has
    /// `happened` or never will.
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub(crate) unsafe fn end_cut_taken_over(&self, guard: &Guard<'_>, happened: bool) {
        let mut end = 0;
        self.pages.array.for_each(guard, |range, _| end = range.end * PAGE);
        // SAFETY: the caller's promise.
        unsafe {
            if self.size.is_open_of(guard.core()) {
                self.complete_size_taken_over(happened);
            }
            self.size.repair_taken_over(guard.core(), [end]);
        }
    }

    /// Unlocks what a dead process held, and lets the array reach as far as the size if it died between raising that and
    /// putting the page in. Cuts and raises were repaired before.
    ///
    /// # Safety
    /// As for [`File::end_cut_taken_over`].
    pub(crate) unsafe fn repair_taken_over<W: Wait>(&self, access: Access<'_, W>, happened: bool) {
        let Access { fs, guard, wait } = access;
        // SAFETY: the caller's promise.
        unsafe {
            let happened = happened && !planted("scalefs: an heir forgets pages that were decided");
            self.pages.array.end_taken_over(guard, happened, |value| give_up(access, value, happened));
            // A cut of the living, if there is one, has this lock.
            if self.appending.lock.holder() == Some(guard.core().index()) {
                self.pages.shortenings.end();
            }
            self.appending.lock.release_taken_over(guard.core());
        }
        loop {
            let size = self.size(access);
            let Some(last) = size.checked_sub(1).map(|byte| byte / PAGE) else { return };
            // The leaf is there, since the process had locked the slot.
            let Ok(slot) = self.pages.array.lock_slot(guard, last, wait) else { return };
            // With the lock nobody cuts the page off.
            if fs.sizes().try_read(&self.size) == Some([size]) {
                if slot.value().is_none() {
                    slot.change(|| Some(Entry { page: None, may_end: true }.encode()));
                }
                return;
            }
        }
    }
}
