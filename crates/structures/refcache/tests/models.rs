//! Finding zero while a reader takes a reference, exact reads during an eviction, eager releases, weak references.
//! `RUSTFLAGS="--cfg loom" cargo test -p refcache --release --test models`.
#![cfg(any(loom, shuttle))]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};

use commit::Decisions;
use percpu::Core;
use percpu::model::ModelArena;
use refcache::{Count, Counted, CountedKind, Noted, Pending, RefCache, RefCacheConfig, WeakRef};
use sync::Spin;
use sync::atomic::{AtomicPtr, AtomicUsize as AtomicUsizeOfModel, Ordering};

struct World {
    model: ModelArena,
    decisions: &'static Decisions,
    cache: &'static RefCache,
    freed: Arc<AtomicUsize>,
}

impl World {
    fn new() -> World {
        let model = ModelArena::new(2, 128 << 10);
        let decisions = Decisions::create(model.arena()).unwrap();
        let config = RefCacheConfig { slots_per_core: 1, seed: 1 };
        let cache = RefCache::create(model.arena(), decisions, config).unwrap();
        World { model, decisions, cache, freed: Arc::new(AtomicUsize::new(0)) }
    }

    fn object(&self, count: i64) -> &'static Counted {
        self.model.arena().place(Counted::new(count, CountedKind(0))).unwrap()
    }

    /// A count of 1 that notes from the start which cores have deltas.
    fn listed(&self) -> &'static Noted {
        self.model.arena().place(Noted::listed(1, CountedKind(0))).unwrap()
    }

    /// A closure that maintains once and counts what is freed.
    fn maintainer(&self) -> impl Fn(&Core) + Send + 'static {
        let (cache, freed) = (self.cache, Arc::clone(&self.freed));
        move |core| {
            let free = |_: &Core, _: NonNull<Counted>| {
                freed.fetch_add(1, Plain::Relaxed);
            };
            // SAFETY: a test's core holds no pointers between its calls.
            unsafe { cache.maintain(core, free) };
        }
    }
}

fn change(cache: &RefCache, core: &Core, object: &impl Count, delta: i64) {
    // SAFETY: memory of objects is never reused in these models.
    unsafe { cache.change(core, object, delta) }
}

/// One core finds the object by a shared pointer, and keeps a reference over a maintenance; the other removes the
/// pointer and drops its reference.
fn lookup_against_removal(finder_first: bool) {
    let world = World::new();
    let (zero, one) = (world.model.core(0), world.model.core(1));
    let object = world.object(1);
    let shared = Arc::new(AtomicPtr::new(std::ptr::from_ref(object).cast_mut()));
    let (cache, freed) = (world.cache, Arc::clone(&world.freed));
    let finder = {
        let (shared, maintain) = (Arc::clone(&shared), world.maintainer());
        move || {
            maintain(&zero);
            if !shared.load(Ordering::Acquire).is_null() {
                assert_eq!(freed.load(Plain::Relaxed), 0, "freed in the middle of the call that found it");
                change(cache, &zero, object, 1);
                maintain(&zero);
                assert_eq!(freed.load(Plain::Relaxed), 0, "freed while referenced");
                maintain(&zero);
                assert_eq!(freed.load(Plain::Relaxed), 0, "freed while referenced");
                change(cache, &zero, object, -1);
            }
            for _ in 0..2 {
                maintain(&zero);
            }
        }
    };
    let remover = {
        let maintain = world.maintainer();
        move || {
            shared.store(std::ptr::null_mut(), Ordering::Release);
            change(cache, &one, object, -1);
            for _ in 0..4 {
                maintain(&one);
            }
        }
    };
    sync::model::both(finder_first, finder, remover);
    let maintain = world.maintainer();
    let cores = [world.model.core(0), world.model.core(1)];
    for _ in 0..4 {
        cores.iter().for_each(&maintain);
    }
    assert_eq!(world.freed.load(Plain::Relaxed), 1, "freed once in the end");
}

