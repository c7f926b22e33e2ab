//! Reclamation: memory that lock-free readers may still look at is freed once no reader can.
//!
//! **Idea** (Fraser's epochs, ended as Linux's RCU ends grace periods). A reader *pins* its core: it makes a number in its
//! core's record odd. A writer that has unlinked an object *retires* it into a list of its own core. Only
//! [`Epochs::maintain`], which callers run between their calls, shares lines: there the core reports that it is not pinned, in
//! the line of a group of cores (crate `rounds`), and gives what was retired the epoch that the report covers. The epoch is over
//! when each core has reported, or was seen unpinned, or pinned again; what is two epochs old is freed.
//!
//! ```text
//! core 0   pin ── read p ─────────────────── unpin │ maintain: seen in 6; 6 → 7
//! core 1        unlink p, retire p │ maintain: stamp p with 5; 5 → 6 │ maintain: seen in 6 │ maintain: free p (5 + 2 ≤ 7)
//! ```
//!
//! ```text
//! pin:      record.pinned += 1, to odd; fence                       (own line written)
//! unpin:    record.pinned += 1, to even
//! retire:   push to record.open                                     (own line, and the object)
//! maintain: seal record.open; report; stamp it with the epoch that the report covers
//!           free sealed lists with stamp + 2 ≤ epoch
//! ```
//!
//! **Why two epochs.** An object stamped s was unlinked before a report of epoch s, without which that could not end. So each
//! core was unpinned at some moment of s + 1 that is later than the unlinking; a core that pins after that does not see
//! the object.
//!
//! **Cores that do not maintain** are looked at in their place: a number that is even, or differs from the one that was noted
//! in the same epoch, says that the core was unpinned in it.
//!
//! **Why not crossbeam-epoch.** Its collector works inside `pin` (every 128th shares 3 to 10 lines) and keeps closures:
//! pointers to code of one process. Here an object carries a kind, and the one that maintains says what freeing a kind
//! means.
//!
//! **Off-line cores** are not pinned, so they hold up no one; what they left retired is freed by
//! [`Arena::for_each_idle_core`](percpu::Arena::for_each_idle_core) with `maintain`. A core that stays on-line and never
//! maintains keeps its garbage, and holds up no one either unless it stops while pinned.
//!
//! **Death of a process** while pinned stops the epoch until its core is taken over and [`Epochs::unpin_taken_over`] is
//! called. What it had retired stays in the core's lists and is freed by the heir; the one object that it was retiring, or
//! freeing, is lost.
//!
//! **Cost**: pin and unpin two stores and one fence (10 ns on x86), and no line that others write; retire three stores;
//! maintain one line that 16 cores share, whatever the number of cores, plus what it frees. A core that never maintains costs
//! the others a look at its line per epoch.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p epoch --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use percpu::{Arena, Core, CoreIndex, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use rounds::{Report, Reporter, Rounds};
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

/// A list of retired objects with the epoch that covers them.
struct Sealed {
    /// Set after the report that covers the list; [`UNSTAMPED`], which was set before the list, until then.
    stamp: OwnWord<u64>,
    list: OwnWord<*mut Retired>,
}

/// The stamp of a list that no report covers yet.
const UNSTAMPED: u64 = u64::MAX >> 1;
/// This many bits of a number are noted, next to the epoch: if the rest alone differs, the core counts as still pinned.
const NOTED_BITS: u32 = 24;

/// What is kept per core.
struct Record {
    /// Atomic, written by the core, read by cores that wait for it: odd while pinned, more with each pin and unpin.
    pinned: AtomicU64,
    // The rest is the core's own; the heir begins with no guard, whatever it finds in the first. Enough bits that a
    // program which forgets guards forever does not make it zero under one that it holds.
    nesting: Cell<u64>,
    open: OwnWord<*mut Retired>,
    /// One of each report but those that are repeated: of this epoch, of the two before, and of the one before those, if that
    /// report was late.
    sealed: [Sealed; 4],
    reporter: Reporter,
}

const RECORD: ObjectKind = table_kind!(Record as "epoch of a core" {
    "pinned" = pinned,
    "nesting" = nesting,
    "retired" = open,
    "sealed" = sealed,
});
const NOTE: ObjectKind = table_kind!(AtomicU64 as "note on a pinned core" {});
const EPOCHS: ObjectKind = table_kind!(Epochs as "epochs" { "records" = records });

// SAFETY: `nesting` is touched through `&Core` alone; all else is atomic.
unsafe impl Sync for Record {}

