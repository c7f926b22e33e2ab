//! Where a directory stands in the tree: its parent, and the move that is under way.

use commit::{Decisions, Observed, Tag, Viewer};
use percpu::CoreLock;
use posix_calls::ParentLink;
use sync::atomic::{AtomicU64, Ordering, fence};

use crate::inode_ref::InodeRef;

/// Where a directory stands in the tree.
pub(crate) struct Place {
    /// Atomic: bits of the node of the directory in which this one has its name, or had its last; the root's is its own.
    /// The directory holds a reference to it. Changed under `moving`.
    pub(crate) parent: AtomicU64,
    /// Held while the directory gets another parent.
    pub(crate) moving: CoreLock,
    /// Atomic: tag of the move that is under way, or zero. If that has happened, the parent is `next_parent`.
    tag: AtomicU64,
    /// Atomic: bits of the node of the parent to be. Has a meaning while there is a tag.
    next_parent: AtomicU64,
    /// Atomic: how many moves have ended. Changed after all else.
    moves: AtomicU64,
}

impl Place {
    /// Of a directory that has its name in `parent`, or will have.
    pub(crate) fn under(parent: u64) -> Place {
        let [parent, tag, next_parent, moves] = [parent, 0, 0, 0].map(AtomicU64::new);
        Place { parent, moving: CoreLock::new(), tag, next_parent, moves }
    }

    /// Where the directory stood at a moment of the call.
    pub(crate) fn parent_link(&self, decisions: &Decisions, viewer: impl Viewer) -> ParentLink<InodeRef> {
        let mut round = 0;
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            // The tag before the parent: if there is none, the parent was right when it was looked at or came later.
            let tag = Tag::from_bits(self.tag.load(Ordering::Acquire));
            let next = self.next_parent.load(Ordering::Acquire);
            let parent = self.parent.load(Ordering::Acquire);
            let observed = match tag {
                Some(tag) if !sync::mutant::planted("scalefs: a move is seen before its parent") => {
                    decisions.observe_by(tag, viewer)
                }
                _ => Observed::NotCommitted,
            };
            // What was read belongs together if no move has ended since.
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) == moves {
                match observed {
                    Observed::NotCommitted => return ParentLink { parent: InodeRef::from_bits(parent), moves },
                    Observed::Committed => return ParentLink { parent: InodeRef::from_bits(next), moves: moves + 1 },
                    Observed::Over => {}
                }
            }
            viewer.wait(round);
            round = round.saturating_add(1);
        }
    }

    /// Says where the directory goes if the operation happens; `moving` is held.
    pub(crate) fn announce(&self, next: InodeRef, tag: Tag) {
        self.next_parent.store(next.to_bits(), Ordering::Release);
        self.tag.store(tag.to_bits(), Ordering::Release);
    }

    /// The parent of a directory without a name, which nobody else finds.
    pub(crate) fn unnamed_parent(&self) -> InodeRef {
        InodeRef::from_bits(self.parent.load(Ordering::Acquire))
    }

    /// The parent that was announced last.
    pub(crate) fn announced(&self) -> InodeRef {
        InodeRef::from_bits(self.next_parent.load(Ordering::Acquire))
    }

    /// Ends an announced move that does not happen.
    pub(crate) fn withdraw(&self) {
        self.tag.store(0, Ordering::Release);
    }

    /// Ends an announced move that has happened, once the parent is what was announced.
    pub(crate) fn end(&self) {
        self.withdraw();
        self.moves.store(self.moves.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}