/// As `lookup_against_removal`, but the remover comes on-line in the middle, when rounds do not wait for it, and sees the count become
/// zero before it has ever flushed.
fn lookup_against_removal_by_a_new_core(finder_first: bool) {
    let world = World::new();
    let zero = world.model.core(0);
    let (object, other) = (world.object(1), world.object(1));
    let shared = Arc::new(AtomicPtr::new(std::ptr::from_ref(object).cast_mut()));
    let (cache, held) = (world.cache, Arc::new(AtomicUsize::new(0)));
    let finder = {
        let (shared, held, maintain) = (Arc::clone(&shared), Arc::clone(&held), world.maintainer());
        move || {
            maintain(&zero);
            maintain(&zero);
            if !shared.load(Ordering::Acquire).is_null() {
                change(cache, &zero, object, 1);
                held.store(1, Plain::Relaxed);
            }
        }
    };
    let remover = {
        let (maintain, model, freed) = (world.maintainer(), world.model.clone(), Arc::clone(&world.freed));
        move || {
            let one = model.core(1);
            shared.store(std::ptr::null_mut(), Ordering::Release);
            change(cache, &one, object, -1);
            // The one slot of this cache goes to another object.
            change(cache, &one, other, 1);
            for _ in 0..2 {
                maintain(&one);
                assert!(held.load(Plain::Relaxed) == 0 || freed.load(Plain::Relaxed) == 0, "freed while referenced");
            }
        }
    };
    sync::model::both(finder_first, finder, remover);
}

/// A reference goes from core to core without being counted again: the count is zero twice although a reference exists.
fn handed_over(holder_first: bool) {
    let world = World::new();
    let (zero, one) = (world.model.core(0), world.model.core(1));
    let object = world.object(1); // the reference of core 1
    let cache = world.cache;
    change(cache, &zero, object, 1); // a reference of core 0
    let mailbox = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
    let (given, freed) = (Arc::clone(&mailbox), Arc::clone(&world.freed));
    let holder = {
        let maintain = world.maintainer();
        move || {
            maintain(&zero);
            maintain(&zero);
            change(cache, &zero, object, 1); // a copy that core 0 keeps
            given.store(std::ptr::from_ref(object).cast_mut(), Ordering::Release);
            assert_eq!(freed.load(Plain::Relaxed), 0, "freed while referenced");
            maintain(&zero);
            assert_eq!(freed.load(Plain::Relaxed), 0, "freed while referenced");
        }
    };
    let receiver = {
        let maintain = world.maintainer();
        move || {
            change(cache, &one, object, -1);
            maintain(&one);
            maintain(&one);
            if !mailbox.load(Ordering::Acquire).is_null() {
                change(cache, &one, object, -1);
                maintain(&one);
                maintain(&one);
            }
        }
    };
    sync::model::both(holder_first, holder, receiver);
}

/// An exact read of a constant count while the other core's delta moves from its slot to the object.
fn exact_during_eviction(reader_first: bool) {
    let world = World::new();
    let (object, other) = (world.object(1), world.object(1));
    let core = world.model.core(0);
    let cache = world.cache;
    change(cache, &core, object, 1);
    let evictor = move || change(cache, &core, other, 1);
    let reader = move || {
        // SAFETY: never freed in this model.
        assert_eq!(unsafe { cache.exact(object, &Spin) }, 2, "the delta was missed or counted twice");
    };
    sync::model::both(reader_first, reader, evictor);
}

/// An exact read of a count that notes its holders: a core gets a delta, says so, and gives the delta to the object.
fn exact_of_a_holder(reader_first: bool) {
    let world = World::new();
    let (object, other) = (world.listed(), world.object(1));
    let core = world.model.core(0);
    let (cache, changed) = (world.cache, Arc::new(AtomicUsizeOfModel::new(0)));
    // Of one core all are asked.
    drop(world.model.core(1));
    let holder = {
        let changed = Arc::clone(&changed);
        move || {
            change(cache, &core, object, 1);
            changed.store(1, Ordering::Release);
            change(cache, &core, other, 1);
        }
    };
    let reader = move || {
        let has_changed = changed.load(Ordering::Acquire) == 1;
        // SAFETY: never freed in this model.
        let seen = unsafe { cache.exact(object, &Spin) };
        assert!(seen == 2 || (seen == 1 && !has_changed), "{seen}: a holder was not asked");
    };
    sync::model::both(reader_first, reader, holder);
}

