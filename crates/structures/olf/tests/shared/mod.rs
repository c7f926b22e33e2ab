//! What histories share: items in memory of the test's own, at the same place in each execution, and counts of what was
//! dropped.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use olf::{Arc, Domain, Link, Slot, links};

/// An item that stands in at most one list at a time by each of its links.
pub struct Thing {
    pub key: u32,
    /// Tells items of one key apart.
    pub number: usize,
    pub link: Link,
    pub other: Link,
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
}

/// Room for so many things.
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
        let thing = Thing { key, number, link, other, ended: Plain::clone(ended) };
        let place = NonNull::from(&mut self.0[number]).cast::<Slot<Thing>>();
        /// # Safety
        /// `item` was made below.
        unsafe fn free(item: NonNull<olf::Item>) {
            // SAFETY: the caller's promise: a slot with a thing, which nobody can reach.
            unsafe { item.cast::<Slot<Thing>>().drop_in_place() };
        }
        // SAFETY: the test declares the room before the domain, and uses each place once.
        unsafe { Arc::in_place(domain, place, thing, free) }.unwrap()
    }
}
