//! What adapters of the same kind have in common.

use std::cell::UnsafeCell;

use commutant_adapter::Errno;

/// How many entries a table makes room for: else growth is all that one sees.
pub const ROOM: usize = 4096;

/// What a handle stands for, on lines of its own. It stays when what it held is given back, so that a handle may be
/// asked for after that, as models do.
#[repr(align(128))]
struct Kept<T>(UnsafeCell<Option<T>>);

/// Keeps something for good, and gives its handle.
pub fn keep<T>(held: T) -> i64 {
    std::ptr::from_ref(Box::leak(Box::new(Kept(UnsafeCell::new(Some(held)))))) as i64
}

/// What a handle of [`keep`] stands for; `None` if it was taken.
pub fn kept<T>(handle: i64) -> Option<&'static T> {
    // SAFETY: adapters pass handles of `keep` with the type that they kept, which are never given up. Calls of a window
    // are made one after the other, so that no one takes what is looked at.
    unsafe { (*(*(handle as *const Kept<T>)).0.get()).as_ref() }
}

/// Takes what a handle of [`keep`] stands for.
pub fn take<T>(handle: i64) -> Option<T> {
    // SAFETY: as above.
    let place = unsafe { &mut *(*(handle as *const Kept<T>)).0.get() };
    // What is not there is not written.
    if place.is_some() { place.take() } else { None }
}

/// Calls of an adapter for the interfaces `map`, `map-len`: `map_adapter! { Type: make; get, put, remove, len }`, where
/// the four are `fn(&Type, key) -> Option<value>`, `fn(&Type, key, value) -> bool` (was the key new), `fn(&Type, key)
/// -> bool` and `fn(&Type) -> usize`.
#[macro_export]
macro_rules! map_adapter {
    ($object:ty: $make:expr; $get:expr, $put:expr, $remove:expr, $len:expr) => {
        use commutant_adapter::{Arguments, Errno, Member};

        fn get(map: &$object, arguments: Arguments) -> Result<Member, Errno> {
            $get(map, arguments.number(0)).map(Member).ok_or(Errno::ENOENT)
        }
        fn put(map: &$object, arguments: Arguments) -> bool {
            $put(map, arguments.number(0), arguments.number(1))
        }
        fn remove(map: &$object, arguments: Arguments) -> bool {
            $remove(map, arguments.number(0))
        }
        fn len(map: &$object, _: Arguments) -> i64 {
            $len(map) as i64
        }
        commutant_adapter::library! { $object: $make;
        "get(key)" => get, "put(key, value)" => put, "remove(key)" => remove, "len()" => len }
    };
}

/// The same of an ordered map, with `first` and `next`: `fn(&Type) -> Option<key>` and `fn(&Type, key) -> Option<key>`.
#[macro_export]
macro_rules! ordered_map_adapter {
    ($object:ty: $make:expr; $get:expr, $put:expr, $remove:expr, $first:expr, $next:expr) => {
        use commutant_adapter::{Arguments, Errno, Member};

        fn get(map: &$object, arguments: Arguments) -> Result<Member, Errno> {
            $get(map, arguments.number(0)).map(Member).ok_or(Errno::ENOENT)
        }
        fn put(map: &$object, arguments: Arguments) -> bool {
            $put(map, arguments.number(0), arguments.number(1))
        }
        fn remove(map: &$object, arguments: Arguments) -> bool {
            $remove(map, arguments.number(0))
        }
        fn first(map: &$object, _: Arguments) -> Result<i64, Errno> {
            $first(map).ok_or(Errno::ENOENT)
        }
        fn next(map: &$object, arguments: Arguments) -> Result<i64, Errno> {
            $next(map, arguments.number(0)).ok_or(Errno::ENOENT)
        }
        commutant_adapter::library! { $object: $make;
        "get(key)" => get, "put(key, value)" => put, "remove(key)" => remove, "first()" => first, "next(key)" => next }
    };
}

/// Calls of an adapter for the interface `queue` or `stack`: what pushes, and what pops.
#[macro_export]
macro_rules! queue_adapter {
    ($object:ty: $make:expr; $push:expr, $pop:expr) => {
        use commutant_adapter::{Arguments, Errno, Member};

        fn push(queue: &$object, arguments: Arguments) {
            $push(queue, arguments.number(0))
        }
        fn pop(queue: &$object, _: Arguments) -> Result<Member, Errno> {
            $pop(queue).map(Member).ok_or(Errno::EAGAIN)
        }
        commutant_adapter::library! { $object: $make; "push(item)" => push, "pop()" => pop }
    };
}