/// One up by a core that was no holder, then one down by one that was: who counts the second alone has seen what never was.
fn a_holder_that_comes(reader_first: bool) {
    let world = World::new();
    let object = world.listed();
    let [zero, one] = [0, 1].map(|number| world.model.core(number));
    let cache = world.cache;
    change(cache, &one, object, 1);
    let holders = move || {
        change(cache, &zero, object, 1);
        change(cache, &one, object, -1);
    };
    let reader = move || {
        // SAFETY: never freed in this model.
        assert_ne!(unsafe { cache.exact(object, &Spin) }, 1, "a count that never was");
    };
    sync::model::both(reader_first, reader, holders);
}

/// A delta that came to a cache before its object noted holders, while a core has that begin, and go on.
fn a_delta_of_before(first: bool) {
    let world = World::new();
    let object = world.model.arena().place(Noted::new(1, CountedKind(0))).unwrap();
    let [zero, one] = [0, 1].map(|number| world.model.core(number));
    let cache = world.cache;
    let asker = {
        let maintain = world.maintainer();
        move || {
            maintain(&one);
            for _ in 0..3 {
                // SAFETY: never freed in this model.
                let seen = unsafe { cache.exact_after_fence(&one, object, &Spin) };
                assert_eq!(seen, 2, "a holder of before was not asked");
                maintain(&one);
            }
        }
    };
    change(cache, &zero, object, 1);
    let maintain = world.maintainer();
    sync::model::both(first, asker, move || maintain(&zero));
}

/// A delta that waits in an object that notes its holders is seen from the decision on: the core's slot holds another.
fn many_of_holders(first: bool) {
    let world = Arc::new(World::new());
    let (other, object) = (world.object(1), world.listed());
    let decided = Arc::new(AtomicUsizeOfModel::new(0));
    let changer = {
        let (world, core, decided) = (Arc::clone(&world), world.model.core(0), Arc::clone(&decided));
        move || {
            let operation = world.decisions.begin_firm(&core);
            let (cache, tag) = (world.cache, operation.tag());
            // SAFETY: never freed in this model.
            unsafe {
                cache.prepare_one_of_many(&core, other, 1, tag).unwrap();
                assert_eq!(cache.prepare_one_of_many(&core, object, 1, tag), Ok(Pending::InObject));
                operation.commit().unwrap();
                decided.store(1, Ordering::Release);
                cache.settle_one_of_many(&core, other, tag, true);
                cache.settle_one_of_many(&core, object, tag, true);
            }
        }
    };
    drop(world.model.core(1));
    let cache = world.cache;
    let reader = move || {
        let is_decided = decided.load(Ordering::Acquire) == 1;
        // SAFETY: never freed in this model.
        let seen = unsafe { cache.exact(object, &Spin) };
        assert!(seen == 2 || (seen == 1 && !is_decided), "{seen}");
    };
    sync::model::both(first, changer, reader);
    assert_eq!(object.applied(), 2);
}

fn eager_releases(first: bool) {
    let world = World::new();
    let object = world.object(2);
    let last = Arc::new(AtomicUsize::new(0));
    let role = |number| {
        let (cache, core, last) = (world.cache, world.model.core(number), Arc::clone(&last));
        move || {
            // SAFETY: never freed in this model.
            if unsafe { cache.decrement_eager(&core, object, &Spin) } {
                last.fetch_add(1, Plain::Relaxed);
            }
        }
    };
    let (a, b) = (role(0), role(1));
    sync::model::both(first, a, b);
    assert!(last.load(Plain::Relaxed) >= 1, "nobody noticed the last release");
}

