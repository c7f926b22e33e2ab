//! The memory as a process has it that sees to the others: made by the program that starts the tree, before any other maps it, or
//! attached to by who follows it.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::string::{String, ToString};
use std::time::{Duration, Instant};
use std::vec::Vec;

use percpu::{Arena, CoreIndex, OwnerId};
use scalefs::{FileSystem, GivenMemory, Inspection, OwnedConfig, OwnedScaleFs, Process, ScaleFs};
use sync::{Wait, WaitReason};

use crate::burials::{Burials, TakenOver};
use crate::control::{ARENA, AttachError, BASE, Control, Descriptors, Sizes};
use crate::seats::Seat;

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
    /// There is something else in the memory.
    NoInstance,
    /// The instance in it was made by another build.
    OtherBuild,
    /// As many processes are there as can be.
    NoSeat,
}

impl From<AttachError> for MakeError {
    fn from(error: AttachError) -> MakeError {
        match error {
            AttachError::NoInstance => MakeError::NoInstance,
            AttachError::OtherBuild => MakeError::OtherBuild,
        }
    }
}

impl fmt::Display for MakeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::System(error) => write!(formatter, "memory for the file system: {error}"),
            MakeError::AddressesTaken => write!(formatter, "the addresses from {BASE:#x} on are taken in this process"),
            MakeError::Layout(error) => write!(formatter, "laying out the file system: {error}"),
            MakeError::PathTooLong => formatter.write_str("the path of the directory is longer than 4095 bytes"),
            MakeError::NoInstance => formatter.write_str("there is no instance in the memory"),
            MakeError::OtherBuild => {
                formatter.write_str("another build of scalefs made the instance: run the same one")
            }
            MakeError::NoSeat => formatter.write_str("as many processes are there as can be"),
        }
    }
}

impl core::error::Error for MakeError {}

/// The memory, mapped in a process that sees to the others until it ends, and the instance in it. The process has a seat, too: whoever
/// follows it buries it as any other.
pub struct SharedInstance {
    /// There until this is dropped.
    files: ManuallyDrop<FileSystem>,
    control: &'static Control,
    arena: &'static Arena,
    file_system: &'static ScaleFs,
    seat: usize,
    owner: OwnerId,
    taken_over: RefCell<Vec<TakenOver>>,
    /// Keeps the file.
    memory: OwnedFd,
}

impl Drop for SharedInstance {
    fn drop(&mut self) {
        // SAFETY: no one uses it afterwards, and this is the only time.
        unsafe { ManuallyDrop::drop(&mut self.files) };
        self.seat().leave();
    }
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

/// Maps all of the memory where it lies in every process.
fn map(memory: &OwnedFd, bytes: usize) -> Result<NonNull<u8>, MakeError> {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE);
    // SAFETY: a new mapping, where there is none.
    let base = unsafe { libc::mmap(ptr::without_provenance_mut(BASE), bytes, rights, flags, memory.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        let is_taken = error.raw_os_error() == Some(libc::EEXIST);
        return Err(if is_taken { MakeError::AddressesTaken } else { MakeError::System(error) });
    }
    base.expose_provenance();
    NonNull::new(base.cast()).ok_or(MakeError::AddressesTaken)
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
        let base = map(&memory, sizes.total_bytes())?;
        let at = |address: usize| NonNull::new(base.as_ptr().wrapping_add(address - BASE)).expect("not at zero");
        // SAFETY: fresh zeros, mapped until this process ends, which no one else knows.
        unsafe {
            let memory = GivenMemory { metadata: at(ARENA), pages: at(sizes.pages()) };
            let config = OwnedConfig { metadata_bytes: sizes.arena_bytes, ..config };
            OwnedScaleFs::create_in(config, memory).map_err(|error| MakeError::Layout(io::Error::other(error)))?;
            Control::create(base.cast(), sizes, descriptors, mount_point).ok_or(MakeError::PathTooLong)?;
        }
        SharedInstance::begin(memory)
    }

    /// Maps memory that another process has made, and takes a seat there.
    ///
    /// # Errors
    /// [`MakeError`] says what cannot be: among that, that there is no instance, or one of another build.
    pub fn attach(memory: OwnedFd) -> Result<SharedInstance, MakeError> {
        let length =
            File::from(memory.try_clone().map_err(MakeError::System)?).metadata().map_err(MakeError::System)?.len();
        let bytes = usize::try_from(length).ok().filter(|bytes| *bytes >= size_of::<Control>());
        let bytes = bytes.ok_or(MakeError::NoInstance)?;
        map(&memory, bytes)?;
        // SAFETY: mapped for good, at least so much.
        match unsafe { Control::attach() }.map_err(MakeError::from)?.sizes.total_bytes() {
            needed if needed <= bytes => SharedInstance::begin(memory),
            _ => Err(MakeError::NoInstance),
        }
    }

