//! What waits for the disk: transactions in their order, written by whoever waits first, in groups.
//!
//! ```text
//! places    17 18 19 | 20   21    22   23          17 to 19 last
//!                      kept kept  open kept        20 and 21 are the next group; 22 is not decided
//! ```
//! While one group is written, transactions go on and come together in the next. So a disk that takes 5 ms for a sync does
//! 200 groups a second, of as many transactions as there are threads.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use posix_calls::InodeNumber;
use sync::mutant::planted;
use transact::{Changes, Journal};

use crate::record::Record;
use crate::store::Store;

/// So many bytes wait at most for a later transaction that waits for the disk.
const MOST_BYTES: usize = 64 << 20;

/// The order of transactions, and the store into which they go.
#[derive(Debug)]
pub(crate) struct Log {
    order: Mutex<Order>,
    moved: Condvar,
    /// Taken by who writes.
    store: Mutex<Store>,
}

/// A place in the order.
#[derive(Debug)]
enum Entry {
    /// Not decided, or not yet kept.
    Open,
    /// It has happened.
    Kept(Record),
    /// It has not, or has changed nothing.
    Empty,
}

#[derive(Debug, Default)]
struct Order {
    /// All places below this last.
    lasting: u64,
    /// The first of `entries`; those between are being written.
    first: u64,
    entries: VecDeque<Entry>,
    /// Of each object that some entry changes: the last one that does.
    changed: HashMap<InodeNumber, u64>,
    /// Of entries, with what they have.
    size_bytes: usize,
    is_writing: bool,
    /// The disk has refused something: what memory has need not last.
    failed: Option<String>,
}

impl Order {
    /// The entries before the first that is open, with their end.
    fn take_group(&mut self) -> Vec<Record> {
        let is_open = |entry: &Entry| matches!(entry, Entry::Open);
        let mut end = self.entries.iter().position(is_open).unwrap_or(self.entries.len());
        if planted("durable: a group goes on after what is not decided") {
            end = self.entries.len();
        }
        self.first += end as u64;
        let records = self.entries.drain(..end).filter_map(|entry| match entry {
            Entry::Kept(record) => Some(record),
            _ => None,
        });
        let records: Vec<_> = records.collect();
        self.size_bytes -= end * size_of::<Entry>();
        self.size_bytes -= records.iter().map(|record| record.size_bytes).sum::<usize>();
        records
    }

    /// Drops the entries at the beginning that have nothing to last, unless those before them are being written.
    fn skip_empty(&mut self) {
        if self.lasting < self.first {
            return;
        }
        while matches!(self.entries.front(), Some(Entry::Empty)) {
            self.entries.pop_front();
            self.first += 1;
            self.size_bytes -= size_of::<Entry>();
        }
        self.lasting = self.first;
    }

    fn error(&self) -> Option<io::Error> {
        let failed = self.failed.as_ref()?;
        Some(io::Error::other(format!("the disk has refused a commit ({failed}); open the instance again")))
    }
}

impl Log {
    pub(crate) fn new(store: Store) -> Log {
        Log { order: Mutex::default(), moved: Condvar::new(), store: Mutex::new(store) }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        // Nobody panics with it.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, place: u64, entry: Entry) {
        let mut order = self.order();
        let index = (place - order.first) as usize;
        if let Entry::Kept(record) = &entry {
            order.size_bytes += record.size_bytes;
            for object in &record.objects {
                // Those of later places may have come before.
                let last = order.changed.entry(object.number).or_default();
                *last = place.max(*last);
            }
        }
        order.entries[index] = entry;
        order.skip_empty();
        drop(order);
        self.moved.notify_all();
    }

    /// Fails once the disk has.
    fn check(&self) -> io::Result<()> {
        self.order().error().map_or(Ok(()), Err)
    }

