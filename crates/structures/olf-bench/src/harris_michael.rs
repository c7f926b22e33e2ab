//! The list of Harris and Michael: a node is marked in its own link, then unlinked by the one that meets it. Each
//! insertion allocates a node, each removal gives one to a reclamation.
//!
//! After Michael, *High Performance Dynamic Lock-Free Hash Tables and List-Based Sets* (SPAA 2002), figures 7 to 9.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use percpu::CacheLine;

use crate::node::Node;
use crate::reclaim::Reclaim;
use crate::sets::Set;

const REMOVED: usize = 1;

/// A list in order.
pub struct List<R> {
    head: CacheLine<AtomicUsize>,
    _reclaim: PhantomData<fn(R)>,
}

/// Where a key stands, or would stand.
struct Place<'l> {
    before: &'l AtomicUsize,
    node: Option<&'l Node>,
    next: usize,
    is_found: bool,
}

impl Place<'_> {
    fn address(&self) -> usize {
        self.node.map_or(0, |node| ptr::from_ref(node).addr())
    }
}

/// # Safety
/// An address of a node that is not freed for `'l`, or zero.
unsafe fn node<'l>(address: usize) -> Option<&'l Node> {
    // SAFETY: the caller's promise.
    unsafe { ptr::with_exposed_provenance::<Node>(address).as_ref() }
}

impl<R: Reclaim> List<R> {
    /// An empty one.
    pub fn new() -> List<R> {
        List { head: CacheLine(AtomicUsize::new(0)), _reclaim: PhantomData }
    }

    /// Looks for a key, and unlinks what is removed on the way.
    #[inline]
    fn find(&self, local: &R, key: u64) -> Place<'_> {
        'anew: loop {
            let mut before = &self.head.0;
            let mut address = before.load(Ordering::Acquire);
            // Places of the node before, of this one, of the next.
            let [mut last, mut held, mut free] = [2, 0, 1];
            if R::ANNOUNCES {
                local.hold(held, address);
                if before.load(Ordering::SeqCst) != address {
                    continue 'anew;
                }
            }
            loop {
                // SAFETY: guarded or held, and linked when it was.
                let Some(node) = (unsafe { node(address) }) else {
                    return Place { before, node: None, next: 0, is_found: false };
                };
                let word = node.next.load(Ordering::Acquire);
                let next = word & !REMOVED;
                if R::ANNOUNCES {
                    local.hold(free, next);
                    if node.next.load(Ordering::SeqCst) != word || before.load(Ordering::SeqCst) != address {
                        continue 'anew;
                    }
                }
                if word & REMOVED == 0 {
                    if node.key >= key {
                        return Place { before, node: Some(node), next, is_found: node.key == key };
                    }
                    before = &node.next;
                    [last, held, free] = [held, free, last];
                } else if self.unlink(local, before, node, next) {
                    [held, free] = [free, held];
                } else {
                    continue 'anew;
                }
                address = next;
            }
        }
    }

    /// Takes a removed node out of the list; whether it was the caller who did.
    fn unlink(&self, local: &R, before: &AtomicUsize, node: &Node, next: usize) -> bool {
        let address = ptr::from_ref(node).addr();
        let is_done = before.compare_exchange(address, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_done {
            let whole = NonNull::new(ptr::with_exposed_provenance_mut(address)).expect("not zero");
            // SAFETY: of a box, and retired by the one who unlinked it.
            unsafe { local.retire(whole) };
        }
        is_done
    }
}

impl<R: Reclaim> Set for List<R> {
    type Local = R;

    fn local(&self) -> R {
        R::enter()
    }

    #[inline]
    fn contains(&self, local: &mut R, key: u64) -> bool {
        local.guarded(|| {
            if R::ANNOUNCES {
                return self.find(local, key).is_found;
            }
            // SAFETY: guarded, and linked when the word before was read.
            let mut next = unsafe { node(self.head.0.load(Ordering::Acquire)) };
            while let Some(here) = next {
                let word = here.next.load(Ordering::Acquire);
                if here.key >= key {
                    return here.key == key && word & REMOVED == 0;
                }
                // SAFETY: as above.
                next = unsafe { node(word & !REMOVED) };
            }
            false
        })
    }

    #[inline]
    fn insert(&self, local: &mut R, key: u64) -> bool {
        let new = Box::new(Node::new(key));
        local.guarded(|| {
            loop {
                let place = self.find(local, key);
                if place.is_found {
                    return false;
                }
                new.next.store(place.address(), Ordering::Relaxed);
                let address = ptr::from_ref(&*new).expose_provenance();
                let outcome =
                    place.before.compare_exchange(place.address(), address, Ordering::AcqRel, Ordering::Relaxed);
                if outcome.is_ok() {
                    break;
                }
            }
            let _ = Box::into_raw(new).expose_provenance();
            true
        })
    }

    #[inline]
    fn remove(&self, local: &mut R, key: u64) -> bool {
        local.guarded(|| {
            loop {
                let place = self.find(local, key);
                let Some(node) = place.node.filter(|_| place.is_found) else { return false };
                let marked = place.next | REMOVED;
                if node.next.compare_exchange(place.next, marked, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                    continue;
                }
                if !self.unlink(local, place.before, node, place.next) {
                    // One that comes by does it.
                    self.find(local, key);
                }
                return true;
            }
        })
    }
}

impl<R> Drop for List<R> {
    fn drop(&mut self) {
        let mut address = *self.head.0.get_mut();
        while let Some(node) = NonNull::new(ptr::with_exposed_provenance_mut::<Node>(address & !REMOVED)) {
            // SAFETY: no one else has the list, and each node in it is of a box.
            let node = unsafe { Box::from_raw(node.as_ptr()) };
            address = node.next.load(Ordering::Relaxed);
        }
    }
}
