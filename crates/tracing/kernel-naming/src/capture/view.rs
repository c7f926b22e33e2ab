//! Sorts an address into its part of the kernel's address space and hands it to who knows that part.

use super::maple;
use super::page::SlabPlace;
use super::pointers::PointerWalk;
use super::record::{CaptureKind, ObjectCapture, PageKind};
use super::space::{CPU_ENTRY_AREA_END, CPU_ENTRY_AREA_START, MODULES_END, MODULES_START, PAGE_BYTES, Space};
use crate::layout::{GuestLayout, RegionEntries};
use crate::memory::GuestMemory;

/// CPUs whose per-CPU areas are recognised.
const CPU_LIMIT: usize = 256;
/// Default of `pcpu_unit_size`'s bound: a unit larger than that is not believed.
const PER_CPU_UNIT_LIMIT_BYTES: u64 = 64 << 20;

/// The guest as it stands at the end of a window. Made once per window, used for all its lines, then dropped: what it has
/// read goes stale when the guest runs on. Takes about 30 KB of stack.
pub struct WindowView<'a> {
    space: Space<'a>,
    /// `__per_cpu_offset`: where each CPU's per-CPU area lies.
    per_cpu: [u64; CPU_LIMIT],
    cpu_count: usize,
    per_cpu_unit_bytes: u64,
    walk: PointerWalk,
}

/// What lies at a virtual address of the guest. For several addresses of one moment, [`WindowView`] is cheaper.
#[must_use]
pub fn capture(memory: &GuestMemory<'_>, layout: &GuestLayout, virtual_address: u64) -> ObjectCapture {
    WindowView::new(*memory, layout).capture(virtual_address)
}

impl<'a> WindowView<'a> {
    /// Reads the guest's bases and per-CPU offsets.
    #[must_use]
    pub fn new(memory: GuestMemory<'a>, layout: &'a GuestLayout) -> Self {
        let space = Space::new(memory, layout);
        let numbers = &layout.numbers;
        let variable = |address: u64| if address == 0 { None } else { space.read_u32(address) };
        let cpu_count = variable(numbers.cpu_count_variable).map_or(CPU_LIMIT, |count| count as usize).min(CPU_LIMIT);
        let mut per_cpu = [0; CPU_LIMIT];
        let mut found = 0;
        for (index, base) in per_cpu.iter_mut().enumerate().take(cpu_count) {
            let offset = space.field(numbers.per_cpu_offsets, 8 * index as u64);
            // Before the areas are set up, and for CPUs that cannot be, the offset is that of the image's own copy.
            match offset.filter(|offset| *offset != 0) {
                Some(offset) => *base = offset,
                None => break,
            }
            found = index + 1;
        }
        let static_bytes = numbers.per_cpu_end.saturating_sub(numbers.per_cpu_start);
        let unit_bytes = variable(numbers.per_cpu_unit_variable).map_or(static_bytes, u64::from);
        let unit_bytes = unit_bytes.clamp(static_bytes.min(PER_CPU_UNIT_LIMIT_BYTES), PER_CPU_UNIT_LIMIT_BYTES);
        let used_bytes = per_cpu_used_bytes(&space).filter(|used| (static_bytes..=unit_bytes).contains(used));
        let per_cpu_unit_bytes = used_bytes.unwrap_or(unit_bytes);
        Self { space, per_cpu, cpu_count: found, per_cpu_unit_bytes, walk: PointerWalk::new() }
    }

    /// The addresses of a CPU's part of the first per-CPU chunk; `None` for a CPU that is not there.
    #[must_use]
    pub fn per_cpu_area(&self, cpu: usize) -> Option<std::ops::Range<u64>> {
        let start = self.per_cpu[..self.cpu_count].get(cpu)?.wrapping_add(self.space.layout.numbers.per_cpu_start);
        Some(start..start.saturating_add(self.per_cpu_unit_bytes))
    }