    /// Waits until this place lasts, and all before it; writes them, if nobody does.
    pub(crate) fn wait_for(&self, place: u64) -> io::Result<()> {
        let mut order = self.order();
        loop {
            if let Some(error) = order.error() {
                return Err(error);
            }
            if place < order.lasting {
                return Ok(());
            }
            let is_ready = order.entries.front().is_some_and(|entry| !matches!(entry, Entry::Open));
            if order.is_writing || !is_ready {
                order = self.moved.wait(order).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let records = order.take_group();
            let end = order.first;
            order.is_writing = true;
            drop(order);
            let written = self.write(&records);
            order = self.order();
            order.is_writing = false;
            match written {
                Ok(()) => {
                    order.lasting = end;
                    order.changed.retain(|_, last| *last >= end);
                }
                Err(error) => order.failed = Some(error.to_string()),
            }
            self.moved.notify_all();
        }
    }

    fn write(&self, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        // Who panics with it leaves it half done.
        let mut store = self.store.lock().map_err(|_| io::Error::other("a commit has panicked"))?;
        let commit = std::panic::AssertUnwindSafe(|| store.commit(records));
        std::panic::catch_unwind(commit).unwrap_or_else(|_| Err(io::Error::other("a commit has panicked")))
    }

    /// Waits until the last change of an object lasts, of all that have been seen.
    pub(crate) fn wait_for_object(&self, number: InodeNumber) -> io::Result<()> {
        let mut order = self.order();
        let end = order.first + order.entries.len() as u64;
        // What has been seen may not be kept yet. That takes no disk.
        let is_open = |order: &Order| {
            let before = end.saturating_sub(order.first) as usize;
            order.entries.iter().take(before).any(|entry| matches!(entry, Entry::Open))
        };
        while is_open(&order) {
            order = self.moved.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        let last = order.changed.get(&number).copied();
        drop(order);
        last.map_or_else(|| self.check(), |place| self.wait_for(place))
    }

    /// Makes all last that has happened, and notes that nothing is missing.
    pub(crate) fn close(&self) -> io::Result<()> {
        let place = self.take_place();
        self.give_back(place);
        self.wait_for(place)?;
        self.store.lock().map_err(|_| io::Error::other("a commit has panicked"))?.mark()
    }
}

impl Journal for Log {
    fn take_place(&self) -> u64 {
        let mut order = self.order();
        order.entries.push_back(Entry::Open);
        order.size_bytes += size_of::<Entry>();
        order.first + order.entries.len() as u64 - 1
    }

    fn keep(&self, place: u64, changes: &Changes<'_>) {
        let record = Record::of(changes);
        self.settle(place, if record.is_empty() { Entry::Empty } else { Entry::Kept(record) });
    }

    fn give_back(&self, place: u64) {
        self.settle(place, Entry::Empty);
    }

    fn wait(&self, place: u64) -> io::Result<()> {
        if planted("durable: answers do not wait for the disk") { Ok(()) } else { self.wait_for(place) }
    }
}

/// The same order, for transactions whose answers do not wait.
pub(crate) struct Unhurried(pub(crate) Arc<Log>);

impl Journal for Unhurried {
    fn take_place(&self) -> u64 {
        self.0.take_place()
    }

    fn keep(&self, place: u64, changes: &Changes<'_>) {
        if planted("durable: who does not wait is not kept") {
            return self.0.give_back(place);
        }
        self.0.keep(place, changes);
    }

    fn give_back(&self, place: u64) {
        self.0.give_back(place);
    }

    fn wait(&self, place: u64) -> io::Result<()> {
        let waiting = self.0.order().size_bytes;
        if waiting > MOST_BYTES { self.0.wait_for(place) } else { self.0.check() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use redb::backends::InMemoryBackend;
    use transact::Journal as _;

    use posix_calls::InodeNumber;

    use super::{Entry, Log};
    use crate::record::{ObjectRecord, Record};
    use crate::storage::Storage;
    use crate::store::Store;

    fn log() -> Log {
        let storage = Storage { records: Box::new(InMemoryBackend::new()), pages: Box::new(InMemoryBackend::new()) };
        Log::new(Store::create(storage, [1; 16], 0).unwrap().0)
    }

    const OBJECT: InodeNumber = InodeNumber(7);

    /// What changes an object, of which the store has no record.
    fn change() -> Entry {
        let object = ObjectRecord {
            number: OBJECT,
            made: None,
            cut_to: None,
            writes: Vec::new(),
            size_bytes: None,
            touched: None,
            attributes: Vec::new(),
        };
        Entry::Kept(Record { objects: vec![object], ..Record::default() })
    }

    #[test]
    fn the_last_change_of_an_object_is_that_of_the_last_place() {
        let log = log();
        let [first, second, third] = [(); 3].map(|()| log.take_place());
        log.settle(third, change());
        log.settle(first, change());
        assert_eq!(log.order().changed[&OBJECT], third);
        log.give_back(second);
        log.wait_for_object(OBJECT).unwrap();
        assert!(log.order().lasting > third);
    }

    #[test]
    fn what_is_seen_and_not_kept_yet_is_waited_for() {
        let log = &log();
        let place = log.take_place();
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(50));
                log.settle(place, change());
            });
            log.wait_for_object(OBJECT).unwrap();
            assert!(log.order().lasting > place);
        });
    }

    #[test]
    fn transactions_that_change_nothing_leave_nothing() {
        let log = log();
        let look = || log.give_back(log.take_place());
        (0..100).for_each(|_| look());
        assert_eq!(log.order().entries.len(), 0);
        let changes = log.take_place();
        (0..100).for_each(|_| look());
        log.settle(changes, change());
        assert_eq!(log.order().size_bytes, 101 * size_of::<Entry>(), "so that who does not wait does so at last");
        log.wait_for(changes).unwrap();
        let order = log.order();
        assert_eq!((order.entries.len(), order.size_bytes, order.lasting), (0, 0, 201));
    }

    #[test]
    fn who_comes_after_what_is_not_decided_waits_for_it() {
        let (log, decided) = (&log(), &AtomicBool::new(false));
        let (first, second) = (log.take_place(), log.take_place());
        log.give_back(second);
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(50));
                decided.store(true, Ordering::SeqCst);
                log.give_back(first);
            });
            log.wait(second).unwrap();
            assert!(decided.load(Ordering::SeqCst));
        });
    }
}
