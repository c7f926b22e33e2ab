//! Memory of one class that comes to serve another: pages all whose objects are free go back to the arena.
//!
//! **Idea.** One that finds no memory says so, and does no more: the rest is done between calls. In its next
//! maintenance each core lets others have what its magazines hold; and the first of them *collects*: of one class after
//! the other it takes all free objects that it can reach, in the order of their addresses, and counts those of each
//! page. A page whose objects are all there is free, for any class; the others go back as full batches.
//!
//! ```text
//! allocate: ... OutOfMemory: asked += 1
//! maintain: asked ≠ answered?  answered := asked;  the first for whom collected ≠ asked sets collected and collects,
//!                              the others: active, spare, fresh part ─► loose
//! collect:  own active, spare, fresh part, all depots, all loose ─► sort ─► whole pages ─► map of free pages
//!                                                                        └► batches ─► own depot, the rest ─► own active
//! ```
//!
//! Free pages stand in a map (`free_pages`). Who dies while it collects loses what it had in its hand, the free objects of one class at most.
//!
//! **No one relies on what lies where.** An object is given back when no one can reach it any more: after a grace
//! period (`epoch`), after two of its count (`refcache`), or under the lock of the place that led to it.
//!
//! Cost: of a maintenance, one load that finds nothing; of a request, n log n for n free objects, once. After a collection in vain
//! the next 1, 3, 7, 15 requests are left alone, unless a page's worth of memory was given back.

use core::ptr;

use sync::atomic::{AtomicPtr, Ordering};
use sync::mutant::planted;

use crate::arena::Arena;
use crate::class::{KIND_MAP_BYTES, SizeClass};
use crate::core_handle::Core;
use crate::magazine::{CoreSlabs, FreeObject, MAGAZINE_COUNT};

/// Runs of up to 2^n objects are merged in place n.
const RUNS: usize = usize::BITS as usize;

/// Free objects in a row.
struct List {
    first: *mut FreeObject,
    count: usize,
}

impl List {
    const EMPTY: List = List { first: ptr::null_mut(), count: 0 };

    /// Puts a list before this one.
    ///
    /// # Safety
    /// Its objects are the caller's, and end with null.
    unsafe fn join(&mut self, list: *mut FreeObject) {
        let mut object = list;
        while !object.is_null() {
            // SAFETY: the caller's promise.
            let next = unsafe { (*object).next };
            // SAFETY: as above.
            unsafe { (*object).next = self.first };
            (self.first, self.count) = (object, self.count + 1);
            object = next;
        }
    }

    /// Puts the objects into the order of their addresses.
    fn sort(&mut self) {
        let mut runs: [*mut FreeObject; RUNS] = [ptr::null_mut(); RUNS];
        let mut object = self.first;
        while !object.is_null() {
            // SAFETY: objects of the list are the caller's.
            let next = unsafe { ptr::replace(&raw mut (*object).next, ptr::null_mut()) };
            let (mut run, mut place) = (object, 0);
            while !runs[place].is_null() {
                // SAFETY: runs are parts of the list.
                run = unsafe { merged(ptr::replace(&raw mut runs[place], ptr::null_mut()), run) };
                place += 1;
            }
            runs[place] = run;
            object = next;
        }
        // SAFETY: as above.
        self.first = runs.into_iter().fold(ptr::null_mut(), |all, run| unsafe { merged(all, run) });
    }

    /// Takes this many objects off the start, or all; they end with null.
    fn cut(&mut self, count: usize) -> List {
        let count = count.min(self.count);
        let first = self.first;
        let mut end = &raw mut self.first;
        for _ in 0..count {
            // SAFETY: this many are in the list, whose objects are the caller's.
            end = unsafe { &raw mut (**end).next };
        }
        // SAFETY: the place of a link in the list, or its start.
        let rest = unsafe { ptr::replace(end, ptr::null_mut()) };
        (self.first, self.count) = (rest, self.count - count);
        List { first, count }
    }
}

