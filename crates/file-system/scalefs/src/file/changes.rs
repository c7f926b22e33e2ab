//! Changes of a file's data under a decision (crate `commit`).
//!
//! All slots of pages that change are locked. What a page is to be is written into a page of its own, which stands beside
//! the present one as a mark; so readers never find the middle of it, and an heir finds all of it. What the size is to be
//! stands beside the lock of appends, and the size is marked. Whoever meets a mark asks the decision word of the core that
//! holds the lock: before the decision all is as it was, after it the end of the marks is awaited.
//!
//! ```text
//! lock     cuts and appends off;  then slots of the written pages; of a cut: that of its last page, and all behind it      files by address
//! mark     slot ← new page;  then copy what stays of the old one, and write                     after all slots are locked
//!          size ← mark, if it may change                                                        files by address
//! finish   slots, then sizes;  pages that went are retired
//! ```
//! A store to a mapped page takes no lock. The slot is marked before it is copied: so either the copy has the bytes, or
//! the store finds the mark, waits for its end, and stores again (`mapped`).

use maxima::Mark;
use pages::{PAGE_BYTES, shared_bytes};
use percpu::{CoreLockGuard, OutOfMemory};
use posix_calls::{FileChanges, ReservedPages, WriteChange};
use radix::{LockedRange, LockedSlot};
use sync::Wait;
use sync::atomic::Ordering;
use sync::mutant::planted;

use super::{Access, Entry, File, PAGE, RANK_APPEND, give_up, is_below_end};
use crate::inode_ref::InodeRef;
use crate::node::Node;
use crate::window::Forgotten;

/// Room for what is kept of a file while a change of it is prepared.
#[derive(Default)]
pub struct FileRoom<'v> {
    /// Once something of it may be locked.
    node: Option<InodeRef>,
    /// Keeps cuts and appends off.
    appending: Option<CoreLockGuard<'v>>,
    /// How many rooms of pages are its own.
    page_count: usize,
    /// Of a cut: the first index that is locked, and all behind it.
    cut: Option<CutRoom<'v>>,
    /// A page may come to lie below the end, or the size is set.
    may_resize: bool,
    size: Option<Mark<'v, 1>>,
    next_size: NextSize,
}

struct CutRoom<'v> {
    size_bytes: u64,
    first_index: u64,
    first: LockedSlot<'v>,
    rest: LockedRange<'v>,
}

/// Room for a page that is written.
#[derive(Default)]
pub struct PageRoom<'v>(Option<LockedSlot<'v>>);

/// What becomes of a size.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum NextSize {
    #[default]
    Same,
    AtLeast(u64),
    Exactly(u64),
}

impl NextSize {
    fn encode(self) -> u64 {
        match self {
            NextSize::Same => 0,
            NextSize::AtLeast(size) => size << 2 | 1,
            NextSize::Exactly(size) => size << 2 | 2,
        }
    }
}

/// The page of the last byte of a file of this size; that of the first one if there is none.
fn last_page(size_bytes: u64) -> u64 {
    size_bytes.saturating_sub(1) / PAGE
}

/// The pages that are written, each once, in order.
fn written<'w>(writes: &'w [WriteChange<'_>]) -> impl Iterator<Item = u64> + Clone + use<'w> {
    let pages = writes.iter().map(|write| write.offset / PAGE);
    pages
        .clone()
        .zip(core::iter::once(None).chain(pages.map(Some)))
        .filter(|(page, last)| Some(*page) != *last)
        .map(|(page, _)| page)
}

/// What a change of a file is to be.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'k> {
    writes: &'k [WriteChange<'k>],
    cut_to: Option<u64>,
    size_bytes: Option<u64>,
}

impl<'k> Wanted<'k> {
    pub(crate) fn of(change: &FileChanges<'k, Node<'_>>) -> Wanted<'k> {
        let &FileChanges { writes, cut_to, size_bytes, .. } = change;
        Wanted { writes, cut_to, size_bytes }
    }

    /// The file is this long at least, afterwards.
    fn least_size(&self) -> u64 {
        let end = self.writes.last().map_or(0, |write| write.offset + write.bytes.len() as u64);
        self.size_bytes.unwrap_or(end)
    }

    fn writes_of(&self, index: u64) -> &'k [WriteChange<'k>] {
        let start = self.writes.partition_point(|write| write.offset / PAGE < index);
        let end = self.writes.partition_point(|write| write.offset / PAGE <= index);
        &self.writes[start..end]
    }
}

impl<'v> FileRoom<'v> {
    /// Keeps cuts and appends off, as cuts do among themselves. The file was noted for an heir.
    pub(crate) fn lock_appends<W: Wait>(&mut self, access: Access<'v, W>, node: InodeRef) {
        self.node = Some(node);
        self.appending = Some(node.file().appending.lock.lock(access.guard.core(), RANK_APPEND, access.wait));
    }

