//! Marks of pages, each on a line of its own, and how several change as one.
//!
//! "Writable" is the lock of "hidden" and "sealed" too: whoever changes one of the three holds it. "Mapped" changes under the
//! lock of the content. In this order they are locked.

use core::ops::Range;

use epoch::Guard;
use percpu::{CacheLine, Core, OutOfMemory};
use radix::{LockedRange, LockedSlot, RadixArray};
use sync::Wait;
use sync::mutant::planted;

/// What may be said of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It may be stored to.
    Writable = 0,
    /// It may not be loaded from (PROT_NONE).
    Hidden = 1,
    /// It cannot be made writable: a shared page of a file that was not open for writing.
    Sealed = 2,
    /// It leads somewhere.
    Mapped = 3,
}

const MARKS: [Mark; 4] = [Mark::Writable, Mark::Hidden, Mark::Sealed, Mark::Mapped];

const RIGHTS: [Mark; 3] = [Mark::Writable, Mark::Hidden, Mark::Sealed];

/// The marks of an address space.
pub(crate) struct Marks([CacheLine<RadixArray>; 4]);

/// What marks are to be: per mark, set or not, or as it is. And whether nobody else may change rights meanwhile even if none change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    marks: [Option<bool>; 4],
    keeps_rights: bool,
}

