//! The caches of all cores: changing counts, reading them exactly, taking the other end of weak references.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use commit::{Anyone, Decisions, Observed, Tag, Viewer, Waiting};
use percpu::{Arena, Core, Holders, Holding, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use rounds::{Reporter, Rounds};
use sync::atomic::{Ordering, fence};
use sync::{OwnWord, Wait, WaitReason};

use crate::counted::{Count, Counted, Noted, Verdict, WeakRef};
use crate::queue::Queue;
use crate::slot::{Collected, SLOT, Slot};

/// How large the caches are, and how objects are spread over them.
#[derive(Clone, Copy, Debug)]
pub struct RefCacheConfig {
    /// Slots of each core's cache, a power of two; rounded up otherwise.
    pub slots_per_core: usize,
    /// Moves collisions of objects in slots.
    pub seed: u64,
}

impl Default for RefCacheConfig {
    fn default() -> RefCacheConfig {
        RefCacheConfig { slots_per_core: 1024, seed: 0x9e37_79b9_7f4a_7c15 }
    }
}

/// What a core keeps for itself.
pub(crate) struct Own {
    /// Of kinds that are reviewed as soon as they can be, and of those that wait an epoch more.
    pub(crate) queues: [Queue; 2],
    /// The first `used` places of the list hold indices: those of all slots that hold an object, each once, so that a
    /// flush visits no others.
    used: OwnWord<u32>,
    used_list: *mut u32,
    pub(crate) reporter: Reporter,
    /// The epoch that the core's next flush will be in, at the earliest; zero if it has not flushed.
    pub(crate) next_flush: OwnWord<u64>,
    /// A count that the core has read since its last flush by asking all cores, if it did.
    asked: OwnWord<*mut Noted>,
}

const OWN: ObjectKind = table_kind!(Own as "counts of a core" { "review queues" = queues, "slots in use" = used });
const COUNTS: ObjectKind = table_kind!(RefCache as "counts" { "description" = slots });

/// Reference counts for objects of one arena; see the crate's head.
pub struct RefCache {
    // Immutable.
    slots: PerCore<SlotTable>,
    slot_mask: usize,
    seed: u64,
    decisions: NonNull<Decisions>,
    pub(crate) own: PerCore<Own>,
    pub(crate) rounds: Rounds,
}

/// Where a delta waits for its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// In the core's slot of the object.
    InSlot,
    /// In the object.
    InObject,
}

/// Read-only, so that finding a slot shares nothing.
struct SlotTable(NonNull<Slot>);

// SAFETY: slots consist of atomics and live as long as the arena.
unsafe impl Sync for SlotTable {}
// SAFETY: what makes it `Sync` makes it `Send`: slots belong to no thread.
unsafe impl Send for SlotTable {}
// SAFETY: reached through `&Core` only; pointers lead to the arena.
unsafe impl Send for Own {}
// SAFETY: `decisions` lives in the same arena and is `Sync`; all else is `Sync`.
unsafe impl Sync for RefCache {}
// SAFETY: nothing that it leads to belongs to a thread.
unsafe impl Send for RefCache {}

impl RefCache {
    /// What lies where, and what tools call it.
    pub fn tables(&self) -> impl Iterator<Item = Part> {
        let bytes = (self.slot_mask + 1) * size_of::<Slot>();
        let slots = self.slots.all().map(move |(_, table)| {
            let start = table.0.as_ptr() as usize;
            Part { memory: start..start + bytes, kind: &SLOT }
        });
        slots.chain([Part { memory: self.own.memory(), kind: &OWN }, self.rounds.table(), Part::of(self, &COUNTS)])
    }

