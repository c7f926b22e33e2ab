//! The kernel's address space, read through guest-physical memory.
//!
//! Map of x86-64 (`Documentation/x86/x86_64/mm.rst`): direct map of all RAM, vmalloc space, the array of `struct page`
//! (`vmemmap`), the CPU entry area, the kernel image, modules. The first three begin where variables of the kernel say; the
//! image is mapped at a fixed distance from physical memory; everything else goes through the page tables.

use crate::layout::GuestLayout;
use crate::memory::GuestMemory;

/// `__START_KERNEL_map`: physical address 0, as the kernel image is mapped.
const IMAGE_MAP: u64 = 0xffff_ffff_8000_0000;
/// `MODULES_VADDR` of a kernel that is not moved; the image's mapping ends here.
pub(super) const MODULES_START: u64 = 0xffff_ffff_c000_0000;
/// `MODULES_END`.
pub(super) const MODULES_END: u64 = 0xffff_ffff_ff00_0000;
/// `CPU_ENTRY_AREA_BASE`, and the size of its top-level page table entry.
pub(super) const CPU_ENTRY_AREA_START: u64 = 0xffff_fe00_0000_0000;
pub(super) const CPU_ENTRY_AREA_END: u64 = CPU_ENTRY_AREA_START + (1 << 39);
/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Defaults where the kernel has no variables for its bases (no `CONFIG_RANDOMIZE_MEMORY`): 4-level page tables.
const PAGE_OFFSET: u64 = 0xffff_8880_0000_0000;
const VMALLOC_START: u64 = 0xffff_c900_0000_0000;
const VMEMMAP_START: u64 = 0xffff_ea00_0000_0000;
/// Below it the direct map's base means 5-level page tables.
const FOUR_LEVEL_START: u64 = 0xffff_8000_0000_0000;

/// Physical address bits of a page table entry.
const ENTRY_ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const ENTRY_PRESENT: u64 = 1;
const ENTRY_LARGE: u64 = 1 << 7;

/// Translates kernel addresses and reads behind them.
#[derive(Clone, Copy)]
pub(super) struct Space<'a> {
    pub memory: GuestMemory<'a>,
    pub layout: &'a GuestLayout,
    pub direct_map: u64,
    pub vmemmap: u64,
    pub vmalloc: u64,
    pub vmalloc_end: u64,
    five_levels: bool,
}

impl<'a> Space<'a> {
    pub fn new(memory: GuestMemory<'a>, layout: &'a GuestLayout) -> Self {
        let mut space = Self {
            memory,
            layout,
            direct_map: PAGE_OFFSET,
            vmemmap: VMEMMAP_START,
            vmalloc: VMALLOC_START,
            vmalloc_end: VMALLOC_START + (32 << 40),
            five_levels: false,
        };
        let numbers = &layout.numbers;
        let base = |variable: u64, default: u64| match space.image_physical(variable) {
            // Bases are page aligned and in the upper half; anything else is a kernel that has not started yet.
            Some(physical) if variable != 0 => {
                let value = memory.read_u64(physical);
                value.filter(|value| value % PAGE_BYTES == 0 && value >> 63 == 1).unwrap_or(default)
            }
            _ => default,
        };
        let direct_map = base(numbers.page_offset_variable, PAGE_OFFSET);
        let vmemmap = base(numbers.vmemmap_variable, VMEMMAP_START);
        let vmalloc = base(numbers.vmalloc_variable, VMALLOC_START);
        space.five_levels = direct_map < FOUR_LEVEL_START;
        // VMALLOC_SIZE_TB: 32 TiB, with 5-level page tables 12800 TiB.
        let vmalloc_bytes = if space.five_levels { 12_800u64 << 40 } else { 32 << 40 };
        (space.direct_map, space.vmemmap, space.vmalloc) = (direct_map, vmemmap, vmalloc);
        space.vmalloc_end = vmalloc.saturating_add(vmalloc_bytes);
        space
    }

