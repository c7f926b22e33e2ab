//! `scalefs status --check`: whether a tree is whole, asked of a process of its own: what a wild store has done could end it.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use nix::errno::Errno;
use scalefs::{Inspection, Outside};
use shared_instance::{SharedInstance, watch};

use super::tree::{Tree, role};

/// What the program is called as for this.
pub(crate) const CHECK: &str = "run-check";
/// So long calls that are under way may take, and so long the dead are waited for to be buried.
const PATIENCE: Duration = Duration::from_secs(2);
/// How an answer ends that was given to its end.
pub(crate) const WHOLE: &str = "whole";
pub(crate) const DAMAGED: &str = "damaged";

/// Starts the process that looks, and answers who has asked.
pub(super) fn start(tree: &Tree, asking: UnixStream) {
    let mut other = asking.try_clone();
    let started = role(&tree.instance, asking.into(), CHECK)
        .and_then(|mut command| command.spawn().map_err(|error| error.to_string()));
    if let (Err(why), Ok(asking)) = (started, &mut other) {
        let _ = writeln!(asking, "starting a process that looks: {why}");
    }
}

/// `run-check`: looks, and says what it has found in lines, the last of which is how all is.
pub(crate) fn check() -> Result<ExitCode, String> {
    let memory = std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| format!("the memory: {error}"))?;
    let said = SharedInstance::attach(memory).map_err(|error| error.to_string()).map(|instance| report(&instance));
    let lines = said.unwrap_or_else(|why| vec![why, DAMAGED.to_owned()]);
    let text = lines.into_iter().map(|line| line + "\n").collect::<String>();
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("saying what was found: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

fn report(instance: &SharedInstance) -> Vec<String> {
    let Inspection { counts, damage, runners, .. } = match instance.inspect(PATIENCE, &Outside) {
        Err(why) => return vec![format!("{why}: nothing else was looked at"), DAMAGED.to_owned()],
        Ok(inspection) => inspection,
    };
    let mut lines = vec![format!(
        "{} names, {} inodes, {} open files, {} pages in files",
        counts.names, counts.inodes, counts.open_files, counts.pages
    )];
    lines.extend(damage.iter().map(ToString::to_string));
    if !runners.is_empty() {
        lines.push(format!("{} processes of the instance are run by no one who is there", runners.len()));
    }
    lines.extend(unburied(instance).map(|process| format!("process {process} has died, and no one buries it")));
    let end = if lines.len() == 1 { WHOLE } else { DAMAGED };
    lines.push(end.to_owned());
    lines
}

/// Who has died and is not buried: that takes milliseconds.
fn unburied(instance: &SharedInstance) -> impl Iterator<Item = i32> {
    let has_ended =
        |process: &i32| watch(*process).is_err_and(|error| error.raw_os_error() == Some(Errno::ESRCH as i32));
    let dead = || instance.control().seats.all().iter().filter_map(|seat| seat.process()).filter(has_ended);
    let first: Vec<i32> = dead().collect();
    if !first.is_empty() {
        std::thread::sleep(PATIENCE / 4);
    }
    let still: Vec<i32> = if first.is_empty() { Vec::new() } else { dead().collect() };
    still.into_iter().filter(move |process| first.contains(process))
}
