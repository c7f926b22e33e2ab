//! Calls on memory: `mmap`, `munmap`, `mprotect`, `mremap`, `madvise`, `msync`. Which checks, in which order, with which error.

use core::ops::Range;

use crate::data::is_handle;
use crate::errno::Errno;
use crate::fault::OperationError;
use crate::kind::Kind;
use crate::memory_operations::{Growth, MemoryOperations, Place, Protection, SPACE_PAGES, Sharing, Source};
use crate::object_operations::ObjectOperations;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// The file system chooses.
    Any,
    /// Here (MAP_FIXED).
    Fixed(u64),
    /// Here, if nothing is (MAP_FIXED_NOREPLACE).
    FixedNoReplace(u64),
}

/// What is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedObject {
    /// Memory of the process (MAP_PRIVATE | MAP_ANONYMOUS).
    Anonymous,
    /// What a descriptor leads to.
    File {
        /// The descriptor.
        fd: u32,
        /// The first byte of the file: a multiple of the page's size.
        offset: u64,
        /// MAP_SHARED or MAP_PRIVATE.
        sharing: Sharing,
    },
}

/// Maps memory; returns its address.
///
/// # Errors
/// EINVAL for an offset or an address between pages, or no bytes; EBADF, ENODEV for what cannot be mapped; EACCES for a
/// descriptor that does not allow it; ENOMEM; EEXIST where something is mapped that must not be; EOVERFLOW.
///
/// POSIX `mmap`; Linux `ksys_mmap_pgoff`, `do_mmap`: the offset, then the descriptor, then length and address, then what is there
/// (MAP_FIXED_NOREPLACE), whether the file's bytes have numbers, then rights, then whether the object can be mapped at all.
pub fn map<V: MemoryOperations>(
    memory: &V,
    address: Address,
    length_bytes: u64,
    protection: Protection,
    object: MappedObject,
) -> Result<u64, Errno> {
    if let MappedObject::File { offset, .. } = object
        && !offset.is_multiple_of(PAGE)
    {
        return Err(Errno::EINVAL);
    }
    let description = match object {
        MappedObject::Anonymous => None,
        MappedObject::File { fd, offset, sharing } => {
            Some((memory.description(fd)?.ok_or(Errno::EBADF)?, offset / PAGE, sharing))
        }
    };
    if length_bytes == 0 {
        return Err(Errno::EINVAL);
    }
    let pages = length_bytes.div_ceil(PAGE);
    if pages > SPACE_PAGES {
        return Err(Errno::ENOMEM);
    }
    let place = match address {
        Address::Any => Place::Anywhere,
        Address::Fixed(address) => Place::Fixed(fixed_page(address, pages)?),
        Address::FixedNoReplace(address) => Place::FixedNoReplace(fixed_page(address, pages)?),
    };
    // Before rights, which `map` itself would come to last.
    if let (Place::FixedNoReplace(page), Some(_)) = (place, description)
        && !memory.is_free(page..page + pages)?
    {
        return Err(Errno::EEXIST);
    }
    let source = match description {
        None => Source::Anonymous,
        Some((description, page, sharing)) => {
            let node = memory.node(description);
            // Linux: `file_mmap_ok`.
            let is_beyond = |bytes: u64| page > (bytes - pages * PAGE) / PAGE;
            let is_regular = || memory.objects().kind(node) == Kind::Regular;
            if is_beyond(u64::MAX) || (is_beyond(i64::MAX as u64) && is_regular()) {
                return Err(Errno::EOVERFLOW);
            }
            let mode = memory.mode(description);
            let writes = protection == Protection::ReadWrite && sharing == Sharing::Shared;
            if (writes && !mode.write) || !mode.read {
                return Err(if is_handle(memory, description)? { Errno::EBADF } else { Errno::EACCES });
            }
            if !is_regular() {
                return Err(Errno::ENODEV);
            }
            Source::File { node, page, sharing, may_write: mode.write }
        }
    };
    memory.map(place, pages, protection, source).map(|page| page * PAGE).map_err(|refusal| match refusal {
        OperationError::Exists => Errno::EEXIST,
        OperationError::Fault(fault) => fault.into(),
        OperationError::Changed | OperationError::Dead | OperationError::NotEmpty | OperationError::NoSpace => {
            Errno::ENOMEM
        }
    })
}

