//! Some dozens of raises, reads and resets by two threads: few enough for an interpreter that knows undefined behaviour
//! (`make miri`).
#![cfg(not(any(loom, shuttle)))]

use maxima::{Maxima, MaximaConfig, Maximum};
use percpu::testing::World;
use sync::Spin;

#[test]
fn what_is_raised_is_read_and_what_is_reset_is_lower() {
    let world = World::new(2);
    let maxima: &Maxima<2> = Maxima::create(world.arena(), MaximaConfig { slots_per_core: 2, seed: 1 }).unwrap();
    let objects: Vec<_> = (0..4).map(|_| world.place(Maximum::new([0, 0])).unwrap()).collect();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (world, objects) = (&world, &objects);
            scope.spawn(move || {
                let core = world.core(number);
                for round in 1..=12 {
                    let object = objects[round as usize % 4];
                    // SAFETY: the objects live in the arena forever.
                    unsafe { maxima.raise(&core, object, [round, round + number as u64], &Spin) };
                    let [first, second] = maxima.read(object, &Spin);
                    assert!(first >= round && second >= round);
                    if round % 6 == 0 {
                        maxima.flush(&core, &Spin);
                    }
                }
            });
        }
    });
    let core = world.core(0);
    assert_eq!(maxima.read(objects[0], &Spin), [12, 13]);
    let (reset, before) = maxima.reset(&core, objects[0], &Spin);
    assert_eq!(before, [12, 13]);
    reset.finish([3, 4]);
    assert_eq!(maxima.read(objects[0], &Spin), [3, 4]);
}
