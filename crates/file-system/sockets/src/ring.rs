//! A ring of messages in their order: senders and receivers share a line only where they meet.
//!
//! Each message has a number. Slot i serves the numbers i, i + 16, ... A slot's state says which number it is for, and whether
//! that was sent: a sender does not look at where receivers are, nor a receiver at where senders are.
//!
//! ```text
//! state of a slot:   2n  free for message n    2n + 1  message n waits    then 2(n + 16)
//! ```

use core::ptr::NonNull;

use pages::{PAGE_BYTES, PageNumber, PagePool, shared_bytes};
use percpu::{ArenaObject, CacheLine, Core, CoreLock, LockRank, ObjectKind, OutOfMemory, object_kind};
use posix_calls::{MAX_MESSAGE_BYTES, MAX_SOCKET_NAME_BYTES, SocketName as Name};
use sync::Wait;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::mutant::planted;

/// Messages that wait in a ring at most.
pub const SLOT_COUNT: usize = if cfg!(shuttle) { 2 } else { 16 };
/// A page holds the sender's name, then the message.
const NAME_SPACE_BYTES: usize = 128;
const _: () = assert!(MAX_MESSAGE_BYTES <= PAGE_BYTES - NAME_SPACE_BYTES && MAX_SOCKET_NAME_BYTES <= NAME_SPACE_BYTES);

const RANK_SIDE: LockRank = LockRank(210);
/// What tools call a ring's parts.
pub const RING: ObjectKind = object_kind!(12, Ring as "ring of messages" {
    "receivers" = receivers,
    "senders" = senders,
    "slots" = slots,
});

/// Why nothing was sent.
pub(crate) enum SendError {
    Full,
    OutOfMemory,
}

/// What a message that was taken is.
pub(crate) struct Taken {
    /// Of the message; perhaps more than was asked for.
    pub(crate) length_bytes: usize,
    /// Of its sender.
    pub(crate) from: Name,
}

/// A ring; see the module's head.
#[repr(C)]
pub struct Ring {
    receivers: CacheLine<Side>,
    senders: CacheLine<Side>,
    slots: [CacheLine<Slot>; SLOT_COUNT],
}

// SAFETY: a kind of its own; it has no destructor.
unsafe impl ArenaObject for Ring {
    const KIND: ObjectKind = RING;
}

/// What receivers have among them, or senders.
struct Side {
    lock: CoreLock,
    /// Guarded by `lock`, read by anybody: messages taken, or sent, since the beginning.
    passed: AtomicU64,
}

struct Slot {
    /// Atomic: see the module's head.
    state: AtomicU64,
    /// Of the side that the state says, as all below: bytes of the message, and of the sender's name.
    length_bytes: AtomicU32,
    name_bytes: AtomicU32,
    /// 1 + the page, or zero. Stays until the ring goes.
    page: AtomicU32,
}

/// What a slot is for one of its numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The message before waits.
    Full,
    Free,
    Waiting,
    Taken,
}

impl Ring {
    /// An empty ring in the arena.
    pub(crate) fn make(core: &Core<'_>) -> Result<NonNull<Ring>, OutOfMemory> {
        let side = || CacheLine(Side { lock: CoreLock::new(), passed: AtomicU64::new(0) });
        let slot = |number| {
            CacheLine(Slot {
                state: AtomicU64::new(2 * number as u64),
                length_bytes: AtomicU32::new(0),
                name_bytes: AtomicU32::new(0),
                page: AtomicU32::new(0),
            })
        };
        let ring = Ring { receivers: side(), senders: side(), slots: core::array::from_fn(slot) };
        core.allocate_object(ring)
    }

    /// Lets maintenance fill the magazine.
    pub(crate) fn will_make(core: &Core<'_>) {
        core.will_allocate(Ring::CLASS);
    }

