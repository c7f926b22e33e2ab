//! A program and its interpreter in memory.

use scalefs::{DataOperations, ObjectOperations, data};

use crate::constants::*;
use crate::elf::{self, HEADER_BYTES, MAX_SEGMENTS, SEGMENT_BYTES, Segment};
use crate::execute;
use crate::instance;
use crate::mapped;
use crate::paths::{self, MAX_PATH_BYTES, Place};
use crate::sites;
use crate::system::{self, number};
use crate::threads::Thread;

const PAGE_BYTES: u64 = 4096;
const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// Where Linux puts programs that may lie anywhere.
const PROGRAMS: u64 = 0x5555_5555_0000;

/// A file that is loaded.
#[derive(Clone, Copy, Debug)]
enum File {
    /// By a number of the kernel's.
    Kernel(u64),
    /// By one of ours.
    Ours(u32),
}

/// What was loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded {
    pub(crate) entry: u64,
    /// How far it lies from where its segments say.
    pub(crate) base: u64,
    /// Where its table of segments lies, and how many there are.
    pub(crate) table: u64,
    pub(crate) segment_count: usize,
    /// The path of its interpreter, if it has one.
    pub(crate) interpreter: Option<([u8; 256], usize)>,
}

fn open(thread: &mut Thread, path: &[u8]) -> Result<File, i32> {
    match paths::place(thread, paths::WORKING_DIRECTORY, path).map_err(|errno| errno.number())? {
        Place::Tree(from, path) => match execute::open_in_tree(thread, from, path) {
            Ok(number) => Ok(File::Ours(number)),
            Err(errno) => match paths::way_out(thread, from, path, scalefs::Follow::Symlinks) {
                Ok(Some(elsewhere)) => open_in_kernel(thread, elsewhere),
                _ => Err(errno.number()),
            },
        },
        Place::Kernel => open_in_kernel(thread, path),
        Place::KernelAt(elsewhere) => open_in_kernel(thread, elsewhere),
    }
}

fn open_in_kernel(thread: &mut Thread, path: &[u8]) -> Result<File, i32> {
    let at = paths::for_kernel(thread.room(), path);
    system::try_call(number::OPEN, [at, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0]).map(File::Kernel)
}

impl File {
    fn read(self, thread: &Thread, bytes: &mut [u8], offset: u64) -> Result<usize, i32> {
        match self {
            File::Kernel(file) => {
                let arguments = [file, bytes.as_mut_ptr() as u64, bytes.len() as u64, offset, 0, 0];
                system::try_call(number::PREAD, arguments).map(|read| read as usize)
            }
            File::Ours(number) => instance::call(thread, |call| data::read_at(call, number, bytes, offset as i64))
                .map_err(|errno| errno.number()),
        }
    }

    /// Its number in the tree; zero elsewhere.
    fn inode(self, thread: &Thread) -> u64 {
        let File::Ours(number) = self else { return 0 };
        instance::control().note_program();
        instance::call(thread, |call| Ok(call.objects().number(data::node(call, number)?)?.0)).unwrap_or(0)
    }

    fn close(self, thread: &Thread) {
        match self {
            File::Kernel(file) => _ = system::call(number::CLOSE, [file, 0, 0, 0, 0, 0]),
            File::Ours(number) => execute::close_in_tree(thread, number),
        }
    }

    /// Puts whole pages of the file at an address, over what is there.
    fn map(self, thread: &Thread, at: u64, bytes: u64, rights: u64, offset: u64) -> Result<(), i32> {
        match self {
            File::Kernel(file) => {
                system::try_call(number::MMAP, [at, bytes, rights, MAP_PRIVATE | MAP_FIXED, file, offset])?;
            }
            File::Ours(number) => {
                let (open, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS);
                system::try_call(number::MMAP, [at, bytes, open, flags, u64::MAX, 0])?;
                mapped::fill(thread, number, at, bytes, offset);
                system::try_call(number::MPROTECT, [at, bytes, rights, 0, 0, 0])?;
            }
        }
        Ok(())
    }
}

/// Loads the file at a path. `is_program`: it is no interpreter of another one; `random` moves it.
pub(crate) fn load(thread: &mut Thread, path: &[u8], is_program: bool, random: u64) -> Result<Loaded, i32> {
    let file = open(thread, path)?;
    let loaded = load_file(thread, file, is_program, random);
    if is_program {
        thread.home().seat().set_program_inode(file.inode(thread));
    }
    file.close(thread);
    loaded
}

fn rights_of(segment: &Segment) -> u64 {
    let right = |flag: u32, right: u64| if segment.flags & flag != 0 { right } else { 0 };
    right(4, PROT_READ) | right(2, PROT_WRITE) | right(1, PROT_EXEC)
}

fn page_of(address: u64) -> u64 {
    address & !(PAGE_BYTES - 1)
}

