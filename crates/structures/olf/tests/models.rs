//! The smallest clashes, all executions of them: `RUSTFLAGS="--cfg loom" cargo test -p olf --release --test models`.
#![cfg(any(loom, shuttle))]

#[path = "lists/models.rs"]
mod lists;
#[path = "lists/parts.rs"]
mod parts;

use std::sync::Arc as Plain;

use olf::{Arc, Domain, Here, Link, List, ListLink, Sorted, links};
use percpu::model::ModelArena;

struct Thing {
    key: u32,
    link: Link,
    place: ListLink,
}

links! {
    ByKey: Thing { link: link, key: key as u32 }
    InOrder: Thing { list: place }
}

/// Two lists of each kind, the things with keys 0 to 2, and the right to be two threads and one that looks in the end.
struct World {
    lists: [Sorted<'static, ByKey>; 2],
    queues: [List<'static, InOrder>; 2],
    things: [Arc<'static, Thing>; 3],
    heres: [Option<Here<'static>>; 2],
    last: Here<'static>,
    // The domain lies in it.
    _arena: ModelArena,
}

/// Things of these keys stand in the first list.
fn world(in_first: &[usize]) -> World {
    let world = empty_world();
    for key in in_first {
        world.lists[0].insert(&world.last, world.things[*key].clone()).unwrap();
    }
    world
}

fn empty_world() -> World {
    world_of(|domain| domain)
}

/// In a domain that is made so.
fn world_of(made: impl FnOnce(Domain) -> Domain) -> World {
    let arena = ModelArena::new(3, 64 << 10);
    // As the model's arena: not to be used once that has gone. Its memory is the arena's; the few words are lost.
    let domain: &'static Domain = Box::leak(Box::new(made(Domain::over(arena.arena(), 4).unwrap())));
    World {
        lists: [0, 1].map(|_| Sorted::new(domain).unwrap()),
        queues: [0, 1].map(|_| List::new(domain).unwrap()),
        things: [0, 1, 2].map(|key| Arc::new(domain, Thing { key, link: Link::new(), place: ListLink::new() })),
        heres: [0, 1].map(|_| Some(domain.enter().unwrap())),
        last: domain.enter().unwrap(),
        _arena: arena,
    }
}

impl World {
    /// Two roles in two threads; the world as it is in the end.
    fn play<A: Send + 'static, B: Send + 'static>(
        mut self,
        a_first: bool,
        a: impl FnOnce(&World, &Here<'static>) -> A + Send + 'static,
        b: impl FnOnce(&World, &Here<'static>) -> B + Send + 'static,
    ) -> (A, B, Plain<World>) {
        let [here_a, here_b] = self.heres.each_mut().map(|here| here.take().expect("not played yet"));
        let world = Plain::new(Shared(self));
        let (for_a, for_b) = (Plain::clone(&world), Plain::clone(&world));
        let (a, b) =
            sync::model::both(a_first, move || a(&for_a.whole().0, &here_a), move || b(&for_b.whole().0, &here_b));
        let world = Plain::new(Plain::try_unwrap(world).ok().expect("threads have ended").0);
        (a, b, world)
    }

    fn is_in(&self, list: usize, key: u32) -> bool {
        self.lists[list].contains(&self.last, &key)
    }
}

/// A world whose threads use all but the right to be the last.
struct Shared(World);

// SAFETY: `last` is used by the thread alone that has made the world, once the others have ended.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    fn whole(&self) -> &Shared {
        self
    }
}

/// A move, and a reader of both lists: who has seen the thing in the second does not see it in the first, and who has not
/// seen it in the first sees it in the second.
fn move_and_look(first: bool, second_list_first: bool) {
    let (_, [one, two], _) = world(&[0]).play(
        first,
        |world, here| world.lists[0].move_to(&world.lists[1], here, &0).unwrap(),
        move |world, here| {
            let order = if second_list_first { [1, 0] } else { [0, 1] };
            order.map(|list| world.lists[list].contains(here, &0))
        },
    );
    match second_list_first {
        true => assert!(!(one && two), "in the second list, and then in the first"),
        false => assert!(one || two, "no longer in the first list, and not yet in the second"),
    }
}

/// Two moves, whose records are one after the other in the same place, and a reader: the second thing is in one of the lists.
fn moves_and_look(first: bool) {
    let (_, is_there, _) = world(&[0, 1]).play(
        first,
        |world, here| [0, 1].map(|key| world.lists[0].move_to(&world.lists[1], here, &key).unwrap()),
        |world, here| world.lists.iter().any(|list| list.contains(here, &1)),
    );
    assert!(is_there, "no longer in the first list, and not yet in the second");
}

/// Two moves of neighbours: both happen.
fn moves_of_neighbours(first: bool) {
    let ((), (), world) = world(&[0, 1]).play(
        first,
        |world, here| world.lists[0].move_to(&world.lists[1], here, &0).unwrap(),
        |world, here| world.lists[0].move_to(&world.lists[1], here, &1).unwrap(),
    );
    assert!([0, 1].iter().all(|key| world.is_in(1, *key) && !world.is_in(0, *key)));
}

/// A thing is removed while its neighbour, which stood in the list before, is put back after it.
fn remove_and_put_back(first: bool) {
    let world = world(&[0, 1]);
    let one = world.lists[0].remove(&world.last, &1).unwrap();
    let (_, (), world) = world.play(
        first,
        |world, here| world.lists[0].remove(here, &0).unwrap(),
        move |world, here| world.lists[0].insert(here, one).unwrap(),
    );
    assert!(world.is_in(0, 1) && !world.is_in(0, 0), "what was put back is lost");
}

/// One thing, moved by one and removed by the other: one of them has it.
fn move_and_remove(first: bool) {
    let (moved, removed, world) = world(&[0]).play(
        first,
        |world, here| world.lists[0].move_to(&world.lists[1], here, &0).is_ok(),
        |world, here| world.lists[0].remove(here, &0).is_some(),
    );
    assert!(moved != removed, "moved: {moved}, removed: {removed}");
    assert_eq!(world.is_in(1, 0), moved);
}

/// Two insertions in two lists, each with a look at the other: one of them sees the other's.
fn insert_and_look(first: bool) {
    let role = |mine: usize| {
        move |world: &World, here: &Here<'static>| {
            world.lists[mine].insert(here, world.things[mine].clone()).unwrap();
            world.lists[1 - mine].contains(here, &(1 - mine as u32))
        }
    };
    let (one, two, _) = world(&[]).play(first, role(0), role(1));
    assert!(one || two, "both insertions came after the other's look");
}

#[test]
fn one_operation_and_a_reader() {
    for first in [false, true] {
        for second_list_first in [false, true] {
            let model = move || move_and_look(first, second_list_first);
            sync::model::explore(3, 50, model);
        }
        sync::model::must_catch("olf: a mark is taken as new", 3, move || move_and_look(first, false));
        sync::model::explore(3, 50, move || moves_and_look(first));
        for mutant in [
            "olf: the record is not checked again",
            "olf: another list is taken as the end",
            "olf: the list is not checked",
        ] {
            sync::model::must_catch(mutant, 3, move || moves_and_look(first));
        }
        for mutant in ["olf: no fence after the record is read", "olf: no fence before the record"] {
            sync::model::must_catch_reordering(mutant, 3, move || moves_and_look(first));
        }
    }
}

#[test]
fn two_operations() {
    for first in [false, true] {
        sync::model::explore(2, 50, move || moves_of_neighbours(first));
        sync::model::explore(2, 50, move || remove_and_put_back(first));
        sync::model::explore(3, 50, move || move_and_remove(first));
        sync::model::explore(3, 50, move || insert_and_look(first));
        sync::model::must_catch("olf: marks are replaced without revoking", 2, move || move_and_remove(first));
    }
}
