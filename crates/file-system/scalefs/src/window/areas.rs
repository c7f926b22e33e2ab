//! What a window shows where, and the windows of this process of the host.

use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::vec::Vec;

use address_space::{FileId, Revoked, Shown};
use pages::PAGE_BYTES;
use percpu::OutOfMemory;
use sync::mutant::planted;

use super::MemoryAccess;
use super::memory_file::MemoryFile;

/// The host allows 65,530 areas a process (`vm.max_map_count`), and a page in the middle of one makes it three: with fewer pages
/// than this in all windows, a program with few areas of its own is refused none, and each can be taken away.
const SHOWN_LIMIT: usize = if cfg!(shuttle) { 300 } else { 30_000 };
/// Pages that windows show or hide one by one.
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// Whether there has ever been a window: without, a cut need not look.
static ANY: AtomicBool = AtomicBool::new(false);
static WINDOWS: Mutex<Vec<Weak<Areas>>> = Mutex::new(Vec::new());

/// A window's addresses and what is there.
pub(super) struct Areas {
    pool: Arc<MemoryFile>,
    pages: Range<u64>,
    shown: Mutex<BTreeMap<u64, State>>,
}

/// What is at a page of a window; at others nothing.
enum State {
    Shown(Shown),
    /// A cut has taken it: an access raises SIGBUS.
    CutOff,
}

/// What becomes of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// The file ends within: what is stored there must not show when it grows.
    Stores,
    /// Other pages come in their places.
    Replaced,
    /// They are the file's no more.
    CutOff,
}

