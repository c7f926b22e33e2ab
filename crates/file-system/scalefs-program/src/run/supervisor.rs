//! Who looks after the processes of a tree: repairs what those leave that are killed, and waits for the last one.
//!
//! It may be killed, too: its heir goes on ([`super::heir`]). So what it knows lies in the memory of the tree, but for how the first
//! process ended, which the system says to its parent alone.
//!
//! A process that ends by itself leaves its seat. One that is killed, or that ends while its threads are in calls, does not: then its
//! calls are completed or undone, and what it had open is closed. Others wait for what it had locked until then.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use scalefs::FileSystem;
use shared_instance::{Control, Seat, SharedInstance, watch};

use super::check;
use super::heir::Heir;
use super::names::{self, Request};
use super::stand_ins;
use super::tree::Tree;
use super::unborn::Unborn;
use crate::children;

/// So long a process can run before it is watched.
const LOOKS_AT_SEATS_EACH: Duration = Duration::from_millis(5);
/// And so long nothing else is done.
const MAINTAINS_EACH: Duration = Duration::from_millis(50);
const SIGNALLED: u8 = 128;
/// So long processes that are asked to end may take, before they are killed.
const STOPS_WITHIN: Duration = Duration::from_secs(2);

/// All processes are to end: who waits for that, and since when.
struct Stopping {
    since: Instant,
    waiting: Vec<UnixStream>,
}

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

/// Waits for all processes of the tree, and copies it out; returns how the first one ended.
pub(super) fn supervise(tree: &Tree, signals: &SignalFd, heir: &mut Heir) -> Result<ExitCode, String> {
    let (files, control, is_over) = (tree.instance.files(), tree.instance.control(), AtomicBool::new(false));
    let mut stopping = None;
    let ended = thread::scope(|scope| {
        let maintenance = scope.spawn(|| maintain(files, control, &is_over));
        let ended = look_after(tree, signals, heir, &mut stopping);
        is_over.store(true, Ordering::Relaxed);
        maintenance.thread().unpark();
        ended
    })?;
    stand_ins::remove(control);
    let finished = tree.finish(LOOKS_AT_SEATS_EACH, || answer_all(tree, &mut stopping));
    // Who hears nothing asks for our heir.
    for mut asking in stopping.into_iter().flat_map(|stopping: Stopping| stopping.waiting) {
        let _ = asking.write_all(names::ENDED);
    }
    finished.map(|()| ended)
}

fn look_after(
    tree: &Tree,
    signals: &SignalFd,
    heir: &mut Heir,
    stopping: &mut Option<Stopping>,
) -> Result<ExitCode, String> {
    let instance = &tree.instance;
    open_as_many_as_allowed();
    nix::sys::prctl::set_child_subreaper(true).map_err(wrong)?;
    let mut watched: Vec<Watched> = Vec::new();
    let (mut code, mut unborn) = (None, Unborn::default());
    loop {
        look_at_seats(instance, &mut watched, &mut unborn)?;
        let ready = wait(signals, tree, &watched).map_err(wrong)?;
        while let Ok(Some(signal)) = signals.read_signal() {
            pass_on(instance, signal.ssi_signo);
        }
        for index in ready.into_iter().rev() {
            bury(instance, &watched.swap_remove(index))?;
        }
        answer_all(tree, stopping);
        if stopping.as_ref().is_some_and(|stopping| stopping.since.elapsed() > STOPS_WITHIN) {
            end_all(instance, Signal::SIGKILL);
        }
        reap(tree, &mut code, heir);
        if is_over(instance) {
            break;
        }
    }
    // The first process has left its seat, and ends.
    wait_for_first(instance, &mut code);
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What is left to do between calls, until it is over: beside the supervisor, since it can wait for what somebody holds who has died.
fn maintain(files: &FileSystem, control: &Control, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        thread::park_timeout(MAINTAINS_EACH);
        // Who looks whether all is whole has all cores.
        if !control.is_closed()
            && let Ok(mut lease) = files.begin()
        {
            lease.maintain();
        }
    }
}

/// TERM and HUP reach the program.
fn pass_on(instance: &SharedInstance, number: u32) {
    let passed = [Signal::SIGTERM, Signal::SIGHUP].into_iter().find(|signal| *signal as u32 == number);
    if let (Some(signal), Some(first)) = (passed, instance.control().first()) {
        send(first, signal);
    }
}

/// Those who have seats, by their places.
fn seated(instance: &SharedInstance) -> impl Iterator<Item = &Seat> {
    let seats = instance.control().seats.all().iter().enumerate();
    seats.filter(|(number, seat)| !instance.has_seat(*number) && seat.owner().is_some()).map(|(_, seat)| seat)
}

/// Whether no one is there any more but this process.
fn is_over(instance: &SharedInstance) -> bool {
    seated(instance).next().is_none()
}

/// Sends a signal to all processes of the tree.
fn end_all(instance: &SharedInstance, signal: Signal) {
    for process in seated(instance).filter_map(Seat::process) {
        send(process, signal);
    }
}

