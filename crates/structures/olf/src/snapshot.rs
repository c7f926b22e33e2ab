//! What several lists hold at one moment.
//!
//! **Idea.** To read twice and compare is wrong here: items go and come back, and two readings may be equal though neither was
//! ever true. But each operation moves the word of its core on. So a snapshot looks at the words of all cores, reads the
//! lists, and looks again: if no word has moved, nothing was decided in between. Else it reads again.
//!
//! **Single changes** (the first insertion of an item into a list in order, or a map) have no decision. If one is under way at
//! both looks it may have happened in between; then the lists are read once more. Such a change only adds an item, and each
//! core has at most one: equal numbers of items in both readings say that none happened from the one to the other.
//!
//! **Under load** any change in the domain makes a snapshot repeat. After 8 readings in vain it [claims](crate::claims) the
//! domain, so that others wait, at most for 100 ms each.

use commit::Moment;
use percpu::MAX_CORES;

use crate::chain::Node;
use crate::domain::{Domain, Here};
use crate::field::{Keyed, LinkField, ListField};
use crate::find::Find;
use crate::link::Link;
use crate::list::List;
use crate::places::{End, Stop};
use crate::word::ListNumber;

/// A snapshot makes this many readings in vain before it claims.
const READINGS_BEFORE_CLAIM: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
/// After this many items a reading looks whether it is in vain.
const ITEMS_BETWEEN_LOOKS: usize = if cfg!(any(loom, shuttle)) { 8 } else { 256 };
/// A snapshot reads this many lists for which it can tell that single changes have not happened; else it waits for
/// these.
const MOST_TOTALS: usize = 64;

/// Lists and maps of a domain that a [`Snapshot`] reads.
pub trait Contents<'d> {
    /// What stands in it.
    type Item;

    #[doc(hidden)]
    fn domain(&self) -> &'d Domain;

    #[doc(hidden)]
    fn number(&self) -> ListNumber;

    /// Calls `goes_on` with all items in their order, until it says no; false if so, or if items move in the meantime.
    /// The caller holds a guard.
    #[doc(hidden)]
    fn visit(&self, goes_on: impl FnMut(&Self::Item) -> bool) -> bool;
}

/// Along a chain of items and sentinels.
pub(crate) fn visit_chain<'d, C: Find<'d>>(
    list: &C,
    first: &Link,
    mut goes_on: impl FnMut(&<C::Field as LinkField>::Item) -> bool,
) -> bool
where
    C::Field: Keyed,
{
    let mut word = list.domain().value(first);
    // SAFETY: guarded, and in the list when the word was read.
    while let Some(node) = unsafe { Node::after(word) } {
        word = list.domain().value(node.link::<C::Field>());
        if let Node::Item(slot) = node
            && !goes_on(slot.value())
        {
            return false;
        }
        if !word.is_in(list.number()) {
            return false;
        }
    }
    true
}

impl<'d, F: ListField> Contents<'d> for List<'d, F> {
    type Item = F::Item;

    fn domain(&self) -> &'d Domain {
        self.domain
    }

    fn number(&self) -> ListNumber {
        self.places.number
    }

    fn visit(&self, mut goes_on: impl FnMut(&F::Item) -> bool) -> bool {
        let mut word = self.domain.value(self.places.end(End::Front));
        // SAFETY: guarded, and in the list when the word was read.
        while let Some(stop) = unsafe { self.places.stop(word) } {
            let link = match &stop {
                Stop::Item(slot) => F::link(slot.value()),
                Stop::Cursor(cursor) => &cursor.link,
            };
            word = self.domain.value(&link.next);
            if let Stop::Item(slot) = stop
                && !goes_on(slot.value())
            {
                return false;
            }
            if !word.is_in(self.places.number) {
                return false;
            }
        }
        true
    }
}

/// The words of all cores at a look.
struct Moments<'d> {
    domain: &'d Domain,
    seen: [Moment; MAX_CORES],
    /// Of another store's operations, if the domain has one.
    of_another: [u64; MAX_CORES],
}

impl<'d> Moments<'d> {
    fn now(domain: &'d Domain) -> Moments<'d> {
        let mut moments = Moments { domain, seen: [Moment::NONE; MAX_CORES], of_another: [0; MAX_CORES] };
        for core in domain.cores() {
            moments.seen[core.get()] = domain.decisions().moment(core);
        }
        for (seen, moment) in moments.of_another.iter_mut().zip(domain.moments_of_another()) {
            *seen = moment;
        }
        moments
    }

    /// Whether nothing has been decided since.
    fn last(&self) -> bool {
        self.domain.cores().all(|core| self.domain.decisions().moment(core) == self.seen[core.get()])
            && self.domain.moments_of_another().zip(&self.of_another).all(|(moment, seen)| moment == *seen)
    }

    fn has_single(&self) -> bool {
        self.seen.iter().any(|moment| moment.is_single())
    }
}

/// What a reading has found in a list.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Total {
    list: usize,
    items: usize,
    /// The sum of their addresses.
    addresses: usize,
}

