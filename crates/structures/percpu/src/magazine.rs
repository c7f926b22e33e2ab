//! What a core keeps of each size class and kind: its lists of free objects, and the depot that others may empty.

use core::mem::offset_of;
use core::ptr::{self, NonNull};
// Statistics are no part of the protocol, so that models need not interleave them.
use core::sync::atomic::{AtomicI64, AtomicU16};

use sync::OwnWord;
use sync::atomic::{AtomicPtr, Ordering};

use crate::cache_line::CacheLine;
use crate::class::{CLASS_COUNT, MAX_KIND, SizeClass};
use crate::object::Layout as Fingerprint;
use crate::prefetch::{prefetch_for_writing, prefetch_unshared};

/// So much of the next object is asked for when one is taken (from the list to write it, fresh memory to be near); processors see by themselves how larger ones go on.
const PREFETCHED_BYTES: usize = 512;

pub(crate) const MAGAZINE_COUNT: usize = CLASS_COUNT + MAX_KIND as usize;

/// What a free object holds; `next_batch` counts in the first object of a batch only.
pub(crate) struct FreeObject {
    pub(crate) next: *mut FreeObject,
    pub(crate) next_batch: *mut FreeObject,
}

/// Free objects of one class that only the core itself touches.
pub(crate) struct Magazine {
    active: OwnWord<*mut FreeObject>,
    /// Less than a batch, between calls.
    pub(crate) active_count: OwnWord<u32>,
    /// Empty or a full batch.
    pub(crate) spare: OwnWord<*mut FreeObject>,
    /// The part of the newest chunk that was never handed out.
    pub(crate) fresh: OwnWord<*mut u8>,
    pub(crate) fresh_objects: OwnWord<u32>,
    /// Atomic, written by the core alone: the class once it was used, in `SizeClass::encode`'s form.
    class: AtomicU16,
    /// Objects allocated less objects freed by this core; written by the core alone, read by anybody.
    pub(crate) live: AtomicI64,
}

/// The slabs of one core.
pub(crate) struct CoreSlabs {
    pub(crate) magazines: CacheLine<[Magazine; MAGAZINE_COUNT]>,
    /// Stacks of full batches: the core pushes, anybody takes all.
    pub(crate) depots: CacheLine<[AtomicPtr<FreeObject>; MAGAZINE_COUNT]>,
    /// As the depots, but batches need not be full: what the core has given up where memory was missing.
    pub(crate) loose: CacheLine<[AtomicPtr<FreeObject>; MAGAZINE_COUNT]>,
    /// The core's alone: how often memory had been missing when it last looked.
    pub(crate) answered: OwnWord<u32>,
}

impl CoreSlabs {
    pub(crate) const LAYOUT: Fingerprint = Fingerprint::BUILD
        .and_type::<CoreSlabs>()
        .and(offset_of!(CoreSlabs, depots) as u64)
        .and(offset_of!(CoreSlabs, loose) as u64)
        .and(offset_of!(CoreSlabs, answered) as u64)
        .and_type::<Magazine>()
        .and(offset_of!(Magazine, active) as u64)
        .and(offset_of!(Magazine, active_count) as u64)
        .and(offset_of!(Magazine, spare) as u64)
        .and(offset_of!(Magazine, fresh) as u64)
        .and(offset_of!(Magazine, fresh_objects) as u64)
        .and(offset_of!(Magazine, class) as u64)
        .and(offset_of!(Magazine, live) as u64)
        .and(offset_of!(FreeObject, next) as u64);

    pub(crate) fn new() -> CoreSlabs {
        CoreSlabs {
            magazines: CacheLine(core::array::from_fn(|_| Magazine {
                active: OwnWord::new(ptr::null_mut()),
                active_count: OwnWord::new(0),
                spare: OwnWord::new(ptr::null_mut()),
                fresh: OwnWord::new(ptr::null_mut()),
                fresh_objects: OwnWord::new(0),
                class: AtomicU16::new(0),
                live: AtomicI64::new(0),
            })),
            depots: CacheLine(core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))),
            loose: CacheLine(core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))),
            answered: OwnWord::new(0),
        }
    }

    /// Makes the lists whole of a core whose owner died.
    pub(crate) fn repair_taken_over(&self) {
        for magazine in self.magazines.iter() {
            if let Some(class) = magazine.class() {
                magazine.repair_taken_over(class);
            }
        }
    }
}