    /// Places caches in an arena. Pending deltas depend on operations of `decisions`, which lies in the same arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    pub fn create<'a>(
        arena: &'a Arena,
        decisions: &'a Decisions,
        config: RefCacheConfig,
    ) -> Result<&'a RefCache, OutOfMemory> {
        // SAFETY: they lie in the arena itself, with what keeps them.
        let [_, rounds] = unsafe { Rounds::create(arena) }?;
        RefCache::create_in(arena, decisions, config, rounds)
    }

    /// As [`RefCache::create`], with rounds of the same arena, and no one else's.
    ///
    /// # Errors
    /// As there.
    pub fn create_in<'a>(
        arena: &'a Arena,
        decisions: &'a Decisions,
        config: RefCacheConfig,
        rounds: Rounds,
    ) -> Result<&'a RefCache, OutOfMemory> {
        let slot_count = config.slots_per_core.max(1).checked_next_power_of_two().ok_or(OutOfMemory)?;
        let layout = Layout::array::<Slot>(slot_count).map_err(|_| OutOfMemory)?;
        let list_layout = Layout::array::<u32>(slot_count).map_err(|_| OutOfMemory)?;
        let mut failed = false;
        let table_of = |_| {
            let Ok(table) = arena.allocate_permanent(layout) else {
                failed = true;
                return SlotTable(NonNull::dangling());
            };
            let table = table.cast::<Slot>();
            for index in 0..slot_count {
                // SAFETY: in bounds of the fresh table.
                unsafe { table.add(index).write(Slot::new()) };
            }
            SlotTable(table)
        };
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let slots = unsafe { PerCore::create(arena, table_of) }?;
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let own = unsafe {
            PerCore::create(arena, |_| Own {
                queues: [Queue::new(), Queue::new()],
                used: OwnWord::new(0),
                used_list: arena.allocate_permanent(list_layout).map_or_else(
                    |_| {
                        failed = true;
                        ptr::null_mut()
                    },
                    |list| list.cast().as_ptr(),
                ),
                reporter: Reporter::new(),
                next_flush: OwnWord::new(0),
                asked: OwnWord::new(ptr::null_mut()),
            })
        }?;
        if failed {
            return Err(OutOfMemory);
        }
        arena.place(RefCache {
            slots,
            slot_mask: slot_count - 1,
            seed: config.seed | 1,
            decisions: NonNull::from(decisions),
            own,
            rounds,
        })
    }

    fn decisions(&self) -> &Decisions {
        // SAFETY: `create` borrowed them for as long as it lends `self`. That they lie in the same arena, as it asks, is for
        // other processes, which reach both through the arena alone.
        unsafe { self.decisions.as_ref() }
    }

    #[inline]
    fn slot_index(&self, object: *const Counted) -> usize {
        let hash = ((object as usize as u64) >> 4).wrapping_mul(self.seed);
        (hash >> 32) as usize & self.slot_mask
    }

    #[inline]
    fn slot_of<'s>(&'s self, core: &'s Core<'_>, object: &impl Count) -> &'s Slot {
        let counted = object.counted();
        let index = self.slot_index(counted);
        // SAFETY: the mask keeps the index in the table.
        let slot = unsafe { self.slots.get(core).0.add(index).as_ref() };
        if !ptr::eq(slot.object(), counted) {
            self.take_slot(core, slot, index, counted, object.noted());
        }
        slot
    }

    #[cold]
    fn take_slot(&self, core: &Core<'_>, slot: &Slot, index: usize, object: &Counted, noted: Option<&Noted>) {
        assert!(slot.pending().is_none(), "a pending delta is settled before its core counts anything else");
        let own = self.own.get(core);
        let old = NonNull::new(slot.object());
        if old.is_none() {
            self.list_slot(own, index);
        }
        // Before the slot has a delta of it.
        let noted = noted.filter(|noted| noted.holders.note(core.index()));
        let left = self.begin_to_leave(core, slot);
        slot.replace(ptr::from_ref(object).cast_mut(), |delta| {
            if let Some(old) = old {
                self.apply(own, old, delta);
            }
        });
        self.strike(core, left);
        if noted.is_some() {
            slot.set_noted(noted);
        }
    }

    /// The slot is about to be given up: returns the object that has the core on its list, or null, for [`RefCache::strike`] once
    /// the object has the delta. A death in between leaves a core on a list, and no pointer to what it is not
    /// in.
    #[inline]
    fn begin_to_leave(&self, core: &Core<'_>, slot: &Slot) -> *mut Noted {
        let left = if slot.is_noted() { slot.set_noted(None) } else { ptr::null_mut() };
        if sync::mutant::planted("refcache: a core is struck off before its delta is applied") {
            self.strike(core, left);
        }
        left
    }

    #[inline]
    fn strike(&self, core: &Core<'_>, left: *mut Noted) {
        // SAFETY: null, or what the slot had, which is not freed before the core reports.
        if let Some(left) = unsafe { left.as_ref() } {
            left.holders.strike(core.index());
        }
    }

    /// Adds a slot that is about to hold an object to the list.
    fn list_slot(&self, own: &Own, index: usize) {
        let used = own.used.get();
        assert!(used as usize <= self.slot_mask, "each slot is listed once");
        // SAFETY: the list has a place for each slot, and fewer are in use, as asserted.
        unsafe { own.used_list.add(used as usize).write(index as u32) };
        own.used.set(used + 1);
    }

    pub(crate) fn apply(&self, own: &Own, object: NonNull<Counted>, delta: i64) {
        if delta == 0 {
            return;
        }
        // SAFETY: when it was counted it was alive (the promise to `change`), and an object with a delta in some cache is not
        // freed: two epochs pass before its review ends, in which each core flushes, and the review finds it dirty.
        let counted = unsafe { object.as_ref() };
        if counted.apply(delta) == Verdict::BecameZero {
            self.queue(own, object, counted);
        }
    }

    /// Lets an object whose count is zero wait for its review.
    pub(crate) fn queue(&self, own: &Own, object: NonNull<Counted>, counted: &Counted) {
        // Who has used the weak reference before has changed a count that he flushes before our review.
        counted.mark_weak();
        let epoch = match own.next_flush.get() {
            // What we did is seen by those who flush in the epoch after this one.
            0 => self.rounds.round_before_the_next(),
            // Before that flush of ours no other core's is in the epoch after it.
            epoch => epoch,
        };
        own.queues[usize::from(counted.kind().is_late())].push(object, epoch);
    }

    /// Applies all deltas of the core and empties its cache: the first part of maintenance.
    pub fn flush(&self, core: &Core<'_>) {
        let own = self.own.get(core);
        // SAFETY: null, or found in a call of this core since its last report: not freed before the next one.
        if let Some(asked) = unsafe { own.asked.get().as_ref() } {
            self.narrow(own, asked);
        }
        let table = self.slots.get(core).0;
        for place in 0..own.used.get() as usize {
            // SAFETY: the first `used` places of the list were written by `list_slot`, with indices of slots.
            let slot = unsafe { table.add(*own.used_list.add(place) as usize).as_ref() };
            debug_assert!(slot.pending().is_none(), "maintain is called between calls");
            if let Some(old) = NonNull::new(slot.object()) {
                let left = self.begin_to_leave(core, slot);
                slot.replace(ptr::null_mut(), |delta| self.apply(own, old, delta));
                self.strike(core, left);
            }
        }
        own.used.set(0);
    }

    /// Goes on with the list of holders of a count for which the core has asked all cores. It flushes and reports after
    /// this.
    #[cold]
    fn narrow(&self, own: &Own, asked: &Noted) {
        own.asked.set(ptr::null_mut());
        let index = self.slot_index(asked.counted());
        // SAFETY: the mask keeps the index in the table.
        let slots = self.slots.below(self.slots.limit_seen()).map(|(_, table)| unsafe { table.0.add(index).as_ref() });
        if slots.filter(|slot| ptr::eq(slot.object(), asked.counted())).count() <= Holders::MOST
            && let Some(round) = self.round_to_report(own)
        {
            asked.holders.narrow(round);
        }
    }

    /// The present round, for lists of holders: of a core that has reported before, since only of those it is known in which
    /// rounds they do so next.
    pub fn round_of_lists(&self, core: &Core<'_>) -> Option<u64> {
        self.round_to_report(self.own.get(core))
    }

    fn round_to_report(&self, own: &Own) -> Option<u64> {
        (own.next_flush.get() != 0).then(|| self.rounds.round())
    }

    /// Adds `delta` to the count of an object.
    ///
    /// # Safety
    /// The object lies in the arena and is not freed: the caller holds a reference to it, or has found it in this call
    /// where a counted reference led to it.
    #[inline]
    pub unsafe fn change(&self, core: &Core<'_>, object: &impl Count, delta: i64) {
        self.slot_of(core, object).add(delta);
    }

    /// Adds `delta` to the count of an object at the moment that the operation `tag` of this core commits.
    /// [`RefCache::settle`] must follow before the core counts anything else.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    #[inline]
    pub unsafe fn prepare(&self, core: &Core<'_>, object: &impl Count, delta: i64, tag: Tag) {
        self.slot_of(core, object).set_pending(tag, delta);
    }

    /// Ends what [`RefCache::prepare`] began, once the operation has committed (`happened`) or was aborted.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    #[inline]
    pub unsafe fn settle(&self, core: &Core<'_>, object: &impl Count, happened: bool) {
        self.slot_of(core, object).settle(happened);
    }

    /// As [`RefCache::prepare`], for one of many counts that depend on the same operation, of which several may be of one
    /// object: it adds to what waits already. Where the core's slot is taken by another of them, the delta waits in the object
    /// itself, for which there is room for one operation.
    ///
    /// # Errors
    /// The tag of another operation that has that room. Who has some room waits for no other, so that no two wait for each
    /// other: he gives up all and starts again.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    pub unsafe fn prepare_one_of_many(
        &self,
        core: &Core<'_>,
        whole: &impl Count,
        delta: i64,
        tag: Tag,
    ) -> Result<Pending, Tag> {
        let object = whole.counted();
        let slot = self.home(core, object);
        match slot.pending() {
            None => {
                self.slot_of(core, whole).set_pending(tag, delta);
                Ok(Pending::InSlot)
            }
            Some(_) if ptr::eq(slot.object(), object) => {
                slot.set_pending(tag, slot.pending_delta() + delta);
                Ok(Pending::InSlot)
            }
            Some(_) => {
                let is_ours = object.claimed_by() == Some(tag);
                if !is_ours {
                    object.claim(tag)?;
                    // Our slot shows who reads that the object changes, though it holds another.
                    if let Some(noted) = whole.noted() {
                        noted.holders.note(core.index());
                    }
                }
                let delta = if is_ours { object.pending_delta() + delta } else { delta };
                slot.beside(|| object.set_pending(delta));
                Ok(Pending::InObject)
            }
        }
    }

    /// Ends all that [`RefCache::prepare_one_of_many`] let wait for an object; nothing if that has ended.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    pub unsafe fn settle_one_of_many(&self, core: &Core<'_>, whole: &impl Count, tag: Tag, happened: bool) {
        let object = whole.counted();
        let slot = self.home(core, object);
        if ptr::eq(slot.object(), object) && slot.pending() == Some(tag) {
            slot.settle(happened);
        }
        if object.claimed_by() == Some(tag) {
            let own = self.own.get(core);
            if sync::mutant::planted("refcache: a claim is given up before its delta ends") {
                object.give_up_claim();
            }
            slot.beside(|| {
                if object.end_pending(happened) == Verdict::BecameZero {
                    self.queue(own, NonNull::from(object), object);
                }
            });
            if let Some(noted) = whole.noted() {
                noted.holders.strike(core.index());
            }
            object.give_up_claim();
        }
    }

    /// Applies what the core's cache has for an object that was made without a count, and has its first now. A count that comes
    /// back to zero within one cache changes nothing outside of it; where it was zero before, no one would find that it
    /// is.
    ///
    /// # Safety
    /// As for [`RefCache::change`]; nothing waits there for an operation.
    pub unsafe fn apply_first(&self, core: &Core<'_>, object: &impl Count) {
        let object = object.counted();
        let slot = self.home(core, object);
        if ptr::eq(slot.object(), object) && !sync::mutant::planted("refcache: a first count stays in the cache") {
            slot.replace(slot.object(), |delta| self.apply(self.own.get(core), NonNull::from(object), delta));
        }
    }

    /// Ends what the last operation of a core whose owner died let wait in an object.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner and repaired by [`RefCache::repair_taken_over`]; the object is not freed.
    pub unsafe fn repair_object_taken_over(&self, core: &Core<'_>, object: &impl Count) {
        if let Some(tag) = object.counted().claimed_by().filter(|tag| tag.core() == Some(core.index())) {
            let happened = self.decisions().observe(tag) == Observed::Committed;
            // SAFETY: the caller's promise.
            unsafe { self.settle_one_of_many(core, object, tag, happened) };
        }
    }

    /// The slot in which an object is if it is in the core's cache.
    fn home<'s>(&'s self, core: &'s Core<'_>, object: &Counted) -> &'s Slot {
        // SAFETY: the mask keeps the index in the table.
        unsafe { self.slots.get(core).0.add(self.slot_index(object)).as_ref() }
    }

    /// The count of an object as it was at one moment of the call, all cores and committed operations included.
    /// Revokes revocable operations that are undecided.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    pub unsafe fn exact(&self, object: &impl Count, wait: &impl Wait) -> i64 {
        // Its fence also orders what this core changed before the collects: of two eager releases one sees the other.
        self.collect_stable(object, None, self.slots.limit(), Waiting(Anyone, wait), wait)
    }

    /// [`RefCache::exact`] by a core that has changed nothing since its last sequentially consistent fence, such as the one
    /// that pinned it for a call that only reads.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    #[inline]
    pub unsafe fn exact_after_fence(&self, core: &Core<'_>, object: &impl Count, wait: &impl Wait) -> i64 {
        self.collect_stable(object, Some(core), self.slots.limit_seen(), Waiting(Anyone, wait), wait)
    }

    /// [`RefCache::exact`] for a viewer that may have let deltas wait itself.
    ///
    /// # Safety
    /// As for [`RefCache::change`].
    pub unsafe fn exact_for(&self, object: &impl Count, viewer: impl Viewer, wait: &impl Wait) -> i64 {
        self.collect_stable(object, None, self.slots.limit(), viewer, wait)
    }

    #[inline]
    fn collect_stable(
        &self,
        object: &impl Count,
        asker: Option<&Core<'_>>,
        limit: usize,
        viewer: impl Viewer,
        wait: &impl Wait,
    ) -> i64 {
        match object.noted() {
            Some(noted) if limit > Holders::FEW_CORES => self.collect_of_many(noted, asker, limit, viewer, wait),
            _ => self.collect_of_all(object.counted(), limit, viewer, wait),
        }
    }

    /// Where many cores may have deltas. `asker` is a core that may have the list of holders made.
    #[cold]
    fn collect_of_many(
        &self,
        noted: &Noted,
        asker: Option<&Core<'_>>,
        limit: usize,
        viewer: impl Viewer,
        wait: &impl Wait,
    ) -> i64 {
        let object = noted.counted();
        let mut round = 0;
        loop {
            // Before all that is read.
            let holding = noted.holders.seen();
            if !holding.is_list() {
                if let Some(core) = asker {
                    self.own.get(core).asked.set(ptr::from_ref(noted).cast_mut());
                }
                return self.collect_of_all(object, limit, viewer, wait);
            }
            let first = self.collect_listed(object, holding, viewer);
            if sync::mutant::planted("refcache: single collect") {
                return first.total;
            }
            fence(Ordering::Acquire);
            if !first.changing && self.collect_listed(object, holding, viewer) == first {
                // As with the limit below: having seen what was built on a holder's change, we see that it was noted.
                fence(Ordering::Acquire);
                if noted.holders.is_still(holding) || sync::mutant::planted("refcache: holders are looked at once") {
                    return first.total;
                }
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    #[inline]
    fn collect_of_all(&self, object: &Counted, mut limit: usize, viewer: impl Viewer, wait: &impl Wait) -> i64 {
        let mut round = 0;
        loop {
            let first = self.collect(object, limit, viewer);
            if sync::mutant::planted("refcache: single collect") {
                return first.total;
            }
            // Pairs with the release fence in `Sequence::change`: a word of a change is seen with its odd number or later.
            fence(Ordering::Acquire);
            if !first.changing && self.collect(object, limit, viewer) == first {
                // A core that came on-line after we took the limit may have counted, and another have counted on that:
                // having seen what the other did, we see the new limit.
                if self.slots.limit_seen() == limit {
                    return first.total;
                }
                limit = self.slots.limit();
                continue;
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    #[inline]
    fn collect(&self, object: &Counted, limit: usize, viewer: impl Viewer) -> Collected {
        let tables = self.slots.below(limit).map(|(_, table)| table);
        self.collect_from(object, tables, viewer)
    }

    fn collect_listed(&self, object: &Counted, holding: Holding, viewer: impl Viewer) -> Collected {
        let tables = holding.cores().map(|core| self.slots.of(core));
        self.collect_from(object, tables, viewer)
    }

    #[inline]
    fn collect_from<'s>(
        &'s self,
        object: &Counted,
        tables: impl Iterator<Item = &'s SlotTable>,
        viewer: impl Viewer,
    ) -> Collected {
        let index = self.slot_index(object);
        let mut seen = Collected::default();
        for table in tables {
            // SAFETY: the mask keeps the index in the table.
            unsafe { table.0.add(index).as_ref() }.collect(object, self.decisions(), viewer, &mut seen);
        }
        let (applied, is_pending) = object.applied_and_pending();
        seen.total += applied;
        if is_pending && !sync::mutant::planted("refcache: a delta in an object is not read") {
            self.collect_pending(object, viewer, &mut seen);
        }
        seen
    }

    /// Adds the delta that waits in the object itself.
    #[cold]
    fn collect_pending(&self, object: &Counted, viewer: impl Viewer, seen: &mut Collected) {
        let delta = object.pending_delta();
        match object.claimed_by().map(|tag| self.decisions().observe_by(tag, viewer)) {
            Some(Observed::Committed) => seen.total += delta,
            Some(Observed::NotCommitted) if sync::mutant::planted("refcache: what is prepared counts at once") => {
                seen.total += delta;
            }
            Some(Observed::NotCommitted) => {}
            Some(Observed::Over) | None => seen.changing = true,
        }
    }

    /// Gives up a reference and tells whether that was the last one. If several cores give up the last ones at the same
    /// time, at least one of them learns so.
    ///
    /// # Safety
    /// As for [`RefCache::change`]; the caller gives up its own reference, and the object is not freed before the call
    /// ends because its zero has not been reviewed.
    pub unsafe fn decrement_eager(&self, core: &Core<'_>, object: &impl Count, wait: &impl Wait) -> bool {
        self.slot_of(core, object).add(-1);
        // SAFETY: the caller's promise.
        unsafe { self.exact(object, wait) == 0 }
    }

    /// Takes a reference to the target of a weak reference, if it lives.
    pub fn upgrade(&self, core: &Core<'_>, weak: &WeakRef) -> Option<NonNull<Counted>> {
        let target = weak.revive()?;
        // SAFETY: the weak reference is not under review any more, so the target is not freed before this core flushes, which
        // it does between calls only (the promise to `maintain`). That it is this cache's is the promise to `attach`.
        self.slot_of(core, unsafe { target.as_ref() }).add(1);
        Some(target)
    }

    /// Makes the slots, their list and the queue of a core whole again whose owner died in a change.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        let own = self.own.get(core);
        own.asked.set(ptr::null_mut());
        let keeps_list = sync::mutant::planted("refcache: an heir takes the list of slots as it is");
        if !keeps_list {
            // A slot may be listed and hold nothing, or be listed twice: its owner died before it held an object.
            own.used.set(0);
        }
        for index in 0..=self.slot_mask {
            // SAFETY: in bounds of the table.
            let slot = unsafe { self.slots.get(core).0.add(index).as_ref() };
            if let Some(tag) = slot.pending() {
                slot.settle(self.decisions().observe(tag) == Observed::Committed);
            }
            slot.repair();
            if !keeps_list && !slot.object().is_null() {
                self.list_slot(own, index);
            }
        }
        own.queues.iter().for_each(Queue::repair_taken_over);
        // Its owner may have died between its report and the note of what that meant.
        own.next_flush.set(0);
        // SAFETY: the caller's promise.
        unsafe { self.rounds.repair_taken_over(core) };
    }
}
