//! Memory and a doorbell shared with the host of the virtual machine.
//!
//! A piece of the guest's RAM is kept from the kernel (`memmap=SIZE$ADDRESS`) and mapped through `/dev/mem`; the host maps
//! the same bytes of the RAM's file. Batches and results are written there, so they need no device and no driver, and the
//! guest kernel does not notice. Two slots let the host prepare a batch while another is run. The guest rings by writing a
//! byte to the second serial port from user space, which the host waits for as on a socket; the host rings not at all:
//! the coordinator looks from time to time when it has nothing to do.
//!
//! ```text
//! offset      size    written by  what
//! 0x000       8       guest       "CMTREGN1"
//! 0x008       8       guest       stage: 1 exporting, 2 ready for batches
//! 0x010       8       host        number of batches submitted
//! 0x018       8       guest       number of batches completed
//! 0x020       8       guest       index of the window that is being run in the current batch; 2^64 - 1 between batches
//! 0x028       8       guest       size of what is exported (a text, from 0x1000)
//! 0x030       8       host        number of exports taken
//! 0x040+16*i  8       host        size of the batch in slot i
//! 0x048+16*i  8       guest       size of the results in slot i
//! 0x1000      2 MiB   host        batch of slot 0; then results of slot 0 (3 MiB), then slot 1
//! ```
//! Batch number n (from 0) goes through slot n modulo 2. Numbers are little endian; each is written after what it
//! announces (release) and read before it (acquire).

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr, slice};

const MAGIC: u64 = u64::from_le_bytes(*b"CMTREGN1");
const HEADER_BYTES: usize = 0x1000;
const BATCH_BYTES: usize = 2 << 20;
const RESULTS_BYTES: usize = 3 << 20;
const SLOT_COUNT: u64 = 2;

/// Smallest region that holds the layout above.
pub const REGION_BYTES: usize = HEADER_BYTES + SLOT_COUNT as usize * (BATCH_BYTES + RESULTS_BYTES);

const STAGE_EXPORTING: u64 = 1;
const STAGE_READY: u64 = 2;

/// What stands for the window between batches.
const NO_WINDOW: u64 = u64::MAX;

/// I/O port of the second serial port's transmit register.
const DOORBELL_PORT: u16 = 0x2f8;

#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    Magic = 0,
    Stage = 1,
    Submitted = 2,
    Completed = 3,
    Window = 4,
    ExportSize = 5,
    ExportsTaken = 6,
}

/// The mapped region. Shared with the host, which is trusted, but not with its timing: every size is checked.
pub struct Region {
    base: *mut u8,
    exports: u64,
}

// SAFETY: the pointer is to a mapping that lives as long as the process; access is through `&mut self` or atomics.
unsafe impl Send for Region {}

impl Region {
    /// Maps `size_bytes` of physical memory at `address`.
    ///
    /// # Errors
    /// The kernel gives no access to the memory, or the region is too small.
    pub fn map(address: u64, size_bytes: usize) -> io::Result<Self> {
        if size_bytes < REGION_BYTES {
            return Err(io::Error::other(format!("a region of {size_bytes} bytes: expected {REGION_BYTES}")));
        }
        let memory = OpenOptions::new().read(true).write(true).open("/dev/mem")?;
        let offset = libc::off_t::try_from(address).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address that the kernel chooses; the memory is kept from the kernel's own use.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                memory.as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut region = Self { base: base.cast(), exports: 0 };
        region.word(Word::Magic).store(MAGIC, Ordering::Release);
        region.exports = region.word(Word::ExportsTaken).load(Ordering::Acquire);
        Ok(region)
    }

