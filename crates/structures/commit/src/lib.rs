//! One word per core that decides whether an operation on several objects has happened.
//!
//! **Idea.** A rename changes two directory entries and a link count; an observer must see all of it or nothing. The
//! operation first prepares: it marks each object with its [`Tag`] ("if that operation has committed, I am the new
//! state, else the old one"). Then one store to the core's decision word makes all of it true at once. Then the marks
//! are replaced by the plain new states. Observers never wait: they ask the decision word.
//!
//! ```text
//! core 0   word = 7:undecided   mark a, mark b   word = 7:committed   clear a, clear b     word = 8:undecided ...
//! core 1               a? old state                        b? new state      b? (tag 7 is over) look again
//! ```
//!
//! **Firm and revocable.** One that holds locks on all that its preconditions rest on commits firmly: observers take an
//! undecided operation as not having happened. `link(a, b)` locks only b's bucket, so that it does not write a: it
//! prepares b, then checks a again, then commits. An observer that finds b undecided must not simply say "absent", since
//! the link may count as done from the moment of its check. It *revokes* the operation first, and the link starts again.
//!
//! ```text
//! begin(k):  word = (sequence + 1, k)
//! commit:    word = (sequence, committed)                 firm: a store; else compare and exchange; then a fence
//! observe t: (s, k) = word of t's core;  s ≠ t's → Over;  k = revocable → compare and exchange to aborted
//! ```
//!
//! **Open.** A large operation prepares firmly, under locks, and then rests on what it has not locked: it *opens*
//! ([`Operation::open`]), asks again for all that must be so, and commits. Who sees a mark in the meantime revokes it;
//! it opens again under the same tag, its marks stay. If that happens too often it *insists*: others then wait for one
//! look. Of two open operations that look at each other's marks the one with precedence revokes, the other one waits;
//! since precedence is an order of all, no two wait for each other. The owner looks through its own marks ([`Owner`]).
//!
//! ```text
//! open(r):   word = (sequence, open), then a fence     aborted → open again: what others saw before was before
//! commit:    compare and exchange open → committed
//! ```
//!
//! **One at a time.** A core has one word, so it has one operation that is not decided: to begin another panics
//! ([`Decisions::is_deciding`] tells before). An operation that is dropped undecided is aborted; whatever is done with one that is
//! over does not reach the word any more.
//!
//! **Marked.** An operation of which all that it rests on carries its mark, put there by compare and exchange, and which
//! no one guards by a lock: observers take it as not having happened, and a thread that needs a marked word revokes it
//! ([`Marked`]).
//!
//! **Two stores.** Another store may change under an operation that is firm until it is opened ([`Keeper`]): it puts the
//! operation's marks on all that its part rests on, and keeps them to the end. Its readers observe, as all others do.
//!
//! The fence after the commit makes the call's effect visible before the caller's next call reads anything: without it
//! two cores that each create a name and then look for the other's could both find nothing.
//!
//! **Death of a process**: its word still says whether its last operation happened. The heir of the core asks
//! [`Decisions::last`] and completes or undoes the marks, which name the tag.
//!
//! **Cost**: begin one store, commit one store and a fence (10 ns on x86), on the core's own line.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p commit --release --test loom`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]
#![deny(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod closures;
mod keeper;
mod marked;
mod moment;

use core::cell::Cell;

pub use closures::{InClosure, is_in_closure};
pub use keeper::Keeper;
pub use marked::{Look, Marked};
pub use moment::{Moment, Single};

use percpu::{Arena, Core, CoreIndex, ObjectKind, OutOfMemory, Part, PerCore, table_kind};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{Wait, WaitReason};

const FIRM: u64 = 0;
const REVOCABLE: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;
const OPEN: u64 = 4;
const INSISTING: u64 = 5;
const MARKED: u64 = 8;
/// A change of one word, which no mark names.
const SINGLE: u64 = 12;
const STATE_MASK: u64 = 15;
/// Set in the two states in which an operation is decided, and in no other.
const DECIDED: u64 = COMMITTED & ABORTED;
const STATE_BITS: u32 = 4;
const CORE_BITS: u32 = 8;

/// Names one operation: a core and a number that counts its operations. Not zero, and below 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u64);