    /// Gives the memory back, with pages and messages.
    ///
    /// # Safety
    /// Nobody uses the ring any more.
    pub(crate) unsafe fn free(ring: NonNull<Ring>, pool: &PagePool, core: &Core<'_>) {
        // SAFETY: the caller's promise; the slot is a page's only place.
        unsafe {
            for slot in &ring.as_ref().slots {
                if let Some(page) = slot.page.load(Ordering::Acquire).checked_sub(1) {
                    pool.free(core, PageNumber::new(page));
                }
            }
            core.free_object(ring);
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[(number % SLOT_COUNT as u64) as usize]
    }

    #[inline]
    fn look(&self, number: u64) -> Look {
        // Acquire pairs with the releases of senders and receivers: the message is there, or the slot is ours to fill.
        let state = self.slot(number).state.load(Ordering::Acquire);
        if planted("sockets: a slot is looked at whosever turn it is") {
            return if state.is_multiple_of(2) { Look::Free } else { Look::Waiting };
        }
        match state {
            state if state == 2 * number => Look::Free,
            state if state == 2 * number + 1 => Look::Waiting,
            state if state > 2 * number => Look::Taken,
            _ => Look::Full,
        }
    }

    /// How many messages had been sent, if all of them were taken, at a moment of the call. Writes nothing.
    #[inline]
    pub(crate) fn sent_and_taken(&self) -> Option<u64> {
        let mut number = self.receivers.passed.load(Ordering::Acquire);
        loop {
            match self.look(number) {
                Look::Free | Look::Full => return Some(number),
                Look::Waiting => return None,
                // Taken by somebody who has not told yet.
                Look::Taken => number += 1,
            }
        }
    }

    /// Whether every slot had a message at a moment of the call. Writes nothing.
    #[inline]
    fn is_full(&self) -> bool {
        let mut number = self.senders.passed.load(Ordering::Acquire);
        loop {
            match self.look(number) {
                Look::Full => return true,
                Look::Free => return false,
                // Sent by somebody who has not told yet.
                Look::Waiting | Look::Taken => number += 1,
            }
        }
    }

    /// Sends a message of at most [`MAX_MESSAGE_BYTES`].
    pub(crate) fn send(
        &self,
        pool: &PagePool,
        core: &Core<'_>,
        (message, from): (&[u8], &Name),
        wait: &impl Wait,
    ) -> Result<(), SendError> {
        debug_assert!(message.len() <= MAX_MESSAGE_BYTES);
        // Look without writing first.
        if self.is_full() {
            return if planted("sockets: a full ring loses what it gets") { Ok(()) } else { Err(SendError::Full) };
        }
        let _lock = self.senders.lock.lock(core, RANK_SIDE, wait);
        let number = self.senders.passed.load(Ordering::Relaxed);
        if self.look(number) != Look::Free {
            return Err(SendError::Full);
        }
        let slot = self.slot(number);
        let name = from.bytes();
        if !message.is_empty() || !name.is_empty() {
            let page = match slot.page.load(Ordering::Relaxed).checked_sub(1) {
                Some(page) => PageNumber::new(page),
                None => pool.allocate(core).map_err(|OutOfMemory| SendError::OutOfMemory)?,
            };
            slot.page.store(page.get() + 1, Ordering::Relaxed);
            let bytes = pool.address(page).as_ptr();
            // SAFETY: the slot is free, so the page is the senders', whose lock we hold. Both parts lie within it: names are no
            // longer than their space, and `Sockets` refuses longer messages, which a debug build checks again.
            unsafe {
                shared_bytes::store(bytes, name);
                shared_bytes::store(bytes.add(NAME_SPACE_BYTES), message);
            }
        }
        if planted("sockets: a message is announced before it is there") {
            slot.state.store(2 * number + 1, Ordering::Release);
        }
        slot.name_bytes.store(name.len() as u32, Ordering::Relaxed);
        slot.length_bytes.store(message.len() as u32, Ordering::Relaxed);
        // Release: who sees that the message waits sees the message.
        slot.state.store(2 * number + 1, Ordering::Release);
        self.senders.passed.store(number + 1, Ordering::Release);
        Ok(())
    }

    /// Takes the message that was sent first, as much of it as there is room for. If there is none: how many had been sent, as
    /// [`Ring::sent_and_taken`].
    pub(crate) fn receive(
        &self,
        pool: &PagePool,
        core: &Core<'_>,
        bytes: &mut [u8],
        wait: &impl Wait,
    ) -> Result<Taken, u64> {
        // Look without writing first.
        if let Some(sent) = self.sent_and_taken() {
            return Err(sent);
        }
        let lock = (!planted("sockets: receivers do not wait for each other"))
            .then(|| self.receivers.lock.lock(core, RANK_SIDE, wait));
        let number = self.receivers.passed.load(Ordering::Relaxed);
        if self.look(number) != Look::Waiting {
            return Err(number);
        }
        let slot = self.slot(number);
        let length_bytes = slot.length_bytes.load(Ordering::Relaxed) as usize;
        let name_bytes = slot.name_bytes.load(Ordering::Relaxed) as usize;
        let mut name = [0; NAME_SPACE_BYTES];
        if let Some(page) = slot.page.load(Ordering::Relaxed).checked_sub(1) {
            let start = pool.address(PageNumber::new(page)).as_ptr();
            let count = length_bytes.min(bytes.len());
            // SAFETY: a message waits in the page, which stays the receivers', whose lock we hold; both parts lie within it.
            unsafe {
                shared_bytes::load(&mut name[..name_bytes], start);
                shared_bytes::load(&mut bytes[..count], start.add(NAME_SPACE_BYTES));
            }
        }
        // Release: the slot is the senders' from here on, after what was copied.
        slot.state.store(2 * (number + SLOT_COUNT as u64), Ordering::Release);
        self.receivers.passed.store(number + 1, Ordering::Release);
        drop(lock);
        Ok(Taken { length_bytes, from: Name::new(&name[..name_bytes]).unwrap_or(Name::NONE) })
    }

    /// Unlocks the sides that a dead process held.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        for (side, is_passed) in [(&self.receivers, [Look::Taken; 2]), (&self.senders, [Look::Waiting, Look::Taken])] {
            let passed = side.passed.load(Ordering::Relaxed);
            let told = planted("sockets: an heir does not count what was announced")
                || !is_passed.contains(&self.look(passed));
            if side.lock.holder() == Some(core.index()) && !told {
                side.passed.store(passed + 1, Ordering::Release);
            }
            // SAFETY: the side is whole; the rest is the caller's promise.
            unsafe { side.lock.release_taken_over(core) };
        }
    }
}
