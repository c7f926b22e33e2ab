//! Pipes: a ring of pages between one reader and one writer at a time, which share a line only if they meet.
//!
//! **Idea.** Sixteen slots, as in Linux (`PIPE_DEF_BUFFERS`). Whether a slot holds bytes is told by the slot itself, so a
//! reader does not look at where writers are, nor a writer at where readers are: in a pipe that is neither empty nor full
//! they touch different lines.
//!
//! ```text
//! reader side │ lock, head │   slot 0 │ start, end │ ... slot 15 │    │ lock, tail │ writer side
//! read:   slot at head not filled → nobody writes any more ? end : try again;   copy; start += n;  head += 1 if that is all
//! write:  nobody reads any more → EPIPE;   the last slot takes the odd bytes if they fit;   slot at tail not empty → full
//! ```
//!
//! A slot's state is one word: where its bytes start and end, and how often it was filled. So whoever looks at it without a
//! lock knows whether it is still the turn of the number that he comes with. A writer that adds to the last slot copies
//! behind its end, then exchanges the word; if a reader has emptied the slot meanwhile the exchange fails, and the bytes go to
//! a slot of their own.
//!
//! **Ends.** Of the descriptors of either end the last one that is closed (`ends.rs`) raises a flag, which is all that the other
//! end looks at. Closing is thus what shares lines,
//! not reading and writing (section 6.4).
//!
//! **Death of a process** leaves the lock of a side: [`Pipe::repair_taken_over`]. Bytes of a write that had not reached its
//! slot's word are not in the pipe; a read that had not, has not happened.
#![allow(unsafe_code)]

use core::mem::offset_of;

use pages::{PAGE_BYTES, PageNumber};
use percpu::{ArenaObject, CacheLine, Core, CoreLock, CoreLockGuard, LockRank, ObjectKind, OutOfMemory};
use posix_calls::{Errno, PipeEnd};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::mutant::planted;

use crate::ends::Ends;
use crate::inode::{Inode, inode_kind};
use crate::instance::ScaleFs;
use pages::shared_bytes;

/// Before all that changes together with a pipe.
const RANK_SIDE: LockRank = LockRank(3);
const SLOT_COUNT: usize = 16;

/// A pipe: an inode with a ring.
#[repr(C)]
pub(crate) struct Pipe {
    pub(crate) inode: Inode,
    /// Descriptors of each end.
    ends: [Ends; 2],
    /// Atomic: ends of which the last descriptor was closed.
    gone: CacheLine<[AtomicU32; 2]>,
    sides: [CacheLine<Side>; 2],
    slots: [CacheLine<PipeSlot>; SLOT_COUNT],
}

/// What tools call a pipe's parts.
pub(crate) const PIPE: ObjectKind = inode_kind!(7, Pipe as "pipe" {
    "readers" = ends,
    "writers" = ends + size_of::<Ends>(),
    "gone" = gone,
    "readers' lock" = sides + offset_of!(Side, lock),
    "slots read" = sides + offset_of!(Side, passed),
    "writers' lock" = sides + size_of::<CacheLine<Side>>() + offset_of!(Side, lock),
    "slots written" = sides + size_of::<CacheLine<Side>>() + offset_of!(Side, passed),
    "slots" = slots,
});

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Pipe {
    const KIND: ObjectKind = PIPE;
}

/// What readers have among them, or writers.
struct Side {
    lock: CoreLock,
    /// Guarded by `lock`, read by anybody: slots that were emptied, or filled, since the beginning.
    passed: AtomicU64,
}

impl Side {
    /// Whether no call was under way that has passed slots since so many were.
    #[inline]
    fn is_between_calls(&self, passed: u64) -> bool {
        let is_free = self.lock.holder().is_none();
        // Pairs with the release of the lock: whoever was in a call is seen to hold it still, or to have passed slots.
        fence(Ordering::Acquire);
        is_free && self.passed.load(Ordering::Relaxed) == passed
    }
}

/// Both ends of a pipe, locked; see [`Pipe::lock`].
#[must_use = "dropped, it unlocks them"]
pub(crate) struct LockedSides<'o> {
    pipe: &'o Pipe,
    _sides: [CoreLockGuard<'o>; 2],
}

