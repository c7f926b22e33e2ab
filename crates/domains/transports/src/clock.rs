//! Time, and waiting for other domains, on real machines.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// After this number of looks for nothing, a domain sleeps between looks.
const LOOKS: u32 = 200;
const SLEEP: Duration = Duration::from_micros(50);
/// This many looks are for the processor alone, as long as no one else wants it.
const SPINS: u32 = 100;
/// Who offers the processor and has it back sooner was alone on it.
const ALONE: Duration = Duration::from_micros(1);

/// A domain's clock, and how often it has waited for nothing.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    looks: Cell<u32>,
    /// Looks before the processor is offered to others.
    spins: Cell<u32>,
    /// Others run on this thread, and get their turns elsewhere.
    is_shared: Cell<bool>,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { start: Instant::now(), looks: Cell::new(0), spins: Cell::new(0), is_shared: Cell::new(false) }
    }
}

impl Clock {
    /// From now on it never sleeps.
    pub fn share(&self) {
        self.is_shared.set(true);
    }

    /// Nanoseconds since it was made.
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Lets others go on: for a moment, then for longer. No doorbell rings between hosts.
    pub fn wait(&self) {
        if self.is_shared.get() {
            return;
        }
        let looks = self.looks.get();
        self.looks.set(looks.saturating_add(1));
        if looks < self.spins.get() {
            std::hint::spin_loop();
        } else if looks < LOOKS {
            let offered = Instant::now();
            std::thread::yield_now();
            self.spins.set(if offered.elapsed() < ALONE { SPINS } else { 0 });
        } else {
            std::thread::sleep(SLEEP);
        }
    }

    /// A message has come: others will.
    pub fn has_come(&self) {
        self.looks.set(0);
    }

    /// Lets others go on for about so long.
    pub fn pause(&self, nanoseconds: u64) {
        if !self.is_shared.get() {
            std::thread::sleep(Duration::from_nanos(nanoseconds));
        }
    }
}
