//! The program's side: a mount of its own, all its processes, and the end.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getegid, geteuid};
use scalefs::Decision;
use shared_instance::peer;

use super::options::TransactionOptions;
use super::talk::{self, Heard};
use crate::children;
use crate::mount_point::{canonical, check_system};
use crate::mounts::{self, Mounted};
use crate::run::Failure;
use crate::unmount::{InUse, take_away};

const NOT_FOUND: u8 = 127;
const CANNOT_BE_RUN: u8 = 126;
/// Of a program of which the system has not said how it has ended.
const UNKNOWN: u8 = 128;
/// Of one that a signal has ended, with the signal's number.
const ENDED_BY_SIGNAL: u8 = 128;
/// Others have changed what the program has seen: it may do better when it begins again. EX_TEMPFAIL of `sysexits.h`.
const REFUSED: u8 = 75;
/// So long processes may take to end that were killed, before others are looked for that they have left.
const LOOKS_EACH: Duration = Duration::from_millis(10);

/// The instance, and where the program sees it.
struct Place {
    mounted: Mounted,
    /// Where the program begins.
    start: PathBuf,
}

/// The signals of which this process hears, instead of being ended by them.
struct Signals {
    descriptor: SignalFd,
    /// Whether one of them asks for the end: then it does not begin again.
    is_asked_to_end: Cell<bool>,
}

impl Signals {
    /// Blocks them. Those of the terminal (INT, QUIT) reach the program itself.
    fn hear() -> Result<Signals, Errno> {
        let heard = [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
        let heard = heard.into_iter().collect::<SigSet>();
        heard.thread_block()?;
        let descriptor = SignalFd::with_flags(&heard, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { descriptor, is_asked_to_end: Cell::new(false) })
    }

    /// The next one that asks for the end, if one has come.
    fn next_to_end(&self) -> Option<Signal> {
        while let Ok(Some(signal)) = self.descriptor.read_signal() {
            match Signal::try_from(signal.ssi_signo.cast_signed()) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => {
                    self.is_asked_to_end.set(true);
                    return Some(signal);
                }
            }
        }
        None
    }

    fn is_asked_to_end(&self) -> bool {
        while self.next_to_end().is_some() {}
        self.is_asked_to_end.get()
    }

    /// Waits until the server has said something. The signal that has ended the waiting, if one has: a server that is stopped says
    /// nothing, and who waits for it must end as others do.
    fn wait_for(&self, server: &UnixStream) -> Result<Option<Signal>, Errno> {
        loop {
            let mut ready = [
                PollFd::new(server.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut ready, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            if ready[0].revents().is_some_and(|events| !events.is_empty()) {
                return Ok(None);
            }
            if let Some(signal) = self.next_to_end() {
                return Ok(Some(signal));
            }
        }
    }
}

/// How one try has ended.
enum Tried {
    /// With this exit code: the transaction has happened if it is 0.
    Ended(u8),
    /// By this, with nothing changed.
    Refused(String),
}

pub(crate) fn run(options: &TransactionOptions) -> Result<ExitCode, Failure> {
    let place = find(&options.at)?;
    if !geteuid().is_root() {
        let why = "expected root: who works in a transaction mounts the directory once more; commutant try needs no root, and no ScaleFS";
        return Err(why.to_owned().into());
    }
    check_system()?;
    check_inherited(&place.mounted.mount_point)?;
    // They would be waited for as if the program had left them.
    if children::are_there() {
        return Err("expected no children of the shell that became this program: leave out exec".to_owned().into());
    }
    be_apart().map_err(|errno| format!("a mount namespace: {}", errno.desc()))?;
    let signals = Signals::hear().map_err(|errno| format!("waiting for signals: {}", errno.desc()))?;
    let at = place.mounted.mount_point.display();
    for retries_left in (0..=options.retries).rev() {
        match try_once(options, &place, &signals)? {
            Tried::Ended(0) => return Ok(ExitCode::SUCCESS),
            Tried::Ended(code) => {
                let program = options.program.display();
                eprintln!("scalefs: not committed, since {program} ended with {code}: nothing in {at} has changed");
                return Ok(ExitCode::from(code));
            }
            Tried::Refused(by) if retries_left > 0 && !signals.is_asked_to_end() => {
                let left = retries_left - 1;
                eprintln!(
                    "scalefs: refused, since others have changed {by}: it begins again, {left} more times at most"
                );
            }
            Tried::Refused(by) => {
                let why = format!("refused, since others have changed {by}: nothing in {at} has changed");
                return Err(Failure { code: REFUSED, why });
            }
        }
    }
    unreachable!("the last try returns")
}

/// The instance in which a directory lies.
fn find(at: &Path) -> Result<Place, String> {
    let shown = at.display();
    let start = canonical(at).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("--at {shown} does not exist: expected a directory of a ScaleFS that is mounted")
        }
        _ => format!("--at {shown}: {error}"),
    })?;
    if !start.is_dir() {
        return Err(format!("--at {shown} is no directory"));
    }
    if mounts::is_in_transaction(&start)? {
        return Err(format!("{shown} is seen in a transaction: one within another cannot be"));
    }
    match mounts::around(&start)? {
        Some(mounted) => match mounts::part_around(&start)? {
            None => Ok(Place { mounted, start }),
            // At that place all would be seen instead.
            Some(part) => {
                let (at, part) = (mounted.mount_point.display(), part.display());
                Err(format!("{at} shows {part} of a ScaleFS alone: name the directory where all of it is mounted"))
            }
        },
        None => Err(format!("{shown} lies in no ScaleFS that is mounted: scalefs mount --no-cache DIR makes one")),
    }
}

