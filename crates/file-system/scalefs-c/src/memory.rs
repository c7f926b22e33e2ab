//! Memory of processes: mappings of files and of nothing, loads and stores, and a window at real addresses.

use core::ffi::{c_int, c_void};

use address_space::Fault;
use scalefs::memory::{self, Address, Destination, MappedObject};
use scalefs::{
    AccessError, Errno, MemoryAccess, MemoryOperations, OwnedConfig, OwnedScaleFs, Protection, Sharing, TouchError,
};

use crate::border::{answer_int, buffer, call, descriptor, known, source};
use crate::flags::{SCALEFS_READ, SCALEFS_WRITE};
use crate::instance::{scalefs_instance, scalefs_process, scalefs_thread};
use crate::reason;

/// Everybody sees what is stored (MAP_SHARED).
pub const SCALEFS_MAP_SHARED: u32 = 1;
/// The process alone sees what it stores (MAP_PRIVATE).
pub const SCALEFS_MAP_PRIVATE: u32 = 2;
/// With SCALEFS_MAP_PRIVATE: memory that is zero at first; fd is not looked at (MAP_ANONYMOUS).
pub const SCALEFS_MAP_ANONYMOUS: u32 = 4;
/// The address is where it goes, in place of what is there (MAP_FIXED).
pub const SCALEFS_MAP_FIXED: u32 = 8;
/// The address is where it goes, unless something is there (MAP_FIXED_NOREPLACE).
pub const SCALEFS_MAP_FIXED_NOREPLACE: u32 = 16;
/// A flag of scalefs_mremap: it may go elsewhere (MREMAP_MAYMOVE).
pub const SCALEFS_REMAP_MAYMOVE: u32 = 1;
/// With SCALEFS_REMAP_MAYMOVE: it goes to new_address, in place of what is there (MREMAP_FIXED).
pub const SCALEFS_REMAP_FIXED: u32 = 2;

/// As scalefs_create; processes may have windows (scalefs_window).
///
/// # Safety
/// None asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_create_mappable(
    metadata_bytes: usize,
    page_count: u32,
    core_count: u32,
    hash_seed: u64,
) -> *mut scalefs_instance {
    let config = OwnedConfig { metadata_bytes, page_count, core_count: core_count as usize, hash_seed };
    scalefs_instance::create(config, OwnedScaleFs::create_mappable)
}

/// Reserves addresses of the program for so many pages of 4096 bytes, until the process exits; returns the first. What is mapped
/// there is reached by ordinary loads and stores, once it was touched (scalefs_touch). -ENOMEM if the process has one
/// already, or the instance is not of scalefs_create_mappable.
///
/// # Safety
/// See scalefs_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_window(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    page_count: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    let opened = unsafe {
        scalefs_thread::attached(thread).and_then(|thread| {
            let of = scalefs_process::of(process, &thread)?;
            let open = |owned: &OwnedScaleFs| owned.open_window(of, page_count).map_err(|_| Errno::ENOMEM);
            thread.between_calls(|owned, _| open(owned))
        })
    };
    opened.map_or_else(|errno| -i64::from(errno.number()), |address| address as i64)
}

fn protection(given: u32) -> Result<Protection, Errno> {
    known((given & !(SCALEFS_READ | SCALEFS_WRITE) == 0).then_some(()))?;
    Ok(match given {
        0 => Protection::None,
        SCALEFS_READ => Protection::Read,
        _ => Protection::ReadWrite,
    })
}

/// Maps memory of the process; returns its address. access is 0 or SCALEFS_READ and SCALEFS_WRITE; offset is the first byte
/// of the file that is mapped. Without SCALEFS_MAP_FIXED and its like address is not looked at.
///
/// # Safety
/// See scalefs_open. The same for all calls below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mmap(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    size_bytes: u64,
    access: u32,
    flags: u32,
    fd: c_int,
    offset: i64,
) -> i64 {
    // SAFETY: the caller's promise; the same in all calls.
    unsafe {
        call(thread, process, |call| {
            let place = match flags & (SCALEFS_MAP_FIXED | SCALEFS_MAP_FIXED_NOREPLACE) {
                0 => Address::Any,
                SCALEFS_MAP_FIXED => Address::Fixed(address),
                _ => Address::FixedNoReplace(address),
            };
            let file = |sharing| {
                let offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
                Ok(MappedObject::File { fd: descriptor(fd)?, offset, sharing })
            };
            let anonymous = SCALEFS_MAP_PRIVATE | SCALEFS_MAP_ANONYMOUS;
            let object = match flags & !(SCALEFS_MAP_FIXED | SCALEFS_MAP_FIXED_NOREPLACE) {
                SCALEFS_MAP_SHARED => file(Sharing::Shared),
                SCALEFS_MAP_PRIVATE => file(Sharing::Private),
                flags if flags == anonymous => Ok(MappedObject::Anonymous),
                _ => reason::invalid("mmap wants SCALEFS_MAP_SHARED, or SCALEFS_MAP_PRIVATE, perhaps anonymous"),
            };
            memory::map(call, place, size_bytes, protection(access)?, object?).map(|address| address as i64)
        })
    }
}

