//! Lists in order, in one thread: what they hold, what they refuse, and when items end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc as Plain;
use std::sync::atomic::{AtomicUsize, Ordering};

use olf::{Arc, Domain, DomainError, Here, Limits, Link, NotMoved, Refused, Sorted, Stop, links};

struct Thing {
    key: u32,
    by_key: Link,
    by_other: Link,
    ended: Plain<AtomicUsize>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

links! {
    ByKey: Thing { link: by_key, key: key as u32 }
    ByOther: Thing { link: by_other, key: key as u32 }
}

fn domain() -> Domain {
    Domain::with(Limits { threads: 2, lists: 4 }).unwrap()
}

fn thing<'d>(domain: &'d Domain, key: u32, ended: &Plain<AtomicUsize>) -> Arc<'d, Thing> {
    Arc::new(domain, Thing { key, by_key: Link::new(), by_other: Link::new(), ended: Plain::clone(ended) })
}

fn keys(list: &Sorted<'_, ByKey>, here: &Here<'_>) -> Vec<u32> {
    let mut keys = Vec::new();
    list.for_each(here, |thing| keys.push(thing.key));
    keys
}

#[test]
fn a_list_is_in_order_and_keeps_one_item_of_a_key() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().unwrap();
    let list = Sorted::<ByKey>::new(&domain).unwrap();
    for key in [5, 1, 3, 4, 2] {
        list.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    assert!(matches!(list.insert(&here, thing(&domain, 3, &ended)), Err(Refused::Exists(_))));
    assert_eq!(keys(&list, &here), [1, 2, 3, 4, 5]);
    assert_eq!(list.remove(&here, &3).unwrap().key, 3);
    assert!(list.remove(&here, &3).is_none() && !list.contains(&here, &3) && list.contains(&here, &4));
    assert_eq!(keys(&list, &here), [1, 2, 4, 5]);
    assert_eq!(list.get(&here.pin(), &4).unwrap().key, 4);
}

#[test]
fn an_item_is_in_one_list_by_a_link_and_in_two_by_two() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().unwrap();
    let (one, two) = (Sorted::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    let other = Sorted::<ByOther>::new(&domain).unwrap();
    let item = thing(&domain, 1, &ended);
    one.insert(&here, item.clone()).unwrap();
    assert!(matches!(one.insert(&here, item.clone()), Err(Refused::Listed(_))));
    assert!(matches!(two.insert(&here, item.clone()), Err(Refused::Listed(_))));
    other.insert(&here, item.clone()).unwrap();
    assert!(one.remove(&here, &1).unwrap().is_same(&item));
    two.insert(&here, item).unwrap();
    assert!(other.contains(&here, &1) && two.contains(&here, &1) && one.is_empty(&here));
}

