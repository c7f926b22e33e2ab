//! What lies at an address of the stopped guest.
//!
//! [`WindowView`] is made once per window and asked for the first byte of every access of interest. All of it is bounded:
//! no allocation, loops with fixed limits, and every value that comes from the guest is checked before it is used, so that
//! a guest with damaged or hostile memory gives a poor name, and nothing else.

mod maple;
mod owner;
mod page;
mod pointers;
mod record;
mod space;
mod stack;
mod view;

pub use page::SlabPlace;
pub use record::{CaptureError, CaptureKind, NAME_BYTES, ObjectCapture, PageKind};
pub use view::{WindowView, capture};
