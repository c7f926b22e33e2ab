//! A pool in a file that domains map: below `/dev/shm` on one machine, or a file or device of memory that hosts share (DAX).
//!
//! ```no_run
//! use pool::Memory;
//! use pool::file::{Pool, create};
//!
//! create("/dev/shm/example".as_ref(), 1 << 20, 2)?;
//! let pool = Pool::join("/dev/shm/example".as_ref(), 0)?;     // another process joins as domain 1
//! let memory = pool.memory();
//! memory.write(pool.first_free(), b"hello")?;
//! memory.write_back(pool.first_free(), 5)?;
//! memory.drain()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Who is in it.** A process that joins as a domain holds a lock of the operating system on that domain's line, so that two
//! of one number are refused and a process that dies frees it. Hosts do not see each other's locks: there the line itself says
//! who has joined, and a number that another host has left is [taken over](Pool::take_over) by name.

mod error;
mod gone;
mod header;

use core::ptr::NonNull;
use core::sync::atomic::AtomicBool;
use std::boxed::Box;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::vec::Vec;

pub use error::{PoolError, Reason};
pub use header::VERSION;

use crate::coherence::{Answerer, CoherenceTest, DOMAINS, Question};
use crate::instructions::Instructions;
use crate::line::LINE_BYTES;
use crate::mapped::Mapped;
use crate::memory::{Fault, Memory, Use};
use header::{Header, MAGIC, Refused, word};

/// Words of a domain's line.
const FREE: u64 = 0;
const JOINED: u64 = 1;

/// Makes a file a pool for that number of domains; all of its bytes are zero but for the header. A pool that no domain
/// has joined is made again; a device keeps its size.
///
/// # Errors
/// [`Reason::TooSmall`], [`Reason::Lines`], [`Reason::Domains`], [`Reason::Joined`], [`Reason::NoPool`], [`Reason::OfOthers`],
/// and what the system refuses.
pub fn create(path: &Path, size_bytes: usize, domain_count: usize) -> Result<(), PoolError> {
    let fail = |reason| PoolError::new(path, reason);
    if !(1..=DOMAINS).contains(&domain_count) {
        return Err(fail(Reason::Domains(domain_count)));
    }
    let header = Header { domain_count, size_bytes };
    let least_bytes = header.first_free() + LINE_BYTES;
    if size_bytes < least_bytes {
        return Err(fail(Reason::TooSmall { size_bytes: size_bytes as u64, least_bytes: least_bytes as u64 }));
    }
    if !size_bytes.is_multiple_of(LINE_BYTES) {
        return Err(fail(Reason::Lines(size_bytes)));
    }
    let system = |call| move |error| PoolError::new(path, Reason::System(call, error));
    let (file, is_new) = match options().mode(0o600).create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open_there(path)?, false),
        Err(error) => return Err(system("open")(error)),
    };
    let data = file.metadata().map_err(system("stat"))?;
    let is_device = is_device(&data).map_err(fail)?;
    if !is_device && data.len() != 0 {
        let mut magic = [0; 8];
        let count = file.read_at(&mut magic, 0).map_err(system("read"))?;
        if count < magic.len() || magic != MAGIC {
            return Err(fail(Reason::NoPool));
        }
    }
    for domain in 0..DOMAINS {
        if !lock(&file, domain).map_err(system("lock"))? {
            return Err(fail(Reason::Joined { domain }));
        }
    }
    let made = make(&file, path, header, !is_device);
    if made.is_err() && is_new {
        // Ours alone: all of its locks are.
        let _ = std::fs::remove_file(path);
    } else if made.is_err() && !is_device {
        let _ = file.set_len(data.len());
    }
    made
}

/// Makes a file a pool whose locks are all held.
fn make(file: &File, path: &Path, header: Header, has_length: bool) -> Result<(), PoolError> {
    let fail = |reason| PoolError::new(path, reason);
    let set_length = |length_bytes: usize| match has_length {
        true => file.set_len(length_bytes as u64).map_err(|error| fail(Reason::System("truncate", error))),
        false => Ok(()),
    };
    // Mapped before anything goes away: a size that the system refuses spoils no pool.
    set_length(header.size_bytes)?;
    let mapping = Mapping::of(file, header.size_bytes, path)?;
    let memory = mapping.memory();
    // Shorter in between: what was there is zero afterwards.
    set_length(0)?;
    set_length(header.size_bytes)?;
    let write = || -> Result<(), Fault> {
        let zeros = [0; 4096];
        for at in (LINE_BYTES..header.first_free()).step_by(zeros.len()) {
            memory.write(at, &zeros[..zeros.len().min(header.first_free() - at)])?;
        }
        memory.write_back(0, header.first_free())?;
        memory.drain()?;
        // Last: a file is a pool only once the rest is.
        memory.write(0, &header.encode())?;
        memory.write_back(0, LINE_BYTES)?;
        memory.drain()
    };
    write().map_err(|fault| fail(Reason::System("write", io::Error::other(fault))))
}

