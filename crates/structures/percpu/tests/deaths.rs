//! Deaths in allocations: one that takes the core over gets no object that another has, and nearly all that are free.
#![cfg(all(shuttle, unix))]

use std::collections::BTreeSet;
use std::ptr::NonNull;

use percpu::testing::{World, die, die_everywhere};
use percpu::{ArenaConfig, Core, SizeClass};
use sync::mutant::must_be_caught;

/// Eight of them are a batch, two a chunk.
const CLASS: SizeClass = SizeClass::of_type::<[u8; 2048]>();
const BATCH: usize = 8;
/// What the process that dies has at most.
const MOST: usize = 40;
const HELD: usize = 5;
/// What the other process gives back on the heir's core, first of all.
const LENT: usize = 4 * BATCH;
/// What a core may keep of a size: less than a batch, a batch, and what is left of a chunk.
const KEPT: usize = 2 * BATCH + 1;

fn take(core: &Core) -> Option<NonNull<u8>> {
    core.allocate(CLASS).ok()
}

/// All objects that a core gets until there are none.
fn drain(core: &Core) -> Vec<usize> {
    std::iter::from_fn(|| take(core)).map(|object| object.as_ptr() as usize).collect()
}

/// Takes objects and gives them back, with a word at their start that leads to `trap` if it is taken for a link.
fn work(core: &Core, trap: NonNull<u8>) {
    for round in 0..3 {
        let objects: Vec<_> = (0..MOST - round).map(|_| take(core).expect("memory")).collect();
        for object in objects {
            // SAFETY: allocated above, and used no more.
            unsafe {
                object.cast::<NonNull<u8>>().write(trap);
                core.free(object, CLASS);
            }
        }
        core.arena().maintain(core);
    }
}

/// How many objects a death costs; `None` if the process came to its end.
fn lost(access: u64) -> Option<usize> {
    let config = ArenaConfig { core_count: 2, chunk_bytes: 4096 };
    let world = World::with(256 << 10, config);
    let core = world.core(0);
    let held: BTreeSet<usize> = (0..HELD).map(|_| take(&core).unwrap().as_ptr() as usize).collect();
    let trap = NonNull::new(*held.first().unwrap() as *mut u8).unwrap();
    // SAFETY: held.
    unsafe { trap.cast::<usize>().write(0) };
    let lent: Vec<_> = (0..LENT).map(|_| take(&core).unwrap()).collect();
    let heir = die(&world, 1, access, |core| work(core, trap))?;
    // SAFETY: allocated above, and used no more.
    lent.into_iter().for_each(|object| unsafe { heir.free(object, CLASS) });
    let of_others = drain(&core);
    let kept = drain(&heir);
    assert!(kept.len() <= KEPT, "access {access}: {} objects that are free, and only the heir gets", kept.len());
    let mut seen = held;
    for object in [of_others, kept].concat() {
        assert!(seen.insert(object), "{object:#x} was given out twice");
    }
    Some(everything() - seen.len())
}

/// All objects that there are.
fn everything() -> usize {
    let world = World::with(256 << 10, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    [0, 1].map(|number| drain(&world.core(number)).len()).iter().sum()
}

fn all_deaths() -> u64 {
    // What it had, a batch on its way, and what a magazine of the other core keeps.
    die_everywhere(|access| {
        let lost = lost(access);
        assert!(lost.is_none_or(|lost| lost <= MOST + 2 * BATCH), "access {access}: {lost:?} objects were lost");
        lost.is_some()
    })
}

#[test]
fn no_object_is_given_out_twice_wherever_a_process_dies() {
    all_deaths();
    for mutant in ["percpu: the head comes before the link", "percpu: an heir takes the lists as they are"] {
        must_be_caught(mutant, all_deaths);
    }
}
