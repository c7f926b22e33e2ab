//! The program `scalefs`: a file system in memory as a directory for all programs.
//!
//! ```text
//! scalefs run -- PROGRAM   runs a program on a tree that its processes share                       run/
//! scalefs run --transaction runs one on a mounted ScaleFS, and all that it changes happens at once    transaction/
//! scalefs mount DIR        starts a guard and a server, and ends when the directory can be used     mount.rs
//!    guard                 lives as long as the server, and takes the mount away after its death   guard.rs
//!       server             holds the data and answers the kernel                                   server.rs, door/, copies/
//! scalefs unmount DIR      takes the mount away and waits until the server has ended               unmount.rs
//! scalefs status           lists what is mounted and which trees are run, or looks whether one is whole   status.rs
//! scalefs stop             ends all processes of a tree                                            stop.rs
//! ```
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod copies;
#[cfg(target_os = "linux")]
mod door;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod mount_point;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod planted;
#[cfg(target_os = "linux")]
mod roles;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod transaction;
#[cfg(target_os = "linux")]
mod unmount;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use crate::options::Command;

    let command = match options::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(why) => {
            eprintln!("scalefs: {why}");
            return ExitCode::from(2);
        }
    };
    let outcome = match command {
        Command::Say(text) => {
            println!("{text}");
            Ok(())
        }
        Command::Mount(options) => return ended(mount::mount(&options)),
        Command::Guard(options) => return ended(guard::guard_in_background(&options)),
        Command::Serve(options) => server::serve(&options),
        Command::Run(options) => return ended_as(run::run(&options)),
        Command::Transaction(options) => return ended_as(transaction::run(&options)),
        Command::Unmount(options) => unmount::unmount(&options),
        Command::Follow(follows) => return ended(run::follow(&follows)),
        Command::Check => return ended(run::check()),
        Command::Status(options) => return ended(status::status(&options)),
        Command::Stop(name) => stop::stop(name.as_deref()),
    };
    ended(outcome.map(|()| ExitCode::SUCCESS))
}

#[cfg(target_os = "linux")]
fn ended(outcome: Result<ExitCode, String>) -> ExitCode {
    outcome.unwrap_or_else(|why| {
        eprintln!("scalefs: {why}");
        ExitCode::FAILURE
    })
}

/// As [`ended`], where the reason says the exit code.
#[cfg(target_os = "linux")]
fn ended_as(outcome: Result<ExitCode, run::Failure>) -> ExitCode {
    outcome.unwrap_or_else(|run::Failure { code, why }| {
        eprintln!("scalefs: {why}");
        ExitCode::from(code)
    })
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("scalefs: mounts are made on Linux alone");
    ExitCode::FAILURE
}
