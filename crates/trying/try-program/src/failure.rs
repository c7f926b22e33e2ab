//! Why the program ends without success, in one line, with its exit code.

use std::fmt::Display;

/// The exit codes of this project; a command that ran has its own.
pub(crate) const REFUSED: u8 = 1;
/// Bad use or bad input.
pub(crate) const BAD_INPUT: u8 = 2;
/// It could not be done.
pub(crate) const FAILED: u8 = 3;
/// Interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad use or bad input: what was expected, what came, what to do.
    Input(String),
    /// It could not be done.
    Run(String),
}

impl Failure {
    /// A line about input.
    pub(crate) fn input(line: impl Into<String>) -> Failure {
        Failure::Input(line.into())
    }

    /// What was done when an error came.
    pub(crate) fn doing(what: impl Display) -> impl Fn(std::io::Error) -> Failure {
        move |error| Failure::Run(format!("{what}: {}", reason(&error)))
    }

    /// As [`Failure::doing`], of a call that reports numbers.
    pub(crate) fn calling(what: impl Display) -> impl Fn(rustix::io::Errno) -> Failure {
        move |error| Failure::Run(format!("{what}: {}", reason(&error.into())))
    }

    /// The line to print.
    pub(crate) fn line(&self) -> &str {
        match self {
            Failure::Input(line) | Failure::Run(line) => line,
        }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Input(_) => BAD_INPUT,
            Failure::Run(_) => FAILED,
        }
    }
}

/// An error in the system's words, without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