/// The first page of so many at an address that the caller names (Linux: `get_unmapped_area`).
fn fixed_page(address: u64, pages: u64) -> Result<u64, Errno> {
    if !address.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let page = address / PAGE;
    if page + pages > SPACE_PAGES { Err(Errno::ENOMEM) } else { Ok(page) }
}

/// Unmaps memory; addresses at which nothing is mapped are no error.
///
/// # Errors
/// EINVAL for an address between pages, or a range that no address space has; ENOMEM.
///
/// POSIX `munmap`; Linux `do_vmi_munmap`.
pub fn unmap<V: MemoryOperations>(memory: &V, address: u64, length_bytes: u64) -> Result<(), Errno> {
    let page = address / PAGE;
    let pages = length_bytes.div_ceil(PAGE);
    if !address.is_multiple_of(PAGE) || pages == 0 || pages > SPACE_PAGES || page > SPACE_PAGES - pages {
        return Err(Errno::EINVAL);
    }
    memory.unmap(page..page + pages).map_err(|refusal| match refusal {
        OperationError::Fault(fault) => fault.into(),
        _ => Errno::ENOMEM,
    })
}

/// Sets what may be done with memory. Of several pages those before the first for which it cannot be are changed.
///
/// # Errors
/// EINVAL for an address between pages; ENOMEM where nothing is mapped; EACCES for a mapping that must not be stored to.
///
/// POSIX `mprotect`; Linux `do_mprotect_pkey`.
pub fn protect<V: MemoryOperations>(
    memory: &V,
    address: u64,
    length_bytes: u64,
    protection: Protection,
) -> Result<(), Errno> {
    if !address.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    if length_bytes == 0 {
        return Ok(());
    }
    let end = address.checked_add(length_bytes).ok_or(Errno::ENOMEM)?.div_ceil(PAGE);
    let inside = address / PAGE..end.min(SPACE_PAGES);
    if inside.is_empty() {
        return Err(Errno::ENOMEM);
    }
    // What lies outside the address space is not mapped, and what comes before it is changed.
    memory.protect(inside, protection)?;
    if end > SPACE_PAGES { Err(Errno::ENOMEM) } else { Ok(()) }
}

/// Where a mapping may go that gets another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// It stays.
    Same,
    /// It stays, or goes anywhere if there is no room (MREMAP_MAYMOVE).
    Any,
    /// Here, in the place of what is there (MREMAP_MAYMOVE | MREMAP_FIXED).
    Fixed(u64),
}