/// Locks of the marks that change.
pub(crate) enum Locked<'g> {
    Page([Option<LockedSlot<'g>>; 4]),
    Range([Option<LockedRange<'g>>; 4]),
}

impl Wanted {
    pub(crate) const AS_IT_IS: Wanted = Wanted { marks: [None; 4], keeps_rights: false };

    pub(crate) fn with(mut self, mark: Mark, set: bool) -> Wanted {
        self.marks[mark as usize] = Some(set);
        self
    }

    pub(crate) fn without(mut self, mark: Mark) -> Wanted {
        self.marks[mark as usize] = None;
        self
    }

    pub(crate) fn keeping_rights(self) -> Wanted {
        Wanted { keeps_rights: true, ..self }
    }

    fn get(self, mark: Mark) -> Option<bool> {
        self.marks[mark as usize]
    }
}

impl Marks {
    /// # Safety
    /// As for [`RadixArray::new`].
    pub(crate) unsafe fn new() -> Marks {
        // SAFETY: the caller's promise.
        Marks(core::array::from_fn(|_| CacheLine(unsafe { RadixArray::new() })))
    }

    #[inline]
    pub(crate) fn of(&self, mark: Mark) -> &RadixArray {
        &self.0[mark as usize]
    }

    /// Whether a page has the mark. As all that asks here without a lock, at a moment at which nobody changes it: in the middle
    /// of a change of several pages, tables have not been told yet of what the marks say already.
    #[inline]
    pub(crate) fn has(&self, guard: &Guard<'_>, page: u64, mark: Mark, wait: &impl Wait) -> bool {
        match asks_in_the_middle() {
            true => self.of(mark).get(guard, page).is_some(),
            false => self.of(mark).settled(guard, page, wait).is_some(),
        }
    }

    /// The end of the pages from the start of a range on that all have the mark.
    pub(crate) fn prefix(&self, guard: &Guard<'_>, range: &Range<u64>, mark: Mark, wait: &impl Wait) -> u64 {
        prefix_of(range, |each| self.for_each_settled(guard, range, mark, wait, each))
    }

    /// The first page of a range that has the mark, or the end.
    pub(crate) fn first(&self, guard: &Guard<'_>, range: &Range<u64>, mark: Mark, wait: &impl Wait) -> u64 {
        first_of(range, |each| self.for_each_settled(guard, range, mark, wait, each))
    }

    fn for_each_settled(
        &self,
        guard: &Guard<'_>,
        range: &Range<u64>,
        mark: Mark,
        wait: &impl Wait,
        each: &mut dyn FnMut(Range<u64>),
    ) {
        match asks_in_the_middle() {
            true => self.of(mark).for_each_in(guard, range.clone(), |part, _| each(part)),
            false => self.of(mark).for_each_settled_in(guard, range.clone(), wait, |part, _| each(part)),
        }
    }

    fn is_so(&self, guard: &Guard<'_>, range: &Range<u64>, mark: Mark, set: bool, wait: &impl Wait) -> bool {
        if range.end - range.start == 1 {
            return self.has(guard, range.start, mark, wait) == set;
        }
        match set {
            true => self.prefix(guard, range, mark, wait) == range.end,
            false => self.first(guard, range, mark, wait) == range.end,
        }
    }

    /// What is said of all pages of a range, if it is the same: but for "mapped". The caller keeps that from changing.
    pub(crate) fn common_rights(&self, guard: &Guard<'_>, range: &Range<u64>) -> Option<Wanted> {
        RIGHTS.into_iter().try_fold(Wanted::AS_IT_IS, |wanted, mark| {
            let array = self.of(mark);
            let set = array.get(guard, range.start).is_some();
            let end = if set { prefix_with(array, guard, range) } else { first_with(array, guard, range) };
            (end == range.end).then(|| wanted.with(mark, set))
        })
    }

    /// What is said of the first page of a range, but for "mapped", at some moment.
    pub(crate) fn rights_of_first(&self, guard: &Guard<'_>, range: &Range<u64>) -> Wanted {
        let said = |wanted: Wanted, mark| wanted.with(mark, self.of(mark).get(guard, range.start).is_some());
        RIGHTS.into_iter().fold(Wanted::AS_IT_IS, said)
    }

    /// Whether nothing would change.
    pub(crate) fn are(&self, guard: &Guard<'_>, range: &Range<u64>, wanted: Wanted, wait: &impl Wait) -> bool {
        MARKS.into_iter().all(|mark| wanted.get(mark).is_none_or(|set| self.is_so(guard, range, mark, set, wait)))
    }

    /// Locks the marks that are to change; fails without memory, and then holds nothing.
    pub(crate) fn lock<'g>(
        &'g self,
        guard: &'g Guard<'g>,
        range: &Range<u64>,
        wanted: Wanted,
        wait: &impl Wait,
    ) -> Result<Locked<'g>, OutOfMemory> {
        let changes = |mark: Mark| wanted.get(mark).is_some_and(|set| !self.is_so(guard, range, mark, set, wait));
        // Looked at once for all three: who found "writable" as it is to be, and then that "hidden" is not, would change one without
        // the other. What is looked at below is looked at under the lock.
        let guarded = wanted.keeps_rights || RIGHTS.into_iter().any(changes);
        let looks_again = planted("address-space: each right is looked at by itself");
        let is_locked = |mark: &Mark| match mark {
            Mark::Writable => guarded && (!looks_again || changes(*mark)),
            Mark::Hidden | Mark::Sealed => (guarded || looks_again) && changes(*mark),
            Mark::Mapped => changes(*mark),
        };
        if range.end - range.start == 1 {
            let mut locked = [const { None }; 4];
            for mark in MARKS.into_iter().filter(is_locked) {
                locked[mark as usize] = Some(self.of(mark).lock_slot(guard, range.start, wait)?);
            }
            return Ok(Locked::Page(locked));
        }
        let mut locked = [const { None }; 4];
        for mark in MARKS.into_iter().filter(is_locked) {
            locked[mark as usize] = Some(self.of(mark).lock(guard, range.clone(), wait)?);
        }
        Ok(Locked::Range(locked))
    }

    /// Gives the same pages of marks that nobody else knows yet what is said of them here. The caller keeps that from changing.
    pub(crate) fn copy_to(
        &self,
        copy: &Marks,
        guard: &Guard<'_>,
        range: Range<u64>,
        wait: &impl Wait,
    ) -> Result<(), OutOfMemory> {
        let mut outcome = Ok(());
        for mark in MARKS {
            self.of(mark).for_each_in(guard, range.clone(), |piece, value| {
                if outcome.is_ok() {
                    let locked = copy.of(mark).lock(guard, piece, wait);
                    outcome = locked.map(|locked| locked.fill(Some(value), |_, _| ()));
                }
            });
        }
        outcome
    }

    /// # Safety
    /// `guard` pins a core that was taken over from a dead owner.
    pub(crate) unsafe fn unlock_taken_over(&self, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        self.0.iter().for_each(|array| unsafe { array.unlock_taken_over(guard) });
    }

    /// # Safety
    /// Nobody uses them any more.
    pub(crate) unsafe fn destroy(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        self.0.iter().for_each(|array| unsafe { array.destroy(core) });
    }
}

impl Locked<'_> {
    /// Whether it was seen that a mark changes, and so nobody else changes it.
    pub(crate) fn has(&self, mark: Mark) -> bool {
        match self {
            Locked::Page(slots) => slots[mark as usize].is_some(),
            Locked::Range(ranges) => ranges[mark as usize].is_some(),
        }
    }

    /// Makes the marks what is wanted, and `change` in their middle: of one page all as one; of several pages rights that go,
    /// go before, rights that come, come after, and "mapped" follows the content.
    pub(crate) fn change(&self, wanted: Wanted, change: impl FnOnce()) {
        match self {
            Locked::Page(slots) => nested(slots, wanted, change),
            Locked::Range(ranges) => {
                let fill = |mark: Mark, set: bool| {
                    if let (Some(range), true) = (&ranges[mark as usize], wanted.get(mark) == Some(set)) {
                        range.fill(set.then_some(0), |_, _| ());
                    }
                };
                fill(Mark::Writable, false);
                fill(Mark::Hidden, true);
                fill(Mark::Sealed, true);
                change();
                fill(Mark::Mapped, true);
                fill(Mark::Mapped, false);
                fill(Mark::Sealed, false);
                fill(Mark::Hidden, false);
                fill(Mark::Writable, true);
            }
        }
    }
}