/// The epochs of one arena; see the crate's head.
pub struct Epochs {
    records: PerCore<Record>,
    /// Of each core, written by who looks at it in vain: epoch and number, see [`Epochs::was_unpinned`].
    notes: PerCore<AtomicU64>,
    rounds: Rounds,
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
    pub fn tables(&self) -> [Part; 4] {
        let (records, notes) = (self.records.memory(), self.notes.memory());
        let of_cores = [Part { memory: records, kind: &RECORD }, Part { memory: notes, kind: &NOTE }];
        let [records, notes] = of_cores;
        [records, notes, self.rounds.table(), Part::of(self, &EPOCHS)]
    }

    /// Places epochs in an arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    pub fn create(arena: &Arena) -> Result<&Epochs, OutOfMemory> {
        // SAFETY: they lie in the arena itself, with what keeps them.
        let [rounds, _] = unsafe { Rounds::create(arena) }?;
        Epochs::create_in(arena, rounds)
    }

    /// Places epochs in an arena, whose rounds are of the same arena, and no one else's.
    ///
    /// # Errors
    /// As [`Epochs::create`].
    pub fn create_in(arena: &Arena, rounds: Rounds) -> Result<&Epochs, OutOfMemory> {
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
                reporter: Reporter::new(),
            })
        }?;
        // SAFETY: as above.
        let notes = unsafe { PerCore::create(arena, |_| AtomicU64::new(0)) }?;
        arena.place(Epochs { records, notes, rounds })
    }

    /// Pins the core. Pinning again while pinned is allowed and cheap.
    #[inline]
    pub fn pin<'e>(&'e self, core: &'e Core<'_>) -> Guard<'e> {
        let record = self.records.get(core);
        let nesting = record.nesting.get();
        record.nesting.set(nesting + 1);
        if nesting == 0 {
            // Release: one that looks may see this instead of the end of the guard before, whose reads are over too.
            record.pinned.store(record.pinned.load(Ordering::Relaxed) | 1, Ordering::Release);
            if !sync::mutant::planted("epoch: pin without fence") {
                // Orders the record before every read under the guard; pairs with the fence before `was_unpinned`: either
                // who looks sees us pinned, or we see all that was unlinked before this epoch.
                fence(Ordering::SeqCst);
            }
        }
        Guard { epochs: self, core }
    }

    /// Seals what was retired, reports that the core is not pinned, and frees what is old enough. `free` gets each object.
    ///
    /// # Panics
    /// If the core is pinned: its own calls must have ended.
    pub fn maintain(&self, core: &Core<'_>, free: impl FnMut(&Core<'_>, RetiredKind, NonNull<Retired>)) -> Maintained {
        self.seal(core);
        let report = self.report(core);
        // SAFETY: this core's report of just now, after which it has sealed nothing.
        unsafe { self.free_old(core, report, free) }
    }

    /// The first part of [`Epochs::maintain`], for a core that reports to several at one moment: what comes after it up
    /// to the report is nothing that this core has retired.
    ///
    /// # Panics
    /// As there.
    pub fn seal(&self, core: &Core<'_>) {
        let record = self.records.get(core);
        assert_eq!(record.nesting.get(), 0, "maintain is called while the core is pinned");
        record.seal();
    }

    /// The second part.
    ///
    /// # Panics
    /// As there.
    pub fn report(&self, core: &Core<'_>) -> Report {
        assert_eq!(self.records.get(core).nesting.get(), 0, "a pinned core is not quiet");
        let was_unpinned = |index, epoch| self.was_unpinned(index, epoch);
        self.rounds.report(core, &self.records.get(core).reporter, Some(&was_unpinned))
    }

    /// The third part, with what came of the second.
    ///
    /// # Safety
    /// The report is that of this core's last [`Epochs::report`] of these epochs, after which it has sealed nothing:
    /// another one's might cover objects that guards can still lead to. So it is no part of safe code:
    ///
    /// ```compile_fail,E0133
    /// fn free_at_once(epochs: &epoch::Epochs, core: &percpu::Core<'_>) {
    ///     let later = rounds::Report { round: u64::MAX, covered: 0, is_repeated: false, advanced: false };
    ///     epochs.free_old(core, later, |_, _, _| ());
    /// }
    /// ```
    pub unsafe fn free_old(
        &self,
        core: &Core<'_>,
        report: Report,
        mut free: impl FnMut(&Core<'_>, RetiredKind, NonNull<Retired>),
    ) -> Maintained {
        let record = self.records.get(core);
        if report.is_repeated {
            // The next report covers it no later, with all that will be retired until then. No stamp: that of a rest is of the
            // report before, and a list that a dead owner has sealed after that may wait for one, too.
            record.unseal();
        } else {
            record.stamp(report.covered);
        }
        let grace = if sync::mutant::planted("epoch: free one epoch early") { 1 } else { 2 };
        let mut outcome = Maintained { advanced: report.advanced, ..Maintained::default() };
        for sealed in &record.sealed {
            if sealed.stamp.get() + grace <= report.round {
                outcome.freed += sealed.free(core, &mut free);
            }
        }
        outcome.pending =
            !record.open.get().is_null() || record.sealed.iter().any(|sealed| !sealed.list.get().is_null());
        outcome
    }

    /// A stamp of now, for [`Epochs::has_passed`].
    pub fn stamp(&self) -> u64 {
        // What the caller did before is ordered before the stamp; pairs with the fence in `pin`.
        fence(Ordering::SeqCst);
        self.rounds.round()
    }

    /// Whether all guards that existed when the stamp was made are gone.
    pub fn has_passed(&self, stamp: u64) -> bool {
        self.rounds.round() >= stamp + 2
    }

    /// Waits until the guards that each other core had are gone. `looks_again` is asked after each look that finds them there,
    /// and ends the wait for that core by false.
    pub fn wait_for_guards(&self, core: &Core<'_>, mut looks_again: impl FnMut(u32) -> bool) {
        for (_, record) in self.records.all().filter(|(index, _)| *index != core.index()) {
            // Acquire pairs with the releases in `pin` and in `Drop for Guard`.
            let number = record.pinned.load(Ordering::Acquire);
            if is_pinned(number) {
                let mut looks = (0..).take_while(|_| record.pinned.load(Ordering::Acquire) == number);
                while looks.next().is_some_and(&mut looks_again) {}
            }
        }
    }

    /// Whether a core was seen without a guard at some moment of this epoch, which has begun, with a fence since.
    fn was_unpinned(&self, index: CoreIndex, epoch: u64) -> bool {
        if sync::mutant::planted("epoch: advance past pinned cores") {
            return true;
        }
        // Acquire pairs with the releases in `pin` and in `Drop for Guard`: those readers have ended for the core that
        // learns that we have looked.
        let number = self.records.of(index).pinned.load(Ordering::Acquire);
        if !is_pinned(number) {
            return true;
        }
        let note = self.notes.of(index);
        // Acquire and release: who finds another guard than was noted has not seen that one end himself.
        let (noted, new) = (note.load(Ordering::Acquire), epoch << NOTED_BITS | number & ((1 << NOTED_BITS) - 1));
        let is_of_this_epoch =
            noted >> NOTED_BITS == new >> NOTED_BITS || sync::mutant::planted("epoch: notes of other epochs count");
        if is_of_this_epoch {
            // Another guard than then. One word: a core that notes late notes the epoch in which it looked.
            return noted != new;
        }
        note.store(new, Ordering::Release);
        false
    }

    /// Unpins a core that died pinned, and makes its lists whole.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner, and no guard of it exists in a living process.
    pub unsafe fn unpin_taken_over(&self, core: &Core<'_>) {
        let record = self.records.get(core);
        record.nesting.set(0);
        record.unpin();
        // SAFETY: the caller's promise.
        unsafe { self.rounds.repair_taken_over(core) };
        let open = record.open.get();
        let is_sealed = record.sealed.iter().any(|sealed| sealed.list.get() == open);
        if is_sealed && !sync::mutant::planted("epoch: an heir takes the lists as they are") {
            record.open.set(ptr::null_mut());
        }
    }
}

