//! All sockets of an arena, their names, and the calls.

use core::fmt;
use core::ptr::{self, NonNull};

use commit::Decisions;
use epoch::{Epochs, Guard};
use hashdir::{HashDir, InsertError, Key};
use pages::PagePool;
use percpu::{Core, OutOfMemory, PerCore};
use posix_calls::{Errno, MAX_MESSAGE_BYTES, Received, SocketName as Name, SocketOrder as Order, SocketState};
use refcache::{Counted, RefCache, RefCacheConfig};
use rounds::Rounds;
use sync::mutant::planted;
use sync::{OwnWord, Wait};

use crate::endpoint::Endpoint;
use crate::ring::SendError;

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
        Errno::from(self).number()
    }
}

impl From<SocketError> for Errno {
    fn from(error: SocketError) -> Errno {
        match error {
            SocketError::NotPermitted => Errno::EPERM,
            SocketError::WouldBlock => Errno::EAGAIN,
            SocketError::OutOfMemory => Errno::ENOMEM,
            SocketError::HasName => Errno::EINVAL,
            SocketError::TooLong => Errno::EMSGSIZE,
            SocketError::NameInUse => Errno::EADDRINUSE,
            SocketError::NotConnected => Errno::ENOTCONN,
            SocketError::Refused => Errno::ECONNREFUSED,
        }
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            SocketError::WouldBlock => "nothing to do at the moment; try again",
            SocketError::Refused => "no one receives there",
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

/// What sockets rest on. All lies in one arena, and is there as long as the sockets are used.
#[derive(Clone, Copy)]
pub struct Foundation<'a> {
    /// Messages lie in its pages.
    pub pool: &'a PagePool,
    /// Entries of names are retired there.
    pub epochs: &'a Epochs,
    /// Counts of references, of kind [`KIND_ENDPOINT`](crate::KIND_ENDPOINT).
    pub counts: &'a RefCache,
    /// The decisions that `counts` was made with.
    pub decisions: &'a Decisions,
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
    own: PerCore<Own>,
}

/// What each core keeps for itself.
struct Own {
    /// The endpoint that it works on, or null: for its heir.
    endpoint: OwnWord<*mut Endpoint>,
    /// 1 if it has made a socket.
    makes: OwnWord<u32>,
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
        // SAFETY: they lie in the arena itself, with what keeps them.
        let [of_epochs, of_counts] = unsafe { Rounds::create(arena) }?;
        let counts = RefCacheConfig { slots_per_core: 256, seed: config.seed };
        let counts = RefCache::create_in(arena, decisions, counts, of_counts)?;
        let epochs = Epochs::create_in(arena, of_epochs)?;
        // SAFETY: the caller's promise; the rest was made just now.
        let made = unsafe { Sockets::found(core, Foundation { pool, epochs, counts, decisions }, config) }?;
        arena.place(made)
    }

