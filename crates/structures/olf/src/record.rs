//! What an operation writes down before it marks: for each of its words what stood there and what comes, and which version of
//! its place an item leaves by it.

use percpu::{Arena, CoreIndex, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::atomic::{AtomicU64, Ordering};

use crate::word::{MOST_WORDS, Word};

/// A core's record: written by its core alone, after its decision word has got another sequence number, and read by all
/// who meet one of its marks.
pub(crate) struct Record {
    // Atomic: overwritten under readers, who notice by the sequence number.
    places: [Place; MOST_WORDS],
}

pub(crate) struct Place {
    old: AtomicU64,
    new: AtomicU64,
    /// Zero if no item leaves its place by this word.
    version: AtomicU64,
}

const RECORD: ObjectKind = table_kind!(Record as "words of a core's operation" { "places" = places });

/// The records of all cores.
pub(crate) struct Records(PerCore<Record>);

impl Records {
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    ///
    /// # Safety
    /// They are not used once the arena's memory is gone.
    pub(crate) unsafe fn create(arena: &Arena) -> Result<Records, OutOfMemory> {
        // SAFETY: the caller's promise.
        unsafe { PerCore::create(arena, |_| Record::new()) }.map(Records)
    }

    /// Where they lie, and what tools call them.
    pub(crate) fn table(&self) -> Part {
        Part { memory: self.0.memory(), kind: &RECORD }
    }

    /// The record of any core.
    #[inline]
    pub(crate) fn of(&self, core: CoreIndex) -> &Record {
        self.0.of(core)
    }
}

impl Record {
    pub(crate) fn new() -> Record {
        let zero = || AtomicU64::new(0);
        Record { places: core::array::from_fn(|_| Place { old: zero(), new: zero(), version: zero() }) }
    }

    /// The places of a record, one for each word, of the core that owns it.
    #[inline]
    pub(crate) fn places(&self) -> &[Place; MOST_WORDS] {
        &self.places
    }

    /// What a word was, what it becomes, and the version: of the operation whose mark the caller has seen, or of a later one.
    #[inline]
    pub(crate) fn read(&self, place: usize) -> (Word, Word, u64) {
        let place = &self.places[place];
        // Relaxed: seeing the mark has acquired them; who must know that they are of that operation looks at its decision
        // word after a fence.
        let (old, new) = (place.old.load(Ordering::Relaxed), place.new.load(Ordering::Relaxed));
        (Word::from_bits(old), Word::from_bits(new), place.version.load(Ordering::Relaxed))
    }
}

impl Place {
    /// What a word was, and what it becomes, and the version that goes with it. Of the core that owns the record, before it
    /// places the mark.
    #[inline]
    pub(crate) fn write(&self, old: Word, new: Word, version: u64) {
        // Relaxed: the exchange that places the mark releases them, and the fence before orders them after the beginning.
        self.old.store(old.to_bits(), Ordering::Relaxed);
        self.new.store(new.to_bits(), Ordering::Relaxed);
        self.version.store(version, Ordering::Relaxed);
    }

    /// The version that was written last. Of the core that owns the record.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}
