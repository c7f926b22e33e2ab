//! What a process leaves that has died.

use core::array;

use percpu::{Arena, Core, CoreIndex, OwnerId};
use scalefs::ScaleFs;
use sync::{Wait, WaitReason};

/// As many as an arena has at most.
const MOST_CORES: usize = percpu::MAX_CORES;

/// Completes or undoes the calls in which an owner of cores has died, and, unless its processes go on, ends these. `heir` is the
/// name under which that is done; returns how many calls it was in.
///
/// # Safety
/// No thread acts as `dead` any more. The heir is at no core.
pub unsafe fn bury(
    (arena, fs): (&Arena, &ScaleFs),
    dead: OwnerId,
    heir: OwnerId,
    ends_processes: bool,
    wait: &impl Wait,
) -> usize {
    let mut cores: [Option<Core<'_>>; MOST_CORES] = array::from_fn(|_| None);
    let mut count = 0;
    for number in 0..arena.core_limit() {
        let is_its = CoreIndex::new(number).and_then(|index| arena.actor_of(index)) == Some(dead);
        // SAFETY: the caller's promise.
        if is_its && let Ok(core) = unsafe { arena.take_over(number, dead, heir) } {
            cores[count] = Some(core);
            count += 1;
        }
    }
    for core in cores.iter().flatten() {
        // SAFETY: taken over just now.
        unsafe { fs.repair_taken_over(core, wait) };
    }
    if ends_processes {
        let own = if count == 0 { Some(lease(arena, heir, wait)) } else { None };
        let acting = own.as_ref().or(cores[0].as_ref()).expect("one of them is there");
        let mut taken_over: [&Core<'_>; MOST_CORES] = [acting; MOST_CORES];
        for (place, core) in taken_over.iter_mut().zip(cores.iter().flatten()) {
            *place = core;
        }
        // SAFETY: the caller's promise; all of its cores have been repaired.
        unsafe { fs.end_processes_of(acting, dead, &taken_over[..count], wait) };
    }
    count
}

fn lease<'a>(arena: &'a Arena, owner: OwnerId, wait: &impl Wait) -> Core<'a> {
    let mut round = 0;
    loop {
        if let Ok(core) = arena.lease(0, owner) {
            return core;
        }
        wait.wait(WaitReason::Operation, round);
        round = round.saturating_add(1);
    }
}
