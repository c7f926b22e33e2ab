//! Lists and maps of `olf` as the others are used here.

use std::sync::LazyLock;

use olf::{Arc, Domain, Here, Limits, Link, Map, Sorted, links};

use crate::harness::ROOM_FOR_THREADS;
use crate::sets::{Pair, Set};

/// What stands in the lists.
pub struct Item {
    key: u64,
    link: Link,
}

links! {
    /// Items by key.
    pub ByKey: Item { link: link, key: key as u64 }
}

static DOMAIN: LazyLock<Domain> =
    LazyLock::new(|| Domain::with(Limits { threads: ROOM_FOR_THREADS, lists: 4_096 }).expect("a domain"));

/// A place in the domain for this thread; what earlier ones left is freed.
pub fn enter() -> Here<'static> {
    let here = DOMAIN.enter().expect("a thread");
    // Three rounds free all, and numbers of lists with it.
    (0..3).for_each(|_| _ = here.maintain());
    here
}

/// A new item.
#[inline]
pub fn item(domain: &'static Domain, key: u64) -> Arc<'static, Item> {
    Arc::new(domain, Item { key, link: Link::new() })
}

/// A list with these keys.
pub fn sorted(here: &Here<'static>, keys: impl IntoIterator<Item = u64>) -> Sorted<'static, ByKey> {
    let list = Sorted::new(here.domain()).expect("a list");
    keys.into_iter().for_each(|key| list.insert(here, item(here.domain(), key)).expect("a new key"));
    list
}

/// A map with room for this many keys, and these in it.
pub fn map(here: &Here<'static>, room: usize, keys: impl IntoIterator<Item = u64>) -> Map<'static, ByKey> {
    let map = Map::new(here.domain()).expect("a map");
    map.reserve(here, room).expect("memory");
    keys.into_iter().for_each(|key| map.insert(here, item(here.domain(), key)).expect("a new key"));
    map
}

/// A thread's place in the domain, and items that it has taken out, by key: used again at once.
pub struct Local {
    here: Here<'static>,
    taken: Vec<Vec<Arc<'static, Item>>>,
}

impl Local {
    /// Of a new thread.
    pub fn new() -> Local {
        Local { here: enter(), taken: Vec::new() }
    }

    fn keep(&mut self, item: Arc<'static, Item>) {
        let key = item.key as usize;
        if self.taken.len() <= key {
            self.taken.resize_with(key + 1, Vec::new);
        }
        self.taken[key].push(item);
    }
}

impl Set for Sorted<'static, ByKey> {
    type Local = Local;

    fn local(&self) -> Local {
        Local::new()
    }

    #[inline]
    fn contains(&self, local: &mut Local, key: u64) -> bool {
        Sorted::contains(self, &local.here, &key)
    }

    #[inline]
    fn insert(&self, local: &mut Local, key: u64) -> bool {
        let kept = local.taken.get_mut(key as usize).and_then(Vec::pop);
        let item = kept.unwrap_or_else(|| item(local.here.domain(), key));
        match Sorted::insert(self, &local.here, item) {
            Ok(()) => true,
            Err(refused) => {
                local.keep(refused.into_item());
                false
            }
        }
    }

    #[inline]
    fn remove(&self, local: &mut Local, key: u64) -> bool {
        let item = Sorted::remove(self, &local.here, &key);
        item.map(|item| local.keep(item)).is_some()
    }
}

/// Two lists, or two maps.
pub struct Two<C>(pub [C; 2]);

macro_rules! pair {
    ($list:ident) => {
        impl Pair for Two<$list<'static, ByKey>> {
            type Local = Local;

            fn local(&self) -> Local {
                Local::new()
            }

            fn fill(&self, local: &mut Local, key: u64) {
                self.0[0].insert(&local.here, item(local.here.domain(), key)).expect("a new key");
            }

            #[inline]
            fn hand_over(&self, local: &mut Local, from: usize, key: u64) -> bool {
                self.0[from].move_to(&self.0[1 - from], &local.here, &key).is_ok()
            }
        }
    };
}

pair!(Sorted);
pair!(Map);
