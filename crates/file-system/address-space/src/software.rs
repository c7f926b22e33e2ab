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
//!
//! **Whom to ask.** A core finds room for what it maps in a part of the address space of its own. Other cores that touch pages there
//! note themselves with that core's table before they have an entry; who revokes then asks those. So what a core maps, uses and
//! unmaps by itself costs the same whatever the number of cores; what it hands to another one, too. Pages elsewhere, at places that
//! the caller chose, may be touched by any core first, and such first touches share nothing: so each table is asked for them.

use core::iter;
use core::ops::Range;
use core::ptr::NonNull;

use epoch::Guard;
use pages::PageNumber;
use percpu::{ArenaObject, CacheLine, CoreIndex, Holders, Holding, Layout, ObjectKind, OutOfMemory, object_kind};
use radix::RadixArray;
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::mapping::MappingRef;
use crate::mmu::{Access, Mmu, Revoked, Translation};
use crate::parts::owner_of;

/// What a core has touched.
#[repr(C)]
struct Table {
    loads: CacheLine<RadixArray>,
    stores: CacheLine<RadixArray>,
    /// Atomic: the page that the core stores to, plus one; or zero.
    storing: CacheLine<AtomicU64>,
    /// The other cores that may have entries for pages of this core's own part.
    others: CacheLine<Holders>,
}

/// What tools call a table's parts.
pub const TABLE: ObjectKind = object_kind!(10, Table as "translation table" {
    "root of the loads" = loads,
    "root of the stores" = stores,
    "page that it stores to" = storing,
    "who else has touched the core's part" = others,
});

// SAFETY: a kind of its own; `destroy` does what a destructor would.
unsafe impl ArenaObject for Table {
    const KIND: ObjectKind = TABLE;
}

/// Where everything is in a table.
pub const TABLE_LAYOUT: Layout = Table::LAYOUT;

/// Tables in memory; see the module's head.
pub struct SoftwareMmu {
    /// Core → address of its table; or [`TOUCHED`].
    tables: CacheLine<RadixArray>,
}

/// In place of a table that is still to be made: others have touched pages of the core's part.
const TOUCHED: u64 = 1;

/// Which cores may have entries for some pages.
enum Asked {
    /// Any.
    All,
    /// None has.
    Nobody,
    /// The owner of the part that they lie in, and these.
    Few(CoreIndex, Holding),
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

/// The table whose address stands in a slot of `SoftwareMmu::tables`, if one does.
fn table_at(value: u64) -> Option<NonNull<Table>> {
    NonNull::new(value as usize as *mut Table).filter(|_| value != TOUCHED)
}

impl Table {
    /// # Safety
    /// The value stood in a slot of `SoftwareMmu::tables`: `own_table` alone puts addresses there, of tables that it has made, and they
    /// live until `destroy`, which nobody else outlasts.
    #[inline]
    unsafe fn at<'t>(value: u64) -> Option<&'t Table> {
        // SAFETY: the caller's promise.
        table_at(value).map(|table| unsafe { table.as_ref() })
    }

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
        // SAFETY: what stands there.
        unsafe { Table::at(self.tables.get(guard, core as u64)?) }
    }

    fn own_table<'g>(&'g self, guard: &'g Guard<'_>, wait: &impl Wait) -> Result<&'g Table, OutOfMemory> {
        let core = guard.core();
        if let Some(table) = self.table(guard, core.index().get()) {
            return Ok(table);
        }
        let slot = self.tables.lock_slot(guard, core.index().get() as u64, wait)?;
        // SAFETY: made as the arrays of the space are, for the same instance.
        let array = || CacheLine(unsafe { RadixArray::new() });
        let is_touched =
            slot.value() == Some(TOUCHED) && !planted("address-space: who came first to a part is forgotten");
        let others = CacheLine(if is_touched { Holders::new() } else { Holders::listed() });
        let table = Table { loads: array(), stores: array(), storing: CacheLine(AtomicU64::new(0)), others };
        let table = core.allocate_object(table)?;
        slot.change(|| Some(table.as_ptr() as usize as u64));
        // SAFETY: made above, and alive until `destroy`.
        Ok(unsafe { table.as_ref() })
    }

    /// Says that the core is about to have an entry for a page, if that is of another core's part.
    fn note(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory> {
        let core = guard.core().index();
        let Some(owner) = owner_of(&(page..page + 1)).filter(|owner| *owner != core) else { return Ok(()) };
        if planted("address-space: who touches another core's part says nothing") {
            return Ok(());
        }
        let number = owner.get() as u64;
        if self.tables.get(guard, number).is_none() {
            let slot = self.tables.lock_slot(guard, number, wait)?;
            if slot.value().is_none() {
                slot.change(|| Some(TOUCHED));
            }
        }
        if let Some(table) = self.table(guard, owner.get()) {
            table.others.note(core);
        }
        Ok(())
    }

    /// Who is to be asked, of those who had an entry before the last fence.
    fn asked(&self, guard: &Guard<'_>, pages: &Range<u64>) -> Asked {
        let Some(owner) = owner_of(pages) else { return Asked::All };
        match self.tables.get(guard, owner.get() as u64) {
            None => Asked::Nobody,
            // SAFETY: what stands there.
            Some(address) => match unsafe { Table::at(address) }.map(|table| table.others.seen()) {
                Some(holding) if holding.is_list() => Asked::Few(owner, holding),
                _ => Asked::All,
            },
        }
    }

    fn revoke_from(&self, guard: &Guard<'_>, core: usize, pages: &Range<u64>, which: Revoked, wait: &impl Wait) {
        let Some(table) = self.table(guard, core) else { return };
        if which.contains(Access::Load) {
            table.loads.for_each_in(guard, pages.clone(), |entries, _| {
                entries.for_each(|page| table.remove(guard, page, Access::Load, wait));
            });
        }
        if !which.contains(Access::Store) {
            return;
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
        self.note(guard, page, wait)?;
        table.of(access).lock_slot(guard, page, wait)?.change(|| Some(translation.encode()));
        Ok(())
    }

    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait) {
        if let Some(table) = self.table(guard, guard.core().index().get()) {
            table.remove(guard, page, access, wait);
        }
    }

    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait) {
        // A core that is not seen to have an entry, or to be about to, sees what was changed before.
        fence(Ordering::SeqCst);
        match self.asked(guard, &pages) {
            Asked::Nobody => {}
            Asked::Few(owner, holding) => {
                let cores = iter::once(owner).chain(holding.cores());
                cores.for_each(|core| self.revoke_from(guard, core.get(), &pages, which, wait));
            }
            Asked::All => {
                let cores = 0..guard.core().arena().core_limit();
                cores.for_each(|core| self.revoke_from(guard, core, &pages, which, wait));
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
            // SAFETY: what stands there.
            let Some(table) = (unsafe { Table::at(address) }) else { return };
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
            let Some(table) = table_at(address) else { return };
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