    /// An instance without sockets, over what somebody else maintains: he calls [`Sockets::refill`], frees what is retired by
    /// [`hashdir::free_retired`], gives [`Sockets::free`] dead counts, and [`Sockets::repair_call_taken_over`] dead cores.
    ///
    /// # Errors
    /// As [`Sockets::create`].
    ///
    /// # Safety
    /// As [`Sockets::create`]; the foundation lies in the same arena, with which the epochs are used.
    pub unsafe fn found(
        core: &Core<'_>,
        foundation: Foundation<'_>,
        config: SocketsConfig,
    ) -> Result<Sockets, OutOfMemory> {
        let Foundation { pool, epochs, counts, decisions } = foundation;
        // SAFETY: all lies in the arena, which is used with these epochs alone.
        let (names, own) = unsafe {
            let own = |_| Own { endpoint: OwnWord::new(ptr::null_mut()), makes: OwnWord::new(0) };
            let own = PerCore::create(core.arena(), own)?;
            (HashDir::new(core, decisions, config.bucket_count)?, own)
        };
        Ok(Sockets {
            pool: NonNull::from(pool),
            epochs: NonNull::from(epochs),
            counts: NonNull::from(counts),
            decisions: NonNull::from(decisions),
            names,
            seed: config.seed,
            own,
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
        let busy = &self.own.get(core).endpoint;
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
        self.own.get(core).makes.set(1);
        Ok(Socket(Endpoint::make(core, order, 1)?))
    }

    /// Two sockets, each the other's peer.
    ///
    /// POSIX `socketpair`.
    ///
    /// # Errors
    /// As [`Sockets::socket`].
    pub fn pair(&self, core: &Core<'_>, order: Order) -> Result<[Socket; 2], SocketError> {
        self.own.get(core).makes.set(1);
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
            if endpoint.is_gone() && !planted("sockets: a socket that was closed in between gets a name") {
                // Closed by another thread in the middle of the call: its name would be free at once.
                return Ok(());
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

    /// What a socket is called, or [`Name::NONE`].
    ///
    /// POSIX `getsockname`.
    pub fn name(&self, socket: &Socket) -> Name {
        self.get(socket).own_name()
    }

    /// Whether a message waits, and whether the peer has gone (POSIX `poll`). Writes nothing.
    pub fn state(&self, socket: &Socket) -> SocketState {
        let endpoint = self.get(socket);
        // SAFETY: the endpoint holds a reference to its peer.
        let peer_gone = endpoint.peer().is_some_and(|peer| unsafe { peer.as_ref() }.is_gone());
        SocketState { has_message: endpoint.has_message(), peer_gone }
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
        self.working(core, socket.0, |endpoint| {
            // Whoever names it now has not yet, and sees that it is closed, or has.
            drop(endpoint.lock_name(core, wait));
            let name = endpoint.own_name();
            let Some(key) = self.key(&name) else { return };
            let guard = self.epochs().pin(core);
            let bucket = self.names.lock(&guard, &key, wait);
            let address = socket.0.as_ptr() as usize as u64;
            if let Some(entry) = bucket.lookup(&key).filter(|entry| entry.value() == address) {
                entry.remove();
                count(endpoint, -1);
            }
        });
        if let Some(peer) = endpoint.peer() {
            // SAFETY: as for `count`.
            count(unsafe { peer.as_ref() }, -1);
        }
        count(endpoint, -1);
        sync::atomic::fence(sync::atomic::Ordering::SeqCst);
    }

    /// What a core does between its calls: see `ScaleFs::maintain`. The arena and the pool are their owners' to maintain.
    pub fn maintain(&self, core: &Core<'_>) {
        // Who has an instance of sockets alone is about to make some.
        self.own.get(core).makes.set(1);
        self.refill(core);
        self.epochs().maintain(core, |core, kind, object| {
            // SAFETY: called by the maintenance of the one `Epochs`, with which names alone are retired.
            let is_ours = unsafe { hashdir::free_retired(core, kind, object) };
            debug_assert!(is_ours);
        });
        // SAFETY: between calls; dead endpoints are given to us once, and there are no other counts.
        unsafe { self.counts().maintain(core, |core, counted| self.free(core, counted)) };
    }

    /// A part of maintenance: lets that of the arena fill the magazines of a core that makes sockets.
    pub fn refill(&self, core: &Core<'_>) {
        if self.own.get(core).makes.get() != 0 {
            Endpoint::will_make(core);
            core.will_allocate(hashdir::ENTRY_CLASS);
        }
    }

    /// A part of maintenance: frees the socket of a dead count.
    ///
    /// # Safety
    /// `RefCache::maintain` has given the count, whose kind is [`KIND_ENDPOINT`](crate::KIND_ENDPOINT), for the first time.
    pub unsafe fn free(&self, core: &Core<'_>, counted: NonNull<Counted>) {
        // SAFETY: the caller's promise.
        unsafe { Endpoint::free(Endpoint::of_references(counted), self.pool(), core) };
    }

    /// Makes whole what a dead process left as this core.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner ([`percpu::Arena::take_over`]), and has not been used since.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            self.epochs().unpin_taken_over(core);
            self.counts().repair_taken_over(core);
            self.repair_call_taken_over(&self.epochs().pin(core));
        }
    }

    /// The part of [`Sockets::repair_taken_over`] that concerns sockets alone.
    ///
    /// # Safety
    /// `guard` pins, in the foundation's epochs, a core that was taken over from a dead owner, and whose counts were repaired.
    pub unsafe fn repair_call_taken_over(&self, guard: &Guard<'_>) {
        let core = guard.core();
        let busy = &self.own.get(core).endpoint;
        // SAFETY: the caller's promise; an endpoint that the core works on is not freed before the core maintains. Names change
        // by one store each, so no operation of the core was under way there.
        unsafe {
            let Some(endpoint) = busy.get().as_ref() else { return };
            endpoint.repair_taken_over(core);
            self.names.repair_taken_over(self.epochs(), guard, self.decisions.as_ref().last(core), false);
        }
        busy.set(ptr::null_mut());
    }
}