fn is_pinned(number: u64) -> bool {
    number & 1 != 0
}

impl Record {
    /// Makes the number even, and another than it was.
    #[inline]
    fn unpin(&self) {
        // Release pairs with the acquire in `was_unpinned`.
        self.pinned.store((self.pinned.load(Ordering::Relaxed) | 1) + 1, Ordering::Release);
    }

    /// Moves the open list to an empty place, if there is one.
    fn seal(&self) {
        if self.open.get().is_null() {
            return;
        }
        if let Some(sealed) = self.sealed.iter().find(|sealed| sealed.list.get().is_null()) {
            sealed.stamp.set(UNSTAMPED);
            // A death in between leaves two heads of one list: see `unpin_taken_over`.
            sealed.list.set(self.open.get());
            self.open.set(ptr::null_mut());
        }
    }

    /// Makes a list the open one again that was sealed just now.
    fn unseal(&self) {
        if let Some(sealed) = self.sealed.iter().find(|sealed| sealed.stamp.get() == UNSTAMPED)
            && self.open.get().is_null()
        {
            self.open.set(sealed.list.get());
            sealed.list.set(ptr::null_mut());
            sealed.stamp.set(0);
        }
    }

    /// Gives what was sealed before a report the epoch that this covers.
    fn stamp(&self, epoch: u64) {
        for sealed in self.sealed.iter().filter(|sealed| sealed.stamp.get() == UNSTAMPED) {
            sealed.stamp.set(epoch);
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
    /// no one afterwards but by readers that were pinned before; `maintain`'s callback knows how to free `kind`.
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
            record.unpin();
        }
    }
}