/// Gives a mapping another length, or another place; returns its address.
///
/// # Errors
/// EINVAL for addresses between pages, no bytes, places that overlap or that no address space has; EFAULT where the bytes
/// are not one mapping, which Linux asks of those only that grow or move; ENOMEM.
///
/// Linux `mremap`, `check_mremap_params`, `check_prep_vma`. A shared mapping of which no bytes are named is not duplicated
/// (EINVAL); several mappings that touch are not moved together (EFAULT; Linux moves them since 6.17).
pub fn remap<V: MemoryOperations>(
    memory: &V,
    address: u64,
    old_length_bytes: u64,
    new_length_bytes: u64,
    destination: Destination,
) -> Result<u64, Errno> {
    // Linux takes the longest lengths for none (`PAGE_ALIGN`).
    let pages = |bytes: u64| bytes.checked_next_multiple_of(PAGE).unwrap_or(0) / PAGE;
    let (old_pages, new_pages) = (pages(old_length_bytes), pages(new_length_bytes));
    if !address.is_multiple_of(PAGE) || new_pages == 0 || new_pages > SPACE_PAGES {
        return Err(Errno::EINVAL);
    }
    let page = address / PAGE;
    if let Destination::Fixed(place) = destination {
        let first = place / PAGE;
        // Linux: `vrm_overlaps`, which lets the end of the longest lengths wrap.
        let overlaps = place < address.wrapping_add(old_pages * PAGE) && page < first.saturating_add(new_pages);
        if !place.is_multiple_of(PAGE) || first > SPACE_PAGES - new_pages || overlaps {
            return Err(Errno::EINVAL);
        }
    }
    if page >= SPACE_PAGES || !memory.is_mapped(page..page + 1)? {
        return Err(Errno::EFAULT);
    }
    if old_pages == 0 {
        return Err(Errno::EINVAL);
    }
    let kept_pages = old_pages.min(new_pages);
    let old = page..page + kept_pages;
    let is_to_be_whole = new_pages > old_pages || matches!(destination, Destination::Fixed(_));
    let whole = page..page + old_pages;
    if is_to_be_whole && (whole.end > SPACE_PAGES || !memory.is_mapped(whole)?) {
        return Err(Errno::EFAULT);
    }
    if let Destination::Fixed(place) = destination {
        unmap(memory, place, new_length_bytes)?;
    }
    if new_pages < old_pages {
        unmap(memory, old.end * PAGE, (old_pages - new_pages) * PAGE)?;
    }
    match destination {
        Destination::Fixed(place) => loop {
            match memory.relocate(old.clone(), Some(place / PAGE), new_pages) {
                // Somebody has mapped something there since.
                Err(Errno::EEXIST) => unmap(memory, place, new_length_bytes)?,
                moved => return moved.map(|first| first * PAGE),
            }
        },
        _ if new_pages <= old_pages => Ok(address),
        _ => match (memory.grow(old.clone(), new_pages - old_pages)?, destination) {
            (Growth::Done, _) => Ok(address),
            (Growth::NoRoom, Destination::Any) => memory.relocate(old, None, new_pages).map(|first| first * PAGE),
            (Growth::NoRoom, _) => Err(Errno::ENOMEM),
        },
    }
}

/// Forgets what the process itself has stored (MADV_DONTNEED): private memory is again what it was when it was mapped.
///
/// # Errors
/// EINVAL for an address between pages or a range that wraps; ENOMEM where nothing is mapped, after the rest was done.
///
/// Linux `do_madvise`, `madvise_dontneed_single_vma`. (POSIX's `posix_madvise` is advice only.)
pub fn discard<V: MemoryOperations>(memory: &V, address: u64, length_bytes: u64) -> Result<(), Errno> {
    if !address.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let length_bytes = length_bytes.checked_next_multiple_of(PAGE).ok_or(Errno::EINVAL)?;
    let end = address.checked_add(length_bytes).ok_or(Errno::EINVAL)? / PAGE;
    let inside = (address / PAGE).min(SPACE_PAGES)..end.min(SPACE_PAGES);
    if !inside.is_empty() {
        memory.discard(inside).map_err(|refusal| match refusal {
            OperationError::Fault(fault) => fault.into(),
            _ => Errno::ENOMEM,
        })?;
    }
    must_be_mapped(memory, address / PAGE..end)
}

/// Makes sure that what was stored to shared mappings of files is in the files: it always is.
///
/// # Errors
/// EINVAL for an address between pages; ENOMEM for a range that wraps, and where nothing is mapped.
///
/// POSIX `msync`; Linux `ksys_msync`, which takes the longest lengths for none.
pub fn synchronize<V: MemoryOperations>(memory: &V, address: u64, length_bytes: u64) -> Result<(), Errno> {
    if !address.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let length_bytes = length_bytes.checked_next_multiple_of(PAGE).unwrap_or(0);
    let end = address.checked_add(length_bytes).ok_or(Errno::ENOMEM)?;
    must_be_mapped(memory, address / PAGE..end / PAGE)
}

fn must_be_mapped<V: MemoryOperations>(memory: &V, pages: Range<u64>) -> Result<(), Errno> {
    let is_mapped = pages.is_empty() || (pages.end <= SPACE_PAGES && memory.is_mapped(pages)?);
    if is_mapped { Ok(()) } else { Err(Errno::ENOMEM) }
}