impl LockedSides<'_> {
    /// Takes so many bytes out, and puts these in.
    pub(crate) fn take_and_put(&self, fs: &ScaleFs, core: &Core<'_>, mut taken_bytes: usize, put: &[u8]) {
        let mut forgotten = [0; PAGE_BYTES];
        while taken_bytes > 0 {
            let taken = self.pipe.read_locked(fs, &mut forgotten[..taken_bytes.min(PAGE_BYTES)]);
            assert_ne!(taken, 0, "it was asked whether they are there");
            taken_bytes -= taken;
        }
        let written = self.pipe.write_locked(fs, core, put);
        assert_eq!(written, Ok(put.len()), "it was asked whether there is room, and pages are there");
    }
}

/// A page's worth of bytes.
struct PipeSlot {
    /// Atomic: a [`Filling`].
    state: AtomicU64,
    /// Guarded by the writers' lock, then by the state: 1 + the page, or zero. Stays until the pipe goes.
    page: AtomicU32,
}

/// The bytes of a slot that wait, from `start` to `end`, which were the `turn`th to fill it, counted from 1; none if both
/// are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filling {
    turn: u32,
    start: usize,
    end: usize,
}

impl Filling {
    #[inline]
    fn decode(state: u64) -> Filling {
        Filling { turn: (state >> 32) as u32, start: (state & 0xffff) as usize, end: (state >> 16 & 0xffff) as usize }
    }

    #[inline]
    fn encode(self) -> u64 {
        self.start as u64 | (self.end as u64) << 16 | u64::from(self.turn) << 32
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// How often a slot has been filled once it was for this number.
#[inline]
fn turn_of(number: u64) -> u32 {
    (number / SLOT_COUNT as u64) as u32 + 1
}

/// What a slot is for one of the numbers that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It was not filled for the number yet, and is empty.
    Free,
    /// It was not filled for the number yet: bytes of the one before wait.
    Full,
    /// The number's bytes wait.
    Waiting(Filling),
    /// They were taken.
    Taken,
}

impl Pipe {
    /// An empty pipe without descriptors.
    pub(crate) fn new(inode: Inode) -> Pipe {
        Pipe {
            inode,
            ends: [Ends::new(), Ends::new()],
            gone: CacheLine([AtomicU32::new(0), AtomicU32::new(0)]),
            sides: core::array::from_fn(|_| CacheLine(Side { lock: CoreLock::new(), passed: AtomicU64::new(0) })),
            slots: core::array::from_fn(|_| CacheLine(PipeSlot { state: AtomicU64::new(0), page: AtomicU32::new(0) })),
        }
    }

    /// Gives the pages back.
    ///
    /// # Safety
    /// Nobody uses the pipe any more.
    pub(crate) unsafe fn destroy(&self, fs: &ScaleFs, core: &Core<'_>) {
        for slot in &self.slots {
            if let Some(page) = slot.page.load(Ordering::Acquire).checked_sub(1) {
                // SAFETY: the slot is the page's only place.
                unsafe { fs.pages().free(core, PageNumber::new(page)) };
            }
        }
    }

    /// One more descriptor of an end: the first one, or one that is counted while another one is open.
    pub(crate) fn open_end(&self, fs: &ScaleFs, core: &Core<'_>, end: PipeEnd) {
        self.ends[end as usize].open(fs, core);
    }

    /// One descriptor of an end less.
    pub(crate) fn close_end(&self, fs: &ScaleFs, core: &Core<'_>, end: PipeEnd, wait: &impl Wait) {
        if self.ends[end as usize].close(fs, core, wait) {
            self.gone[end as usize].store(1, Ordering::Release);
        }
    }