fn load_file(thread: &Thread, file: File, is_program: bool, random: u64) -> Result<Loaded, i32> {
    let mut head = [0_u8; HEADER_BYTES];
    file.read(thread, &mut head, 0)?;
    let header = elf::header(&head).ok_or(ENOEXEC)?;
    let mut table = [[0_u8; SEGMENT_BYTES]; MAX_SEGMENTS];
    let table = &mut table[..header.segment_count];
    let bytes = table.as_flattened_mut();
    if file.read(thread, bytes, header.table_offset)? < bytes.len() {
        return Err(ENOEXEC);
    }
    let segments = || table.iter().map(elf::segment);
    let loads = || segments().filter(|segment| segment.kind == elf::LOAD && segment.memory_bytes > 0);
    let first = loads().map(|segment| page_of(segment.address)).min().ok_or(ENOEXEC)?;
    let end = loads().map(|segment| segment.address.saturating_add(segment.memory_bytes)).max().ok_or(ENOEXEC)?;
    let end = end.checked_next_multiple_of(PAGE_BYTES).ok_or(ENOEXEC)?;
    let align = loads().map(|segment| segment.align).max().unwrap_or(PAGE_BYTES).next_power_of_two().max(PAGE_BYTES);
    let base = match header.is_fixed {
        true => reserve(first, end - first, MAP_FIXED_NOREPLACE).map(|_| 0)?,
        false => {
            let hint = if is_program { PROGRAMS + page_of(random & 0xff_ffff_f000) } else { 0 };
            reserve_aligned(hint, end - first, align)?.wrapping_sub(first)
        }
    };
    for segment in loads() {
        map_segment(thread, file, &segment, base)?;
    }
    for segment in loads().filter(|segment| rights_of(segment) & PROT_EXEC != 0) {
        let start = page_of(segment.address) + base;
        let bytes = segment.address + base + segment.file_bytes - start;
        let of = match file {
            File::Kernel(file) => sites::code_of(file, page_of(segment.offset), bytes),
            File::Ours(_) => None,
        };
        sites::rewrite_protected(start, bytes, rights_of(&segment), of);
    }
    let in_segment = loads()
        .find(|segment| (segment.offset..segment.offset + segment.file_bytes).contains(&header.table_offset))
        .map(|segment| segment.address + header.table_offset - segment.offset);
    let table_address = segments().find(|segment| segment.kind == elf::TABLE).map(|segment| segment.address);
    let mut interpreter = None;
    if let Some(segment) = segments().find(|segment| segment.kind == elf::INTERPRETER) {
        let mut path = [0_u8; 256];
        let length = (segment.file_bytes as usize).min(path.len());
        file.read(thread, &mut path[..length], segment.offset)?;
        let length = path.iter().position(|byte| *byte == 0).unwrap_or(length).min(MAX_PATH_BYTES);
        interpreter = Some((path, length));
    }
    Ok(Loaded {
        entry: header.entry.wrapping_add(base),
        base,
        table: table_address.or(in_segment).unwrap_or(0).wrapping_add(base),
        segment_count: header.segment_count,
        interpreter,
    })
}

fn reserve(at: u64, bytes: u64, fixed: u64) -> Result<u64, i32> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed;
    system::try_call(number::MMAP, [at, bytes, 0, flags, u64::MAX, 0])
}

/// Addresses for a program that may lie anywhere, at a multiple of `align`.
fn reserve_aligned(hint: u64, bytes: u64, align: u64) -> Result<u64, i32> {
    if align <= PAGE_BYTES {
        return reserve(hint, bytes, 0);
    }
    let place = reserve(hint, bytes + align, 0)?;
    let start = place.next_multiple_of(align);
    let munmap = |at: u64, bytes: u64| {
        if bytes > 0 {
            system::call(number::MUNMAP, [at, bytes, 0, 0, 0, 0]);
        }
    };
    munmap(place, start - place);
    munmap(start + bytes, place + align - start);
    Ok(start)
}

fn map_segment(thread: &Thread, file: File, segment: &Segment, base: u64) -> Result<(), i32> {
    let rights = rights_of(segment);
    let start = segment.address + base;
    let page = page_of(start);
    let (file_end, memory_end) = (start + segment.file_bytes, start + segment.memory_bytes);
    let mapped_end = file_end.next_multiple_of(PAGE_BYTES);
    if segment.file_bytes > 0 {
        let offset = segment.offset - (start - page);
        file.map(thread, page, mapped_end - page, rights, offset)?;
        if segment.memory_bytes > segment.file_bytes && rights & PROT_WRITE != 0 && mapped_end > file_end {
            // SAFETY: mapped just now for writing; after the file's part come zeros.
            unsafe { core::ptr::write_bytes(file_end as *mut u8, 0, (mapped_end - file_end) as usize) };
        }
    }
    let zeros_start = if segment.file_bytes > 0 { mapped_end } else { page };
    let zeros_end = memory_end.next_multiple_of(PAGE_BYTES);
    if zeros_end > zeros_start {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        system::try_call(number::MMAP, [zeros_start, zeros_end - zeros_start, rights, flags, u64::MAX, 0])?;
    }
    Ok(())
}