/// A fault for tests, wherever marks are asked.
#[inline]
fn asks_in_the_middle() -> bool {
    planted("address-space: marks are asked in the middle of a change")
}

/// The end of the pages from the start of a range on at which an array has a value.
pub(crate) fn prefix_with(array: &RadixArray, guard: &Guard<'_>, range: &Range<u64>) -> u64 {
    prefix_of(range, |each| array.for_each_in(guard, range.clone(), |part, _| each(part)))
}

/// The first page of a range at which an array has a value, or the end.
pub(crate) fn first_with(array: &RadixArray, guard: &Guard<'_>, range: &Range<u64>) -> u64 {
    first_of(range, |each| array.for_each_in(guard, range.clone(), |part, _| each(part)))
}

fn prefix_of(range: &Range<u64>, parts: impl FnOnce(&mut dyn FnMut(Range<u64>))) -> u64 {
    let mut end = range.start;
    parts(&mut |part| {
        if part.start == end {
            end = part.end;
        }
    });
    end
}

fn first_of(range: &Range<u64>, parts: impl FnOnce(&mut dyn FnMut(Range<u64>))) -> u64 {
    let mut first = range.end;
    parts(&mut |part| first = first.min(part.start));
    first
}

/// Readers of any of the slots wait until all are changed.
fn nested(slots: &[Option<LockedSlot<'_>>], wanted: Wanted, change: impl FnOnce()) {
    let [writable, hidden, sealed, mapped] = slots else { unreachable!("a slot for each mark") };
    within(writable, wanted.get(Mark::Writable), || {
        within(hidden, wanted.get(Mark::Hidden), || {
            within(sealed, wanted.get(Mark::Sealed), || within(mapped, wanted.get(Mark::Mapped), change));
        });
    });
}

fn within(slot: &Option<LockedSlot<'_>>, set: Option<bool>, change: impl FnOnce()) {
    match slot {
        None => change(),
        Some(slot) => slot.change(|| {
            change();
            set.map_or(slot.value(), |set| set.then_some(0))
        }),
    }
}