/// What is open there already would be written outside of the transaction.
fn check_inherited(mount_point: &Path) -> Result<(), String> {
    let wrong = |error: io::Error| format!("{}: {error}", mount_point.display());
    let instance = std::fs::metadata(mount_point).map_err(wrong)?.dev();
    let open = std::fs::read_dir("/proc/self/fd").map_err(|error| format!("/proc/self/fd: {error}"))?;
    for number in open.flatten() {
        let is_there = std::fs::metadata(number.path()).is_ok_and(|file| file.dev() == instance);
        if is_there {
            let number = number.file_name();
            return Err(format!(
                "descriptor {} is open in {}, outside of the transaction: open it in the program, as by sh -c",
                number.display(),
                mount_point.display()
            ));
        }
    }
    Ok(())
}

/// Leaves the mounts of others alone, and the directory that they would be kept in use by.
fn be_apart() -> Result<(), Errno> {
    nix::unistd::chdir("/")?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    // Who is left by its parent is ours.
    nix::sys::prctl::set_child_subreaper(true)
}

/// Runs the program once, and ends its transaction.
fn try_once(options: &TransactionOptions, place: &Place, signals: &Signals) -> Result<Tried, Failure> {
    let at = place.mounted.mount_point.as_path();
    let server = connect(place)?;
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
    mount_again(place, &device).map_err(|errno| format!("mounting {} again: {}", at.display(), errno.desc()))?;
    let handed_over = talk::hand_over(&server, &device);
    // The last one but the server's, which so ends with the mount.
    drop(device);
    let ended = match handed_over.map_err(|error| silent(at, &error).into()).and_then(|()| heard(at, &server, signals))
    {
        Ok(()) => match talk::hear_ready(&server) {
            Ok(Ok(())) => supervise(options, place, &server, signals),
            Ok(Err(why)) => Err(format!("{}: {why}", at.display()).into()),
            Err(error) => Err(silent(at, &error).into()),
        },
        Err(failure) => Err(failure),
    };
    // What is mapped and changed goes to the server with the end of the last process, and before this one's end of the mount.
    if take_away(at, InUse::Refuse).is_err() {
        let _ = take_away(at, InUse::Detach);
    }
    let code = ended?;
    let decision = if code == 0 { Decision::Commit } else { Decision::Abort };
    talk::say_decision(&server, decision).map_err(|error| silent(at, &error))?;
    if let Err(failure) = heard(at, &server, signals) {
        return match decision {
            Decision::Abort => Ok(Tried::Ended(code)),
            // It is with the server now, which can do it as soon as it goes on.
            Decision::Commit => Err(Failure { why: format!("{}; it may happen yet", failure.why), ..failure }),
        };
    }
    match talk::hear_ending(&server).map_err(|error| silent(at, &error))? {
        Heard::Done => Ok(Tried::Ended(0)),
        Heard::Undone => Ok(Tried::Ended(code)),
        Heard::Refused(by) => Ok(Tried::Refused(by)),
        Heard::Failed(why) => Err(format!("not committed: {why}: nothing in {} has changed", at.display()).into()),
    }
}

