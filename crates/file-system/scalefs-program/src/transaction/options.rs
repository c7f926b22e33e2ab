//! What is asked for on the command line of `scalefs run --transaction`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// How a program is run in a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransactionOptions {
    /// A directory of the ScaleFS.
    pub(crate) at: PathBuf,
    /// So often it begins again.
    pub(crate) retries: u32,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// How often it begins again.
pub(crate) fn parse_retries(given: &OsStr) -> Result<u32, String> {
    let number = given.to_str().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("--retry: expected a number, got {}", given.display()))
}
