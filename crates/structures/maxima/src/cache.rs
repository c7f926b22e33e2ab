//! The caches of all cores: raising, reading exactly, setting back, flushing.

use core::alloc::Layout;
use core::mem;
use core::ptr::{self, NonNull};

use percpu::{Arena, Core, CoreIndex, Holders, Holding, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::atomic::{Ordering, fence};
use sync::{OwnWord, Wait, WaitReason};

use crate::maximum::{Floor, Mark, Maximum, Reset};
use crate::slot::{Collected, SLOT, Slot};

/// How large the caches are, and how objects are spread over them.
#[derive(Clone, Copy, Debug)]
pub struct MaximaConfig {
    /// Slots of each core's cache, a power of two; rounded up otherwise.
    pub slots_per_core: usize,
    /// Moves collisions of objects in slots.
    pub seed: u64,
}

/// What a core keeps for itself.
struct Own<const WORDS: usize> {
    /// The first `used` places of the list hold indices: those of all slots that hold an object, each once, so that a
    /// flush visits no others.
    used: OwnWord<u32>,
    list: *mut u32,
    /// An object that the core has read since its last flush by asking all cores, if it did.
    asked: OwnWord<*mut Maximum<WORDS>>,
}

const OWN: ObjectKind = table_kind!(Own<1> as "maxima of a core" { "slots in use" = used });

// SAFETY: reached through `&Core` only; pointers lead to the arena.
unsafe impl<const WORDS: usize> Send for Own<WORDS> {}

/// Read-only, so that finding a slot shares nothing.
struct SlotTable<const WORDS: usize>(NonNull<Slot<WORDS>>);

// SAFETY: slots consist of atomics and live as long as the arena.
unsafe impl<const WORDS: usize> Sync for SlotTable<WORDS> {}
// SAFETY: as above.
unsafe impl<const WORDS: usize> Send for SlotTable<WORDS> {}

/// Words of objects of one arena that are raised per core; see the crate's head.
pub struct Maxima<const WORDS: usize> {
    // Immutable.
    slots: PerCore<SlotTable<WORDS>>,
    slot_mask: usize,
    seed: u64,
    own: PerCore<Own<WORDS>>,
}

impl<const WORDS: usize> Maxima<WORDS> {
    /// What lies where, and what tools call it.
    pub fn tables(&self) -> impl Iterator<Item = Part> {
        let bytes = (self.slot_mask + 1) * size_of::<Slot<WORDS>>();
        let slots = self.slots.all().map(move |(_, table)| {
            let start = table.0.as_ptr() as usize;
            Part { memory: start..start + bytes, kind: &SLOT }
        });
        slots.chain([Part { memory: self.own.memory(), kind: &OWN }])
    }

    /// Places caches in an arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    pub fn create(arena: &Arena, config: MaximaConfig) -> Result<&Maxima<WORDS>, OutOfMemory> {
        let slot_count = config.slots_per_core.max(1).checked_next_power_of_two().ok_or(OutOfMemory)?;
        let layout = Layout::array::<Slot<WORDS>>(slot_count).map_err(|_| OutOfMemory)?;
        let list_layout = Layout::array::<u32>(slot_count).map_err(|_| OutOfMemory)?;
        let mut failed = false;
        let table_of = |_| {
            let Ok(table) = arena.allocate_permanent(layout) else {
                failed = true;
                return SlotTable(NonNull::dangling());
            };
            let table = table.cast::<Slot<WORDS>>();
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
            PerCore::create(arena, |_| {
                let list = arena.allocate_permanent(list_layout);
                failed |= list.is_err();
                Own {
                    used: OwnWord::new(0),
                    list: list.map_or(ptr::null_mut(), |list| list.cast().as_ptr()),
                    asked: OwnWord::new(ptr::null_mut()),
                }
            })
        }?;
        if failed {
            return Err(OutOfMemory);
        }
        arena.place(Maxima { slots, slot_mask: slot_count - 1, seed: config.seed | 1, own })
    }

    #[inline]
    fn slot_index(&self, object: *const Maximum<WORDS>) -> usize {
        let hash = ((object as usize as u64) >> 6).wrapping_mul(self.seed);
        (hash >> 32) as usize & self.slot_mask
    }

    #[inline]
    fn slot_of<'s>(&'s self, core: &'s Core<'_>, index: usize) -> &'s Slot<WORDS> {
        // SAFETY: the mask keeps the index in the table.
        unsafe { self.slots.get(core).0.add(index).as_ref() }
    }

    /// Raises words of an object to at least these, in its present generation.
    ///
    /// # Safety
    /// The object lies in the arena and is not freed before this core and all others have flushed.
    #[inline]
    pub unsafe fn raise(&self, core: &Core<'_>, object: &Maximum<WORDS>, words: [u64; WORDS], wait: &impl Wait) {
        // SAFETY: the caller's promise.
        unsafe {
            self.prepare(core, object, wait);
            self.raise_prepared(core, object, words);
        }
    }

    /// Gives the object a slot of the core's cache: [`Maxima::raise_prepared`] then waits for no one, so that it may be
    /// called under locks that a reset waits for.
    ///
    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    pub unsafe fn prepare(&self, core: &Core<'_>, object: &Maximum<WORDS>, wait: &impl Wait) {
        let index = self.slot_index(object);
        let slot = self.slot_of(core, index);
        if !ptr::eq(slot.object(), object) {
            self.take_slot(core, slot, index, object, wait);
        }
    }

    /// Raises words of an object that was prepared last among those that this core has raised or prepared.
    ///
    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    pub unsafe fn raise_prepared(&self, core: &Core<'_>, object: &Maximum<WORDS>, words: [u64; WORDS]) {
        // SAFETY: the caller's promise.
        unsafe { self.raise_in_generation(core, object, object.raising_generation(), words) }
    }

    /// [`Maxima::raise_prepared`] in the generation of a floor: it counts for nothing if a reset has begun since.
    ///
    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    pub unsafe fn raise_above(
        &self,
        core: &Core<'_>,
        object: &Maximum<WORDS>,
        floor: &Floor<WORDS>,
        words: [u64; WORDS],
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.raise_in_generation(core, object, floor.generation, words) }
    }

    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    unsafe fn raise_in_generation(
        &self,
        core: &Core<'_>,
        object: &Maximum<WORDS>,
        generation: u64,
        words: [u64; WORDS],
    ) {
        let slot = self.slot_of(core, self.slot_index(object));
        debug_assert!(ptr::eq(slot.object(), object), "the object was prepared");
        if slot.generation() != generation {
            // The floor is of before a reset, and what the core has raised since stays.
            if slot.generation() > generation {
                return;
            }
            // What was raised in an older generation no longer counts.
            slot.replace(slot.object(), generation, |_| ());
        }
        slot.raise(&words);
    }

    #[cold]
    fn take_slot(&self, core: &Core<'_>, slot: &Slot<WORDS>, index: usize, object: &Maximum<WORDS>, wait: &impl Wait) {
        let generation = object.raising_generation();
        if slot.object().is_null() {
            self.list_slot(core, index);
        }
        // Before the slot has words of it.
        let is_noted = object.holders.note(core.index());
        let old = (slot.object(), slot.generation());
        let was_noted = Self::begin_to_leave(core, slot);
        slot.replace(ptr::from_ref(object).cast_mut(), generation, |words| Self::apply(core, old, words, wait));
        Self::strike(core, old.0, was_noted);
        if is_noted {
            slot.set_noted(true);
        }
    }

    /// The slot is about to be given up: tells whether its object has the core on its list, for [`Maxima::strike`] once the object
    /// has the words. A death in between leaves a core on a list that has no part.
    #[inline]
    fn begin_to_leave(core: &Core<'_>, slot: &Slot<WORDS>) -> bool {
        let was_noted = slot.is_noted() && slot.set_noted(false);
        if sync::mutant::planted("maxima: a core is struck off before its words are applied") {
            Self::strike(core, slot.object(), was_noted);
        }
        was_noted
    }

    #[inline]
    fn strike(core: &Core<'_>, left: *mut Maximum<WORDS>, was_noted: bool) {
        if was_noted {
            // SAFETY: what the slot had, and noted; as in `apply`.
            unsafe { (*left).holders.strike(core.index()) };
        }
    }

    /// Adds a slot that is about to hold an object to the list.
    fn list_slot(&self, core: &Core<'_>, index: usize) {
        let own = self.own.get(core);
        let used = own.used.get();
        assert!(used as usize <= self.slot_mask, "each slot is listed once");
        // SAFETY: the list has a place for each slot, and fewer are in use, as asserted.
        unsafe { own.list.add(used as usize).write(index as u32) };
        own.used.set(used + 1);
    }

    /// Brings words that were raised in a slot to their object.
    fn apply(core: &Core<'_>, (object, generation): (*mut Maximum<WORDS>, u64), words: [u64; WORDS], wait: &impl Wait) {
        // SAFETY: null, or an object that this core has prepared or raised, and that is not freed before it has flushed: the
        // promise to `raise`.
        if let Some(object) = unsafe { object.as_ref() } {
            let _lock = object.lock(core, wait);
            object.apply_locked(generation, &words);
        }
    }

    /// [`Maximum::floor`], with what some cores have raised: mostly higher, where these are the ones that have raised it. Looks
    /// at no other core's cache.
    #[inline]
    pub fn floor_of_cores(
        &self,
        object: &Maximum<WORDS>,
        cores: impl IntoIterator<Item = CoreIndex>,
    ) -> Option<Floor<WORDS>> {
        let mut floor = object.floor()?;
        let index = self.slot_index(object);
        for core in cores {
            // SAFETY: the mask keeps the index in the table.
            let slot = unsafe { self.slots.of(core).0.add(index).as_ref() };
            slot.raise_least(object, floor.generation, &mut floor.words);
        }
        object.still_has(&floor).then_some(floor)
    }

    /// The words of an object as they were at one moment of the call. Waits for a reset that is under way.
    pub fn read(&self, object: &Maximum<WORDS>, wait: &impl Wait) -> [u64; WORDS] {
        Self::until_stable(wait, || self.try_read(object))
    }

    /// [`Maxima::read`] by a core that has changed nothing since its last sequentially consistent fence, such as the one
    /// that pinned it for a call that only reads.
    ///
    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    pub unsafe fn read_after_fence(&self, core: &Core<'_>, object: &Maximum<WORDS>, wait: &impl Wait) -> [u64; WORDS] {
        // SAFETY: the caller's promise.
        unsafe { self.read_after_fence_beside_marks(core, object, wait, |_| false) }
    }

    /// [`Maxima::read_after_fence`] where changes may be marked, as [`Maxima::read_beside_marks`].
    ///
    /// # Safety
    /// As for [`Maxima::raise`].
    #[inline]
    pub unsafe fn read_after_fence_beside_marks(
        &self,
        core: &Core<'_>,
        object: &Maximum<WORDS>,
        wait: &impl Wait,
        is_as_before: impl Fn(CoreIndex) -> bool,
    ) -> [u64; WORDS] {
        let limit = self.slots.limit_seen();
        let are_few = limit <= Holders::FEW_CORES;
        if are_few
            && let Some(generation) = object.settled_generation()
            && let Some(words) = self.collect_twice_of_all(object, generation, limit)
            && object.is_still(generation)
        {
            return words;
        }
        self.read_late(core, object, wait, is_as_before, are_few)
    }

    /// The rest of [`Maxima::read_after_fence_beside_marks`]: where there are many cores, or where they are few and the first
    /// look was in vain. So the usual way of few cores keeps no registers for a loop.
    #[cold]
    #[inline(never)]
    fn read_late(
        &self,
        core: &Core<'_>,
        object: &Maximum<WORDS>,
        wait: &impl Wait,
        is_as_before: impl Fn(CoreIndex) -> bool,
        mut was_read: bool,
    ) -> [u64; WORDS] {
        if !was_read && !object.holders.seen().is_list() {
            // All cores have to be asked: maintenance is to have the object's list of holders made.
            self.own.get(core).asked.set(ptr::from_ref(object).cast_mut());
        }
        Self::until_stable(wait, || {
            let read = match mem::take(&mut was_read) {
                true => None,
                false => self.try_read_below(object, self.slots.limit_seen()),
            };
            read.or_else(|| self.try_read_marked(object, &is_as_before))
        })
    }

    /// [`Maxima::read`] where changes may be marked: one that has not happened, by what `is_as_before` says of a core, leaves
    /// the words as they are.
    #[inline]
    pub fn read_beside_marks(
        &self,
        object: &Maximum<WORDS>,
        wait: &impl Wait,
        is_as_before: impl Fn(CoreIndex) -> bool,
    ) -> [u64; WORDS] {
        Self::until_stable(wait, || self.try_read(object).or_else(|| self.try_read_marked(object, &is_as_before)))
    }

    #[cold]
    fn try_read_marked(
        &self,
        object: &Maximum<WORDS>,
        is_as_before: &impl Fn(CoreIndex) -> bool,
    ) -> Option<[u64; WORDS]> {
        let generation = object.marked_generation(is_as_before)?;
        let raised_in = object.raising_generation();
        self.collect_twice(object, raised_in, self.slots.limit()).filter(|_| object.is_still(generation))
    }

    /// The words of an object whose change the caller has marked, as they were at one moment.
    pub fn read_marked(&self, mark: &Mark<'_, WORDS>, wait: &impl Wait) -> [u64; WORDS] {
        let object = mark.object();
        let generation = object.raising_generation();
        Self::until_stable(wait, || self.collect_twice(object, generation, self.slots.limit()))
    }

    /// The words of an object as they were at one moment, unless somebody changes them.
    #[inline]
    pub fn try_read(&self, object: &Maximum<WORDS>) -> Option<[u64; WORDS]> {
        self.try_read_below(object, self.slots.limit())
    }

    #[inline]
    fn try_read_below(&self, object: &Maximum<WORDS>, limit: usize) -> Option<[u64; WORDS]> {
        let generation = object.settled_generation()?;
        self.collect_twice(object, generation, limit).filter(|_| object.is_still(generation))
    }

    #[inline]
    fn until_stable(wait: &impl Wait, mut read: impl FnMut() -> Option<[u64; WORDS]>) -> [u64; WORDS] {
        let mut round = 0;
        loop {
            if let Some(words) = read() {
                return words;
            }
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }

    /// The words of an object in one generation on the cores below a limit, if no slot changed in the meantime.
    #[inline]
    fn collect_twice(&self, object: &Maximum<WORDS>, generation: u64, limit: usize) -> Option<[u64; WORDS]> {
        if limit > Holders::FEW_CORES {
            return self.collect_twice_of_many(object, generation, limit);
        }
        self.collect_twice_of_all(object, generation, limit)
    }

    /// Where many cores may have raised words.
    #[cold]
    fn collect_twice_of_many(&self, object: &Maximum<WORDS>, generation: u64, limit: usize) -> Option<[u64; WORDS]> {
        // Before all that is read.
        let holding = object.holders.seen();
        if !holding.is_list() {
            return self.collect_twice_of_all(object, generation, limit);
        }
        let first = self.collect_listed(object, generation, holding);
        if sync::mutant::planted("maxima: single collect") {
            return Some(first.words);
        }
        fence(Ordering::Acquire);
        let same = !first.changing && self.collect_listed(object, generation, holding) == first;
        // As below: having seen what was built on a holder's raise, we see that it was noted.
        fence(Ordering::Acquire);
        let is_still = object.holders.is_still(holding) || sync::mutant::planted("maxima: holders are looked at once");
        (same && is_still).then_some(first.words)
    }

    // Into the way of few cores as well as into the others: it pays for no call because there are others.
    #[inline(always)]
    fn collect_twice_of_all(&self, object: &Maximum<WORDS>, generation: u64, limit: usize) -> Option<[u64; WORDS]> {
        let first = self.collect(object, generation, limit);
        if sync::mutant::planted("maxima: single collect") {
            return Some(first.words);
        }
        // Pairs with the release fence in `Sequence::change`: a word of a change is seen with its odd number or later.
        fence(Ordering::Acquire);
        let same = !first.changing && self.collect(object, generation, limit) == first;
        // The generation is looked at after all words, and so is the limit: one that built upon the work of a core that
        // came on-line in the meantime shows us the new limit with what it did.
        fence(Ordering::Acquire);
        (same && self.slots.limit_seen() == limit).then_some(first.words)
    }

    #[inline]
    fn collect(&self, object: &Maximum<WORDS>, generation: u64, limit: usize) -> Collected<WORDS> {
        let tables = self.slots.below(limit).map(|(_, table)| table);
        self.collect_from(object, generation, tables)
    }

    fn collect_listed(&self, object: &Maximum<WORDS>, generation: u64, holding: Holding) -> Collected<WORDS> {
        let tables = holding.cores().map(|core| self.slots.of(core));
        self.collect_from(object, generation, tables)
    }

    #[inline]
    fn collect_from<'s>(
        &'s self,
        object: &Maximum<WORDS>,
        generation: u64,
        tables: impl Iterator<Item = &'s SlotTable<WORDS>>,
    ) -> Collected<WORDS> {
        let index = self.slot_index(object);
        let mut seen = Collected { versions: 0, words: [0; WORDS], changing: false };
        for table in tables {
            // SAFETY: the mask keeps the index in the table.
            unsafe { table.0.add(index).as_ref() }.collect(object, generation, &mut seen);
        }
        // After the slots: what an eviction took from a slot is here already.
        seen.raise(&object.applied());
        seen
    }

    /// Starts to set the words of an object back: from now on raises of before do not count, and readers wait. Also tells
    /// what the words were at a moment just before. A raise between that moment and the start is lost, unless the caller
    /// keeps it off.
    pub fn reset<'o>(
        &self,
        core: &'o Core<'_>,
        object: &'o Maximum<WORDS>,
        wait: &impl Wait,
    ) -> (Reset<'o, WORDS>, [u64; WORDS]) {
        let lock = object.lock(core, wait);
        let generation = object.raising_generation();
        let look = || Self::until_stable(wait, || self.collect_twice(object, generation, self.slots.limit()));
        if sync::mutant::planted("maxima: a reset looks when it has begun") {
            let mut reset = object.begin_reset(lock, [0; WORDS]);
            reset.words = look();
            let words = reset.words;
            return (reset, words);
        }
        // Before it begins: from then on cores that raise drop what they raised before.
        let words = look();
        (object.begin_reset(lock, words), words)
    }

    /// Part of maintenance, before the core flushes: goes on with the list of holders of an object for which it has asked all
    /// cores, if there is one. `round` is one of the rounds in which cores report after their maintenance, as for
    /// [`Holders::narrow`]; none if that is not known of this core.
    #[inline]
    pub fn narrow(&self, core: &Core<'_>, round: impl FnOnce() -> Option<u64>) {
        // SAFETY: null, or read by this core since it has flushed last, so that it is not freed before the next time: the promise
        // of who read.
        if let Some(asked) = unsafe { self.own.get(core).asked.get().as_ref() } {
            self.narrow_asked(asked, round);
        }
    }

    #[cold]
    fn narrow_asked(&self, asked: &Maximum<WORDS>, round: impl FnOnce() -> Option<u64>) {
        let index = self.slot_index(asked);
        // SAFETY: the mask keeps the index in the table.
        let slots = self.slots.below(self.slots.limit_seen()).map(|(_, table)| unsafe { table.0.add(index).as_ref() });
        if slots.filter(|slot| ptr::eq(slot.object(), asked)).count() <= Holders::MOST
            && let Some(round) = round()
        {
            asked.holders.narrow(round);
        }
    }

    /// Brings all that the core has raised to the objects and empties its cache; part of its maintenance.
    pub fn flush(&self, core: &Core<'_>, wait: &impl Wait) {
        self.flush_each(core, wait, |_| ());
    }

    /// [`Maxima::flush`], which tells of each object when it has what the core had raised, and is still known to be alive.
    pub fn flush_each(&self, core: &Core<'_>, wait: &impl Wait, mut flushed: impl FnMut(&Maximum<WORDS>)) {
        let own = self.own.get(core);
        let table = self.slots.get(core).0;
        for place in 0..own.used.get() as usize {
            // SAFETY: the first `used` places of the list were written by `list_slot`, with indices of slots.
            let slot = unsafe { table.add(*own.list.add(place) as usize).as_ref() };
            let old = (slot.object(), slot.generation());
            let apply = |words| {
                Self::apply(core, old, words, wait);
                // SAFETY: as in `apply`; the slot still has it.
                if let Some(object) = unsafe { old.0.as_ref() } {
                    flushed(object);
                }
            };
            let was_noted = Self::begin_to_leave(core, slot);
            slot.replace(ptr::null_mut(), 0, apply);
            Self::strike(core, old.0, was_noted);
        }
        own.used.set(0);
        own.asked.set(ptr::null_mut());
    }

    /// As [`Maxima::flush`], but what the core has raised since the last call stays in its cache: so an object that it raises all
    /// the time shares no line then. Objects must not be freed before each core has called this twice since they were last raised.
    pub fn flush_unchanged(&self, core: &Core<'_>, wait: &impl Wait) {
        let own = self.own.get(core);
        let table = self.slots.get(core).0;
        let mut kept = 0;
        for place in 0..own.used.get() as usize {
            // SAFETY: the first `used` places of the list were written by `list_slot`, with indices of slots; the place is not
            // after the one that is read. Who dies in between leaves the list to be made again.
            unsafe {
                let index = *own.list.add(place);
                let slot = table.add(index as usize).as_ref();
                let old = (slot.object(), slot.generation());
                if slot.was_changed() {
                    // SAFETY: as in `apply`. The object may have got a list since the slot has it.
                    slot.set_noted(old.0.as_ref().is_some_and(|object| object.holders.note(core.index())));
                    own.list.add(kept).write(index);
                    kept += 1;
                    continue;
                }
                let was_noted = Self::begin_to_leave(core, slot);
                slot.replace(ptr::null_mut(), 0, |words| Self::apply(core, old, words, wait));
                Self::strike(core, old.0, was_noted);
            }
        }
        own.used.set(kept as u32);
        own.asked.set(ptr::null_mut());
    }

    /// Makes the slots of a core and their list whole again whose owner died in a change, and frees the locks of objects
    /// that it was giving slots' words to. What it had raised stays.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner; objects that it was resetting are repaired first.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        self.own.get(core).asked.set(ptr::null_mut());
        let keeps_list = sync::mutant::planted("maxima: an heir takes the list of slots as it is");
        if !keeps_list {
            // A slot may be listed and hold nothing, or be listed twice: its owner died before it held an object.
            self.own.get(core).used.set(0);
        }
        for index in 0..=self.slot_mask {
            // SAFETY: in bounds of the table; an object in a slot is not freed before the slot is given up; the rest is
            // the caller's promise.
            unsafe {
                let slot = self.slots.get(core).0.add(index).as_ref();
                if let Some(object) = NonNull::new(slot.object()) {
                    object.as_ref().repair_taken_over(core, object.as_ref().applied());
                    if !keeps_list {
                        self.list_slot(core, index);
                    }
                }
                slot.repair();
            }
        }
    }
}