/// Takes the lock of a domain on the file; whether it was free. The lock is of the open file, and goes with it.
fn lock(file: &File, domain: usize) -> io::Result<bool> {
    let wanted = lock_of(domain);
    // SAFETY: a valid descriptor and lock, which the kernel reads.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const wanted) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

/// Whether another open file holds the lock of a domain.
fn is_held(file: &File, domain: usize) -> io::Result<bool> {
    let mut asked = lock_of(domain);
    // SAFETY: a valid descriptor and lock, which the kernel reads and writes.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut asked) } {
        0 => Ok(asked.l_type != libc::F_UNLCK as libc::c_short),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The lock of a domain on its line.
fn lock_of(domain: usize) -> libc::flock {
    // SAFETY: all zero is a valid one.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = Header::line_of_domain(domain) as libc::off_t;
    lock.l_len = LINE_BYTES as libc::off_t;
    lock
}

/// A number of this start of this host.
fn host() -> u64 {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u64::from(crate::checksum(1, &text)) << 32 | u64::from(crate::checksum(2, &text)) | 1
}

/// Memory of a file, mapped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    instructions: Instructions,
    slot: usize,
    /// In a place of its own, since the handler of the signal has its address.
    truncated: Box<AtomicBool>,
}

// SAFETY: it is an address that is mapped until it is dropped; all accesses are by `Mapped`.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(file: &File, length: usize, path: &Path) -> Result<Mapping, PoolError> {
        let fail = |reason| PoolError::new(path, reason);
        let instructions = Instructions::detect().ok_or_else(|| fail(Reason::NoInstructions))?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(core::ptr::null_mut(), length, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(fail(Reason::System("mmap", io::Error::last_os_error())));
        }
        let truncated = Box::new(AtomicBool::new(false));
        let watched = gone::watch(start.addr(), length, &truncated);
        match (NonNull::new(start.cast()), watched) {
            (Some(start), Some(slot)) => Ok(Mapping { start, length, instructions, slot, truncated }),
            _ => {
                // SAFETY: mapped above, and used by nothing.
                unsafe { libc::munmap(start, length) };
                Err(fail(Reason::TooManyMappings))
            }
        }
    }

    fn memory(&self) -> Mapped<'_> {
        // SAFETY: mapped until `self` is dropped, at the beginning of a page; other processes go through this crate as
        // well; the handler of SIGBUS replaces what goes away.
        unsafe { Mapped::new(self.start, self.length, self.instructions, &self.truncated) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        gone::forget(self.slot);
        // SAFETY: mapped by `of`; borrows of the memory have ended.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A pool that this process has joined as one domain.
#[derive(Debug)]
pub struct Pool {
    mapping: Mapping,
    header: Header,
    domain: usize,
    /// Holds the domain's lock.
    file: File,
    /// By domain: the incarnation that had left before this one joined, or 0. The next one may be about to join.
    left_before: Vec<u64>,
}

impl Pool {
    /// Joins the pool as this domain.
    ///
    /// # Errors
    /// A [`Reason`] why the file is no pool that can be joined, or the domain is in use.
    pub fn join(path: &Path, domain: usize) -> Result<Pool, PoolError> {
        Pool::enter(path, domain, false)
    }

    /// Joins as a domain that another host has left without saying so. The caller knows that the other one has ended.
    ///
    /// # Errors
    /// As for [`Pool::join`].
    pub fn take_over(path: &Path, domain: usize) -> Result<Pool, PoolError> {
        Pool::enter(path, domain, true)
    }

    fn enter(path: &Path, domain: usize, takes_over: bool) -> Result<Pool, PoolError> {
        let fail = |reason| PoolError::new(path, reason);
        let (file, header, _) = open(path)?;
        if domain >= header.domain_count {
            return Err(fail(Reason::NoSuchDomain { domain, domain_count: header.domain_count }));
        }
        let is_free = lock(&file, domain).map_err(|error| fail(Reason::System("lock", error)))?;
        let mapping = Mapping::of(&file, header.size_bytes, path)?;
        let memory = mapping.memory();
        let at = Header::line_of_domain(domain);
        let mut line = [0; LINE_BYTES];
        let look = |line: &mut [u8]| -> Result<(), Fault> {
            memory.invalidate(at, LINE_BYTES)?;
            memory.read(at, line)
        };
        look(&mut line).map_err(|fault| fail(Reason::System("read", io::Error::other(fault))))?;
        let is_elsewhere = word(&line, 0) == JOINED && word(&line, 8) != host();
        if !is_free || is_elsewhere && !takes_over {
            return Err(fail(Reason::InUse { domain, process: word(&line, 16), is_elsewhere: is_free }));
        }
        let incarnation = word(&line, 24).wrapping_add(1);
        let left_before = (0..header.domain_count)
            .map(|other| match Member::read(&memory, &file, other) {
                Ok(Some(member)) if !member.is_joined => member.incarnation,
                _ => 0,
            })
            .collect();
        let pool = Pool { mapping, header, domain, file, left_before };
        pool.say(JOINED, incarnation).map_err(|fault| fail(Reason::System("write", io::Error::other(fault))))?;
        Ok(pool)
    }

    /// Writes this domain's line.
    fn say(&self, state: u64, incarnation: u64) -> Result<(), Fault> {
        let mut line = [0; LINE_BYTES];
        for (index, value) in [state, host(), u64::from(std::process::id()), incarnation].into_iter().enumerate() {
            line[8 * index..8 * index + 8].copy_from_slice(&value.to_le_bytes());
        }
        let (memory, at) = (self.memory(), Header::line_of_domain(self.domain));
        memory.declare(at, LINE_BYTES, Use::Register { writer: self.domain })?;
        memory.write(at, &line)?;
        memory.write_back(at, LINE_BYTES)?;
        memory.drain()
    }

    /// Its memory, with the processor's instructions.
    pub fn memory(&self) -> Mapped<'_> {
        self.mapping.memory()
    }

    /// The number of this domain.
    pub fn domain(&self) -> usize {
        self.domain
    }

    /// Domains that the pool can have.
    pub fn domain_count(&self) -> usize {
        self.header.domain_count
    }

    /// Offset of the first byte that is not the pool's own.
    pub fn first_free(&self) -> usize {
        self.header.first_free()
    }

    /// Where the self-test of coherence lies.
    pub fn coherence_test(&self) -> CoherenceTest {
        self.header.coherence_test()
    }

    /// Asks the other domains whether the memory is coherent.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn ask_for_coherence(&self) -> Result<Question<Mapped<'_>>, Fault> {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Question::ask(self.memory(), self.coherence_test(), self.domain, time.as_nanos() as u64 | 1)
    }

    /// Answers when others ask whether the memory is coherent.
    ///
    /// # Errors
    /// Faults of memory.
    pub fn answerer(&self) -> Result<Answerer<Mapped<'_>>, Fault> {
        Answerer::new(self.memory(), self.coherence_test(), self.domain)
    }
}

