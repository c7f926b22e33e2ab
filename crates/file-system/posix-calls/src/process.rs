//! Processes, as calls speak of them.

use crate::credentials::Credentials;
use crate::descriptors::StatusFlags;
use crate::names::OpenFlags;

/// The number of a process, never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessNumber(pub u64);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// By `_exit` with this status.
    Exited(u8),
    /// By a signal of this number: what it ran in has gone.
    Killed(u8),
}

impl Ended {
    /// The status as `waitpid` tells it (Linux on x86-64: `WIFEXITED` and its like).
    pub fn wait_status(self) -> i32 {
        match self {
            Ended::Exited(status) => i32::from(status) << 8,
            Ended::Killed(signal) => i32::from(signal & 0x7f),
        }
    }
}

/// For which child a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// For this one.
    Child(ProcessNumber),
    /// For any that has ended.
    Any,
}

/// What is done in a new process before it runs (POSIX `posix_spawn_file_actions_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAction<'p> {
    /// Opens a file under a number.
    Open {
        /// The number.
        number: u32,
        /// Of the file; from the working directory that the actions before leave.
        path: &'p [u8],
        /// How it is opened.
        flags: OpenFlags,
        /// Flags of the description.
        status: StatusFlags,
        /// Of a file that it makes.
        permissions: u32,
    },
    /// Closes a number, if it is open (glibc and musl: no error if it is not).
    Close(u32),
    /// Lets `target` lead to what `number` leads to; if both are equal it survives (POSIX.1-2024).
    Duplicate {
        /// A number that is open.
        number: u32,
        /// The number that is changed.
        target: u32,
    },
    /// Makes a directory the working directory.
    ChangeDirectory(&'p [u8]),
}

impl FileAction<'_> {
    /// Whether one of the actions changes what a number leads to.
    pub fn change(actions: &[FileAction<'_>], number: u32) -> bool {
        actions.iter().any(|action| match *action {
            FileAction::Open { number: changed, .. }
            | FileAction::Close(changed)
            | FileAction::Duplicate { target: changed, .. } => changed == number,
            FileAction::ChangeDirectory(_) => false,
        })
    }
}

/// Which descriptors a new process gets beside those of its file actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherited {
    /// All that survive `exec`.
    #[default]
    Surviving,
    /// None (Darwin: `POSIX_SPAWN_CLOEXEC_DEFAULT`).
    Nothing,
}

/// How a process is spawned (POSIX `posix_spawnattr_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpawnOptions<'c> {
    /// Which descriptors it gets.
    pub inherited: Inherited,
    /// Who it is; the caller if that is not said. Only user 0 may say it.
    pub credentials: Option<&'c Credentials>,
}
