//! A map by hash that grows without moving an item.
//!
//! **Idea** (Shalev and Shavit's split-ordered lists). All items stand in one list, in the order of their hashes read
//! backwards; of equal hashes, in the order of their keys. A bucket is a pointer into the list: a sentinel, on lines of its
//! own, before its items. To double the buckets, a sentinel is put into the middle of each; items stay where they are. So
//! a map is one list for all operations, with one number.
//!
//! ```text
//! 2 buckets   |0|  0  4  2  6  |1|  1  5  3  7        (hashes; in the order of their bits from the last on)
//! 4 buckets   |0|  0  4  |2|  2  6  |1|  1  5  |3|  3  7
//! ```
//!
//! **Growth** is done by [`Map::maintain`], between operations, by one thread at a time: it makes the sentinels, links them,
//! and says that there are twice as many. A thread that does not know it yet begins a little earlier. If memory runs
//! out, or the thread stops, all stays as it is; after a stop the map grows no more.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ptr::{self, NonNull};

use percpu::{CacheLine, OutOfMemory};
use sync::atomic::{AtomicPtr, AtomicUsize, Ordering as Atomically};

use crate::chain::{Chain, Node, Sentinel};
use crate::domain::{Domain, Here};
use crate::field::Keyed;
use crate::find::{Find, NEVER_STALE, Place};
use crate::hash::{Mixing, item_order, sentinel_order};
use crate::item::Arc;
use crate::link::Link;
use crate::methods::methods;
use crate::operation::{Change, View};
use crate::refusal::TooManyLists;
use crate::snapshot::{Contents, visit_chain};
use crate::word::{ListNumber, Word};

/// Segment 0 holds bucket 0; segment s the buckets from 2^(s-1) up to 2^s.
const SEGMENTS: usize = 40;
/// This many buckets are looked at to learn how full they are.
const SAMPLE: usize = 64;
/// With more items than this in a bucket, on average, a map grows.
const MOST_PER_BUCKET: usize = 1;

/// A map by hash. See the module's head.
///
/// Cost: that of a list in order with the items of one bucket.
pub struct Map<'d, F: Keyed, S = Mixing>
where
    F::Key: Hash,
    S: BuildHasher,
{
    // Immutable.
    domain: &'d Domain,
    chain: Chain<F, true>,
    hasher: S,
    first: Sentinel,
    // Atomic: set once, by the thread that grows the map.
    segments: [AtomicPtr<Sentinel>; SEGMENTS],
    // Atomic: a power of two; all their sentinels are linked.
    buckets: AtomicUsize,
    // Atomic: 1 while a thread grows the map.
    growing: AtomicUsize,
    _items: core::marker::PhantomData<Arc<'d, F::Item>>,
}

impl<'d, F: Keyed> Map<'d, F>
where
    F::Key: Hash,
{
    /// An empty map with one bucket.
    ///
    /// # Errors
    /// [`TooManyLists`].
    pub fn new(domain: &'d Domain) -> Result<Self, TooManyLists> {
        Map::with_hasher(domain, Mixing)
    }
}

