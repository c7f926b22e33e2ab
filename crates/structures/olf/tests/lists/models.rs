//! The smallest clashes in doubly linked lists.

use super::{World, empty_world};

/// Things of these keys stand in the first list, one after the other.
fn world(in_first: &[usize]) -> World {
    let world = empty_world();
    for key in in_first {
        world.queues[0].push_back(&world.last, world.things[*key].clone()).unwrap();
    }
    world
}

impl World {
    /// What a list holds in the end, forwards; it is the same backwards.
    fn queue(&self, list: usize) -> Vec<u32> {
        let keys = self.queues[list].fold(&self.last, Vec::new, |keys, thing| keys.push(thing.key));
        let mut backwards: Vec<u32> =
            std::iter::from_fn(|| self.queues[list].pop_back(&self.last)).map(|thing| thing.key).collect();
        backwards.reverse();
        assert_eq!(keys, backwards, "forwards and backwards");
        keys
    }
}

/// The only item leaves at both ends: one of them has it.
fn pops_at_both_ends(first: bool) {
    let (one, two, world) = world(&[0]).play(
        first,
        |world, here| world.queues[0].pop_front(here).is_some(),
        |world, here| world.queues[0].pop_back(here).is_some(),
    );
    assert!(one != two, "front: {one}, back: {two}");
    assert!(world.queue(0).is_empty());
}

/// The only item leaves while another one comes after it.
fn pop_and_push(first: bool) {
    let (popped, (), world) = world(&[0]).play(
        first,
        |world, here| world.queues[0].pop_front(here).map(|thing| thing.key),
        |world, here| world.queues[0].push_back(here, world.things[1].clone()).unwrap(),
    );
    assert_eq!((popped, world.queue(0)), (Some(0), vec![1]));
}

/// Two neighbours leave.
fn removals_of_neighbours(first: bool) {
    let (one, two, world) = world(&[0, 1, 2]).play(
        first,
        |world, here| world.queues[0].remove(here, &world.things[0]).is_some(),
        |world, here| world.queues[0].remove(here, &world.things[1]).is_some(),
    );
    assert!(one && two);
    assert_eq!(world.queue(0), [2]);
}

/// One item is moved to another list and taken out: one of them has it.
fn move_and_remove(first: bool) {
    let (moved, removed, world) = world(&[0]).play(
        first,
        |world, here| world.queues[0].move_to_back(&world.queues[1], here, &world.things[0]).is_ok(),
        |world, here| world.queues[0].remove(here, &world.things[0]).is_some(),
    );
    assert!(moved != removed, "moved: {moved}, removed: {removed}");
    assert_eq!((world.queue(0).len(), world.queue(1).len()), (0, usize::from(moved)));
}

/// A move, and a reader of both words of the item's place: it never is in none, and never in both.
fn move_and_look(first: bool, second_list_first: bool) {
    let (_, [one, two], _) = world(&[0]).play(
        first,
        |world, here| world.queues[0].move_to_back(&world.queues[1], here, &world.things[0]).unwrap(),
        move |world, here| {
            let order = if second_list_first { [1, 0] } else { [0, 1] };
            // By the one end and by the other: two words of one moment.
            order.map(|list| {
                let guard = here.pin();
                let found = if list == 0 { world.queues[0].front(&guard) } else { world.queues[1].back(&guard) };
                found.is_some()
            })
        },
    );
    match second_list_first {
        true => assert!(!(one && two), "in the second list, and then in the first"),
        false => assert!(one || two, "no longer in the first list, and not yet in the second"),
    }
}

/// The item at which a reader stands goes to the end: those that stay come once, in order.
fn walk_past_a_move(first: bool) {
    let (_, seen, _) = world(&[0, 1, 2]).play(
        first,
        |world, here| world.queues[0].move_to_back(&world.queues[0], here, &world.things[0]).unwrap(),
        |world, here| world.queues[0].fold(here, Vec::new, |keys, thing| keys.push(thing.key)),
    );
    let stays: Vec<u32> = seen.iter().copied().filter(|key| *key != 0).collect();
    assert_eq!(stays, [1, 2], "of {seen:?}");
}

#[test]
fn ends() {
    for first in [false, true] {
        sync::model::explore(2, 50, move || pops_at_both_ends(first));
        sync::model::explore(2, 50, move || pop_and_push(first));
    }
}

#[test]
fn neighbours() {
    for first in [false, true] {
        sync::model::explore(2, 50, move || removals_of_neighbours(first));
        sync::model::explore(2, 50, move || move_and_remove(first));
        sync::model::must_catch("olf: marks are replaced without revoking", 2, move || move_and_remove(first));
    }
}

#[test]
fn one_move_and_a_reader() {
    for first in [false, true] {
        for second_list_first in [false, true] {
            sync::model::explore(2, 50, move || move_and_look(first, second_list_first));
        }
        sync::model::explore(2, 50, move || walk_past_a_move(first));
        for mutant in ["olf: no version", "olf: a version is not moved on"] {
            sync::model::must_catch(mutant, 2, move || walk_past_a_move(first));
        }
    }
    // The reader would wait for a mover that has stopped: an execution without an end.
    sync::model::must_catch_reordering("olf: a version is read beside its mark", 2, || walk_past_a_move(true));
}
