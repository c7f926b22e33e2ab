//! Per-core slab allocation: allocating and freeing touch only lines of the caller's core, and of the object.
//!
//! **Idea** (Bonwick's magazines, with one depot per core). Objects come in size classes, powers of two from 64 bytes to
//! 64 KiB, each aligned to its size up to a page: no two objects share a line. Per core and class there are two lists
//! that only the core touches, `active` and `spare`, and a `depot` of full batches.
//!
//! ```text
//! allocate: pop active ─ else active := spare ─ else fresh part of the chunk ─ else slow:
//!             own depot (take all, keep the rest) ─ a new chunk, of memory never used or of a free page ─
//!             another core's depot (take all) ─ what somebody has given up ─ OutOfMemory
//! free:     push active; if it is a full batch: spare goes to the depot, spare := active
//! ```
//!
//! An object that core 0 allocated and core 1 frees joins core 1's list. If that goes on in one direction, core 1's
//! depot grows and core 0 takes fresh chunks until the arena is exhausted; then it takes core 1's whole depot at once.
//! At most two batches per core and class stay out of reach of the others: `core_count * 2 * 16 KiB` per class at most.
//! Once memory was missing, these too can be had, and pages whose objects are all free serve any class (`collect`).
//!
//! **Kinds.** A type of objects may have magazines and chunks of its own ([`ObjectKind`]). Which page holds which kind
//! stands in a map next to the arena's header, written when it is taken: so tools that know an address know what lies
//! there.
//!
//! **Why take-all.** A depot is a stack whose owner pushes single batches and whose takers exchange its head for null:
//! no one pops, so the ABA problem does not arise.
//!
//! **Death of a process**: what moves from one list to another is put there before it is taken here, and who takes the
//! core over ([`Arena::take_over`]) takes out of `active` what is in `spare` too, and counts: nothing is reachable twice.
//! Lost are at most the object of the call, a chunk or batch that was on its way, and all of a depot that was being taken.
//!
//! Cost: 2 to 3 ns per allocation or release from a magazine; one exchange on the core's own line per batch.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use sync::atomic::Ordering;

use crate::OutOfMemory;
use crate::arena::Arena;
use crate::class::{KIND_MAP_BYTES, SizeClass};
use crate::collect;
use crate::core_handle::Core;
use crate::core_index::CoreIndex;
use crate::magazine::{CoreSlabs, FreeObject, MAGAZINE_COUNT, Magazine};
use crate::object::ArenaObject;

