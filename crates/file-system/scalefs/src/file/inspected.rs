//! What a look at the whole instance wants to know of a file: its pages, and who holds a lock of it.

use epoch::Guard;
use pages::PageNumber;
use percpu::CoreIndex;

use super::{Entry, File};

impl File {
    /// Tells `each` every page of the file.
    pub(crate) fn for_each_page(&self, guard: &Guard<'_>, mut each: impl FnMut(PageNumber)) {
        self.pages.array.for_each(guard, |_, value| {
            if let Some(page) = Entry::decode(value).page {
                each(page);
            }
        });
    }

    /// Damages the file: a page is at an index, whoever has it.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn put_page(&self, guard: &Guard<'_>, index: u64, page: PageNumber) {
        let slot = self.pages.array.lock_slot(guard, index, &sync::Spin).expect("there is memory");
        slot.change(|| Some(Entry { page: Some(page), may_end: false }.encode()));
    }

    /// Tells `each` the core that holds a lock of the file, lock by lock.
    pub(crate) fn for_each_held(&self, guard: &Guard<'_>, mut each: impl FnMut(CoreIndex)) {
        self.appending.lock.holder().into_iter().for_each(&mut each);
        self.pages.array.for_each_held(guard, each);
    }
}
