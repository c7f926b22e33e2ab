//! Memory that was full of objects of one class serves any other once they are given back: pages whose objects are all free go
//! back to the arena. No one gets memory that another has, whatever the classes.
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::ptr::NonNull;

use percpu::testing::{World, owner};
use percpu::{ArenaConfig, ArenaObject, Core, ObjectKind, SizeClass, object_kind};

const BYTES: usize = 512 << 10;

struct Large([u64; 1024]);
const LARGE: ObjectKind = object_kind!(3, Large as "large" { "words" = 0 });
// SAFETY: no other type of this test has the kind.
unsafe impl ArenaObject for Large {
    const KIND: ObjectKind = LARGE;
}

struct Small([u64; 16]);
const SMALL: ObjectKind = object_kind!(4, Small as "small" { "words" = 0 });
// SAFETY: as above.
unsafe impl ArenaObject for Small {
    const KIND: ObjectKind = SMALL;
}

/// From a line to the largest, with and without a kind.
const CLASSES: [SizeClass; 6] = [
    SizeClass::of_type::<[u8; 64]>(),
    Small::CLASS,
    SizeClass::of_type::<[u8; 2048]>(),
    SizeClass::of_type::<[u8; 4096]>(),
    Large::CLASS,
    SizeClass::of_type::<[u8; 64 << 10]>(),
];

/// What is in use: by its start, its end.
#[derive(Default)]
struct InUse(BTreeMap<usize, usize>);

