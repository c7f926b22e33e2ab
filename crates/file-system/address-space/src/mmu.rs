//! What translates addresses: the hardware, or a table that stands for it.

use core::ops::Range;

use epoch::Guard;
use pages::PageNumber;
use percpu::OutOfMemory;
use sync::Wait;

use crate::files::FileId;
use crate::mapping::MappingRef;

/// A kind of access. A core's table has an entry for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Load,
    /// Writing.
    Store,
}

/// Which entries go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// Those of loads: a page comes in the place of zeros.
    Loads,
    /// Those of stores: the pages may not be written to any more.
    Stores,
    /// All: the pages lead elsewhere.
    All,
}

impl Revoked {
    /// Whether entries of a kind of access go.
    pub fn contains(self, access: Access) -> bool {
        match self {
            Revoked::Loads => access == Access::Load,
            Revoked::Stores => access == Access::Store,
            Revoked::All => true,
        }
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// To zeros; loads only.
    Zeros,
    /// To a page of the pool.
    Page(PageNumber),
    /// To a file, which knows its pages: so a cut of the file need not find the tables.
    File(MappingRef),
    /// To whatever the address space says then: a private page of a file.
    Content,
}

/// A page of the pool that programs' own instructions may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The page of the pool, or none for zeros, which are loaded from only.
    pub page: Option<PageNumber>,
    /// Whether it may be stored to as well.
    pub access: Access,
    /// The file with its page that this is, or is a copy of: a cut takes it away.
    pub file: Option<(FileId, u64)>,
    /// Whether it is a copy of the file's page: nothing but a cut concerns it.
    pub is_copy: bool,
}

/// Hardware through which programs reach pages by their own loads and stores. All threads of the program have the same pages.
pub trait DirectMmu: Mmu {
    /// Lets the program's instructions reach a page of the pool. The caller holds the locks of the page's content and rights, and of the
    /// file's page, so that nobody takes away meanwhile what is shown.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the hardware has no room for it; then nothing is to be reached there.
    fn show(&self, page: u64, shown: Shown) -> Result<(), OutOfMemory>;
}

/// Per core, what the core may access, and how. Each core installs for itself and finds in its own table; who takes pages away
/// revokes them on all.
pub trait Mmu {
    /// What the calling core's table has for a page.
    fn find(&self, guard: &Guard<'_>, page: u64, access: Access) -> Option<Translation>;

    /// Puts an entry into the calling core's table. The caller then looks again whether what it rests on still holds, with a
    /// sequentially consistent fence between; if not, it withdraws the entry.
    ///
    /// # Errors
    /// [`OutOfMemory`] without memory for the table.
    fn install(
        &self,
        guard: &Guard<'_>,
        page: u64,
        access: Access,
        translation: Translation,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory>;

    /// Takes an entry out of the calling core's table.
    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait);

    /// Takes entries of some pages out of the tables of all cores, and waits until no store through them is under way. What the
    /// caller changed before is ordered before: no core finds what was there then after this has returned. Writes to tables
    /// that have such entries, and to no other.
    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait);

    /// The core begins to store to a page. Between this and [`Mmu::end_store`] it waits for nobody but for locks of files.
    ///
    /// # Errors
    /// [`OutOfMemory`] without memory for the mark; then the store has not begun.
    fn begin_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory>;

    /// The store has ended.
    fn end_store(&self, guard: &Guard<'_>);

    /// Whether programs may reach pages without asking this crate each time ([`DirectMmu`]): then who lets a page lead elsewhere always
    /// revokes it.
    fn is_direct(&self) -> bool {
        false
    }

    /// Unlocks what a core that was taken over had locked. Waits for stores of other cores that are under way: of those of dead owners
    /// the end is told first ([`Mmu::end_store`]).
    ///
    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    unsafe fn unlock_taken_over(&self, guard: &Guard<'_>, wait: &impl Wait);

    /// Gives the tables back.
    ///
    /// # Safety
    /// Nobody uses the address space any more.
    unsafe fn destroy(&self, guard: &Guard<'_>);
}