impl Magazine {
    #[inline]
    pub(crate) fn pop(&self, class: SizeClass) -> Option<NonNull<FreeObject>> {
        let object = NonNull::new(self.active.get())?;
        // SAFETY: objects in the list are free memory of this core and hold a `FreeObject`.
        let next = unsafe { (*object.as_ptr()).next };
        self.active.set(next);
        self.active_count.set(self.active_count.get() - 1);
        // The next call will write it, and its fence would wait for all of its lines.
        prefetch_for_writing(next.cast(), class.object_bytes().min(PREFETCHED_BYTES));
        Some(object)
    }

    /// Puts a free object of this core on the list; returns how many it has now. Called with what [`Core::free`] was given, and
    /// with parts of a fresh chunk.
    #[inline]
    pub(crate) fn push(&self, object: NonNull<FreeObject>) -> u32 {
        let (next, count) = (self.active.get(), self.active_count.get() + 1);
        if sync::mutant::planted("percpu: the head comes before the link") {
            self.set_active(object.as_ptr(), count);
        }
        // SAFETY: the object is ours by the promise to `free`, or was never handed out; it has 64 bytes at least, to which it is
        // aligned, and a `FreeObject` is smaller.
        unsafe { object.write(FreeObject { next, next_batch: ptr::null_mut() }) };
        self.set_active(object.as_ptr(), count);
        count
    }

    #[inline]
    pub(crate) fn set_active(&self, list: *mut FreeObject, count: u32) {
        self.active.set(list);
        self.active_count.set(count);
    }

    /// Takes the whole list out.
    pub(crate) fn take_active(&self) -> *mut FreeObject {
        let list = self.active.get();
        self.set_active(ptr::null_mut(), 0);
        list
    }

    /// Makes the full `spare` the list, which must be empty.
    pub(crate) fn activate_spare(&self, class: SizeClass) {
        self.set_active(self.spare.get(), class.batch_objects());
        self.spare.set(ptr::null_mut());
    }

    /// Makes the list, a full batch, the `spare`, which must be empty.
    pub(crate) fn spare_active(&self) {
        self.spare.set(self.active.get());
        self.set_active(ptr::null_mut(), 0);
    }

    fn repair_taken_over(&self, class: SizeClass) {
        if sync::mutant::planted("percpu: an heir takes the lists as they are") {
            return;
        }
        if self.active.get() == self.spare.get() {
            self.active.set(ptr::null_mut());
        }
        let mut count = 0;
        let mut list = self.active.get();
        // SAFETY: objects in the list are free memory of this core and hold a `FreeObject`.
        while let Some(object) = unsafe { list.as_ref() } {
            count += 1;
            list = object.next;
        }
        // A batch that was full, and not spared yet.
        if count == class.batch_objects() {
            self.active_count.set(count);
            self.pop(class);
            count -= 1;
        }
        self.active_count.set(count);
    }

    /// Takes the next object of the fresh part, which must not be empty.
    pub(crate) fn take_fresh(&self, class: SizeClass) -> NonNull<u8> {
        let object = self.fresh.get();
        // Before the start: a death in between leaves the part too short.
        self.fresh_objects.set(self.fresh_objects.get() - 1);
        // SAFETY: `fresh_objects` counted this object, so the pointer stays within the chunk or one past its end.
        unsafe {
            let next = object.add(class.object_bytes());
            self.fresh.set(next);
            if self.fresh_objects.get() > 0 {
                prefetch_unshared(next, class.object_bytes().min(PREFETCHED_BYTES));
            }
            NonNull::new_unchecked(object)
        }
    }

    /// Lets maintenance fill the magazine from now on.
    #[inline]
    pub(crate) fn use_for(&self, class: SizeClass) {
        debug_assert!(self.class().is_none_or(|used| used == class), "objects of a kind have one size");
        self.class.store(class.encode(), Ordering::Relaxed);
    }

    pub(crate) fn class(&self) -> Option<SizeClass> {
        SizeClass::decode(self.class.load(Ordering::Relaxed))
    }

    pub(crate) fn count_live(&self, change: i64) {
        // Only this core writes the word: no read-modify-write instruction is needed.
        self.live.store(self.live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }
}