impl Memory for Pool {
    /// Of this host's processes, whether theirs has ended; of other hosts', whether they have said so. Who was not there when this
    /// domain joined, and has not come since, has not left: it may come yet.
    fn has_left(&self, domain: usize) -> bool {
        if domain >= self.header.domain_count || domain == self.domain {
            return false;
        }
        match Member::read(&self.memory(), &self.file, domain) {
            Ok(member) => {
                member.is_some_and(|member| !member.is_joined && member.incarnation != self.left_before[domain])
            }
            // No one has left that cannot be looked at.
            Err(_) => false,
        }
    }

    fn size_bytes(&self) -> usize {
        self.header.size_bytes
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        self.memory().read(at, into)
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        self.memory().write(at, bytes)
    }

    fn write_back(&self, at: usize, length: usize) -> Result<(), Fault> {
        self.memory().write_back(at, length)
    }

    fn invalidate(&self, at: usize, length: usize) -> Result<(), Fault> {
        self.memory().invalidate(at, length)
    }

    fn drain(&self) -> Result<(), Fault> {
        self.memory().drain()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let line = Header::line_of_domain(self.domain) + 24;
        let mut incarnation = [0; 8];
        // If memory has gone, no other domain can read it.
        let _ = self.memory().read(line, &mut incarnation);
        let _ = self.say(FREE, u64::from_le_bytes(incarnation));
    }
}

/// A domain of a pool, as its line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub domain: usize,
    /// The process that has joined as it, or was the last to.
    pub process: u64,
    /// It has joined, and is on this host and alive, or on another one.
    pub is_joined: bool,
    /// How often the number was joined.
    pub incarnation: u64,
}

