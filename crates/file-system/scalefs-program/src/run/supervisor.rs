//! Who looks after the processes of a tree: repairs what those leave that are killed, and waits for the last one.
//!
//! A process that ends by itself leaves its seat. One that is killed, or that ends while its threads are in calls, does not: then its
//! calls are completed or undone, and what it had open is closed. Others wait for what it had locked until then.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use scalefs::Outside;
use shared_instance::{SharedInstance, watch};

/// So long a process can run before it is watched.
const LOOKS_AT_SEATS_EACH: Duration = Duration::from_millis(5);
/// And so long nothing else is done.
const MAINTAINS_EACH: Duration = Duration::from_millis(50);
const SIGNALLED: u8 = 128;

/// A process that is watched.
struct Watched {
    seat: usize,
    owner: u64,
    ended: OwnedFd,
}

/// The signals that the supervisor hears of, instead of being ended by them: before the first process is there. And those that were
/// blocked before, a bit each, as the program is to begin.
pub(super) fn hear() -> Result<(SignalFd, u64), String> {
    // What the terminal sends (INT, QUIT) reaches the program itself.
    let heard = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT].into_iter().collect::<SigSet>();
    let before = heard.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(wrong)?;
    let mask = before.iter().fold(0, |mask, signal| mask | 1 << (signal as u64 - 1));
    let signals = SignalFd::with_flags(&heard, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(wrong)?;
    Ok((signals, mask))
}

fn wrong(errno: Errno) -> String {
    format!("looking after the processes: {}", errno.desc())
}

/// Each process that is watched takes an open file: as many may be open as the system lets us have. The processes of the tree keep the
/// limit that they were started with.
fn open_as_many_as_allowed() {
    // Where it fails, the processes are looked at by turns.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Waits for all processes of the tree; returns how the first one ended.
pub(super) fn supervise(instance: &SharedInstance, child: Child, signals: &SignalFd) -> Result<ExitCode, String> {
    let first = Pid::from_raw(child.id().cast_signed());
    open_as_many_as_allowed();
    nix::sys::prctl::set_child_subreaper(true).map_err(wrong)?;
    let mut watched: Vec<Watched> = Vec::new();
    let (mut code, mut maintained) = (None, Instant::now());
    loop {
        look_at_seats(instance, &mut watched)?;
        let ready = wait(signals, &watched).map_err(wrong)?;
        while let Ok(Some(signal)) = signals.read_signal() {
            let number = signal.ssi_signo;
            if number == Signal::SIGTERM as u32 || number == Signal::SIGHUP as u32 {
                let signal = if number == Signal::SIGTERM as u32 { Signal::SIGTERM } else { Signal::SIGHUP };
                let _ = kill(first, signal);
            }
        }
        for index in ready.into_iter().rev() {
            bury(instance, &watched.swap_remove(index))?;
        }
        match reap(first, &mut code) {
            Left::Some => {}
            Left::Nobody => break,
        }
        if maintained.elapsed() >= MAINTAINS_EACH {
            maintained = Instant::now();
            if let Ok(mut lease) = instance.files().begin() {
                lease.maintain();
            }
        }
    }
    // No one runs any more: who has a seat has died in it.
    for (number, seat) in instance.control().seats.all().iter().enumerate() {
        if let Some(owner) = seat.owner() {
            bury_seat(instance, number, owner.number())?;
        }
    }
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Who is left of the children.
enum Left {
    Some,
    Nobody,
}

/// Waits for children that have ended: the first process, and those that have lost their parents.
fn reap(first: Pid, code: &mut Option<u8>) -> Left {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Left::Some,
            Ok(WaitStatus::Exited(process, status)) if process == first => *code = Some(status as u8),
            Ok(WaitStatus::Signaled(process, signal, _)) if process == first => {
                *code = Some(SIGNALLED + signal as u8);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Left::Nobody,
        }
    }
}

/// Watches who has come, and watches no one who has left. Where no more files can be open, the others are only asked whether they
/// have ended.
fn look_at_seats(instance: &SharedInstance, watched: &mut Vec<Watched>) -> Result<(), String> {
    let seats = &instance.control().seats;
    watched.retain(|one| {
        let owner = seats.get(one.seat).and_then(|seat| seat.owner());
        owner.is_some_and(|owner| owner.number() == one.owner)
    });
    let mut is_full = false;
    for (number, seat) in seats.all().iter().enumerate() {
        let Some(owner) = seat.owner() else { continue };
        if watched.iter().any(|one| one.seat == number) {
            continue;
        }
        let Some(process) = seat.process() else { continue };
        let mut opened = watch(process);
        if !is_full && opened.as_ref().is_err_and(no_more_files) {
            // One gives up its place for the others' questions: it is watched again at the next look.
            is_full = true;
            drop(watched.pop());
            opened = watch(process);
        }
        match opened {
            Ok(ended) if is_full => {
                if has_ended(&ended).map_err(wrong)? {
                    bury_seat(instance, number, owner.number())?;
                }
            }
            Ok(ended) if seat.owner() == Some(owner) => {
                watched.push(Watched { seat: number, owner: owner.number(), ended });
            }
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {
                bury_seat(instance, number, owner.number())?;
            }
            // The next look is a few milliseconds away.
            Err(error) if no_more_files(&error) => {}
            Err(error) => return Err(format!("watching process {process}: {error}")),
        }
    }
    Ok(())
}

/// Whether the process or the system has as many files open as it may.
fn no_more_files(error: &std::io::Error) -> bool {
    [Errno::EMFILE, Errno::ENFILE].iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}

/// Whether a process has ended, without waiting for it.
fn has_ended(ended: &OwnedFd) -> Result<bool, Errno> {
    let mut one = [PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
    match poll(&mut one, PollTimeout::ZERO) {
        Err(Errno::EINTR) => Ok(false),
        outcome => outcome.map(|ready| ready > 0),
    }
}

/// Waits until one of the processes ends, a signal comes, or some time has passed; those that have ended, by their places.
fn wait(signals: &SignalFd, watched: &[Watched]) -> Result<Vec<usize>, Errno> {
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut all: Vec<PollFd<'_>> = watched.iter().map(|one| readable(one.ended.as_fd())).collect();
    all.push(readable(signals.as_fd()));
    let timeout = PollTimeout::try_from(LOOKS_AT_SEATS_EACH).unwrap_or(PollTimeout::ZERO);
    match poll(&mut all, timeout) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    }
    let is_ready = |index: &usize| all[*index].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
    Ok((0..watched.len()).filter(is_ready).collect())
}

fn bury(instance: &SharedInstance, one: &Watched) -> Result<(), String> {
    bury_seat(instance, one.seat, one.owner)
}

fn bury_seat(instance: &SharedInstance, seat: usize, owner: u64) -> Result<(), String> {
    if planted(instance, "run: no one repairs what the dead leave") {
        return Ok(());
    }
    instance.bury_dead(seat, owner, &Outside).map(drop)
}

/// Whether a test has planted a fault: never in ordinary builds.
fn planted(instance: &SharedInstance, name: &str) -> bool {
    cfg!(feature = "planted-faults") && instance.control().is_planted(name)
}
