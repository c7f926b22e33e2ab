//! The hardware in software: a table per core, a line per page that the core has touched and kind of access.
//!
//! Walk and shoot-down are ordinary accesses to memory, which a tracer sees and a model checker interleaves.
//!
//! ```text
//! table of core i:   loads: page → translation │ stores: page → translation │ the page that it stores to, plus one
//! store:   storing = page + 1;  fence;  entry? → the bytes;  storing = 0
//! revoke:  fence;  per core: entry? → lock its slot;  take it out;  fence;  wait while storing = page + 1;  unlock
//! ```
//! Either the store does not find its entry, or the one who revokes waits for it. Another one who revokes the same entry meanwhile
//! finds none, but its slot locked: that is waited for. An heir of the first lets no store outlast it.

use core::ops::Range;
use core::ptr::NonNull;

use epoch::Guard;
use pages::PageNumber;
use percpu::{ArenaObject, CacheLine, Layout, ObjectKind, OutOfMemory, object_kind};
use radix::RadixArray;
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::mapping::MappingRef;
use crate::mmu::{Access, Mmu, Revoked, Translation};

/// What a core has touched.
#[repr(C)]
struct Table {
    loads: CacheLine<RadixArray>,
    stores: CacheLine<RadixArray>,
    /// Atomic: the page that the core stores to, plus one; or zero.
    storing: CacheLine<AtomicU64>,
}

/// What tools call a table's parts.
pub const TABLE: ObjectKind = object_kind!(10, Table as "translation table" {
    "root of the loads" = loads,
    "root of the stores" = stores,
    "page that it stores to" = storing,
});

// SAFETY: a kind of its own; `destroy` does what a destructor would.
unsafe impl ArenaObject for Table {
    const KIND: ObjectKind = TABLE;
}

/// Where everything is in a table.
pub const TABLE_LAYOUT: Layout = Table::LAYOUT;

/// Tables in memory; see the module's head.
pub struct SoftwareMmu {
    /// Core → address of its table.
    tables: CacheLine<RadixArray>,
}

impl Translation {
    fn encode(self) -> u64 {
        match self {
            Translation::Zeros => 0,
            Translation::Content => 1,
            Translation::File(mapping) => mapping.address() | 2,
            Translation::Page(page) => u64::from(page.get()) << 2 | 3,
        }
    }

    #[inline]
    fn decode(value: u64) -> Translation {
        match value & 3 {
            0 => Translation::Zeros,
            1 => Translation::Content,
            2 => Translation::File(MappingRef::from_address(value & !3).expect("a mapping has an address")),
            _ => Translation::Page(PageNumber::new((value >> 2) as u32)),
        }
    }
}

impl Table {
    #[inline]
    fn of(&self, access: Access) -> &RadixArray {
        match access {
            Access::Load => &self.loads,
            Access::Store => &self.stores,
        }
    }

    fn remove(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait) {
        // The slot is there if the page has an entry.
        if let Ok(slot) = self.of(access).lock_slot(guard, page, wait) {
            slot.change(|| None);
        }
    }

    /// Takes another core's entry for stores out, and waits until no store through it is under way. Until then its slot is locked.
    fn remove_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) {
        let Ok(slot) = self.stores.lock_slot(guard, page, wait) else { return };
        slot.change(|| None);
        let slot = (!planted("address-space: who finds no entry waits for no store")).then_some(slot);
        // Pairs with the fence in `begin_store`.
        fence(Ordering::SeqCst);
        let is_under_way = |storing| storing == page + 1;
        if !planted("address-space: stores under way are not waited for") {
            self.wait_while_storing(is_under_way, wait);
        }
        drop(slot);
    }

    /// Waits as long as what the core stores to is such a page, plus one.
    fn wait_while_storing(&self, is_under_way: impl Fn(u64) -> bool, wait: &impl Wait) {
        let mut round = 0;
        // Acquire pairs with the release in `end_store`.
        while is_under_way(self.storing.load(Ordering::Acquire)) {
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }
}

impl SoftwareMmu {
    /// No core has touched anything.
    ///
    /// # Safety
    /// As for [`RadixArray::new`].
    pub unsafe fn new() -> SoftwareMmu {
        // SAFETY: the caller's promise.
        SoftwareMmu { tables: CacheLine(unsafe { RadixArray::new() }) }
    }