    /// Whether the guest's memory holds the kernel that the layout was derived from: its banner is where it should be. False
    /// also before the kernel is loaded.
    #[must_use]
    pub fn holds_kernel(&self) -> bool {
        let mut banner = [0; 14];
        self.space.copy_text(self.space.layout.numbers.banner, &mut banner);
        &banner == b"Linux version "
    }

    /// What lies at a virtual address.
    #[must_use]
    pub fn capture(&mut self, virtual_address: u64) -> ObjectCapture {
        let mut capture = ObjectCapture::unknown(virtual_address);
        self.classify(&mut capture);
        let kind = capture.capture_kind();
        let unnamed_page = matches!(capture.page(), PageKind::Reserved | PageKind::Other | PageKind::None);
        match kind {
            CaptureKind::Slab if capture.cache_name() == maple::CACHE => {
                if let Some(name) = maple::node_type(&self.space, capture.object) {
                    capture.set_type(name, capture.object);
                }
            }
            CaptureKind::Slab => self.find_type(&mut capture),
            CaptureKind::Page | CaptureKind::Vmalloc if unnamed_page && !self.find_table(&mut capture) => {
                let in_chunk = kind == CaptureKind::Vmalloc && self.find_per_cpu_chunk(&mut capture);
                if !in_chunk {
                    self.find_type(&mut capture);
                }
            }
            CaptureKind::PerCpu if capture.object >= self.space.layout.numbers.per_cpu_end => {
                self.find_type(&mut capture);
            }
            _ => {}
        }
        self.space.find_owner(&mut capture);
        capture
    }

    /// Where the slab object at an address of the direct map lies; `None` if there is none.
    #[must_use]
    pub fn slab_object(&self, virtual_address: u64) -> Option<SlabPlace> {
        self.space.slab_place(virtual_address)
    }

    fn classify(&self, capture: &mut ObjectCapture) {
        let (space, numbers) = (&self.space, &self.space.layout.numbers);
        let address = capture.address;
        if address >> 63 == 0 {
            capture.kind = CaptureKind::User as u32;
        } else if (numbers.image_start..numbers.image_end).contains(&address) {
            capture.kind = CaptureKind::KernelImage as u32;
        } else if (MODULES_START..MODULES_END).contains(&address) {
            capture.kind = CaptureKind::Module as u32;
        } else if self.capture_per_cpu(capture) {
            // Per-CPU areas lie in the direct map (first chunk), so they are looked for before pages.
        } else if let Some(physical) = space.direct_physical(address) {
            space.capture_page(capture, physical);
        } else if (space.vmalloc..space.vmalloc_end).contains(&address) {
            space.capture_vmalloc(capture, &self.per_cpu[..self.cpu_count]);
        } else if (CPU_ENTRY_AREA_START..CPU_ENTRY_AREA_END).contains(&address) {
            capture.kind = CaptureKind::CpuEntryArea as u32;
        } else if let Some(distance) = address.checked_sub(space.vmemmap) {
            let frames = space.memory.physical_end().div_ceil(4096);
            if distance.checked_div(numbers.page_size).is_some_and(|frame| frame < frames) {
                space.capture_page_structure(capture, distance);
            }
        }
    }

    /// Recognises an address in some CPU's unit of the first per-CPU chunk.
    fn capture_per_cpu(&self, capture: &mut ObjectCapture) -> bool {
        let start = self.space.layout.numbers.per_cpu_start;
        for (cpu, base) in self.per_cpu[..self.cpu_count].iter().enumerate() {
            let unit_start = base.wrapping_add(start);
            let within = capture.address.wrapping_sub(unit_start);
            if within < self.per_cpu_unit_bytes {
                capture.kind = CaptureKind::PerCpu as u32;
                capture.object = start.wrapping_add(within);
                capture.typed_start = capture.object;
                capture.cpu = cpu as u32;
                return true;
            }
        }
        false
    }