/// One core upgrades a weak reference while the other finds the count to be zero.
fn weak_against_review(upgrader_first: bool) {
    let world = World::new();
    let (zero, one) = (world.model.core(0), world.model.core(1));
    let object = world.object(1);
    let weak = world.model.arena().place(WeakRef::new()).unwrap();
    // SAFETY: both live as long as the arena.
    unsafe { weak.attach(object) };
    let (cache, freed) = (world.cache, Arc::clone(&world.freed));
    change(cache, &one, object, -1);
    let upgrader = {
        let maintain = world.maintainer();
        move || {
            maintain(&zero);
            maintain(&zero);
            if cache.upgrade(&zero, weak).is_some() {
                maintain(&zero);
                assert_eq!(freed.load(Plain::Relaxed), 0, "freed while referenced");
            }
        }
    };
    let reviewer = {
        let maintain = world.maintainer();
        move || {
            for _ in 0..4 {
                maintain(&one);
            }
        }
    };
    sync::model::both(upgrader_first, upgrader, reviewer);
}

/// Prepares deltas of several counts under one operation, decides, and ends them. On the way to a count that another
/// operation has claimed it gives up. Returns whether it happened. `at_decision` is called at the moments before and
/// after.
fn change_many(
    world: &World,
    core: &Core,
    changes: &[(&Counted, i64)],
    commits: bool,
    at_decision: impl Fn(bool),
) -> bool {
    let operation = world.decisions.begin_firm(core);
    let tag = operation.tag();
    // SAFETY: never freed in these models.
    let prepare =
        |(object, delta): &(&Counted, i64)| unsafe { world.cache.prepare_one_of_many(core, object, *delta, tag) };
    let happens = changes.iter().all(|change| prepare(change).is_ok()) && commits;
    at_decision(true);
    if !happens || operation.commit().is_err() {
        operation.abort();
    }
    at_decision(false);
    for (object, _) in changes {
        // SAFETY: as above.
        unsafe { world.cache.settle_one_of_many(core, object, tag, happens) };
    }
    happens
}

/// A count that waits in its object, since the other has the slot, is seen from the decision on, not before.
fn many_at_one_moment(changer_first: bool) {
    let world = Arc::new(World::new());
    let objects = [world.object(1), world.object(1)];
    let (decided, begun) = (Arc::new(AtomicUsizeOfModel::new(0)), Arc::new(AtomicUsizeOfModel::new(0)));
    let changer = {
        let (world, core) = (Arc::clone(&world), world.model.core(0));
        let (decided, begun) = (Arc::clone(&decided), Arc::clone(&begun));
        move || {
            let mark = |is_before| if is_before { &begun } else { &decided }.store(1, Ordering::Release);
            assert!(change_many(&world, &core, &objects.map(|object| (object, 1)), true, mark));
        }
    };
    let cache = world.cache;
    let reader = move || {
        let is_decided = decided.load(Ordering::Acquire) == 1;
        // SAFETY: never freed in this model.
        let seen = unsafe { cache.exact(objects[1], &Spin) };
        let is_begun = begun.load(Ordering::Acquire) == 1;
        assert!(seen == 2 || !is_decided, "{seen} after the decision");
        assert!(seen == 1 || is_begun, "{seen} before the decision");
    };
    sync::model::both(changer_first, changer, reader);
    // SAFETY: as above.
    assert_eq!(objects.map(|object| unsafe { world.cache.exact(object, &Spin) }), [2, 2]);
}

/// Two operations want the place in one object at the same time.
fn one_place_for_two(first: bool) {
    let world = Arc::new(World::new());
    let shared = world.object(1);
    let happened = Arc::new(AtomicUsize::new(0));
    let role = |number: usize| {
        let (world, core, own) = (Arc::clone(&world), world.model.core(number), world.object(1));
        let happened = Arc::clone(&happened);
        move || {
            if change_many(&world, &core, &[(own, 1), (shared, 1)], true, |_| ()) {
                happened.fetch_add(1, Plain::Relaxed);
            }
        }
    };
    let (a, b) = (role(0), role(1));
    sync::model::both(first, a, b);
    let happened = happened.load(Plain::Relaxed) as i64;
    assert!(happened >= 1, "each gave way to the other");
    assert_eq!(shared.applied(), 1 + happened, "a delta was lost or counted twice");
}

