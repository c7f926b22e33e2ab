//! Listings by descriptor, into a buffer: a directory's names with kinds, from where the descriptor has come to.

use core::ffi::{c_char, c_int, c_void};
use core::mem::offset_of;

use scalefs::directories::DirectoryEntry;
use scalefs::{Errno, Kind, data};

use crate::border::{buffer, call, descriptor, length};
use crate::instance::{scalefs_process, scalefs_thread};
use crate::reason;

/// A name of a listing, in a record of record_size bytes, laid out as struct dirent of Linux.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct scalefs_entry {
    /// Number of what it leads to.
    pub number: u64,
    /// Offset of the descriptor from which a listing goes on after it (scalefs_seek).
    pub next: i64,
    /// Where the next record begins, from the start of this one.
    pub record_size: u16,
    /// What it leads to, as d_type of Linux: bits 12 to 15 of st_mode.
    pub kind: u8,
    /// The name and a NUL; longer than this.
    pub name: [c_char; 5],
}

const NAME: usize = offset_of!(scalefs_entry, name);

/// How many bytes a name takes in a listing.
fn record_size(name: &[u8]) -> usize {
    (NAME + name.len() + 1).next_multiple_of(align_of::<scalefs_entry>())
}

fn kind_of(kind: Kind) -> u8 {
    (kind.mode_bits() >> 12) as u8
}

/// Writes a name at the start of a buffer.
fn put(into: &mut [u8], entry: &DirectoryEntry<'_>) {
    let size = record_size(entry.name);
    let record = scalefs_entry {
        number: entry.number.0,
        next: entry.next_cookie as i64,
        record_size: size as u16,
        kind: kind_of(entry.kind),
        name: [0; 5],
    };
    into[..8].copy_from_slice(&record.number.to_ne_bytes());
    into[8..16].copy_from_slice(&record.next.to_ne_bytes());
    into[16..18].copy_from_slice(&record.record_size.to_ne_bytes());
    into[18] = record.kind;
    into[NAME..NAME + entry.name.len()].copy_from_slice(entry.name);
    into[NAME + entry.name.len()..size].fill(0);
}

/// Writes as many names of an open directory into a buffer as there is room for, each as a scalefs_entry, from the
/// descriptor's offset on, which moves behind the last one. Returns how many bytes it wrote, 0 at the end, and -EINVAL if there
/// is no room for the next name. scalefs_seek to 0 begins again.
///
/// # Safety
/// See scalefs_open; the buffer has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_getdents(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    fd: c_int,
    into: *mut c_void,
    size: usize,
) -> i64 {
    // SAFETY: see `scalefs_open`.
    unsafe {
        call(thread, process, |call| {
            let into = buffer(into, size)?;
            let (mut used, mut is_full) = (0, false);
            data::read_directory(call, descriptor(fd)?, |entry| {
                let end = used + record_size(entry.name);
                is_full = end > into.len();
                if !is_full {
                    put(&mut into[used..], &entry);
                    used = end;
                }
                !is_full
            })?;
            if used == 0 && is_full {
                return reason::invalid("the buffer has no room for the next name");
            }
            Ok::<i64, Errno>(length(used))
        })
    }
}
