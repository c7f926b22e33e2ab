//! Pages that programs reach by their own instructions.
//!
//! A touch stands for the fault of such an instruction. What a page leads to, its rights and its file's page are locked while it is shown:
//! so nobody can take it away before those who would are able to see that it was shown.
//!
//! ```text
//! touch:  a load or store of no bytes, for its errors and so that there is a page;  lock content, "writable", the file's page;
//!         show it;  a copy of a file's page: look whether it was cut off meanwhile
//! ```

use pages::PageNumber;
use percpu::OutOfMemory;
use posix_calls::Sharing;
use sync::Wait;

use crate::access::Fault;
use crate::content::Content;
use crate::files::{FileId, Files};
use crate::marks::Mark;
use crate::mmu::{Access, DirectMmu, Revoked, Shown};
use crate::space::{AddressSpace, Memory};

/// Files whose pages are pages of the pool.
pub trait PagedFiles: Files {
    /// Calls `show` with the page of the pool that a file's page is, while nobody can put another in its place. A hole gets a page.
    /// To be stored to is only a page that lies below the end of the file as a whole.
    ///
    /// # Errors
    /// [`OutOfMemory`] without a page for a hole, or what `show` returns.
    fn with_page(
        &self,
        file: FileId,
        page: u64,
        access: Access,
        show: &mut dyn FnMut(PageNumber) -> Result<(), OutOfMemory>,
    ) -> Result<Presence, OutOfMemory>;
}

/// Whether a file has a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has, and it was shown.
    Shown,
    /// The file ends within it: what a program stored behind the end would show when the file grows.
    EndsWithin,
    /// It lies behind the end.
    Behind,
}

/// Why the program's instructions do not reach a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchError {
    /// As for a load or store.
    Fault(Fault),
    /// A store to the page in which a shared file ends: only [`AddressSpace::store`] can do that.
    EndsWithin,
}

impl From<Fault> for TouchError {
    fn from(fault: Fault) -> TouchError {
        TouchError::Fault(fault)
    }
}

impl From<OutOfMemory> for TouchError {
    fn from(_: OutOfMemory) -> TouchError {
        TouchError::Fault(Fault::OutOfMemory)
    }
}

impl<M: DirectMmu> AddressSpace<M> {
    /// Lets the program's own loads, or its loads and stores, reach a page from now on, until somebody takes it away.
    ///
    /// # Errors
    /// [`TouchError`]: what the instruction would end with.
    pub fn touch<F: PagedFiles, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        access: Access,
    ) -> Result<(), TouchError> {
        let address = page * pages::PAGE_BYTES as u64;
        loop {
            match access {
                Access::Load => self.load(memory, address, &mut [0])?,
                Access::Store => self.prepare_store(memory, page)?,
            }
            if self.show(memory, page, access)? {
                return Ok(());
            }
        }
    }

    /// Shows a page that was there just now; false if it has changed so that it must be looked at again.
    fn show<F: PagedFiles, W: Wait>(
        &self,
        memory: &Memory<'_, F, W>,
        page: u64,
        access: Access,
    ) -> Result<bool, TouchError> {
        let Memory { guard, pages, files, wait, .. } = *memory;
        let slot = self.content.lock_slot(guard, page, wait)?;
        // Whoever changes rights holds this.
        let writable = self.marks.of(Mark::Writable).lock_slot(guard, page, wait)?;
        let is_allowed = match access {
            Access::Load => self.marks.of(Mark::Hidden).get(guard, page).is_none(),
            Access::Store => writable.value().is_some(),
        };
        let (true, Some(value)) = (is_allowed, slot.value()) else { return Ok(false) };
        let content = Content::decode(value).present(page, pages, files);
        let of_file = |content: Content| {
            let (mapping, _) = content.original(pages)?;
            Some((mapping.get().file, mapping.get().page_of_file(page)))
        };
        let shown = match content {
            Content::File(mapping) => {
                let mapping = mapping.get();
                if access == Access::Store && mapping.sharing == Sharing::Private {
                    return Ok(false);
                }
                let (file, index) = (mapping.file, mapping.page_of_file(page));
                let presence = files.with_page(file, index, access, &mut |number| {
                    self.mmu.show(page, Shown { page: Some(number), access, file: Some((file, index)), is_copy: false })
                })?;
                return match presence {
                    Presence::Shown => Ok(true),
                    Presence::EndsWithin => Err(TouchError::EndsWithin),
                    // Cut off since it was looked at.
                    Presence::Behind => Ok(false),
                };
            }
            // There is a page for stores, unless others have shared or forgotten it since.
            Content::Anonymous | Content::Shared(_) if access == Access::Store => return Ok(false),
            Content::Anonymous => Shown { page: None, access, file: None, is_copy: false },
            copy => Shown { page: copy.page(), access, file: of_file(copy), is_copy: true },
        };
        self.mmu.show(page, shown)?;
        // Whoever cuts the file notes that, and then takes away what is shown: one of us sees the other.
        if content == Content::decode(value).present(page, pages, files) {
            return Ok(true);
        }
        self.mmu.revoke(guard, page..page + 1, Revoked::All, wait);
        Ok(false)
    }
}