    /// Locks the slots of the pages that change. The file was noted for an heir.
    pub(crate) fn lock<W: Wait>(
        &mut self,
        access: Access<'v, W>,
        node: InodeRef,
        wanted: Wanted<'_>,
        pages: &mut [PageRoom<'v>],
    ) -> Result<(), OutOfMemory> {
        let Access { guard, wait, .. } = access;
        let array = &node.file().pages.array;
        let Some(cut_to) = wanted.cut_to else {
            for (place, index) in pages.iter_mut().zip(written(wanted.writes)) {
                place.0 = Some(array.lock_slot(guard, index, wait)?);
                self.page_count += 1;
            }
            return Ok(());
        };
        let first_index = written(wanted.writes).next().map_or(u64::MAX, |page| page).min(last_page(cut_to));
        let behind = written(wanted.writes).chain([last_page(wanted.least_size())]);
        let behind = behind.filter(|index| *index > first_index);
        loop {
            // They get slots of their own; what is empty may lose them to another cut until all is locked.
            for index in behind.clone() {
                drop(array.lock_slot(guard, index, wait)?);
            }
            let (first, rest) = array.lock_slot_and_rest(guard, first_index, wait)?;
            if behind.clone().all(|index| rest.slot(index).is_some()) {
                self.cut = Some(CutRoom { size_bytes: cut_to, first_index, first, rest });
                return Ok(());
            }
        }
    }

    /// Marks what becomes of the pages. All slots are locked.
    pub(crate) fn mark_pages<W: Wait>(
        &mut self,
        access: Access<'v, W>,
        wanted: Wanted<'_>,
        pages: &mut [PageRoom<'v>],
        reserved: &ReservedPages<'_>,
    ) -> Result<(), OutOfMemory> {
        let Some(node) = self.node else { return Ok(()) };
        self.may_resize = wanted.size_bytes.is_some();
        // Before any is copied. The locks keep it from being shown again.
        match &self.cut {
            Some(cut) => node.file().forget_shown(cut.first_index..u64::MAX, Forgotten::Replaced),
            None => {
                written(wanted.writes).for_each(|index| node.file().forget_shown(index..index + 1, Forgotten::Replaced))
            }
        }
        let Some(cut) = &self.cut else {
            for (place, index) in pages.iter().zip(written(wanted.writes)) {
                let slot = place.0.as_ref().expect("locked");
                let value = slot.value();
                let Some(next) = self.next_value(access, node.file(), (index, value), wanted, reserved)? else {
                    continue;
                };
                slot.mark(next.encoded());
                next.fill(access, value, index, wanted);
            }
            return Ok(());
        };
        let (first_index, cut_to) = (cut.first_index, cut.size_bytes);
        let ends = [last_page(cut_to), last_page(wanted.least_size())];
        let others = ends.into_iter().filter(|index| wanted.writes_of(*index).is_empty());
        let others =
            others.enumerate().filter(|(place, index)| *place == 0 || *index != ends[0]).map(|(_, index)| index);
        for index in written(wanted.writes).chain(others) {
            let cut = self.cut.as_ref().expect("seen above");
            let of_rest = if index == first_index { None } else { cut.rest.slot(index) };
            if index != first_index && of_rest.is_none() {
                // Empty, and it stays so.
                continue;
            }
            let value = of_rest.as_ref().map_or_else(|| cut.first.value(), |slot| slot.value());
            let Some(next) = self.next_value(access, node.file(), (index, value), wanted, reserved)? else { continue };
            let cut = self.cut.as_ref().expect("seen above");
            match cut.rest_slot(index) {
                Some(slot) => slot.mark(next.encoded()),
                None => cut.first.mark(next.encoded()),
            }
            next.fill(access, value, index, wanted);
        }
        let cut = self.cut.as_ref().expect("seen above");
        cut.rest
            .mark_empty(|index| index * PAGE >= cut_to && wanted.writes_of(index).is_empty() && !ends.contains(&index));
        Ok(())
    }

    /// What a slot is to hold, if that is another value. Bytes are not in the page yet.
    fn next_value<W: Wait>(
        &mut self,
        access: Access<'_, W>,
        file: &File,
        (index, value): (u64, Option<u64>),
        wanted: Wanted<'_>,
        reserved: &ReservedPages<'_>,
    ) -> Result<Option<Next>, OutOfMemory> {
        let (least, page_end) = (wanted.least_size(), (index + 1) * PAGE);
        if wanted.size_bytes.is_some() && index * PAGE >= least && wanted.writes_of(index).is_empty() {
            return Ok(value.is_some().then_some(Next { entry: None, kept: 0 }));
        }
        let old = value.map_or(Entry { page: None, may_end: true }, Entry::decode);
        let kept = wanted.cut_to.map_or(PAGE, |cut| cut.saturating_sub(index * PAGE).min(PAGE)) as usize;
        // The lock keeps cuts off, so a floor stays.
        let floor = file.size.floor().map_or(0, |floor| floor.words[0]);
        let is_below = (is_below_end(value) || floor >= page_end) && wanted.size_bytes.is_none();
        self.may_resize |= !is_below;
        let is_copied = !wanted.writes_of(index).is_empty() || old.page.is_some() && kept > 0 && kept < PAGE_BYTES;
        let page = match is_copied {
            true => Some(match reserved.take() {
                Some(page) => pages::PageNumber::new(page as u32),
                None => access.fs.pages().allocate(access.guard.core())?,
            }),
            false if kept == 0 => None,
            false => old.page,
        };
        let next = Entry { page, may_end: !(is_below || least >= page_end) };
        // The flag of a page that stays may say "ask for the size" although nobody need.
        let is_same = Some(next.encode()) == value || !is_copied && page.is_some();
        Ok((!is_same).then_some(Next { entry: Some(next), kept }))
    }

    /// Marks the size, if it may change. All pages of all files are marked.
    pub(crate) fn mark_size<W: Wait>(&mut self, access: Access<'v, W>, wanted: Wanted<'_>) {
        let Some(node) = self.node.filter(|_| self.may_resize) else { return };
        let file = node.file();
        self.next_size = match wanted.size_bytes {
            Some(size) => NextSize::Exactly(size),
            None => NextSize::AtLeast(wanted.least_size()),
        };
        let mark = file.size.mark(access.guard.core(), access.wait);
        file.appending.next_size.store(self.next_size.encode(), Ordering::Release);
        self.size = Some(mark);
    }

    /// Lets all be as it is to be, or as it was, and unlocks it.
    pub(crate) fn finish<W: Wait>(&mut self, access: Access<'v, W>, pages: &mut [PageRoom<'v>], happened: bool) {
        let Some(node) = self.node else { return };
        let file = node.file();
        let end_mark = |slot: &LockedSlot<'_>| {
            if let Some(value) = slot.end_mark(happened) {
                give_up(access, value, happened);
            }
        };
        pages.iter().filter_map(|place| place.0.as_ref()).for_each(end_mark);
        if let Some(cut) = &self.cut {
            // As in a cut: nobody finds one page cut and then another as before.
            file.pages.shortenings.change(|| {
                end_mark(&cut.first);
                cut.rest.end_marks(happened, |value| give_up(access, value, happened));
            });
        }
        if let Some(mark) = self.size.take() {
            let [present] = access.fs.sizes().read_marked(&mark, access.wait);
            match self.next_size {
                NextSize::AtLeast(size) | NextSize::Exactly(size) if happened && size >= present => {
                    mark.raise([size]);
                    file.pages.note_known(size.div_ceil(PAGE));
                }
                NextSize::Exactly(size) if happened => mark.reset().finish([size]),
                _ => drop(mark),
            }
            if let Some(cut) = self.cut.as_ref().filter(|cut| happened && cut.size_bytes < present) {
                file.cuts.note(cut.size_bytes.div_ceil(PAGE));
                file.forget_shown(cut.size_bytes.div_ceil(PAGE)..u64::MAX, Forgotten::CutOff);
            }
            file.appending.next_size.store(0, Ordering::Release);
        }
        self.cut = None;
        pages.iter_mut().for_each(|place| place.0 = None);
        self.appending = None;
    }