impl<'d, F: Keyed, S: BuildHasher> Map<'d, F, S>
where
    F::Key: Hash,
{
    /// An empty map with one bucket, whose keys are hashed like this: with a random seed if strangers choose them.
    ///
    /// # Errors
    /// [`TooManyLists`].
    pub fn with_hasher(domain: &'d Domain, hasher: S) -> Result<Self, TooManyLists> {
        let number = domain.numbers.take(domain.epochs()).ok_or(TooManyLists)?;
        Ok(Map {
            domain,
            chain: Chain::new(number),
            hasher,
            first: Sentinel { link: CacheLine(Link::with(Word::link(number, 0))), order: 0 },
            segments: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            buckets: AtomicUsize::new(1),
            growing: AtomicUsize::new(0),
            _items: core::marker::PhantomData,
        })
    }

    methods!();

    /// Whether the map has no item.
    pub fn is_empty(&self, here: &Here<'d>) -> bool {
        let mut is_empty = true;
        self.for_each_until(here, |_| {
            is_empty = false;
            false
        });
        is_empty
    }

    /// Calls `each` with all items in no order. Each of them was in the map at some moment of the call; items that are
    /// there all the time are not left out.
    ///
    /// # Panics
    /// If `here` is of another domain; if `each`, a hash or a comparison of keys does.
    pub fn for_each(&self, here: &Here<'d>, mut each: impl FnMut(&F::Item)) {
        self.for_each_until(here, |item| {
            each(item);
            true
        });
    }

    fn for_each_until(&self, here: &Here<'d>, mut goes_on: impl FnMut(&F::Item) -> bool) {
        self.expect_of(here);
        let _guard = here.pin();
        let mut word = self.domain.value(&self.first.link.0);
        // SAFETY: guarded, and in the list when the word was read.
        while let Some(node) = unsafe { Node::<F::Item>::after(word) } {
            word = self.domain.value(node.link::<F>());
            let Node::Item(slot) = node else { continue };
            if !goes_on(slot.value()) {
                return;
            }
            if !word.is_in(self.chain.number) {
                // The place is lost, but not the order: on after the key.
                let key = F::key(slot.value());
                let behind = self.walk(self.domain, key, |order| order != Ordering::Greater);
                word = behind.expect(NEVER_STALE).1;
            }
        }
    }

    /// Doubles the buckets if they are full; returns whether it did. To be called between operations, every now and then: a
    /// map does not grow by itself.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the map stays as it is.
    ///
    /// # Panics
    /// If `here` is of another domain.
    pub fn maintain(&self, here: &Here<'d>) -> Result<bool, OutOfMemory> {
        self.expect_of(here);
        if self.is_full(here) { self.grow_alone(here) } else { Ok(false) }
    }

    /// Doubles the buckets, unless another thread is about to; returns whether it did.
    fn grow_alone(&self, here: &Here<'d>) -> Result<bool, OutOfMemory> {
        // Acquire pairs with the release below: who grows after another one sees its sentinels.
        let got = self.growing.compare_exchange(0, 1, Atomically::Acquire, Atomically::Relaxed);
        if got.is_err() {
            return Ok(false);
        }
        let outcome = self.grow(here);
        self.growing.store(0, Atomically::Release);
        outcome
    }

    /// Makes room for this many items, at most 2^39: they then stand in as many buckets.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the map has grown as far as it went.
    ///
    /// # Panics
    /// If `here` is of another domain.
    pub fn reserve(&self, here: &Here<'d>, items: usize) -> Result<(), OutOfMemory> {
        self.expect_of(here);
        while self.buckets.load(Atomically::Relaxed) * MOST_PER_BUCKET < items {
            if !self.grow_alone(here)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether some buckets, the first ones in order, hold more than they should.
    fn is_full(&self, here: &Here<'d>) -> bool {
        let _guard = here.pin();
        let sampled = self.buckets.load(Atomically::Relaxed).min(SAMPLE);
        let (mut buckets, mut items) = (1, 0);
        self.chain.walk(&self.first.link.0, self.domain, |node| {
            match node {
                Node::Item(_) => items += 1,
                Node::Sentinel(_) => buckets += 1,
            }
            buckets <= sampled && items <= sampled * MOST_PER_BUCKET
        });
        items > sampled * MOST_PER_BUCKET
    }

    fn grow(&self, here: &Here<'d>) -> Result<bool, OutOfMemory> {
        let count = self.buckets.load(Atomically::Relaxed);
        let segment = Self::segment(count);
        let Some(place) = self.segments.get(segment) else { return Ok(false) };
        let layout = Layout::array::<Sentinel>(count).map_err(|_| OutOfMemory)?;
        // SAFETY: the layout is not of no bytes.
        let sentinels = NonNull::new(unsafe { alloc(layout) }).ok_or(OutOfMemory)?.cast::<Sentinel>();
        for index in 0..count {
            let sentinel = Sentinel { link: CacheLine(Link::new()), order: sentinel_order(count + index) };
            // SAFETY: in bounds of the fresh array.
            unsafe { sentinels.add(index).write(sentinel) };
        }
        // Release pairs with the acquire in `sentinel`.
        place.store(sentinels.as_ptr(), Atomically::Release);
        if sync::mutant::planted("olf: buckets are there before their sentinels") {
            self.buckets.store(2 * count, Atomically::Release);
        }
        let _guard = here.pin();
        for bucket in count..2 * count {
            let sentinel = self.sentinel(bucket);
            // It stands in the bucket that is halved.
            let from = &self.sentinel(bucket - count).link.0;
            loop {
                let (before, word) = self.walk_orders(from, self.domain, sentinel.order);
                sentinel.link.0.store_own(word);
                let entry = Word::sentinel(self.chain.number, sentinel.address());
                if here.swap(&Change::new(before, word, entry)).is_ok() {
                    break;
                }
            }
        }
        // Release pairs with the acquire in `bucket`: all sentinels are linked.
        self.buckets.store(2 * count, Atomically::Release);
        Ok(true)
    }

    fn segment(bucket: usize) -> usize {
        (usize::BITS - bucket.leading_zeros()) as usize
    }

    /// The sentinel of a bucket that is there.
    #[inline]
    fn sentinel(&self, bucket: usize) -> &Sentinel {
        if bucket == 0 {
            return &self.first;
        }
        let segment = Self::segment(bucket);
        // Acquire pairs with the release in `grow`.
        let sentinels = self.segments[segment].load(Atomically::Acquire);
        debug_assert!(!sentinels.is_null());
        // SAFETY: the segment of a bucket that is there has been made, and is freed with the map.
        unsafe { &*sentinels.add(bucket - (1 << (segment - 1))) }
    }

    /// Where the bucket of a hash begins.
    #[inline]
    fn bucket(&self, hash: u64) -> &Link {
        // Acquire pairs with the release in `grow`.
        let buckets = self.buckets.load(Atomically::Acquire);
        &self.sentinel(hash as usize & (buckets - 1)).link.0
    }

    /// Goes past what stands before a place, and past what stands there as `is_past` says; where it stops, and the word.
    #[inline]
    fn walk(&self, view: &impl View, key: &F::Key, mut is_past: impl FnMut(Ordering) -> bool) -> Option<(&Link, Word)> {
        let hash = self.hasher.hash_one(key);
        let order = item_order(hash);
        self.chain.walk(self.bucket(hash), view, |node| match node {
            Node::Sentinel(sentinel) => is_past(sentinel.order.cmp(&order)),
            Node::Item(slot) => {
                let its_key = F::key(slot.value());
                let its_order = item_order(self.hasher.hash_one(its_key));
                is_past(its_order.cmp(&order).then_with(|| its_key.cmp(key)))
            }
        })
    }

    /// Goes past all that stands before the place of a sentinel.
    fn walk_orders<'g>(&'g self, from: &'g Link, view: &impl View, order: u64) -> (&'g Link, Word) {
        let place = self.chain.walk(from, view, |node| match node {
            Node::Sentinel(sentinel) => sentinel.order < order,
            Node::Item(slot) => item_order(self.hasher.hash_one(F::key(slot.value()))) < order,
        });
        place.expect(NEVER_STALE)
    }
}

impl<'d, F: Keyed, S: BuildHasher> Find<'d> for Map<'d, F, S>
where
    F::Key: Hash,
{
    type Field = F;

    #[inline]
    fn domain(&self) -> &'d Domain {
        self.domain
    }

    #[inline]
    fn number(&self) -> ListNumber {
        self.chain.number
    }

    #[inline]
    fn find_in(&self, view: &impl View, key: &F::Key) -> Option<Place<'_, F::Item>> {
        let mut last = Ordering::Greater;
        let (before, word) = self.walk(view, key, |order| {
            last = order;
            order == Ordering::Less
        })?;
        // SAFETY: guarded, and in the list when the word was read.
        let found = match unsafe { Node::after(word) } {
            Some(Node::Item(slot)) if last == Ordering::Equal => Some(slot),
            _ => None,
        };
        Some(Place { before, word, found })
    }
}

