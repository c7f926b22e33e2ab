//! Maps in one thread: what they hold as they grow.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use olf::{Arc, Domain, Limits, Link, Map, Refused, Sorted, links};
use proptest::prelude::*;

struct Thing {
    key: u64,
    value: u64,
    link: Link,
}

links! {
    ByKey: Thing { link: link, key: key as u64 }
}

fn thing<'d>(domain: &'d Domain, key: u64, value: u64) -> Arc<'d, Thing> {
    Arc::new(domain, Thing { key, value, link: Link::new() })
}

/// Hashes that are all alike, or nearly.
#[derive(Clone, Copy)]
struct Poor;

struct PoorHash(u64);

impl BuildHasher for Poor {
    type Hasher = PoorHash;

    fn build_hasher(&self) -> PoorHash {
        PoorHash(0)
    }
}

impl Hasher for PoorHash {
    fn finish(&self) -> u64 {
        self.0 & 1
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 += u64::from(bytes[0]);
    }
}

#[test]
fn a_map_grows_and_keeps_what_it_holds() {
    let domain = Domain::with(Limits { threads: 1, lists: 1 }).unwrap();
    let here = domain.enter().unwrap();
    let map = Map::<ByKey>::new(&domain).unwrap();
    let mut grown = 0;
    for key in 0..1_000 {
        map.insert(&here, thing(&domain, key, key * key)).unwrap();
        grown += u64::from(map.maintain(&here).unwrap());
    }
    assert!((9..=11).contains(&grown), "doubled {grown} times");
    let guard = here.pin();
    assert!((0..1_000).all(|key| map.get(&guard, &key).unwrap().value == key * key));
    drop(guard);
    let mut seen = Vec::new();
    map.for_each(&here, |thing| seen.push(thing.key));
    seen.sort();
    assert_eq!(seen, (0..1_000).collect::<Vec<_>>());
    assert!((0..1_000).all(|key| map.remove(&here, &key).is_some()));
    assert!(map.is_empty(&here));
}

#[test]
fn an_item_moves_between_a_map_and_a_list() {
    let domain = Domain::with(Limits { threads: 1, lists: 2 }).unwrap();
    let here = domain.enter().unwrap();
    let (map, list) = (Map::<ByKey>::new(&domain).unwrap(), Sorted::<ByKey>::new(&domain).unwrap());
    for key in 0..10 {
        map.insert(&here, thing(&domain, key, 0)).unwrap();
        map.maintain(&here).unwrap();
    }
    for key in [7, 3, 5] {
        map.move_to(&list, &here, &key).unwrap();
    }
    let mut keys = Vec::new();
    list.for_each(&here, |thing| keys.push(thing.key));
    assert_eq!(keys, [3, 5, 7]);
    list.move_to(&map, &here, &5).unwrap();
    assert!(map.contains(&here, &5) && !list.contains(&here, &5));
}

proptest! {
    #[test]
    fn a_map_is_what_a_plain_one_is(calls in prop::collection::vec((0..3_u8, 0..20_u64), 0..100), is_poor: bool) {
        let domain = Domain::with(Limits { threads: 1, lists: 1 }).unwrap();
        let here = domain.enter().unwrap();
        macro_rules! check {
            ($map:expr) => {{
                let (map, mut plain) = ($map, BTreeMap::new());
                for (number, (call, key)) in calls.iter().enumerate() {
                    let value = number as u64;
                    match call {
                        0 => match map.insert(&here, thing(&domain, *key, value)) {
                            Ok(()) => assert_eq!(plain.insert(*key, value), None),
                            Err(refused) => {
                                assert!(plain.contains_key(key) && matches!(refused, Refused::Exists(_)));
                            }
                        },
                        1 => assert_eq!(map.remove(&here, key).map(|thing| thing.value), plain.remove(key)),
                        _ => assert_eq!(map.get(&here.pin(), key).map(|thing| thing.value), plain.get(key).copied()),
                    }
                    map.maintain(&here).unwrap();
                }
            }};
        }
        match is_poor {
            true => check!(Map::<ByKey, Poor>::with_hasher(&domain, Poor).unwrap()),
            false => check!(Map::<ByKey>::new(&domain).unwrap()),
        }
    }
}
