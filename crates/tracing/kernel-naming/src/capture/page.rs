//! Pages and slab objects: from an address in the direct map to what its page is used for.
//!
//! Every page of RAM has a `struct page`, in an array that `vmemmap` points to; the pages of a slab share a first one that
//! names the cache, and objects lie in it at equal distances (`nearest_obj` in `include/linux/slub_def.h`).

use std::ops::Range;

use super::record::{CaptureKind, ObjectCapture, PageKind};
use super::space::{PAGE_BYTES, Space};

/// A slab object's distance from the next is at most so much: larger allocations are pages.
const OBJECT_LIMIT_BYTES: u64 = 1 << 20;

/// Flags in the low bits of `page.mapping` (`include/linux/page-flags.h`).
const MAPPING_ANONYMOUS: u64 = 1;
const MAPPING_FLAGS: u64 = 3;

/// A page's first `struct page` and the page frame number that it stands for.
pub(super) struct Head {
    pub page: u64,
    pub frame: u64,
    pub kind: PageKind,
}

/// One of the equal places of a slab.
struct Slot {
    /// The `kmem_cache`.
    cache: u64,
    /// Where the object begins.
    object: u64,
    /// Bytes that were asked for.
    size_bytes: u64,
    /// Bytes from one object to the next.
    distance: u64,
}

/// An object of a slab, as far as its place goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabPlace {
    /// From its first byte to the next object's.
    pub place: Range<u64>,
    slab_start: u64,
}

impl SlabPlace {
    /// Whether all objects of its slab begin at a multiple of `bytes`, a divisor of the page's size.
    #[must_use]
    pub fn is_placed_by(&self, bytes: u64) -> bool {
        (self.place.end - self.place.start).is_multiple_of(bytes)
            && (self.place.start - self.slab_start).is_multiple_of(bytes)
    }
}