impl InUse {
    fn add(&mut self, object: NonNull<u8>, class: SizeClass) {
        let (start, end) = (object.as_ptr() as usize, object.as_ptr() as usize + class.object_bytes());
        let before = self.0.range(..end).next_back();
        assert!(before.is_none_or(|(_, before)| *before <= start), "{start:#x} is had by two");
        self.0.insert(start, end);
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    fn remove(&mut self, object: NonNull<u8>) {
        self.0.remove(&(object.as_ptr() as usize)).expect("in use");
    }
}

/// All of a class that a core gets, written to their ends.
fn fill(core: &Core<'_>, class: SizeClass, in_use: &mut InUse) -> Vec<NonNull<u8>> {
    std::iter::from_fn(|| core.allocate(class).ok())
        .inspect(|object| {
            in_use.add(*object, class);
            // SAFETY: the object's bytes.
            unsafe { object.write_bytes(0xab, class.object_bytes()) };
        })
        .collect()
}

fn give_back(core: &Core<'_>, class: SizeClass, objects: Vec<NonNull<u8>>, in_use: &mut InUse) {
    for object in objects {
        in_use.remove(object);
        // SAFETY: allocated in this class, and used no more.
        unsafe { core.free(object, class) };
    }
}

/// What a core gets of a class, and gives back; it asks again after maintenance, its own and idle cores', as calls do.
fn bytes_of(world: &World, core: &Core<'_>, class: SizeClass) -> usize {
    let (mut in_use, mut objects) = (InUse::default(), Vec::new());
    for _ in 0..64 {
        objects.extend(fill(core, class, &mut in_use));
        world.maintain(core);
        world.for_each_idle_core(owner(1), |idle| world.maintain(idle));
    }
    let bytes = in_use.bytes();
    give_back(core, class, objects, &mut in_use);
    bytes
}

/// Each class gets what the first one got, less what is rounded off, in any order and no matter who gives it back.
fn any_class_gets_all() {
    let world = World::with(BYTES, ArenaConfig { core_count: 3, chunk_bytes: 16 << 10 });
    let (first, second) = (world.core(0), world.core(1));
    let most = bytes_of(&world, &first, CLASSES[0]);
    assert!(most > BYTES * 9 / 10, "{most}");
    for round in 0..3 {
        for class in CLASSES.into_iter().cycle().skip(round).take(CLASSES.len()) {
            // At the end of the arena less than such an object may be left.
            let rounded = most - class.object_bytes().max(4096) - 4096;
            let of_first = bytes_of(&world, &first, class);
            assert!(of_first >= rounded, "{of_first} of {most} for {class:?} in round {round}");
        }
    }
    // What the second one has is out of reach of the first, as long as it is there.
    let of_second = bytes_of(&world, &second, CLASSES[3]);
    assert!(of_second >= most - 64 * 1024, "{of_second}");
    drop(second);
    let again = bytes_of(&world, &first, Small::CLASS);
    assert!(again >= most - 2 * 4096, "{again} of {most}");
    assert_eq!(world.live_bytes(), 0);
}

/// What is in use stays where it is, whatever becomes of what is next to it.
fn what_is_in_use_stays() {
    let world = World::with(BYTES, ArenaConfig { core_count: 1, chunk_bytes: 16 << 10 });
    let core = world.core(0);
    let mut in_use = InUse::default();
    let mut objects = fill(&core, Small::CLASS, &mut in_use);
    // One of each seven stays: of a page of 32 objects, four or five. So no page is free.
    let (kept, given): (Vec<_>, Vec<_>) = objects.drain(..).enumerate().partition(|(number, _)| number % 7 == 0);
    let kept: Vec<_> = kept.into_iter().map(|(_, object)| object).collect();
    let count = given.len();
    give_back(&core, Small::CLASS, given.into_iter().map(|(_, object)| object).collect(), &mut in_use);
    assert!(core.allocate(CLASSES[2]).is_err());
    world.maintain(&core);
    assert!(core.allocate(CLASSES[2]).is_err());
    assert_eq!(world.free_page_count(), 0);
    // They serve their own class as before.
    assert_eq!(fill(&core, Small::CLASS, &mut in_use).len(), count);
    for object in kept {
        // SAFETY: in use, and written when it was allocated.
        let words = unsafe { object.cast::<[u64; 16]>().read() };
        assert!(words.iter().all(|word| *word == 0xabab_abab_abab_abab));
    }
}

#[cfg(not(shuttle))]
#[test]
fn any_class_gets_what_another_has_given_back() {
    any_class_gets_all();
}

#[cfg(not(shuttle))]
#[test]
fn pages_with_an_object_in_use_stay() {
    what_is_in_use_stays();
}

/// A full arena of small objects, of which the first core has given back this many of the last ones.
fn full_but(count: usize) -> (World, Vec<NonNull<u8>>) {
    let world = World::with(256 << 10, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    let first = world.core(0);
    let (mut in_use, class) = (InUse::default(), Small::CLASS);
    let mut objects = fill(&first, class, &mut in_use);
    give_back(&first, class, objects.split_off(objects.len() - count), &mut in_use);
    first.allocate(CLASSES[5]).unwrap_err();
    drop(first);
    (world, objects)
}

/// What is left of a class goes to no magazine that has no class yet: it would not be counted, and no heir would mend it.
#[cfg(not(shuttle))]
#[test]
fn what_a_core_gets_of_a_class_that_it_has_collected_is_counted() {
    // Fewer than a batch.
    let (world, objects) = full_but(3);
    let (first, second) = (world.core(0), world.core(1));
    // The second one collects, of nothing; the first one gives up what it has, and the second one collects that.
    [&second, &first].into_iter().for_each(|core| world.maintain(core));
    for _ in 0..16 {
        first.allocate(CLASSES[5]).unwrap_err();
        world.maintain(&second);
    }
    let bytes = |count: usize| (count * Small::CLASS.object_bytes()) as i64;
    assert_eq!(world.live_bytes(), bytes(objects.len()));
    second.allocate(Small::CLASS).unwrap();
    assert_eq!(world.live_objects(Small::CLASS), objects.len() as i64 + 1);
    assert_eq!(world.live_bytes(), bytes(objects.len() + 1));
}

#[cfg(shuttle)]
mod scheduled {
    use std::sync::Mutex;

    use history::threads::lock;
    use history::{explore, overtake, play, rounds};
    use percpu::testing::{die, die_everywhere};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use sync::mutant::must_be_caught;

    use super::*;

    const CORES: usize = 3;
    const FEW: usize = 14 << 12;
    const OF_PLANS: [SizeClass; 3] = [SizeClass::of_type::<[u8; 16 << 10]>(), CLASSES[3], Large::CLASS];

    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Allocate(usize),
        FreeLast,
        FreeAll,
        Maintain,
        MaintainIdle,
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            8 => (0..OF_PLANS.len()).prop_map(Operation::Allocate),
            3 => Just(Operation::FreeLast),
            2 => Just(Operation::FreeAll),
            3 => Just(Operation::Maintain),
            1 => Just(Operation::MaintainIdle),
        ]
    }

    /// What each thread does.
    type Plan = Vec<Vec<Operation>>;

    fn plans(number: u64) -> impl Strategy<Value = Plan> {
        vec(vec(any_operation(), 30), 2 + number as usize % 2)
    }