/// Whether a number of the memory, where each process of the tree can store, names one process: others name many, or the first of all.
fn is_of_one(process: i32) -> bool {
    process > 1
}

fn send(process: i32, signal: Signal) {
    if is_of_one(process) {
        // It may have ended.
        let _ = kill(Pid::from_raw(process), signal);
    }
}

/// Answers those who ask.
fn answer_all(tree: &Tree, stopping: &mut Option<Stopping>) {
    while let Some((request, asking)) = names::asked(&tree.listener) {
        answer(tree, request, asking, stopping);
    }
}

fn answer(tree: &Tree, request: Request, mut asking: UnixStream, stopping: &mut Option<Stopping>) {
    match request {
        // Who has gone does not want it any more.
        Request::Status => _ = asking.write_all(&status(&tree.instance)),
        Request::Check => check::start(tree, asking),
        Request::Stop => {
            end_all(&tree.instance, Signal::SIGTERM);
            let stopping = stopping.get_or_insert_with(|| Stopping { since: Instant::now(), waiting: Vec::new() });
            stopping.waiting.push(asking);
        }
    }
}

/// This process, the room, what of it is used, files and processes, each a number; and where the tree is seen.
fn status(instance: &SharedInstance) -> Vec<u8> {
    let space = if instance.control().is_closed() { None } else { instance.files().space().ok() };
    let (size, used, files) = space.map_or((0, 0, 0), |space| {
        let mebibytes = |blocks: u64| (blocks * space.block_bytes) >> 20;
        (mebibytes(space.blocks), mebibytes(space.blocks - space.free_blocks), space.inodes - space.free_inodes)
    });
    let processes = seated(instance).count();
    let numbers = format!("{} {size} {used} {files} {processes} ", std::process::id());
    [numbers.as_bytes(), instance.control().mount_point()].concat()
}

/// Waits for children that have ended: the first process, those that have lost their parents, the heir.
fn reap(tree: &Tree, code: &mut Option<u8>, heir: &mut Heir) {
    let first = tree.instance.control().first();
    while let Ok(Some((ended, with))) = children::ended() {
        if Some(ended.as_raw()) == first {
            *code = Some(with);
        }
        heir.note_end(ended, tree);
    }
}

/// How the first process ended, if it is a child of this one and has not been waited for.
fn wait_for_first(instance: &SharedInstance, code: &mut Option<u8>) {
    let Some(first) = instance.control().first().filter(|_| code.is_none()) else { return };
    loop {
        match waitpid(Pid::from_raw(first), None) {
            Ok(WaitStatus::Exited(_, status)) => return *code = Some(status as u8),
            Ok(WaitStatus::Signaled(_, signal, _)) => return *code = Some(SIGNALLED + signal as u8),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Watches who has come, and watches no one who has left. Where no more files can be open, the others are only asked whether they
/// have ended.
fn look_at_seats(instance: &SharedInstance, watched: &mut Vec<Watched>, unborn: &mut Unborn) -> Result<(), String> {
    let seats = &instance.control().seats;
    watched.retain(|one| {
        let owner = seats.get(one.seat).and_then(|seat| seat.owner());
        owner.is_some_and(|owner| owner.number() == one.owner)
    });
    let mut is_full = false;
    for (number, seat) in seats.all().iter().enumerate() {
        let Some(owner) = seat.owner() else { continue };
        if instance.has_seat(number) || watched.iter().any(|one| one.seat == number) {
            continue;
        }
        let Some(process) = seat.process() else {
            if unborn.is_lost(instance, (number, seat)) {
                bury_seat(instance, number, owner.number())?;
            }
            continue;
        };
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

/// Whether the process of a number has ended; not if the system does not say.
fn has_died(process: i32) -> bool {
    match watch(process) {
        Ok(ended) => has_ended(&ended).unwrap_or(false),
        Err(error) => error.raw_os_error() == Some(Errno::ESRCH as i32),
    }
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
fn wait(signals: &SignalFd, tree: &Tree, watched: &[Watched]) -> Result<Vec<usize>, Errno> {
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut all: Vec<PollFd<'_>> = watched.iter().map(|one| readable(one.ended.as_fd())).collect();
    all.extend([readable(signals.as_fd()), readable(tree.listener.as_fd())]);
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
    instance.bury_dead(seat, owner, &has_died).map(drop)
}

/// Whether a test has planted a fault: never in ordinary builds.
fn planted(instance: &SharedInstance, name: &str) -> bool {
    cfg!(feature = "planted-faults") && instance.control().is_planted(name)
}

#[cfg(test)]
mod tests {
    use super::is_of_one;

    #[test]
    fn no_signal_goes_to_all_processes() {
        assert!([i32::MIN, -2, -1, 0, 1].into_iter().all(|number| !is_of_one(number)));
        assert!([2, i32::MAX].into_iter().all(is_of_one));
    }
}
