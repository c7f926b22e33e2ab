//! The calls of interface `lists` on collections of `olf`, whichever.

use std::cell::OnceCell;
use std::sync::LazyLock;

use commutant_adapter::{Arguments, Errno, Member};
use olf::{Arc, Domain, Here, Limits, Link, NotMoved, links};

/// An item: what `lists` calls its value.
pub struct Thing {
    key: i64,
    value: i64,
    link: Link,
}

links! {
    /// Things by key.
    pub ByKey: Thing { link: link, key: key as i64 }
}

static DOMAIN: LazyLock<Domain> =
    LazyLock::new(|| Domain::with(Limits { threads: 64, lists: 4096 }).expect("memory for a domain"));

thread_local! {
    static HERE: OnceCell<Here<'static>> = const { OnceCell::new() };
}

/// Calls of maintenance after which nothing is left to do: eight, in which one thread waits for others, for each of a few rounds.
pub(crate) const SETTLED: u32 = 32;

/// The domain of all objects.
pub(crate) fn domain() -> &'static Domain {
    &DOMAIN
}

/// Does something as this thread.
pub(crate) fn here<R>(act: impl FnOnce(&Here<'static>) -> R) -> R {
    HERE.with(|here| act(here.get_or_init(|| DOMAIN.enter().expect("a thread of the domain"))))
}

/// A new item.
pub(crate) fn thing(arguments: Arguments) -> Arc<'static, Thing> {
    Arc::new(&DOMAIN, Thing { key: arguments.number(1), value: arguments.number(2), link: Link::new() })
}

/// What a look-up returns.
pub(crate) fn found(thing: Option<&Thing>) -> Result<Member, Errno> {
    thing.map(|thing| Member(thing.value)).ok_or(Errno::ENOENT)
}

/// The key of an item.
pub(crate) fn key(thing: &Thing) -> i64 {
    thing.key
}

/// What a move returns.
pub(crate) fn moved(outcome: Result<(), NotMoved>) -> Result<i64, Errno> {
    match outcome {
        Ok(()) => Ok(0),
        Err(NotMoved::Exists) => Err(Errno(17)), // EEXIST
        Err(_) => Err(Errno::ENOENT),
    }
}

/// Defines the adapter: two collections of a type, and how one is made.
macro_rules! lists_adapter {
    ($constant:ident => $collection:ty: $make:expr) => {
        use commutant_adapter::{Arguments, Errno, Member};

        struct Lists([$collection; 2]);

        impl Lists {
            fn of(&self, arguments: Arguments) -> [&$collection; 2] {
                let second = usize::from(arguments.truth(0));
                [&self.0[second], &self.0[1 - second]]
            }
        }

        fn find(lists: &Lists, arguments: Arguments) -> Result<Member, Errno> {
            $crate::things::here(|here| {
                let guard = here.pin();
                $crate::things::found(lists.of(arguments)[0].get(&guard, &arguments.number(1)).as_deref())
            })
        }

        fn insert(lists: &Lists, arguments: Arguments) -> bool {
            $crate::things::here(|here| {
                let outcome = lists.of(arguments)[0].insert(here, $crate::things::thing(arguments));
                outcome.map_err(|refused| refused.into_item().end(here)).is_ok()
            })
        }

        fn remove(lists: &Lists, arguments: Arguments) -> bool {
            $crate::things::here(|here| {
                let thing = lists.of(arguments)[0].remove(here, &arguments.number(1));
                thing.map(|thing| thing.end(here)).is_some()
            })
        }

        fn move_item(lists: &Lists, arguments: Arguments) -> Result<i64, Errno> {
            let [from, to] = lists.of(arguments);
            $crate::things::here(|here| $crate::things::moved(from.move_to(to, here, &arguments.number(1))))
        }

        fn swap(lists: &Lists, arguments: Arguments) -> Result<i64, Errno> {
            let [one, two] = &lists.0;
            $crate::things::here(|here| $crate::things::moved(one.swap(&arguments.number(0), two, &arguments.number(1), here)))
        }

        fn reset(lists: &Lists) {
            $crate::things::here(|here| {
                for list in &lists.0 {
                    let mut keys = Vec::new();
                    list.for_each(here, |thing| keys.push($crate::things::key(thing)));
                    keys.iter().for_each(|key| drop(list.remove(here, key)));
                }
            });
        }

        fn settle(_: &Lists) {
            $crate::things::here(|here| (0..$crate::things::SETTLED).for_each(|_| _ = here.maintain()));
        }

        commutant_adapter::library! { $constant => Lists: || Lists([0, 1].map(|_| $make)), reset = reset, settle = settle;
            "find(second, key)" => find,
            "insert(second, key, value)" => insert,
            "remove(second, key)" => remove,
            "move(second, key)" => move_item,
            "swap(key, other)" => swap,
        }
    };
}
pub(crate) use lists_adapter;
