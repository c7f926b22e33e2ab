//! What a socket is in the arena: its rings, who is on the other side, and what it is called.
//!
//! ```text
//! │ order, lane count, peer 64 │ gone 128 │ references 192 │ own name 320 │ lane 0 384 │ lane 1 ...
//! ```

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use pages::{PagePool, shared_bytes};
use percpu::{
    ArenaObject, CacheLine, Core, CoreLock, CoreLockGuard, LockRank, ObjectKind, OutOfMemory, SizeClass, object_kind,
};
use refcache::{Counted, CountedKind};
use sync::Wait;
use sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use sync::mutant::planted;

use posix_calls::{MAX_SOCKET_NAME_BYTES as MAX_NAME_BYTES, SocketName as Name, SocketOrder as Order};

use crate::ring::{Ring, SendError, Taken};

const RANK_NAME: LockRank = LockRank(205);
/// Kind of the count of references, for the callback of `RefCache::maintain`.
pub const KIND_ENDPOINT: CountedKind = CountedKind(10);

/// What tools call a socket's parts. Those of an unordered one are larger and have no kind.
pub const ENDPOINT: ObjectKind = object_kind!(11, Endpoint as "socket" {
    "order" = fixed.0.order,
    "peer" = fixed.0.peer,
    "gone" = gone,
    "references" = references,
    "name" = name,
    "ring" = first_lane,
});

/// A socket in the arena, followed by the lanes behind its first one.
#[repr(C)]
pub struct Endpoint {
    fixed: CacheLine<Fixed>,
    /// Atomic: nobody receives any more.
    gone: CacheLine<AtomicU32>,
    references: CacheLine<Counted>,
    name: OwnName,
    first_lane: CacheLine<AtomicPtr<Ring>>,
}

/// Immutable but for `peer`, which is set before anybody else sees the endpoint.
struct Fixed {
    order: Order,
    lane_count: u32,
    peer: AtomicPtr<Endpoint>,
}

#[repr(C, align(64))]
struct OwnName {
    lock: CoreLock,
    /// Atomic: zero until `bytes` are there, which then stay.
    length: AtomicU32,
    bytes: core::cell::UnsafeCell<[u8; MAX_NAME_BYTES]>,
}

// SAFETY: a kind of its own, where it has one lane; it has no destructor.
unsafe impl ArenaObject for Endpoint {
    const KIND: ObjectKind = ENDPOINT;
}

// SAFETY: pointers lead to objects of the arena; the name's bytes are written once, before their length.
unsafe impl Sync for Endpoint {}

impl Endpoint {
    fn class(lane_count: usize) -> Result<SizeClass, OutOfMemory> {
        if lane_count == 1 {
            return Ok(Endpoint::CLASS);
        }
        let lanes = Layout::array::<CacheLine<AtomicPtr<Ring>>>(lane_count - 1).map_err(|_| OutOfMemory)?;
        let (layout, _) = Layout::new::<Endpoint>().extend(lanes).map_err(|_| OutOfMemory)?;
        SizeClass::of(layout).ok_or(OutOfMemory)
    }

