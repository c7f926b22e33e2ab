//! Changes that are marked before they happen: what others read in the meantime, and what is left of them.
#![cfg(not(any(loom, shuttle)))]

use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::testing::{World, owner};
use percpu::{Core, CoreIndex};
use sync::Spin;

fn with_maxima(slots_per_core: usize, test: impl FnOnce(&World, &Maxima<2>)) {
    let world = World::new(4);
    test(&world, Maxima::create(world.arena(), MaximaConfig { slots_per_core, seed: 0x9e37_79b9_7f4a_7c15 }).unwrap());
}

fn raise(maxima: &Maxima<2>, core: &Core, object: &Maximum<2>, words: [u64; 2]) {
    // SAFETY: objects of these tests live in the arena forever.
    unsafe { maxima.raise(core, object, words, &Spin) };
}

#[test]
fn a_marked_change_leaves_the_words_to_those_who_know_that_it_has_not_happened() {
    with_maxima(4, |world, maxima| {
        let (zero, one) = (world.core(0), world.core(1));
        let object = world.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &zero, object, [7, 1]);
        let floor = object.floor().unwrap();
        assert!(object.still_has(&floor));
        let mark = object.mark(&one, &Spin);
        let not_yet = |core: CoreIndex| core == one.index();
        assert!(object.is_open_of(&one) && !object.is_open_of(&zero));
        assert!(!object.still_has(&floor) && object.floor().is_none() && maxima.try_read(object).is_none());
        assert_eq!(object.floor_beside_marks(|_| false), None, "it may have happened");
        assert_eq!(object.floor_beside_marks(not_yet).unwrap().words, [5, 5]);
        raise(maxima, &zero, object, [6, 8]);
        assert_eq!(maxima.read_beside_marks(object, &Spin, not_yet), [7, 8]);
        // SAFETY: the object lives in the arena forever.
        assert_eq!(unsafe { maxima.read_after_fence_beside_marks(&zero, object, &Spin, not_yet) }, [7, 8]);
        assert_eq!(maxima.read_marked(&mark, &Spin), [7, 8]);
        drop(mark);
        assert!(object.still_has(&floor) && !object.is_open_of(&one), "as if there had been none");
        assert_eq!(maxima.try_read(object), Some([7, 8]));
        // SAFETY: as above.
        assert_eq!(unsafe { maxima.read_after_fence(&zero, object, &Spin) }, [7, 8]);
        object.mark(&zero, &Spin).raise([9, 2]);
        assert_eq!((maxima.try_read(object), object.still_has(&floor)), (Some([9, 8]), true));
    });
}

/// What a core had raised since the reset was lost when it raised above a floor of before.
#[test]
fn a_marked_change_becomes_a_reset_and_keeps_what_is_raised_meanwhile() {
    with_maxima(4, |world, maxima| {
        let (zero, one) = (world.core(0), world.core(1));
        let object = world.place(Maximum::new([5, 5])).unwrap();
        raise(maxima, &one, object, [90, 90]);
        let floor = object.floor().unwrap();
        let reset = object.mark(&zero, &Spin).reset();
        assert_eq!((object.floor_beside_marks(|_| true), maxima.try_read(object)), (None, None));
        raise(maxima, &one, object, [3, 0]);
        reset.finish([2, 2]);
        assert_eq!((maxima.try_read(object), object.still_has(&floor)), (Some([3, 2]), false));
        // SAFETY: the object was raised last by this core.
        unsafe { maxima.raise_above(&one, object, &floor, [50, 50]) };
        assert_eq!(maxima.try_read(object), Some([3, 2]), "above a floor of before the reset");
        drop(object.mark(&zero, &Spin).reset());
        assert_eq!(maxima.try_read(object), Some([0, 0]), "to zeros unless it is finished");
    });
}

#[test]
fn a_dead_owners_mark_is_completed_or_ended() {
    for (completes, is_exact, expected) in [(false, false, [7, 5]), (true, false, [7, 9]), (true, true, [4, 9])] {
        with_maxima(4, |world, maxima| {
            let object = world.place(Maximum::new([5, 5])).unwrap();
            raise(maxima, &world.core(1), object, [7, 1]);
            let dead = Box::leak(Box::new(world.core(0)));
            std::mem::forget(object.mark(dead, &Spin));
            // SAFETY: the leaked handle and mark are never used again.
            unsafe {
                let heir = world.take_over(0, owner(1), owner(2)).unwrap();
                assert!(object.is_open_of(&heir));
                if completes {
                    object.complete_taken_over([4, 9], is_exact);
                }
                object.repair_taken_over(&heir, [1, 1]);
                maxima.repair_taken_over(&heir);
                assert!(!object.is_open_of(&heir));
            }
            assert_eq!(maxima.try_read(object), Some(expected));
            drop(object.mark(&world.core(1), &Spin));
        });
    }
}

#[test]
fn objects_are_spread_over_the_slots_and_tools_are_told_where_these_lie() {
    const SLOTS: usize = 64;
    with_maxima(SLOTS, |world, maxima| {
        let core = world.core(0);
        let objects: Vec<&Maximum<2>> = (0..SLOTS / 2).map(|_| world.place(Maximum::new([0, 0])).unwrap()).collect();
        objects.iter().for_each(|object| raise(maxima, &core, object, [1, 1]));
        let evicted = objects.iter().filter(|object| object.applied() == [1, 1]).count();
        assert!(evicted < SLOTS / 4, "{evicted} of {} had to leave their slot", SLOTS / 2);
        let tables: Vec<usize> = maxima.tables().map(|part| part.memory.len()).collect();
        assert_eq!((tables.len(), tables[0]), (2, SLOTS * 64), "the slots of the one core, and what it keeps");
    });
}
