//! Reclamation: memory that lock-free readers may still look at is freed once no reader can.
//!
//! **Idea** (Fraser's epochs, one record per core). A reader *pins*: it notes the global epoch in its core's record. A
//! writer that has unlinked an object *retires* it into a list of its own core. Only [`Epochs::maintain`], which callers
//! run between their calls, looks at other cores: it stamps what was retired with the epoch, advances the epoch if every
//! pinned core has seen the present one, and frees what is two epochs old.
//!
//! ```text
//! core 0   pin(5) ── read p ─────────────────── unpin                       pin(6) ...
//! core 1        unlink p, retire p │ maintain: stamp p with 5; 5 → 6 │ maintain: 6 → 7 fails while core 0 has 5;
//!                                                             later: 6 → 7, free p (5 + 2 ≤ 7)
//! ```
//!
//! ```text
//! pin:      record.pinned = global epoch; fence                     (own line written, one shared line read)
//! unpin:    record.pinned = none
//! retire:   push to record.open                                     (own line, and the object)
//! maintain: free sealed lists with stamp + 2 ≤ global
//!           fence; seal record.open with the stamp `global`
//!           fence; if every record is unpinned or has pinned = global: global += 1
//! ```
//!
//! **Why two epochs.** A core can be pinned at the global epoch g or at g - 1. An object stamped s was unlinked before
//! the stamp was read; a reader that still sees it pinned no later than epoch s, or s + 1 when it pinned while the epoch
//! moved. Both are gone when the epoch is s + 2.
//!
//! **Why not crossbeam-epoch.** Its collector works inside `pin` (every 128th shares 3 to 10 lines) and keeps closures:
//! pointers to code of one process. Here an object carries a kind, and whoever maintains says what freeing a kind means.
//!
//! **Off-line cores** are not pinned, so they hold up nobody; what they left retired is freed by
//! [`Arena::for_each_idle_core`](percpu::Arena::for_each_idle_core) with `maintain`. A core that stays on-line and never
//! maintains keeps its garbage, and holds up nobody either unless it stops while pinned.
//!
//! **Death of a process** while pinned stops the epoch until its core is taken over and [`Epochs::unpin_taken_over`] is
//! called. What it had retired stays in the core's lists and is freed by the heir; the one object that it was retiring, or
//! freeing, is lost.
//!
//! **Cost**: pin and unpin two stores and one fence (10 ns on x86); retire three stores; maintain one line per core that
//! was ever on-line, plus what it frees.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p epoch --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use percpu::{Arena, CacheLine, Core, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::OwnWord;
use sync::atomic::{AtomicU64, Ordering, fence};

/// Says what kind of object a retired one is, so that any process can free it. Meaning is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredKind(pub u8);

/// The link that every object embeds which is to be retired. Untouched until then.
#[derive(Debug)]
pub struct Retired {
    // Of the core that retires the object, and of its heir.
    next: OwnWord<*mut Retired>,
    kind: OwnWord<u8>,
}

impl Retired {
    /// The link of an object that is in use.
    pub fn new() -> Retired {
        Retired { next: OwnWord::new(ptr::null_mut()), kind: OwnWord::new(0) }
    }
}

impl Default for Retired {
    fn default() -> Retired {
        Retired::new()
    }
}

/// A list of retired objects with the epoch in which it was sealed.
struct Sealed {
    /// Set before the list, which then is not empty.
    stamp: OwnWord<u64>,
    list: OwnWord<*mut Retired>,
}

/// What is kept per core.
struct Record {
    /// Atomic, written by the core, read by whoever advances: 2 * epoch + 1 while pinned, else 0.
    pinned: AtomicU64,
    // The rest is the core's own; the heir begins with no guard, whatever it finds in the first. So many bits that a program
    // which forgets guards for ever does not make it zero under one that it holds.
    nesting: Cell<u64>,
    open: OwnWord<*mut Retired>,
    /// At most two stamps are not yet old enough, and they differ by one: a list's place is its stamp's last bit.
    sealed: [Sealed; 2],
}

const RECORD: ObjectKind = table_kind!(Record as "epoch of a core" {
    "pinned" = pinned,
    "nesting" = nesting,
    "retired" = open,
    "sealed" = sealed,
});
const EPOCHS: ObjectKind = table_kind!(Epochs as "epochs" { "records" = records, "global" = global });