    #[inline]
    fn table<'g>(&'g self, guard: &'g Guard<'_>, core: usize) -> Option<&'g Table> {
        let address = self.tables.get(guard, core as u64)?;
        // SAFETY: `own_table` alone puts addresses there, of tables that it has made; they live until `destroy`.
        NonNull::new(address as usize as *mut Table).map(|table| unsafe { table.as_ref() })
    }

    fn own_table<'g>(&'g self, guard: &'g Guard<'_>, wait: &impl Wait) -> Result<&'g Table, OutOfMemory> {
        let core = guard.core();
        if let Some(table) = self.table(guard, core.index().get()) {
            return Ok(table);
        }
        let slot = self.tables.lock_slot(guard, core.index().get() as u64, wait)?;
        // SAFETY: made as the arrays of the space are, for the same instance.
        let array = || CacheLine(unsafe { RadixArray::new() });
        let table = Table { loads: array(), stores: array(), storing: CacheLine(AtomicU64::new(0)) };
        let table = core.allocate_object(table)?;
        slot.change(|| Some(table.as_ptr() as usize as u64));
        // SAFETY: made above, and alive until `destroy`.
        Ok(unsafe { table.as_ref() })
    }
}

impl Mmu for SoftwareMmu {
    #[inline]
    fn find(&self, guard: &Guard<'_>, page: u64, access: Access) -> Option<Translation> {
        let table = self.table(guard, guard.core().index().get())?;
        table.of(access).get(guard, page).map(Translation::decode)
    }

    fn install(
        &self,
        guard: &Guard<'_>,
        page: u64,
        access: Access,
        translation: Translation,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        let table = self.own_table(guard, wait)?;
        table.of(access).lock_slot(guard, page, wait)?.change(|| Some(translation.encode()));
        Ok(())
    }

    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait) {
        if let Some(table) = self.table(guard, guard.core().index().get()) {
            table.remove(guard, page, access, wait);
        }
    }

    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait) {
        // The limit comes with a fence: a core that is not seen to have an entry sees what was changed before.
        for core in 0..guard.core().arena().core_limit() {
            let Some(table) = self.table(guard, core) else { continue };
            if which.contains(Access::Load) {
                table.loads.for_each_in(guard, pages.clone(), |entries, _| {
                    entries.for_each(|page| table.remove(guard, page, Access::Load, wait));
                });
            }
            if !which.contains(Access::Store) {
                continue;
            }
            if core == guard.core().index().get() {
                table.stores.for_each_in(guard, pages.clone(), |entries, _| {
                    entries.for_each(|page| table.remove(guard, page, Access::Store, wait));
                });
            } else {
                // Settled: whoever has taken an entry out before us, and waits for a store through it, has its slot locked.
                table.stores.for_each_settled_in(guard, pages.clone(), wait, |entries, _| {
                    entries.for_each(|page| table.remove_store(guard, page, wait));
                });
            }
        }
    }

    #[inline]
    fn begin_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory> {
        self.own_table(guard, wait)?.storing.store(page + 1, Ordering::Relaxed);
        // Pairs with the fence in `revoke`.
        fence(Ordering::SeqCst);
        Ok(())
    }

    #[inline]
    fn end_store(&self, guard: &Guard<'_>) {
        if let Some(table) = self.table(guard, guard.core().index().get()) {
            // Release pairs with the acquire in `revoke`: what was stored is there.
            table.storing.store(0, Ordering::Release);
        }
    }

    unsafe fn unlock_taken_over(&self, guard: &Guard<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.unlock_taken_over(guard) };
        // The dead core's own store is over.
        self.end_store(guard);
        self.tables.for_each(guard, |_, address| {
            // SAFETY: `own_table` alone puts addresses there, of tables that live until `destroy`.
            let table = unsafe { &*(address as usize as *const Table) };
            // One that the dead core may have been waiting for, with a slot locked: others wait for that.
            let before = table.storing.load(Ordering::Acquire);
            if before != 0 && !planted("address-space: an heir does not wait for stores") {
                table.wait_while_storing(|storing| storing == before, wait);
            }
            // SAFETY: the caller's promise.
            unsafe {
                table.loads.unlock_taken_over(guard);
                table.stores.unlock_taken_over(guard);
            }
        });
    }

    unsafe fn destroy(&self, guard: &Guard<'_>) {
        let core = guard.core();
        self.tables.for_each(guard, |_, address| {
            let Some(table) = NonNull::new(address as usize as *mut Table) else { return };
            // SAFETY: nobody uses the tables, by the caller's promise; each stands there once, and its arrays go before it.
            unsafe {
                table.as_ref().loads.destroy(core);
                table.as_ref().stores.destroy(core);
                core.free_object(table);
            }
        });
        // SAFETY: the caller's promise.
        unsafe { self.tables.destroy(core) };
    }
}
