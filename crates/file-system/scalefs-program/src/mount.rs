//! `scalefs mount`: what must be so is looked at first; then a guard is started, which starts the server.

use std::io::{BufRead, BufReader};
use std::process::{ExitCode, Stdio};

use crate::copies;
use crate::guard;
use crate::mount_point;
use crate::options::{GUARD, MountOptions};
use crate::roles::{READY, this_program};

pub(crate) fn mount(options: &MountOptions) -> Result<ExitCode, String> {
    let mount_point = mount_point::check(&options.mount_point)?;
    mount_point::check_system()?;
    options.from.as_deref().map_or(Ok(()), copies::check_source)?;
    options.to.as_deref().map_or(Ok(()), copies::check_target)?;
    let options = MountOptions { mount_point, ..options.clone() };
    if options.is_in_foreground {
        return guard::guard(&options, || say_mounted(&options));
    }
    let mut command = this_program()?;
    command.arg(GUARD).args(options.arguments()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut guard = command.spawn().map_err(|error| format!("starting the guard: {error}"))?;
    let mut said = String::new();
    let read = guard.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut said));
    if let Some(Err(error)) = read {
        return Err(format!("waiting for the guard: {error}"));
    }
    if said.trim() == READY {
        say_mounted(&options);
        return Ok(ExitCode::SUCCESS);
    }
    // It has said why.
    guard.wait().map_err(|error| format!("waiting for the guard: {error}"))?;
    Ok(ExitCode::FAILURE)
}

fn say_mounted(options: &MountOptions) {
    let (at, size) = (options.mount_point.display(), options.size_bytes >> 20);
    let ends = if options.is_in_foreground { "ctrl-C" } else { "scalefs unmount" };
    eprintln!("scalefs: mounted at {at}, {size} MiB; {ends} ends it");
}
