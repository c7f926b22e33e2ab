//! The result of a capture: plain data of fixed size, which goes into a trace as it is.
//!
//! ```text
//! byte   0 address u64 | 8 kind u32 | 12 page kind u32 | 16 object u64 | 24 object size u64 | 32 owner u64
//!       40 cpu u32 | 44 process id u32 | 48 cache name [32] | 80 type name [32] | 112 typed start u64
//!      120 of whom [32]                                                                                  (little endian)
//! ```

/// Bytes kept of a cache's or type's name.
pub const NAME_BYTES: usize = 32;

/// Declares an enumeration with fixed numbers, and the way back from a number.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// The variant of that number.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// What an address belongs to.
    CaptureKind {
        /// Nothing that could be named.
        Unknown = 0,
        /// An object of a slab cache.
        Slab = 1,
        /// A `struct page` itself (or `struct slab`, `struct folio` in its place).
        StructPage = 2,
        /// A page that is no slab, through the direct map.
        Page = 3,
        /// Per-CPU memory.
        PerCpu = 4,
        /// The kernel image: code, data, bss.
        KernelImage = 5,
        /// A loaded module.
        Module = 6,
        /// A task's kernel stack.
        Stack = 7,
        /// An area of vmalloc space that is no task's stack.
        Vmalloc = 8,
        /// User space.
        User = 9,
        /// `cpu_entry_area`: exception stacks and descriptor tables.
        CpuEntryArea = 10,
        /// A table allocated at boot that a variable points to, such as `dentry_hashtable`.
        Table = 11,
    }
}