    /// Takes a seat in memory that is mapped.
    fn begin(memory: OwnedFd) -> Result<SharedInstance, MakeError> {
        // SAFETY: mapped for good, at least so much.
        let control = unsafe { Control::attach() }.map_err(MakeError::from)?;
        // SAFETY: as above, all of it: no one makes the file shorter.
        let (arena, file_system) = unsafe { control.instance() }.ok_or(MakeError::OtherBuild)?;
        let (seat, owner) = control.seats.take(None).ok_or(MakeError::NoSeat)?;
        let taken = control.seats.get(seat).expect("taken just now");
        taken.set_process(owner, i32::try_from(std::process::id()).unwrap_or(i32::MAX));
        // SAFETY: as above.
        let files = unsafe { FileSystem::attach_in(NonNull::from(arena).cast(), owner) };
        let files = files.map_err(MakeError::Layout).inspect_err(|_| taken.leave())?;
        Ok(SharedInstance {
            files: ManuallyDrop::new(files),
            control,
            arena,
            file_system,
            seat,
            owner,
            taken_over: RefCell::default(),
            memory,
        })
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
        self.memory.as_fd()
    }

    /// The seat of this process.
    fn seat(&self) -> &'static Seat {
        self.control.seats.get(self.seat).expect("taken at the beginning")
    }

    /// As whom this process claims cores.
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// Whether this process has a seat.
    pub fn has_seat(&self, number: usize) -> bool {
        self.seat == number
    }

    /// Hands a process of the instance over to an owner of cores.
    pub fn hand_over(&self, process: Process, to: OwnerId) -> scalefs::HandedOver {
        process.hand_over(self.file_system, to)
    }

    /// Repairs what a process of the host has left that has ended without leaving its seat, ends its process of the instance, and
    /// frees the seat. `owner` is the name under which it was there: nothing is done if somebody else sits there by now. `has_ended`
    /// says it of others, for who has died since. Returns in how many calls it was.
    ///
    /// That it has ended is the caller's word: as for all who share the memory, which any of them can change.
    ///
    /// # Errors
    /// What is wrong with the number of the seat.
    pub fn bury_dead(&self, seat: usize, owner: u64, has_ended: &dyn Fn(i32) -> bool) -> Result<usize, String> {
        let seat = self.control.seats.get(seat).ok_or_else(|| "there is no such seat".to_string())?;
        let Some(dead) = seat.owner().filter(|found| found.number() == owner) else { return Ok(0) };
        let burials = Burials {
            control: self.control,
            arena: self.arena,
            file_system: self.file_system,
            heir: self.owner,
            has_ended,
            taken_over: &self.taken_over,
        };
        let calls = burials.bury(dead);
        self.control.open(dead);
        seat.leave();
        // Who runs in its memory (`vfork`) has what it has mapped until the next program.
        let has_it = |seat: &Seat, owner| seat.owner() == Some(owner) || seat.lender() == Some(owner);
        // The seats are asked for once an entry's owner is known: who forks meanwhile may have one beyond those of before.
        self.control.mappings.release_unless(|owner| self.control.seats.all().iter().any(|seat| has_it(seat, owner)));
        Ok(calls)
    }

    /// Looks whether all is whole, as soon as no one is in a call, which is awaited for so long. Calls of all processes wait until then.
    /// Of the runners of processes those are told who have no seat.
    ///
    /// # Errors
    /// What keeps this from being looked at: who does not end a call, or somebody else who looks.
    pub fn inspect(&self, patience: Duration, wait: &impl Wait) -> Result<Inspection, NotInspected> {
        let until = Instant::now() + patience;
        let mut round = 0;
        let mut pause = || {
            wait.wait(WaitReason::Operation, round);
            round = round.saturating_add(1);
            Instant::now() < until
        };
        while !self.control.close(self.owner) {
            if !pause() {
                return Err(NotInspected::Others);
            }
        }
        let mut cores = Vec::new();
        let taken = (|| {
            // Who has begun before it was closed may have claimed a further one.
            while cores.len() < self.arena.core_limit() {
                match self.arena.claim(cores.len(), self.owner) {
                    Ok(core) => cores.push(core),
                    Err(_) if pause() => {}
                    Err(_) => return Err(self.who_keeps(cores.len())),
                }
            }
            Ok(())
        })();
        let found = taken.map(|()| {
            let mut found = self.file_system.inspect(&cores, wait);
            let seats = self.control.seats.all();
            found.runners.retain(|runner| !seats.iter().any(|seat| seat.owner() == Some(*runner)));
            found
        });
        drop(cores);
        self.control.open(self.owner);
        found
    }

    fn who_keeps(&self, core: usize) -> NotInspected {
        let owner = CoreIndex::new(core).and_then(|index| self.arena.actor_of(index));
        let seats = self.control.seats.all();
        let process = owner.and_then(|owner| seats.iter().find(|seat| seat.owner() == Some(owner))?.process());
        NotInspected::Kept { core, process }
    }
}

/// Why it was not looked whether an instance is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotInspected {
    /// Another process looks.
    Others,
    /// A process does not end its call.
    Kept {
        /// As which core it calls.
        core: usize,
        /// Its number; no one's who has a seat if there is none.
        process: Option<i32>,
    },
}

impl fmt::Display for NotInspected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotInspected::Others => formatter.write_str("another process looks at it"),
            NotInspected::Kept { core, process: Some(process) } => {
                write!(formatter, "core {core} is kept by process {process}, which does not end its call")
            }
            NotInspected::Kept { core, process: None } => {
                write!(formatter, "core {core} is kept by no one who is there")
            }
        }
    }
}
