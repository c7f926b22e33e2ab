//! The program `pool`: memory that domains share, in a file.
//!
//! ```text
//! pool create FILE    makes a pool
//! pool join FILE      is a domain of it, tests whether its memory is coherent, and answers when others test    join.rs
//! pool inspect FILE   says what it is, and who is in it                                                        inspect.rs
//! ```
#![forbid(unsafe_code)]

mod inspect;
mod join;
mod json;
mod options;

use std::io::{self, Write};
use std::process::ExitCode;

use options::{Command, CreateOptions};

fn main() -> ExitCode {
    let command = match options::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(why) => {
            eprintln!("pool: {why}");
            return ExitCode::from(2);
        }
    };
    let outcome = match command {
        Command::Say(text) => say(text),
        Command::Create(options) => create(&options),
        Command::Join(options) => join::join(&options),
        Command::Inspect(options) => inspect::inspect(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pool: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a text, as soon as it is said. Who reads no more is an error as any other.
fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn create(options: &CreateOptions) -> Result<(), String> {
    let CreateOptions { file, size_bytes, domain_count } = options;
    pool::file::create(file, *size_bytes, *domain_count).map_err(|error| error.to_string())
}
