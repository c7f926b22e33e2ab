//! The instance that lasts: what programs have of it.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, io, mem, process};

use posix_calls::Fields;
use scalefs::{FileSystem, OwnedConfig};
use transact::{Scope, journaled};

use crate::error::OpenError;
use crate::folder::{self, Folder};
use crate::image::Image;
use crate::log::{Log, Unhurried};
use crate::page_file::Identity;
use crate::rebuild::rebuild;
use crate::storage::Storage;
use crate::store::Store;

/// How an instance is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How large it is in memory: all of it lies there.
    pub memory: OwnedConfig,
}

/// An instance of ScaleFS whose transactions last. Threads share it.
pub struct Durable {
    files: FileSystem,
    log: Arc<Log>,
    unhurried: Unhurried,
}

impl fmt::Debug for Durable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Durable").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Durable {
    /// Opens the instance in a folder, made if it does not exist. Nobody else opens it before this is dropped.
    ///
    /// # Errors
    /// [`OpenError`] says what was expected, what was found, and what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Durable, OpenError> {
        Durable::open_with(path, Options::default())
    }

    /// As [`Durable::open`], with a memory of another size.
    ///
    /// # Errors
    /// As there; [`OpenError::TooSmall`] if what is there does not fit.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Durable, OpenError> {
        let path = path.as_ref();
        match folder::open(path)? {
            Folder::Whole(storage) => Durable::open_in(storage, options),
            Folder::New(storage) => {
                let (store, image) = create_store(storage)?;
                folder::name_records(path).map_err(OpenError::system(format!("make {}", path.display())))?;
                Durable::of(store, &image, options)
            }
        }
    }

    /// Makes an instance in storage that is empty.
    ///
    /// # Errors
    /// The storage's; no memory.
    pub fn create_in(storage: Storage, options: Options) -> Result<Durable, OpenError> {
        let (store, image) = create_store(storage)?;
        Durable::of(store, &image, options)
    }

    /// Opens the instance in any storage.
    ///
    /// # Errors
    /// As [`Durable::open`].
    pub fn open_in(storage: Storage, options: Options) -> Result<Durable, OpenError> {
        let (store, image) = Store::open(storage)?;
        Durable::of(store, &image, options)
    }

    fn of(mut store: Store, image: &Image, options: Options) -> Result<Durable, OpenError> {
        let files = FileSystem::create(options.memory).map_err(OpenError::system("take memory for the instance"))?;
        let numbers = rebuild(&files, &store, image)?;
        store.know(numbers);
        let log = Arc::new(Log::new(store));
        Ok(Durable { files, unhurried: Unhurried(log.clone()), log })
    }

    /// Runs a closure whose calls happen at one moment, or not at all, as [`transact::Transactions::transaction`] does. When
    /// this returns, they last; so does all that they have seen.
    ///
    /// # Errors
    /// As there. The disk's, too: then nothing that was not said to last need do so, and all calls fail until the instance is opened
    /// again.
    pub fn transaction<'d, T>(&'d self, body: impl FnMut(&Scope<'d>) -> io::Result<T>) -> io::Result<T> {
        journaled(&self.files, &*self.log, body)
    }

    /// As [`Durable::transaction`], without waiting for the disk: it lasts once a later one does, or [`Durable::sync`] has
    /// returned. What comes after it never lasts without it.
    ///
    /// # Errors
    /// As there.
    pub fn transaction_later<'d, T>(&'d self, body: impl FnMut(&Scope<'d>) -> io::Result<T>) -> io::Result<T> {
        journaled(&self.files, &self.unhurried, body)
    }

    /// Waits until all that has happened lasts.
    ///
    /// # Errors
    /// The disk's.
    pub fn sync(&self) -> io::Result<()> {
        // It has seen nothing, and waits for what others have done.
        self.transaction(|_| Ok(()))
    }

    /// Waits until what has become of one object lasts, as `fsync` does; with it all that came before. Where nothing of it waits
    /// for the disk, nor does this.
    ///
    /// # Errors
    /// Those of POSIX `stat`; the disk's.
    pub fn sync_object(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let number = self.transaction_later(|t| Ok(t.metadata(path, Fields::IDENTITY)?.number))?;
        self.log.wait_for_object(number)
    }

    /// Closes the instance, as dropping it does, and says whether all of it lasts.
    ///
    /// # Errors
    /// The disk's. In a child of `fork`: nothing is closed or written there.
    pub fn close(self) -> io::Result<()> {
        if !self.files.is_of_this_process() {
            return Err(io::Error::other(
                "expected the process that opened the instance; this is a child of it; let the parent close it",
            ));
        }
        self.log.close()
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        if self.files.is_of_this_process() {
            // Who wants to know has called `close`.
            let _ = self.log.close();
        } else {
            // A child of `fork` must not close what its parent has.
            mem::forget(self.log.clone());
        }
    }
}

fn create_store(storage: Storage) -> Result<(Store, Image), OpenError> {
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    Store::create(storage, new_identity(), now_ns).map_err(OpenError::system("make a durable instance"))
}

/// What no other instance has.
fn new_identity() -> Identity {
    // Each has keys of its own.
    let half = || RandomState::new().hash_one(process::id()).to_le_bytes();
    let mut identity = Identity::default();
    identity[..8].copy_from_slice(&half());
    identity[8..].copy_from_slice(&half());
    identity
}
