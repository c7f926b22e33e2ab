//! Where a directory stands in the tree, and how it gets another parent.
//!
//! A move to another parent changes two names and the parent at one moment, the decision of its operation (crate
//! `commit`): until the new parent is written down, whoever asks for it looks at that decision. Moves are counted, so that
//! two looks at a directory's ancestors that saw the same saw what was so in between.
//!
//! **A directory under itself.** No lock is shared by all moves. Each marks what it moves, then reads the ancestors of its
//! target, marks included: of moves that together would close a loop, the one that marks last finds another one's mark.
#![allow(unsafe_code)]

use epoch::Guard;
use percpu::{Core, CoreIndex, CoreLockGuard, LockRank};
use sync::WaitReason;
use sync::atomic::{Ordering, fence};
use sync::mutant::planted;

use crate::direct::{Direct, OperationError};
use crate::host::Host;
use crate::inode_ref::InodeRef;

/// Rank of the locks that directories on their way to another parent hold: before all others.
const RANK_MOVE: LockRank = LockRank(5);

/// What a look at a directory's ancestors found.
enum Ancestors {
    /// The directory that moves is not among them.
    Free,
    /// It is.
    Loop,
    /// One of them is being moved by this core.
    Moving(InodeRef, CoreIndex),
}

/// Whether a mark that a directory moves is the call's only one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    First,
    Another,
}

/// Why a directory is not marked.
pub(crate) enum NotMarked {
    /// Its place is another one, or it is above its target.
    Changed,
    /// This core is moving this directory.
    Moving(InodeRef, CoreIndex),
}

/// Directories that one operation lets have other parents.
pub(crate) trait MovedTogether {
    /// How many.
    fn count(&self) -> usize;
    /// The parent that one of them gets.
    fn parent_of(&self, directory: InodeRef) -> Option<InodeRef>;
}

/// No other than the one that is asked about, or none that matters.
pub(crate) struct Alone;

impl MovedTogether for Alone {
    fn count(&self) -> usize {
        0
    }

    fn parent_of(&self, _: InodeRef) -> Option<InodeRef> {
        None
    }
}

impl<'c, H: Host> Direct<'c, H> {
    /// Walks from a directory to the root and looks for `sought`. Where directories come to other parents together with it,
    /// the walk goes by these.
    fn climb(&self, sought: InodeRef, from: InodeRef, together: &(impl MovedTogether + ?Sized)) -> Ancestors {
        let (mut current, root) = (from, self.fs.root_node());
        let mut left = together.count();
        loop {
            if current == sought {
                return Ancestors::Loop;
            }
            if current == root {
                return Ancestors::Free;
            }
            let place = &current.directory().place;
            // The mark before the parent: who marks later sees our own mark on its way up.
            let holder = place.moving.holder().filter(|holder| *holder != self.core().index());
            if let Some(holder) = holder.filter(|_| !planted("scalefs: moves do not see each other")) {
                return Ancestors::Moving(current, holder);
            }
            if !planted("scalefs: a mark that is gone does not bring the parent") {
                // Pairs with the release of a mark that was taken back: the parent is then seen as that move left it.
                fence(Ordering::Acquire);
            }
            current = match together.parent_of(current) {
                None => InodeRef::from_bits(place.parent.load(Ordering::Acquire)),
                // By the same one again: a loop, though `sought` is not in it.
                Some(_) if left == 0 => return Ancestors::Loop,
                Some(parent) => {
                    left -= 1;
                    parent
                }
            };
        }
    }

    /// Marks a directory as moving to another parent and makes sure that it is not above that parent. Who finds the mark
    /// of a core with a lower number takes its own back before it waits, so that no two wait for each other.
    ///
    /// # Errors
    /// `Changed`: its place may be another one, or it is above its target; the call starts again.
    pub(crate) fn begin_move<'d>(
        &self,
        moved: InodeRef,
        target: InodeRef,
        guard: &'d Guard<'d>,
        together: &(impl MovedTogether + ?Sized),
    ) -> Result<CoreLockGuard<'d>, OperationError> {
        loop {
            match self.mark_as_moving(moved, target, guard, Marks::First, together) {
                Ok(mark) => return Ok(mark),
                Err(NotMarked::Moving(other, holder)) if other != moved => self.wait_for_move(other, holder),
                Err(refusal) => return Err(self.start_again(refusal)),
            }
        }
    }

    /// As [`Direct::begin_move`], of a call that holds other marks: nobody is waited for.
    ///
    /// # Errors
    /// [`NotMarked`], for [`Direct::start_again`] once the call has let its marks go.
    pub(crate) fn begin_another_move<'d>(
        &self,
        moved: InodeRef,
        target: InodeRef,
        guard: &'d Guard<'d>,
        together: &(impl MovedTogether + ?Sized),
    ) -> Result<CoreLockGuard<'d>, NotMarked> {
        self.mark_as_moving(moved, target, guard, Marks::Another, together)
    }

    /// Waits for whose mark kept a call from marking a directory: it starts again, and holds no mark.
    pub(crate) fn start_again(&self, refusal: NotMarked) -> OperationError {
        if let NotMarked::Moving(other, holder) = refusal {
            self.wait_for_move(other, holder);
        }
        OperationError::Changed
    }

    fn mark_as_moving<'d>(
        &self,
        moved: InodeRef,
        target: InodeRef,
        guard: &'d Guard<'d>,
        marks: Marks,
        together: &(impl MovedTogether + ?Sized),
    ) -> Result<CoreLockGuard<'d>, NotMarked> {
        let core: &'d Core<'d> = guard.core();
        let place = &moved.directory().place;
        let Some(mark) = place.moving.try_lock(core, RANK_MOVE) else {
            // Whose it was may have let it go by now.
            return Err(place.moving.holder().map_or(NotMarked::Changed, |holder| NotMarked::Moving(moved, holder)));
        };
        // Orders our mark before the looks at others' marks, for each two moves.
        fence(Ordering::SeqCst);
        loop {
            match self.climb(moved, target, together) {
                Ancestors::Free => return Ok(mark),
                Ancestors::Loop => return Err(NotMarked::Changed),
                Ancestors::Moving(other, holder) if marks == Marks::First && holder > core.index() => {
                    self.wait_for_move(other, holder);
                }
                Ancestors::Moving(other, holder) => return Err(NotMarked::Moving(other, holder)),
            }
        }
    }

    /// Waits until another core has ended its move of a directory, which may be the next one's by then: with a mark of its own, a
    /// call waits only for cores with higher numbers.
    fn wait_for_move(&self, directory: InodeRef, holder: CoreIndex) {
        let mut round = 0;
        let is_held = |now: CoreIndex| {
            now == holder
                || (planted("scalefs: who waits for a move waits for the next one") && now != self.core().index())
        };
        while directory.directory().place.moving.holder().is_some_and(is_held) {
            sync::Wait::wait(self.host, WaitReason::Lock { holder: holder.get() as u16 }, round);
            round = round.saturating_add(1);
        }
    }
}