impl<'d, F: Keyed, S: BuildHasher> Contents<'d> for Map<'d, F, S>
where
    F::Key: Hash,
{
    type Item = F::Item;

    fn domain(&self) -> &'d Domain {
        self.domain
    }

    fn number(&self) -> ListNumber {
        self.chain.number
    }

    fn visit(&self, goes_on: impl FnMut(&F::Item) -> bool) -> bool {
        visit_chain(self, &self.first.link.0, goes_on)
    }
}

impl<F: Keyed, S: BuildHasher> Drop for Map<'_, F, S>
where
    F::Key: Hash,
{
    fn drop(&mut self) {
        // No one else has the map. A thread that has ended in the middle of an operation may have left marks.
        self.chain.clear(&self.first.link.0, |link| self.domain.value_at_the_end(link), drop);
        self.domain.numbers.give(self.chain.number, self.domain.epochs());
        for (segment, place) in self.segments.iter().enumerate().skip(1) {
            let sentinels = place.load(Atomically::Relaxed);
            if !sentinels.is_null() {
                let layout = Layout::array::<Sentinel>(1 << (segment - 1)).expect("as it was made");
                // SAFETY: made in `grow` with this layout; no one else has the map, and sentinels own nothing.
                unsafe { dealloc(sentinels.cast(), layout) };
            }
        }
    }
}

impl<F: Keyed, S: BuildHasher> fmt::Debug for Map<'_, F, S>
where
    F::Key: Hash,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Map(list {})", self.chain.number.number())
    }
}
