//! Deaths in changes of counts and in maintenance: no count is ever too low, one may be too high by a delta, and no one
//! writes past the list of slots in use, in caches of the default size too.
#![cfg(all(shuttle, unix))]

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use commit::Decisions;
use percpu::testing::{World, die, die_everywhere};
use percpu::{ArenaConfig, Core};
use refcache::{Counted, CountedKind, RefCache, RefCacheConfig};
use sync::mutant::must_be_caught;

const CORES: usize = 3;
/// The core of the process that dies; what follows its list of slots is the list of the next core.
const DEAD: usize = 1;
const FIRST_COUNT: i64 = 10;

struct Counts<'w> {
    decisions: &'w Decisions,
    cache: &'w RefCache,
    objects: Vec<&'w Counted>,
}

impl Counts<'_> {
    fn new(world: &World, slots_per_core: usize, objects: usize) -> Counts<'_> {
        let decisions = Decisions::create(world.arena()).unwrap();
        let config = RefCacheConfig { slots_per_core, ..RefCacheConfig::default() };
        let cache = RefCache::create(world.arena(), decisions, config).unwrap();
        let object = |_| world.place(Counted::new(FIRST_COUNT, CountedKind(1))).unwrap();
        Counts { decisions, cache, objects: (0..objects).map(object).collect() }
    }

    fn change(&self, core: &Core, object: usize, delta: i64) {
        // SAFETY: objects live as long as the world.
        unsafe { self.cache.change(core, self.objects[object], delta) };
    }

    fn maintain(&self, core: &Core) {
        // SAFETY: objects live as long as the world.
        unsafe { self.cache.maintain(core, |_, _| panic!("a count became zero")) };
    }

    fn repair(&self, heir: &Core) {
        // SAFETY: taken over from a dead process.
        unsafe { self.cache.repair_taken_over(heir) };
    }

    fn applied(&self) -> Vec<i64> {
        self.objects.iter().map(|object| object.applied()).collect()
    }
}

/// Fills all slots of three cores, lets the middle one die in a flush, and fills them again.
fn fill_and_flush(slots_per_core: usize, access: u64) -> bool {
    let world = World::with(16 << 20, ArenaConfig { core_count: CORES, chunk_bytes: 4096 });
    let counts = Counts::new(&world, slots_per_core, 8 * slots_per_core);
    let fill = |core: &Core, delta| (0..counts.objects.len()).for_each(|object| counts.change(core, object, delta));
    let others = [world.core(0), world.core(2)];
    fill(&world.core(DEAD), 1);
    let Some(heir) = die(&world, DEAD, access, |core| counts.maintain(core)) else {
        return false;
    };
    counts.repair(&heir);
    others.iter().for_each(|core| fill(core, 1));
    fill(&heir, 1);
    [&others[0], &others[1], &heir].into_iter().for_each(|core| counts.maintain(core));
    let errors =
        counts.applied().iter().map(|count| count - FIRST_COUNT - 4).filter(|error| *error != 0).collect::<Vec<_>>();
    assert!(errors.is_empty() || errors == [1], "access {access}: counts err by {errors:?}");
    true
}

#[test]
fn the_list_of_slots_stays_whole_wherever_a_process_dies() {
    die_everywhere(|access| fill_and_flush(64, access));
    must_be_caught("refcache: an heir takes the list of slots as it is", || {
        die_everywhere(|access| fill_and_flush(64, access))
    });
}

#[test]
fn the_list_of_slots_stays_whole_in_caches_of_the_default_size() {
    let slots = RefCacheConfig::default().slots_per_core;
    let deaths = (0..).map(|step| 97 * step).take_while(|access| fill_and_flush(slots, *access)).count();
    assert!(deaths > 40, "{deaths} deaths");
    must_be_caught("refcache: an heir takes the list of slots as it is", || {
        (0..).map(|step| 97 * step).take_while(|access| fill_and_flush(slots, *access)).count()
    });
}

/// What a process does: changes of few objects in two slots, some of them under operations.
#[derive(Clone, Copy)]
enum Step {
    Change(usize, i64),
    Committed(usize, i64),
    Aborted(usize, i64),
    Maintain,
}

use Step::{Aborted, Change, Committed, Maintain};

const STEPS: [Step; 14] = [
    Change(0, 1),
    Change(1, -1),
    Committed(2, 1),
    Change(3, 2),
    Maintain,
    Committed(3, -2),
    Aborted(0, 1),
    Aborted(1, -1),
    Change(1, 1),
    Committed(2, -1),
    Maintain,
    Change(0, -1),
    Committed(0, 1),
    Maintain,
];
/// The largest delta that one slot can hold on the way.
const MOST_DELTA: i64 = 2;

