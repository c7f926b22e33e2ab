//! All sockets of an arena, their names, and the calls.

use core::fmt;
use core::ptr::{self, NonNull};

use commit::Decisions;
use epoch::{Epochs, Guard};
use hashdir::{HashDir, InsertError, Key};
use pages::PagePool;
use percpu::{Core, OutOfMemory, PerCore};
use refcache::{RefCache, RefCacheConfig};
use sync::{OwnWord, Wait};

use crate::endpoint::{Endpoint, Order};
use crate::name::Name;
use crate::ring::{MAX_MESSAGE_BYTES, SendError};

/// Why a call failed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// Nothing waits, or there is no room at the moment (EAGAIN).
    WouldBlock,
    /// Nobody receives there (ECONNREFUSED).
    Refused,
    /// The socket has no peer, and no address was given (ENOTCONN).
    NotConnected,
    /// Another socket has the name (EADDRINUSE).
    NameInUse,
    /// The socket has a name already (EINVAL).
    HasName,
    /// The socket has a peer that hears its own peer only (EPERM).
    NotPermitted,
    /// Longer than [`MAX_MESSAGE_BYTES`] (EMSGSIZE).
    TooLong,
    /// No memory is left (ENOMEM).
    OutOfMemory,
}

impl SocketError {
    /// Linux's number for it on x86-64.
    pub fn number(self) -> i32 {
        match self {
            SocketError::NotPermitted => 1,
            SocketError::WouldBlock => 11,
            SocketError::OutOfMemory => 12,
            SocketError::HasName => 22,
            SocketError::TooLong => 90,
            SocketError::NameInUse => 98,
            SocketError::NotConnected => 107,
            SocketError::Refused => 111,
        }
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            SocketError::WouldBlock => "nothing to do at the moment; try again",
            SocketError::Refused => "nobody receives there",
            SocketError::NotConnected => "the socket has no peer and no address was given",
            SocketError::NameInUse => "another socket has the name",
            SocketError::HasName => "the socket has a name already",
            SocketError::NotPermitted => "the socket there hears its peer only",
            SocketError::TooLong => {
                return write!(formatter, "expected a message of at most {MAX_MESSAGE_BYTES} bytes");
            }
            SocketError::OutOfMemory => "no memory is left",
        };
        formatter.write_str(text)
    }
}

impl core::error::Error for SocketError {}

impl From<OutOfMemory> for SocketError {
    fn from(_: OutOfMemory) -> SocketError {
        SocketError::OutOfMemory
    }
}

