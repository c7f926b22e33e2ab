//! A guest's memory, made by hand: kernel image, page tables, `struct page`s, slabs, tasks.
//!
//! Offsets are not those of any kernel, so that a number that the code has built in shows up as a failure.

use std::sync::atomic::{AtomicU64, Ordering};

use kernel_naming::layout::{Edge, EdgeKind, GuestLayout, Numbers, Region, RegionEntries, Root, RootKind, TypeEntry};
use kernel_naming::{GuestMemory, ObjectCapture, capture};

pub const IMAGE: u64 = 0xffff_ffff_8000_0000;
pub const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
pub const VMEMMAP: u64 = 0xffff_ea00_0000_0000;
pub const VMALLOC: u64 = 0xffff_c900_0000_0000;

/// Physical addresses of the parts.
const IMAGE_PHYSICAL: u64 = 0x10_0000;
const TOP_TABLE: u64 = 0x18_0000;
const TABLES: u64 = 0x20_0000;
pub const PAGES: u64 = 0x40_0000;
/// Free for the tests from here on.
pub const FREE: u64 = 0x60_0000;
pub const RAM_BYTES: u64 = 0x80_0000;

/// Variables in the image, as distances from its start.
const PAGE_OFFSET_VARIABLE: u64 = 0x100;
const VMEMMAP_VARIABLE: u64 = 0x108;
const VMALLOC_VARIABLE: u64 = 0x110;
const PER_CPU_OFFSETS: u64 = 0x200;
const CPU_COUNT: u64 = 0x300;
const UNIT_BYTES: u64 = 0x308;
const BANNER: u64 = 0x400;
pub const INIT_TASK: u64 = 0x1000;
/// Variables `pcpu_base_addr` and `pcpu_first_chunk`.
pub const PER_CPU_BASE: u64 = 0x310;
pub const PER_CPU_CHUNK: u64 = 0x318;
pub const TREE_ROOT: u64 = 0x500;
pub const SUPER_BLOCKS: u64 = 0x510;
pub const TABLE_POINTER: u64 = 0x520;
pub const TABLE_MASK: u64 = 0x528;

/// Per-CPU areas: static variables up to `PER_CPU_STATIC`, one unit per CPU.
pub const PER_CPU_STATIC: u64 = 0x2000;
pub const PER_CPU_UNIT: u64 = 0x4000;
pub const PER_CPU_AREAS: u64 = 0x70_0000;
pub const CURRENT_TASK: u64 = 0x80;
pub const CPUS: u64 = 2;

pub const SLAB_BIT: u64 = 1 << 5;
pub const RESERVED_BIT: u64 = 9;

pub fn image(offset: u64) -> u64 {
    IMAGE + IMAGE_PHYSICAL + offset
}

pub fn direct(physical: u64) -> u64 {
    DIRECT_MAP + physical
}

