//! The processor's instructions that write lines back and forget them, chosen when the program runs.
//!
//! | | write back | invalidate | drain |
//! | --- | --- | --- | --- |
//! | x86-64 | `clwb`, else `clflushopt`, else `clflush` | `clflushopt` or `clflush`, then `mfence` | `sfence` |
//! | aarch64 | `dc cvac` | `dc civac`, then `dsb sy` | `dsb sy` |
//!
//! Sources: Intel's manual (volume 2: CLWB, CLFLUSHOPT; volume 1, 11.4.4.1), Arm's manual (D7.5.9, user-space maintenance).
//! Both processors' invalidations write dirty lines back.

/// The instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    #[cfg(target_arch = "x86_64")]
    write_back: WriteBack,
    #[cfg(target_arch = "x86_64")]
    has_clflushopt: bool,
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteBack {
    Clwb,
    Clflushopt,
    Clflush,
}

#[cfg(target_arch = "x86_64")]
impl Instructions {
    /// Those of the processor that runs this; `None` where a line has not 64 bytes or there are no such instructions.
    pub fn detect() -> Option<Instructions> {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        // Leaf 1: EBX has the size of a line in eights of bytes, EDX bit 19 says that there is CLFLUSH.
        let basic = __cpuid(1);
        if (basic.ebx >> 8) & 0xFF != 8 || basic.edx & (1 << 19) == 0 {
            return None;
        }
        let extended = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).ebx } else { 0 };
        let has_clflushopt = extended & (1 << 23) != 0;
        let write_back = match extended & (1 << 24) != 0 {
            true => WriteBack::Clwb,
            false if has_clflushopt => WriteBack::Clflushopt,
            false => WriteBack::Clflush,
        };
        Some(Instructions { write_back, has_clflushopt })
    }

    /// What they are called, for pages and reports.
    pub fn names(self) -> (&'static str, &'static str) {
        let write_back = match self.write_back {
            WriteBack::Clwb => "clwb",
            WriteBack::Clflushopt => "clflushopt",
            WriteBack::Clflush => "clflush",
        };
        (write_back, if self.has_clflushopt { "clflushopt" } else { "clflush" })
    }

    /// Begins to write the line at this address back.
    ///
    /// # Safety
    /// The address lies in memory that is mapped.
    #[inline]
    pub unsafe fn write_back(self, line: *const u8) {
        // SAFETY: these instructions change no memory that the program can see, and the address is mapped.
        unsafe {
            match self.write_back {
                WriteBack::Clwb => core::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                WriteBack::Clflushopt => clflushopt(line),
                WriteBack::Clflush => core::arch::x86_64::_mm_clflush(line),
            }
        }
    }

    /// Begins to forget the line at this address.
    ///
    /// # Safety
    /// As for [`Instructions::write_back`].
    #[inline]
    pub unsafe fn invalidate(self, line: *const u8) {
        // SAFETY: as in `write_back`.
        unsafe { if self.has_clflushopt { clflushopt(line) } else { core::arch::x86_64::_mm_clflush(line) } }
    }

    /// Reads from here on come after the invalidations before: `clflushopt` is ordered by fences alone.
    #[inline]
    pub fn end_of_invalidations(self) {
        // SAFETY: every x86-64 has it.
        unsafe { core::arch::asm!("mfence", options(nostack, preserves_flags)) };
    }

    /// Waits for the write-backs.
    #[inline]
    pub fn drain(self) {
        // SAFETY: every x86-64 has it.
        unsafe { core::arch::asm!("sfence", options(nostack, preserves_flags)) };
    }
}

/// # Safety
/// The address is mapped, and the processor has the instruction.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn clflushopt(line: *const u8) {
    // SAFETY: the caller's promise; the line's bytes stay what they are.
    unsafe { core::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
impl Instructions {
    /// Those of the processor that runs this; `None` where the smallest line of its data caches has not 64 bytes.
    pub fn detect() -> Option<Instructions> {
        let cache_type: u64;
        // SAFETY: Linux lets programs read this register (or reads it for them).
        unsafe {
            core::arch::asm!("mrs {}, ctr_el0", out(reg) cache_type, options(nomem, nostack, preserves_flags));
        }
        // DminLine: the logarithm of the words of four bytes.
        ((4 << ((cache_type >> 16) & 0xF)) == crate::line::LINE_BYTES).then_some(Instructions {})
    }

    /// What they are called, for pages and reports.
    pub fn names(self) -> (&'static str, &'static str) {
        ("dc cvac", "dc civac")
    }

    /// Begins to write the line at this address back.
    ///
    /// # Safety
    /// The address lies in memory that is mapped.
    #[inline]
    pub unsafe fn write_back(self, line: *const u8) {
        // SAFETY: changes no memory that the program can see, and the address is mapped.
        unsafe { core::arch::asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
    }

    /// Begins to forget the line at this address.
    ///
    /// # Safety
    /// As for [`Instructions::write_back`].
    #[inline]
    pub unsafe fn invalidate(self, line: *const u8) {
        // SAFETY: as in `write_back`.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)) };
    }

    /// Reads from here on come after the invalidations before.
    #[inline]
    pub fn end_of_invalidations(self) {
        self.drain();
    }

    /// Waits for the write-backs.
    #[inline]
    pub fn drain(self) {
        // SAFETY: a barrier.
        unsafe { core::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Instructions {
    /// None are known for this processor.
    pub fn detect() -> Option<Instructions> {
        None
    }

    /// What they are called.
    pub fn names(self) -> (&'static str, &'static str) {
        ("none", "none")
    }

    /// Nothing.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn write_back(self, _line: *const u8) {}

    /// Nothing.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn invalidate(self, _line: *const u8) {}

    /// Nothing.
    pub fn end_of_invalidations(self) {}

    /// Nothing.
    pub fn drain(self) {}
}
