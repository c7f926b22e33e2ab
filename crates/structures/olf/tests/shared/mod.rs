//! What histories share: items in memory of the test's own, at the same place in each execution, and counts of what was
//! dropped.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use olf::{Arc, Collection, Contents, Domain, Here, Link, ListLink, Map, NotMoved, Refused, Slot, Sorted, links};

/// An item that stands in at most one list at a time by each of its links.
pub struct Thing {
    pub key: u32,
    /// Tells items of one key apart.
    pub number: usize,
    pub link: Link,
    pub other: Link,
    pub place: ListLink,
    ended: Plain<AtomicUsize>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

links! {
    /// Things by key.
    pub ByKey: Thing { link: link, key: key as u32 }
    /// The same by another link.
    pub ByOther: Thing { link: other, key: key as u32 }
    /// Things in the order in which they came.
    pub InOrder: Thing { list: place }
}

/// Room for this many things.
pub struct Room<const N: usize>([MaybeUninit<Slot<Thing>>; N]);

impl<const N: usize> Room<N> {
    pub fn new() -> Room<N> {
        Room([const { MaybeUninit::uninit() }; N])
    }

    /// A thing of this number, of which there is no other.
    pub fn thing<'d>(
        &mut self,
        domain: &'d Domain,
        number: usize,
        key: u32,
        ended: &Plain<AtomicUsize>,
    ) -> Arc<'d, Thing> {
        let (link, other) = (Link::new(), Link::new());
        let thing = Thing { key, number, link, other, place: ListLink::new(), ended: Plain::clone(ended) };
        let place = NonNull::from(&mut self.0[number]).cast::<Slot<Thing>>();
        /// # Safety
        /// `item` was made below.
        unsafe fn free(item: NonNull<olf::Item>) {
            // SAFETY: the caller's promise: a slot with a thing, which no one can reach.
            unsafe { item.cast::<Slot<Thing>>().drop_in_place() };
        }
        // SAFETY: the test declares the room before the domain, and uses each place once.
        unsafe { Arc::in_place(domain, place, thing, free) }.unwrap()
    }
}

/// What is tested of lists in order and of maps.
pub trait Tested<'d>: Collection<'d, Field = ByKey> + Contents<'d, Item = Thing> + Sized + Sync {
    fn make(domain: &'d Domain) -> Self;
    fn put(&self, here: &Here<'d>, item: Arc<'d, Thing>) -> Result<(), Refused<'d, Thing>>;
    fn take(&self, here: &Here<'d>, key: u32) -> Option<Arc<'d, Thing>>;
    fn has(&self, here: &Here<'d>, key: u32) -> bool;
    fn hand(&self, to: &impl Tested<'d>, here: &Here<'d>, key: u32) -> Result<(), NotMoved>;
    fn exchange(&self, key: u32, other: &impl Tested<'d>, its: u32, here: &Here<'d>) -> Result<(), NotMoved>;
    fn numbers(&self, here: &Here<'d>) -> Vec<usize>;
    fn grow(&self, here: &Here<'d>);
}

macro_rules! tested {
    ($list:ident, $grow:expr) => {
        impl<'d> Tested<'d> for $list<'d, ByKey> {
            fn make(domain: &'d Domain) -> Self {
                $list::new(domain).unwrap()
            }

            fn put(&self, here: &Here<'d>, item: Arc<'d, Thing>) -> Result<(), Refused<'d, Thing>> {
                self.insert(here, item)
            }

            fn take(&self, here: &Here<'d>, key: u32) -> Option<Arc<'d, Thing>> {
                self.remove(here, &key)
            }

            fn has(&self, here: &Here<'d>, key: u32) -> bool {
                self.contains(here, &key)
            }

            fn hand(&self, to: &impl Tested<'d>, here: &Here<'d>, key: u32) -> Result<(), NotMoved> {
                self.move_to(to, here, &key)
            }

            fn exchange(&self, key: u32, other: &impl Tested<'d>, its: u32, here: &Here<'d>) -> Result<(), NotMoved> {
                self.swap(&key, other, &its, here)
            }

            fn numbers(&self, here: &Here<'d>) -> Vec<usize> {
                let mut numbers = Vec::new();
                self.for_each(here, |thing| numbers.push(thing.number));
                numbers
            }

            fn grow(&self, here: &Here<'d>) {
                let grow: fn(&Self, &Here<'d>) = $grow;
                grow(self, here);
            }
        }
    };
}

tested!(Sorted, |_, _| ());
tested!(Map, |map, here| _ = map.maintain(here).unwrap());
