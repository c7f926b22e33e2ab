//! `scalefs run`: a program, and all that it starts, with a directory that is a ScaleFS.
//!
//! ```text
//! scalefs run ─ makes the memory of the instance, the first seat │ starts the loader │ buries who dies │ copies out
//!    loader ─ PROGRAM ─► loader ─ program that it starts ...          crate scalefs-shim
//! ```
//! Nothing is mounted, and nothing of the kernel is asked for that needs rights.

mod options;
mod program;
mod start;
mod supervisor;

use std::process::ExitCode;

use crate::copies;

pub(crate) use options::{RUN_HELP, RunOptions, parse_run};

/// Why a program was not run, and with which exit code that is said, as shells have it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) why: String,
}

/// It could not be done.
const FAILED: u8 = 1;

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { code: FAILED, why }
    }
}

pub(crate) fn run(options: &RunOptions) -> Result<ExitCode, Failure> {
    let top = options::check_top(&options.top)?;
    options.from.as_deref().map_or(Ok(()), copies::check_source)?;
    options.to.as_deref().map_or(Ok(()), copies::check_target)?;
    let made = start::make(options, &top)?;
    let program = program::find(&options.program, &top, made.instance.files())?;
    let (signals, mask) = supervisor::hear()?;
    let child = start::start(&made, options, (&top, &program), mask)?;
    let ended = supervisor::supervise(&made.instance, child, &signals)?;
    if let Some(to) = &options.to {
        let copied = copies::save(made.instance.files(), &start::bytes(&top), to)?;
        eprintln!("scalefs: copied to {}: {copied}", to.display());
    }
    Ok(ended)
}