numbered! {
    /// What a page is used for.
    PageKind {
        /// The capture is about no page.
        None = 0,
        /// Slab objects.
        Slab = 1,
        /// A page table.
        PageTable = 2,
        /// The page cache: a page of a file.
        PageCache = 3,
        /// Anonymous user memory.
        Anonymous = 4,
        /// Kept from the page allocator at boot (`PG_reserved`).
        Reserved = 5,
        /// Anything else: free, or allocated by the kernel as pages.
        Other = 6,
    }
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ObjectCapture {
    /// The address asked for.
    pub address: u64,
    /// A [`CaptureKind`].
    pub kind: u32,
    /// A [`PageKind`].
    pub page_kind: u32,
    /// Where the object begins: slab object, page, `struct page`, stack, vmalloc area. For per-CPU memory the address as
    /// the kernel's symbols have it (without the CPU's offset); for the kernel image the image's address of the byte.
    pub object: u64,
    /// Size of the object in bytes, 0 where unknown.
    pub object_size: u64,
    /// Slab: the `kmem_cache`. Stack: the `task_struct`. Page cache: the inode. Vmalloc: the code address that allocated it.
    /// `struct page`: the page frame number.
    pub owner: u64,
    /// Per-CPU memory: whose; else `u32::MAX`.
    pub cpu: u32,
    /// Stack: the task's pid; else 0.
    pub process_id: u32,
    /// Slab: the cache's name. Stack: the task's name. Table: the variable's name. Ends with NULs.
    pub cache_name: [u8; NAME_BYTES],
    /// The type that was found by following pointers, or empty. Ends with NULs.
    pub type_name: [u8; NAME_BYTES],
    /// Where the typed part begins, if a type was found: an object within an object; else equal to `object`.
    pub typed_start: u64,
    /// Which file or directory the object is about: a letter for its kind and the name that it has (`f n0`), or empty. See
    /// `owner.rs`. Ends with NULs.
    pub of_whom: [u8; NAME_BYTES],
}

/// Why captured bytes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a kind of capture, found number {0}")]
pub struct CaptureError(pub u32);

impl ObjectCapture {
    /// Size in bytes.
    pub const SIZE_BYTES: usize = 152;

    /// A capture that tells nothing of `address`.
    #[must_use]
    pub fn unknown(address: u64) -> Self {
        Self {
            address,
            kind: CaptureKind::Unknown as u32,
            page_kind: PageKind::None as u32,
            object: address,
            object_size: 0,
            owner: 0,
            cpu: u32::MAX,
            process_id: 0,
            cache_name: [0; NAME_BYTES],
            type_name: [0; NAME_BYTES],
            typed_start: address,
            of_whom: [0; NAME_BYTES],
        }
    }

    /// The kind, [`CaptureKind::Unknown`] for a number that is none.
    #[must_use]
    pub fn capture_kind(&self) -> CaptureKind {
        CaptureKind::from_number(self.kind).unwrap_or(CaptureKind::Unknown)
    }

    /// The page's kind, [`PageKind::None`] for a number that is none.
    #[must_use]
    pub fn page(&self) -> PageKind {
        PageKind::from_number(self.page_kind).unwrap_or(PageKind::None)
    }

    /// The cache's (task's, table's) name; empty where there is none or it is not text.
    #[must_use]
    pub fn cache_name(&self) -> &str {
        text(&self.cache_name)
    }

    /// The type found by following pointers; empty where there is none.
    #[must_use]
    pub fn type_name(&self) -> &str {
        text(&self.type_name)
    }

    /// Which file or directory the object is about; empty where that is not known.
    #[must_use]
    pub fn of_whom(&self) -> &str {
        text(&self.of_whom)
    }

    /// Notes the type that was found and where the typed part begins; of a name that is too long, what fits.
    pub(super) fn set_type(&mut self, name: &str, start: u64) {
        self.type_name = [0; NAME_BYTES];
        for (byte, value) in self.type_name.iter_mut().zip(name.bytes()) {
            *byte = value;
        }
        self.typed_start = start;
    }

    /// The bytes, as the module describes them.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE_BYTES] {
        let mut bytes = [0; Self::SIZE_BYTES];
        let words =
            [(0, self.address), (16, self.object), (24, self.object_size), (32, self.owner), (112, self.typed_start)];
        for (at, word) in words {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, word) in [(8, self.kind), (12, self.page_kind), (40, self.cpu), (44, self.process_id)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[48..80].copy_from_slice(&self.cache_name);
        bytes[80..112].copy_from_slice(&self.type_name);
        bytes[120..152].copy_from_slice(&self.of_whom);
        bytes
    }

    /// Reads the bytes back.
    ///
    /// # Errors
    /// [`CaptureError`] if a kind is not one that this version knows.
    pub fn from_bytes(bytes: &[u8; Self::SIZE_BYTES]) -> Result<Self, CaptureError> {
        let long = |at: usize| (0..8).fold(0, |value, index| value | u64::from(bytes[at + index]) << (8 * index));
        let short = |at: usize| (0..4).fold(0, |value, index| value | u32::from(bytes[at + index]) << (8 * index));
        let name = |at: usize| std::array::from_fn(|index| bytes[at + index]);
        let capture = Self {
            address: long(0),
            kind: short(8),
            page_kind: short(12),
            object: long(16),
            object_size: long(24),
            owner: long(32),
            cpu: short(40),
            process_id: short(44),
            cache_name: name(48),
            type_name: name(80),
            typed_start: long(112),
            of_whom: name(120),
        };
        CaptureKind::from_number(capture.kind).ok_or(CaptureError(capture.kind))?;
        PageKind::from_number(capture.page_kind).ok_or(CaptureError(capture.page_kind))?;
        Ok(capture)
    }
}

fn text(bytes: &[u8; NAME_BYTES]) -> &str {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or("");
    // Names go into reports: nothing that could end a line or steer a terminal.
    if text.contains(char::is_control) { "" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_documented_size_without_padding() {
        assert_eq!(std::mem::size_of::<ObjectCapture>(), ObjectCapture::SIZE_BYTES);
        assert_eq!(std::mem::offset_of!(ObjectCapture, of_whom), 120);
    }

    #[test]
    fn survives_its_bytes() {
        let mut capture = ObjectCapture::unknown(0x1234_5678_9abc_def0);
        capture.kind = CaptureKind::Slab as u32;
        capture.page_kind = PageKind::Slab as u32;
        (capture.object, capture.object_size, capture.owner) = (1, 2, 3);
        (capture.cpu, capture.process_id, capture.typed_start) = (4, 5, 6);
        capture.cache_name[..6].copy_from_slice(b"dentry");
        capture.type_name[..5].copy_from_slice(b"mount");
        capture.of_whom[..4].copy_from_slice(b"f n0");
        let bytes = capture.to_bytes();
        assert_eq!(ObjectCapture::from_bytes(&bytes), Ok(capture));
        assert_eq!((capture.cache_name(), capture.type_name(), capture.of_whom()), ("dentry", "mount", "f n0"));
    }

    #[test]
    fn refuses_unknown_kinds() {
        let mut bytes = ObjectCapture::unknown(0).to_bytes();
        bytes[8] = 12;
        assert_eq!(ObjectCapture::from_bytes(&bytes), Err(CaptureError(12)));
        bytes[8] = 0;
        bytes[13] = 1;
        assert_eq!(ObjectCapture::from_bytes(&bytes), Err(CaptureError(256)));
    }

    #[test]
    fn hides_names_that_are_no_text() {
        let mut capture = ObjectCapture::unknown(0);
        capture.cache_name[..3].copy_from_slice(b"a\nb");
        capture.type_name = [0xff; NAME_BYTES];
        assert_eq!((capture.cache_name(), capture.type_name()), ("", ""));
    }
}