    /// A socket with so many references, and one ring if it is ordered.
    pub(crate) fn make(core: &Core<'_>, order: Order, references: i64) -> Result<NonNull<Endpoint>, OutOfMemory> {
        let lane_count = match order {
            Order::Ordered => 1,
            Order::Unordered => core.arena().core_count(),
        };
        let class = Endpoint::class(lane_count)?;
        let endpoint = core.allocate(class)?.cast::<Endpoint>();
        let fixed = Fixed { order, lane_count: lane_count as u32, peer: AtomicPtr::new(ptr::null_mut()) };
        let name = OwnName { lock: CoreLock::new(), length: AtomicU32::new(0), bytes: [0; MAX_NAME_BYTES].into() };
        // SAFETY: fresh memory of the class, which is as large as the endpoint with its lanes.
        unsafe {
            endpoint.write(Endpoint {
                fixed: CacheLine(fixed),
                gone: CacheLine(AtomicU32::new(0)),
                references: CacheLine(Counted::new(references, KIND_ENDPOINT)),
                name,
                first_lane: CacheLine(AtomicPtr::new(ptr::null_mut())),
            });
            let first = endpoint.byte_add(offset_of!(Endpoint, first_lane)).cast::<CacheLine<AtomicPtr<Ring>>>();
            (1..lane_count).for_each(|lane| first.add(lane).write(CacheLine(AtomicPtr::new(ptr::null_mut()))));
        }
        if order == Order::Ordered {
            // Who sends first would else share the lane's line with who looks whether there is a message.
            match Ring::make(core) {
                // SAFETY: just made.
                Ok(ring) => unsafe { endpoint.as_ref() }.lane(0).store(ring.as_ptr(), Ordering::Release),
                Err(error) => {
                    // SAFETY: nobody has seen the endpoint.
                    unsafe { core.free(endpoint.cast(), class) };
                    return Err(error);
                }
            }
        }
        Ok(endpoint)
    }

    /// Lets maintenance fill the magazines.
    pub(crate) fn will_make(core: &Core<'_>) {
        for lane_count in [1, core.arena().core_count()] {
            Endpoint::class(lane_count).into_iter().for_each(|class| core.will_allocate(class));
        }
        Ring::will_make(core);
    }

