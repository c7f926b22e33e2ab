//! Many counts that change with one operation: in slots of the core and in the objects, committed or not.
#![cfg(not(any(loom, shuttle)))]

use std::cell::RefCell;
use std::ptr::{self, NonNull};

use commit::{Decisions, Owner};
use percpu::Core;
use percpu::testing::World;
use proptest::prelude::*;
use refcache::{Counted, CountedKind, Pending, RefCache, RefCacheConfig};
use sync::Spin;

const OBJECTS: usize = 6;
const CORES: usize = 3;

struct Counts<'w> {
    decisions: &'w Decisions,
    cache: &'w RefCache,
    objects: Vec<&'w Counted>,
    freed: RefCell<Vec<NonNull<Counted>>>,
}

impl<'w> Counts<'w> {
    fn new(world: &'w World, slots_per_core: usize, count: i64) -> Counts<'w> {
        let decisions = Decisions::create(world.arena()).unwrap();
        let config = RefCacheConfig { slots_per_core, ..RefCacheConfig::default() };
        let cache = RefCache::create(world.arena(), decisions, config).unwrap();
        let objects = (0..OBJECTS).map(|_| world.arena().place(Counted::new(count, CountedKind(1))).unwrap()).collect();
        Counts { decisions, cache, objects, freed: RefCell::default() }
    }

    fn exact(&self) -> Vec<i64> {
        // SAFETY: placed in the arena for good; so below.
        self.objects.iter().map(|object| unsafe { self.cache.exact(object, &Spin) }).collect()
    }

    fn maintain(&self, core: &Core) {
        // SAFETY: as above.
        unsafe { self.cache.maintain(core, |_, object| self.freed.borrow_mut().push(object)) };
    }

    /// Changes counts by one operation, and holds every look at them in the meantime against `model`.
    fn change_many(&self, core: &Core, changes: &[(usize, i64)], commits: bool, model: &mut Vec<i64>) {
        let operation = self.decisions.begin_firm(core);
        let mut after = model.clone();
        for &(object, delta) in changes {
            // SAFETY: as above.
            unsafe { self.cache.prepare_one_of_many(core, self.objects[object], delta, operation.tag()) }.unwrap();
            after[object] += delta;
        }
        assert_eq!(&self.exact(), model, "nothing is decided");
        let tag = operation.tag();
        if commits {
            operation.commit().unwrap();
            *model = after;
        } else {
            operation.abort();
        }
        assert_eq!(&self.exact(), model, "before it is settled");
        for &(object, _) in changes.iter().chain(changes) {
            // SAFETY: as above.
            unsafe { self.cache.settle_one_of_many(core, self.objects[object], tag, commits) };
            assert_eq!(&self.exact(), model, "while it is settled");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Change { core: usize, object: usize, delta: i64 },
    Many { core: usize, changes: Vec<(usize, i64)>, commits: bool },
    Maintain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let many = proptest::collection::vec((0..OBJECTS, -3..4_i64), 1..6);
    prop_oneof![
        2 => (0..CORES, 0..OBJECTS, -3..4_i64).prop_map(|(core, object, delta)| Step::Change { core, object, delta }),
        2 => (0..CORES, many, any::<bool>()).prop_map(|(core, changes, commits)| Step::Many { core, changes, commits }),
        1 => (0..CORES).prop_map(Step::Maintain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_follow_the_model(steps in proptest::collection::vec(step(), 0..40), slots_per_core in 1..5_usize) {
        let world = World::new(CORES);
        let counts = Counts::new(&world, slots_per_core, 1000);
        let cores: Vec<_> = (0..CORES).map(|number| world.core(number)).collect();
        let mut model = vec![1000; OBJECTS];
        for step in steps {
            match step {
                Step::Change { core, object, delta } => {
                    // SAFETY: placed in the arena for good.
                    unsafe { counts.cache.change(&cores[core], counts.objects[object], delta) };
                    model[object] += delta;
                }
                Step::Many { core, changes, commits } => counts.change_many(&cores[core], &changes, commits, &mut model),
                Step::Maintain(core) => counts.maintain(&cores[core]),
            }
            prop_assert_eq!(&counts.exact(), &model);
        }
        cores.iter().for_each(|core| counts.maintain(core));
        let applied: Vec<i64> = counts.objects.iter().map(|object| object.applied()).collect();
        prop_assert_eq!(applied, model, "all have flushed");
        prop_assert!(counts.freed.borrow().is_empty());
    }
}

#[test]
fn a_delta_in_an_object_is_seen_by_its_owner_and_keeps_others_out() {
    let world = World::new(2);
    let counts = Counts::new(&world, 1, 5);
    let (core, other) = (world.core(0), world.core(1));
    let (operation, of_other) = (counts.decisions.begin_firm(&core), counts.decisions.begin_firm(&other));
    let [first, second, ..] = counts.objects[..] else { unreachable!() };
    // SAFETY: placed in the arena for good.
    unsafe {
        let prepare = |core, object, operation: &commit::Operation<'_>| {
            counts.cache.prepare_one_of_many(core, object, 1, operation.tag())
        };
        assert_eq!(prepare(&core, first, &operation), Ok(Pending::InSlot));
        assert_eq!(prepare(&core, second, &operation), Ok(Pending::InObject));
        assert_eq!(prepare(&core, second, &operation), Ok(Pending::InObject));
        assert_eq!(prepare(&other, first, &of_other), Ok(Pending::InSlot));
        assert_eq!(prepare(&other, second, &of_other), Err(operation.tag()), "there is room for one operation");
        assert_eq!(counts.exact()[..2], [5, 5]);
        assert_eq!(counts.cache.exact_after_fence(&core, second, &Spin), 5);
        assert_eq!(counts.cache.exact_for(second, Owner(core.index()), &Spin), 5, "it is firm, and undecided");
        operation.commit().unwrap();
        assert_eq!(counts.exact()[..2], [6, 7]);
        for object in [first, second] {
            counts.cache.settle_one_of_many(&core, object, operation.tag(), true);
        }
        assert_eq!(prepare(&other, second, &of_other), Ok(Pending::InObject), "the place was given up");
        of_other.abort();
        for object in [first, second] {
            counts.cache.settle_one_of_many(&other, object, of_other.tag(), false);
        }
    }
    assert_eq!(counts.exact()[..2], [6, 7]);
}

#[test]
fn an_object_whose_last_reference_waited_in_it_is_freed_once() {
    for commits in [true, false] {
        let world = World::new(1);
        let counts = Counts::new(&world, 1, 1);
        let core = world.core(0);
        let mut model = vec![1; OBJECTS];
        counts.change_many(&core, &[(0, 1), (1, -1)], commits, &mut model);
        (0..8).for_each(|_| counts.maintain(&core));
        let freed: Vec<bool> =
            counts.freed.borrow().iter().map(|freed| ptr::eq(freed.as_ptr(), counts.objects[1])).collect();
        assert_eq!(freed, if commits { vec![true] } else { vec![] });
    }
}

#[test]
fn tools_are_told_where_the_slots_lie() {
    let world = World::new(2);
    let counts = Counts::new(&world, 16, 1);
    let (core, other) = (world.core(0), world.core(1));
    counts.maintain(&core);
    counts.maintain(&other);
    let bytes: Vec<usize> = counts.cache.tables().map(|part| part.memory.len()).collect();
    assert_eq!((bytes.len(), &bytes[..2]), (5, &[16 * 64; 2][..]));
}