    fn number(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index * 8 < HEADER_BYTES);
        // SAFETY: aligned, within the header, and accessed by atomics only.
        unsafe { &*self.base.add(index * 8).cast::<AtomicU64>() }
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        self.number(word as usize)
    }

    /// Wakes the host. The task has access to the port only in that time: a task that has some pays for it at each
    /// return from the kernel (`tss_update_io_bitmap`).
    ///
    /// # Errors
    /// The kernel gives no access to the port.
    fn ring(&self) -> io::Result<()> {
        access_port(true)?;
        // SAFETY: writes a byte to the serial port's register, which the task has access to.
        unsafe {
            core::arch::asm!("out dx, al", in("dx") DOORBELL_PORT, in("al") b'!', options(nostack, preserves_flags));
        }
        access_port(false)
    }

    /// Hands a text to the host, and waits until it has taken it.
    ///
    /// # Errors
    /// The text is larger than the region, or the kernel gives no access to the doorbell.
    pub fn export(&mut self, text: &[u8]) -> io::Result<()> {
        if text.len() > REGION_BYTES - HEADER_BYTES {
            return Err(io::Error::other(format!("{} bytes are more than the region holds", text.len())));
        }
        // SAFETY: within the mapping (checked above); the host reads only after `ExportSize` and the bell.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(HEADER_BYTES), text.len()) };
        self.word(Word::ExportSize).store(text.len() as u64, Ordering::Release);
        self.word(Word::Stage).store(STAGE_EXPORTING, Ordering::Release);
        self.ring()?;
        self.exports += 1;
        while self.word(Word::ExportsTaken).load(Ordering::Acquire) < self.exports {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(())
    }

    /// Tells the host that batches can come.
    ///
    /// # Errors
    /// The kernel gives no access to the doorbell.
    pub fn ready(&self) -> io::Result<()> {
        self.word(Word::Window).store(NO_WINDOW, Ordering::Release);
        self.word(Word::Stage).store(STAGE_READY, Ordering::Release);
        self.ring()
    }

    /// Whether a batch waits.
    #[must_use]
    pub fn pending(&self) -> bool {
        self.word(Word::Submitted).load(Ordering::Acquire) > self.word(Word::Completed).load(Ordering::Relaxed)
    }

    fn slot(&self) -> usize {
        usize::try_from(self.word(Word::Completed).load(Ordering::Relaxed) % SLOT_COUNT).unwrap_or_default()
    }

    /// The batch that waits.
    ///
    /// # Errors
    /// Its size is impossible.
    pub fn batch(&self) -> io::Result<&[u8]> {
        let slot = self.slot();
        let size = self.number(8 + 2 * slot).load(Ordering::Acquire);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > BATCH_BYTES {
            return Err(io::Error::other(format!("a batch of {size} bytes: at most {BATCH_BYTES}")));
        }
        let start = HEADER_BYTES + slot * (BATCH_BYTES + RESULTS_BYTES);
        // SAFETY: within the mapping, and the host leaves a submitted batch alone until it is completed.
        Ok(unsafe { slice::from_raw_parts(self.base.add(start), size) })
    }

    /// Tells the host which window of the batch starts now.
    pub fn starting(&self, window: usize) {
        self.word(Word::Window).store(window as u64, Ordering::Release);
    }

    /// Hands over the results of the batch that waited, which is completed thereby.
    ///
    /// # Errors
    /// The results are too large, or the kernel gives no access to the doorbell.
    pub fn complete(&mut self, results: &[u8]) -> io::Result<()> {
        if results.len() > RESULTS_BYTES {
            return Err(io::Error::other(format!("results of {} bytes: at most {RESULTS_BYTES}", results.len())));
        }
        let slot = self.slot();
        let start = HEADER_BYTES + slot * (BATCH_BYTES + RESULTS_BYTES) + BATCH_BYTES;
        // SAFETY: within the mapping (checked above); the host reads only after `Completed`.
        unsafe { ptr::copy_nonoverlapping(results.as_ptr(), self.base.add(start), results.len()) };
        self.number(9 + 2 * slot).store(results.len() as u64, Ordering::Release);
        self.word(Word::Window).store(NO_WINDOW, Ordering::Release);
        self.word(Word::Completed).fetch_add(1, Ordering::AcqRel);
        self.ring()
    }
}

/// Gives the task access to the doorbell's port, or takes it away.
fn access_port(allowed: bool) -> io::Result<()> {
    // SAFETY: lets this task write to a register of the serial port, or not; no memory is concerned.
    match unsafe { libc::ioperm(libc::c_ulong::from(DOORBELL_PORT), 1, allowed.into()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