impl Core<'_> {
    /// Allocates uninitialised memory of a size class, aligned to the class's size up to 4 KiB.
    ///
    /// # Errors
    /// [`OutOfMemory`] if neither a chunk nor a batch of another core's is left.
    #[inline]
    pub fn allocate(&self, class: SizeClass) -> Result<NonNull<u8>, OutOfMemory> {
        if self.allocation_must_fail() {
            return Err(OutOfMemory);
        }
        let magazine = &self.record.slabs.magazines[class.magazine()];
        let object = match magazine.pop(class) {
            Some(object) => object.cast(),
            None => self.allocate_from_fresh(class, magazine)?,
        };
        magazine.count_live(1);
        Ok(object)
    }

    /// Gives memory back, to this core, whichever core allocated it.
    ///
    /// # Safety
    /// `object` came from [`Core::allocate`] with the same class in the same arena, and no one uses it any more.
    #[inline]
    pub unsafe fn free(&self, object: NonNull<u8>, class: SizeClass) {
        // One that found it by a reference had the right to some of its bytes; the arena, which has given out its
        // address, has it to all. No instruction.
        let object = object.as_ptr().expose_provenance();
        // SAFETY: an object's address is not null.
        let object = unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut::<u8>(object)) };
        let magazine = &self.record.slabs.magazines[class.magazine()];
        magazine.use_for(class);
        magazine.count_live(-1);
        if magazine.push(object.cast()) == class.batch_objects() {
            if let Some(spare) = NonNull::new(magazine.spare.get()) {
                // Before others can take it: a death in between loses it.
                magazine.spare.set(ptr::null_mut());
                self.push_depot(class, spare);
            }
            magazine.spare_active();
        }
    }

    /// Lets maintenance fill the magazine of a class that this core has not used yet, so that even its first allocation
    /// shares nothing.
    #[inline]
    pub fn will_allocate(&self, class: SizeClass) {
        self.record.slabs.magazines[class.magazine()].use_for(class);
    }

    /// Allocates and initialises an object of a type without a kind.
    ///
    /// # Errors
    /// As [`Core::allocate`].
    ///
    /// # Panics
    /// When compiled, if the type is aligned to more than 4 KiB.
    #[inline]
    pub fn allocate_value<T>(&self, value: T) -> Result<NonNull<T>, OutOfMemory> {
        const { assert!(SizeClass::of_type::<T>().holds(Layout::new::<T>()), "aligned to more than 4 KiB") };
        let place = self.allocate(const { SizeClass::of_type::<T>() })?.cast::<T>();
        // SAFETY: fresh memory of a class that holds a `T`.
        unsafe { place.write(value) };
        Ok(place)
    }

    /// Allocates an object of the arena and initialises it.
    ///
    /// # Errors
    /// As [`Core::allocate`].
    #[inline]
    pub fn allocate_object<T: ArenaObject>(&self, value: T) -> Result<NonNull<T>, OutOfMemory> {
        let place = self.allocate_place::<T>()?;
        // SAFETY: fresh memory of the type's class, which holds a `T` (checked when it is compiled). Nothing smaller is in the
        // kind's magazine, as `ArenaObject` promises.
        unsafe { place.write(value) };
        Ok(place)
    }

    /// Allocates uninitialised memory for an object of the arena.
    ///
    /// # Errors
    /// As [`Core::allocate`].
    #[inline]
    pub fn allocate_place<T: ArenaObject>(&self) -> Result<NonNull<T>, OutOfMemory> {
        Ok(self.allocate(T::CLASS)?.cast())
    }

    /// Gives the memory of an object of the arena back, without dropping it.
    ///
    /// # Safety
    /// It came from [`Core::allocate_object`] or [`Core::allocate_place`] in the same arena, and no one uses it any
    /// more.
    #[inline]
    pub unsafe fn free_object<T: ArenaObject>(&self, object: NonNull<T>) {
        // SAFETY: the caller's promise; the class is the type's, there as here.
        unsafe { self.free(object.cast(), T::CLASS) };
    }

    fn allocate_from_fresh(&self, class: SizeClass, magazine: &Magazine) -> Result<NonNull<u8>, OutOfMemory> {
        assert!(magazine.class().is_none_or(|used| used == class), "objects of a kind have one size");
        magazine.use_for(class);
        if !magazine.spare.get().is_null() {
            magazine.activate_spare(class);
        } else if magazine.fresh_objects.get() == 0 {
            self.refill(class, magazine)?;
        }
        if let Some(object) = magazine.pop(class) {
            return Ok(object.cast());
        }
        Ok(magazine.take_fresh(class))
    }

    fn push_fresh(&self, class: SizeClass, magazine: &Magazine) {
        magazine.push(magazine.take_fresh(class).cast());
    }

    /// Makes `active` or the fresh part not empty, if memory is left anywhere.
    #[cold]
    fn refill(&self, class: SizeClass, magazine: &Magazine) -> Result<(), OutOfMemory> {
        let others = self.arena.cores().filter(|victim| *victim != self.index());
        let batch = match self.take_depot(class, self.index()) {
            Some(batch) => batch,
            None if self.new_chunk(class, magazine, 0) => return Ok(()),
            None => match others.into_iter().find_map(|victim| self.take_depot(class, victim)) {
                Some(batch) => batch,
                None => return self.refill_from_loose(class, magazine),
            },
        };
        magazine.set_active(batch.as_ptr(), class.batch_objects());
        Ok(())
    }

    /// As `refill`, from what cores have given up; says so if there is nothing.
    fn refill_from_loose(&self, class: SizeClass, magazine: &Magazine) -> Result<(), OutOfMemory> {
        let slabs = &self.record.slabs;
        // Our own first, so that the rest of others' finds it empty.
        for victim in core::iter::once(self.index()).chain(self.arena.cores()) {
            let taken = CoreSlabs::take_all(&self.arena.record(victim).slabs.loose[class.magazine()]);
            let Some(batch) = NonNull::new(taken) else { continue };
            // SAFETY: who takes a stack owns its batches; the first object of each was written when it was pushed.
            let (rest, count) = unsafe { ((*batch.as_ptr()).next_batch, collect::count(taken)) };
            if !rest.is_null() {
                let previous = slabs.loose[class.magazine()].swap(rest, Ordering::Release);
                debug_assert!(previous.is_null());
            }
            magazine.set_active(taken, count);
            return Ok(());
        }
        self.ask_for_memory();
        Err(OutOfMemory)
    }

    /// Takes a chunk, and none of those that are used again if there would be so few of them.
    fn new_chunk(&self, class: SizeClass, magazine: &Magazine, free_pages_left: usize) -> bool {
        let object_bytes = class.object_bytes();
        // Near the end of the arena a smaller chunk may still fit.
        for chunk_bytes in [self.arena.chunk_bytes().max(object_bytes), object_bytes] {
            // Aligned as the map of kinds is.
            let align = chunk_bytes.min(KIND_MAP_BYTES);
            let layout = Layout::from_size_align(chunk_bytes, align).expect("powers of two of at most 64 KiB");
            if let Ok(chunk) = self.arena.allocate_permanent(layout) {
                self.arena.note_kind(chunk, chunk_bytes, class.kind);
                magazine.fresh.set(chunk.as_ptr());
                magazine.fresh_objects.set((chunk_bytes / object_bytes) as u32);
                return true;
            }
        }
        let count = object_bytes.div_ceil(KIND_MAP_BYTES);
        let Some(page) = self.arena.free_pages().take(count, free_pages_left) else { return false };
        let chunk = self.arena.page(page);
        self.arena.note_kind_of(chunk.as_ptr() as usize, count, class.kind);
        magazine.fresh.set(chunk.as_ptr());
        magazine.fresh_objects.set((count * KIND_MAP_BYTES / object_bytes) as u32);
        true
    }

    fn push_depot(&self, class: SizeClass, batch: NonNull<FreeObject>) {
        let slabs = &self.record.slabs;
        // SAFETY: the batch is this core's own, and so is the depot.
        unsafe { slabs.push(&slabs.depots[class.magazine()], batch.as_ptr()) };
    }

    /// Takes all batches of a core's depot: one is the caller's, the others go to this core's depot.
    fn take_depot(&self, class: SizeClass, victim: CoreIndex) -> Option<NonNull<FreeObject>> {
        let taken = CoreSlabs::take_all(&self.arena.record(victim).slabs.depots[class.magazine()]);
        let batch = NonNull::new(taken)?;
        // SAFETY: the one that exchanges the head for null owns all batches of the stack; the first object of each was
        // written by `push_depot`, whose release the exchange acquires.
        let rest = unsafe { (*batch.as_ptr()).next_batch };
        if !rest.is_null() {
            // Our own depot is empty, since we tried it first or emptied it just now, and only we push to it. An
            // exchange, although a store would do: every change of the word is a read-modify-write, so that a take
            // cannot read what another take has read.
            let depot = &self.record.slabs.depots[class.magazine()];
            let previous = depot.swap(rest, Ordering::Release);
            debug_assert!(previous.is_null());
        }
        Some(batch)
    }
}