/// Unmaps memory; where nothing is mapped it does nothing.
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_munmap(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    size_bytes: u64,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe { answer_int(thread, process, |call| memory::unmap(call, address, size_bytes).map(|()| 0)) }
}

/// Sets what may be done with memory.
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mprotect(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    size_bytes: u64,
    access: u32,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe {
        answer_int(thread, process, |call| memory::protect(call, address, size_bytes, protection(access)?).map(|()| 0))
    }
}

/// Gives a mapping another size, or another place; returns its address.
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_mremap(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    old_size_bytes: u64,
    new_size_bytes: u64,
    flags: u32,
    new_address: u64,
) -> i64 {
    // SAFETY: see `scalefs_mmap`.
    unsafe {
        call(thread, process, |call| {
            let destination = match flags {
                0 => Destination::Same,
                SCALEFS_REMAP_MAYMOVE => Destination::Any,
                3 => Destination::Fixed(new_address),
                _ => return known(None),
            };
            memory::remap(call, address, old_size_bytes, new_size_bytes, destination).map(|address| address as i64)
        })
    }
}

/// Forgets what the process has stored to private memory (madvise with MADV_DONTNEED).
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_discard(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    size_bytes: u64,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe { answer_int(thread, process, |call| memory::discard(call, address, size_bytes).map(|()| 0)) }
}

/// What was stored to shared mappings is in their files: it always is. -ENOMEM where nothing is mapped.
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_msync(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    size_bytes: u64,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe { answer_int(thread, process, |call| memory::synchronize(call, address, size_bytes).map(|()| 0)) }
}

fn fault<F>(error: AccessError<F>) -> Errno {
    match error {
        AccessError::OutOfMemory => Errno::ENOMEM,
        AccessError::Bus => {
            reason::keep("the page lies past the end of its file, or there is no space for it: SIGBUS");
            Errno::EFAULT
        }
        AccessError::Segment | AccessError::Fault(_) => {
            reason::keep("nothing is mapped there, or it must not be accessed so: SIGSEGV");
            Errno::EFAULT
        }
    }
}

/// Loads bytes from an address of the process. -EFAULT where its instruction would get a signal, which scalefs_reason names.
///
/// # Safety
/// See scalefs_mmap; into has room for size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_load(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    into: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe { answer_int(thread, process, |call| call.load(address, buffer(into, size)?).map(|()| 0).map_err(fault)) }
}

/// Stores bytes at an address of the process. -EFAULT as scalefs_load.
///
/// # Safety
/// See scalefs_mmap; from holds size bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_store(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    from: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe { answer_int(thread, process, |call| call.store(address, source(from, size)?).map(|()| 0).map_err(fault)) }
}

/// Lets the page at an address of the process's window be reached by loads (SCALEFS_READ), or by loads and stores
/// (SCALEFS_WRITE), until another call takes it away again (scalefs_munmap, a cut of the file). -EFAULT as scalefs_load, and for
/// stores to the page in which a shared file ends.
///
/// # Safety
/// See scalefs_mmap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalefs_touch(
    thread: *mut scalefs_thread,
    process: *mut scalefs_process,
    address: u64,
    access: u32,
) -> c_int {
    // SAFETY: see `scalefs_mmap`.
    unsafe {
        answer_int(thread, process, |call| {
            let access = match access {
                SCALEFS_READ => MemoryAccess::Load,
                SCALEFS_WRITE => MemoryAccess::Store,
                _ => return known(None),
            };
            call.touch(address, access).map(|()| 0).map_err(|error| match error {
                TouchError::Fault(Fault::Segment) => fault(AccessError::<Errno>::Segment),
                TouchError::Fault(Fault::Bus) => fault(AccessError::<Errno>::Bus),
                TouchError::Fault(Fault::OutOfMemory) => Errno::ENOMEM,
                TouchError::EndsWithin => {
                    reason::keep("the shared file ends within the page: scalefs_store stores there");
                    Errno::EFAULT
                }
            })
        })
    }
}
