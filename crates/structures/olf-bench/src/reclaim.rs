//! When a node that was taken out is freed: after all readers of then have gone, or once no reader has it in its hands.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use epoch::{Epochs, RetiredKind};
use percpu::{Arena, ArenaConfig, CacheLine, Core, HeapRegion, OwnerId};

use crate::harness::ROOM_FOR_THREADS;
use crate::node::Node;

/// What a thread does about nodes.
pub trait Reclaim {
    /// Whether readers say which nodes they hold, and so must look again whether these are still there.
    const ANNOUNCES: bool;

    /// Of a new thread.
    fn enter() -> Self;
    /// Does something with nodes.
    fn guarded<R>(&self, act: impl FnOnce() -> R) -> R;
    /// Says that the thread holds a node, in one of three places.
    fn hold(&self, place: usize, node: usize);
    /// Hands over a node that no list leads to any more.
    ///
    /// # Safety
    /// It is of `Box`, and handed over once.
    unsafe fn retire(&self, node: NonNull<Node>);
}

/// This many nodes are kept before some are freed.
const KEPT: usize = 64;
/// Deferred: by the epochs of crate `epoch`, which `olf` has as well.
pub struct Deferred {
    core: Core<'static>,
    retired: Cell<usize>,
}

static ARENA: LazyLock<(&'static Arena, &'static Epochs)> = LazyLock::new(|| {
    let region = Box::leak(Box::new(HeapRegion::new(2 << 20).expect("memory")));
    let config = ArenaConfig { core_count: ROOM_FOR_THREADS, chunk_bytes: 4096 };
    let arena = Arena::create(region, config).expect("an arena");
    (arena, Epochs::create(arena).expect("epochs"))
});

impl Reclaim for Deferred {
    const ANNOUNCES: bool = false;

    fn enter() -> Deferred {
        let core = ARENA.0.claim_any(OwnerId::new(1).expect("not zero")).expect("a core");
        Deferred { core, retired: Cell::new(0) }
    }

    #[inline]
    fn guarded<R>(&self, act: impl FnOnce() -> R) -> R {
        let guard = ARENA.1.pin(&self.core);
        let outcome = act();
        drop(guard);
        if self.retired.get() >= KEPT {
            self.retired.set(0);
            // SAFETY: all that is retired here are nodes of boxes, which begin with their link.
            ARENA.1.maintain(&self.core, |_, _, link| drop(unsafe { Box::from_raw(link.cast::<Node>().as_ptr()) }));
        }
        outcome
    }

    #[inline]
    fn hold(&self, _: usize, _: usize) {}

    #[inline]
    unsafe fn retire(&self, node: NonNull<Node>) {
        self.retired.set(self.retired.get() + 1);
        // SAFETY: the caller's promise; a node begins with its link.
        unsafe { ARENA.1.pin(&self.core).retire(node.cast(), RetiredKind(0)) };
    }
}

/// Hazard pointers (Michael): readers announce each node before they look into it.
pub struct Hazards {
    number: usize,
    retired: RefCell<Vec<NonNull<Node>>>,
}

static HELD: [CacheLine<[AtomicUsize; 3]>; ROOM_FOR_THREADS] =
    [const { CacheLine([const { AtomicUsize::new(0) }; 3]) }; ROOM_FOR_THREADS];
static FREE_NUMBERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static NUMBERS: AtomicUsize = AtomicUsize::new(0);
/// Addresses of nodes that threads have left, held by others as they went.
static LEFT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Hazards {
    fn free_what_nobody_holds(&self) {
        // SeqCst: one that has a number by now announces with it after this, and looks again.
        let used = NUMBERS.load(Ordering::SeqCst);
        let held: Vec<usize> =
            HELD[..used].iter().flat_map(|held| held.0.each_ref()).map(|held| held.load(Ordering::SeqCst)).collect();
        self.retired.borrow_mut().retain(|node| {
            let is_held = held.contains(&node.addr().get());
            if !is_held {
                // SAFETY: a box that was retired; no list leads to it, and no one holds it.
                drop(unsafe { Box::from_raw(node.as_ptr()) });
            }
            is_held
        });
    }
}

impl Reclaim for Hazards {
    const ANNOUNCES: bool = true;

    fn enter() -> Hazards {
        let kept = FREE_NUMBERS.lock().expect("numbers").pop();
        let number = kept.unwrap_or_else(|| NUMBERS.fetch_add(1, Ordering::SeqCst));
        assert!(number < ROOM_FOR_THREADS, "at most {ROOM_FOR_THREADS} threads");
        let left = std::mem::take(&mut *LEFT.lock().expect("nodes"));
        let retired = left.into_iter().filter_map(|node| NonNull::new(std::ptr::with_exposed_provenance_mut(node)));
        Hazards { number, retired: RefCell::new(retired.collect()) }
    }

    #[inline]
    fn guarded<R>(&self, act: impl FnOnce() -> R) -> R {
        act()
    }

    #[inline]
    fn hold(&self, place: usize, node: usize) {
        // SeqCst: before the look by which the reader makes sure of it.
        HELD[self.number].0[place].store(node, Ordering::SeqCst);
    }

    unsafe fn retire(&self, node: NonNull<Node>) {
        self.retired.borrow_mut().push(node);
        if self.retired.borrow().len() >= KEPT {
            self.free_what_nobody_holds();
        }
    }
}

impl Drop for Hazards {
    fn drop(&mut self) {
        HELD[self.number].0.iter().for_each(|held| held.store(0, Ordering::SeqCst));
        self.free_what_nobody_holds();
        let left = self.retired.take().into_iter().map(|node| node.as_ptr().expose_provenance());
        LEFT.lock().expect("nodes").extend(left);
        FREE_NUMBERS.lock().expect("numbers").push(self.number);
    }
}
