//! Pipes: a ring of pages between one reader and one writer at a time, which share a line only if they meet.
//!
//! **Idea.** Sixteen slots, as in Linux (`PIPE_DEF_BUFFERS`). Whether a slot holds bytes is told by the slot itself, so a
//! reader does not look at where writers are, nor a writer at where readers are: in a pipe that is neither empty nor full
//! they touch different lines.
//!
//! ```text
//! reader side │ lock, head │   slot 0 │ start, end │ ... slot 15 │    │ lock, tail │ writer side
//! read:   slot at head empty → nobody writes any more ? end : try again;   copy; start += n, or empty and head += 1
//! write:  nobody reads any more → EPIPE;   the last slot takes the odd bytes if they fit;   slot at tail not empty → full
//! ```
//!
//! A slot's state is one word. A writer that adds to the last slot copies behind its end, then exchanges the word; if a
//! reader has emptied the slot meanwhile the exchange fails, and the bytes go to a slot of their own.
//!
//! **Ends.** Descriptors of either end are counted per core and read exactly by whoever closes one (crate `refcache`,
//! "eager zero"): the last one raises a flag, which is all that the other end looks at. Closing is thus what shares lines,
//! not reading and writing (section 6.4).
//!
//! **Death of a process** leaves the lock of a side: [`Pipe::repair_taken_over`]. Bytes of a write that had not reached its
//! slot's word are not in the pipe; a read that had not, has not happened.
#![allow(unsafe_code)]

use pages::{PAGE_BYTES, PageNumber};
use percpu::{CacheLine, Core, CoreLock, LockRank, ObjectKind, object_kind};
use refcache::{Counted, CountedKind};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::errno::Errno;
use crate::inode::Inode;
use crate::instance::ScaleFs;
use crate::shared_bytes;

const RANK_SIDE: LockRank = LockRank(210);
const SLOT_COUNT: usize = 16;
/// Ends are counted from here on, so that what is applied of a count is never zero: nothing is to be freed then.
const NO_ENDS: i64 = 1 << 40;
/// Kind of the counts of ends, for the callback of `RefCache::maintain`, which never gets one.
const KIND_ENDS: CountedKind = CountedKind(4);

/// One of the two ends of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeEnd {
    /// Where bytes come out.
    Read = 0,
    /// Where they go in.
    Write = 1,
}

impl PipeEnd {
    pub(crate) fn other(self) -> PipeEnd {
        match self {
            PipeEnd::Read => PipeEnd::Write,
            PipeEnd::Write => PipeEnd::Read,
        }
    }
}

/// A pipe: an inode with a ring.
#[repr(C)]
pub(crate) struct Pipe {
    pub(crate) inode: Inode,
    /// Descriptors of each end.
    ends: [CacheLine<Counted>; 2],
    /// Atomic: ends of which the last descriptor was closed.
    gone: CacheLine<[AtomicU32; 2]>,
    sides: [CacheLine<Side>; 2],
    slots: [CacheLine<PipeSlot>; SLOT_COUNT],
}

/// What tools call a pipe's parts.
pub(crate) const PIPE: ObjectKind = object_kind!(7, Pipe as "pipe" {
    "inode" = inode,
    "links" = inode.links,
    "times" = inode.stamps,
    "references" = inode.references,
    "ends" = ends,
    "gone" = gone,
    "sides" = sides,
    "slots" = slots,
});

/// What readers have among them, or writers.
struct Side {
    lock: CoreLock,
    /// Guarded by `lock`, read by anybody: slots that were emptied, or filled, since the beginning.
    passed: AtomicU64,
}

/// A page's worth of bytes.
struct PipeSlot {
    /// Atomic: where the bytes start and end, or zero if there are none.
    state: AtomicU64,
    /// Guarded by the writers' lock, then by the state: 1 + the page, or zero. Stays until the pipe goes.
    page: AtomicU32,
}

/// The bytes of a slot that wait: from `start` to `end`, which is more.
#[derive(Clone, Copy)]
struct Waiting {
    start: usize,
    end: usize,
}

impl Waiting {
    #[inline]
    fn decode(state: u64) -> Option<Waiting> {
        (state != 0).then_some(Waiting { start: (state & 0xffff) as usize, end: (state >> 16) as usize })
    }

    #[inline]
    fn encode(self) -> u64 {
        self.start as u64 | (self.end as u64) << 16
    }
}

