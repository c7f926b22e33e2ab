//! Deaths in raising and in flushes: nothing that was raised is lost, and no one writes past the list of slots in use,
//! in caches of the default size too.
#![cfg(all(shuttle, unix))]

use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::testing::{World, die, die_everywhere};
use percpu::{ArenaConfig, Core};
use sync::Spin;
use sync::mutant::must_be_caught;

/// The core of the process that dies; what follows its list of slots is the list of the next core.
const DEAD: usize = 1;
/// As a file system has them.
const DEFAULT_SLOTS: usize = 1024;

fn raise(maxima: &Maxima<2>, core: &Core, objects: &[&Maximum<2>], words: [u64; 2]) {
    for object in objects {
        // SAFETY: objects live as long as the world.
        unsafe { maxima.raise(core, object, words, &Spin) };
    }
}

/// Fills all slots of three cores, lets the middle one die in a flush, and fills them again.
fn fill_and_flush(slots_per_core: usize, access: u64) -> bool {
    let world = World::with(16 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
    let maxima = Maxima::create(world.arena(), MaximaConfig { slots_per_core, seed: 0x9e37_79b9_7f4a_7c15 }).unwrap();
    let objects: Vec<_> = (0..8 * slots_per_core).map(|_| world.place(Maximum::new([0; 2])).unwrap()).collect();
    let others = [world.core(0), world.core(2)];
    raise(maxima, &world.core(DEAD), &objects, [1, 7]);
    let Some(heir) = die(&world, DEAD, access, |core| maxima.flush(core, &Spin)) else {
        return false;
    };
    // SAFETY: taken over from a dead process, which reset nothing.
    unsafe { maxima.repair_taken_over(&heir) };
    raise(maxima, &others[0], &objects, [2, 0]);
    raise(maxima, &others[1], &objects, [3, 0]);
    raise(maxima, &heir, &objects, [1, 1]);
    [&others[0], &others[1], &heir].into_iter().for_each(|core| maxima.flush(core, &Spin));
    let wrong = objects.iter().filter(|object| object.applied() != [3, 7]).count();
    assert_eq!(wrong, 0, "access {access}: so many objects lost what was raised");
    true
}

#[test]
fn the_list_of_slots_stays_whole_wherever_a_process_dies() {
    die_everywhere(|access| fill_and_flush(64, access));
    must_be_caught("maxima: an heir takes the list of slots as it is", || {
        die_everywhere(|access| fill_and_flush(64, access))
    });
}

#[test]
fn the_list_of_slots_stays_whole_in_caches_of_the_default_size() {
    let some = || (0..).map(|step| 97 * step).take_while(|access| fill_and_flush(DEFAULT_SLOTS, *access)).count();
    let deaths = some();
    assert!(deaths > 40, "{deaths} deaths");
    must_be_caught("maxima: an heir takes the list of slots as it is", some);
}
