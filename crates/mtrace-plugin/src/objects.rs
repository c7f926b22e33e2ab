//! What lies at an address of the guest's kernel, looked up in the guest's memory when a window closes.

use std::ops::Range;

use crate::ram::Ram;
use crate::window::{Capturer, DirectMap};

/// Size of one capture in the trace.
pub const CAPTURE_BYTES: usize = 0;

/// The guest's memory and what its kernel's layout says.
pub struct Objects {
    ram: Ram,
}

impl Objects {
    /// Looks into `ram`.
    pub fn new(ram: Ram) -> Self {
        Self { ram }
    }

    /// The direct map, whose start the kernel keeps in the variable at `_address`.
    pub fn direct_map(&mut self, _address: u64) -> Option<DirectMap> {
        let _ = self.ram.words();
        None
    }

    /// A view for one window.
    pub fn view(&mut self) -> Option<View<'_>> {
        None
    }
}

/// One window's look into the guest's memory.
pub struct View<'a> {
    _objects: &'a Objects,
}

impl Capturer for View<'_> {
    fn capture(&mut self, address: u64, _out: &mut Vec<u8>) -> Range<u64> {
        address..address + 1
    }
}
