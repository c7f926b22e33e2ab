//! `scalefs run`: a program, and all that it starts, with a directory that is a ScaleFS.
//!
//! ```text
//! scalefs run ─ makes the memory of the instance, the first seat │ starts the loader │ buries who dies │ copies out
//!    loader ─ PROGRAM ─► loader ─ program that it starts ...          crate scalefs-shim
//! ```
//! Another process waits to take the place of `scalefs run` should it be killed (heir.rs), and under the tree's name it answers what
//! `scalefs status` and `scalefs stop` ask (names.rs, check.rs).
//!
//! Nothing is mounted, and nothing of the kernel is asked for that needs rights.

mod check;
mod follow;
mod heir;
pub(crate) mod names;
mod options;
mod program;
mod stand_ins;
mod start;
mod supervisor;
mod tree;
mod unborn;

use std::process::ExitCode;

use crate::copies;

use heir::Heir;
use tree::Tree;

pub(crate) use check::{CHECK, DAMAGED, WHOLE, check};
pub(crate) use follow::{Follows, follow};
pub(crate) use heir::HEIR;
pub(crate) use options::{Asked, RUN_HELP, RunOptions, name_of, parse_run};

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
    let name = options.instance.clone().unwrap_or_else(|| std::process::id().to_string());
    let listener = names::listen(&name)?;
    let mut made = start::make(options, &top)?;
    let program = program::find(&options.program, &top, made.instance.files())?;
    let (signals, mask) = supervisor::hear()?;
    let kept = stand_ins::make(made.instance.control())?;
    made.hide(made.instance.control().descriptors.stand_ins, kept);
    start::start(&made, options, (&top, &program), mask).inspect_err(|_| stand_ins::remove(made.instance.control()))?;
    let tree = Tree { instance: made.instance, listener, to: options.to.clone() };
    let mut heir = Heir::start(&tree);
    Ok(supervisor::supervise(&tree, &signals, &mut heir)?)
}