/// What the host is to put at a page.
enum Area {
    /// A page of the pool.
    Pool {
        number: u64,
        access: MemoryAccess,
    },
    Zeros,
    Nothing,
    /// A place of the pool behind its end.
    BehindEnd,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the lock guards is whole at each moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Areas {
    /// Reserves so many pages anywhere.
    pub(super) fn reserve(pool: &Arc<MemoryFile>, pages: u64) -> Result<Arc<Areas>, OutOfMemory> {
        let bytes = usize::try_from(pages).ok().and_then(|pages| pages.checked_mul(PAGE_BYTES)).ok_or(OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(OutOfMemory);
        }
        let first = base as u64 / PAGE_BYTES as u64;
        let shown = Mutex::new(BTreeMap::new());
        let areas = Arc::new(Areas { pool: Arc::clone(pool), pages: first..first + pages, shown });
        let mut windows = lock(&WINDOWS);
        windows.retain(|window| window.strong_count() > 0);
        windows.push(Arc::downgrade(&areas));
        ANY.store(true, Ordering::SeqCst);
        Ok(areas)
    }

    pub(super) fn first_page(&self) -> u64 {
        self.pages.start
    }

    pub(super) fn show(&self, page: u64, wanted: Shown) -> Result<(), OutOfMemory> {
        let mut shown = lock(&self.shown);
        if !self.pages.contains(&page) {
            return Err(OutOfMemory);
        }
        if let Some(State::Shown(present)) = shown.get(&page)
            && present.page == wanted.page
            && (present.access == MemoryAccess::Store || wanted.access == MemoryAccess::Load)
        {
            return Ok(());
        }
        let area = match wanted.page {
            Some(page) => Area::Pool { number: page.get().into(), access: wanted.access },
            None => Area::Zeros,
        };
        let is_new = !shown.contains_key(&page);
        let is_alone = planted("scalefs: a window counts its own pages alone") && shown.len() < SHOWN_LIMIT;
        if is_new && SHOWN.fetch_add(1, Ordering::Relaxed) >= SHOWN_LIMIT && !is_alone {
            SHOWN.fetch_sub(1, Ordering::Relaxed);
            return Err(OutOfMemory);
        }
        let put = self.put(page, area);
        if put.is_ok() {
            shown.insert(page, State::Shown(wanted));
        } else if is_new {
            SHOWN.fetch_sub(1, Ordering::Relaxed);
        }
        put
    }

    pub(super) fn revoke(&self, pages: Range<u64>, which: Revoked) {
        let mut shown = lock(&self.shown);
        let mut gone: Vec<u64> = Vec::new();
        for (page, state) in shown.range_mut(pages.clone()) {
            if planted("scalefs: a window keeps the last page that is taken away") && *page + 1 == pages.end {
                continue;
            }
            match (which, state) {
                (Revoked::All, _) | (Revoked::Loads, State::Shown(_)) => {
                    self.must_put(*page, Area::Nothing);
                    gone.push(*page);
                }
                (
                    Revoked::Stores,
                    State::Shown(Shown { page: Some(number), access: access @ MemoryAccess::Store, .. }),
                ) => {
                    *access = MemoryAccess::Load;
                    self.must_put(*page, Area::Pool { number: number.get().into(), access: MemoryAccess::Load });
                }
                _ => {}
            }
        }
        SHOWN.fetch_sub(gone.len(), Ordering::Relaxed);
        for page in gone {
            shown.remove(&page);
        }
    }

    fn forget(&self, file: FileId, pages: &Range<u64>, which: Forgotten) {
        let mut all = lock(&self.shown);
        let before = all.len();
        all.retain(|page, state| {
            let State::Shown(shown) = state else { return true };
            let is_copy = shown.is_copy && which != Forgotten::CutOff;
            if is_copy || !shown.file.is_some_and(|(of, index)| of == file && pages.contains(&index)) {
                return true;
            }
            match (which, shown.page) {
                (Forgotten::Stores, Some(number)) if shown.access == MemoryAccess::Store => {
                    shown.access = MemoryAccess::Load;
                    self.must_put(*page, Area::Pool { number: number.get().into(), access: MemoryAccess::Load });
                }
                (Forgotten::Stores, _) => {}
                (Forgotten::Replaced, _) => self.must_put(*page, Area::Nothing),
                (Forgotten::CutOff, _) => {
                    self.must_put(*page, Area::BehindEnd);
                    *state = State::CutOff;
                }
            }
            which != Forgotten::Replaced
        });
        SHOWN.fetch_sub(before - all.len(), Ordering::Relaxed);
    }

    fn must_put(&self, page: u64, area: Area) {
        let rights = if let Area::Pool { .. } = area { libc::PROT_READ } else { libc::PROT_NONE };
        if self.put(page, area).is_err() {
            // A program with many areas of its own: a page that is an area already needs no other for less rights.
            let address = ptr::without_provenance_mut(page as usize * PAGE_BYTES);
            // SAFETY: the address lies in the window, see `put`.
            let status = unsafe { libc::mprotect(address, PAGE_BYTES, rights) };
            assert_eq!(status, 0, "the host takes a page away from a program");
        }
    }

    /// Replaces what is at a page.
    fn put(&self, page: u64, area: Area) -> Result<(), OutOfMemory> {
        assert!(self.pages.contains(&page), "a page of the window");
        let (anonymous, pool) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, libc::MAP_SHARED);
        let (rights, flags, offset) = match area {
            Area::Pool { number, access: MemoryAccess::Load } => (libc::PROT_READ, pool, number as usize * PAGE_BYTES),
            Area::Pool { number, access: MemoryAccess::Store } => {
                (libc::PROT_READ | libc::PROT_WRITE, pool, number as usize * PAGE_BYTES)
            }
            Area::BehindEnd => (libc::PROT_READ | libc::PROT_WRITE, pool, self.pool.size_bytes()),
            Area::Zeros => (libc::PROT_READ, anonymous, 0),
            Area::Nothing => (libc::PROT_NONE, anonymous, 0),
        };
        let file = if flags == pool { self.pool.descriptor() } else { -1 };
        let address = ptr::without_provenance_mut(page as usize * PAGE_BYTES);
        // SAFETY: the address lies in the window, which nothing in this program refers to but what the window's user makes of it.
        let put =
            unsafe { libc::mmap(address, PAGE_BYTES, rights, flags | libc::MAP_FIXED, file, offset as libc::off_t) };
        if put == libc::MAP_FAILED { Err(OutOfMemory) } else { Ok(()) }
    }
}

impl Drop for Areas {
    fn drop(&mut self) {
        let address = ptr::without_provenance_mut(self.pages.start as usize * PAGE_BYTES);
        let bytes = (self.pages.end - self.pages.start) as usize * PAGE_BYTES;
        // SAFETY: reserved in `reserve`; whoever used it has ended, as the process has.
        unsafe { libc::munmap(address, bytes) };
        SHOWN.fetch_sub(lock(&self.shown).len(), Ordering::Relaxed);
    }
}

/// Takes pages of a file away from all programs.
pub(crate) fn forget(file: FileId, pages: &Range<u64>, which: Forgotten) {
    // With the store in `reserve`: who opens a window later sees that the file was cut.
    fence(Ordering::SeqCst);
    if !ANY.load(Ordering::SeqCst) || planted("scalefs: a cut leaves what windows show") {
        return;
    }
    let windows: Vec<Arc<Areas>> = lock(&WINDOWS).iter().filter_map(Weak::upgrade).collect();
    windows.iter().for_each(|areas| areas.forget(file, pages, which));
}
