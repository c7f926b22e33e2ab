//! Pages that a program's own instructions reach: what is shown of each kind of page, and what becomes of it if the page changes in
//! the middle of a touch.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;

use address_space::{
    Access, AddressSpace, Backing, DirectMmu, Fault, FileId, Memory, Mmu, PagedFiles, Place, Presence, Protection,
    Revoked, Sharing, Shown, SoftwareMmu, TouchError, Translation,
};
use epoch::Guard;
use pages::{PAGE_BYTES, PageNumber};
use percpu::{Core, OutOfMemory};
use support::{Instance, TestFile, TestFiles, owner, part_of, with_instance};
use sync::{Spin, Wait};

const FILE: FileId = FileId(0);
/// The file has this whole page before its last one, in which it ends.
const WHOLE: u64 = 0;
const LAST: u64 = 1;
const FILE_BYTES: usize = PAGE_BYTES + 10;
/// Numbers that no page of the pool has.
const FIRST_OF_FILE: u32 = 1000;

const SEGMENT: Result<(), TouchError> = Err(TouchError::Fault(Fault::Segment));
const BUS: Result<(), TouchError> = Err(TouchError::Fault(Fault::Bus));
const NO_MEMORY: Result<(), TouchError> = Err(TouchError::Fault(Fault::OutOfMemory));

fn page_of_file(page: u64) -> PageNumber {
    PageNumber::new(FIRST_OF_FILE + page as u32)
}

impl PagedFiles for TestFiles {
    fn with_page(
        &self,
        file: FileId,
        page: u64,
        access: Access,
        show: &mut dyn FnMut(PageNumber) -> Result<(), OutOfMemory>,
    ) -> Result<Presence, OutOfMemory> {
        let length = self.0.lock().unwrap()[file.0 as usize].bytes.len();
        match part_of(length, page, 0, PAGE_BYTES) {
            None => return Ok(Presence::Behind),
            Some(part) if part.len() < PAGE_BYTES && access == Access::Store => return Ok(Presence::EndsWithin),
            Some(_) => {}
        }
        show(page_of_file(page)).map(|()| Presence::Shown)
    }
}

/// What happens in the middle of a touch.
type Meanwhile<'a> = Option<Box<dyn FnOnce() + 'a>>;

/// Hardware that notes what is shown.
struct Noting<'a> {
    tables: SoftwareMmu,
    shown: RefCell<BTreeMap<u64, Shown>>,
    has_room: Cell<bool>,
    /// Whether the store that is under way has found its entry.
    stores: Cell<bool>,
    /// Once a load has found its entry, or a store has ended.
    after_access: RefCell<Meanwhile<'a>>,
    /// Once a page is shown.
    after_show: RefCell<Meanwhile<'a>>,
}

impl Noting<'_> {
    fn new() -> Self {
        Noting {
            // SAFETY: used with one instance only.
            tables: unsafe { SoftwareMmu::new() },
            shown: RefCell::default(),
            has_room: Cell::new(true),
            stores: Cell::new(false),
            after_access: RefCell::default(),
            after_show: RefCell::default(),
        }
    }
}

fn happen(meanwhile: &RefCell<Meanwhile<'_>>) {
    let happens = meanwhile.borrow_mut().take();
    if let Some(happens) = happens {
        happens();
    }
}

impl Mmu for Noting<'_> {
    fn find(&self, guard: &Guard<'_>, page: u64, access: Access) -> Option<Translation> {
        let found = self.tables.find(guard, page, access);
        match access {
            Access::Store => self.stores.set(found.is_some()),
            Access::Load if found.is_some() => happen(&self.after_access),
            Access::Load => {}
        }
        found
    }

    fn install(
        &self,
        guard: &Guard<'_>,
        page: u64,
        access: Access,
        translation: Translation,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        self.tables.install(guard, page, access, translation, wait)
    }

    fn withdraw(&self, guard: &Guard<'_>, page: u64, access: Access, wait: &impl Wait) {
        self.tables.withdraw(guard, page, access, wait);
    }

    fn revoke(&self, guard: &Guard<'_>, pages: Range<u64>, which: Revoked, wait: &impl Wait) {
        self.tables.revoke(guard, pages.clone(), which, wait);
        self.shown.borrow_mut().retain(|page, shown| !pages.contains(page) || !which.contains(shown.access));
    }

    fn begin_store(&self, guard: &Guard<'_>, page: u64, wait: &impl Wait) -> Result<(), OutOfMemory> {
        self.tables.begin_store(guard, page, wait)
    }

    fn end_store(&self, guard: &Guard<'_>) {
        self.tables.end_store(guard);
        if self.stores.take() {
            happen(&self.after_access);
        }
    }

    fn is_direct(&self) -> bool {
        true
    }

    unsafe fn unlock_taken_over(&self, guard: &Guard<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.unlock_taken_over(guard, wait) };
    }

    unsafe fn destroy(&self, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        unsafe { self.tables.destroy(guard) };
    }
}