/// Calls of an adapter for the interface `allocator`: what gives memory of this many bytes, and what takes it back.
#[macro_export]
macro_rules! allocator_adapter {
    ($malloc:expr, $free:expr) => {
        use commutant_adapter::{Arguments, Errno, Handle};

        /// Bytes of a block: two of them have room in a line.
        const BLOCK_BYTES: usize = 24;

        /// A block, by its first word.
        struct Block(*mut i64);

        fn block(arguments: Arguments) -> Result<*mut i64, Errno> {
            $crate::kept::<Block>(arguments.number(0)).map(|block| block.0).ok_or(Errno::EINVAL)
        }

        fn allocate(_: &(), _: Arguments) -> Handle {
            // SAFETY: as much as is asked for is there, or null, which would be a fault.
            let block = unsafe {
                let block = $malloc(BLOCK_BYTES).cast::<i64>();
                block.write_volatile(0);
                block
            };
            Handle { sort: "Block", number: $crate::keep(Block(block)) }
        }

        fn free(_: &(), arguments: Arguments) -> Result<(), Errno> {
            let block = $crate::take::<Block>(arguments.number(0)).ok_or(Errno::EINVAL)?;
            // SAFETY: what was given and not yet given back.
            unsafe { $free(block.0.cast()) }
            Ok(())
        }

        fn write(_: &(), arguments: Arguments) -> Result<(), Errno> {
            // SAFETY: the block lives.
            block(arguments).map(|block| unsafe { block.write_volatile(arguments.number(1)) })
        }

        fn read(_: &(), arguments: Arguments) -> Result<i64, Errno> {
            // SAFETY: as above.
            block(arguments).map(|block| unsafe { block.read_volatile() })
        }

        commutant_adapter::library! { (): || ();
        "allocate()" => allocate, "free(block)" => free, "write(block, content)" => write, "read(block)" => read }
    };
}

/// What a move or a swap returns: zero, or why nothing was moved.
pub type Moved = Result<i64, Errno>;
/// There is no item with the key.
pub const ABSENT: Errno = Errno::ENOENT;
/// There is an item with the key already.
pub const EXISTS: Errno = Errno(17);

/// Two lists, 0 and 1, each with one item of a key at most: what the interface `lists` is about.
pub trait Lists {
    /// Empty ones.
    fn make() -> Self;
    /// The value of a key.
    fn find(&self, list: usize, key: i64) -> Option<i64>;
    /// Inserts, unless the key is there; whether it did.
    fn insert(&self, list: usize, key: i64, value: i64) -> bool;
    /// Removes; whether it was there.
    fn remove(&self, list: usize, key: i64) -> bool;
    /// Moves an item to the other list, unless that has its key.
    fn hand_over(&self, from: usize, key: i64) -> Moved;
    /// Exchanges an item of the first list for one of the second, unless one of them would then have a key twice.
    fn swap(&self, key: i64, other: i64) -> Moved;
}

/// A collection with one item of a key, which knows of no other.
pub trait Keyed {
    /// An empty one.
    fn make() -> Self;
    /// The value of a key.
    fn find(&self, key: i64) -> Option<i64>;
    /// Inserts, unless the key is there; whether it did.
    fn insert(&self, key: i64, value: i64) -> bool;
    /// Removes; whether it was there.
    fn remove(&self, key: i64) -> bool;
}

/// What cannot move an item at one moment does it in steps: in between the item is in both, or in none.
impl<K: Keyed> Lists for [K; 2] {
    fn make() -> Self {
        [K::make(), K::make()]
    }

    fn find(&self, list: usize, key: i64) -> Option<i64> {
        self[list].find(key)
    }

    fn insert(&self, list: usize, key: i64, value: i64) -> bool {
        self[list].insert(key, value)
    }

    fn remove(&self, list: usize, key: i64) -> bool {
        self[list].remove(key)
    }

    fn hand_over(&self, from: usize, key: i64) -> Moved {
        let value = self[from].find(key).ok_or(ABSENT)?;
        if !self[1 - from].insert(key, value) {
            return Err(EXISTS);
        }
        self[from].remove(key);
        Ok(0)
    }

    fn swap(&self, key: i64, other: i64) -> Moved {
        let (mine, its) = (self[0].find(key).ok_or(ABSENT)?, self[1].find(other).ok_or(ABSENT)?);
        if key != other && (self[1].find(key).is_some() || self[0].find(other).is_some()) {
            return Err(EXISTS);
        }
        self[0].remove(key);
        self[1].remove(other);
        self[1].insert(key, mine);
        self[0].insert(other, its);
        Ok(0)
    }
}

/// Calls of an adapter for the interface `lists`, of what implements [`Lists`].
#[macro_export]
macro_rules! lists_adapter {
    ($object:ty) => {
        use commutant_adapter::{Arguments, Errno, Member};

        fn list(arguments: Arguments) -> usize {
            usize::from(arguments.truth(0))
        }
        fn find(lists: &$object, arguments: Arguments) -> Result<Member, Errno> {
            let found = $crate::Lists::find(lists, list(arguments), arguments.number(1));
            found.map(Member).ok_or(Errno::ENOENT)
        }
        fn insert(lists: &$object, arguments: Arguments) -> bool {
            $crate::Lists::insert(lists, list(arguments), arguments.number(1), arguments.number(2))
        }
        fn remove(lists: &$object, arguments: Arguments) -> bool {
            $crate::Lists::remove(lists, list(arguments), arguments.number(1))
        }
        fn move_item(lists: &$object, arguments: Arguments) -> $crate::Moved {
            $crate::Lists::hand_over(lists, list(arguments), arguments.number(1))
        }
        fn swap(lists: &$object, arguments: Arguments) -> $crate::Moved {
            $crate::Lists::swap(lists, arguments.number(0), arguments.number(1))
        }
        commutant_adapter::library! { $object: <$object as $crate::Lists>::make;
        "find(second, key)" => find, "insert(second, key, value)" => insert, "remove(second, key)" => remove,
        "move(second, key)" => move_item, "swap(key, other)" => swap }
    };
}