/// Two rows in the order of addresses as one.
///
/// # Safety
/// The objects are the caller's, and both rows end with null.
unsafe fn merged(mut one: *mut FreeObject, mut other: *mut FreeObject) -> *mut FreeObject {
    let mut first = ptr::null_mut();
    let mut end = &raw mut first;
    while !one.is_null() && !other.is_null() {
        let least = if one < other { &mut one } else { &mut other };
        // SAFETY: the caller's promise; the end is the link of an object of theirs, or the start.
        unsafe {
            *end = *least;
            end = &raw mut (**least).next;
            *least = *end;
        }
    }
    // SAFETY: as above.
    unsafe { *end = if one.is_null() { other } else { one } };
    first
}

/// How many objects are in a row.
///
/// # Safety
/// They are the caller's, and end with null.
pub(crate) unsafe fn count(list: *mut FreeObject) -> u32 {
    let (mut count, mut object) = (0, list);
    while !object.is_null() {
        count += 1;
        // SAFETY: the caller's promise.
        object = unsafe { (*object).next };
    }
    count
}

fn page_of(object: *mut FreeObject) -> usize {
    object as usize & !(KIND_MAP_BYTES - 1)
}

impl Core<'_> {
    /// Says that there is no memory.
    pub(crate) fn ask_for_memory(&self) {
        self.arena.shortage().ask();
    }

    /// Does its part for those who have found no memory, once for what was asked for up to now.
    pub(crate) fn answer_requests(&self) {
        let (shortage, answered) = (self.arena.shortage(), &self.record.slabs.answered);
        let asked = shortage.asked();
        if answered.get() == asked || planted("percpu: memory of one class never serves another") {
            return;
        }
        if shortage.rests(asked, || self.arena.live_bytes()) {
            return;
        }
        answered.set(asked);
        let collects = shortage.is_first_to_collect(asked);
        let mut page_count = 0;
        for class in (0..MAGAZINE_COUNT).filter_map(|magazine| self.arena.class_of(magazine)) {
            if collects {
                page_count += self.collect(class);
            } else {
                self.give_up(class);
            }
        }
        if collects {
            shortage.note_collection(page_count, self.arena.live_bytes());
        }
    }

    /// Lets others have what the core has of a class.
    fn give_up(&self, class: SizeClass) {
        let slabs = &self.record.slabs;
        let mut own = self.take_own(class);
        if own.count > 0 {
            self.arena.shortage().note_given_up();
        }
        while own.count > 0 {
            // SAFETY: the batch is this core's own.
            unsafe { slabs.push(&slabs.loose[class.magazine()], own.cut(class.batch_objects() as usize).first) };
        }
    }

    /// All that the core's magazine of a class holds. What is taken out of it is nowhere if the process dies now.
    fn take_own(&self, class: SizeClass) -> List {
        let magazine = &self.record.slabs.magazines[class.magazine()];
        let mut own = List::EMPTY;
        let active = magazine.take_active();
        // SAFETY: the magazine's objects are this core's, and lists end with null.
        unsafe { own.join(active) };
        let spare = magazine.spare.get();
        magazine.spare.set(ptr::null_mut());
        // SAFETY: as above.
        unsafe { own.join(spare) };
        while magazine.fresh_objects.get() > 0 {
            let object = magazine.take_fresh(class).cast::<FreeObject>();
            // SAFETY: never handed out; 64 bytes at least, and aligned to that.
            unsafe { object.write(FreeObject { next: ptr::null_mut(), next_batch: ptr::null_mut() }) };
            // SAFETY: a list of one.
            unsafe { own.join(object.as_ptr()) };
        }
        own
    }

    /// Gives back the pages of a class all whose objects are free and can be reached.
    fn collect(&self, class: SizeClass) -> usize {
        let (slabs, magazine) = (&self.record.slabs, class.magazine());
        let mut all = self.take_own(class);
        for index in self.arena.cores() {
            let others = &self.arena.record(index).slabs;
            for stack in [&others.depots[magazine], &others.loose[magazine]] {
                let mut batch = CoreSlabs::take_all(stack);
                while !batch.is_null() {
                    // SAFETY: who takes a stack owns its batches, whose first objects were written when they were pushed.
                    unsafe {
                        let next = (*batch).next_batch;
                        all.join(batch);
                        batch = next;
                    }
                }
            }
        }
        if all.count == 0 {
            return 0;
        }
        all.sort();
        let count = all.count;
        let mut rest = self.give_back_whole_pages(class, all);
        let page_count = (count - rest.count) * class.object_bytes() / KIND_MAP_BYTES;
        let batch_objects = class.batch_objects() as usize;
        while rest.count >= batch_objects {
            // SAFETY: the batch is this core's own.
            unsafe { slabs.push(&slabs.depots[magazine], rest.cut(batch_objects).first) };
        }
        if slabs.magazines[magazine].class().is_some() {
            slabs.magazines[magazine].set_active(rest.first, rest.count as u32);
        } else if rest.count > 0 {
            // A magazine with objects has their class, for heirs and counts; this core may never want any.
            // SAFETY: the batch is this core's own.
            unsafe { slabs.push(&slabs.loose[magazine], rest.first) };
        }
        page_count
    }

    /// Takes whole pages out of what is in order, and returns the rest.
    fn give_back_whole_pages(&self, class: SizeClass, mut all: List) -> List {
        let object_bytes = class.object_bytes();
        let (page_objects, pages) = ((KIND_MAP_BYTES / object_bytes).max(1), object_bytes.div_ceil(KIND_MAP_BYTES));
        let mut rest = List::EMPTY;
        let mut end = &raw mut rest.first;
        while all.count > 0 {
            let page = page_of(all.first);
            let mut count = 0;
            let mut object = all.first;
            while !object.is_null() && page_of(object) == page {
                count += 1;
                // SAFETY: objects in the list are this core's.
                object = unsafe { (*object).next };
            }
            let of_page = all.cut(count);
            let is_whole = count == page_objects || planted("percpu: a page is free with most of its objects");
            if is_whole {
                self.arena.give_pages_back(page, pages);
                continue;
            }
            rest.count += count;
            // SAFETY: the end is the link of an object of this core's, or the start of the rest.
            unsafe { *end = of_page.first };
            let mut last = of_page.first;
            for _ in 1..count {
                // SAFETY: this many are in the row.
                last = unsafe { (*last).next };
            }
            // SAFETY: as above.
            end = unsafe { &raw mut (*last).next };
        }
        if rest.count == 0 { List::EMPTY } else { rest }
    }
}

