//! Plain lists under spin locks, which keep readers out as well; a move takes two locks, in the order of their addresses.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use percpu::CacheLine;

use crate::by_hand::REST;
use crate::sets::{Pair, Set};

/// A node in an item as large as those of `olf`; its memory is never freed before the program ends, as that of items which
/// somebody else owns.
#[repr(align(32))]
struct Node {
    key: u64,
    next: *mut Node,
    _rest: [u64; REST],
}

/// A lock for whose holder others wait by looking.
pub struct Lock(AtomicBool);

impl Lock {
    /// A lock that no one has.
    pub const fn new() -> Lock {
        Lock(AtomicBool::new(false))
    }

    /// Takes it.
    #[inline]
    pub fn lock(&self) {
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
    }

    /// Gives it back.
    #[inline]
    pub fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A list in order under a lock, on lines of its own.
pub struct List(CacheLine<Locked>);

struct Locked {
    lock: Lock,
    head: UnsafeCell<*mut Node>,
}

// SAFETY: the head and all nodes after it are touched under the lock alone.
unsafe impl Sync for List {}
// SAFETY: as above.
unsafe impl Send for List {}

/// Nodes that a thread has taken out, by key: used again, as embedded links are.
pub type Taken = Vec<Vec<usize>>;

impl List {
    /// An empty one.
    pub fn new() -> List {
        List(CacheLine(Locked { lock: Lock::new(), head: UnsafeCell::new(ptr::null_mut()) }))
    }

    #[inline]
    fn lock(&self) {
        self.0.0.lock.lock();
    }

    #[inline]
    fn unlock(&self) {
        self.0.0.lock.unlock();
    }

    /// The link at which a key stands, or would stand.
    ///
    /// # Safety
    /// The caller has the lock.
    #[inline]
    unsafe fn place(&self, key: u64) -> *mut *mut Node {
        let mut link = self.0.0.head.get();
        // SAFETY: under the lock, all links are the caller's.
        unsafe {
            while !(*link).is_null() && (**link).key < key {
                link = &raw mut (**link).next;
            }
        }
        link
    }

    /// # Safety
    /// The caller has the lock.
    #[inline]
    unsafe fn take(&self, key: u64) -> Option<*mut Node> {
        // SAFETY: under the lock.
        unsafe {
            let link = self.place(key);
            let node = *link;
            if node.is_null() || (*node).key != key {
                return None;
            }
            *link = (*node).next;
            Some(node)
        }
    }

    /// Puts a node in; false if there is one with its key.
    ///
    /// # Safety
    /// The caller has the lock, and the node stands in no list.
    #[inline]
    unsafe fn put(&self, node: *mut Node) -> bool {
        // SAFETY: under the lock.
        unsafe {
            let link = self.place((*node).key);
            if !(*link).is_null() && (**link).key == (*node).key {
                return false;
            }
            (*node).next = *link;
            *link = node;
            true
        }
    }

    /// Moves a node to another list, under both locks.
    #[inline]
    pub fn hand_over(&self, to: &List, key: u64) -> bool {
        let is_first = ptr::from_ref(self) < ptr::from_ref(to);
        let (first, second) = if is_first { (self, to) } else { (to, self) };
        first.lock();
        second.lock();
        // SAFETY: both locks are ours; a node that was taken out stands in no list.
        let is_moved = unsafe { self.take(key).is_some_and(|node| to.put(node)) };
        second.unlock();
        first.unlock();
        is_moved
    }
}

impl Set for List {
    type Local = Taken;

    fn local(&self) -> Taken {
        Taken::new()
    }

    #[inline]
    fn contains(&self, _: &mut Taken, key: u64) -> bool {
        self.lock();
        // SAFETY: the lock is ours.
        let is_there = unsafe {
            let node = *self.place(key);
            !node.is_null() && (*node).key == key
        };
        self.unlock();
        is_there
    }

    #[inline]
    fn insert(&self, taken: &mut Taken, key: u64) -> bool {
        let kept = taken.get_mut(key as usize).and_then(Vec::pop);
        let node = match kept {
            Some(address) => ptr::with_exposed_provenance_mut(address),
            None => Box::into_raw(Box::new(Node { key, next: ptr::null_mut(), _rest: [0; REST] })),
        };
        self.lock();
        // SAFETY: the lock is ours, and the node stands in no list.
        let is_new = unsafe { self.put(node) };
        self.unlock();
        if !is_new {
            keep(taken, key, node);
        }
        is_new
    }

    #[inline]
    fn remove(&self, taken: &mut Taken, key: u64) -> bool {
        self.lock();
        // SAFETY: the lock is ours.
        let node = unsafe { self.take(key) };
        self.unlock();
        node.map(|node| keep(taken, key, node)).is_some()
    }
}

#[inline]
fn keep(taken: &mut Taken, key: u64, node: *mut Node) {
    let key = key as usize;
    if taken.len() <= key {
        taken.resize(key + 1, Vec::new());
    }
    taken[key].push(node.expose_provenance());
}

/// Two lists.
pub struct Lists(pub [List; 2]);

impl Pair for Lists {
    type Local = Taken;

    fn local(&self) -> Taken {
        Taken::new()
    }

    fn fill(&self, taken: &mut Taken, key: u64) {
        assert!(self.0[0].insert(taken, key), "a new number");
    }

    #[inline]
    fn hand_over(&self, _: &mut Taken, from: usize, key: u64) -> bool {
        self.0[from].hand_over(&self.0[1 - from], key)
    }
}
