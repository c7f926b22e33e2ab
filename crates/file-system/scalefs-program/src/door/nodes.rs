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

use scalefs::names;
use scalefs::{Direct, Errno, FileSystem, Node, ObjectOperations, OpenNode, Outside};

/// Parts of the table, each with a lock of its own.
const SHARDS: usize = 64;
/// The number of the root, here and for the kernel.
pub(super) const ROOT: u64 = 1;

/// A reference to an object, given up when this is dropped.
pub(super) struct Kept {
    files: FileSystem,
    handle: Option<OpenNode>,
}

impl Kept {
    pub(super) fn new(files: &FileSystem, handle: OpenNode) -> Kept {
        Kept { files: files.clone(), handle: Some(handle) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let (Some(handle), Ok(lease)) = (self.handle.take(), self.files.begin()) {
            names::close(&lease.objects(), handle);
        }
    }
}

/// An object that the kernel knows, for one request.
pub(super) enum Held {
    /// The root, which is always there.
    Root,
    /// Another one.
    Kept(Arc<Kept>),
}

impl Held {
    /// The object.
    pub(super) fn node<'v>(&'v self, objects: &'v Direct<'_, Outside>) -> Node<'v> {
        match self {
            Held::Kept(kept) => objects.held(kept.handle.as_ref().expect("kept until it is dropped")),
            Held::Root => objects.root(),
        }
    }
}

struct Known {
    kept: Arc<Kept>,
    /// How often the kernel was told of it and has not forgotten it.
    count: u64,
}

/// What the kernel knows.
pub(super) struct Nodes {
    files: FileSystem,
    shards: [Mutex<HashMap<u64, Known>>; SHARDS],
}

impl Nodes {
    pub(super) fn new(files: &FileSystem) -> Nodes {
        Nodes { files: files.clone(), shards: std::array::from_fn(|_| Mutex::default()) }
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, Known>> {
        // The low bits are a core's.
        let index = (number ^ number >> 8) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object that the kernel names by its number.
    pub(super) fn get(&self, number: u64) -> Result<Held, Errno> {
        match number {
            ROOT => Ok(Held::Root),
            _ => self.shard(number).get(&number).map(|known| Held::Kept(known.kept.clone())).ok_or(Errno::EIO),
        }
    }

    /// Counts that the kernel is told of an object.
    pub(super) fn tell<'v>(&self, objects: &'v Direct<'_, Outside>, node: Node<'v>, number: u64) -> Result<(), Errno> {
        match self.shard(number).entry(number) {
            Entry::Occupied(mut known) => known.get_mut().count += 1,
            Entry::Vacant(place) => {
                let kept = Arc::new(Kept::new(&self.files, objects.retain(node)?));
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