    /// The physical address of a byte in the kernel image's mapping.
    fn image_physical(&self, address: u64) -> Option<u64> {
        let physical = address.checked_sub(IMAGE_MAP)?;
        (address < MODULES_START).then_some(physical)
    }

    /// The image's address of a physical address.
    pub fn image_address(physical: u64) -> Option<u64> {
        IMAGE_MAP.checked_add(physical).filter(|address| *address < MODULES_START)
    }

    /// Where the direct map has the page of this `struct page`.
    pub fn page_memory(&self, page: u64) -> Option<u64> {
        let distance = page.checked_sub(self.vmemmap)?;
        let frame = distance.checked_div(self.layout.numbers.page_size)?;
        let physical = frame.checked_mul(PAGE_BYTES).filter(|physical| *physical < self.memory.physical_end())?;
        self.direct_map.checked_add(physical)
    }

    /// The physical address that the direct map has at `address`, if RAM is there.
    pub fn direct_physical(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.direct_map).filter(|physical| *physical < self.memory.physical_end())
    }

    /// Translates any kernel address.
    fn physical(&self, address: u64) -> Option<u64> {
        if let Some(physical) = self.direct_physical(address) {
            return Some(physical);
        }
        if address >= self.layout.numbers.image_start
            && let Some(physical) = self.image_physical(address)
        {
            return Some(physical);
        }
        self.walk(address)
    }

    /// Walks the kernel's page tables, as the processor does (Intel SDM volume 3, section 4.5).
    fn walk(&self, address: u64) -> Option<u64> {
        if address >> 63 == 0 {
            return None;
        }
        let mut table = self.image_physical(self.layout.numbers.top_page_table)?;
        let levels = if self.five_levels { 5 } else { 4 };
        for level in (0..levels).rev() {
            let shift = 12 + 9 * level;
            let index = (address >> shift) & 0x1ff;
            let entry = self.memory.read_u64(table.checked_add(8 * index)?)?;
            if entry & ENTRY_PRESENT == 0 {
                return None;
            }
            let base = entry & ENTRY_ADDRESS;
            let within = (1u64 << shift) - 1;
            if level == 0 || (level <= 2 && entry & ENTRY_LARGE != 0) {
                return Some((base & !within) | (address & within));
            }
            table = base;
        }
        None
    }

    /// The 8 bytes at a kernel address. A value that crosses into a page that is not next to it in physical memory is not
    /// read; no aligned field does.
    pub fn read_u64(&self, address: u64) -> Option<u64> {
        if address % PAGE_BYTES > PAGE_BYTES - 8 {
            return None;
        }
        self.memory.read_u64(self.physical(address)?)
    }

    /// The 4 bytes at a kernel address, likewise.
    pub fn read_u32(&self, address: u64) -> Option<u32> {
        if address % PAGE_BYTES > PAGE_BYTES - 4 {
            return None;
        }
        self.memory.read_u32(self.physical(address)?)
    }

    /// The 8 bytes at `offset` from a kernel address.
    pub fn field(&self, object: u64, offset: u64) -> Option<u64> {
        self.read_u64(object.checked_add(offset)?)
    }

    /// The 4 bytes at `offset` from a kernel address.
    pub fn field_u32(&self, object: u64, offset: u64) -> Option<u32> {
        self.read_u32(object.checked_add(offset)?)
    }

    /// Copies a NUL-terminated text into `name`, as much as fits.
    pub fn copy_text<const LENGTH: usize>(&self, address: u64, name: &mut [u8; LENGTH]) {
        for (index, byte) in name.iter_mut().enumerate() {
            let physical = address.checked_add(index as u64).and_then(|address| self.physical(address));
            match physical.and_then(|physical| self.memory.read_u8(physical)) {
                Some(0) | None => return,
                Some(value) => *byte = value,
            }
        }
    }
}
