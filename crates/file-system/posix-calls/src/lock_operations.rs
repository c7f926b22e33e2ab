//! The operations through which the calls on locks reach the locks of a file.
//!
//! ```text
//! kind          owned by          ends                                                        a deadlock
//! Process       the process       when it closes any descriptor of the file, and with it      is refused
//! Description   the description   with its last descriptor                                    stays one
//! WholeFile     the description   with its last descriptor                                    stays one
//! ```
//! A lock of a range keeps those of other owners out, whether they are of processes or of descriptions. Locks of whole
//! files know each other alone.

use crate::data_operations::{AnswerOf, DataOperations};
use crate::errno::Errno;

/// Whose a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// Of a range of bytes and a process (POSIX `fcntl` with F_SETLK).
    Process = 0,
    /// Of a range of bytes and an open file description (POSIX.1-2024 `fcntl` with F_OFD_SETLK).
    Description = 1,
    /// Of all of a file and an open file description (BSD `flock`).
    WholeFile = 2,
}

/// What a lock keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Exclusive locks (F_RDLCK, LOCK_SH).
    Shared = 0,
    /// All locks (F_WRLCK, LOCK_EX).
    Exclusive = 1,
}

/// Bytes that are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockRange {
    /// The first one.
    pub first: u64,
    /// The last one; the largest offset stands for all that may come.
    pub last: u64,
}

impl LockRange {
    /// The largest offset.
    pub const END: u64 = i64::MAX as u64;
    /// All of a file.
    pub const ALL: LockRange = LockRange { first: 0, last: LockRange::END };

    /// Whether the ranges have a byte in common.
    #[inline]
    pub fn meets(self, other: LockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// How many bytes, as `fcntl` says it: none up to the largest offset.
    pub fn length(self) -> u64 {
        if self.last == LockRange::END { 0 } else { self.last - self.first + 1 }
    }
}

/// What is to become of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockRequest {
    /// Whose lock.
    pub kind: LockKind,
    /// The bytes; of a whole file always all.
    pub range: LockRange,
    /// Locked so; or unlocked.
    pub mode: Option<LockMode>,
    /// What others see as the process that has the lock.
    pub seen_as: u64,
}

impl LockRequest {
    /// For a lock of all of a file.
    pub fn whole(mode: LockMode) -> LockRequest {
        LockRequest { kind: LockKind::WholeFile, range: LockRange::ALL, mode: Some(mode), seen_as: 0 }
    }
}

/// A lock that is in the way of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForeignLock {
    /// Whose it is.
    pub kind: LockKind,
    /// The bytes.
    pub range: LockRange,
    /// How they are locked.
    pub mode: LockMode,
    /// The process, as it wants to be seen; of a description's lock nothing.
    pub seen_as: Option<u64>,
}

/// What becomes of a request that others are in the way of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// It is refused.
    Refuse,
    /// Who has made it waits, and makes it again.
    Wait,
}

/// What anyone who waits for a lock waits for: a word that changes before the lock can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockWait {
    /// Which word, as the implementation counts them.
    pub word: u32,
    /// What it was.
    pub seen: u32,
}

/// Why a range was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockRefusal {
    /// For good.
    Failed(Errno),
    /// A lock is in the way: the caller wants to wait for this, and to ask again.
    Busy(LockWait),
}

impl From<Errno> for LockRefusal {
    fn from(errno: Errno) -> LockRefusal {
        LockRefusal::Failed(errno)
    }
}

/// What one call of a process does to locks.
pub trait LockOperations: DataOperations {
    /// Locks or unlocks bytes of the file that a descriptor leads to, on behalf of a process or of the description. A range becomes
    /// what the request says, and nothing changes where another's lock is in the way; a lock of a whole file that is to be
    /// another one is given up first, as on Linux.
    ///
    /// # Errors
    /// EAGAIN where a lock is in the way of who does not wait, EDEADLK where all would wait for each other, ENOLCK without
    /// memory, EBADF if another thread has closed the descriptor since.
    fn set_lock(
        &self,
        number: u32,
        description: Self::Description<'_>,
        request: &LockRequest,
        patience: Patience,
    ) -> Result<(), LockRefusal>;

    /// The first lock, in the order in which owners came, that is in the way of a request.
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn foreign_lock(
        &self,
        description: Self::Description<'_>,
        request: &LockRequest,
    ) -> AnswerOf<Option<ForeignLock>, Self>;

    /// The process does not wait any more, after it has been told to ([`LockRefusal::Busy`]).
    ///
    /// # Errors
    /// The implementation's fault alone.
    fn stop_waiting(&self, wait: LockWait) -> AnswerOf<(), Self>;
}