#[test]
fn items_end_once_when_nothing_leads_to_them() {
    let ended: Plain<AtomicUsize> = Plain::default();
    let domain = domain();
    let here = domain.enter().unwrap();
    let count = || ended.load(Ordering::Relaxed);
    let maintain = || (0..4).for_each(|_| _ = here.maintain());
    let list = Sorted::<ByKey>::new(&domain).unwrap();
    for key in 0..6 {
        list.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    drop(list.remove(&here, &0));
    list.remove(&here, &1).unwrap().end(&here);
    let kept = list.get(&here.pin(), &2).unwrap().to_arc().unwrap();
    assert_eq!(count(), 0, "nothing ends before maintenance");
    maintain();
    assert_eq!(count(), 2);
    drop(list);
    maintain();
    assert_eq!(count(), 5, "a list gives its counts back");
    assert_eq!(kept.key, 2);
    drop((kept, here));
    drop(domain);
    assert_eq!(ended.load(Ordering::Relaxed), 6, "a domain ends what is left");
}

#[test]
fn a_guard_keeps_what_was_found() {
    let (domain, ended) = (domain(), Plain::<AtomicUsize>::default());
    let (here, other) = (domain.enter().unwrap(), domain.enter().unwrap());
    let list = Sorted::<ByKey>::new(&domain).unwrap();
    list.insert(&here, thing(&domain, 1, &ended)).unwrap();
    let guard = other.pin();
    let found = list.get(&guard, &1).unwrap();
    list.remove(&here, &1).unwrap().end(&here);
    (0..4).for_each(|_| _ = here.maintain());
    assert_eq!((found.key, ended.load(Ordering::Relaxed)), (1, 0));
    assert!(found.to_arc().is_none(), "its last count has ended");
    drop(guard);
    (0..4).for_each(|_| _ = here.maintain());
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}

#[test]
fn moves_say_why_not() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().unwrap();
    let (one, two) = (Sorted::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    for (list, key) in [(&one, 1), (&one, 2), (&two, 2), (&two, 3)] {
        list.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    assert_eq!(one.move_to(&two, &here, &7), Err(NotMoved::Absent));
    assert_eq!(one.move_to(&two, &here, &2), Err(NotMoved::Exists));
    assert_eq!(one.move_to(&one, &here, &2), Err(NotMoved::SameList));
    one.move_to(&two, &here, &1).unwrap();
    assert_eq!((keys(&one, &here), keys(&two, &here)), (vec![2], vec![1, 2, 3]));
    assert_eq!(one.swap(&2, &two, &3, &here), Err(NotMoved::Exists));
    one.swap(&2, &two, &2, &here).unwrap();
    two.move_to(&one, &here, &3).unwrap();
    assert_eq!(one.swap(&3, &two, &1, &here), Ok(()));
    assert_eq!((keys(&one, &here), keys(&two, &here)), (vec![1, 2], vec![2, 3]));
}

#[test]
fn a_closure_happens_as_a_whole_or_not_at_all() {
    let (domain, ended) = (domain(), Plain::<AtomicUsize>::default());
    let here = domain.enter().unwrap();
    let (one, two) = (Sorted::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    let new = thing(&domain, 9, &ended);
    for key in [1, 2, 3] {
        one.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    let outcome: Result<(), Stop> = here.atomically(|a| {
        let first = a.remove(&one, &1)?;
        a.insert(&two, first)?;
        assert!(a.contains(&two, &1)? && !a.contains(&one, &1)?, "a closure sees what it has changed");
        let held = a.hold(&new);
        a.insert(&one, held)?;
        a.remove(&one, &7).map(|_| ())
    });
    assert_eq!((outcome, keys(&one, &here), keys(&two, &here)), (Err(Stop::Absent), vec![1, 2, 3], vec![]));
    let taken = here.atomically(|a| {
        let (first, second) = (a.remove(&one, &1)?, a.remove(&one, &2)?);
        a.insert(&two, first)?;
        let held = a.hold(&new);
        a.insert(&one, held)?;
        second.to_arc().ok_or(Stop::Again)
    });
    assert_eq!(taken.unwrap().key, 2);
    assert_eq!((keys(&one, &here), keys(&two, &here)), (vec![3, 9], vec![1]));
    drop(new);
    drop(one.remove(&here, &9));
    (0..4).for_each(|_| _ = here.maintain());
    assert_eq!(ended.load(Ordering::Relaxed), 2, "what was taken, and what nobody has any more");
}

#[test]
fn closures_are_refused_what_cannot_be() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().unwrap();
    let (one, two) = (Sorted::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    for key in 0..8 {
        one.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    let many: Result<(), Stop> = here.atomically(|a| {
        for key in 0..8 {
            let item = a.remove(&one, &key)?;
            a.insert(&two, item)?;
        }
        Ok(())
    });
    assert_eq!(many, Err(Stop::TooManyWords));
    assert_eq!((keys(&one, &here).len(), keys(&two, &here).len()), (8, 0));
    let nested: Result<(), Stop> = here.atomically(|_| here.atomically(|_| Ok(())));
    assert_eq!(nested, Err(Stop::Nested));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        here.atomically(|a| -> Result<(), Stop> {
            a.remove(&one, &1)?;
            panic!("of a closure")
        })
    }));
    assert!(panics.is_err() && one.contains(&here, &1));
    assert_eq!(here.atomically(|a| a.contains(&one, &1)), Ok(true), "a panic leaves nothing");
    // An error that a closure forgets is no error of its own.
    let forgotten = here.atomically(|a| -> Result<(), Stop> {
        let _ = a.remove(&one, &99);
        let item = a.remove(&one, &1)?;
        a.insert(&two, item)
    });
    assert_eq!((forgotten, keys(&two, &here)), (Ok(()), vec![1]));
}

#[test]
fn the_second_way_is_taken_as_if_the_first_had_changed_nothing() {
    let (domain, ended) = (domain(), Plain::default());
    let here = domain.enter().unwrap();
    let (one, two) = (Sorted::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    for key in [1, 2] {
        one.insert(&here, thing(&domain, key, &ended)).unwrap();
    }
    let outcome: Result<&str, Stop> = here.atomically(|a| {
        a.or_else(
            |a| {
                let item = a.remove(&one, &1)?;
                a.insert(&two, item)?;
                if a.contains(&two, &7)? { Ok("first") } else { Err(a.retry()) }
            },
            |a| {
                let item = a.remove(&one, &2)?;
                a.insert(&two, item)?;
                Ok("second")
            },
        )
    });
    assert_eq!((outcome, keys(&one, &here), keys(&two, &here)), (Ok("second"), vec![1], vec![2]));
}

#[test]
fn limits_are_told() {
    assert_eq!(Domain::with(Limits { threads: 0, lists: 1 }).err(), Some(DomainError::Threads(0)));
    assert_eq!(Domain::with(Limits { threads: 256, lists: 1 }).err(), Some(DomainError::Threads(256)));
    assert_eq!(Domain::with(Limits { threads: 1, lists: 1 << 19 }).err(), Some(DomainError::Lists(1 << 19)));
    let domain = Domain::new(255).unwrap();
    let here: Vec<_> = (0..255).map(|_| domain.enter().unwrap()).collect();
    let error = domain.enter().err().unwrap();
    assert_eq!(error.to_string(), "expected at most 255 threads in the domain at once; let one leave first");
    drop(here);
}

#[test]
#[should_panic(expected = "the list belongs to another domain")]
fn lists_and_threads_are_of_one_domain() {
    let (one, two) = (domain(), domain());
    let list = Sorted::<ByKey>::new(&one).unwrap();
    list.contains(&two.enter().unwrap(), &1);
}
