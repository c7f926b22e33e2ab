//! Which process has which pages of which files mapped for all to see, so that who cuts a file can have them taken away.
//!
//! ```text
//! who maps:   an entry; then the pages, each found under its lock
//! who cuts:   the pages leave the file, locked; then `cut_from` of each entry of the file, and a signal to its process
//! the other:  puts addresses without pages there; then takes `cut_from` back
//! who cuts:   waits for that, gives the pages back
//! ```
//! An entry is changed by its process alone, but for `cut_from`; that of a process that has ended is given up by whoever comes first.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use percpu::OwnerId;

/// Most mappings at a time, of all processes.
const MAPPINGS: usize = 8192;
/// No cut.
const NONE: u64 = u64::MAX;
/// Whose an entry is that is being given up for one who has ended: no one's. A process that is killed in the middle of that leaves it so.
const GIVEN_UP: u64 = u64::MAX;

/// All mappings of all processes.
#[repr(C)]
pub struct Mappings {
    /// Atomic: no entry from here on was ever used.
    end: AtomicU32,
    all: [Mapping; MAPPINGS],
}

/// What of a file is mapped where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The file, as the instance calls it.
    pub file: u64,
    /// The file's page that lies first.
    pub first: u64,
    /// The address of the first page.
    pub address: u64,
    /// How many there are.
    pub pages: u64,
    /// What may be done there, in the bits of `mprotect`.
    pub rights: u32,
    /// Whether the file was open for writing.
    pub may_write: bool,
}

/// A mapping of a process; a line.
#[repr(C, align(64))]
pub struct Mapping {
    /// Atomic: whose it is; zero for none.
    owner: AtomicU64,
    /// Atomic: rights, with one bit more for `may_write`.
    rights: AtomicU32,
    file: AtomicU64,
    first: AtomicU64,
    address: AtomicU64,
    /// Atomic: zero while the entry is made.
    pages: AtomicU64,
    /// Atomic: a cut takes the file's pages from this one on away; all bits set for none.
    cut_from: AtomicU64,
    /// Atomic: how often pages were taken away, or the entry was given up: what was found before that counts no more.
    cuts: AtomicU64,
}

const MAY_WRITE: u32 = 1 << 31;

impl Mapping {
    /// Whose it is.
    pub fn owner(&self) -> Option<OwnerId> {
        OwnerId::new(self.owner.load(Ordering::Acquire))
    }

    /// What is mapped; none while the entry is made.
    pub fn mapped(&self) -> Option<Mapped> {
        // Acquire pairs with the release in `set`.
        let pages = self.pages.load(Ordering::Acquire);
        let rights = self.rights.load(Ordering::Relaxed);
        (pages != 0).then(|| Mapped {
            file: self.file.load(Ordering::Relaxed),
            first: self.first.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
            pages,
            rights: rights & !MAY_WRITE,
            may_write: rights & MAY_WRITE != 0,
        })
    }

    /// Says what is mapped. The caller is its process.
    pub fn set(&self, mapped: Mapped) {
        self.rights.store(mapped.rights | if mapped.may_write { MAY_WRITE } else { 0 }, Ordering::Relaxed);
        self.file.store(mapped.file, Ordering::Relaxed);
        self.first.store(mapped.first, Ordering::Relaxed);
        self.address.store(mapped.address, Ordering::Relaxed);
        // Who cuts after this process has looked at a page's lock sees the entry.
        self.pages.store(mapped.pages, Ordering::SeqCst);
    }

    /// Nothing is mapped any more. The caller is its process.
    pub fn clear(&self) {
        self.pages.store(0, Ordering::Relaxed);
        self.cut_from.store(NONE, Ordering::Relaxed);
        // Another thread that has found pages for the entry must not take a later one for it, be it the same in all else.
        self.cuts.fetch_add(1, Ordering::SeqCst);
        self.owner.store(0, Ordering::Release);
    }

    /// The same for a process whose end the caller has seen, as others may have: it may be another one's entry by now.
    pub fn clear_of(&self, ended: OwnerId) {
        if self.owner.compare_exchange(ended.number(), GIVEN_UP, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            self.clear();
        }
    }

    /// A cut takes pages from this one of the file on away.
    pub fn ask_to_take_away(&self, first: u64) {
        self.cut_from.fetch_min(first, Ordering::SeqCst);
    }

    /// From which page of the file on pages are to be taken away.
    pub fn asked(&self) -> Option<u64> {
        Some(self.cut_from.load(Ordering::SeqCst)).filter(|first| *first != NONE)
    }

    /// They were; not if a further cut asks for more. The caller is its process.
    pub fn answer(&self, first: u64) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        let _ = self.cut_from.compare_exchange(first, NONE, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// How often pages were taken away, or the entry was given up.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}

impl Mappings {
    /// All that were ever used.
    pub fn all(&self) -> &[Mapping] {
        &self.all[..(self.end.load(Ordering::SeqCst) as usize).min(MAPPINGS)]
    }

    /// Those of a process.
    pub fn of(&self, owner: OwnerId) -> impl Iterator<Item = &Mapping> {
        self.all().iter().filter(move |mapping| mapping.owner.load(Ordering::Relaxed) == owner.number())
    }

    /// A new entry of a process, which says of nothing yet that it is mapped; none if there is no room.
    pub fn make(&self, owner: OwnerId) -> Option<&Mapping> {
        for (index, mapping) in self.all.iter().enumerate() {
            if mapping.owner.load(Ordering::Relaxed) == 0
                && mapping.owner.compare_exchange(0, owner.number(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                mapping.cut_from.store(NONE, Ordering::Relaxed);
                self.end.fetch_max(index as u32 + 1, Ordering::SeqCst);
                return Some(mapping);
            }
        }
        None
    }

    /// Another process has what this one has mapped (`fork`), and is asked for what this one has not given back yet; false if there
    /// is no room, and it has nothing then.
    pub fn copy(&self, from: OwnerId, to: OwnerId) -> bool {
        for mapping in self.of(from) {
            let Some(mapped) = mapping.mapped() else { continue };
            let Some(made) = self.make(to) else {
                self.release(to);
                return false;
            };
            made.set(mapped);
            // Looked at after the copy can be seen: a cut that comes later asks both.
            if let Some(first) = mapping.asked() {
                made.ask_to_take_away(first);
            }
        }
        true
    }

    /// A process has nothing mapped any more: it has ended, or begins another program.
    pub fn release(&self, owner: OwnerId) {
        self.of(owner).for_each(Mapping::clear);
    }

    /// The same of all who are not there any more.
    pub fn release_unless(&self, is_there: impl Fn(OwnerId) -> bool) {
        for mapping in self.all() {
            if let Some(owner) = mapping.owner().filter(|owner| !is_there(*owner)) {
                mapping.clear_of(owner);
            }
        }
    }
}