/// Waits until the server has said something; a signal ends the waiting.
fn heard(at: &Path, server: &UnixStream, signals: &Signals) -> Result<(), Failure> {
    let at = at.display();
    match signals.wait_for(server) {
        Ok(None) => Ok(()),
        Ok(Some(signal)) => Err(Failure {
            code: ENDED_BY_SIGNAL + u8::try_from(signal as i32).unwrap_or(0),
            why: format!("ended by {} while the server of {at} did not answer", signal.as_str()),
        }),
        Err(errno) => Err(format!("waiting for the server of {at}: {}", errno.desc()).into()),
    }
}

fn silent(at: &Path, error: &io::Error) -> String {
    let at = at.display();
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            format!("the server of {at} has ended, and with it what was in memory: the transaction has left nothing")
        }
        _ => format!("the server of {at} does not answer: {error}"),
    }
}

fn connect(place: &Place) -> Result<UnixStream, String> {
    let Mounted { mount_point, server } = &place.mounted;
    let stream = talk::address(*server).and_then(|address| UnixStream::connect_addr(&address));
    let stream = stream.map_err(|error| silent(mount_point, &error))?;
    let wrong = |error: io::Error| silent(mount_point, &error);
    let (listening, user) = peer(stream.as_fd()).map_err(wrong)?;
    let own = geteuid().as_raw();
    match listening == *server {
        // A server of another user would be handed a mount of ours, and could show us what it likes.
        true if user != own => {
            Err(format!("{}: its server is of user {user}, and serves that one alone", mount_point.display()))
        }
        true => Ok(stream),
        false => Err(format!("process {listening} has taken the name of the server of {}", mount_point.display())),
    }
}

/// Mounts the same directory once more, for this namespace.
fn mount_again(place: &Place, device: &File) -> Result<(), Errno> {
    let source = mounts::source_in_transaction(place.mounted.server);
    let options = format!("fd={},rootmode=40000,user_id={},group_id={}", device.as_raw_fd(), geteuid(), getegid());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some(source.as_str()), &place.mounted.mount_point, Some("fuse"), flags, Some(options.as_str()))
}

/// Starts the program and waits for all processes; returns how it has ended.
fn supervise(
    options: &TransactionOptions,
    place: &Place,
    server: &UnixStream,
    signals: &Signals,
) -> Result<u8, Failure> {
    let mut command = Command::new(&options.program);
    command.args(&options.arguments).current_dir(&place.start).env("PWD", &place.start);
    let child = command.spawn().map_err(|error| {
        let shown = options.program.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure { code: NOT_FOUND, why: format!("{shown}: there is no such program; nothing has changed") }
            }
            _ => Failure { code: CANNOT_BE_RUN, why: format!("{shown}: {error}; nothing has changed") },
        }
    })?;
    let program = Pid::from_raw(child.id().cast_signed());
    let wrong = |errno: Errno| format!("looking after the processes: {}", errno.desc());
    let (mut code, mut has_server) = (None, true);
    loop {
        let mut ready = [
            PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN),
            PollFd::new(server.as_fd(), PollFlags::POLLIN),
        ];
        let (asked, timeout) = match has_server {
            true => (&mut ready[..], PollTimeout::NONE),
            false => (&mut ready[..1], PollTimeout::try_from(LOOKS_EACH).unwrap_or(PollTimeout::ZERO)),
        };
        match poll(asked, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(wrong(errno).into()),
        }
        // It says nothing before it is asked, so it has ended.
        has_server &= ready[1].revents().is_none_or(|events| events.is_empty());
        while let Some(signal) = signals.next_to_end() {
            let is_of_terminal = [Signal::SIGINT, Signal::SIGQUIT].contains(&signal);
            match code {
                None if is_of_terminal => {}
                None => _ = kill(program, signal),
                // Those whom it has left need not be at the terminal.
                Some(_) => signal_children(if is_of_terminal { Signal::SIGTERM } else { signal }),
            }
        }
        if reap(program, &mut code).map_err(wrong)? {
            return Ok(code.unwrap_or(UNKNOWN));
        }
        if !has_server {
            signal_children(Signal::SIGKILL);
        }
    }
}

/// Waits for those who have ended, and notes how the program has; whether no one is left.
fn reap(program: Pid, code: &mut Option<u8>) -> Result<bool, Errno> {
    loop {
        match children::ended() {
            Ok(Some((ended, with))) if ended == program => *code = Some(with),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(Errno::ECHILD) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}

/// Signals the children of this process; when one ends, its own become this one's.
fn signal_children(signal: Signal) {
    let own = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
        let _ = kill(Pid::from_raw(child), signal);
    }
}
