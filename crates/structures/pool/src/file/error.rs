//! Why a pool file cannot be made or joined: one line that says what to do.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::string::String;

use super::header::VERSION;
use crate::line::LINE_BYTES;

/// Why a pool file cannot be made or joined.
#[derive(Debug)]
pub struct PoolError {
    path: PathBuf,
    /// What went wrong.
    pub reason: Reason,
}

/// What went wrong with a pool file.
#[non_exhaustive]
#[derive(Debug)]
pub enum Reason {
    /// The operating system refused a call of this name.
    System(&'static str, io::Error),
    /// The file is smaller than a pool must be, or than its header says.
    TooSmall {
        /// Its bytes.
        size_bytes: u64,
        /// What it must have.
        least_bytes: u64,
    },
    /// This many bytes are no whole number of lines.
    Lines(usize),
    /// The file is no pool.
    NoPool,
    /// Somebody else could write the file: another user owns it, or anyone may.
    OfOthers {
        /// The user whom it belongs to.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// The file is a pool of another version.
    OtherVersion(u32),
    /// The header is wrong.
    Damaged,
    /// Domains must number 1 to 256.
    Domains(usize),
    /// The pool has no domain of this number.
    NoSuchDomain {
        /// The number.
        domain: usize,
        /// Domains that it has.
        domain_count: usize,
    },
    /// Somebody is this domain already.
    InUse {
        /// The number.
        domain: usize,
        /// The process, as far as is known.
        process: u64,
        /// It was on another host, of which this one cannot know whether it still runs.
        is_elsewhere: bool,
    },
    /// Somebody has joined the pool, so it cannot be made again.
    Joined {
        /// The number of a domain that has.
        domain: usize,
    },
    /// The processor has no lines of 64 bytes, or no instructions for them.
    NoInstructions,
    /// The process has mapped too many pools.
    TooManyMappings,
}

impl PoolError {
    pub(super) fn new(path: &Path, reason: Reason) -> PoolError {
        PoolError { path: path.into(), reason }
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name can hold anything; a line stays a line.
        let path: String = std::format!("{}", self.path.display()).escape_debug().collect();
        match &self.reason {
            Reason::System(call, error) => write!(f, "{path}: {call}: {error}"),
            Reason::TooSmall { size_bytes, least_bytes } => write!(
                f,
                "{path}: expected a pool of at least {least_bytes} bytes, got {size_bytes}: create it with a larger size"
            ),
            Reason::Lines(size_bytes) => {
                write!(f, "{path}: expected a multiple of {LINE_BYTES} bytes, got {size_bytes}")
            }
            Reason::OfOthers { owner, mode } => write!(
                f,
                "{path}: expected a pool that only you, or you and a group, may write, got one of user {owner}, mode {mode:04o}: \
                 create one of your own"
            ),
            Reason::NoPool => write!(f, "{path}: expected a pool, got another file: name a pool, or create one"),
            Reason::OtherVersion(version) => write!(
                f,
                "{path}: expected a pool of version {VERSION}, got version {version}: create it again with this program"
            ),
            Reason::Damaged => {
                write!(f, "{path}: expected a pool, got one whose header has wrong bits: create it again")
            }
            Reason::Domains(count) => write!(f, "{path}: expected 1 to 256 domains, got {count}"),
            Reason::NoSuchDomain { domain, domain_count } => {
                write!(f, "{path}: expected a domain below {domain_count}, got {domain}")
            }
            Reason::InUse { domain, process, is_elsewhere: false } => write!(
                f,
                "{path}: expected domain {domain} to be free, but process {process} is in it: end that, or join as another"
            ),
            Reason::InUse { domain, process, is_elsewhere: true } => write!(
                f,
                "{path}: expected domain {domain} to be free, but process {process} of another host has joined as it: if that \
                 has ended, join by taking it over"
            ),
            Reason::Joined { domain } => {
                write!(f, "{path}: expected a pool that is not in use, but domain {domain} has joined: end it first")
            }
            Reason::NoInstructions => write!(
                f,
                "{path}: expected a processor with cache lines of 64 bytes and instructions to write them back: choose coherent \
                 memory if the machine is coherent"
            ),
            Reason::TooManyMappings => {
                write!(f, "{path}: expected at most {} pools in one process: leave one first", super::gone::MAPPINGS)
            }
        }
    }
}

impl std::error::Error for PoolError {}
