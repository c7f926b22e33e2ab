//! Names for addresses of an x86-64 Linux kernel under observation.
//!
//! ```text
//!  in the emulator, guest stopped                                on the host, at leisure
//!  guest memory ──WindowView::capture──► ObjectCapture ──Namer::name──► "struct inode", "i_rwsem"
//!                     ▲                  (plain data)          ▲
//!                GuestLayout ◄──derive── BTF + kallsyms ───────┘
//! ```
//!
//! Naming has two halves, since objects live only as long as the guest stands still, and types are too much to carry into
//! the emulator. *Capturing* ([`capture`]) finds out what lies at an address: which slab object, page, per-CPU area or
//! stack. It needs a few dozen numbers about the kernel ([`layout`]), allocates nothing, and distrusts all it reads.
//! *Naming* ([`names`]) turns that into the type and field that a kernel developer would write, from BTF ([`btf`]) and
//! kallsyms ([`symbols`]).

#![forbid(unsafe_code)]

pub mod btf;
pub mod capture;
pub mod layout;
mod memory;
pub mod names;
pub mod symbols;

pub use btf::{BtfError, KernelTypes};
pub use capture::{CaptureError, CaptureKind, ObjectCapture, PageKind, WindowView, capture};
pub use layout::{GuestLayout, LayoutError};
pub use memory::GuestMemory;
pub use names::{FunctionName, Holder, Namer, ObjectName, PairName, Sharing, Side};
pub use symbols::{KernelSymbols, SymbolError};