impl Member {
    /// What the line of a domain says, and its lock; nothing if none has ever joined as it. The file is open in
    /// addition to the domain's own.
    fn read(memory: &Mapped<'_>, file: &File, domain: usize) -> Result<Option<Member>, Fault> {
        let (at, mut line) = (Header::line_of_domain(domain), [0; LINE_BYTES]);
        memory.invalidate(at, LINE_BYTES)?;
        memory.read(at, &mut line)?;
        if word(&line, 24) == 0 {
            return Ok(None);
        }
        let is_here = word(&line, 8) == host();
        let is_joined = word(&line, 0) == JOINED && (!is_here || is_held(file, domain).unwrap_or(true));
        Ok(Some(Member { domain, process: word(&line, 16), is_joined, incarnation: word(&line, 24) }))
    }
}

/// What a pool file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its bytes.
    pub size_bytes: usize,
    /// The first byte that its users have.
    pub first_free: usize,
    /// The domains that have ever joined.
    pub members: Vec<Member>,
    /// Domains that it can have.
    pub domain_count: usize,
    /// The instructions for write-backs and invalidations here.
    pub instructions: (&'static str, &'static str),
    /// The user whom the file belongs to.
    pub owner: u32,
    /// The file's permissions.
    pub mode: u32,
}

/// Looks at a pool without joining it.
///
/// # Errors
/// A [`Reason`] why the file is no pool.
pub fn inspect(path: &Path) -> Result<Status, PoolError> {
    let (file, header, data) = open(path)?;
    let mapping = Mapping::of(&file, header.size_bytes, path)?;
    let memory = mapping.memory();
    let mut members = Vec::new();
    for domain in 0..header.domain_count {
        let member = Member::read(&memory, &file, domain);
        members.extend(member.map_err(|fault| PoolError::new(path, Reason::System("read", io::Error::other(fault))))?);
    }
    Ok(Status {
        size_bytes: header.size_bytes,
        first_free: header.first_free(),
        members,
        domain_count: header.domain_count,
        instructions: mapping.instructions.names(),
        owner: data.uid(),
        mode: data.mode() & 0o7777,
    })
}

/// The bit of a file's permissions with which anyone may write it.
const OTHERS_WRITE: u32 = 0o002;

/// Whether this is memory as a device, and no file; a file must be one that no stranger can spoil. One that may open a
/// device was let to.
fn is_device(data: &Metadata) -> Result<bool, Reason> {
    if data.file_type().is_char_device() || data.file_type().is_block_device() {
        return Ok(true);
    }
    if !data.is_file() {
        return Err(Reason::NoPool);
    }
    // SAFETY: it has no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    let mode = data.mode() & 0o7777;
    if ![user, 0].contains(&data.uid()) || mode & OTHERS_WRITE != 0 {
        return Err(Reason::OfOthers { owner: data.uid(), mode });
    }
    Ok(false)
}

/// How pool files are opened: a named pipe that somebody put there keeps no one waiting, and a symbolic link leads
/// nowhere.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOFOLLOW);
    options
}

/// Opens what is there under a name.
fn open_there(path: &Path) -> Result<File, PoolError> {
    options().open(path).map_err(|error| {
        let is_link = error.raw_os_error() == Some(libc::ELOOP);
        PoolError::new(path, if is_link { Reason::NoPool } else { Reason::System("open", error) })
    })
}

/// Opens a file and reads its header, believing nothing of it.
fn open(path: &Path) -> Result<(File, Header, Metadata), PoolError> {
    let fail = |reason| PoolError::new(path, reason);
    let system = |call| move |error| PoolError::new(path, Reason::System(call, error));
    let file = open_there(path)?;
    let data = file.metadata().map_err(system("stat"))?;
    let is_device = is_device(&data).map_err(fail)?;
    if !is_device && data.len() < LINE_BYTES as u64 {
        return Err(fail(Reason::TooSmall { size_bytes: data.len(), least_bytes: LINE_BYTES as u64 }));
    }
    let mut line = [0; LINE_BYTES];
    let head = Mapping::of(&file, 4096, path)?;
    head.memory().read(0, &mut line).map_err(|fault| fail(Reason::System("read", io::Error::other(fault))))?;
    let header = Header::decode(&line).map_err(|refused| {
        fail(match refused {
            Refused::NoPool => Reason::NoPool,
            Refused::Version(version) => Reason::OtherVersion(version),
            Refused::Damaged => Reason::Damaged,
        })
    })?;
    if !is_device && data.len() < header.size_bytes as u64 {
        return Err(fail(Reason::TooSmall { size_bytes: data.len(), least_bytes: header.size_bytes as u64 }));
    }
    Ok((file, header, data))
}

/// The path of a pool with this name on this machine: below `/dev/shm`.
pub fn path_of(name: &str) -> PathBuf {
    Path::new("/dev/shm").join(name)
}
