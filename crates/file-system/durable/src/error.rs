//! Why an instance cannot be opened: what was expected, what was found, where, and what to do.

use std::path::PathBuf;
use std::{error, fmt, io};

/// Why a durable instance cannot be opened.
#[non_exhaustive]
#[derive(Debug)]
pub enum OpenError {
    /// Another process, or another part of this one, has it open.
    InUse(PathBuf),
    /// There is something else.
    NotAnInstance(PathBuf),
    /// It was written by a version whose format is another one.
    OtherVersion {
        /// Which it has.
        found: u32,
    },
    /// It is not as it was written.
    Damaged(String),
    /// What is in it does not fit into memory as large as was asked for.
    TooSmall(io::Error),
    /// The system has refused something.
    System {
        /// What was tried.
        action: String,
        /// Why not.
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
        let action = action.into();
        |error| OpenError::System { action, error }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> OpenError {
        OpenError::Damaged(what.into())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse(path) => write!(
                formatter,
                "{} is in use: expected that no one else has this instance open; close it there, or open another one",
                path.display()
            ),
            OpenError::NotAnInstance(path) => write!(
                formatter,
                "{} is no durable instance: expected a folder with `records` and `pages` alone, or an empty one; \
                 give another path",
                path.display()
            ),
            OpenError::OtherVersion { found } => write!(
                formatter,
                "the instance has format {found}, and this program reads format {}; open it with the version that wrote it",
                crate::FORMAT
            ),
            OpenError::Damaged(what) => {
                write!(formatter, "the instance is not as it was written: {what}; take it from a backup")
            }
            OpenError::TooSmall(error) => {
                write!(
                    formatter,
                    "what is in the instance needs more memory than it was given ({error}); open it with more"
                )
            }
            OpenError::System { action, error } => write!(formatter, "cannot {action}: {error}"),
        }
    }
}

impl error::Error for OpenError {}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> io::Error {
        io::Error::other(error)
    }
}