impl Tag {
    /// The tag as a number, for a word of an object.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The tag with this number; `None` for zero.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Tag> {
        (bits != 0).then_some(Tag(bits))
    }

    /// The core whose operation it is.
    pub fn core(self) -> Option<CoreIndex> {
        CoreIndex::new((self.0 & ((1 << CORE_BITS) - 1)) as usize)
    }

    fn sequence(self) -> u64 {
        self.0 >> CORE_BITS
    }
}

/// What an observer learns about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It has happened.
    Committed,
    /// It has not happened up to now; a revocable one never will under this tag, an open one only if all that it rests on is so
    /// later.
    NotCommitted,
    /// It ended, and the marks are gone: look at the object again.
    Over,
}

/// An observer revoked the operation: prepare it again under a new tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

/// Who goes first of two open operations: the one with the smaller number, of equal ones that of the core with the
/// smaller index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence(pub u64);

/// What an open operation does about observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// They revoke it.
    Yields,
    /// They wait until it has committed, or opens no more.
    Insists,
}

/// Who looks at marks.
pub trait Viewer: Copy {
    /// The core whose open operation looks; none for all others.
    fn owner(self) -> Option<CoreIndex>;

    /// Spends a little time before another look at a mark whose operation must go on first; `round` counts from 0.
    #[cold]
    fn wait(self, round: u32) {
        sync::Spin.wait(WaitReason::Operation, round);
    }
}

/// Someone who has no open operation, and no better way to wait than to spin.
#[derive(Clone, Copy, Debug)]
pub struct Anyone;

impl Viewer for Anyone {
    #[inline(always)]
    fn owner(self) -> Option<CoreIndex> {
        None
    }
}

/// A viewer that waits as its host likes to.
#[derive(Debug)]
pub struct Waiting<'h, V, W>(pub V, pub &'h W);

impl<V: Copy, W> Clone for Waiting<'_, V, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Copy, W> Copy for Waiting<'_, V, W> {}

impl<V: Viewer, W: Wait> Viewer for Waiting<'_, V, W> {
    #[inline(always)]
    fn owner(self) -> Option<CoreIndex> {
        self.0.owner()
    }

    #[cold]
    fn wait(self, round: u32) {
        self.1.wait(WaitReason::Operation, round);
    }
}

/// The open operation of this core: it sees through its own marks what was before.
#[derive(Clone, Copy, Debug)]
pub struct Owner(pub CoreIndex);

impl Viewer for Owner {
    #[inline]
    fn owner(self) -> Option<CoreIndex> {
        Some(self.0)
    }
}

/// The decision words of all cores.
pub struct Decisions {
    words: PerCore<Word>,
}

/// What a core tells of its operation. Written by the core, but for revocations.
struct Word {
    state: AtomicU64,
    /// Has a meaning while the state is open or insisting.
    precedence: AtomicU64,
}

const WORD: ObjectKind = table_kind!(Word as "operation of a core" { "state" = state, "precedence" = precedence });

/// An operation of the caller's core, the only one that is not decided yet. Dropped so, it never happens.
pub struct Operation<'d> {
    word: &'d Word,
    tag: Tag,
    /// The state of the word while it is undecided; [`COMMITTED`] from then on, if it has happened.
    kind: Cell<u64>,
}

impl Decisions {
    /// Where the words lie, and what tools call them.
    pub fn table(&self) -> Part {
        Part { memory: self.words.memory(), kind: &WORD }
    }

    /// Places decision words in an arena.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    #[allow(unsafe_code)]
    pub fn create(arena: &Arena) -> Result<&Decisions, OutOfMemory> {
        // SAFETY: what is made lies in the arena itself, with what keeps it.
        let words = unsafe {
            PerCore::create(arena, |_| Word { state: AtomicU64::new(ABORTED), precedence: AtomicU64::new(0) })
        }?;
        arena.place(Decisions { words })
    }

    /// How many cores have a word.
    pub fn core_count(&self) -> usize {
        self.words.below(usize::MAX).count()
    }

    /// Whether an operation is decided by one of these words.
    pub fn is_of(&self, operation: &Operation<'_>) -> bool {
        self.words.memory().contains(&core::ptr::from_ref(operation.word).addr())
    }

