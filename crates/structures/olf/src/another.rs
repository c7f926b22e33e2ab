//! Another store whose operations change lists, too: a file system whose transactions decide for both.
//!
//! **Its marks.** An operation of the other store marks all words of lists on which its part rests, when it is prepared, and keeps
//! them to its end: as that store's locks, they are not revoked. So a writer waits for the decision. A reader sees the old
//! state until then, as ever. But the operation may rest on what it has not locked in its own store, and is *open* while it
//! asks for that again. Who sees the old state from then on comes before it: so a reader of an open operation's mark revokes
//! it, and it opens again (crate `commit`).
//!
//! ```text
//! other store   prepare │ mark words of lists │ open, ask again │ decide │ replace the marks │ begin the next operation
//! a reader of a mark      old                   revoke, then old  new
//! a writer of the word    waits                 waits             new, at once
//! ```
//! Its record is that of its core in the other store. The core begins its next operation once the marks are gone.

use alloc::boxed::Box;

use commit::{Anyone, Keeper, Look, Observed, Operation, Tag, Waiting};
use percpu::CacheLine;
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{Wait, WaitReason};

use crate::link::Link;
use crate::list_link::leave_place;
use crate::record::Record;
use crate::word::{Mark, Word};

/// Said of an operation whose marks may stand in links.
const UNDER_WAY: u64 = 1;

/// What a domain knows of the other store.
pub(crate) struct Another {
    keeper: Box<dyn Keeper>,
    cores: Box<[CacheLine<OtherCore>]>,
}

/// Of a core of the other store.
struct OtherCore {
    record: Record,
    /// Atomic, written by the core alone: its last operation with a part in the domain, twice its tag, and whether its marks may
    /// stand. So it never is the same again.
    last: AtomicU64,
}

/// Waits as the other store likes to.
struct Patience<'k>(&'k dyn Keeper);

impl Wait for Patience<'_> {
    fn wait(&self, _: WaitReason, round: u32) {
        self.0.wait(round);
    }
}

impl Another {
    pub(crate) fn new(keeper: Box<dyn Keeper>) -> Another {
        let core = |_| CacheLine(OtherCore { record: Record::new(), last: AtomicU64::new(0) });
        let cores = (0..keeper.decisions().core_count()).map(core).collect();
        Another { keeper, cores }
    }

    /// Whether it decides an operation.
    pub(crate) fn decides(&self, operation: &Operation<'_>) -> bool {
        self.keeper.decisions().is_of(operation)
    }

    fn core(&self, tag: Tag) -> Option<&OtherCore> {
        self.cores.get(tag.core()?.get()).map(|core| &core.0)
    }

    pub(crate) fn record(&self, tag: Tag) -> Option<&Record> {
        self.core(tag).map(|core| &core.record)
    }

    /// What a reader learns: see the module's head.
    pub(crate) fn observe(&self, tag: Tag) -> Look {
        if sync::mutant::planted("olf: readers do not revoke what is open") {
            return self.keeper.decisions().look(tag);
        }
        match self.keeper.decisions().observe_by(tag, Waiting(Anyone, &Patience(&*self.keeper))) {
            Observed::Committed => Look::Committed,
            Observed::NotCommitted => Look::Undecided,
            Observed::Over => Look::Over,
        }
    }

    /// Whether it has been decided that an operation has happened.
    pub(crate) fn has_happened(&self, tag: Tag) -> bool {
        self.keeper.decisions().look(tag) == Look::Committed
    }

    /// An operation is about to place marks; false if it has placed some already.
    pub(crate) fn begin(&self, tag: Tag) -> bool {
        let Some(core) = self.core(tag) else { return false };
        let begun = tag.to_bits() << 1 | UNDER_WAY;
        // SeqCst, here and below: who has seen a change that comes after this sees this, too.
        if core.last.swap(begun, Ordering::SeqCst) == begun {
            return false;
        }
        // As in an operation of the domain: pairs with the fence of readers of the record.
        fence(Ordering::Release);
        true
    }

    /// Its marks are gone.
    pub(crate) fn end(&self, tag: Tag) {
        if let Some(core) = self.core(tag) {
            core.last.store(tag.to_bits() << 1, Ordering::SeqCst);
        }
    }

    /// A number for each core, which is another one once an operation with a part in the domain has happened.
    pub(crate) fn moments(&self) -> impl Iterator<Item = u64> {
        self.cores.iter().map(|CacheLine(core)| {
            let last = core.last.load(Ordering::SeqCst);
            let undecided = Tag::from_bits(last >> 1).filter(|_| last & UNDER_WAY != 0);
            match undecided.map(|tag| self.keeper.decisions().look(tag)) {
                Some(Look::Committed | Look::Over) => last & !UNDER_WAY,
                _ => last,
            }
        })
    }

    /// A writer needs a word that an operation of it has marked: waits until that is decided, and then replaces the mark.
    #[cold]
    pub(crate) fn wait(&self, link: &Link, mark: Word) {
        let Some(Mark { tag, place, .. }) = mark.as_mark() else { return };
        let Some(record) = self.record(tag) else { return };
        let mut round = 0;
        while link.load() == mark {
            let (_, new, version) = record.read(place);
            // What was read is of this operation, unless it is over.
            fence(Ordering::Acquire);
            // One that was revoked opens again: its marks stay.
            let is_let_through = sync::mutant::planted("olf: writers do not wait for another store");
            if self.has_happened(tag) {
                leave_place(link, version);
                let _ = link.exchange(mark, new);
            } else if is_let_through {
                let _ = link.exchange(mark, record.read(place).0);
            } else {
                self.keeper.wait(round);
                round = round.saturating_add(1);
            }
        }
    }
}