impl Arena {
    /// Fills the core's magazines for every class that it has used, so that its next calls need not share a line.
    /// Running out of memory is no error here: the next call will tell.
    pub fn maintain(&self, core: &Core<'_>) {
        assert!(ptr::eq(self, core.arena), "the core belongs to another arena");
        core.answer_requests();
        // Of what can be used again there stays enough for calls.
        let kept_pages = MAGAZINE_COUNT * self.core_count();
        for magazine in core.record.slabs.magazines.iter() {
            let Some(class) = magazine.class() else {
                continue;
            };
            let ready = magazine.active_count.get() + magazine.fresh_objects.get();
            let short = ready < class.batch_objects() && magazine.spare.get().is_null();
            if !short {
                continue;
            }
            while magazine.fresh_objects.get() > 0 {
                // Fewer than a batch in all: they join the list, so that the fresh part can be a new chunk.
                core.push_fresh(class, magazine);
            }
            if let Some(batch) = core.take_depot(class, core.index()) {
                magazine.spare.set(batch.as_ptr());
            } else {
                core.new_chunk(class, magazine, kept_pages);
            }
        }
    }

    /// Objects of a class that are allocated and not freed, over all cores; exact when no core is working.
    pub fn live_objects(&self, class: SizeClass) -> i64 {
        let live = |index| self.record(index).slabs.magazines[class.magazine()].live.load(Ordering::Relaxed);
        self.cores().map(live).sum()
    }

    /// Bytes of all objects that are allocated and not freed; exact when no core is working.
    pub fn live_bytes(&self) -> i64 {
        let magazines = self.cores().flat_map(|index| self.record(index).slabs.magazines.iter());
        let used = magazines.filter_map(|magazine| magazine.class().map(|class| (magazine, class)));
        used.map(|(magazine, class)| magazine.live.load(Ordering::Relaxed) * class.object_bytes() as i64).sum()
    }
}
