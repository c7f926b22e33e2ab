//! What a fault of a program's own instruction does.

use address_space::TouchError;
use pages::PAGE_BYTES;

use crate::direct_data::InProcess;
use crate::direct_memory::with_memory;
use crate::host::Host;
use crate::window::MemoryAccess;

impl<H: Host> InProcess<'_, H> {
    /// Lets the program's own loads, or its loads and stores, reach the page at an address of its window, until a call takes the page away:
    /// what a fault of such an instruction does. Needs a window ([`OwnedScaleFs::open_window`](crate::OwnedScaleFs::open_window)).
    ///
    /// # Errors
    /// [`TouchError`]: the signal that the instruction would get; out of memory also outside of the window.
    pub fn touch(&self, address: u64, access: MemoryAccess) -> Result<(), TouchError> {
        let page = address / PAGE_BYTES as u64;
        with_memory(self.access(), |memory| self.process().memory.touch(memory, page, access))
    }
}