    fn check(_: u64, plan: &Plan) {
        // The head takes what it takes; beyond it there is memory for a few pages.
        let config = ArenaConfig { core_count: CORES, chunk_bytes: 4096 };
        // Free pages stand in two words of the map.
        let world = &World::with((57 << 12) + FEW, config);
        let before = world.untouched_bytes() - FEW;
        world.allocate_permanent(std::alloc::Layout::from_size_align(before / 64 * 64, 64).unwrap()).unwrap();
        let in_use = &Mutex::new(InUse::default());
        play(plan, |thread| {
            let (core, mut mine) = (world.core(thread), Vec::new());
            let free = move |core: &Core<'_>, (object, class): (usize, SizeClass)| {
                let object = NonNull::new(object as *mut u8).unwrap();
                lock(in_use).remove(object);
                // SAFETY: allocated in this class, and used no more.
                unsafe { core.free(object, class) };
            };
            move |operation: &Operation| match *operation {
                Operation::Allocate(class) => {
                    if let Ok(object) = core.allocate(OF_PLANS[class]) {
                        lock(in_use).add(object, OF_PLANS[class]);
                        mine.push((object.as_ptr() as usize, OF_PLANS[class]));
                    }
                }
                Operation::FreeLast => mine.pop().into_iter().for_each(|object| free(&core, object)),
                Operation::FreeAll => mine.drain(..).for_each(|object| free(&core, object)),
                Operation::Maintain => world.maintain(&core),
                Operation::MaintainIdle => {
                    world.for_each_idle_core(owner(1), |idle| world.maintain(idle));
                }
            }
        });
        // All that is not in use can be had by one core for one class.
        let left = std::mem::take(&mut lock(in_use).0);
        let core = world.core(0);
        let mut got = InUse(left.clone());
        for _ in 0..64 {
            fill(&core, CLASSES[3], &mut got);
            world.maintain(&core);
            world.for_each_idle_core(owner(1), |idle| world.maintain(idle));
        }
        let pages = |in_use: &BTreeMap<usize, usize>| {
            in_use
                .iter()
                .flat_map(|(start, end)| start / 4096..end.div_ceil(4096))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(pages(&got.0).len(), FEW / 4096, "pages that can be had beside those in use");
    }

    #[test]
    fn no_memory_is_lost_or_had_by_two() {
        explore(rounds(300), plans, check);
    }

    #[test]
    fn so_it_is_where_a_thread_is_overtaken_at_any_access() {
        overtake(history::plans(5), plans, check);
    }

    /// Fills memory with one class, gives it back, and fills it with another.
    fn work(core: &Core<'_>) {
        for class in [CLASSES[2], Large::CLASS, CLASSES[2]] {
            let mut in_use = InUse::default();
            for _ in 0..2 {
                let objects = fill(core, class, &mut in_use);
                give_back(core, class, objects, &mut in_use);
                core.arena().maintain(core);
            }
        }
    }

    /// How many pages a death costs; `None` if the process came to its end.
    fn lost(access: u64) -> Option<usize> {
        let world = World::with(48 << 10, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
        let heir = die(&world, 1, access, work)?;
        let mut in_use = InUse::default();
        for _ in 0..64 {
            fill(&heir, CLASSES[3], &mut in_use);
            world.maintain(&heir);
        }
        Some(in_use.bytes() / 4096)
    }

    /// Memory that a process had taken out when it died is lost; nothing is given out twice, and what the others had stays.
    #[test]
    fn nothing_is_given_out_twice_wherever_a_process_dies() {
        die_everywhere(|access| lost(access).is_some());
    }

    /// How many accesses to shared memory the maintenance of a core makes that hears of one request more, after some in vain.
    fn accesses_after(in_vain: usize) -> u64 {
        die_everywhere(|access| {
            let world = World::with(256 << 10, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
            let first = world.core(0);
            let mut in_use = InUse::default();
            let objects = fill(&first, Small::CLASS, &mut in_use);
            // One of each page stays.
            let given = objects.into_iter().enumerate().filter(|(number, _)| number % 32 != 5);
            give_back(&first, Small::CLASS, given.map(|(_, object)| object).collect(), &mut in_use);
            for _ in 0..in_vain {
                first.allocate(CLASSES[5]).unwrap_err();
                world.maintain(&first);
            }
            first.allocate(CLASSES[5]).unwrap_err();
            die(&world, 1, access, |core| core.arena().maintain(core)).is_some()
        })
    }

    /// Where nothing can be had, not each call sorts all that is free: it took seconds on an instance that was full.
    #[test]
    fn what_was_in_vain_is_left_alone_for_a_while() {
        let (first, second) = (accesses_after(0), accesses_after(1));
        assert!(second < first, "{second} accesses after a collection in vain, {first} for the collection");
    }

    /// Who takes over a core that died with what it had collected can use that.
    #[test]
    fn who_dies_collecting_a_class_that_it_never_used_leaves_whole_lists() {
        die_everywhere(|access| {
            let (world, _objects) = full_but(3);
            let first = world.core(0);
            world.maintain(&world.core(1));
            world.maintain(&first);
            first.allocate(CLASSES[5]).unwrap_err();
            let Some(heir) = die(&world, 1, access, |core| core.arena().maintain(core)) else { return false };
            assert!(fill(&heir, Small::CLASS, &mut InUse::default()).len() <= 3);
            true
        });
    }

    #[test]
    fn planted_faults_are_found() {
        must_be_caught("percpu: memory of one class never serves another", any_class_gets_all);
        must_be_caught("percpu: memory of one class never serves another", || explore(0..200, plans, check));
        must_be_caught("percpu: a page is free with most of its objects", what_is_in_use_stays);
    }
}
