//! The memory is made: by the program that starts the tree, before any other process maps it.

use core::ptr::{self, NonNull};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::string::{String, ToString};

use percpu::{Arena, OwnerId};
use scalefs::{FileSystem, GivenMemory, OwnedConfig, Process, ScaleFs};
use sync::Wait;

use crate::control::{ARENA, BASE, Control, Descriptors, Sizes};
use crate::deaths::bury;

/// Of a page.
const PAGE_BYTES: usize = 4096;

/// Why there is no instance.
#[derive(Debug)]
#[non_exhaustive]
pub enum MakeError {
    /// The system refuses memory.
    System(io::Error),
    /// The addresses at which the memory lies in every process are taken.
    AddressesTaken,
    /// The file system cannot be laid out so.
    Layout(io::Error),
    /// The path of the directory is too long.
    PathTooLong,
}

impl fmt::Display for MakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::System(error) => write!(formatter, "memory for the file system: {error}"),
            MakeError::AddressesTaken => write!(formatter, "the addresses from {BASE:#x} on are taken in this process"),
            MakeError::Layout(error) => write!(formatter, "laying out the file system: {error}"),
            MakeError::PathTooLong => formatter.write_str("the path of the directory is longer than 4095 bytes"),
        }
    }
}

impl core::error::Error for MakeError {}

/// The memory, mapped in the process that has made it until that ends, and the instance in it.
pub struct SharedInstance {
    files: FileSystem,
    control: &'static Control,
    arena: &'static Arena,
    file_system: &'static ScaleFs,
    /// Keeps the file.
    _memory: OwnedFd,
}

fn file_in_memory(bytes: usize) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;

    // SAFETY: a name that ends with zero.
    let number = unsafe { libc::memfd_create(c"scalefs".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: opened just now.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: calls on a file of our own. No one makes it shorter then, which would end who looks there.
    let done = unsafe { libc::ftruncate(number, length) == 0 && libc::fcntl(number, libc::F_ADD_SEALS, seals) == 0 };
    if done { Ok(file) } else { Err(io::Error::last_os_error()) }
}

impl SharedInstance {
    /// Makes the memory and the instance, whose root belongs to user 0. `descriptors` says under which numbers the processes of
    /// the tree find it: who starts the first one sees to that.
    ///
    /// # Errors
    /// [`MakeError`] says what cannot be.
    pub fn create(
        config: OwnedConfig,
        descriptors: Descriptors,
        mount_point: &[u8],
    ) -> Result<SharedInstance, MakeError> {
        let sizes = Sizes {
            arena_bytes: config.metadata_bytes.next_multiple_of(PAGE_BYTES),
            pages_bytes: (config.page_count as usize + 1) * PAGE_BYTES,
        };
        let memory = file_in_memory(sizes.total_bytes()).map_err(MakeError::System)?;
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE);
        let wanted = ptr::without_provenance_mut(BASE);
        // SAFETY: a new mapping, where there is none.
        let base = unsafe { libc::mmap(wanted, sizes.total_bytes(), rights, flags, memory.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            let is_taken = error.raw_os_error() == Some(libc::EEXIST);
            return Err(if is_taken { MakeError::AddressesTaken } else { MakeError::System(error) });
        }
        let at = |address: usize| NonNull::new(base.cast::<u8>().wrapping_add(address - BASE)).expect("not at zero");
        base.expose_provenance();
        let supervisor = i32::try_from(std::process::id()).unwrap_or(0);
        // SAFETY: fresh zeros, mapped until this process ends, which no one else knows.
        let (files, control) = unsafe {
            let memory = GivenMemory { metadata: at(ARENA), pages: at(sizes.pages()) };
            let config = OwnedConfig { metadata_bytes: sizes.arena_bytes, ..config };
            let files = FileSystem::create_in(config, memory).map_err(MakeError::Layout)?;
            let control = Control::create(at(BASE).cast(), sizes, descriptors, supervisor, mount_point);
            (files, control.ok_or(MakeError::PathTooLong)?)
        };
        // SAFETY: made just now, and mapped for good.
        let (arena, file_system) = unsafe { control.instance() }.expect("this build has made it");
        Ok(SharedInstance { files, control, arena, file_system, _memory: memory })
    }

    /// The file system, for calls of this process.
    pub fn files(&self) -> &FileSystem {
        &self.files
    }

    /// What lies first in the memory.
    pub fn control(&self) -> &Control {
        self.control
    }

    /// The file with the memory.
    pub fn memory(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self._memory.as_fd()
    }

    /// Hands a process of the instance over to an owner of cores.
    pub fn hand_over(&self, process: Process, to: OwnerId) -> scalefs::HandedOver {
        process.hand_over(self.file_system, to)
    }

    /// Repairs what a process of the host has left that has ended without leaving its seat, ends its process of the instance, and
    /// frees the seat. `owner` is the name under which it was there: nothing is done if somebody else sits there by now. Returns in
    /// how many calls it was.
    ///
    /// That it has ended is the caller's word: as for all who share the memory, which any of them can change.
    ///
    /// # Errors
    /// What is wrong with the number of the seat.
    pub fn bury_dead(&self, seat: usize, owner: u64, wait: &impl Wait) -> Result<usize, String> {
        let seat = self.control.seats.get(seat).ok_or_else(|| "there is no such seat".to_string())?;
        let Some(dead) = seat.owner().filter(|found| found.number() == owner) else { return Ok(0) };
        let heir = OwnerId::new(HEIR).expect("a valid owner");
        // SAFETY: the caller's word; this process acts as that heir here alone.
        let calls = unsafe { bury((self.arena, self.file_system), dead, heir, true, wait) };
        seat.leave();
        Ok(calls)
    }
}

/// As whom the supervisor takes over.
const HEIR: u64 = 2;
