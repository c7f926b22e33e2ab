//! What memory belongs to as one piece: the allocated object, or the variable. Its lines are looked at together, and a
//! line's place in it is a place in its type.

use super::{Namer, tables};
use crate::capture::{CaptureKind, ObjectCapture};
use crate::symbols::without_number;

/// An allocated object or a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its type (`struct shmem_inode_info`), the cache that it is of, or the variable.
    pub name: String,
    /// Where it begins.
    pub start: u64,
}

impl Namer {
    /// What holds `address`, which lies in the captured object; `None` of memory that is no object: stacks, per-CPU areas,
    /// pages without type.
    #[must_use]
    pub fn holder(&self, capture: &ObjectCapture, address: u64) -> Option<Holder> {
        match capture.capture_kind() {
            CaptureKind::Slab | CaptureKind::Page | CaptureKind::Vmalloc if !capture.type_name().is_empty() => {
                let name = capture.type_name();
                // Elements of an array are objects of their own.
                let stride = name
                    .strip_suffix("[]")
                    .and_then(|element| self.types().size_bytes(self.types().structure(element)?))
                    .filter(|stride| *stride > 0);
                let within = address.wrapping_sub(capture.typed_start);
                let start = stride.map_or(capture.typed_start, |stride| address.wrapping_sub(within % stride));
                Some(Holder { name: format!("struct {}", name.trim_end_matches("[]")), start })
            }
            CaptureKind::Slab => {
                let cache = capture.cache_name();
                let structure =
                    tables::cache_structures(cache).find(|structure| self.types().structure(structure).is_some());
                let structure = structure.filter(|_| !tables::is_kmalloc(cache));
                let name = structure.map_or_else(|| cache.to_owned(), |structure| format!("struct {structure}"));
                Some(Holder { name, start: capture.object })
            }
            CaptureKind::StructPage => Some(Holder { name: "struct page".to_owned(), start: capture.object }),
            CaptureKind::KernelImage => {
                let canonical = capture.object.wrapping_add(address.wrapping_sub(capture.address));
                self.variable_holder(canonical, address)
            }
            CaptureKind::Module => self.variable_holder(address, address),
            _ => None,
        }
    }

    fn variable_holder(&self, canonical: u64, address: u64) -> Option<Holder> {
        let symbol = self.symbols().data_at(canonical)?;
        let start = address.wrapping_sub(canonical - symbol.address);
        Some(Holder { name: without_number(symbol.name).to_owned(), start })
    }
}
