//! Starts the actors: per process a home and one thread per core, each pinned to its virtual CPU.
//!
//! A process is forked from init, so it has a memory map, descriptors, working directory and credentials of its own (fork
//! copies credentials, but not the list of groups after them, which is therefore set again). Its home is a task that
//! shares descriptors and working directory with it, but not the memory map: what a call under test does to memory maps
//! on other processors does not reach the processor of the homes. So calls on memory, of set-ups too, are made by threads
//! of the process. The home of process 0 is the coordinator.
//!
//! ```text
//! init ─fork─ process 0 ─clone(FILES, FS)─ home 0 = coordinator
//!   │            └─ threads: worker of core 0, 1, ...
//!   └──fork─ process 1 ─clone(FILES, FS)─ home 1 ...
//! ```

use std::sync::{Arc, Barrier};
use std::{io, mem, process, ptr, thread};

use super::operation::Operation;
use super::target::Linux;
use super::{held, reserved};
use crate::crew::{Crew, Slots};
use crate::place::Place;
use crate::slot::Waiting;

/// Memory for all slots, shared by processes that are forked later.
///
/// # Errors
/// No memory.
pub fn shared_slots() -> io::Result<&'static Slots<Operation>> {
    let size_bytes = mem::size_of::<Slots<Operation>>();
    // SAFETY: a new mapping at an address that the kernel chooses.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let slots = base.cast::<Slots<Operation>>();
    // SAFETY: the mapping is large enough, page-aligned, no one else's, and never unmapped.
    unsafe {
        for index in 0..crate::place::ACTOR_COUNT {
            (*slots).as_mut_ptr().add(index).write(crate::slot::Slot::default());
        }
        Ok(&*slots)
    }
}

/// Starts the actors of `core_count` cores and as many processes, and runs `coordinate` in the home of process 0. Returns,
/// with a description, when any of them ends: the guest is of no use any more.
pub fn run(slots: &'static Slots<Operation>, core_count: usize, coordinate: impl FnOnce(Crew<Linux>)) -> String {
    // What files and directories are made with, all may do with them; a test denies it where it is about rights.
    // SAFETY: changes this process's mask alone.
    unsafe { libc::umask(0) };
    super::signals::block();
    let mut coordinate = Some(coordinate);
    let mut first = None;
    for number in 0..core_count {
        // SAFETY: init has one thread, so the child may do everything.
        match unsafe { libc::fork() } {
            -1 => return format!("starting a process: {}", io::Error::last_os_error()),
            0 => {
                let why = process_main(slots, core_count, number, first, &mut coordinate);
                super::console::complain(&format!("process {number}: {why}"));
                process::exit(1);
            }
            child => {
                first.get_or_insert(child);
            }
        }
    }
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    let child = unsafe { libc::wait(&raw mut status) };
    format!("process with id {child} ended with status {status:#x}")
}

/// The life of process `number`, where process 0 has the id `first`, or is this; returns only if something goes wrong.
fn process_main(
    slots: &'static Slots<Operation>,
    core_count: usize,
    number: usize,
    first: Option<libc::pid_t>,
    coordinate: &mut Option<impl FnOnce(Crew<Linux>)>,
) -> String {
    let home = Place::Home { process: number };
    let own = process::id().cast_signed();
    if let Err(error) = held::open_permanent(own, first.unwrap_or(own)) {
        return format!("opening its descriptors: {error}");
    }
    let flags = libc::CLONE_FILES | libc::CLONE_FS | libc::SIGCHLD;
    // SAFETY: like fork, from a process with one thread; the child keeps to its own copy of memory.
    let home_id = match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => return format!("starting its home: {}", io::Error::last_os_error()),
        0 => {
            pin(home.cpu(core_count));
            if number > 0 {
                // SAFETY: this process's home is this thread.
                unsafe { slots[home.index()].serve::<Linux>(Waiting::Asleep) };
            }
            if let Some(coordinate) = coordinate.take() {
                // SAFETY: only the home of process 0 comes here, and once.
                coordinate(unsafe { Crew::new(slots, core_count) });
            }
            process::exit(1);
        }
        child => libc::pid_t::try_from(child).unwrap_or(-1),
    };
    let groups = [libc::gid_t::try_from(number).unwrap_or_default() + 1];
    // SAFETY: `groups` is a list of one number.
    if unsafe { libc::setgroups(groups.len(), groups.as_ptr()) } != 0 {
        return format!("setting its groups: {}", io::Error::last_os_error());
    }
    // Addresses are reserved when all threads run, so after everything that this program maps itself; no one serves
    // before.
    let turns = Arc::new(Barrier::new(core_count + 1));
    for core in 0..core_count {
        let place = Place::Worker { process: number, core };
        let turns = Arc::clone(&turns);
        let started = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            pin(place.cpu(core_count));
            turns.wait();
            turns.wait();
            // SAFETY: each worker is one thread.
            unsafe { slots[place.index()].serve::<Linux>(Waiting::Spinning) };
        });
        if let Err(error) = started {
            return format!("starting the worker of core {core}: {error}");
        }
    }
    turns.wait();
    if let Err(error) = reserved::reserve() {
        return format!("reserving addresses: {error}");
    }
    turns.wait();
    let mut status = 0;
    // SAFETY: `status` is a live integer. Children that tests fork end, too.
    unsafe { libc::waitpid(home_id, &raw mut status, 0) };
    format!("its home ended with status {status:#x}")
}

/// Keeps the calling thread on one virtual CPU, and from preempting others there when it is woken: who wakes its successor
/// and then goes to sleep would otherwise stay runnable, and share the processor with the successor's spinning for ticks.
/// Linux lets only SCHED_NORMAL tasks preempt on wake-up (check_preempt_wakeup).
fn pin(cpu: usize) {
    // SAFETY: a set of CPUs is plain bits; the size given is the set's.
    let result = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set)
    };
    assert_eq!(result, 0, "virtual CPU {cpu}: {}", io::Error::last_os_error());
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `priority` is a live parameter for the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_BATCH, &raw const priority) };
    assert_eq!(result, 0, "scheduling as batch: {}", io::Error::last_os_error());
}