    /// Gives the memory back, with all messages.
    ///
    /// # Safety
    /// Nobody uses the endpoint any more.
    pub(crate) unsafe fn free(endpoint: NonNull<Endpoint>, pool: &PagePool, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            let lane_count = endpoint.as_ref().fixed.lane_count as usize;
            for lane in 0..lane_count {
                if let Some(ring) = NonNull::new(endpoint.as_ref().lane(lane).load(Ordering::Acquire)) {
                    Ring::free(ring, pool, core);
                }
            }
            if let Ok(class) = Endpoint::class(lane_count) {
                core.free(endpoint.cast(), class);
            }
        }
    }

    /// The endpoint whose count of references this is.
    ///
    /// # Safety
    /// It is one.
    pub(crate) unsafe fn of_references(counted: NonNull<Counted>) -> NonNull<Endpoint> {
        // SAFETY: the caller's promise.
        unsafe { counted.byte_sub(offset_of!(Endpoint, references)).cast() }
    }

    pub(crate) fn references(&self) -> &Counted {
        &self.references
    }

    #[inline]
    pub(crate) fn peer(&self) -> Option<NonNull<Endpoint>> {
        NonNull::new(self.fixed.peer.load(Ordering::Relaxed))
    }

    /// Connects an endpoint that nobody else has seen; the reference is the caller's.
    pub(crate) fn connect(&self, peer: NonNull<Endpoint>) {
        self.fixed.peer.store(peer.as_ptr(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire) != 0
    }

    pub(crate) fn set_gone(&self) {
        self.gone.store(1, Ordering::Release);
    }

    #[inline]
    fn lane(&self, number: usize) -> &AtomicPtr<Ring> {
        assert!(number < self.fixed.lane_count as usize);
        // SAFETY: in bounds of the memory that `make` took; lanes follow each other from the first one on.
        unsafe {
            let first = ptr::from_ref(self).byte_add(offset_of!(Endpoint, first_lane));
            &(*first.cast::<CacheLine<AtomicPtr<Ring>>>().add(number)).0
        }
    }

    #[inline]
    fn ring(&self, number: usize) -> Option<&Ring> {
        // SAFETY: null, or a ring that `make` or `send` has put there; it stays until the endpoint is freed.
        unsafe { self.lane(number).load(Ordering::Acquire).as_ref() }
    }

    #[inline]
    fn own_lane(&self, core: &Core<'_>) -> usize {
        match self.fixed.order {
            Order::Ordered => 0,
            Order::Unordered => core.index().get(),
        }
    }

    /// Sends to the ring of this core, or to the only one.
    pub(crate) fn send(
        &self,
        pool: &PagePool,
        core: &Core<'_>,
        message: (&[u8], &Name),
        wait: &impl Wait,
    ) -> Result<(), SendError> {
        let own = self.own_lane(core);
        if let Some(ring) = self.ring(own) {
            return ring.send(pool, core, message, wait);
        }
        let ring = Ring::make(core).map_err(|OutOfMemory| SendError::OutOfMemory)?;
        // Only this core makes its ring. Release: who finds it finds it whole.
        self.lane(own).store(ring.as_ptr(), Ordering::Release);
        // SAFETY: rings stay as long as their endpoint.
        unsafe { ring.as_ref() }.send(pool, core, message, wait)
    }

    /// Takes a message: the first one, or any that waits; `None` if none did at a moment of the call.
    pub(crate) fn receive(
        &self,
        pool: &PagePool,
        core: &Core<'_>,
        bytes: &mut [u8],
        wait: &impl Wait,
    ) -> Option<Taken> {
        let own = self.own_lane(core);
        let limit_of = |limit: usize| limit.min(self.fixed.lane_count as usize);
        loop {
            let mut sent = match self.ring(own).map(|ring| ring.receive(pool, core, bytes, wait)) {
                Some(Ok(taken)) => return Some(taken),
                Some(Err(sent)) => sent,
                None => 0,
            };
            if self.fixed.order == Order::Ordered {
                return None;
            }
            let limit = limit_of(core.arena().core_limit());
            for ring in (own + 1..limit).chain(0..own).filter_map(|lane| self.ring(lane)) {
                match ring.receive(pool, core, bytes, wait) {
                    Ok(taken) => return Some(taken),
                    Err(number) => sent += number,
                }
            }
            if planted("sockets: rings are looked at once") {
                return None;
            }
            // Each ring was found empty, one after the other. Counts only grow: with equal sums nothing was sent in between, and
            // all were empty at once.
            let again: Option<u64> = (0..limit).filter_map(|lane| self.ring(lane)).map(Ring::sent_and_taken).sum();
            if again == Some(sent) && limit_of(core.arena().core_limit_seen()) == limit {
                return None;
            }
        }
    }

    /// Whether a message waits. Writes nothing.
    pub(crate) fn has_message(&self) -> bool {
        (0..self.fixed.lane_count as usize)
            .filter_map(|lane| self.ring(lane))
            .any(|ring| ring.sent_and_taken().is_none())
    }

    /// What the socket is called.
    #[inline]
    pub(crate) fn own_name(&self) -> Name {
        let length = self.name.length.load(Ordering::Acquire) as usize;
        let mut bytes = [0; MAX_NAME_BYTES];
        // SAFETY: the bytes were written before their length, and stay.
        unsafe { shared_bytes::load(&mut bytes[..length], self.name.bytes.get().cast()) };
        Name::new(&bytes[..length]).unwrap_or(Name::NONE)
    }

    /// Keeps others from naming the socket.
    pub(crate) fn lock_name<'l>(&'l self, core: &'l Core<'_>, wait: &impl Wait) -> CoreLockGuard<'l> {
        self.name.lock.lock(core, RANK_NAME, wait)
    }

    /// With the name locked, and none yet: names the socket.
    pub(crate) fn set_name(&self, _lock: &CoreLockGuard<'_>, name: &Name) {
        let bytes = name.bytes();
        // SAFETY: there is no name yet, so nobody reads; the lock keeps other writers away.
        unsafe { shared_bytes::store(self.name.bytes.get().cast(), bytes) };
        self.name.length.store(bytes.len() as u32, Ordering::Release);
    }

    /// Unlocks what a dead process held.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        for lane in 0..self.fixed.lane_count as usize {
            if let Some(ring) = self.ring(lane) {
                // SAFETY: the caller's promise.
                unsafe { ring.repair_taken_over(core) };
            }
        }
        // SAFETY: a name is there or not, by one store; the rest is the caller's promise.
        unsafe { self.name.lock.release_taken_over(core) };
    }
}
