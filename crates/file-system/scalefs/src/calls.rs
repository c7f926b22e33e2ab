//! Calls of one process by one core, for what makes several: reads and writes that wait.

use percpu::Core;
use posix_calls::Calls;
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
