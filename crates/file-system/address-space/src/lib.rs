//! Address spaces whose calls share nothing unless they name one page.
//!
//! **Idea** (RadixVM: Clements, Kaashoek, Zeldovich, EuroSys 2013; section 6.3 of the rule's paper). What a page of an
//! address space leads to stands in a slot of a radix array: a mapping of any length is a few folded slots, and who
//! changes one page locks that page. Each core has a table of its own, in which stands what the core itself has touched.
//!
//! ```text
//! content    nothing │ anonymous, untouched │ a page of a file, by its mapping │ a page of its own, or shared since a fork      a line per page
//! marks      mapped │ writable │ hidden │ sealed                                                a line per page and mark
//! tables     core 0: loads, stores │ core 1: loads, stores │ ...                   a line per page, core and kind of access
//! ```
//!
//! **Marks** say what calls ask that need not know what a page leads to ("don't read unless necessary"): so a load shares
//! nothing with `protect`, a store that must not be nothing with `map`, and `protect` nothing with `map` or `unmap`
//! unless one changes what the other asks.
//!
//! ```text
//! load:     own table, else content → own table, look at the content again;  then the byte
//! store:    own table, else writable?, content → a page of its own if it needs one → own table, look at both again;
//!           then the byte, while the core says that it stores to this page
//! map:      lock content and the marks that change;  change the content;  ask all cores' tables for the pages;  change the marks
//! unmap:    as map, to nothing;  if no page of the range is mapped: nothing
//! protect:  lock "writable";  ask all cores' tables of stores;  change it
//! discard:  per page of its own: lock content;  what it was before;  ask all cores' tables
//! remap:    lock content and rights of both places;  the new content;  unmap the old;  the marks of the new
//! fork:     per mapped part: lock content and "writable";  pages of its own become shared;  ask all cores' tables of stores
//! ```
//! Who changes nothing writes nothing: each call looks first.
//!
//! **Who has touched a page** is not noted in the page, where two first touches would meet. Whoever takes a page away asks
//! the tables of all cores, writes to those only that have it ([`Mmu::revoke`]), and waits for stores that are under way
//! through them. Loads are not waited for: what they read is not used for anything else before they have ended (crate `epoch`).
//!
//! **One page is one step**: what content and marks say of it changes at once for whoever looks, and no sooner than all tables
//! have been told. Who asks a mark waits while it is locked, and a fault waits while the content is locked; an access to a file
//! that a table knows looks at the table again afterwards. A call on several pages goes through each array from left to right.
//!
//! **Lives.** A mapping of a file is an object with a count of the pages that lead to it (crate `refcache`); it has a
//! reference to the file. A page of its own (crate `pages`) knows the mapping whose page it is a copy of, and how often the
//! file had been cut then ([`Files::is_cut_since`]): so a cut needs no list of who maps the file.
//!
//! **Death of a process** in a call: its heir unlocks, lets all tables forget all, and lets what was half mapped lead nowhere
//! ([`AddressSpace::repair_taken_over`]).
//!
//! **Lock order**: content, then marks in the order of [`marks`], then slots of a core's table; each by page. Files' locks
//! come after all.
//!
//! **Cost**: a load that the table knows, 8 dependent loads and two stores to the core's own lines (the pin); a store a fence
//! more.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(any(loom, shuttle)), no_std)]

mod access;
mod content;
mod discard;
mod files;
mod fork;
mod mapping;
mod marks;
mod mmu;
mod parts;
mod remap;
mod repair;
mod shared;
mod software;
mod space;
mod touch;

pub use access::Fault;
pub use files::{FileId, Files};
pub use mapping::{KIND_MAPPING, MAPPING, Mapping};
pub use mmu::{Access, DirectMmu, Mmu, Revoked, Shown, Translation};
pub use posix_calls::{Growth, Place, Protection, SPACE_PAGES, Sharing};
pub use remap::RemapError;
pub use shared::{KIND_SHARED_PAGE, SHARED_PAGE, SharedPage};
pub use software::{SoftwareMmu, TABLE, TABLE_LAYOUT};
pub use space::{AddressSpace, Backing, MapError, Mapped, Memory, ProtectError};
pub use touch::{PagedFiles, Presence, TouchError};
