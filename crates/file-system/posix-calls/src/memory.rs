//! Calls on memory: `mmap`, `munmap`, `mprotect`. Which checks, in which order, with which error.

use core::ops::Range;

use crate::errno::Errno;
use crate::fault::OperationError;
use crate::kind::Kind;
use crate::memory_operations::{MemoryOperations, Place, Protection, SPACE_PAGES, Sharing, Source};
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
/// POSIX `mmap`; Linux `ksys_mmap_pgoff`, `do_mmap`: the offset, then the descriptor, then length and address, then rights,
/// then whether the object can be mapped at all.
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
            let mode = memory.mode(description);
            let writes = protection == Protection::ReadWrite && sharing == Sharing::Shared;
            if (writes && !mode.write) || !mode.read {
                return Err(Errno::EACCES);
            }
            let node = memory.node(description);
            if memory.objects().kind(node) != Kind::Regular {
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
    let range = mapped_range(address, length_bytes)?;
    memory.protect(range, protection)
}

/// The pages of a range; what lies outside the address space is not mapped.
fn mapped_range(address: u64, length_bytes: u64) -> Result<Range<u64>, Errno> {
    let end = address.checked_add(length_bytes).ok_or(Errno::ENOMEM)?.div_ceil(PAGE);
    if end > SPACE_PAGES { Err(Errno::ENOMEM) } else { Ok(address / PAGE..end) }
}
