//! The objects that the kernel knows, by their numbers, each kept by a reference for as long.
//!
//! ```text
//! an answer with attributes: known once more     forget(n): n times less; at zero the reference is given up
//! ```
//! The kernel does not forget what is open, mapped, or somebody's working directory. So a file without a name stays until its
//! last user has gone, and the door needs no table of open files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scalefs::{Errno, ObjectOperations};

use super::view::{NodeOf, View};

/// Parts of the table, each with a lock of its own.
const SHARDS: usize = 64;
/// The number of the root, here and for the kernel.
pub(super) const ROOT: u64 = 1;

/// A reference to an object, given up when this is dropped.
pub(super) struct Kept<V: View> {
    view: Arc<V>,
    handle: Option<V::Handle>,
}

impl<V: View> Drop for Kept<V> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.view.release(handle);
        }
    }
}

/// An object that the kernel knows, for one request.
pub(super) enum Held<V: View> {
    /// The root, which is always there.
    Root,
    /// Another one.
    Kept(Arc<Kept<V>>),
}

impl<V: View> Held<V> {
    /// The object.
    pub(super) fn node<'v, 'c>(&'v self, objects: &'v V::Objects<'c>) -> NodeOf<'v, 'c, V> {
        match self {
            Held::Kept(kept) => objects.held(kept.handle.as_ref().expect("kept until it is dropped")),
            Held::Root => objects.root(),
        }
    }
}

struct Known<V: View> {
    kept: Arc<Kept<V>>,
    /// How often the kernel was told of it and has not forgotten it.
    count: u64,
}

/// What the kernel knows.
pub(super) struct Nodes<V: View> {
    view: Arc<V>,
    shards: [Mutex<HashMap<u64, Known<V>>>; SHARDS],
}

impl<V: View> Nodes<V> {
    pub(super) fn new(view: &Arc<V>) -> Nodes<V> {
        Nodes { view: view.clone(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, Known<V>>> {
        // The low bits are a core's.
        let index = (number ^ number >> 8) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object that the kernel names by its number.
    pub(super) fn get(&self, number: u64) -> Result<Held<V>, Errno> {
        match number {
            ROOT => Ok(Held::Root),
            _ => self.shard(number).get(&number).map(|known| Held::Kept(known.kept.clone())).ok_or(Errno::EIO),
        }
    }

    /// Counts that the kernel is told of an object.
    pub(super) fn tell<'v, 'c>(
        &self,
        objects: &'v V::Objects<'c>,
        node: NodeOf<'v, 'c, V>,
        number: u64,
    ) -> Result<(), Errno> {
        match self.shard(number).entry(number) {
            Entry::Occupied(mut known) => known.get_mut().count += 1,
            Entry::Vacant(place) => {
                let kept = Arc::new(Kept { view: self.view.clone(), handle: Some(objects.retain(node)?) });
                place.insert(Known { kept, count: 1 });
            }
        }
        Ok(())
    }

    /// The kernel forgets an object, or some of what it was told of it.
    pub(super) fn forget(&self, number: u64, count: u64) {
        let mut shard = self.shard(number);
        let Some(known) = shard.get_mut(&number) else { return };
        known.count = known.count.saturating_sub(count);
        let forgotten = if known.count == 0 { shard.remove(&number) } else { None };
        drop(shard);
        // Its reference is given up without the lock.
        drop(forgotten);
    }
}
