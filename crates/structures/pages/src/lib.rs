//! Pages of 4 KiB from a pool that the caller supplies: kept per core, counted exactly, never lost.
//!
//! **Idea.** A file system may fill its space to the last page, and must say so no earlier. One counter of free pages
//! would be a line that every write shares. Here each core has a *budget*: a stack of free pages of its own. It takes
//! from and gives to its own stack only; when that is empty it takes a batch that no one had yet, and at last, when the
//! pool is nearly full, all of another core's stack. A request fails only if it found every stack empty.
//!
//! ```text
//! pool        │ page 0 │ page 1 │ ...                 caller's memory; free pages are not touched
//! descriptors │ next, retired 64 │ ...                in the arena, a line per page
//! core i      │ head of the stack, length, pages in use by its count 64 │
//! ```
//!
//! ```text
//! allocate:  pop own stack;  else take BATCH fresh pages, or fewer;  else swap another core's head for "empty"
//! pop:       head → its next, by compare and exchange
//! ```
//!
//! **No ABA.** Only its core pushes to a stack or pops one page; others take the whole of it. A head that the core has
//! read can therefore vanish but never come back before it pushes again.
//!
//! **Notes.** The holder of a page may keep two words about it in its descriptor ([`PagePool::notes`]): a line that no
//! one else touches in the meantime.
//!
//! **Deferred release.** A page that lock-free readers may still copy from is retired (crate `epoch`) by its descriptor,
//! and freed in maintenance to the core that retired it. Space that a truncation gives up is thus free after the next
//! maintenance of its core, or of the one that maintains for it.
//!
//! **Death of a process** between taking a page and storing it loses the page, and in the middle of taking a stack all of
//! it.
//!
//! **Cost**: allocate and free an exchange each, on lines of the core and of the page's descriptor. Memory: a line per page.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p pages --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

pub use shared_bytes;

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::NonNull;

