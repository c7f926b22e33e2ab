//! Calls on memory: `mmap`, `munmap`, `mprotect`. Which checks, in which order, with which error.

use address_space::{MapError, Place, ProtectError, Protection, SPACE_PAGES, Sharing};
use core::ops::Range;
use pages::PAGE_BYTES;
use posix_calls::{Errno, Kind, ObjectOperations};

use crate::memory_operations::{MemoryOperations, Source};

const PAGE: u64 = PAGE_BYTES as u64;

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
/// POSIX `mmap`; Linux `ksys_mmap_pgoff`, `do_mmap`: the offset, then the descriptor, then length and address, then rights,
/// then whether the object can be mapped at all.
pub fn map<V: MemoryOperations>(
    verbs: &V,
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
            Some((verbs.description(fd)?.ok_or(Errno::EBADF)?, offset / PAGE, sharing))
        }
    };
    if length_bytes == 0 {
        return Err(Errno::EINVAL);
    }
    let pages = length_bytes.div_ceil(PAGE);
    if pages > SPACE_PAGES {
        return Err(Errno::ENOMEM);
    }
    if let Some((_, first, _)) = description
        && first.checked_add(pages).is_none_or(|end| end > u64::MAX / PAGE)
    {
        return Err(Errno::EOVERFLOW);
    }
    let place = match address {
        Address::Any => Place::Anywhere,
        Address::Fixed(address) => Place::Fixed(fixed_page(address, pages)?),
        Address::FixedNoReplace(address) => Place::FixedNoReplace(fixed_page(address, pages)?),
    };
    let source = match description {
        None => Source::Anonymous,
        Some((description, page, sharing)) => {
            let mode = verbs.mode(description);
            let writes = protection == Protection::ReadWrite && sharing == Sharing::Shared;
            if (writes && !mode.write) || !mode.read {
                return Err(Errno::EACCES);
            }
            let node = verbs.node(description);
            if verbs.objects().kind(node) != Kind::Regular {
                return Err(Errno::ENODEV);
            }
            Source::File { node, page, sharing, may_write: mode.write }
        }
    };
    verbs.map(place, pages, protection, source).map(|page| page * PAGE).map_err(|error| match error {
        MapError::OutOfMemory => Errno::ENOMEM,
        MapError::Exists => Errno::EEXIST,
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
/// POSIX `munmap`; Linux `do_vmi_munmap`.
pub fn unmap<V: MemoryOperations>(verbs: &V, address: u64, length_bytes: u64) -> Result<(), Errno> {
    let page = address / PAGE;
    let pages = length_bytes.div_ceil(PAGE);
    if !address.is_multiple_of(PAGE) || pages == 0 || pages > SPACE_PAGES || page > SPACE_PAGES - pages {
        return Err(Errno::EINVAL);
    }
    verbs.unmap(page..page + pages).map_err(|_| Errno::ENOMEM)
}

/// Sets what may be done with memory. Of several pages those before the first for which it cannot be are changed.
///
/// POSIX `mprotect`; Linux `do_mprotect_pkey`.
pub fn protect<V: MemoryOperations>(
    verbs: &V,
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
    let range = mapped_range(address, length_bytes)?;
    verbs.protect(range, protection).map_err(|error| match error {
        ProtectError::NotMapped | ProtectError::OutOfMemory => Errno::ENOMEM,
        ProtectError::Denied => Errno::EACCES,
    })
}

/// The pages of a range; what lies outside the address space is not mapped.
fn mapped_range(address: u64, length_bytes: u64) -> Result<Range<u64>, Errno> {
    let end = address.checked_add(length_bytes).ok_or(Errno::ENOMEM)?.div_ceil(PAGE);
    if end > SPACE_PAGES { Err(Errno::ENOMEM) } else { Ok(address / PAGE..end) }
}
