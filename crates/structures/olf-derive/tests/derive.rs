//! An item with derived markers stands in as many lists as it has links.
#![cfg(not(any(loom, shuttle)))]

use olf::{Arc, Domain, Limits, Link, List, ListLink, Map, Sorted};

/// A page of a cache.
#[derive(olf::Item)]
struct Page {
    #[olf(key)]
    id: u64,
    #[olf(link)]
    by_id: Link,
    #[olf(link, name = ByAge, key = age)]
    old: Link,
    #[olf(list)]
    used: ListLink,
    age: u8,
}

#[test]
fn an_item_stands_in_a_list_for_each_of_its_links() {
    let domain = Domain::with(Limits { threads: 1, lists: 4 }).unwrap();
    let here = domain.enter().unwrap();
    let pages = Map::<PageById>::new(&domain).unwrap();
    let [new, old] = [0, 1].map(|_| Sorted::<ByAge>::new(&domain).unwrap());
    let used = List::<PageUsed>::new(&domain).unwrap();
    for (id, age) in [(7, 3), (8, 1)] {
        let page = Arc::new(&domain, Page { id, by_id: Link::new(), old: Link::new(), used: ListLink::new(), age });
        pages.insert(&here, page.clone()).unwrap();
        new.insert(&here, page.clone()).unwrap();
        used.push_front(&here, page).unwrap();
    }
    new.move_to(&old, &here, &3).unwrap();
    let guard = here.pin();
    assert_eq!(new.first(&guard).map(|page| page.id), Some(8));
    assert_eq!(old.first(&guard).map(|page| page.id), Some(7));
    assert_eq!(used.front(&guard).map(|page| page.id), Some(8));
    assert_eq!(pages.get(&guard, &7).map(|page| page.age), Some(3));
}
