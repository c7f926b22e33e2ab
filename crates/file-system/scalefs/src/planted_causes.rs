//! Sharing that is planted in the making of a name, to check what reports call its first cause: never in ordinary builds.
//!
//! Three causes, each of which can be taken away by itself: a lock with what is only touched while it is held, a counter, and
//! two words in one line. Four sharings show in a corner alone, each to be found by an option of the target `scalefs`. And two
//! need three calls: one of them on a third core, or a third name of their file. Atomic, relaxed: nothing hangs on their values, and no window runs two calls at a time.

use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// What is planted, as a sum of [`LOCK`] and its kin. Written before the first call. Atomic, relaxed.
pub static PLANTED: AtomicU16 = AtomicU16::new(0);
/// A lock and three words under it, on a line each: four lines.
pub const LOCK: u16 = 1;
/// A counter: one line.
pub const COUNTER: u16 = 2;
/// Two words, each for the cores of one parity: one line.
pub const PAIR: u16 = 4;

/// A word that each core reads, and writes with each 64th name since its maintenance: one line.
pub const LATE: u16 = 8;
/// A counter of names beyond 200 bytes: one line.
pub const LONG: u16 = 16;
/// A counter of names in directories that are not the root: one line.
pub const DEEP: u16 = 32;
/// A counter of names that others than the superuser make: one line.
pub const USERS: u16 = 64;
/// A line of each core, written by who makes a name there, and read by who takes one away on a core from the third on.
pub const THIRD: u16 = 128;
/// A counter of names that are taken from files of three or more: one line.
pub const MANY: u16 = 256;

const LATE_PERIOD: u64 = 64;
const LONG_BYTES: usize = 200;
const MOST_CORES: usize = 256;
const THIRD_CORE: usize = 2;
const MANY_NAMES: i64 = 3;

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

static NAMES_LATE: Line = Line::new();
static NAMES_LONG: Line = Line::new();
static NAMES_DEEP: Line = Line::new();
static NAMES_OF_USERS: Line = Line::new();
static NAMES_OF_CORE: [Line; MOST_CORES] = [const { Line::new() }; MOST_CORES];
static NAMES_OF_MANY: Line = Line::new();
static SINCE_MAINTENANCE: [Line; MOST_CORES] = [const { Line::new() }; MOST_CORES];

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

/// What is made.
pub(crate) struct Name {
    pub core: usize,
    pub bytes: usize,
    pub in_root: bool,
    pub by_superuser: bool,
}

/// A core has maintained.
pub(crate) fn maintain(core: usize) {
    SINCE_MAINTENANCE[core].0[0].store(0, Ordering::Relaxed);
}

/// A core makes a name.
#[inline(never)]
pub(crate) fn make_name(Name { core, bytes, in_root, by_superuser }: Name) {
    let planted = PLANTED.load(Ordering::Relaxed);
    if planted & LATE != 0 {
        let made = SINCE_MAINTENANCE[core].0[0].fetch_add(1, Ordering::Relaxed) + 1;
        if made.is_multiple_of(LATE_PERIOD) {
            NAMES_LATE.0[0].fetch_add(1, Ordering::Relaxed);
        } else {
            NAMES_LATE.0[0].load(Ordering::Relaxed);
        }
    }
    if planted & THIRD != 0 {
        NAMES_OF_CORE[core].0[0].fetch_add(1, Ordering::Relaxed);
    }
    for (corner, is_there, counter) in [
        (LONG, bytes > LONG_BYTES, &NAMES_LONG),
        (DEEP, !in_root, &NAMES_DEEP),
        (USERS, !by_superuser, &NAMES_OF_USERS),
    ] {
        if planted & corner != 0 && is_there {
            counter.0[0].fetch_add(1, Ordering::Relaxed);
        }
    }
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

/// A core takes a name from an object that has so many.
#[inline(never)]
pub(crate) fn take_name(core: usize, names: i64) {
    let planted = PLANTED.load(Ordering::Relaxed);
    if planted & THIRD != 0 && core >= THIRD_CORE {
        NAMES_OF_CORE.iter().for_each(|line| _ = line.0[0].load(Ordering::Relaxed));
    }
    if planted & MANY != 0 && names >= MANY_NAMES {
        NAMES_OF_MANY.0[0].fetch_add(1, Ordering::Relaxed);
    }
}
