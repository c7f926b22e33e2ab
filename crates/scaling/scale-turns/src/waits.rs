//! Waiting: a thread that cannot go on says for what, and is drawn again once that may have come.

use std::ffi::c_int;

use crate::reason::Reason;
use crate::scheduler::{Inside, State};

/// Why a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// What it waits for may have come.
    ByEvent,
    /// No one could go on. Who waits for a time has waited long enough.
    ByNeed,
}

impl Inside {
    /// Waits until this may have come.
    pub fn wait(&mut self, reason: Reason) -> Woken {
        let own = self.own();
        (own.state, own.was_asked) = (State::Waits(reason), false);
        self.hand_over();
        if self.own().was_asked { Woken::ByNeed } else { Woken::ByEvent }
    }

    /// Makes an attempt until it does not say that it would have to wait; returns what it says then.
    pub fn until(&mut self, reason: Reason, would_wait: c_int, mut attempt: impl FnMut() -> c_int) -> c_int {
        loop {
            let result = attempt();
            if result != would_wait {
                return result;
            }
            self.wait(reason);
        }
    }

    /// As [`Inside::until`], for who does not wait without end.
    pub fn until_time(&mut self, reason: Reason, would_wait: c_int, mut attempt: impl FnMut() -> c_int) -> c_int {
        loop {
            let result = attempt();
            if result != would_wait {
                return result;
            }
            if self.wait(reason) == Woken::ByNeed {
                return libc::ETIMEDOUT;
            }
        }
    }

    /// Of those that wait for this, lets at most `most` go on, in the order of their places; says how many.
    pub fn wake(&mut self, reason: Reason, most: usize) -> usize {
        let scheduler = self.scheduler();
        let waiting = scheduler.threads[..scheduler.count].iter_mut();
        let woken = waiting.filter(|thread| thread.state == State::Waits(reason)).take(most);
        woken.map(|thread| thread.state = State::Ready).count()
    }
}
