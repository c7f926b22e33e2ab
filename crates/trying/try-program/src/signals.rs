//! Signals by which a user or a system ends a program, and what they end: the run, this program, or nothing until a commit is made.

use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;

use crate::failure::{Failure, INTERRUPTED};

/// What this program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing that may not end at once.
    Between,
    /// A run, whose process has this number.
    Running(u32),
    /// A commit, which takes a moment.
    Committing,
}

const BETWEEN: u64 = 0;
const COMMITTING: u64 = 1 << 32;
static PHASE: AtomicU64 = AtomicU64::new(BETWEEN);

/// Says what this program does from now on.
pub(crate) fn go_to(phase: Phase) {
    let phase = match phase {
        Phase::Between => BETWEEN,
        Phase::Running(process) => process.into(),
        Phase::Committing => COMMITTING,
    };
    PHASE.store(phase, Ordering::SeqCst);
}

/// Watches for signals, in a thread of its own; all threads to come leave them to it.
pub(crate) fn watch() -> Result<(), Failure> {
    /// The signal was sent by a process, not by the terminal.
    const BY_PROCESS: i32 = 0;
    let signals: SigSet = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    let failed = |error: nix::errno::Errno| Failure::Run(format!("waiting for signals: {}", error.desc()));
    signals.thread_block().map_err(failed)?;
    let signals = SignalFd::new(&signals).map_err(failed)?;
    thread::spawn(move || {
        while let Ok(Some(signal)) = signals.read_signal() {
            // What comes from the terminal comes to the command, too, and is its affair.
            let is_for_command = signal.ssi_code != BY_PROCESS && signal.ssi_signo != Signal::SIGTERM as u32;
            match PHASE.load(Ordering::SeqCst) {
                BETWEEN => exit(i32::from(INTERRUPTED)),
                COMMITTING => {}
                _ if is_for_command => {}
                process => {
                    if let Some(process) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) {
                        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
                    }
                }
            }
        }
    });
    Ok(())
}

/// Gives a program that is started its signals again.
pub(crate) fn let_through() {
    let _ = SigSet::empty().thread_set_mask();
}
