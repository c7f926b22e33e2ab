//! The guard: starts the server, hands signals on to it, and takes the mount away if it dies without doing so.
//!
//! ```text
//! ctrl-C, TERM, HUP ─► guard ── TERM ──► server: unmounts, copies out, ends
//!                      guard ◄── ended ── server, killed or not: is it still mounted? then not any more
//!                      guard killed ─────► server is sent TERM by the kernel
//! ```

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::mounts;
use crate::options::{MountOptions, SERVE};
use crate::roles::{READY, be_silent, this_program};
use crate::unmount::{InUse, take_away};

/// The guard of a mount that is not in the foreground.
pub(crate) fn guard_in_background(options: &MountOptions) -> Result<ExitCode, String> {
    // No terminal's signals, and no directory that is kept in use.
    nix::unistd::setsid().map_err(|error| format!("leaving the terminal: {}", error.desc()))?;
    std::env::set_current_dir("/").map_err(|error| format!("/: {error}"))?;
    guard(options, || {
        println!("{READY}");
        // Who reads that may have gone.
        let _ = std::io::stdout().flush();
        be_silent();
    })
}

/// Serves a mount by another process until that has ended; `ready` is called once the directory can be used.
pub(crate) fn guard(options: &MountOptions, ready: impl FnOnce()) -> Result<ExitCode, String> {
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD].into_iter().collect::<SigSet>();
    signals.thread_block().map_err(|error| format!("blocking signals: {}", error.desc()))?;
    let signals = SignalFd::new(&signals).map_err(|error| format!("waiting for signals: {}", error.desc()))?;
    let mut command = this_program()?;
    command.arg(SERVE).args(options.arguments()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = command.spawn().map_err(|error| format!("starting the server: {error}"))?;
    let process = Pid::from_raw(server.id().cast_signed());
    let (mounted, is_mounted) = mpsc::channel();
    if let Some(stdout) = server.stdout.take() {
        // A server that ends closes its end.
        std::thread::spawn(move || {
            let mut said = String::new();
            let _ = BufReader::new(stdout).read_line(&mut said);
            let _ = mounted.send(said.trim() == READY);
            // So that the guard looks.
            let _ = kill(Pid::this(), Signal::SIGCHLD);
        });
    }
    let mut ready = Some(ready);
    let status = loop {
        let signal = signals.read_signal().map_err(|error| format!("waiting for signals: {}", error.desc()))?;
        let is_of_children = signal.is_some_and(|signal| signal.ssi_signo == Signal::SIGCHLD as u32);
        if !is_of_children {
            // It may just have ended.
            let _ = kill(process, Signal::SIGTERM);
            continue;
        }
        if is_mounted.try_recv() == Ok(true)
            && let Some(ready) = ready.take()
        {
            ready();
        }
        if let Some(status) = ended(&mut server)? {
            break status;
        }
    };
    let left = mounts::ours()?
        .into_iter()
        .rev()
        .find(|mounted| mounted.server == process.as_raw() && mounted.mount_point == options.mount_point);
    if let Some(mounted) = left {
        let at = mounted.mount_point.display();
        take_away(&mounted.mount_point, InUse::Detach).map_err(|error| format!("{at}: {error}"))?;
    }
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(ExitCode::SUCCESS),
        // It has said why.
        (Some(_), _) => Ok(ExitCode::FAILURE),
        (None, signal) => {
            let name = signal.and_then(|number| Signal::try_from(number).ok()).map_or("a signal", Signal::as_str);
            let at = options.mount_point.display();
            Err(format!("the server was ended by {name}: {at} is unmounted, and what was in it is lost"))
        }
    }
}

fn ended(server: &mut Child) -> Result<Option<std::process::ExitStatus>, String> {
    server.try_wait().map_err(|error| format!("waiting for the server: {error}"))
}