    /// How many rooms of pages it uses.
    pub(crate) fn page_count(&self) -> usize {
        self.page_count
    }
}

impl CutRoom<'_> {
    /// The slot of an index behind the first one.
    fn rest_slot(&self, index: u64) -> Option<radix::SlotOfRange<'_>> {
        if index == self.first_index { None } else { self.rest.slot(index) }
    }
}

/// What a slot is to hold.
struct Next {
    entry: Option<Entry>,
    /// So many bytes of the present page stay.
    kept: usize,
}

impl Next {
    fn encoded(&self) -> Option<u64> {
        self.entry.map(Entry::encode)
    }

    /// Fills the page that is to be. The slot is marked.
    fn fill<W: Wait>(&self, access: Access<'_, W>, value: Option<u64>, index: u64, wanted: Wanted<'_>) {
        let Some(page) = self.entry.and_then(|entry| entry.page) else { return };
        let mut bytes = [0; PAGE_BYTES];
        if let Some(old) = value.and_then(|value| Entry::decode(value).page)
            && !planted("scalefs: a page that changes loses what stays")
        {
            // SAFETY: the page is in the slot, which is locked.
            unsafe { shared_bytes::load(&mut bytes[..self.kept], access.fs.pages().address(old).as_ptr()) };
        }
        for write in wanted.writes_of(index) {
            let start = (write.offset % PAGE) as usize;
            bytes[start..start + write.bytes.len()].copy_from_slice(write.bytes);
        }
        // SAFETY: the page is ours, until the slot holds it.
        unsafe { shared_bytes::store(access.fs.pages().address(page).as_ptr(), &bytes) };
    }
}

impl File {
    /// Lets the size be what a change says, in whose middle a process died, if it has happened.
    ///
    /// # Safety
    /// The core that has the size marked was taken over from a dead owner.
    pub(super) unsafe fn complete_size_taken_over(&self, happened: bool) {
        let next = self.appending.next_size.swap(0, Ordering::AcqRel);
        if next != 0 && happened && !planted("scalefs: an heir forgets a size that was decided") {
            // SAFETY: the caller's promise.
            unsafe { self.size.complete_taken_over([next >> 2], next & 2 != 0) };
        }
    }
}