    /// Types an object by what points to it. Objects of typed caches stay what their cache says; a type found there is
    /// one that is embedded, and naming decides.
    fn find_type(&mut self, capture: &mut ObjectCapture) {
        let slab = capture.capture_kind() == CaptureKind::Slab;
        if slab && !capture.cache_name.starts_with(b"kmalloc") && !capture.cache_name.starts_with(b"dma-kmalloc") {
            return;
        }
        let in_per_cpu = capture.capture_kind() == CaptureKind::PerCpu;
        let wanted = if in_per_cpu { capture.object } else { capture.address };
        let per_cpu = &self.per_cpu[..self.cpu_count];
        let Some(found) = self.walk.find(&self.space, per_cpu, wanted, in_per_cpu) else { return };
        let object_end = capture.object.saturating_add(capture.object_size);
        // A pointer that is left over from an object that is gone does not fit what is there now.
        if slab && (found.start < capture.object || found.start.saturating_add(found.size_bytes) > object_end) {
            return;
        }
        let Some(entry) = self.space.layout.types.get(usize::from(found.kind)) else { return };
        capture.set_type(&entry.name, found.start);
    }

    /// Recognises an object in a later chunk of per-CPU memory, which lies in vmalloc space with the CPUs' parts as far
    /// from each other as in the first one.
    fn find_per_cpu_chunk(&mut self, capture: &mut ObjectCapture) -> bool {
        for cpu in 0..self.cpu_count {
            let offset = capture.address.wrapping_sub(self.per_cpu[cpu]);
            let Some(found) = self.walk.find(&self.space, &self.per_cpu[..self.cpu_count], offset, true) else {
                continue;
            };
            let Some(entry) = self.space.layout.types.get(usize::from(found.kind)) else { continue };
            capture.kind = CaptureKind::PerCpu as u32;
            (capture.object, capture.cpu) = (offset, cpu as u32);
            capture.set_type(&entry.name, found.start);
            return true;
        }
        false
    }

    /// Recognises a table that a variable points to.
    fn find_table(&self, capture: &mut ObjectCapture) -> bool {
        for region in &self.space.layout.regions {
            let start = self.space.read_u64(region.pointer);
            let value = self.space.read_u32(region.entries_variable);
            let (Some(start), Some(value)) = (start, value) else { continue };
            let entries = match region.entries {
                RegionEntries::Mask => u64::from(value) + 1,
                RegionEntries::ShiftFrom32 => 1u64 << 32u32.saturating_sub(value),
            };
            let size_bytes = entries.saturating_mul(region.entry_bytes);
            if capture.address.checked_sub(start).is_none_or(|within| within >= size_bytes) {
                continue;
            }
            capture.kind = CaptureKind::Table as u32;
            (capture.object, capture.object_size, capture.typed_start) = (start, size_bytes, start);
            for (byte, value) in capture.cache_name.iter_mut().zip(region.name.bytes()) {
                *byte = value;
            }
            return true;
        }
        false
    }
}

/// Bytes of each CPU's part of the first chunk that are in use: static variables, then what `pcpu_first_chunk` serves. The
/// rest of a part was given back to the page allocator at boot (`pcpu_embed_first_chunk` in `mm/percpu.c`).
fn per_cpu_used_bytes(space: &Space<'_>) -> Option<u64> {
    let numbers = &space.layout.numbers;
    if numbers.per_cpu_chunk_variable == 0 || numbers.per_cpu_base_variable == 0 {
        return None;
    }
    let chunk = space.read_u64(numbers.per_cpu_chunk_variable)?;
    let pages = space.field_u32(chunk, numbers.chunk_page_count)?;
    let end = space.field(chunk, numbers.chunk_base_address)?.checked_add(u64::from(pages) * PAGE_BYTES)?;
    end.checked_sub(space.read_u64(numbers.per_cpu_base_variable)?)
}
