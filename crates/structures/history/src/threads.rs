//! Threads of a test: the system's, or, under `--cfg shuttle`, threads of which one runs at a time, chosen again at any
//! access to an atomic, the same for the same seed.

#[cfg(not(shuttle))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

#[cfg(shuttle)]
use sync::atomic::{AtomicU64, Ordering};

#[cfg(shuttle)]
pub use shuttle::thread::scope;
#[cfg(not(shuttle))]
pub use std::{sync::Barrier, thread::scope};

/// Runs what makes threads once for each of these seeds.
#[cfg(not(shuttle))]
pub fn run(seeds: impl Iterator<Item = u64> + 'static, body: impl Fn() + Send + Sync + 'static) {
    seeds.for_each(|_| body());
}

/// Runs what makes threads once for each of these seeds; they take turns: often, seldom, or in between.
#[cfg(shuttle)]
pub fn run(seeds: impl Iterator<Item = u64> + 'static, body: impl Fn() + Send + Sync + 'static) {
    sync::scheduled::run(seeds.map(|seed| (seed, [512, 128, 32, 8][seed as usize / 6 % 4])), body);
}

/// Where threads wait for each other, and from where on they may overtake each other.
#[cfg(shuttle)]
pub struct Barrier(shuttle::sync::Barrier, usize);

#[cfg(shuttle)]
impl Barrier {
    /// For this many threads.
    pub fn new(count: usize) -> Barrier {
        Barrier(shuttle::sync::Barrier::new(count), count)
    }

    /// Waits until all wait.
    pub fn wait(&self) {
        self.0.wait();
        sync::preemptions::meet(self.1);
    }
}

/// Tells moments in the order in which threads ask for them. Under `--cfg shuttle` others may run before each.
pub struct Clock(AtomicU64);

impl Clock {
    /// One that begins with this moment.
    pub fn new(first: u64) -> Clock {
        Clock(AtomicU64::new(first))
    }

    /// A moment after all that were given before.
    pub fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What a test keeps under a mutex. Asks again and again: waiting is in the part of the standard library that comes without
/// instrumentation, and a thread that has waited there races with the one that let go, says ThreadSanitizer.
///
/// # Panics
/// If a thread panicked while it held the mutex.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(TryLockError::Poisoned(error)) => panic!("{error}"),
        }
    }
}
