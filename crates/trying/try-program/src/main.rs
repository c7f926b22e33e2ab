//! The program `commutant-try`: runs a command over a recorded view of the real tree, and commits what it changed.
//!
//! ```text
//! run        command over view, overlay, layer          run.rs, inside/, view/, plan.rs, control.rs
//!   record   each first look: a question, an answer     question.rs, record.rs, tree.rs
//! summary    what the layer changes                     layer.rs, changes.rs, report.rs
//! commit     ask again, stage, decide, publish          check.rs, stage.rs, journal.rs, step.rs, publish.rs, commit.rs
//!   live     all of it visible at one moment            live.rs
//!   merge    others' bytes of a file and the command's  merging.rs, merge.rs
//! recover    end what was cut short                     commit.rs
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod check;
#[cfg(target_os = "linux")]
mod commit;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod escape;
#[cfg(target_os = "linux")]
mod extended;
#[cfg(target_os = "linux")]
mod failure;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod help;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod layer;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod looks;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod merge;
#[cfg(target_os = "linux")]
mod merging;
mod mounted;
#[cfg(target_os = "linux")]
mod mounting;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod ownership;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod publish;
#[cfg(target_os = "linux")]
mod question;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod step;
#[cfg(target_os = "linux")]
mod stops;
#[cfg(target_os = "linux")]
mod time;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod verbs;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod workspace;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let inside = |plan: Option<plan::Plan>, go: fn(&plan::Plan) -> Result<u8, failure::Failure>| {
        let plan = plan.ok_or_else(|| failure::Failure::input("this verb is for the program itself"));
        plan.and_then(|plan| go(&plan))
    };
    match arguments.split_first() {
        // These say what is wrong to the process that has started them.
        Some((verb, rest)) if verb == plan::ENTER => {
            inside(plan::Plan::of_arguments(rest), inside::enter).unwrap_or(failure::FAILED).into()
        }
        Some((verb, rest)) if verb == plan::FIRST => {
            inside(plan::Plan::of_arguments(rest), inside::first).unwrap_or(failure::FAILED).into()
        }
        _ => {
            inside::close_inherited();
            verbs::main(arguments).into()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("commutant try: it needs Linux: its overlayfs, its namespaces, and FUSE");
    ExitCode::FAILURE
}
