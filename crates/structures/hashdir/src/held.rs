//! Which cores hold locks of a directory, for who looks whether all is whole.

use epoch::Guard;
use percpu::CoreIndex;
use sync::atomic::Ordering;

use crate::dir::HashDir;

impl HashDir {
    /// Tells `each` the core that holds a lock of the directory, lock by lock: of names, and of growth and removal.
    pub fn for_each_held(&self, _guard: &Guard<'_>, mut each: impl FnMut(CoreIndex)) {
        self.upkeep.lock.holder().into_iter().for_each(&mut each);
        let mut table = self.table.load(Ordering::Acquire);
        // SAFETY: tables are retired, so they live as long as the guard.
        while let Some(current) = unsafe { table.as_ref() } {
            current.made_buckets().filter_map(|bucket| bucket.lock.holder()).for_each(&mut each);
            table = current.next.load(Ordering::Acquire);
        }
    }
}