impl From<SendError> for SocketError {
    fn from(error: SendError) -> SocketError {
        match error {
            SendError::Full => SocketError::WouldBlock,
            SendError::OutOfMemory => SocketError::OutOfMemory,
        }
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the message. What did not fit into the buffer is lost (POSIX `recv`).
    pub length_bytes: usize,
    /// The name of the socket that sent it, or [`Name::NONE`].
    pub from: Name,
}

/// How an instance is made.
#[derive(Clone, Copy, Debug)]
pub struct SocketsConfig {
    /// Moves collisions of names, and of counts.
    pub seed: u64,
    /// Buckets for names; rounded up to a power of two.
    pub bucket_count: usize,
}

impl Default for SocketsConfig {
    fn default() -> SocketsConfig {
        SocketsConfig { seed: 1, bucket_count: 256 }
    }
}

/// A socket: closed once, by [`Sockets::close`]; if it is forgotten it stays. Calls through one handle may be made by any
/// number of cores at a time, none of them after it was closed.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a socket stays until it is closed"]
pub struct Socket(NonNull<Endpoint>);

// SAFETY: endpoints are `Sync` and lie in the arena.
unsafe impl Send for Socket {}
// SAFETY: as above.
unsafe impl Sync for Socket {}

impl Socket {
    /// The socket as a number, as tables of descriptors keep it. Not zero.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The socket with a number; `None` for zero.
    ///
    /// # Safety
    /// The number came from [`Socket::address`], and the socket was not closed since. Of all that are made of it, one is
    /// closed.
    pub unsafe fn from_address(address: usize) -> Option<Socket> {
        NonNull::new(address as *mut Endpoint).map(Socket)
    }
}

/// The sockets of an arena.
pub struct Sockets {
    // Immutable; all lead into the arena.
    pool: NonNull<PagePool>,
    epochs: NonNull<Epochs>,
    counts: NonNull<RefCache>,
    decisions: NonNull<Decisions>,
    names: HashDir,
    seed: u64,
    /// The endpoint that a core works on: for its heir.
    busy: PerCore<OwnWord<*mut Endpoint>>,
}

// SAFETY: pointers lead to objects of the arena that are `Sync`.
unsafe impl Sync for Sockets {}
// SAFETY: nothing that they lead to belongs to a thread.
unsafe impl Send for Sockets {}

impl Sockets {
    /// An instance without sockets, in the arena of `core`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold the tables.
    ///
    /// # Safety
    /// `pool` lies in the same arena, and is there as long as the instance is used. Sockets are used with the instance that made
    /// them, and while that is there: a [`Socket`] does not know it.
    pub unsafe fn create<'a>(
        core: &Core<'a>,
        pool: &'a PagePool,
        config: SocketsConfig,
    ) -> Result<&'a Sockets, OutOfMemory> {
        let arena = core.arena();
        let decisions = Decisions::create(arena)?;
        let counts = RefCache::create(arena, decisions, RefCacheConfig { slots_per_core: 256, seed: config.seed })?;
        // SAFETY: all lies in the arena, which is used with these epochs alone.
        let (names, busy) = unsafe {
            let busy = PerCore::create(arena, |_| OwnWord::new(ptr::null_mut()))?;
            (HashDir::new(core, decisions, config.bucket_count)?, busy)
        };
        arena.place(Sockets {
            pool: NonNull::from(pool),
            epochs: NonNull::from(Epochs::create(arena)?),
            counts: NonNull::from(counts),
            decisions: NonNull::from(decisions),
            names,
            seed: config.seed,
            busy,
        })
    }

    fn pool(&self) -> &PagePool {
        // SAFETY: the promise to `create`.
        unsafe { self.pool.as_ref() }
    }

    fn epochs(&self) -> &Epochs {
        // SAFETY: lies in the arena, as this does.
        unsafe { self.epochs.as_ref() }
    }

    fn counts(&self) -> &RefCache {
        // SAFETY: lies in the arena, as this does.
        unsafe { self.counts.as_ref() }
    }

    fn get(&self, socket: &Socket) -> &Endpoint {
        // SAFETY: a handle is a counted reference to its endpoint, which was made in this arena (the promise to `create`); it is
        // given up by `close`, which takes the handle.
        unsafe { socket.0.as_ref() }
    }

    fn key<'n>(&self, name: &'n Name) -> Option<Key<'n>> {
        Key::new(name.bytes(), self.seed)
    }

    /// Does what may lock a part of an endpoint.
    fn working<R>(&self, core: &Core<'_>, endpoint: NonNull<Endpoint>, act: impl FnOnce(&Endpoint) -> R) -> R {
        let busy = self.busy.get(core);
        busy.set(endpoint.as_ptr());
        // SAFETY: found in this call, in which the caller's handle, or a name, leads there; see the crate's head.
        let outcome = act(unsafe { endpoint.as_ref() });
        busy.set(ptr::null_mut());
        outcome
    }

    /// A socket with neither name nor peer.
    ///
    /// # Errors
    /// [`SocketError`]: no socket is left, or no memory.
    pub fn socket(&self, core: &Core<'_>, order: Order) -> Result<Socket, SocketError> {
        Ok(Socket(Endpoint::make(core, order, 1)?))
    }

    /// Two sockets, each the other's peer.
    ///
    /// POSIX `socketpair`.
    ///
    /// # Errors
    /// As [`Sockets::socket`].
    pub fn pair(&self, core: &Core<'_>, order: Order) -> Result<[Socket; 2], SocketError> {
        // A reference each of the handle and of the peer.
        let first = Endpoint::make(core, order, 2)?;
        let second = match Endpoint::make(core, order, 2) {
            Ok(second) => second,
            Err(error) => {
                // SAFETY: nobody has seen it.
                unsafe { Endpoint::free(first, self.pool(), core) };
                return Err(error.into());
            }
        };
        // SAFETY: made just now.
        unsafe {
            first.as_ref().connect(second);
            second.as_ref().connect(first);
        }
        Ok([Socket(first), Socket(second)])
    }

    /// Names a socket that has none.
    ///
    /// POSIX `bind`; names of Linux's abstract namespace.
    ///
    /// # Errors
    /// `HasName`, `NameInUse`, `OutOfMemory`; `NotConnected` for [`Name::NONE`].
    pub fn bind(&self, core: &Core<'_>, socket: &Socket, name: &Name, wait: &impl Wait) -> Result<(), SocketError> {
        let key = self.key(name).ok_or(SocketError::NotConnected)?;
        let guard = self.epochs().pin(core);
        let has_name = |endpoint: &Endpoint| endpoint.own_name() != Name::NONE;
        // Look without writing first.
        if has_name(self.get(socket)) {
            return Err(SocketError::HasName);
        }
        if self.names.exists(&guard, &key) {
            return Err(SocketError::NameInUse);
        }
        self.working(core, socket.0, |endpoint| {
            let bucket = self.names.lock(&guard, &key, wait);
            let lock = endpoint.lock_name(core, wait);
            if has_name(endpoint) {
                return Err(SocketError::HasName);
            }
            if bucket.lookup(&key).is_some() {
                return Err(SocketError::NameInUse);
            }
            bucket.insert(&key, socket.0.as_ptr() as usize as u64).map_err(|error| match error {
                InsertError::OutOfMemory | InsertError::Dead | InsertError::Killing => SocketError::OutOfMemory,
            })?;
            // SAFETY: the handle is a reference; the name is one more.
            unsafe { self.counts().change(core, endpoint.references(), 1) };
            endpoint.set_name(&lock, name);
            Ok(())
        })
    }

    /// Whether a socket has this name.
    pub fn is_bound(&self, core: &Core<'_>, name: &Name) -> bool {
        let guard = self.epochs().pin(core);
        self.key(name).is_some_and(|key| self.names.exists(&guard, &key))
    }

    /// Sends a message to the socket's peer.
    ///
    /// POSIX `send`; Linux `unix_dgram_sendmsg` (net/unix/af_unix.c), MSG_DONTWAIT.
    ///
    /// # Errors
    /// `NotConnected`, `TooLong`, `Refused` if the peer was closed, `WouldBlock` if there is no room, `OutOfMemory`.
    pub fn send(&self, core: &Core<'_>, socket: &Socket, message: &[u8], wait: &impl Wait) -> Result<(), SocketError> {
        let from = self.get(socket);
        let peer = from.peer().ok_or(SocketError::NotConnected)?;
        self.send_there(core, from, peer, message, wait)
    }

    /// Sends a message to the socket that has a name.
    ///
    /// POSIX `sendto`; Linux as for [`Sockets::send`].
    ///
    /// # Errors
    /// As [`Sockets::send`]; `Refused` also if no socket has the name, `NotPermitted` if that one has another peer.
    pub fn send_to(
        &self,
        core: &Core<'_>,
        socket: &Socket,
        name: &Name,
        message: &[u8],
        wait: &impl Wait,
    ) -> Result<(), SocketError> {
        let key = self.key(name).ok_or(SocketError::NotConnected)?;
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(SocketError::TooLong);
        }
        let guard: Guard<'_> = self.epochs().pin(core);
        let found = self.names.lookup(&guard, &key).ok_or(SocketError::Refused)?;
        let there = NonNull::new(found.value() as usize as *mut Endpoint).ok_or(SocketError::Refused)?;
        // SAFETY: the name is a reference, and what it led to in this call is not freed before the call ends.
        if unsafe { there.as_ref() }.peer().is_some_and(|peer| peer != socket.0) {
            return Err(SocketError::NotPermitted);
        }
        self.send_there(core, self.get(socket), there, message, wait)
    }

    fn send_there(
        &self,
        core: &Core<'_>,
        from: &Endpoint,
        there: NonNull<Endpoint>,
        message: &[u8],
        wait: &impl Wait,
    ) -> Result<(), SocketError> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(SocketError::TooLong);
        }
        // SAFETY: a peer, to which the sender's endpoint holds a reference; or found under a name in this call, which is pinned.
        if unsafe { there.as_ref() }.is_gone() {
            return Err(SocketError::Refused);
        }
        let name = from.own_name();
        self.working(core, there, |endpoint| endpoint.send(self.pool(), core, (message, &name), wait))?;
        Ok(())
    }

    /// Takes a message: of an ordered socket that which was sent first, of another one any.
    ///
    /// POSIX `recvfrom`; Linux `unix_dgram_recvmsg`, MSG_DONTWAIT.
    ///
    /// # Errors
    /// `WouldBlock` if there is none, also if nobody can send any more.
    pub fn receive(
        &self,
        core: &Core<'_>,
        socket: &Socket,
        bytes: &mut [u8],
        wait: &impl Wait,
    ) -> Result<Received, SocketError> {
        let taken = self.working(core, socket.0, |endpoint| endpoint.receive(self.pool(), core, bytes, wait));
        let taken = taken.ok_or(SocketError::WouldBlock)?;
        Ok(Received { length_bytes: taken.length_bytes, from: taken.from })
    }

    /// Closes a socket: its name is free, nobody can send to it, and messages that wait in it are lost.
    ///
    /// POSIX `close`, of the last descriptor.
    pub fn close(&self, core: &Core<'_>, socket: Socket, wait: &impl Wait) {
        let endpoint = self.get(&socket);
        endpoint.set_gone();
        let count = |endpoint: &Endpoint, change| {
            // SAFETY: the caller's handle, which is given up here, is a reference to it and through it to the peer.
            unsafe { self.counts().change(core, endpoint.references(), change) };
        };
        let name = endpoint.own_name();
        if let Some(key) = self.key(&name) {
            let guard = self.epochs().pin(core);
            let bucket = self.names.lock(&guard, &key, wait);
            if let Some(entry) = bucket.lookup(&key).filter(|entry| entry.value() == socket.0.as_ptr() as usize as u64)
            {
                entry.remove();
                count(endpoint, -1);
            }
        }
        if let Some(peer) = endpoint.peer() {
            // SAFETY: as for `count`.
            count(unsafe { peer.as_ref() }, -1);
        }
        count(endpoint, -1);
        sync::atomic::fence(sync::atomic::Ordering::SeqCst);
    }

    /// What a core does between its calls: see `ScaleFs::maintain`. The arena and the pool are their owners' to maintain.
    pub fn maintain(&self, core: &Core<'_>) {
        Endpoint::will_make(core);
        core.will_allocate(hashdir::ENTRY_CLASS);
        self.epochs().maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`, with which names alone are retired.
            let is_ours = unsafe { hashdir::free_retired(core, kind, object) };
            debug_assert!(is_ours);
        });
        // SAFETY: between calls; dead endpoints are given to us once.
        unsafe {
            self.counts().maintain(core, |core, counted| {
                Endpoint::free(Endpoint::of_references(counted), self.pool(), core);
            });
        }
    }

    /// Makes whole what a dead process left as this core.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner ([`percpu::Arena::take_over`]), and has not been used since.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise; an endpoint that the core works on is not freed before the core maintains.
        unsafe {
            self.epochs().unpin_taken_over(core);
            self.counts().repair_taken_over(core);
            let busy = self.busy.get(core);
            if let Some(endpoint) = busy.get().as_ref() {
                endpoint.repair_taken_over(core);
            }
            busy.set(ptr::null_mut());
            let guard = self.epochs().pin(core);
            // Names change by one store each, so no operation of the core was under way.
            self.names.repair_taken_over(self.epochs(), &guard, self.decisions.as_ref().last(core), false);
        }
    }
}