    /// Whether the core has an operation that is not decided: it cannot begin another.
    #[inline]
    pub fn is_deciding(&self, core: &Core<'_>) -> bool {
        self.words.get(core).state.load(Ordering::Relaxed) & DECIDED == 0
    }

    /// Starts an operation whose preconditions are guarded by locks that the caller holds.
    ///
    /// # Panics
    /// If the core has another one that is not decided.
    #[inline]
    pub fn begin_firm<'d>(&'d self, core: &'d Core<'_>) -> Operation<'d> {
        self.begin(core, FIRM)
    }

    /// Starts an operation that checks some precondition after it has prepared, and that observers may revoke.
    ///
    /// # Panics
    /// As [`Decisions::begin_firm`].
    #[inline]
    pub fn begin_revocable<'d>(&'d self, core: &'d Core<'_>) -> Operation<'d> {
        self.begin(core, REVOCABLE)
    }

    #[inline]
    fn begin<'d>(&'d self, core: &'d Core<'_>, kind: u64) -> Operation<'d> {
        let word = self.words.get(core);
        let before = word.state.load(Ordering::Relaxed);
        if before & DECIDED == 0 && !sync::mutant::planted("commit: a core begins two operations") {
            begun_twice(core.index());
        }
        // The next number; its state's bits are zero.
        let next = (before | STATE_MASK) + 1;
        // Release: who finds the operation over also finds the marks of the one before replaced.
        word.state.store(next + kind, Ordering::Release);
        let tag = Tag(next << (CORE_BITS - STATE_BITS) | core.index().get() as u64);
        Operation { word, tag, kind: Cell::new(kind) }
    }

    /// Learns whether an operation has happened. Revokes it if it is revocable, or open, and undecided.
    #[inline]
    pub fn observe(&self, tag: Tag) -> Observed {
        self.observe_by(tag, Anyone)
    }

    /// [`Decisions::observe`] for a viewer that may have an open operation itself.
    #[inline]
    pub fn observe_by(&self, tag: Tag, viewer: impl Viewer) -> Observed {
        let Some(core) = tag.core() else {
            return Observed::Over;
        };
        if viewer.owner() == Some(core) {
            return Observed::NotCommitted;
        }
        let word = self.words.of(core);
        let mut round = 0;
        loop {
            // Acquire pairs with the releases in `begin`, `open` and `commit`.
            let seen = word.state.load(Ordering::Acquire);
            if seen >> STATE_BITS != tag.sequence() {
                return Observed::Over;
            }
            match seen & STATE_MASK {
                COMMITTED => return Observed::Committed,
                FIRM | MARKED | SINGLE | ABORTED => return Observed::NotCommitted,
                state => {
                    if !self.may_revoke(state, core, viewer) {
                        viewer.wait(round);
                        round = round.saturating_add(1);
                        continue;
                    }
                    if sync::mutant::planted("commit: observers do not revoke") {
                        return Observed::NotCommitted;
                    }
                    let aborted = seen & !STATE_MASK | ABORTED;
                    if word.state.compare_exchange(seen, aborted, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                        return Observed::NotCommitted;
                    }
                }
            }
        }
    }

    /// Whether a viewer revokes the undecided operation of another core rather than waiting for it.
    #[inline]
    fn may_revoke(&self, state: u64, core: CoreIndex, viewer: impl Viewer) -> bool {
        match viewer.owner() {
            _ if state == REVOCABLE => true,
            None => state == OPEN,
            Some(own) => {
                let rank = |core: CoreIndex| (self.words.of(core).precedence.load(Ordering::Relaxed), core.get());
                rank(own) < rank(core)
            }
        }
    }

    /// [`Decisions::observe_by`] of the operation that a core has begun last, for marks that name a core only. Who uses it
    /// looks at the mark again.
    pub fn observe_last(&self, core: CoreIndex, viewer: impl Viewer) -> Observed {
        let sequence = self.words.of(core).state.load(Ordering::Acquire) >> STATE_BITS;
        self.observe_by(Tag(sequence << CORE_BITS | core.get() as u64), viewer)
    }

    /// Whether what another core, or the caller's own while its operation is open, has marked is as it was before. Revokes what is
    /// open; waits for what insists, or has precedence over the caller's own open operation.
    #[cold]
    pub fn is_as_before(&self, core: CoreIndex, own: &Core<'_>, wait: &impl Wait) -> bool {
        let state = self.words.get(own).state.load(Ordering::Relaxed) & STATE_MASK;
        let observed = match state {
            OPEN | INSISTING => self.observe_last(core, Waiting(Owner(own.index()), wait)),
            _ => self.observe_last(core, Waiting(Anyone, wait)),
        };
        observed == Observed::NotCommitted
    }

    /// The last operation of a core that was taken over, and whether it has happened; an undecided one is aborted.
    pub fn last(&self, core: &Core<'_>) -> (Tag, bool) {
        let word = &self.words.get(core).state;
        let seen = word.load(Ordering::Acquire);
        let sequence = seen >> STATE_BITS;
        let committed = seen & STATE_MASK == COMMITTED;
        if !committed {
            word.store(sequence << STATE_BITS | ABORTED, Ordering::Release);
        }
        (Tag(sequence << CORE_BITS | core.index().get() as u64), committed)
    }
}