use epoch::{Guard, Retired, RetiredKind};
use percpu::{Arena, CacheLine, Core, CoreIndex, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Kind of a retired page, for the callback of `Epochs::maintain`.
pub const KIND_PAGE: RetiredKind = RetiredKind(21);
/// Fresh pages that a core takes at once.
const BATCH_PAGES: u32 = if cfg!(loom) { 1 } else { 16 };
/// A stack's end: pages are numbered from 1 in links.
const END: u32 = 0;

/// The number of a page in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageNumber(u32);

impl PageNumber {
    /// The number as an integer.
    #[inline]
    pub fn get(self) -> u32 {
        self.0
    }

    /// The page with this number; it must have come from [`PageNumber::get`] of the same pool.
    #[inline]
    pub fn new(number: u32) -> PageNumber {
        PageNumber(number)
    }
}

/// What is kept of a page; a line.
#[repr(align(64))]
struct Descriptor {
    /// Atomic: the next free page below this one in its stack, plus one.
    next: AtomicU32,
    retired: Retired,
    /// Atomic: the words of the page's holder.
    notes: [AtomicU64; 2],
}

/// Whether memory is what a new descriptor is: zeros. Of a pool that is never full the system need not give all.
///
/// # Safety
/// It is memory for a descriptor, all of which has a value.
unsafe fn is_as_new(place: NonNull<Descriptor>) -> bool {
    // Models have more in their atomics.
    if cfg!(any(loom, shuttle)) {
        return false;
    }
    // SAFETY: the caller's promise; words are less aligned than a descriptor, which is a whole number of them.
    let words = unsafe { core::slice::from_raw_parts(place.cast::<u64>().as_ptr(), size_of::<Descriptor>() / 8) };
    words.iter().all(|word| *word == 0)
}

/// What tools call the pages themselves.
pub const PAGE: ObjectKind = ObjectKind { number: 0, name: "page", stride_bytes: PAGE_BYTES, fields: &[(0, "bytes")] };
const DESCRIPTOR: ObjectKind = table_kind!(Descriptor as "descriptor of a page" {
    "next free page" = next,
    "retired" = retired,
    "first note of its owner" = notes,
    "second note of its owner" = notes + size_of::<AtomicU64>(),
});
const BUDGET: ObjectKind = table_kind!(Budget as "free pages of a core" {
    "first" = head,
    "count" = length,
    "pages in use" = used,
});
const POOL: ObjectKind = table_kind!(PagePool as "pool of pages" { "description" = base, "pages never used" = fresh });

/// The free pages of one core.
struct Budget {
    /// Atomic: topmost page plus one. Pushed and popped by the core, taken whole by others.
    head: AtomicU32,
    /// Atomic, a hint: how many there are.
    length: AtomicU32,
    /// Atomic, written by the core only: pages that it allocated less pages that it freed.
    used: AtomicI64,
}

/// A pool of pages; see the crate's head.
pub struct PagePool {
    // Immutable.
    base: NonNull<u8>,
    page_count: u32,
    descriptors: NonNull<Descriptor>,
    /// Atomic: pages from here on were never handed out.
    fresh: CacheLine<AtomicU32>,
    budgets: PerCore<Budget>,
}

// SAFETY: the pointers lead to memory that outlives the pool by the promise of `create`; descriptors consist of atomics
// and of a link that the one that retires the page owns.
unsafe impl Sync for PagePool {}
// SAFETY: nothing that it leads to belongs to a thread.
unsafe impl Send for PagePool {}

impl PagePool {
    /// What lies where, and what tools call it.
    pub fn tables(&self) -> [Part; 4] {
        let start = self.base.as_ptr() as usize;
        let bytes = start..start + self.page_count as usize * PAGE_BYTES;
        let start = self.descriptors.as_ptr() as usize;
        let descriptors = start..start + self.page_count as usize * size_of::<Descriptor>();
        [
            Part { memory: bytes, kind: &PAGE },
            Part { memory: descriptors, kind: &DESCRIPTOR },
            Part { memory: self.budgets.memory(), kind: &BUDGET },
            Part::of(self, &POOL),
        ]
    }

    /// A pool of `page_count` pages at `base`, with descriptors in the arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold a descriptor for each page.
    ///
    /// # Safety
    /// `base` is aligned to a page and valid for reads and writes of all pages as long as the arena is used; where
    /// processes share the arena, each has them at this address. No one else writes to them.
    pub unsafe fn create(arena: &Arena, base: NonNull<u8>, page_count: u32) -> Result<&PagePool, OutOfMemory> {
        assert!((base.as_ptr() as usize).is_multiple_of(PAGE_BYTES), "a pool is aligned to a page");
        assert!(page_count < u32::MAX, "pages are numbered from 1 in links");
        let layout = Layout::array::<Descriptor>(page_count as usize).map_err(|_| OutOfMemory)?;
        let descriptors = arena.allocate_permanent(layout)?.cast::<Descriptor>();
        for number in 0..page_count as usize {
            // SAFETY: in bounds of the fresh array.
            let place = unsafe { descriptors.add(number) };
            // SAFETY: as above. Memory of an arena has been written, or comes as zeros from the system.
            if unsafe { is_as_new(place) } {
                continue;
            }
            // SAFETY: as above.
            unsafe {
                place.write(Descriptor {
                    next: AtomicU32::new(END),
                    retired: Retired::new(),
                    notes: [AtomicU64::new(0), AtomicU64::new(0)],
                });
            }
        }
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let budgets = unsafe {
            PerCore::create(arena, |_| Budget {
                head: AtomicU32::new(END),
                length: AtomicU32::new(0),
                used: AtomicI64::new(0),
            })
        }?;
        arena.place(PagePool { base, page_count, descriptors, fresh: CacheLine(AtomicU32::new(0)), budgets })
    }

    #[inline]
    fn descriptor(&self, page: u32) -> &Descriptor {
        assert!(page < self.page_count);
        // SAFETY: in bounds; descriptors live as long as the pool.
        unsafe { self.descriptors.add(page as usize).as_ref() }
    }

    /// Where a page lies.
    #[inline]
    pub fn address(&self, page: PageNumber) -> NonNull<u8> {
        assert!(page.0 < self.page_count);
        // SAFETY: within the pool, as asserted, and so within what `create` was given.
        unsafe { self.base.add(page.0 as usize * PAGE_BYTES) }
    }

    /// Two words for the page's holder, which hold what the last one left.
    #[inline]
    pub fn notes(&self, page: PageNumber) -> &[AtomicU64; 2] {
        &self.descriptor(page.0).notes
    }

    /// Whether the pool is of the arena of a core.
    pub fn is_of(&self, core: &Core<'_>) -> bool {
        self.budgets.is_of(core)
    }

    /// Pages in all.
    pub fn total(&self) -> u64 {
        self.page_count.into()
    }

    /// Pages that are free: exact when no core is working, else as of some moments of the call.
    pub fn free_pages(&self) -> u64 {
        let used: i64 = self.budgets.all().map(|(_, budget)| budget.used.load(Ordering::Relaxed)).sum();
        self.total().saturating_sub(used.max(0) as u64)
    }

    /// A page with any content. Fails only if every budget was found empty.
    ///
    /// # Errors
    /// [`OutOfMemory`] if every budget was found empty.
    #[inline]
    pub fn allocate(&self, core: &Core<'_>) -> Result<PageNumber, OutOfMemory> {
        let budget = self.budgets.get(core);
        let page = match self.pop(budget) {
            Some(page) => page,
            None => self.refill(core, budget)?,
        };
        count(&budget.used, 1);
        Ok(PageNumber(page))
    }

    /// Gives a page back, to the budget of this core, whichever core had allocated it.
    ///
    /// # Safety
    /// The page was allocated from this pool, and no one uses it any more.
    #[inline]
    pub unsafe fn free(&self, core: &Core<'_>, page: PageNumber) {
        let budget = self.budgets.get(core);
        count(&budget.used, -1);
        self.push(budget, page.0);
    }

    /// Gives a page back once no one can be reading it any more.
    ///
    /// # Safety
    /// The page was allocated from this pool, new readers do not find it, and it is retired once. The maintenance of the
    /// guard's epochs calls [`PagePool::free_retired`] of this pool, the only one whose pages are retired there.
    #[inline]
    pub unsafe fn retire(&self, guard: &Guard<'_>, page: PageNumber) {
        let link = NonNull::from(&self.descriptor(page.0).retired);
        // SAFETY: the caller's promise.
        unsafe { guard.retire(link, KIND_PAGE) };
    }

    /// Frees a retired page: for the callback of `Epochs::maintain`. False if the kind is not ours.
    ///
    /// # Safety
    /// Called once per retired object, by that callback.
    pub unsafe fn free_retired(&self, core: &Core<'_>, kind: RetiredKind, object: NonNull<Retired>) -> bool {
        if kind != KIND_PAGE {
            return false;
        }
        // SAFETY: pages are retired by their descriptors, which form one array: this pool's, by the promise to `retire`. The
        // page is given back once, as the caller promises.
        unsafe {
            let descriptor = object.byte_sub(offset_of!(Descriptor, retired)).cast::<Descriptor>();
            let page = descriptor.offset_from(self.descriptors) as u32;
            self.free(core, PageNumber(page));
        }
        true
    }

    /// Makes sure that the core's next calls find pages in its budget, if there are any that no one had yet.
    pub fn maintain(&self, core: &Core<'_>) {
        let budget = self.budgets.get(core);
        if budget.length.load(Ordering::Relaxed) < BATCH_PAGES {
            self.take_fresh(budget);
        }
    }

    fn push(&self, budget: &Budget, page: u32) {
        let mut head = budget.head.load(Ordering::Relaxed);
        loop {
            self.descriptor(page).next.store(head, Ordering::Relaxed);
            // Release pairs with the acquire of who takes the stack.
            match budget.head.compare_exchange(head, page + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        budget.length.store(budget.length.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    #[inline]
    fn pop(&self, budget: &Budget) -> Option<u32> {
        let mut head = budget.head.load(Ordering::Acquire);
        loop {
            let page = head.checked_sub(1)?;
            let next = self.descriptor(page).next.load(Ordering::Relaxed);
            if sync::mutant::planted("pages: pop in two steps") {
                budget.head.store(next, Ordering::Relaxed);
                return Some(page);
            }
            // Acquire pairs with the release of pushes; fails if another core has taken the stack.
            match budget.head.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        budget.length.store(budget.length.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        Some(head - 1)
    }

    fn take_fresh(&self, budget: &Budget) -> bool {
        let mut start = self.fresh.load(Ordering::Relaxed);
        loop {
            let end = start.saturating_add(BATCH_PAGES).min(self.page_count);
            if start == end {
                return false;
            }
            match self.fresh.compare_exchange(start, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    (start..end).rev().for_each(|page| self.push(budget, page));
                    return true;
                }
                Err(seen) => start = seen,
            }
        }
    }

    #[cold]
    fn refill(&self, core: &Core<'_>, budget: &Budget) -> Result<u32, OutOfMemory> {
        if self.take_fresh(budget)
            && let Some(page) = self.pop(budget)
        {
            return Ok(page);
        }
        for victim in core.arena().cores().filter(|victim| *victim != core.index()) {
            if let Some(page) = self.rob(budget, victim) {
                return Ok(page);
            }
        }
        Err(OutOfMemory)
    }

    /// Takes the whole budget of another core: one page for the caller, the rest into his budget.
    fn rob(&self, budget: &Budget, victim: CoreIndex) -> Option<u32> {
        let theirs = self.budgets.of(victim);
        if theirs.head.load(Ordering::Relaxed) == END {
            return None;
        }
        // Acquire pairs with the release in `push`: we see the links of all pages.
        let page = theirs.head.swap(END, Ordering::Acquire).checked_sub(1)?;
        let length = theirs.length.swap(0, Ordering::Relaxed);
        let rest = self.descriptor(page).next.load(Ordering::Relaxed);
        if rest != END {
            // Our own stack is empty, and only we push to it; others may look.
            let previous = budget.head.swap(rest, Ordering::Release);
            debug_assert_eq!(previous, END);
            budget.length.store(length.saturating_sub(1), Ordering::Relaxed);
        }
        Some(page)
    }
}

fn count(used: &AtomicI64, change: i64) {
    // Only the core writes the word: no read-modify-write instruction is needed.
    used.store(used.load(Ordering::Relaxed) + change, Ordering::Relaxed);
}