    /// A dead core was about to close a descriptor of an end, or had done so.
    pub(crate) fn end_closed(&self, fs: &ScaleFs, end: PipeEnd, wait: &impl Wait) {
        if self.ends[end as usize].are_closed(fs, wait) {
            self.gone[end as usize].store(1, Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn is_gone(&self, end: PipeEnd) -> bool {
        self.gone[end as usize].load(Ordering::Acquire) != 0
    }

    /// Copies bytes that wait, without taking them (Linux: `tee`). Exact if nobody reads meanwhile.
    pub(crate) fn peek(&self, fs: &ScaleFs, bytes: &mut [u8]) -> usize {
        let mut done = 0;
        for number in self.side(PipeEnd::Read).passed.load(Ordering::Acquire).. {
            let waiting = match self.look(number) {
                Look::Waiting(waiting) if done < bytes.len() => waiting,
                _ => break,
            };
            let count = (waiting.end - waiting.start).min(bytes.len() - done);
            let page = PageNumber::new(self.slot(number).page.load(Ordering::Relaxed).wrapping_sub(1));
            // SAFETY: pages stay in their slots as long as the pipe lives.
            unsafe {
                let source = fs.pages().address(page).as_ptr().add(waiting.start);
                shared_bytes::load(&mut bytes[done..done + count], source);
            }
            done += count;
        }
        done
    }

    /// Whether bytes wait to be read, or there is room for one.
    pub(crate) fn is_ready(&self, end: PipeEnd) -> bool {
        !self.is_stuck(end)
    }

    /// As [`Pipe::is_stuck`], and no other call on that side was in the middle of several slots, of which each is seen.
    #[inline]
    fn is_stuck_between_calls(&self, end: PipeEnd) -> bool {
        let side = self.side(end);
        let passed = side.passed.load(Ordering::Acquire);
        let sees_middle = planted("scalefs: the middle of a pipe's call is seen")
            || planted("scalefs: a pipe's slot is looked at whosever turn it is");
        self.is_stuck(end) && (sees_middle || side.is_between_calls(passed))
    }

    fn side(&self, end: PipeEnd) -> &Side {
        &self.sides[end as usize]
    }

    #[inline]
    fn slot(&self, number: u64) -> &PipeSlot {
        &self.slots[(number % SLOT_COUNT as u64) as usize]
    }

    #[inline]
    fn look(&self, number: u64) -> Look {
        // Acquire pairs with the releases of writers and readers: the bytes are there, or the slot is ours to fill.
        let filling = Filling::decode(self.slot(number).state.load(Ordering::Acquire));
        let turn = turn_of(number);
        if filling.turn == turn && !filling.is_empty() {
            Look::Waiting(filling)
        } else if filling.turn != turn.wrapping_sub(1) {
            Look::Taken
        } else if filling.is_empty() {
            Look::Free
        } else {
            Look::Full
        }
    }

    /// Whether a side finds nothing to read, or no room to write, at a moment of the call. Others on that side may have
    /// changed slots of which it does not know yet: those are passed over.
    #[inline]
    fn is_stuck(&self, end: PipeEnd) -> bool {
        let passed = self.side(end).passed.load(Ordering::Acquire);
        if planted("scalefs: a pipe's slot is looked at whosever turn it is") {
            let filling = Filling::decode(self.slot(passed).state.load(Ordering::Acquire));
            return filling.is_empty() == (end == PipeEnd::Read);
        }
        for number in passed.. {
            match (end, self.look(number)) {
                (PipeEnd::Read, Look::Taken) | (PipeEnd::Write, Look::Waiting(_) | Look::Taken) => {}
                (PipeEnd::Read, found) => return !matches!(found, Look::Waiting(_)),
                (PipeEnd::Write, found) => return found == Look::Full,
            }
        }
        unreachable!("numbers do not end")
    }

    /// What a call finds that can do nothing: the other end has gone, or it is to try again.
    fn stuck(&self, end: PipeEnd) -> Result<usize, Errno> {
        match (self.is_gone(end.other()), end) {
            (false, _) => Err(Errno::EAGAIN),
            (true, PipeEnd::Read) => Ok(0),
            (true, PipeEnd::Write) => Err(Errno::EPIPE),
        }
    }

    /// Takes bytes out: as many as there are, at most as many as asked for. None at the end; EAGAIN if there may be some
    /// later.
    ///
    /// POSIX `read`; Linux `pipe_read` (fs/pipe.c).
    pub(crate) fn read(
        &self,
        fs: &ScaleFs,
        core: &Core<'_>,
        bytes: &mut [u8],
        wait: &impl Wait,
    ) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let side = self.side(PipeEnd::Read);
        // Look without writing first; whether writers are gone before whether there are bytes.
        let stuck = self.stuck(PipeEnd::Read);
        if self.is_stuck_between_calls(PipeEnd::Read) {
            return stuck;
        }
        let _lock = side.lock.lock(core, RANK_SIDE, wait);
        let stuck = self.stuck(PipeEnd::Read);
        let done = self.read_locked(fs, bytes);
        if done == 0 { stuck } else { Ok(done) }
    }

    /// Takes bytes out; the caller holds the readers' lock.
    fn read_locked(&self, fs: &ScaleFs, bytes: &mut [u8]) -> usize {
        let side = self.side(PipeEnd::Read);
        let mut done = 0;
        while done < bytes.len() {
            let head = side.passed.load(Ordering::Relaxed);
            let Look::Waiting(waiting) = self.look(head) else {
                break;
            };
            let slot = self.slot(head);
            let count = (waiting.end - waiting.start).min(bytes.len() - done);
            let page = PageNumber::new(slot.page.load(Ordering::Relaxed).wrapping_sub(1));
            // SAFETY: the state says that the page holds these bytes; only their reader, which we are, ends that.
            unsafe {
                let source = fs.pages().address(page).as_ptr().add(waiting.start);
                shared_bytes::load(&mut bytes[done..done + count], source);
            }
            let left = Filling { start: waiting.start + count, ..waiting };
            // Fails if a writer has added to the slot: look again. Release: the slot is the writers' from here on.
            if planted("scalefs: a read of a pipe forgets what was added in between") {
                slot.state.store(left.encode(), Ordering::Release);
            } else if slot
                .state
                .compare_exchange(waiting.encode(), left.encode(), Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            if left.is_empty() {
                side.passed.store(head + 1, Ordering::Release);
            }
            done += count;
        }
        done
    }

    /// Puts bytes in: as many as there is room for. EAGAIN if there is room for none; up to 4,096 bytes go in whole or not
    /// at all (`PIPE_BUF`).
    ///
    /// POSIX `write`; Linux `pipe_write` (fs/pipe.c).
    pub(crate) fn write(&self, fs: &ScaleFs, core: &Core<'_>, bytes: &[u8], wait: &impl Wait) -> Result<usize, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.is_gone(PipeEnd::Read) {
            return Err(Errno::EPIPE);
        }
        let side = self.side(PipeEnd::Write);
        let odd = bytes.len() % PAGE_BYTES;
        // Look without writing first.
        if odd == 0 && self.is_stuck_between_calls(PipeEnd::Write) {
            return self.stuck(PipeEnd::Write);
        }
        let _lock = side.lock.lock(core, RANK_SIDE, wait);
        match self.write_locked(fs, core, bytes) {
            Ok(0) => self.stuck(PipeEnd::Write),
            Ok(done) => Ok(done),
            Err(OutOfMemory) => Err(Errno::ENOMEM),
        }
    }

    /// The page of a slot, which gets one if it has none; the caller holds the writers' lock.
    fn page_of(&self, fs: &ScaleFs, core: &Core<'_>, slot: &PipeSlot) -> Result<PageNumber, OutOfMemory> {
        if let Some(page) = slot.page.load(Ordering::Relaxed).checked_sub(1) {
            return Ok(PageNumber::new(page));
        }
        let page = fs.pages().allocate(core)?;
        slot.page.store(page.get() + 1, Ordering::Relaxed);
        Ok(page)
    }

    /// Puts bytes in; the caller holds the writers' lock.
    fn write_locked(&self, fs: &ScaleFs, core: &Core<'_>, bytes: &[u8]) -> Result<usize, OutOfMemory> {
        let side = self.side(PipeEnd::Write);
        let odd = bytes.len() % PAGE_BYTES;
        let tail = side.passed.load(Ordering::Relaxed);
        let mut done = if odd > 0 && tail > 0 && self.add(fs, tail - 1, &bytes[..odd]) { odd } else { 0 };
        while done < bytes.len() {
            let tail = side.passed.load(Ordering::Relaxed);
            if self.look(tail) != Look::Free {
                break;
            }
            let slot = self.slot(tail);
            let page = match self.page_of(fs, core, slot) {
                Err(OutOfMemory) if done > 0 => break,
                page => page?,
            };
            let count = (bytes.len() - done).min(PAGE_BYTES);
            // SAFETY: the slot is empty, so the page is the writers', whose lock we hold.
            unsafe { shared_bytes::store(fs.pages().address(page).as_ptr(), &bytes[done..done + count]) };
            let told = Filling { turn: turn_of(tail), start: 0, end: count }.encode();
            if planted("scalefs: a pipe tells of bytes before it tells where they are") {
                slot.state.store(told, Ordering::Relaxed);
            } else {
                slot.state.store(told, Ordering::Release);
            }
            side.passed.store(tail + 1, Ordering::Release);
            done += count;
        }
        Ok(done)
    }

    /// How many bytes there is room for in slots that are free, at most so many as are asked for.
    pub(crate) fn room(&self, at_most: usize) -> usize {
        let tail = self.side(PipeEnd::Write).passed.load(Ordering::Acquire);
        // Others may have filled slots of which the caller does not know yet.
        let open = (tail..).find(|number| !matches!(self.look(*number), Look::Waiting(_) | Look::Taken));
        let open = open.expect("numbers do not end");
        let free = (open..open + SLOT_COUNT as u64).take_while(|number| self.look(*number) == Look::Free);
        let wanted = at_most.div_ceil(PAGE_BYTES);
        (free.take(wanted).count() * PAGE_BYTES).min(at_most)
    }

    /// Locks both ends, and lets the next slots have pages for so many bytes.
    pub(crate) fn lock<'o>(
        &'o self,
        fs: &ScaleFs,
        core: &'o Core<'_>,
        put_bytes: usize,
        wait: &impl Wait,
    ) -> Result<LockedSides<'o>, OutOfMemory> {
        let sides = [PipeEnd::Read, PipeEnd::Write].map(|end| self.side(end).lock.lock(core, RANK_SIDE, wait));
        let tail = self.side(PipeEnd::Write).passed.load(Ordering::Relaxed);
        for number in tail..tail + put_bytes.div_ceil(PAGE_BYTES).min(SLOT_COUNT) as u64 {
            self.page_of(fs, core, self.slot(number))?;
        }
        Ok(LockedSides { pipe: self, _sides: sides })
    }