impl CoreSlabs {
    /// Puts a batch on a stack of this core's own.
    ///
    /// # Safety
    /// The batch is the caller's, ends with null, and is not empty. Only this core pushes to the stack.
    pub(crate) unsafe fn push(&self, stack: &AtomicPtr<FreeObject>, batch: *mut FreeObject) {
        let mut head = stack.load(Ordering::Relaxed);
        loop {
            // SAFETY: the batch is this core's own until the exchange succeeds.
            unsafe { (*batch).next_batch = head };
            // Release pairs with the acquiring exchange in `take_all`: takers see the links of the batches.
            match stack.compare_exchange_weak(head, batch, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => head = seen,
            }
        }
    }

    /// Takes all batches of a stack; null if there is none.
    pub(crate) fn take_all(stack: &AtomicPtr<FreeObject>) -> *mut FreeObject {
        if stack.load(Ordering::Relaxed).is_null() {
            return ptr::null_mut();
        }
        // Acquire pairs with the release in `push`.
        if planted("percpu: take-all in two steps") {
            let taken = stack.load(Ordering::Acquire);
            stack.store(ptr::null_mut(), Ordering::Release);
            taken
        } else {
            stack.swap(ptr::null_mut(), Ordering::Acquire)
        }
    }
}

impl Arena {
    /// The class whose objects a magazine holds, if any core has used it.
    fn class_of(&self, magazine: usize) -> Option<SizeClass> {
        self.cores().find_map(|index| self.record(index).slabs.magazines[magazine].class())
    }

    /// Lets any class have pages that are the caller's.
    fn give_pages_back(&self, address: usize, count: usize) {
        self.note_kind_of(address, count, 0);
        self.free_pages().give_back(self.page_at(address), count);
    }
}
