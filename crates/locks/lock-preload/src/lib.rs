//! Loaded into a program in front of the C library (`LD_PRELOAD`): tells the lock recorder what pthread's locks and POSIX's semaphores do.
//!
//! A function that may have to wait tries first, so that waiting is known; everything else is left to the C library's own
//! function, whose result is returned.

mod mutex;
mod rwlock;
mod semaphore;
mod spin;
mod tell;