impl Space<'_> {
    fn marked(&self, page: u64, offset: u64, mask: u64, value: u64) -> bool {
        self.field_u32(page, offset).is_some_and(|word| u64::from(word) & mask == value)
    }

    /// The head of the (possibly compound) page with that frame number. `None` where `vmemmap` has no entry.
    pub fn head_page(&self, frame: u64) -> Option<Head> {
        let numbers = &self.layout.numbers;
        let page = self.vmemmap.checked_add(frame.checked_mul(numbers.page_size)?)?;
        let link = self.field(page, numbers.page_compound_head)?;
        let head = if link & 1 == 1 { link - 1 } else { page };
        let distance = head.checked_sub(self.vmemmap)?;
        if head > page || distance.checked_rem(numbers.page_size)? != 0 {
            return Some(Head { page, frame, kind: PageKind::Other });
        }
        Some(Head { page: head, frame: distance / numbers.page_size, kind: self.page_kind(head)? })
    }

    fn page_kind(&self, head: u64) -> Option<PageKind> {
        let numbers = &self.layout.numbers;
        if self.marked(head, numbers.slab_mark_offset, numbers.slab_mark_mask, numbers.slab_mark_value) {
            return Some(PageKind::Slab);
        }
        if self.marked(head, numbers.table_mark_offset, numbers.table_mark_mask, numbers.table_mark_value) {
            return Some(PageKind::PageTable);
        }
        if self.field(head, numbers.page_flags)?.unbounded_shr(numbers.page_reserved_bit as u32) & 1 == 1 {
            return Some(PageKind::Reserved);
        }
        let mapping = self.field(head, numbers.page_mapping)?;
        Some(if mapping & MAPPING_ANONYMOUS != 0 && mapping >> 63 == 1 {
            PageKind::Anonymous
        } else if mapping & MAPPING_FLAGS == 0 && self.is_file_mapping(mapping) {
            PageKind::PageCache
        } else {
            PageKind::Other
        })
    }

    /// Whether a value is an `address_space`: its `host` is an inode, so at least an address that can be read. In pages of
    /// other use the field may hold anything.
    fn is_file_mapping(&self, mapping: u64) -> bool {
        let host = if mapping >> 63 == 1 { self.field(mapping, self.layout.numbers.mapping_host) } else { None };
        host.is_some_and(|host| host >> 63 == 1 && self.read_u64(host).is_some())
    }

    /// Fills in what the direct map has at the capture's address.
    pub fn capture_page(&self, capture: &mut ObjectCapture, physical: u64) {
        let Some(head) = self.head_page(physical / PAGE_BYTES) else { return };
        let numbers = &self.layout.numbers;
        capture.page_kind = head.kind as u32;
        if head.kind == PageKind::Slab && self.capture_slab_object(capture, &head).is_some() {
            return;
        }
        let image = Self::image_address(physical);
        let image = image.filter(|image| (numbers.image_start..numbers.image_end).contains(image));
        if let (PageKind::Reserved, Some(image)) = (head.kind, image) {
            capture.kind = CaptureKind::KernelImage as u32;
            capture.object = image;
            return;
        }
        capture.kind = CaptureKind::Page as u32;
        capture.object = capture.address & !(PAGE_BYTES - 1);
        capture.object_size = PAGE_BYTES;
        if head.kind == PageKind::PageCache {
            let mapping = self.field(head.page, numbers.page_mapping);
            capture.owner = mapping.and_then(|mapping| self.field(mapping, numbers.mapping_host)).unwrap_or(0);
        }
    }

    /// How many bytes from `address` on belong to the slab object that holds it.
    pub fn allocated_behind(&self, address: u64) -> Option<u64> {
        let head = self.head_page(self.direct_physical(address)? / PAGE_BYTES)?;
        let slot = self.slab_slot(&head, address).filter(|_| head.kind == PageKind::Slab)?;
        slot.object.checked_add(slot.size_bytes)?.checked_sub(address)
    }

    /// The place in a slab that holds `address`.
    fn slab_slot(&self, head: &Head, address: u64) -> Option<Slot> {
        let numbers = &self.layout.numbers;
        let cache = self.field(head.page, numbers.slab_cache)?;
        let distance = u64::from(self.field_u32(cache, numbers.cache_size)?);
        let object_size = u64::from(self.field_u32(cache, numbers.cache_object_size)?);
        let padding = u64::from(self.field_u32(cache, numbers.cache_red_left_pad)?);
        if distance == 0 || distance > OBJECT_LIMIT_BYTES || object_size > distance || padding >= distance {
            return None;
        }
        let slab_start = self.direct_map.checked_add(head.frame.checked_mul(PAGE_BYTES)?)?;
        let within = address.checked_sub(slab_start)?;
        let object = (slab_start + within / distance * distance).checked_add(padding)?;
        Some(Slot { cache, object, size_bytes: object_size, distance })
    }

    /// The place of the slab object at an address of the direct map.
    pub fn slab_place(&self, address: u64) -> Option<SlabPlace> {
        let head = self.head_page(self.direct_physical(address)? / PAGE_BYTES)?;
        let slot = self.slab_slot(&head, address).filter(|_| head.kind == PageKind::Slab)?;
        let slab_start = self.direct_map.checked_add(head.frame.checked_mul(PAGE_BYTES)?)?;
        let place = slot.object..slot.object.checked_add(slot.distance)?;
        place.contains(&address).then_some(SlabPlace { place, slab_start })
    }

    fn capture_slab_object(&self, capture: &mut ObjectCapture, head: &Head) -> Option<()> {
        let slot = self.slab_slot(head, capture.address)?;
        capture.kind = CaptureKind::Slab as u32;
        (capture.object, capture.object_size, capture.owner) = (slot.object, slot.size_bytes, slot.cache);
        let name = self.field(slot.cache, self.layout.numbers.cache_name)?;
        self.copy_text(name, &mut capture.cache_name);
        Some(())
    }

    /// Fills in a capture of a `struct page`.
    pub fn capture_page_structure(&self, capture: &mut ObjectCapture, distance: u64) {
        let size_bytes = self.layout.numbers.page_size;
        let Some(frame) = distance.checked_div(size_bytes) else { return };
        capture.kind = CaptureKind::StructPage as u32;
        capture.object = self.vmemmap + frame * size_bytes;
        capture.object_size = size_bytes;
        capture.owner = frame;
        capture.page_kind = self.head_page(frame).map_or(PageKind::Other, |head| head.kind) as u32;
    }
}
