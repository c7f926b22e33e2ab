//! Calls of one process by one core, for what makes several: reads, writes and locks that wait.

use percpu::Core;
use posix_calls::{Calls, Errno, LockRequest, locks};
use sync::WaitReason;

use crate::direct_data::InProcess;
use crate::host::Host;
use crate::instance::ScaleFs;
use crate::lives::Process;

/// Who makes calls of a process, as one core.
pub struct ProcessCalls<'a, H> {
    /// The file system.
    pub file_system: &'a ScaleFs,
    /// The core.
    pub core: &'a Core<'a>,
    /// The process.
    pub process: &'a Process,
    /// How it waits, and what time it is.
    pub host: &'a H,
}

impl<H: Host> Calls for ProcessCalls<'_, H> {
    type Call<'c>
        = InProcess<'c, H>
    where
        Self: 'c;

    #[inline]
    fn begin(&self) -> InProcess<'_, H> {
        self.file_system.enter(self.core, self.process, self.host)
    }

    fn wait(&self, round: u32) {
        self.host.wait(WaitReason::Pipe, round);
    }
}

impl<H: Host> ProcessCalls<'_, H> {
    /// Locks bytes of a file, or all of it, once no other's lock is in the way.
    ///
    /// # Errors
    /// As [`locks::ask`], but for EAGAIN.
    pub fn lock(&self, fd: u32, request: &LockRequest) -> Result<(), Errno> {
        locks::until_locked(
            |waited| locks::ask_again(&self.begin(), fd, request, waited),
            |wait_for, round| self.file_system.wait_for_lock(wait_for, self.host, round),
        )
    }
}