impl DirectMmu for Noting<'_> {
    fn show(&self, page: u64, shown: Shown) -> Result<(), OutOfMemory> {
        if !self.has_room.get() {
            return Err(OutOfMemory);
        }
        self.shown.borrow_mut().insert(page, shown);
        happen(&self.after_show);
        Ok(())
    }
}

/// A process whose second core does what happens in the middle of the first one's touch.
#[derive(Clone, Copy)]
struct Scene<'a> {
    instance: &'a Instance<'a>,
    space: &'a AddressSpace<Noting<'a>>,
    cores: &'a [Core<'a>; 2],
}

fn with_scene(test: impl for<'a> FnOnce(Scene<'a>)) {
    with_instance(2, 64, |instance, _| {
        *instance.files.0.lock().unwrap() = vec![TestFile { bytes: vec![7; FILE_BYTES], ..TestFile::default() }];
        let cores = [0, 1].map(|number| instance.arena.claim_waiting(number, owner(), &sync::Spin).unwrap());
        // SAFETY: used with this instance only.
        let space = instance.arena.place(unsafe { AddressSpace::with_mmu(Noting::new()) }).unwrap();
        test(Scene { instance, space, cores: &cores });
    });
}

impl<'a> Scene<'a> {
    fn map(self, page: u64, pages: u64, protection: Protection, backing: Backing) {
        if let Backing::File { file, .. } = backing {
            self.instance.files.change_references(file, 1);
        }
        let place = Place::Fixed(page);
        self.instance
            .call(&self.cores[1], |memory| self.space.map(memory, place, pages, protection, backing))
            .expect("there is memory");
    }

    /// What a touch ends with, and what is shown of the page then.
    fn touch(self, page: u64, access: Access) -> (Result<(), TouchError>, Option<Shown>) {
        let touched = self.instance.call(&self.cores[0], |memory| self.space.touch(memory, page, access));
        (touched, self.space.mmu().shown.borrow().get(&page).copied())
    }

    fn store(self, page: u64, byte: u8) {
        let address = page * PAGE_BYTES as u64;
        self.instance
            .call(&self.cores[0], |memory| self.space.store(memory, address, &[byte]))
            .expect("can be stored to");
    }

    fn load(self, page: u64) -> Result<u8, Fault> {
        let mut byte = [0];
        let address = page * PAGE_BYTES as u64;
        self.instance.call(&self.cores[0], |memory| self.space.load(memory, address, &mut byte)).map(|()| byte[0])
    }