impl Step {
    fn run(self, counts: &Counts, core: &Core) {
        let under = |object: usize, delta, commits| {
            let operation = counts.decisions.begin_firm(core);
            // SAFETY: objects live as long as the world; each count is settled before the next.
            unsafe {
                counts.cache.prepare(core, counts.objects[object], delta, operation.tag());
                if commits {
                    operation.commit().unwrap();
                } else {
                    operation.abort();
                }
                counts.cache.settle(core, counts.objects[object], commits);
            }
        };
        match self {
            Change(object, delta) => counts.change(core, object, delta),
            Committed(object, delta) => under(object, delta, true),
            Aborted(object, delta) => under(object, delta, false),
            Maintain => counts.maintain(core),
        }
    }

    fn apply(self, expected: &mut [i64]) {
        if let Change(object, delta) | Committed(object, delta) = self {
            expected[object] += delta;
        }
    }
}

fn counts_are_bounded(access: u64) -> bool {
    let world = World::new(CORES);
    let counts = Counts::new(&world, 2, 4);
    let done = world.place(AtomicUsize::new(0)).unwrap();
    let other = world.core(0);
    counts.change(&other, 2, 1);
    let Some(heir) = die(&world, DEAD, access, |core| {
        for step in STEPS {
            step.run(&counts, core);
            done.fetch_add(1, Ordering::Relaxed);
        }
    }) else {
        return false;
    };
    counts.repair(&heir);
    let mut before = [FIRST_COUNT, FIRST_COUNT, FIRST_COUNT + 1, FIRST_COUNT];
    let done = done.load(Ordering::Relaxed);
    STEPS[..done].iter().for_each(|step| step.apply(&mut before));
    let mut after = before;
    STEPS[done..].iter().take(1).for_each(|step| step.apply(&mut after));
    for _ in 0..3 {
        [&other, &heir].into_iter().for_each(|core| counts.maintain(core));
    }
    let mut excess = 0;
    for (object, count) in counts.applied().into_iter().enumerate() {
        let (least, most) = (before[object].min(after[object]), before[object].max(after[object]));
        assert!(count >= least, "access {access}: count {object} is {count}, and {least} are there");
        excess += (count - most).max(0);
    }
    assert!(excess <= MOST_DELTA, "access {access}: {excess} too many");
    true
}

#[test]
fn a_count_is_never_too_low_and_too_high_by_a_delta_at_most_wherever_a_process_dies() {
    die_everywhere(counts_are_bounded);
}

/// Objects of one reference, which are given up; each knows how often it was freed.
fn all_are_freed(access: u64) -> bool {
    const OBJECTS: usize = 8;
    let world = World::new(2);
    let decisions = Decisions::create(world.arena()).unwrap();
    let cache = RefCache::create(world.arena(), decisions, RefCacheConfig { slots_per_core: 2, seed: 1 }).unwrap();
    let object = |_| world.place((Counted::new(1, CountedKind(1)), AtomicI64::new(0))).unwrap();
    let objects: Vec<&(Counted, AtomicI64)> = (0..OBJECTS).map(object).collect();
    let maintain = |core: &Core| {
        // SAFETY: a test's core holds no pointers between its calls.
        unsafe {
            cache.maintain(core, |_, dead| {
                let freed = objects.iter().find(|(counted, _)| std::ptr::eq(counted, dead.as_ptr()));
                freed.expect("an object").1.fetch_add(1, Ordering::Relaxed);
            })
        };
    };
    let give_up = |core: &Core, objects: &[&(Counted, AtomicI64)]| {
        // SAFETY: objects live as long as the world.
        objects.iter().for_each(|(counted, _)| unsafe { cache.change(core, counted, -1) });
    };
    let core = world.core(0);
    let done = world.place(AtomicUsize::new(0)).unwrap();
    let Some(heir) = die(&world, 1, access, |core| {
        give_up(core, &objects[..OBJECTS / 2]);
        done.fetch_add(1, Ordering::Relaxed);
        (0..4).for_each(|_| maintain(core));
    }) else {
        return false;
    };
    // SAFETY: taken over from a dead process.
    unsafe { cache.repair_taken_over(&heir) };
    give_up(&heir, &objects[OBJECTS / 2..]);
    for _ in 0..5 {
        [&heir, &core].into_iter().for_each(maintain);
    }
    let freed: Vec<i64> = objects.iter().map(|object| object.1.load(Ordering::Relaxed)).collect();
    assert!(freed.iter().all(|times| *times <= 1), "freed twice: {freed:?}");
    assert!(freed[OBJECTS / 2..].iter().all(|times| *times == 1), "what the heir gave up is not freed: {freed:?}");
    if done.load(Ordering::Relaxed) == 1 {
        let kept = freed.iter().filter(|times| **times == 0).count();
        assert!(kept <= 1, "access {access}: kept for ever: {freed:?}");
    }
    true
}

#[test]
fn all_but_one_object_are_freed_wherever_a_process_dies() {
    die_everywhere(all_are_freed);
    must_be_caught("refcache: the tail comes before the link", || die_everywhere(all_are_freed));
}