    /// Adds bytes to those that wait in a slot, if it has any and they fit.
    fn add(&self, fs: &ScaleFs, number: u64, bytes: &[u8]) -> bool {
        let slot = self.slot(number);
        while let Look::Waiting(waiting) = self.look(number) {
            let end = waiting.end + bytes.len();
            if end > PAGE_BYTES {
                return false;
            }
            let page = PageNumber::new(slot.page.load(Ordering::Relaxed).wrapping_sub(1));
            // SAFETY: bytes behind the end are the writers', whose lock the caller holds; pages stay in their slots.
            unsafe { shared_bytes::store(fs.pages().address(page).as_ptr().add(waiting.end), bytes) };
            let longer = Filling { end, ..waiting };
            // Fails if a reader has taken some of the bytes, or all. Release: the added ones are there for readers.
            if slot
                .state
                .compare_exchange(waiting.encode(), longer.encode(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return true;
            }
        }
        false
    }

    /// Unlocks the sides that a dead process held.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        let [read, write] = [PipeEnd::Read, PipeEnd::Write].map(|end| self.side(end));
        let (head, tail) = (read.passed.load(Ordering::Relaxed), write.passed.load(Ordering::Relaxed));
        // A slot's state was changed, but not the number of slots passed.
        if read.lock.holder() == Some(core.index()) && self.look(head) == Look::Taken {
            read.passed.store(head + 1, Ordering::Release);
        }
        if write.lock.holder() == Some(core.index()) && matches!(self.look(tail), Look::Waiting(_) | Look::Taken) {
            write.passed.store(tail + 1, Ordering::Release);
        }
        for side in [read, write] {
            // SAFETY: the side is whole; the rest is the caller's promise.
            unsafe { side.lock.release_taken_over(core) };
        }
    }
}
