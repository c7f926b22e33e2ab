//! Some dozens of changes of an array by one thread while another reads it: few enough for an interpreter that knows
//! undefined behaviour (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use epoch::Epochs;
use percpu::Core;
use percpu::testing::{World, owner};
use radix::{INDEX_BITS, RadixArray, free_retired};
use sync::Spin;

fn maintain(epochs: &Epochs, core: &Core) {
    epochs.maintain(core, |core, kind, object| {
        // SAFETY: called by the maintenance of the one `Epochs`.
        assert!(unsafe { free_retired(core, kind, object) });
    });
}

#[test]
fn slots_and_ranges_change_while_another_reads() {
    let world = World::new(2);
    let epochs = Epochs::create(world.arena()).unwrap();
    // SAFETY: used with this arena and its one `Epochs`.
    let array = world.place(unsafe { RadixArray::new() }).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let core = world.core(0);
            for round in 0..2 {
                let guard = epochs.pin(&core);
                for index in [3, 4, 90, 200] {
                    array.lock(&guard, index..index + 1, &Spin).unwrap().set(index, Some(round + 1)).unwrap();
                }
                let slot = array.lock_slot(&guard, 5, &Spin).unwrap();
                slot.change(|| Some(round + 1));
                drop(slot);
                array.lock(&guard, 2..5, &Spin).unwrap().fill(Some(round), |_, _| {});
                array.lock(&guard, 80..250, &Spin).unwrap().fill(None, |_, _| {});
                drop(guard);
                maintain(epochs, &core);
            }
        });
        scope.spawn(|| {
            let core = world.core(1);
            for _ in 0..3 {
                let guard = epochs.pin(&core);
                for index in [3, 5, 90, 200] {
                    assert!(array.get(&guard, index).is_none_or(|value| value <= 2));
                    array.read(&guard, index, &Spin, |value| assert!(value.is_none_or(|value| value <= 2)));
                }
                array.any_from(&guard, 6, &Spin, |_| false);
                array.first_empty(&guard, 0);
                drop(guard);
                maintain(epochs, &core);
            }
        });
    });
    let core = world.core(0);
    let guard = epochs.pin(&core);
    let mut left = Vec::new();
    array.for_each(&guard, |range, value| left.push((range, value)));
    assert_eq!(left.iter().map(|(range, _)| range.end - range.start).sum::<u64>(), 4, "{left:?}");
    array.lock(&guard, 0..1 << INDEX_BITS, &Spin).unwrap().fill(None, |_, _| {});
    drop(guard);
    // SAFETY: the test is over.
    unsafe { array.destroy(&core) };
    for _ in 0..4 {
        maintain(epochs, &core);
        world.for_each_idle_core(owner(1), |idle| maintain(epochs, idle));
    }
    assert_eq!(world.live_bytes(), 0);
}
