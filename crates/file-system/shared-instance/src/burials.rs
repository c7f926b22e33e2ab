//! Who has died is buried: the calls in which it was are completed or undone, and what its processes of the instance had is closed.
//!
//! ```text
//! take over   its cores │ calls are completed or undone │ the cores are kept
//! bury        take over, if that was not done │ its processes are ended, with the help of these cores │ the cores are free
//! ```
//! **Two who have died** at one time can each hold what the other's burial needs. So who waits in a burial for long takes over from
//! all who have died since. To end a process can take a wait, to take over what is held takes none for one who has died before.

use std::cell::RefCell;
use std::vec::Vec;

use percpu::{Arena, Core, OwnerId};
use scalefs::{Outside, ScaleFs};
use sync::{Wait, WaitReason};

use crate::control::Control;
use crate::deaths::take_over;

/// After so many rounds of a wait, and each so many more, others are looked for who have died.
const PATIENT_ROUNDS: u32 = 64;

/// The burials of a process that sees to the others.
pub(crate) struct Burials<'b> {
    pub(crate) control: &'static Control,
    pub(crate) arena: &'static Arena,
    pub(crate) file_system: &'static ScaleFs,
    /// As whom that is done.
    pub(crate) heir: OwnerId,
    /// Whether a process has ended.
    pub(crate) has_ended: &'b dyn Fn(i32) -> bool,
    /// Who was taken over from.
    pub(crate) taken_over: &'b RefCell<Vec<TakenOver>>,
}

/// What was taken over from somebody who is not buried yet.
pub(crate) struct TakenOver {
    dead: OwnerId,
    cores: Vec<Core<'static>>,
}

impl Wait for Burials<'_> {
    fn wait(&self, reason: WaitReason, round: u32) {
        Outside.wait(reason, round);
        if round > 0 && round.is_multiple_of(PATIENT_ROUNDS) {
            self.take_over_others();
        }
    }
}

impl Burials<'_> {
    /// Takes over from all who have died since the burial was begun.
    fn take_over_others(&self) {
        for seat in self.control.seats.all() {
            if let (Some(owner), Some(process)) = (seat.owner(), seat.process())
                && owner != self.heir
                && (self.has_ended)(process)
            {
                self.take_over_from(owner);
            }
        }
    }

    fn take_over_from(&self, dead: OwnerId) {
        if self.taken_over.borrow().iter().any(|taken| taken.dead == dead) {
            return;
        }
        // First of all noted, so that a wait in the middle does not begin again.
        self.taken_over.borrow_mut().push(TakenOver { dead, cores: Vec::new() });
        let mut cores = Vec::new();
        // SAFETY: it has ended, and its owner is no one else's.
        unsafe { take_over((self.arena, self.file_system), dead, self.heir, self, |core| cores.push(core)) };
        let mut all = self.taken_over.borrow_mut();
        let taken = all.iter_mut().find(|taken| taken.dead == dead).expect("noted above");
        taken.cores = cores;
    }

    /// Buries who has died; returns in how many calls it was.
    pub(crate) fn bury(&self, dead: OwnerId) -> usize {
        self.take_over_from(dead);
        let cores = {
            let mut all = self.taken_over.borrow_mut();
            let place = all.iter().position(|taken| taken.dead == dead).expect("taken over above");
            all.swap_remove(place).cores
        };
        let own = if cores.is_empty() { Some(self.lease()) } else { None };
        let acting = own.as_ref().or(cores.first()).expect("one of them is there");
        let all: Vec<&Core<'_>> = cores.iter().collect();
        // SAFETY: it has ended; all of its cores have been repaired.
        unsafe { self.file_system.end_processes_of(acting, dead, &all, self) };
        cores.len()
    }

    fn lease(&self) -> Core<'static> {
        let mut round = 0;
        loop {
            if let Ok(core) = self.arena.lease(0, self.heir) {
                return core;
            }
            self.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
        }
    }
}
