//! What a process leaves that has died in calls.

use core::array;

use percpu::{Arena, Core, CoreIndex, OwnerId};
use scalefs::ScaleFs;
use sync::Wait;

/// As many as an arena has at most.
const MOST_CORES: usize = percpu::MAX_CORES;

/// Takes over the cores of an owner that has died, and completes or undoes the calls that it was in. `keep` gets the cores, at each of
/// which `heir` is then.
///
/// # Safety
/// No thread acts as `dead` any more.
pub unsafe fn take_over<'a>(
    (arena, fs): (&'a Arena, &ScaleFs),
    dead: OwnerId,
    heir: OwnerId,
    wait: &impl Wait,
    keep: impl FnMut(Core<'a>),
) {
    let mut cores: [Option<Core<'a>>; MOST_CORES] = array::from_fn(|_| None);
    for (number, place) in cores.iter_mut().enumerate().take(arena.core_limit()) {
        let is_its = CoreIndex::new(number).and_then(|index| arena.actor_of(index)) == Some(dead);
        if is_its {
            // SAFETY: the caller's promise.
            *place = unsafe { arena.take_over(number, dead, heir) }.ok();
        }
    }
    for core in cores.iter().flatten() {
        // SAFETY: taken over just now.
        unsafe { fs.repair_taken_over(core, wait) };
    }
    cores.into_iter().flatten().for_each(keep);
}
