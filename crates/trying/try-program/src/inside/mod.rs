//! Inside a run: namespaces of its own, in which the tree is an overlay over the recorded view.
//!
//! ```text
//! outside ─► enter            makes the namespaces, waits
//!              └─► first      process 1: makes the mounts, goes into them, starts the command, waits     mounts.rs
//!                    └─► command
//! ```
//! When the first process ends, the kernel kills all others of the run: none stays as a daemon. Its mounts go with it.

mod mounts;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::sched::CloneFlags;
use rustix::thread::CapabilitySet;

use crate::control;
use crate::failure::Failure;
use crate::machine::Right;
use crate::plan::{FIRST, Network, Output, Plan};
use crate::signals;

/// A program that was not found, as shells have it.
const NOT_FOUND: u8 = 127;
/// A process that a signal has ended, as shells have it: this and the signal's number.
const ENDED_BY_SIGNAL: i32 = 128;

/// What root of a run may not do: what reaches beyond its tree and its processes.
const TAKEN_FROM_ROOT: [CapabilitySet; 16] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYSLOG,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::LINUX_IMMUTABLE,
    CapabilitySet::WAKE_ALARM,
    CapabilitySet::BLOCK_SUSPEND,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::SETPCAP,
];

/// Makes the namespaces, starts the first process in them, and returns its exit code.
pub(crate) fn enter(plan: &Plan) -> Result<u8, Failure> {
    let mut control = begin(plan)?;
    make_namespaces(plan.right).inspect_err(|failure| control::say_failed(&mut control, failure.line()))?;
    drop(control);
    // The first process calls by itself.
    let mut first =
        Command::new("/proc/self/exe").args(plan.arguments(FIRST)).spawn().map_err(Failure::doing("starting"))?;
    let status = first.wait().map_err(Failure::doing("waiting for the run"))?;
    Ok(code_of(status))
}

fn make_namespaces(right: Right) -> Result<(), Failure> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let mut new = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    if right == Right::User {
        new |= CloneFlags::CLONE_NEWUSER;
    }
    nix::sched::unshare(new).map_err(|error| {
        Failure::Run(format!(
            "making namespaces: {}: run as root, or allow user namespaces, which no chroot has",
            error.desc()
        ))
    })?;
    if right == Right::User {
        // The user stays who it is. Other users are not known in the namespace, and their files have no owner there.
        let write = |path: &str, text: String| fs::write(path, text).map_err(Failure::doing(path));
        write("/proc/self/setgroups", "deny".to_owned())?;
        write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        keep_capabilities().map_err(Failure::calling("keeping the namespace's rights"))?;
    }
    Ok(())
}

/// Lets the next program of this process have what the namespace's maker may do in it.
fn keep_capabilities() -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = sets.permitted;
    rustix::thread::set_capabilities(None, sets)?;
    for capability in sets.permitted.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// The first process: makes the mounts, starts the command in them, and returns its exit code.
///
/// The kernel keeps signals from a first process that handles none; the process above has them blocked: what comes from the terminal
/// is for the command, and what that does with it is its own affair.
pub(crate) fn first(plan: &Plan) -> Result<u8, Failure> {
    signals::let_through();
    let mut control = begin(plan)?;
    let started = start(plan, &mut control);
    let child = started.inspect_err(|failure| control::say_failed(&mut control, failure.line()))?;
    control::say_started(&mut control).map_err(Failure::doing("calling the process outside"))?;
    drop(control);
    // Orphans of the run become children of this process, and are waited for as well.
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get() as u32 == child => {
                return Ok(code_of(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::calling("waiting for the command")(error)),
        }
    }
}

/// Ends with the process that started this one, and calls the process outside.
fn begin(plan: &Plan) -> Result<std::os::unix::net::UnixStream, Failure> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(Failure::calling("guarding the process outside"))?;
    control::call(&plan.control).map_err(Failure::doing("calling the process outside"))
}

fn start(plan: &Plan, control: &mut std::os::unix::net::UnixStream) -> Result<u32, Failure> {
    mounts::make(plan, control)?;
    mounts::go_in(plan)?;
    if plan.network == Network::None {
        nix::sched::unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| Failure::Run(format!("taking away the network: {}", error.desc())))?;
    }
    give_up_rights(plan.right).map_err(Failure::calling("giving up rights"))?;
    std::env::set_current_dir(&plan.current)
        .map_err(|error| Failure::Run(format!("{}: {}", plan.current.display(), crate::failure::reason(&error))))?;
    let Some((program, arguments)) = plan.command.split_first() else {
        return Err(Failure::input("expected a command"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if plan.output == Output::ToErrors {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    match command.spawn() {
        Ok(child) => Ok(child.id()),
        Err(error) => {
            eprintln!("commutant try: {}: {}", program.display(), crate::failure::reason(&error));
            std::process::exit(i32::from(NOT_FOUND));
        }
    }
}

/// Keeps what the command does within its tree and its processes.
fn give_up_rights(right: Right) -> rustix::io::Result<()> {
    match right {
        Right::Root => {
            TAKEN_FROM_ROOT
                .into_iter()
                .filter(|capability| rustix::thread::capability_is_in_bounding_set(*capability).unwrap_or(false))
                .try_for_each(rustix::thread::remove_capability_from_bounding_set)?;
            // This process as well: the command may trace it.
            let taken = TAKEN_FROM_ROOT.into_iter().collect::<CapabilitySet>();
            keep_of_own(CapabilitySet::all() - taken)
        }
        Right::User => {
            rustix::thread::clear_ambient_capability_set()?;
            let mut sets = rustix::thread::capabilities(None)?;
            sets.inheritable = CapabilitySet::empty();
            rustix::thread::set_capabilities(None, sets)?;
            // A root of the namespace would have all rights in it again with its next program.
            match nix::unistd::geteuid().is_root() {
                true => give_up_rights(Right::Root),
                false => keep_of_own(CapabilitySet::empty()),
            }
        }
    }
}

/// Leaves this process no other rights than these.
fn keep_of_own(kept: CapabilitySet) -> rustix::io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.effective &= kept;
    sets.permitted &= kept;
    sets.inheritable &= kept;
    rustix::thread::set_capabilities(None, sets)
}

/// Closes what this program was given open besides the three standard streams: no run may have it.
pub(crate) fn close_inherited() {
    let Ok(names) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> =
        names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).filter(|number| *number > 2).collect();
    for number in numbers {
        // That of the listing itself is closed already.
        let _ = nix::unistd::close(number);
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| ENDED_BY_SIGNAL + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