pub fn layout() -> GuestLayout {
    let numbers = Numbers {
        layout_version: 4,
        image_start: image(0),
        code_end: image(0x80),
        image_end: image(0x10_0000),
        init_start: 0,
        init_end: 0,
        page_offset_variable: image(PAGE_OFFSET_VARIABLE),
        vmemmap_variable: image(VMEMMAP_VARIABLE),
        vmalloc_variable: image(VMALLOC_VARIABLE),
        top_page_table: IMAGE + TOP_TABLE,
        banner: image(BANNER),
        page_size: 80,
        page_flags: 8,
        page_reserved_bit: RESERVED_BIT,
        page_compound_head: 16,
        page_mapping: 32,
        slab_mark_offset: 8,
        slab_mark_mask: SLAB_BIT,
        slab_mark_value: SLAB_BIT,
        table_mark_offset: 48,
        table_mark_mask: 0xff00_0000,
        table_mark_value: 0xf200_0000,
        mapping_host: 24,
        slab_cache: 40,
        cache_size: 4,
        cache_object_size: 12,
        cache_name: 40,
        cache_red_left_pad: 20,
        per_cpu_offsets: image(PER_CPU_OFFSETS),
        per_cpu_start: 0,
        per_cpu_end: PER_CPU_STATIC,
        cpu_count_variable: image(CPU_COUNT),
        per_cpu_unit_variable: image(UNIT_BYTES),
        per_cpu_base_variable: image(PER_CPU_BASE),
        per_cpu_chunk_variable: image(PER_CPU_CHUNK),
        chunk_base_address: 48,
        chunk_page_count: 20,
        current_task: CURRENT_TASK,
        init_task: image(INIT_TASK),
        task_tasks: 16,
        task_signal: 32,
        task_thread_node: 40,
        signal_thread_head: 8,
        task_stack: 56,
        task_comm: 64,
        task_pid: 84,
        stack_size: 0x2000,
        vmap_area_root: image(TREE_ROOT),
        vmap_area_start: 8,
        vmap_area_end: 16,
        vmap_area_node: 24,
        vmap_area_vm: 64,
        node_left: 8,
        node_right: 0,
        vm_address: 0,
        vm_size: 16,
        vm_caller: 8,
        dentry_name: 40,
        dentry_inode: 48,
        dentry_alias: 176,
        file_dentry: 24,
        inode_mode: 0,
        inode_dentries: 96,
        mapping_pages: 8,
        tree_node_array: 16,
        inode_in_shmem: 64,
        inode_in_ext4: 0,
        inode_in_xfs: 0,
        inode_in_btrfs: 0,
        inode_in_block_device: 0,
        maple_tree_root: 16,
        maple_range_slots: 120,
        maple_gap_range_slots: 88,
    };
    let kind = |name: &str, size_bytes: u64| TypeEntry { name: name.to_owned(), size_bytes };
    let types = vec![
        kind("task_struct", 256),
        kind("files_struct", 64),
        kind("fdtable", 56),
        kind("super_block", 128),
        kind("shmem_sb_info", 72),
        kind("mnt_pcp", 8),
        kind("mount", 96),
        kind("pipe_buffer.page", 4096),
    ];
    let pointer = |source, offset_bytes, target| Edge {
        source,
        kind: EdgeKind::Pointer,
        offset_bytes,
        target,
        target_offset_bytes: 0,
        guard: None,
    };
    let guard = kernel_naming::layout::Guard { offset_bytes: 16, mask: u64::MAX, value: image(0x700) };
    let edges = vec![
        pointer(0, 96, 1),
        Edge { target_offset_bytes: 24, ..pointer(0, 104, 6) },
        pointer(1, 8, 2),
        Edge { guard: Some(guard), ..pointer(3, 32, 4) },
        Edge { kind: EdgeKind::PerCpu, ..pointer(6, 48, 5) },
        Edge { kind: EdgeKind::Page, ..pointer(6, 56, 7) },
    ];
    let roots = vec![
        Root { kind: RootKind::PerCpuPointer, target: 0, address: CURRENT_TASK },
        Root { kind: RootKind::List(8), target: 3, address: image(SUPER_BLOCKS) },
    ];
    let regions = vec![Region {
        name: "mount_hashtable".to_owned(),
        pointer: image(TABLE_POINTER),
        entries_variable: image(TABLE_MASK),
        entries: RegionEntries::Mask,
        entry_bytes: 8,
    }];
    GuestLayout { numbers, types, roots, edges, regions }
}

/// Memory under construction.
pub struct Guest {
    pub words: Vec<AtomicU64>,
    pub layout: GuestLayout,
    pub below_4g_bytes: u64,
    next_table: u64,
}

impl Default for Guest {
    fn default() -> Self {
        Self::new()
    }
}