impl Pipe {
    /// An empty pipe without descriptors.
    pub(crate) fn new(inode: Inode) -> Pipe {
        Pipe {
            inode,
            ends: core::array::from_fn(|_| CacheLine(Counted::new(NO_ENDS, KIND_ENDS))),
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
        // SAFETY: a description keeps the pipe.
        unsafe { fs.counts().change(core, &self.ends[end as usize], 1) };
    }

    /// One descriptor of an end less.
    pub(crate) fn close_end(&self, fs: &ScaleFs, core: &Core<'_>, end: PipeEnd, wait: &impl Wait) {
        let count = &self.ends[end as usize];
        // SAFETY: as above; the count never becomes zero, so it is not reviewed.
        let left = unsafe {
            fs.counts().change(core, count, -1);
            fs.counts().exact(count, wait)
        };
        if left == NO_ENDS {
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
            let is_full = number >= self.side(PipeEnd::Write).passed.load(Ordering::Acquire);
            let Some(waiting) = self.waiting(number).filter(|_| !is_full && done < bytes.len()) else {
                break;
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

    /// Whether a read would get bytes or the end, or a write of one byte would not wait.
    pub(crate) fn is_ready(&self, end: PipeEnd) -> bool {
        let passed = self.side(end).passed.load(Ordering::Acquire);
        self.is_gone(end.other()) || self.waiting(passed).is_some() == (end == PipeEnd::Read)
    }

    fn side(&self, end: PipeEnd) -> &Side {
        &self.sides[end as usize]
    }

    #[inline]
    fn slot(&self, number: u64) -> &PipeSlot {
        &self.slots[(number % SLOT_COUNT as u64) as usize]
    }

    #[inline]
    fn waiting(&self, number: u64) -> Option<Waiting> {
        // Acquire pairs with the releases of writers and readers: the bytes are there, or the slot is ours to fill.
        Waiting::decode(self.slot(number).state.load(Ordering::Acquire))
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
        if self.waiting(side.passed.load(Ordering::Acquire)).is_none() {
            return stuck;
        }
        let _lock = side.lock.lock(core, RANK_SIDE, wait);
        let stuck = self.stuck(PipeEnd::Read);
        let mut done = 0;
        while done < bytes.len() {
            let head = side.passed.load(Ordering::Relaxed);
            let Some(waiting) = self.waiting(head) else {
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
            let left = Waiting { start: waiting.start + count, ..waiting };
            let state = if left.start == left.end { 0 } else { left.encode() };
            // Fails if a writer has added to the slot: look again. Release: the slot is the writers' from here on.
            if sync::mutant::planted("scalefs: a read of a pipe forgets what was added meanwhile") {
                slot.state.store(state, Ordering::Release);
            } else if slot.state.compare_exchange(waiting.encode(), state, Ordering::AcqRel, Ordering::Relaxed).is_err()
            {
                continue;
            }
            if state == 0 {
                side.passed.store(head + 1, Ordering::Release);
            }
            done += count;
        }
        if done == 0 { stuck } else { Ok(done) }
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
        if odd == 0 && self.waiting(side.passed.load(Ordering::Acquire)).is_some() {
            return self.stuck(PipeEnd::Write);
        }
        let _lock = side.lock.lock(core, RANK_SIDE, wait);
        let tail = side.passed.load(Ordering::Relaxed);
        let mut done = if odd > 0 && tail > 0 && self.add(fs, tail - 1, &bytes[..odd]) { odd } else { 0 };
        while done < bytes.len() {
            let tail = side.passed.load(Ordering::Relaxed);
            if self.waiting(tail).is_some() {
                break;
            }
            let slot = self.slot(tail);
            let page = match slot.page.load(Ordering::Relaxed).checked_sub(1) {
                Some(page) => PageNumber::new(page),
                None => match fs.pages().allocate(core) {
                    Ok(page) => page,
                    Err(percpu::OutOfMemory) if done > 0 => break,
                    Err(percpu::OutOfMemory) => return Err(Errno::ENOMEM),
                },
            };
            slot.page.store(page.get() + 1, Ordering::Relaxed);
            let count = (bytes.len() - done).min(PAGE_BYTES);
            // SAFETY: the slot is empty, so the page is the writers', whose lock we hold.
            unsafe { shared_bytes::store(fs.pages().address(page).as_ptr(), &bytes[done..done + count]) };
            let told = Waiting { start: 0, end: count }.encode();
            if sync::mutant::planted("scalefs: a pipe tells of bytes before it tells where they are") {
                slot.state.store(told, Ordering::Relaxed);
            } else {
                slot.state.store(told, Ordering::Release);
            }
            side.passed.store(tail + 1, Ordering::Release);
            done += count;
        }
        if done == 0 { self.stuck(PipeEnd::Write) } else { Ok(done) }
    }

    /// Adds bytes to those that wait in a slot, if it has any and they fit.
    fn add(&self, fs: &ScaleFs, number: u64, bytes: &[u8]) -> bool {
        let slot = self.slot(number);
        while let Some(waiting) = self.waiting(number) {
            let end = waiting.end + bytes.len();
            if end > PAGE_BYTES {
                return false;
            }
            let page = PageNumber::new(slot.page.load(Ordering::Relaxed).wrapping_sub(1));
            // SAFETY: bytes behind the end are the writers', whose lock the caller holds; pages stay in their slots.
            unsafe { shared_bytes::store(fs.pages().address(page).as_ptr().add(waiting.end), bytes) };
            let longer = Waiting { end, ..waiting };
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
        if read.lock.holder() == Some(core.index()) && head < tail && self.waiting(head).is_none() {
            read.passed.store(head + 1, Ordering::Release);
        }
        if write.lock.holder() == Some(core.index()) && tail - head < SLOT_COUNT as u64 && self.waiting(tail).is_some()
        {
            write.passed.store(tail + 1, Ordering::Release);
        }
        for side in [read, write] {
            // SAFETY: the side is whole; the rest is the caller's promise.
            unsafe { side.lock.release_taken_over(core) };
        }
    }
}