    /// A touch in the middle of which the other core does something, after the access or after it was shown.
    fn touch_while(
        self,
        page: u64,
        access: Access,
        is_shown: bool,
        act: impl FnOnce(&Memory<'_, TestFiles, Spin>, Self) + 'a,
    ) -> (Result<(), TouchError>, Option<Shown>) {
        let mmu = self.space.mmu();
        let moment = if is_shown { &mmu.after_show } else { &mmu.after_access };
        *moment.borrow_mut() = Some(Box::new(move || self.instance.call(&self.cores[1], |memory| act(memory, self))));
        let touched = self.touch(page, access);
        assert!(moment.borrow().is_none(), "nothing has happened meanwhile");
        touched
    }
}

fn file(page: u64, sharing: Sharing) -> Backing {
    Backing::File { file: FILE, page, sharing, may_write: true }
}

/// What is shown of a page of the file itself.
fn of_file(page: u64, access: Access) -> (Result<(), TouchError>, Option<Shown>) {
    (Ok(()), Some(Shown { page: Some(page_of_file(page)), access, file: Some((FILE, page)), is_copy: false }))
}

/// Whether a page of the space's own is shown, which is a copy of this page of the file.
#[track_caller]
fn assert_own(touched: (Result<(), TouchError>, Option<Shown>), access: Access, original: Option<u64>) -> PageNumber {
    let (Ok(()), Some(shown)) = touched else { panic!("{touched:?}") };
    let page = shown.page.expect("a page of the pool");
    assert!(page.get() < FIRST_OF_FILE, "{page:?} is the file's");
    let file = original.map(|page| (FILE, page));
    assert_eq!(shown, Shown { page: Some(page), access, file, is_copy: true });
    page
}

const RIGHTS: Protection = Protection::ReadWrite;
/// Where things lie: as far from each other as from what a page's number would be as an address.
const PLACE: u64 = 40;

#[test]
fn anonymous_pages_are_zeros_until_they_are_stored_to() {
    with_scene(|scene| {
        scene.map(PLACE, 2, RIGHTS, Backing::Anonymous);
        let zeros = Shown { page: None, access: Access::Load, file: None, is_copy: false };
        assert_eq!(scene.touch(PLACE, Access::Load), (Ok(()), Some(zeros)));
        let own = assert_own(scene.touch(PLACE, Access::Store), Access::Store, None);
        assert_eq!(assert_own(scene.touch(PLACE, Access::Load), Access::Load, None), own, "it keeps its page");
        assert_eq!(scene.touch(PLACE + 1, Access::Load), (Ok(()), Some(zeros)), "the next one has none");
    });
}

#[test]
fn a_page_that_a_child_has_too_is_shown_for_loads_and_copied_for_stores() {
    with_scene(|scene| {
        scene.map(PLACE, 1, RIGHTS, Backing::Anonymous);
        scene.store(PLACE, 9);
        // SAFETY: used with this instance only.
        let child = scene.instance.arena.place(unsafe { AddressSpace::with_mmu(Noting::new()) }).unwrap();
        scene.instance.call(&scene.cores[1], |memory| scene.space.fork_to(memory, child)).unwrap();
        let shared = assert_own(scene.touch(PLACE, Access::Load), Access::Load, None);
        let own = assert_own(scene.touch(PLACE, Access::Store), Access::Store, None);
        assert!(own != shared && scene.load(PLACE) == Ok(9));
    });
}

#[test]
fn shared_pages_of_a_file_are_its_own_but_the_last_for_stores() {
    with_scene(|scene| {
        scene.map(PLACE, 3, RIGHTS, file(WHOLE, Sharing::Shared));
        for access in [Access::Load, Access::Store] {
            assert_eq!(scene.touch(PLACE, access), of_file(WHOLE, access));
            assert_eq!(scene.touch(PLACE + 2, access), (BUS, None), "behind the end");
        }
        assert_eq!(scene.touch(PLACE + 1, Access::Load), of_file(LAST, Access::Load));
        assert_eq!(scene.touch(PLACE + 1, Access::Store).0, Err(TouchError::EndsWithin));
    });
}

#[test]
fn private_pages_of_a_file_are_its_own_until_they_are_stored_to() {
    with_scene(|scene| {
        scene.map(PLACE, 3, RIGHTS, file(WHOLE, Sharing::Private));
        for page in [WHOLE, LAST] {
            assert_eq!(scene.touch(PLACE + page, Access::Load), of_file(page, Access::Load));
            let own = assert_own(scene.touch(PLACE + page, Access::Store), Access::Store, Some(page));
            assert_eq!(assert_own(scene.touch(PLACE + page, Access::Load), Access::Load, Some(page)), own);
            assert_eq!(scene.load(PLACE + page), Ok(7));
        }
        assert_eq!(scene.touch(PLACE + 2, Access::Load), (BUS, None));
        assert_eq!(scene.touch(PLACE + 2, Access::Store), (BUS, None));
    });
}

#[test]
fn what_may_not_be_accessed_is_not_shown() {
    with_scene(|scene| {
        scene.map(PLACE, 1, Protection::Read, Backing::Anonymous);
        scene.map(PLACE + 1, 1, Protection::None, Backing::Anonymous);
        assert_eq!(scene.touch(PLACE, Access::Store), (SEGMENT, None));
        assert_eq!(scene.touch(PLACE, Access::Load).0, Ok(()));
        for page in [PLACE + 1, PLACE + 2] {
            for access in [Access::Load, Access::Store] {
                assert_eq!(scene.touch(page, access), (SEGMENT, None));
            }
        }
    });
}

#[test]
fn hardware_without_room_is_told() {
    with_scene(|scene| {
        scene.map(PLACE, 1, RIGHTS, Backing::Anonymous);
        scene.map(PLACE + 1, 1, RIGHTS, file(WHOLE, Sharing::Shared));
        scene.space.mmu().has_room.set(false);
        for page in [PLACE, PLACE + 1] {
            assert_eq!(scene.touch(page, Access::Load), (NO_MEMORY, None));
        }
    });
}

#[test]
fn a_page_that_is_taken_away_before_it_is_shown_is_looked_at_again() {
    for access in [Access::Load, Access::Store] {
        for backing in [Backing::Anonymous, file(WHOLE, Sharing::Shared), file(WHOLE, Sharing::Private)] {
            with_scene(|scene| {
                scene.map(PLACE, 1, RIGHTS, backing);
                let touched = scene.touch_while(PLACE, access, false, |memory, scene| {
                    scene.space.protect(memory, PLACE..PLACE + 1, Protection::None).unwrap();
                });
                assert_eq!(touched, (SEGMENT, None), "{access:?} {backing:?} that was hidden");
                scene.map(PLACE, 1, RIGHTS, backing);
                let touched = scene.touch_while(PLACE, access, false, |memory, scene| {
                    scene.space.unmap(memory, PLACE..PLACE + 1).unwrap();
                });
                assert_eq!(touched, (SEGMENT, None), "{access:?} {backing:?} that was unmapped");
            });
        }
    }
}

#[test]
fn a_page_that_may_be_loaded_only_by_then_is_not_shown_for_stores() {
    with_scene(|scene| {
        scene.map(PLACE, 1, RIGHTS, Backing::Anonymous);
        let read = |memory: &Memory<'_, TestFiles, Spin>, scene: Scene<'_>| {
            scene.space.protect(memory, PLACE..PLACE + 1, Protection::Read).unwrap();
        };
        assert_eq!(scene.touch_while(PLACE, Access::Store, false, read), (SEGMENT, None));
        assert_own(scene.touch_while(PLACE, Access::Load, false, read), Access::Load, None);
    });
}

#[test]
fn a_store_gets_a_page_again_that_was_forgotten_or_shared_meanwhile() {
    with_scene(|scene| {
        scene.map(PLACE, 1, RIGHTS, Backing::Anonymous);
        let forgotten = scene.touch_while(PLACE, Access::Store, false, |memory, scene| {
            scene.space.discard(memory, PLACE..PLACE + 1).unwrap();
        });
        assert_own(forgotten, Access::Store, None);
        // SAFETY: used with this instance only.
        let child = scene.instance.arena.place(unsafe { AddressSpace::with_mmu(Noting::new()) }).unwrap();
        let shared = scene.touch_while(PLACE, Access::Store, false, |memory, scene| {
            scene.space.fork_to(memory, child).unwrap();
        });
        assert_own(shared, Access::Store, None);
        scene.store(PLACE, 5);
        let of_child = scene.instance.call(&scene.cores[1], |memory| {
            let mut byte = [1];
            child.load(memory, PLACE * PAGE_BYTES as u64, &mut byte).map(|()| byte[0])
        });
        assert_eq!(of_child, Ok(0), "the child's page has been stored to");
        scene.map(PLACE, 1, RIGHTS, file(WHOLE, Sharing::Private));
        let copied = scene.touch_while(PLACE, Access::Store, false, |memory, scene| {
            scene.space.discard(memory, PLACE..PLACE + 1).unwrap();
        });
        assert_own(copied, Access::Store, Some(WHOLE));
    });
}

#[test]
fn a_page_that_is_cut_off_meanwhile_is_not_shown() {
    for sharing in [Sharing::Shared, Sharing::Private] {
        with_scene(|scene| {
            scene.map(PLACE, 1, RIGHTS, file(WHOLE, sharing));
            let cut = scene.touch_while(PLACE, Access::Load, false, |memory, _| memory.files.resize(0, 0));
            assert_eq!(cut, (BUS, None), "{sharing:?}");
        });
    }
}

/// The cut does not know of a copy that is being shown: who shows it looks again.
#[test]
fn a_copy_whose_original_is_cut_off_while_it_is_shown_is_taken_away() {
    with_scene(|scene| {
        let cut_to = |length| {
            move |memory: &Memory<'_, TestFiles, Spin>, _: Scene<'_>| {
                memory.files.resize(0, 0);
                memory.files.resize(0, length);
            }
        };
        scene.map(PLACE, 1, RIGHTS, file(WHOLE, Sharing::Private));
        scene.store(PLACE, 9);
        let again = scene.touch_while(PLACE, Access::Load, true, cut_to(FILE_BYTES));
        assert_eq!(again, of_file(WHOLE, Access::Load));
        assert_eq!(scene.load(PLACE), Ok(0));
        scene.store(PLACE, 9);
        assert_eq!(scene.touch_while(PLACE, Access::Load, true, cut_to(0)), (BUS, None));
    });
}