impl Guest {
    /// A booted guest with two CPUs, four-level page tables, and nothing allocated.
    pub fn new() -> Self {
        let words = (0..RAM_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        let mut guest = Self { words, layout: layout(), below_4g_bytes: u64::MAX, next_table: TABLES };
        guest.set(image(PAGE_OFFSET_VARIABLE), DIRECT_MAP);
        guest.set(image(VMEMMAP_VARIABLE), VMEMMAP);
        guest.set(image(VMALLOC_VARIABLE), VMALLOC);
        guest.set_text(image(BANNER), "Linux version 6.1.0-test");
        guest.set_u32(image(CPU_COUNT), CPUS as u32);
        guest.set_u32(image(UNIT_BYTES), PER_CPU_UNIT as u32);
        for cpu in 0..CPUS {
            guest.set(image(PER_CPU_OFFSETS + 8 * cpu), direct(PER_CPU_AREAS + cpu * PER_CPU_UNIT));
        }
        for large_page in 0..1 {
            guest.map(VMEMMAP + (large_page << 21), PAGES + (large_page << 21), 4, true);
        }
        guest.set(image(SUPER_BLOCKS), image(SUPER_BLOCKS));
        guest.task(image(INIT_TASK), "swapper", 0, 0);
        guest
    }

    /// Makes it a guest with five-level page tables, whose bases lie elsewhere.
    pub fn five_levels(&mut self, direct_map: u64, vmemmap: u64, vmalloc: u64) {
        self.set(image(PAGE_OFFSET_VARIABLE), direct_map);
        self.set(image(VMEMMAP_VARIABLE), vmemmap);
        self.set(image(VMALLOC_VARIABLE), vmalloc);
        for index in 0..512 {
            self.write(TOP_TABLE + 8 * index, 0);
        }
        self.map(vmemmap, PAGES, 5, true);
    }

    /// Writes 8 bytes at a physical address.
    pub fn write(&mut self, physical: u64, value: u64) {
        assert!(physical.is_multiple_of(8));
        self.words[(physical / 8) as usize].store(value.to_le(), Ordering::Relaxed);
    }

    fn physical(address: u64) -> u64 {
        if address >= IMAGE { address - IMAGE } else { address - DIRECT_MAP }
    }

    /// Writes 8 bytes at an address of the image or the direct map.
    pub fn set(&mut self, address: u64, value: u64) {
        self.write(Self::physical(address), value);
    }

    /// Writes 4 bytes likewise.
    pub fn set_u32(&mut self, address: u64, value: u32) {
        let physical = Self::physical(address);
        let word = u64::from_le(self.words[(physical / 8) as usize].load(Ordering::Relaxed));
        let shift = 8 * (physical % 8);
        self.write(physical & !7, word & !(0xffff_ffff << shift) | u64::from(value) << shift);
    }

    /// Writes a text and a NUL likewise.
    pub fn set_text(&mut self, address: u64, text: &str) {
        for (index, byte) in text.bytes().chain([0]).enumerate() {
            let physical = Self::physical(address) + index as u64;
            let word = u64::from_le(self.words[(physical / 8) as usize].load(Ordering::Relaxed));
            let shift = 8 * (physical % 8);
            self.write(physical & !7, word & !(0xff << shift) | u64::from(byte) << shift);
        }
    }

    /// Maps a 4 KiB or 2 MiB page.
    pub fn map(&mut self, address: u64, physical: u64, levels: u32, large: bool) {
        let mut table = TOP_TABLE;
        let last = u32::from(large);
        for level in (last + 1..levels).rev() {
            let entry_at = table + 8 * ((address >> (12 + 9 * level)) & 0x1ff);
            let entry = u64::from_le(self.words[(entry_at / 8) as usize].load(Ordering::Relaxed));
            if entry & 1 == 0 {
                self.next_table += 0x1000;
                self.write(entry_at, self.next_table | 0x8000_0000_0000_0063);
                table = self.next_table;
            } else {
                table = entry & 0x000f_ffff_ffff_f000;
            }
        }
        let entry_at = table + 8 * ((address >> (12 + 9 * last)) & 0x1ff);
        self.write(entry_at, physical | 0x8000_0000_0000_0063 | u64::from(large) << 7);
    }

    /// The direct map's address of a frame's `struct page`.
    pub fn page(&self, frame: u64) -> u64 {
        direct(PAGES + frame * self.layout.numbers.page_size)
    }

    /// Makes the frame's flags, tail link, mapping and type.
    pub fn set_page(&mut self, frame: u64, flags: u64, mapping: u64, page_type: u32) {
        let page = self.page(frame);
        self.set(page + 8, flags);
        self.set(page + 32, mapping);
        self.set_u32(page + 48, page_type);
    }

    /// Makes `frame` a tail of the compound page that begins at `head`.
    pub fn set_tail(&mut self, frame: u64, head: u64) {
        let page = self.page(frame);
        let head = VMEMMAP + head * self.layout.numbers.page_size;
        self.set(page + 16, head + 1);
    }

    /// A slab cache at `cache` with its name after it.
    pub fn cache(&mut self, cache: u64, name: &str, distance: u32, object_size: u32, padding: u32) {
        self.set_u32(cache + 4, distance);
        self.set_u32(cache + 12, object_size);
        self.set_u32(cache + 20, padding);
        self.set(cache + 40, cache + 48);
        self.set_text(cache + 48, name);
    }

    /// Makes a frame a slab of a cache.
    pub fn slab(&mut self, frame: u64, cache: u64) {
        self.set_page(frame, SLAB_BIT, 0, u32::MAX);
        let page = self.page(frame);
        self.set(page + 40, cache);
    }

    /// A task that is alone in its process; its `signal_struct` lies after it.
    pub fn task(&mut self, task: u64, name: &str, pid: u32, stack: u64) {
        let signal = task + 0x200;
        self.set(task + 16, task + 16);
        self.set(task + 32, signal);
        self.set(signal + 8, task + 40);
        self.set(task + 40, signal + 8);
        self.set(task + 56, stack);
        self.set_text(task + 64, name);
        self.set_u32(task + 84, pid);
    }

    /// Appends a task to the list of all tasks, which has only `init_task` so far.
    pub fn link_task(&mut self, task: u64) {
        let first = image(INIT_TASK);
        self.set(first + 16, task + 16);
        self.set(task + 16, first + 16);
    }

    pub fn memory(&self) -> GuestMemory<'_> {
        GuestMemory::new(&self.words, self.below_4g_bytes)
    }

    pub fn capture(&self, address: u64) -> ObjectCapture {
        capture(&self.memory(), &self.layout, address)
    }
}
