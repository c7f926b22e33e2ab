//! Sharing that is planted in the making of a name, to check what reports call its first cause: never in ordinary builds.
//!
//! Three things, each of which can be taken away by itself: a lock with what is only touched while it is held, a counter, and
//! two words in one line. Atomic, relaxed: nothing hangs on their values, and no window runs two calls at a time.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What is planted, as a sum of [`LOCK`], [`COUNTER`] and [`PAIR`]. Written before the first call. Atomic, relaxed.
pub static PLANTED: AtomicU8 = AtomicU8::new(0);
/// A lock and three words under it, on a line each: four lines.
pub const LOCK: u8 = 1;
/// A counter: one line.
pub const COUNTER: u8 = 2;
/// Two words, each for the cores of one parity: one line.
pub const PAIR: u8 = 4;

#[repr(align(128))]
struct Line([AtomicU64; 2]);

impl Line {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 2])
    }
}

static NAMES_LOCK: Line = Line::new();
static NAMES_FIRST: Line = Line::new();
static NAMES_LAST: Line = Line::new();
static NAMES_GENERATION: Line = Line::new();
static NAMES_MADE: Line = Line::new();
static NAMES_OF_PARITY: Line = Line::new();

// The functions are called as a lock's are in C: by that a report knows them.

/// Takes the lock.
#[allow(unsafe_code)] // SAFETY: no other function of the program has the name
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn mutex_lock_planted() {
    while NAMES_LOCK.0[0].swap(1, Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
}

/// Gives it back.
#[allow(unsafe_code)] // SAFETY: as above
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn mutex_unlock_planted() {
    NAMES_LOCK.0[0].store(0, Ordering::Release);
}

/// A core makes a name.
#[inline(never)]
pub(crate) fn make_name(core: usize) {
    let planted = PLANTED.load(Ordering::Relaxed);
    if planted & LOCK != 0 {
        mutex_lock_planted();
        for word in [&NAMES_FIRST, &NAMES_LAST, &NAMES_GENERATION] {
            word.0[0].fetch_add(1, Ordering::Relaxed);
        }
        mutex_unlock_planted();
    }
    if planted & COUNTER != 0 {
        NAMES_MADE.0[0].fetch_add(1, Ordering::Relaxed);
    }
    if planted & PAIR != 0 {
        NAMES_OF_PARITY.0[core % 2].fetch_add(1, Ordering::Relaxed);
    }
}