/// An operation that does not happen leaves nothing, to those who read in the meantime.
fn aborted_many(first: bool) {
    let world = Arc::new(World::new());
    let objects = [world.object(1), world.object(1)];
    let changer = {
        let (world, core) = (Arc::clone(&world), world.model.core(0));
        move || assert!(!change_many(&world, &core, &objects.map(|object| (object, 1)), false, |_| ()))
    };
    let cache = world.cache;
    let reader = move || {
        // SAFETY: never freed in this model.
        let seen = unsafe { cache.exact(objects[1], &Spin) };
        assert_eq!(seen, 1, "what was prepared is seen although it never happened");
    };
    sync::model::both(first, changer, reader);
}

#[test]
fn many_counts_change_at_one_moment() {
    for first in [false, true] {
        sync::model::explore(1, 20, move || many_at_one_moment(first));
        let fault = "refcache: a delta in an object is not read";
        sync::model::must_catch(fault, 1, move || many_at_one_moment(first));
        sync::model::explore(1, 20, move || aborted_many(first));
        let fault = "refcache: what is prepared counts at once";
        sync::model::must_catch(fault, 1, move || aborted_many(first));
    }
}

#[test]
fn an_object_has_room_for_one_operation() {
    for first in [false, true] {
        sync::model::explore(3, 100, move || one_place_for_two(first));
        for fault in
            ["refcache: a count is claimed in two steps", "refcache: a claim is given up before its delta ends"]
        {
            sync::model::must_catch(fault, 3, move || one_place_for_two(first));
        }
    }
}

#[test]
fn zero_is_found_in_time_and_not_before() {
    for first in [false, true] {
        sync::model::explore(2, 200, move || lookup_against_removal(first));
        for mutant in ["refcache: review an epoch early", "refcache: epochs do not wait for flushes"] {
            sync::model::must_catch(mutant, 2, move || lookup_against_removal(first));
        }
    }
}

#[test]
fn zero_that_a_new_core_sees_is_reviewed_in_time_and_not_before() {
    for first in [false, true] {
        sync::model::explore(2, 100, move || lookup_against_removal_by_a_new_core(first));
    }
}

#[test]
fn a_new_core_needs_an_exchange_to_learn_the_round() {
    sync::model::must_catch_reordering("rounds: a round is read without an exchange", 2, move || {
        lookup_against_removal_by_a_new_core(false);
    });
}

#[test]
fn a_reference_may_go_from_core_to_core() {
    for first in [false, true] {
        sync::model::explore(2, 200, move || handed_over(first));
        sync::model::must_catch("refcache: dirt is ignored", 2, move || handed_over(first));
    }
}

#[test]
fn exact_reads_are_exact() {
    for first in [false, true] {
        sync::model::explore(3, 10, move || exact_during_eviction(first));
        sync::model::must_catch("refcache: single collect", 3, move || exact_during_eviction(first));
    }
}

#[test]
fn holders_are_enough_to_ask() {
    for first in [false, true] {
        sync::model::explore(3, 10, move || exact_of_a_holder(first));
        for fault in ["percpu: a holder is not noted", "refcache: a core is struck off before its delta is applied"] {
            sync::model::must_catch(fault, 3, move || exact_of_a_holder(first));
        }
        sync::model::explore(2, 10, move || a_holder_that_comes(first));
        sync::model::must_catch("refcache: holders are looked at once", 2, move || a_holder_that_comes(first));
        sync::model::explore(2, 10, move || many_of_holders(first));
    }
}

#[test]
fn a_list_of_holders_waits_for_all_that_came_before() {
    for first in [false, true] {
        sync::model::explore(1, 10, move || a_delta_of_before(first));
        sync::model::must_catch("percpu: a list is whole at once", 1, move || a_delta_of_before(first));
    }
}

#[test]
fn the_last_eager_release_is_noticed() {
    for first in [false, true] {
        sync::model::explore(3, 10, move || eager_releases(first));
        sync::model::must_catch_reordering("percpu: no fence before the limit", 3, move || eager_releases(first));
    }
}

#[test]
fn weak_references_are_seen_by_the_review() {
    for first in [false, true] {
        sync::model::explore(2, 50, move || weak_against_review(first));
        sync::model::must_catch("refcache: used weak references are ignored", 2, move || weak_against_review(first));
    }
}
