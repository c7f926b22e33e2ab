//! A number that is given out in ones and never more often than there is: inodes of an instance.
//!
//! **Idea** (section 6.3 of the paper, "per-core allocation"). Each core keeps a part for itself, so that taking and giving
//! back share nothing. Maintenance brings the part back to a batch; a core that runs out in between takes from the common
//! rest, and if that is empty too, from other cores: only when nobody has one left, or is moving it at that moment, is the
//! budget exhausted. How many are left is not asked of the parts, between which some may be on their way, but of words in which
//! each core counts what it took, less what it gave back: exact when nobody takes or gives.
//!
//! **Death of a process** in the middle of maintenance loses what it was moving, at most a batch.
#![allow(unsafe_code)]

use percpu::{Arena, CacheLine, Core, ObjectKind, OutOfMemory, PerCore, table_kind};
use sync::atomic::{AtomicI64, AtomicU64, Ordering};
use sync::mutant::planted;

/// What maintenance brings a core's part back to, if there is enough, once it has less than half of that or more than twice.
/// In between it leaves the common rest alone: what cores take and give back later is on its way for a while.
const BATCH: u64 = 256;

/// See the module's head.
pub(crate) struct Budget {
    /// Immutable.
    total: u64,
    parts: PerCore<Part>,
    rest: CacheLine<AtomicU64>,
}

/// What a core has.
struct Part {
    /// Changed by all who find nothing elsewhere.
    free: AtomicU64,
    /// Changed by the core alone.
    used: AtomicI64,
}

const PART: ObjectKind = table_kind!(Part as "inodes of a core" { "free" = free, "used" = used });

impl Part {
    fn count(&self, change: i64) {
        self.used.store(self.used.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }
}

/// Takes up to `most` of a word, and tells how much that was.
fn take_up_to(word: &AtomicU64, most: u64) -> u64 {
    let mut seen = word.load(Ordering::Relaxed);
    while seen > 0 {
        let taken = seen.min(most);
        if planted("scalefs: a budget is taken in two steps") {
            word.store(seen - taken, Ordering::Relaxed);
            return taken;
        }
        match word.compare_exchange_weak(seen, seen - taken, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return taken,
            Err(now) => seen = now,
        }
    }
    0
}

impl Budget {
    /// A budget of so many.
    pub(crate) fn create(arena: &Arena, total: u64) -> Result<Budget, OutOfMemory> {
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let parts = unsafe { PerCore::create(arena, |_| Part { free: AtomicU64::new(0), used: AtomicI64::new(0) }) }?;
        Ok(Budget { total, parts, rest: CacheLine(AtomicU64::new(total)) })
    }

    /// What lies where, and what tools call it.
    pub(crate) fn table(&self) -> percpu::Part {
        percpu::Part { memory: self.parts.memory(), kind: &PART }
    }

    /// Takes one.
    #[inline]
    pub(crate) fn take(&self, core: &Core<'_>) -> Result<(), OutOfMemory> {
        let part = self.parts.get(core);
        if take_up_to(&part.free, 1) == 0 {
            self.take_elsewhere(core)?;
        }
        part.count(1);
        Ok(())
    }

    #[cold]
    fn take_elsewhere(&self, core: &Core<'_>) -> Result<(), OutOfMemory> {
        self.maintain(core);
        let own = take_up_to(&self.parts.get(core).free, 1) == 1;
        let found = own || self.parts.all().any(|(_, part)| take_up_to(&part.free, 1) == 1);
        if found { Ok(()) } else { Err(OutOfMemory) }
    }

    /// Gives one back.
    #[inline]
    pub(crate) fn give(&self, core: &Core<'_>) {
        let part = self.parts.get(core);
        part.count(-1);
        part.free.fetch_add(1, Ordering::Relaxed);
    }

    /// Brings the core's part back to a batch, if it is far from it.
    pub(crate) fn maintain(&self, core: &Core<'_>) {
        let part = &self.parts.get(core).free;
        let has = part.load(Ordering::Relaxed);
        if (BATCH / 2..=2 * BATCH).contains(&has) {
            return;
        }
        let (from, to, most) =
            if has < BATCH { (&*self.rest, part, BATCH - has) } else { (part, &*self.rest, has - BATCH) };
        let moved = take_up_to(from, most);
        if moved > 0 {
            to.fetch_add(moved, Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How many are left: exact when nobody takes or gives, else each core's count as of a moment of its own.
    pub(crate) fn left(&self) -> u64 {
        if planted("scalefs: what is left is counted where it lies") {
            let parts = self.parts.all().map(|(_, part)| part.free.load(Ordering::Relaxed));
            return parts.sum::<u64>() + self.rest.load(Ordering::Relaxed);
        }
        let used: i64 = self.parts.all().map(|(_, part)| part.used.load(Ordering::Relaxed)).sum();
        self.total.saturating_sub(used.max(0) as u64)
    }
}