// SAFETY: `nesting` is touched through `&Core` alone; all else is atomic.
unsafe impl Sync for Record {}

/// The epochs of one arena; see the crate's head.
pub struct Epochs {
    records: PerCore<Record>,
    global: CacheLine<AtomicU64>,
}

/// What one call of [`Epochs::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Objects freed.
    pub freed: usize,
    /// Whether the global epoch moved.
    pub advanced: bool,
    /// Whether the core still keeps retired objects.
    pub pending: bool,
}

/// Keeps its core pinned: objects reached through shared pointers while it lives are not freed before it is dropped.
pub struct Guard<'e> {
    epochs: &'e Epochs,
    core: &'e Core<'e>,
}

impl Epochs {
    /// What lies where, and what tools call it.
    pub fn tables(&self) -> [Part; 2] {
        [Part { memory: self.records.memory(), kind: &RECORD }, Part::of(self, &EPOCHS)]
    }

    /// Places epochs in an arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    pub fn create(arena: &Arena) -> Result<&Epochs, OutOfMemory> {
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let records = unsafe {
            PerCore::create(arena, |_| Record {
                pinned: AtomicU64::new(0),
                nesting: Cell::new(0),
                open: OwnWord::new(ptr::null_mut()),
                sealed: core::array::from_fn(|_| Sealed {
                    stamp: OwnWord::new(0),
                    list: OwnWord::new(ptr::null_mut()),
                }),
            })
        }?;
        arena.place(Epochs {
            records,
            // From 2 on, so that stamp 0 means "long ago".
            global: CacheLine(AtomicU64::new(2)),
        })
    }

    /// Pins the core. Pinning again while pinned is allowed and cheap.
    #[inline]
    pub fn pin<'e>(&'e self, core: &'e Core<'_>) -> Guard<'e> {
        let record = self.records.get(core);
        let nesting = record.nesting.get();
        record.nesting.set(nesting + 1);
        if nesting == 0 {
            let epoch = self.global.load(Ordering::Relaxed);
            // Release: whoever advances may see this instead of the end of the guard before, whose reads are over too.
            record.pinned.store(2 * epoch + 1, Ordering::Release);
            if !sync::mutant::planted("epoch: pin without fence") {
                // Orders the record before every read under the guard; pairs with the fence in `advance`: either the
                // advancing core sees us pinned, or we see all that was unlinked before it looked.
                fence(Ordering::SeqCst);
            }
        }
        Guard { epochs: self, core }
    }

    /// Frees what is old enough, seals what was retired, and advances the epoch if possible. `free` gets each object.
    ///
    /// # Panics
    /// If the core is pinned: its own calls must have ended.
    pub fn maintain(
        &self,
        core: &Core<'_>,
        mut free: impl FnMut(&Core<'_>, RetiredKind, NonNull<Retired>),
    ) -> Maintained {
        let record = self.records.get(core);
        assert_eq!(record.nesting.get(), 0, "maintain is called while the core is pinned");
        let mut outcome = Maintained::default();
        // Acquire pairs with the release in `advance`: all that readers did before they unpinned is over.
        let epoch = self.global.load(Ordering::Acquire);
        let grace = if sync::mutant::planted("epoch: free one epoch early") { 1 } else { 2 };
        for sealed in &record.sealed {
            if sealed.stamp.get() + grace <= epoch {
                outcome.freed += sealed.free(core, &mut free);
            }
        }
        self.seal(record);
        outcome.advanced = self.advance();
        outcome.pending =
            !record.open.get().is_null() || record.sealed.iter().any(|sealed| !sealed.list.get().is_null());
        outcome
    }

    /// A stamp of now, for [`Epochs::has_passed`].
    pub fn stamp(&self) -> u64 {
        // What the caller did before is ordered before the stamp; pairs with the fence in `pin`.
        fence(Ordering::SeqCst);
        self.global.load(Ordering::Relaxed)
    }

    /// Whether all guards that existed when the stamp was made are gone.
    pub fn has_passed(&self, stamp: u64) -> bool {
        self.global.load(Ordering::Acquire) >= stamp + 2
    }

    /// Waits until each other core has been seen without a guard. `looks_again` is asked after each look that finds a guard, and
    /// ends the wait for that core by false.
    pub fn wait_for_guards(&self, core: &Core<'_>, mut looks_again: impl FnMut(u32) -> bool) {
        for (_, record) in self.records.all().filter(|(index, _)| *index != core.index()) {
            // Acquire pairs with the releases in `pin` and in `Drop for Guard`.
            let mut looks = (0..).take_while(|_| record.pinned.load(Ordering::Acquire) != 0);
            while looks.next().is_some_and(&mut looks_again) {}
        }
    }

    /// Moves the open list to the place of the present epoch.
    fn seal(&self, record: &Record) {
        if record.open.get().is_null() {
            return;
        }
        // The stamp is read after everything in the list was unlinked; pairs with the fences in `pin`.
        fence(Ordering::SeqCst);
        let stamp = self.global.load(Ordering::Relaxed);
        let sealed = &record.sealed[(stamp & 1) as usize];
        // Else the place holds a list of this epoch, or one that became old enough just now: a later call seals this one.
        if sealed.list.get().is_null() {
            sealed.stamp.set(stamp);
            // A death in between leaves two heads of one list: see `unpin_taken_over`.
            sealed.list.set(record.open.get());
            record.open.set(ptr::null_mut());
        }
    }

    fn advance(&self) -> bool {
        let epoch = self.global.load(Ordering::Relaxed);
        // Pairs with the fence in `pin`.
        fence(Ordering::SeqCst);
        let all_seen = self.records.all().all(|(_, record)| {
            // Acquire pairs with the releases in `pin` and in `Drop for Guard`: whoever sees the new epoch sees that
            // those readers have ended.
            let pinned = record.pinned.load(Ordering::Acquire);
            pinned == 0 || pinned == 2 * epoch + 1
        });
        if !all_seen && !sync::mutant::planted("epoch: advance past pinned cores") {
            return false;
        }
        self.global.compare_exchange(epoch, epoch + 1, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Unpins a core that died pinned, and makes its lists whole.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner, and no guard of it exists in a living process.
    pub unsafe fn unpin_taken_over(&self, core: &Core<'_>) {
        let record = self.records.get(core);
        record.nesting.set(0);
        record.pinned.store(0, Ordering::Release);
        let open = record.open.get();
        let is_sealed = record.sealed.iter().any(|sealed| sealed.list.get() == open);
        if is_sealed && !sync::mutant::planted("epoch: an heir takes the lists as they are") {
            record.open.set(ptr::null_mut());
        }
    }
}

impl Sealed {
    /// Frees all objects of the list and returns how many there were.
    fn free(&self, core: &Core<'_>, free: &mut impl FnMut(&Core<'_>, RetiredKind, NonNull<Retired>)) -> usize {
        let mut freed = 0;
        while let Some(object) = NonNull::new(self.list.get()) {
            // SAFETY: objects in the list are retired and not freed: the link is ours to read.
            let kind = unsafe {
                // One by one: a death loses no more than the object that is being freed.
                self.list.set(object.as_ref().next.get());
                RetiredKind(object.as_ref().kind.get())
            };
            free(core, kind, object);
            freed += 1;
        }
        freed
    }
}

impl<'e> Guard<'e> {
    /// The core that is pinned.
    #[inline]
    pub fn core(&self) -> &'e Core<'e> {
        self.core
    }

    /// Hands over an object that no shared pointer leads to any more.
    ///
    /// # Safety
    /// `object` is embedded in memory of the arena that new readers cannot reach, is retired once, and is touched by
    /// nobody afterwards but by readers that were pinned before; `maintain`'s callback knows how to free `kind`.
    #[inline]
    pub unsafe fn retire(&self, object: NonNull<Retired>, kind: RetiredKind) {
        let record = self.epochs.records.get(self.core);
        // SAFETY: the link belongs to the core that retires the object.
        let link = unsafe { object.as_ref() };
        let planted = sync::mutant::planted("epoch: the head comes before the link");
        let next = record.open.get();
        if planted {
            record.open.set(object.as_ptr());
        }
        link.kind.set(kind.0);
        link.next.set(next);
        record.open.set(object.as_ptr());
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        let record = self.epochs.records.get(self.core);
        let nesting = record.nesting.get() - 1;
        record.nesting.set(nesting);
        if nesting == 0 {
            // Release pairs with the acquire in `advance`.
            record.pinned.store(0, Ordering::Release);
        }
    }
}
