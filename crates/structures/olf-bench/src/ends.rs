//! Doubly linked lists, of one thread: an item goes from an end of one to the other, and a queue.

use std::collections::VecDeque;
use std::sync::Mutex;

use olf::{Arc, Here, Link, List, ListLink, links};

use crate::harness::{Effort, compare, way};
use crate::ours;

/// What stands in the lists.
pub struct Entry {
    /// Which one it is.
    pub key: u64,
    link: ListLink,
}

links! {
    /// Entries by their link.
    pub ByLink: Entry { list: link }
}

/// A list with these keys.
pub fn list(here: &Here<'static>, keys: impl IntoIterator<Item = u64>) -> List<'static, ByLink> {
    let list = List::new(here.domain()).expect("a list");
    for key in keys {
        let entry = Arc::new(here.domain(), Entry { key, link: ListLink::new() });
        list.push_back(here, entry).expect("a new item");
    }
    list
}

const LENGTH: u64 = 10;

pub fn measure(effort: Effort) {
    let here = ours::enter();
    let pair = || [0, 1].map(|_| list(&here, 0..LENGTH));
    let (by_move, by_two, by_closure) = (pair(), pair(), pair());
    let plain = || Mutex::new((0..LENGTH).collect::<VecDeque<u64>>());
    let locked = [plain(), plain()];
    let mut ways = vec![
        way("List", |n| {
            let guard = here.pin();
            let first = by_move[n % 2].front(&guard).expect("an item");
            by_move[n % 2].move_to_back(&by_move[1 - n % 2], &here, &first).expect("a move");
        }),
        way("own removal, then insertion", |n| {
            let item = by_two[n % 2].pop_front(&here).expect("an item");
            by_two[1 - n % 2].push_back(&here, item).expect("an item that stands nowhere");
        }),
        way("closure", |n| {
            let moved = here.atomically(|a| {
                let item = a.pop_front(&by_closure[n % 2])?;
                a.push_back(&by_closure[1 - n % 2], item)
            });
            moved.expect("a move");
        }),
        way("two Mutex<VecDeque>", |n| {
            let (mut one, mut two) = (locked[0].lock().expect("a lock"), locked[1].lock().expect("a lock"));
            let (from, to) = if n % 2 == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
            to.push_back(from.pop_front().expect("an item"));
        }),
    ];
    compare(effort, "move, first to last of doubly linked lists", &mut ways);

    let (queue, plain) = (list(&here, 0..LENGTH), plain());
    let mut ways = vec![
        way("List", |_| {
            let item = queue.pop_front(&here).expect("an item");
            queue.push_back(&here, item).expect("an item that stands nowhere");
        }),
        way("Mutex<VecDeque>", |_| {
            let item = plain.lock().expect("a lock").pop_front().expect("an item");
            plain.lock().expect("a lock").push_back(item);
        }),
    ];
    compare(effort, "take from a queue, and put back", &mut ways);
    for (name, bytes) in [("Link", size_of::<Link>()), ("ListLink", size_of::<ListLink>())] {
        println!(r#"{{"what": "a link", "way": "{name}", "bytes": {bytes}}}"#);
    }
}