/// What was found in all lists that were read, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Totals {
    of: [Total; MOST_TOTALS],
    count: usize,
}

/// One reading of lists: see [`Here::snapshot`].
pub struct Snapshot<'s, 'd> {
    here: &'s Here<'d>,
    moments: &'s Moments<'d>,
    totals: Totals,
    is_in_vain: bool,
}

impl<'d> Here<'d> {
    /// What lists hold at one moment: calls `read` until nothing has changed in the domain while it read. What it has returned
    /// before is dropped.
    ///
    /// ```
    /// # struct Job { id: u64, link: olf::Link }
    /// # olf::links! { ById: Job { link: link, key: id as u64 } }
    /// # let domain = olf::Domain::with(olf::Limits { threads: 1, lists: 2 })?;
    /// # let here = domain.enter()?;
    /// # let (waiting, running) = (olf::Sorted::<ById>::new(&domain)?, olf::Sorted::<ById>::new(&domain)?);
    /// let (waits, runs) = here.snapshot(|s| (s.count(&waiting), s.count(&running)));
    /// # assert_eq!((waits, runs), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Cost: the reading, and two looks at the word of each thread that the domain has room for. Each change in the domain
    /// makes it read again; after 8 readings others wait, for at most 100 ms each.
    ///
    /// # Panics
    /// If `read` does, or changes a list of the domain by this thread.
    pub fn snapshot<R>(&self, mut read: impl FnMut(&mut Snapshot<'_, 'd>) -> R) -> R {
        let mut claim = None;
        for readings in 1_u32.. {
            let moments = {
                let _guard = self.pin();
                let moments = Moments::now(self.domain);
                let own = moments.seen[self.core.index().get()];
                let mut reading = Snapshot::new(self, &moments);
                let mut result = read(&mut reading);
                let mut is_clear = !reading.is_in_vain;
                let planted = sync::mutant::planted("olf: a snapshot is two equal readings");
                if is_clear && (moments.has_single() || planted) {
                    let before = reading.totals;
                    reading = Snapshot::new(self, &moments);
                    result = read(&mut reading);
                    is_clear = !reading.is_in_vain && reading.totals == before && before.count <= MOST_TOTALS;
                }
                if is_clear && (planted || moments.last()) {
                    return result;
                }
                own
            };
            let own = self.domain.decisions().moment(self.core.index());
            assert!(own == moments, "the closure of a snapshot changes a list");
            if readings == READINGS_BEFORE_CLAIM {
                claim = Some(self.domain.claims.claim(self.claimant()));
            }
        }
        drop(claim);
        unreachable!("a range without an end")
    }
}

impl<'s, 'd> Snapshot<'s, 'd> {
    fn new(here: &'s Here<'d>, moments: &'s Moments<'d>) -> Snapshot<'s, 'd> {
        let totals = Totals { of: [Total::default(); MOST_TOTALS], count: 0 };
        Snapshot { here, moments, totals, is_in_vain: false }
    }

    /// Calls `each` with all items of a list or map, in its order. If the reading turns out to be in vain it ends early.
    ///
    /// # Panics
    /// If the list is of another domain; if `each` does.
    pub fn for_each<C: Contents<'d>>(&mut self, list: &C, mut each: impl FnMut(&C::Item)) {
        assert!(core::ptr::eq(list.domain(), self.here.domain), "the list belongs to another domain");
        if self.is_in_vain {
            return;
        }
        let mut total = Total { list: list.number().number(), items: 0, addresses: 0 };
        let moments = self.moments;
        let is_whole = list.visit(|item| {
            total.items += 1;
            total.addresses = total.addresses.wrapping_add(core::ptr::from_ref(item).addr());
            if total.items.is_multiple_of(ITEMS_BETWEEN_LOOKS) && !moments.last() {
                return false;
            }
            each(item);
            true
        });
        self.is_in_vain = !is_whole;
        if let Some(place) = self.totals.of.get_mut(self.totals.count) {
            *place = total;
        }
        self.totals.count += 1;
    }

    /// How many items a list or map has.
    ///
    /// # Panics
    /// If the list is of another domain.
    pub fn count(&mut self, list: &impl Contents<'d>) -> usize {
        let mut count = 0;
        self.for_each(list, |_| count += 1);
        count
    }
}
