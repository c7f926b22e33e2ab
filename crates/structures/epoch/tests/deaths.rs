//! Deaths in retiring and in maintenance: what was retired is freed once, by the process or by its heir, but for one object.
#![cfg(all(shuttle, unix))]

use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use epoch::{Epochs, Retired, RetiredKind};
use percpu::Core;
use percpu::testing::{World, die, die_everywhere};
use std::ptr::NonNull;
use sync::mutant::must_be_caught;

const KIND: RetiredKind = RetiredKind(3);
const OBJECTS: usize = 12;

struct Object {
    link: Retired,
    /// How often it was freed. No access before which a process dies.
    freed: AtomicUsize,
}

fn maintain(epochs: &Epochs, core: &Core) {
    epochs.maintain(core, |_, kind, link| {
        assert_eq!(kind, KIND);
        // SAFETY: links of objects that live as long as the world.
        let object = unsafe { link.byte_sub(offset_of!(Object, link)).cast::<Object>().as_ref() };
        object.freed.fetch_add(1, Ordering::Relaxed);
    });
}

/// Retires objects in three calls, with maintenance between them; counts those that were retired.
fn work(epochs: &Epochs, core: &Core, objects: &[&Object], retired: &AtomicUsize) {
    for part in objects.chunks(OBJECTS / 3) {
        let guard = epochs.pin(core);
        for object in part {
            // SAFETY: no one has ever reached the object, and it is retired once.
            unsafe { guard.retire(NonNull::from(&object.link), KIND) };
            retired.fetch_add(1, Ordering::Relaxed);
        }
        drop(guard);
        // Twice in one epoch, while the other core does not move on.
        maintain(epochs, core);
        maintain(epochs, core);
    }
}

fn survives(access: u64) -> bool {
    let world = World::new(2);
    let epochs = Epochs::create(world.arena()).unwrap();
    let new = || Object { link: Retired::new(), freed: AtomicUsize::new(0) };
    let objects: Vec<&Object> = (0..OBJECTS).map(|_| world.place(new()).unwrap()).collect();
    let retired = world.place(AtomicUsize::new(0)).unwrap();
    let core = world.core(0);
    let Some(heir) = die(&world, 1, access, |core| work(epochs, core, &objects, retired)) else {
        return false;
    };
    // SAFETY: the core is taken over, and its guards were the process's.
    unsafe { epochs.unpin_taken_over(&heir) };
    for _ in 0..4 {
        [&heir, &core].into_iter().for_each(|core| maintain(epochs, core));
    }
    let freed: Vec<usize> = objects.iter().map(|object| object.freed.load(Ordering::Relaxed)).collect();
    assert!(freed.iter().all(|times| *times <= 1), "freed twice: {freed:?}");
    let retired = retired.load(Ordering::Relaxed);
    let lost = freed[..retired].iter().filter(|times| **times == 0).count();
    assert!(lost <= 1, "of {retired} objects {lost} are lost: {freed:?}");
    assert!(freed[retired..].iter().skip(1).all(|times| *times == 0), "freed before it was retired: {freed:?}");
    true
}

#[test]
fn what_is_retired_is_freed_once_wherever_a_process_dies() {
    die_everywhere(survives);
    for mutant in ["epoch: the head comes before the link", "epoch: an heir takes the lists as they are"] {
        must_be_caught(mutant, || die_everywhere(survives));
    }
}