#[cold]
#[inline(never)]
fn begun_twice(core: CoreIndex) -> ! {
    panic!("core {} begins an operation before its last one is decided", core.get())
}

impl Operation<'_> {
    /// The tag to mark objects with.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// From now on a thread that sees a mark of the operation revokes it, or waits. What must be so is asked for after
    /// this, by [`Owner`]; then it is committed, or aborted, or opened again. Also opens an operation that was revoked.
    pub fn open(&mut self, precedence: Precedence, stance: Stance) {
        let kind = if stance == Stance::Insists { INSISTING } else { OPEN };
        self.kind.set(kind);
        self.word.precedence.store(precedence.0, Ordering::Relaxed);
        // Release: who finds it open sees its precedence, and all marks.
        self.word.state.store(self.tag.sequence() << STATE_BITS | kind, Ordering::Release);
        if !sync::mutant::planted("commit: no fence after opening") {
            // Who changes something after we have asked for it, and then looks at a mark, finds the operation open. Pairs with
            // the fences of all changes.
            fence(Ordering::SeqCst);
        }
    }

    /// Makes the operation happen. Fails only if it is revocable or open, and was revoked.
    ///
    /// # Errors
    /// [`Revoked`] if somebody revoked it: it has not happened, and does not unless it is opened again.
    #[inline]
    pub fn commit(&self) -> Result<(), Revoked> {
        let committed = self.tag.sequence() << STATE_BITS | COMMITTED;
        if self.kind.get() == FIRM {
            // Release pairs with the acquire in `observe`: who sees the decision sees all marks.
            self.word.state.store(committed, Ordering::Release);
        } else {
            let undecided = self.tag.sequence() << STATE_BITS | self.kind.get();
            self.word
                .state
                .compare_exchange(undecided, committed, Ordering::AcqRel, Ordering::Relaxed)
                .map_err(|_| Revoked)?;
        }
        self.kind.set(COMMITTED);
        if !sync::mutant::planted("commit: no fence after the decision") {
            // See the crate's head. Pairs with the fences of other commits and with `fence_before_check`.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// Between preparing and checking again: orders the marks before the check. Pairs with the fence in `commit`.
    #[inline]
    pub fn fence_before_check(&self) {
        if !sync::mutant::planted("commit: no fence before the check") {
            fence(Ordering::SeqCst);
        }
    }

    /// Makes sure that the operation never happens, unless it has.
    #[inline]
    pub fn abort(&self) {
        let sequence = self.tag.sequence() << STATE_BITS;
        let kind = self.kind.get();
        if kind != COMMITTED {
            // Else others have revoked it, and the core may have begun the next one.
            let (undecided, aborted) = (sequence | kind, sequence | ABORTED);
            self.word.state.compare_exchange(undecided, aborted, Ordering::Release, Ordering::Relaxed).ok();
            // As one that others have revoked: it does not commit.
            self.kind.set(REVOCABLE);
        }
    }
}

impl Drop for Operation<'_> {
    #[inline]
    fn drop(&mut self) {
        self.abort();
    }
}
