//! What lies at an address of the guest's kernel, looked up in the guest's memory when a window closes: objects must be
//! captured while they are alive. The looking up itself is `kernel_naming`'s.

use std::ops::Range;

use kernel_naming::{CaptureKind, GuestLayout, GuestMemory, ObjectCapture, WindowView};
use mtrace::LINE_BYTES;
use qemu_plugin::ram::Ram;

use crate::window::{Capturer, DirectMap};

/// Size of one capture in the trace.
pub const CAPTURE_BYTES: usize = ObjectCapture::SIZE_BYTES;

/// Where the kernel image appears in the kernel's addresses: physical address 0 (`__START_KERNEL_map`). The kernel must not
/// be moved by address randomisation.
const IMAGE_MAP: u64 = 0xffff_ffff_8000_0000;

/// The guest's memory and what its kernel's layout says.
pub struct Objects {
    ram: Ram,
    below_4g_bytes: u64,
    layout: GuestLayout,
}

impl Objects {
    /// Looks into `ram`, of which `below_4g_bytes` lie below the gap at 4 GiB.
    pub fn new(ram: Ram, below_4g_bytes: u64, layout: GuestLayout) -> Self {
        Self { ram, below_4g_bytes, layout }
    }

    /// Where the kernel maps all of physical memory.
    ///
    /// # Errors
    /// One line if the guest's RAM cannot be mapped.
    pub fn direct_map(&mut self) -> Result<DirectMap, String> {
        let memory = GuestMemory::new(self.ram.words()?, self.below_4g_bytes);
        let variable = self.layout.numbers.page_offset_variable;
        let base = variable.checked_sub(IMAGE_MAP).and_then(|physical| memory.read_u64(physical));
        Ok(DirectMap { base: base.unwrap_or(0), bytes: memory.physical_end() })
    }

    /// A view for one window.
    pub fn view(&mut self) -> Option<View<'_>> {
        let memory = GuestMemory::new(self.ram.words().ok()?, self.below_4g_bytes);
        Some(View { memory, layout: &self.layout, view: None })
    }
}

/// One window's look into the guest's memory. Reads nothing before the first capture.
pub struct View<'a> {
    memory: GuestMemory<'a>,
    layout: &'a GuestLayout,
    view: Option<WindowView<'a>>,
}

impl Capturer for View<'_> {
    fn capture(&mut self, address: u64, out: &mut Vec<u8>) -> Range<u64> {
        let view = self.view.get_or_insert_with(|| WindowView::new(self.memory, self.layout));
        let capture = view.capture(address);
        out.extend_from_slice(&capture.to_bytes());
        addresses_of(&capture)
    }

    fn object_off_lines(&mut self, address: u64) -> Option<Range<u64>> {
        let view = self.view.get_or_insert_with(|| WindowView::new(self.memory, self.layout));
        view.slab_object(address).filter(|object| !object.is_placed_by(LINE_BYTES)).map(|object| object.place)
    }
}

/// The addresses that would give an equal capture (but for the address asked for).
fn addresses_of(capture: &ObjectCapture) -> Range<u64> {
    let line = capture.address & !(LINE_BYTES - 1);
    let typed_by_pointer = !capture.type_name().is_empty();
    match capture.capture_kind() {
        // Memory from kmalloc may hold a typed part for each address.
        CaptureKind::Slab if !capture.cache_name().contains("kmalloc") => {
            capture.object..capture.object.saturating_add(capture.object_size)
        }
        CaptureKind::StructPage | CaptureKind::Stack if capture.object_size > 0 => {
            capture.object..capture.object.saturating_add(capture.object_size)
        }
        CaptureKind::KernelImage | CaptureKind::Module | CaptureKind::User => line..line + LINE_BYTES,
        CaptureKind::PerCpu | CaptureKind::Page if !typed_by_pointer => line..line + LINE_BYTES,
        _ => capture.address..capture.address + 1,
    }
}
