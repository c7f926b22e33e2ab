//! The addresses that tests map, in every process: page *i* of a test lies at [`BASE`] + 4096·*i*.
//!
//! The tracer counts accesses of user code there and nowhere else (the plugin's `user_base`). So the pages that the kernel
//! picks for `mmap` without an address must lie there too: the rest of the address space above is filled with mappings
//! that no one can access, until the highest gap that the kernel finds, which it picks from the top, is ours.
//!
//! ```text
//! BASE                    + PICKED          + END
//! │ pages that tests name │ pages picked  ◄─│ filler ... libraries, stacks
//! └──────────────── 2 MiB, one page table ──────────┘
//! ```
//! The filler begins within the same 2 MiB, so that the page table stays when a test's pages are unmapped, as it does where
//! a program has mapped other pages nearby (Linux: free_pgtables).

use std::fs;
use std::io;

use wire::results::ResultsWriter;

use super::access;
use super::operation::PAGE_BYTES;
use super::system_call::system_call;
use crate::target::Marks;

/// Address of page 0 of every test.
pub const BASE: u64 = 0x6000_0000_0000;

/// Pages that tests can name; pages that the kernel picked come after.
pub const NAMED_PAGES: u64 = 256;

/// Size of the range.
pub const SIZE_BYTES: u64 = 496 * PAGE_BYTES as u64;

const NOBODY: u64 = libc::PROT_NONE as u64;
const PRIVATE: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
const NO_FILE: u64 = u64::MAX;

/// The address of a page that tests can name.
///
/// # Errors
/// The number is out of range.
pub fn address(page: i64) -> Result<u64, String> {
    match u64::try_from(page) {
        Ok(page) if page < NAMED_PAGES => Ok(BASE + page * PAGE_BYTES as u64),
        _ => Err(format!("address {page}: expected a page from 0 to {}", NAMED_PAGES - 1)),
    }
}

/// The page that lies at an address, if tests can name it.
#[must_use]
pub fn page(address: u64) -> Option<i64> {
    let page = address.checked_sub(BASE)? / PAGE_BYTES as u64;
    i64::try_from(page).ok().filter(|_| page < NAMED_PAGES)
}

/// Where the number of the process stands in the identity of an address that the kernel picked: two processes may well be
/// given the same.
const PROCESS_SHIFT: u32 = 56;

/// Writes an address of a process as tests know it: the number of a page that they can name, else a value that the kernel
/// picked.
pub fn write(process: usize, address: u64, results: &mut ResultsWriter) {
    match page(address) {
        Some(page) => results.number(page),
        None => results.opaque("Address", identity(process, address)),
    }
}

/// What tells an address that the kernel picked in a process from all others.
fn identity(process: usize, address: u64) -> u64 {
    address | (process as u64) << PROCESS_SHIFT
}

/// The address that has this identity in a process.
///
/// # Errors
/// The kernel picked it in another process, where something else may lie there.
pub fn picked(process: usize, identity: u64) -> Result<u64, String> {
    let owner = identity >> PROCESS_SHIFT;
    if owner == process as u64 {
        return Ok(identity & ((1 << PROCESS_SHIFT) - 1));
    }
    Err(format!("an address that was picked in process {owner}, used in process {process}"))
}

/// Reserves the range in the calling process. To be called once all of its own memory is mapped.
///
/// # Errors
/// The kernel maps no memory, or picks addresses elsewhere all the same.
pub fn reserve() -> io::Result<()> {
    map(BASE, SIZE_BYTES, libc::MAP_FIXED_NOREPLACE)?;
    loop {
        let picked = map(0, PAGE_BYTES as u64, 0)?;
        if picked < BASE {
            unmap(picked, PAGE_BYTES as u64)?;
            break;
        }
        let below = mapping_below(picked, &fs::read_to_string("/proc/self/maps")?);
        if below < picked {
            map(below, picked - below, libc::MAP_FIXED_NOREPLACE)?;
        }
    }
    unmap(BASE, SIZE_BYTES)?;
    // A first page makes the page table.
    let writable = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    checked(system_call(
        libc::SYS_mmap,
        [BASE, PAGE_BYTES as u64, writable, PRIVATE | libc::MAP_FIXED as u64, NO_FILE, 0],
    ))?;
    access::store(BASE, 1, Marks::None).map_err(|fault| io::Error::other(format!("signal {}", fault.0)))?;
    unmap(BASE, PAGE_BYTES as u64)?;
    let picked = map(0, PAGE_BYTES as u64, 0)?;
    unmap(picked, PAGE_BYTES as u64)?;
    if picked != BASE + SIZE_BYTES - PAGE_BYTES as u64 {
        return Err(io::Error::other(format!("the kernel picks {picked:#x} where {BASE:#x} is reserved")));
    }
    Ok(())
}

fn map(address: u64, bytes: u64, flags: libc::c_int) -> io::Result<u64> {
    checked(system_call(libc::SYS_mmap, [address, bytes, NOBODY, PRIVATE | flags as u64, NO_FILE, 0]))
}

fn unmap(address: u64, bytes: u64) -> io::Result<()> {
    checked(system_call(libc::SYS_munmap, [address, bytes])).map(drop)
}

fn checked(result: i64) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or_default()))
}

/// The end of the highest mapping below `address`, which is `address` itself if one reaches up to there; never below the
/// range. `maps` is the text of /proc/self/maps.
fn mapping_below(address: u64, maps: &str) -> u64 {
    let ends = maps.lines().filter_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split_whitespace().next()?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        (start < address).then_some(end.min(address))
    });
    ends.max().unwrap_or_default().max(BASE + SIZE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_addresses_belong_together() {
        assert_eq!(address(3), Ok(0x6000_0000_3000));
        assert_eq!(page(0x6000_0000_3fff), Some(3));
        assert_eq!(page(address(255).unwrap()), Some(255));
        assert!(address(256).is_err() && address(-1).is_err());
        let last = BASE + SIZE_BYTES - 4096;
        let (ours, theirs) = (identity(0, last), identity(1, last));
        assert_ne!(ours, theirs);
        assert_eq!((picked(0, ours), picked(1, theirs)), (Ok(last), Ok(last)));
        assert!(picked(0, theirs).is_err());
        assert_eq!(page(BASE - 1), None);
        assert_eq!(page(BASE + SIZE_BYTES - 1), None);
    }

    #[test]
    fn the_mapping_below_is_found() {
        let maps = "7f0000000000-7f0000002000 rw-p 00000000 00:00 0\n\
                    7f0000005000-7f0000006000 r--p 00000000 00:00 0 [x]\n";
        assert_eq!(mapping_below(0x7f00_0000_4000, maps), 0x7f00_0000_2000);
        assert_eq!(mapping_below(0x7f00_0000_5000, maps), 0x7f00_0000_2000);
        assert_eq!(mapping_below(0x6fff_0000_0000, maps), BASE + SIZE_BYTES);
    }

    /// In a process of its own: the test's other threads map memory.
    #[test]
    fn the_kernel_picks_from_the_range() {
        // SAFETY: the child calls nothing but `reserve` and ends; a lock that another thread held stays locked there,
        // which at worst ends in the alarm.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child, whatever it waits for.
            unsafe { libc::alarm(20) };
            let code = match access::catch_faults().and_then(|()| reserve()) {
                Ok(()) => 0,
                Err(error) => {
                    eprintln!("{error}");
                    1
                }
            };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: `status` is a live integer.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
    }
}
