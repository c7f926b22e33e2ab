//! Marked operations: threads that mark one become cores, take turns after each, and end the run when enough have ended.

use transfer_marks as mark;

use crate::interruptions;
use crate::own_code;
use crate::reason::Reason;
use crate::scheduler::{Inside, Phase, State};
use crate::system;

/// A thread begins an operation.
#[unsafe(no_mangle)]
extern "C" fn commutant_scale_turns_begin() {
    let Some(mut inside) = Inside::now() else { return };
    if inside.own().in_operation {
        system::refuse("an operation begins in another one: expected COMMUTANT_SCALE_END() before");
    }
    if inside.own().core.is_none() {
        become_core(&mut inside);
    }
    inside.scheduler().progress();
    inside.own().in_operation = true;
    if let Some(core) = inside.own().core {
        mark::turn(core, mark::OPERATION);
    }
}

/// The thread waits until there are as many as there are to be cores; then all get their numbers, in the order in which they were
/// made.
fn become_core(inside: &mut Inside) {
    let scheduler = inside.scheduler();
    let cores = scheduler.options.cores;
    if scheduler.phase == Phase::Running {
        system::refuse(&format!("expected {cores} threads with marked operations, one for each core, got more"));
    }
    let place = inside.place;
    let scheduler = inside.scheduler();
    let is_here = |thread: &crate::scheduler::Thread| thread.state == State::Waits(Reason::AllCores);
    let here: Vec<usize> =
        (0..scheduler.count).filter(|other| *other == place || is_here(&scheduler.threads[*other])).collect();
    if here.len() < cores {
        while inside.own().core.is_none() {
            inside.wait(Reason::AllCores);
        }
        return;
    }
    for (core, place) in here.into_iter().enumerate() {
        let thread = &mut scheduler.threads[place];
        (thread.core, thread.state) = (Some(core), State::Ready);
    }
    scheduler.phase = Phase::Running;
    mark::cores(cores);
    mark::interrupt(scheduler.options.seed, scheduler.options.rate);
    if scheduler.options.warm_up == 0 {
        mark::count();
    }
    // Who came last does not go first for that.
    inside.hand_over();
}

/// The operation ends.
#[unsafe(no_mangle)]
extern "C" fn commutant_scale_turns_end() {
    let Some(mut inside) = Inside::now() else { return };
    if !inside.own().in_operation {
        system::refuse("an operation ends that has not begun: expected COMMUTANT_SCALE_BEGIN() before");
    }
    mark::nobody();
    inside.own().in_operation = false;
    let scheduler = inside.scheduler();
    scheduler.progress();
    scheduler.ended += 1;
    if scheduler.ended == scheduler.options.warm_up {
        mark::count();
    }
    if scheduler.ended == scheduler.options.operations {
        mark::end();
        own_code::list_loaded(&scheduler.options.listing, interruptions::stalls());
        system::end(0);
    }
    inside.hand_over();
}

/// The program ends before that.
pub extern "C" fn refuse_end() {
    let Some(mut inside) = Inside::now() else { return };
    let scheduler = inside.scheduler();
    scheduler.refuse_few();
    let (ended, options) = (scheduler.ended, &scheduler.options);
    system::refuse(&match scheduler.phase {
        Phase::Gathering => {
            "no thread marked an operation: expected COMMUTANT_SCALE_BEGIN() and COMMUTANT_SCALE_END() \
                             around what is to be measured; see commutant_scale.h"
                .to_owned()
        }
        Phase::Running => format!(
            "the program ended after {ended} operations of all cores, expected {}, {} of them to warm up; fewer --operations \
             and --warm-up take less",
            options.operations, options.warm_up
        ),
    });
}
