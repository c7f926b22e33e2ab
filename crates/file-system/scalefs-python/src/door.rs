//! An instance, perhaps with a transaction that its calls are parts of.
//!
//! **The interpreter's lock.** A call that moves many bytes is made without it, so that other threads run meanwhile. All others
//! are shorter than giving it up and taking it back. Whoever waits with it for a core or for the transaction waits for calls
//! that do not need it to end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use scalefs::{FileSystem, OpenNode};
use transact::Transaction;

use crate::errors::Refusal;

/// Calls that move so many bytes are made without the interpreter's lock.
pub const WITHOUT_LOCK_BYTES: usize = 128 << 10;

/// See the module's head.
pub struct Door {
    /// Nothing once it is closed; one place for a file system and its transactions.
    files: Arc<Mutex<Option<FileSystem>>>,
    /// What its calls are parts of; nothing inside once it has ended.
    pub transaction: Option<Mutex<Option<Transaction<OpenNode>>>>,
    /// What `st_dev` says of its files.
    pub device: u64,
    /// Who made it.
    process: u32,
}

impl Door {
    pub fn new(files: FileSystem) -> Door {
        static DEVICES: AtomicU64 = AtomicU64::new(1);
        let device = DEVICES.fetch_add(1, Ordering::Relaxed);
        Door { files: Arc::new(Mutex::new(Some(files))), transaction: None, device, process: std::process::id() }
    }

    /// The same instance, in a transaction.
    pub fn with(&self, transaction: Transaction<OpenNode>) -> Door {
        let transaction = Some(Mutex::new(Some(transaction)));
        Door { files: self.files.clone(), transaction, device: self.device, process: self.process }
    }

    /// Before any lock is waited for: in a child of `fork`, whoever had one at the fork never gives it back.
    pub fn check_process(&self) -> Result<(), Refusal> {
        if std::process::id() == self.process { Ok(()) } else { Err(Refusal::OtherProcess) }
    }

    pub fn files(&self) -> Result<FileSystem, Refusal> {
        self.check_process()?;
        locked(&self.files).clone().ok_or(Refusal::Closed)
    }

    /// Whether calls are taken: it is not closed, its transaction has not ended, and this is the process that made it.
    pub fn is_open(&self) -> bool {
        self.check_process().is_ok()
            && self.transaction.as_ref().is_none_or(|open| locked(open).is_some())
            && self.files().is_ok_and(|files| files.is_of_this_process())
    }

    /// Refuses all further calls; memory goes with the last call that is under way.
    pub fn close(&self) {
        if self.check_process().is_ok() {
            let files = locked(&self.files).take();
            drop(files);
        }
    }
}

impl Drop for Door {
    /// A transaction that was not ended and is out of reach: nothing of it happens, and nothing stays kept.
    fn drop(&mut self) {
        let Some(transaction) = &self.transaction else { return };
        let mut open = locked(transaction);
        // In a child of `fork`, or once the file system is closed, there is nothing to end.
        if open.is_some()
            && let Ok(files) = self.files()
        {
            let _ = transact::end(&files, &mut open, false);
        }
    }
}

/// What was panicked over was left whole.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a call that moves so many bytes.
pub fn moving<T: Send>(py: Python<'_>, size_bytes: usize, call: impl FnOnce() -> T + Send) -> T {
    if size_bytes >= WITHOUT_LOCK_BYTES { py.detach(call) } else { call() }
}

/// Makes a call on behalf of a [`Door`]: the body is compiled for calls of the file system and for those of a transaction. It
/// is made again where it finds no space and some may become free. A `Result` with [`Refusal`].
macro_rules! calls {
    ($door:expr, |$calls:ident| $body:expr) => {{
        let door: &$crate::door::Door = $door;
        (|| -> Result<_, $crate::errors::Refusal> {
            match &door.transaction {
                None => Ok(door.files()?.act(|calls| {
                    let $calls = &calls;
                    $body
                })?),
                Some(transaction) => {
                    door.check_process()?;
                    let open = $crate::door::locked(transaction);
                    let transaction = open.as_ref().ok_or($crate::errors::Refusal::Ended)?;
                    Ok(door.files()?.act(|calls| {
                        let $calls = &::transact::Call::new(::transact::WithData(calls), transaction);
                        $body
                    })?)
                }
            }
        })()
    }};
}
pub(crate) use calls;
