//! Keys that lie, panic or change, and memory that runs out: answers may be wrong, but each item ends once and nothing is lost.
#![cfg(not(any(loom, shuttle)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use olf::{Arc, Domain, Here, Limits, Link, Map, Sorted, links};

thread_local! {
    /// Larger pieces of memory are refused to this thread.
    static MOST_BYTES: Cell<usize> = const { Cell::new(usize::MAX) };
    /// What the next comparison does.
    static MOOD: Cell<Mood> = const { Cell::new(Mood::Honest) };
}

/// The system's allocator, until it is made to refuse.
struct Refusing;

// SAFETY: all is the system's, or nothing.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST_BYTES.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

#[derive(Clone, Copy)]
enum Mood {
    Honest,
    /// Answers from these numbers.
    Lies(u64),
    /// This many honest answers, then a panic.
    Panics(u32),
}

/// A key that says what its thread's mood is.
struct Moody(AtomicU64);

impl Moody {
    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PartialEq for Moody {
    fn eq(&self, other: &Moody) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Moody {}

impl PartialOrd for Moody {
    fn partial_cmp(&self, other: &Moody) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Moody {
    fn cmp(&self, other: &Moody) -> Order {
        match MOOD.get() {
            Mood::Honest => self.value().cmp(&other.value()),
            Mood::Lies(seed) => {
                let next = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                MOOD.set(Mood::Lies(next));
                [Order::Less, Order::Equal, Order::Greater][(next >> 33) as usize % 3]
            }
            Mood::Panics(0) => {
                MOOD.set(Mood::Honest);
                panic!("a comparison")
            }
            Mood::Panics(left) => {
                MOOD.set(Mood::Panics(left - 1));
                self.value().cmp(&other.value())
            }
        }
    }
}

impl Hash for Moody {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.value().hash(hasher);
    }
}

struct Thing {
    key: Moody,
    link: Link,
    ended: Plain<AtomicUsize>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

links! {
    ByKey: Thing { link: link, key: key as Moody }
}

fn key(value: u64) -> Moody {
    Moody(AtomicU64::new(value))
}

fn thing<'d>(domain: &'d Domain, value: u64, ended: &Plain<AtomicUsize>) -> Arc<'d, Thing> {
    Arc::new(domain, Thing { key: key(value), link: Link::new(), ended: Plain::clone(ended) })
}

fn domain() -> Domain {
    Domain::with(Limits { threads: 2, lists: 4 }).expect("a domain")
}

fn keys(list: &Sorted<'_, ByKey>, here: &Here<'_>) -> Vec<u64> {
    let mut keys = Vec::new();
    list.for_each(here, |thing| keys.push(thing.key.value()));
    keys
}

/// Makes calls on two lists of a kind while comparisons lie; returns how many items it has made.
macro_rules! lie_to {
    ($kind:ident, $seed:expr, $domain:expr, $ended:expr) => {{
        let here = $domain.enter().expect("a thread");
        let lists = [$kind::<ByKey>::new(&$domain).expect("a list"), $kind::<ByKey>::new(&$domain).expect("a list")];
        let mut made = 0;
        MOOD.set(Mood::Lies($seed));
        for round in 0..400_u64 {
            let (one, two) = (&lists[round as usize % 2], &lists[1 - round as usize % 2]);
            let at = key(round % 7);
            match round % 5 {
                0 | 1 => {
                    made += 1;
                    drop(one.insert(&here, thing(&$domain, round % 7, &$ended)));
                }
                2 => drop(one.remove(&here, &at)),
                3 => _ = one.move_to(two, &here, &at),
                _ => _ = one.contains(&here, &at),
            }
        }
        MOOD.set(Mood::Honest);
        made
    }};
}

#[test]
fn comparisons_that_lie_cost_answers_and_no_item() {
    for seed in 0..50 {
        let ended = Plain::default();
        let domain = domain();
        let made = lie_to!(Sorted, seed, domain, ended) + lie_to!(Map, seed, domain, ended);
        drop(domain);
        assert_eq!(ended.load(Ordering::Relaxed), made, "each item ends once, seed {seed}");
    }
}

#[test]
fn a_comparison_that_panics_leaves_the_list_as_it_is() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().expect("a thread");
    let (one, two) = (Sorted::<ByKey>::new(&domain).expect("a list"), Sorted::<ByKey>::new(&domain).expect("a list"));
    for value in [1, 3, 5] {
        assert!(one.insert(&here, thing(&domain, value, &ended)).is_ok());
    }
    let mut panics = 0;
    for count in 0..8 {
        let mut tried = |call: &mut dyn FnMut()| {
            MOOD.set(Mood::Panics(count));
            panics += usize::from(catch_unwind(AssertUnwindSafe(call)).is_err());
            MOOD.set(Mood::Honest);
        };
        tried(&mut || drop(one.insert(&here, thing(&domain, 4, &ended))));
        drop(one.remove(&here, &key(4)));
        tried(&mut || _ = one.move_to(&two, &here, &key(5)));
        let _ = two.move_to(&one, &here, &key(5));
        tried(&mut || _ = one.contains(&here, &key(5)));
        assert_eq!((keys(&one, &here), keys(&two, &here)), (vec![1, 3, 5], vec![]), "after {count} comparisons");
    }
    assert!(panics > 8, "{panics} of 24 calls have panicked");
}

#[test]
fn a_key_that_changes_while_it_is_listed_hides_items_and_loses_none() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().expect("a thread");
    let (list, map) = (Sorted::<ByKey>::new(&domain).expect("a list"), Map::<ByKey>::new(&domain).expect("a map"));
    let mut kept = Vec::new();
    for value in 0..8 {
        let [in_list, in_map] = [0, 1].map(|_| thing(&domain, value, &ended));
        assert!(list.insert(&here, in_list.clone()).is_ok() && map.insert(&here, in_map.clone()).is_ok());
        kept.extend([in_list, in_map]);
    }
    for (number, item) in kept.drain(..).enumerate() {
        item.key.0.store(100 - number as u64, Ordering::Relaxed);
    }
    let mut found = keys(&list, &here);
    found.sort_unstable();
    assert_eq!(found, (0..8).map(|number| 86 + 2 * number).collect::<Vec<_>>(), "all are still listed");
    assert!(!list.contains(&here, &key(0)) && !map.contains(&here, &key(0)));
    map.reserve(&here, 64).expect("memory");
    drop((list, map));
    while here.maintain() {}
    assert_eq!(ended.load(Ordering::Relaxed), 16);
}

#[test]
fn a_map_that_finds_no_memory_stays_as_it_is() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().expect("a thread");
    let map = Map::<ByKey>::new(&domain).expect("a map");
    for value in 0..300 {
        assert!(map.insert(&here, thing(&domain, value, &ended)).is_ok());
    }
    MOST_BYTES.set(4096);
    let grown = map.reserve(&here, 1 << 20);
    let maintained = map.maintain(&here);
    MOST_BYTES.set(usize::MAX);
    assert!(grown.is_err() && maintained.is_err());
    assert!((0..300).all(|value| map.contains(&here, &key(value))) && !map.contains(&here, &key(300)));
    map.reserve(&here, 300).expect("memory is there again");
    assert!((0..300).all(|value| map.remove(&here, &key(value)).is_some()));
}
